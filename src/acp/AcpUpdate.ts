/**
 * Events of an agent as updates of the Agent Client Protocol. Pure: a state goes in with each event, and comes out with
 * the updates that an editor is sent. A new event does not compile until somebody decides what editors see of it.
 *
 * A call that was announced once is only ever updated. What a call prints is collected: {@link flush} yields it when its
 * time has come, because each such update replaces the one before.
 */
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import type { RequestId, SessionId, ToolCallId } from "../core/Id.js"
import * as Truncated from "../core/Truncated.js"
import { visible } from "../core/Visible.js"
import type { ToolKind } from "../core/ToolKind.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import { isMissing, serverWords } from "../mcp/ServerWords.js"
import type {
  ContentBlock,
  Cost,
  SessionConfigOption,
  SessionUpdate,
  ToolCallContent
} from "../foreign/AcpConnection.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** What an editor has been sent so far. */
export interface State {
  /** The number of the message that is being said, and whether it is a thought. */
  readonly message: number
  readonly compaction: number
  readonly calls: HashMap.HashMap<ToolCallId, Call>
  /** The calls that asked, by request. */
  readonly asking: HashMap.HashMap<RequestId, ToolCallId>
  readonly isTitled: boolean
}

/** A call that was announced. */
interface Call {
  readonly kind: ToolKind
  /** The end of what it has printed, while it runs. */
  readonly printed: string
  /** Whether some of that was not sent yet. */
  readonly isDue: boolean
}

/** What events do not say. */
export interface Surroundings {
  /** The root session, which is the one that an editor knows. */
  readonly root: SessionId
  /** The absolute path of the workspace. */
  readonly workspace: string
  /** What a tool does, and which of its parameters are paths; nothing for a tool that there is not. */
  readonly toolOf: (name: string) => { readonly kind: ToolKind; readonly paths: ReadonlyArray<string> } | undefined
  /** What the editor can show beside messages. */
  readonly shows: { readonly notices: boolean; readonly compaction: boolean }
  readonly options: ReadonlyArray<SessionConfigOption>
  readonly cost?: Cost | undefined
  /** True while a journal is replayed: then people's words are sent, too. */
  readonly isReplay: boolean
  /** Whether this editor sent the words of the event. */
  readonly isOwn: boolean
}

/** The next state, and what the editor is sent. */
export type Step = readonly [State, ReadonlyArray<SessionUpdate>]

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Nothing was sent yet. */
export const empty: State = {
  message: 0,
  compaction: 0,
  calls: HashMap.empty(),
  asking: HashMap.empty(),
  isTitled: false
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** What an event is for an editor. */
export const step = (state: State, event: AgentEvent, around: Surroundings): Step => {
  const isRoot = event.sessionId === around.root
  switch (event._tag) {
    case "BlockStarted":
      return isRoot ? [{ ...state, message: state.message + 1 }, none] : [state, none]
    case "TextDelta":
      return isRoot ? [state, said("agent_message_chunk", event.text, messageId(state, event))] : [state, none]
    case "ThinkingDelta":
      return isRoot ? [state, said("agent_thought_chunk", event.text, messageId(state, event))] : [state, none]
    case "TurnStarted":
      return isRoot ? begin(state, event, around) : [state, none]
    case "UserInterjected":
      if (around.isOwn) return [state, none]
      return [state, said("user_message_chunk", words(event.message, event.attachments), event.messageId)]
    case "TurnEnded":
      return isRoot ? end(state, event) : [state, none]
    case "ToolCallProposed":
      return propose(state, event, around)
    case "ToolCallStarted":
      return update(state, event, around, { status: "in_progress" })
    case "ToolOutput": {
      const call = Option.getOrUndefined(HashMap.get(state.calls, event.toolCallId))
      if (call === undefined) return [state, none]
      const printed = lastOf(call.printed + event.text)
      return [withCall(state, event.toolCallId, { ...call, printed, isDue: true }), none]
    }
    case "ToolCallEnded":
      return finish(state, event, around)
    case "TodosChanged":
      if (!isRoot) return [state, none]
      return [
        state,
        [
          {
            sessionUpdate: "plan",
            entries: event.items.map(({ content, status }) => ({ content, status, priority: "medium" }))
          }
        ]
      ]
    case "ModelCallEnded": {
      const use = event.context
      const used =
        !isRoot || use?.window === undefined || !isCount(use.tokens) || !isCount(use.window)
          ? []
          : [
              {
                sessionUpdate: "usage_update" as const,
                used: use.tokens,
                size: use.window,
                ...(around.cost === undefined ? {} : { cost: around.cost })
              }
            ]
      return [state, event.remark === undefined ? used : [...used, ...notice(event, "warning", event.remark, around)]]
    }
    case "ModelRetried":
      return [
        state,
        notice(event, "warning", `The model did not answer (${event.reason}). Assent tries again.`, around)
      ]
    case "CompactionStarted":
    case "CompactionEnded":
      return compact(state, event, around)
    case "PermissionStatusChanged": {
      if (!isRoot || around.isReplay) return [state, none]
      const configOptions = withMode(around.options, event.mode)
      return [state, [{ sessionUpdate: "config_option_update", configOptions }]]
    }
    case "InteractionRequested": {
      const { requestId, toolCallId } = event
      if (toolCallId === undefined) return [state, none]
      return [{ ...state, asking: HashMap.set(state.asking, requestId, toolCallId) }, none]
    }
    case "InteractionVoted": {
      const toolCallId = Option.getOrUndefined(HashMap.get(state.asking, event.requestId))
      if (toolCallId === undefined || event.missing === undefined) return [state, none]
      return [
        state,
        [
          {
            sessionUpdate: "tool_call_update",
            toolCallId,
            content: [text(`The vote of ${event.by} is filed (${event.vote}). Missing: ${event.missing}.`)]
          }
        ]
      ]
    }
    case "InteractionAnswered":
    case "InteractionCancelled":
    case "InteractionTimedOut":
    case "InteractionUnavailable":
      return [{ ...state, asking: HashMap.remove(state.asking, event.requestId) }, none]
    case "AgentError":
      return [state, remark(event, "error", event.message, around)]
    case "FilesSetAside":
      return [state, event.notices.flatMap((sentence) => remark(event, "warning", sentence, around))]
    case "JobStarted":
      return [state, notice(event, "info", `${event.jobId} runs in the background: ${event.command}`, around)]
    case "JobEnded":
      return [state, notice(event, "info", `${event.jobId} has ended (${jobEnd(event)}): ${event.command}`, around)]
    case "InteractorFailed":
      return [state, notice(event, "warning", event.reason, around)]
    case "McpServerChanged":
      return isMissing(event) ? [state, remark(event, "warning", serverWords(event) ?? "", around)] : [state, none]
    case "AgentCreated":
    case "AgentStatusChanged":
    case "AgentCompleted":
    case "SessionRestored":
    case "ModelCallStarted":
    case "BlockEnded":
    case "ToolArgumentsStarted":
    case "ToolArgumentsDelta":
    case "QuestionDisplayed":
    case "QuestionAnswered":
    case "LateAnswer":
    case "PermissionResolved":
    case "GrantMinted":
    case "GrantConsumed":
    case "SubagentEnvelopeApproved":
    case "SubagentEnvelopeDenied":
    case "InterjectionAcknowledged":
    case "Lagged":
      return [state, none]
  }
}

/** What running calls have printed since the last time. */
export const flush = (state: State): Step => {
  const due = [...HashMap.filter(state.calls, ({ isDue }) => isDue)]
  if (due.length === 0) return [state, none]
  const calls = due.reduce((all, [id, call]) => HashMap.set(all, id, { ...call, isDue: false }), state.calls)
  return [
    { ...state, calls },
    due.map(([toolCallId, { printed }]) => ({
      sessionUpdate: "tool_call_update",
      toolCallId,
      content: [printedText(printed)]
    }))
  ]
}

/** Whether {@link flush} has something to say. */
export const isDue = (state: State): boolean => HashMap.some(state.calls, ({ isDue }) => isDue)

/** Whether a call was announced. */
export const isAnnounced = (state: State, toolCallId: ToolCallId): boolean => HashMap.has(state.calls, toolCallId)

/** Where the paths of a call lead, as absolute paths; none for a path that is no text. */
export const locationsOf = (
  tool: string,
  args: unknown,
  { toolOf, workspace }: Pick<Surroundings, "toolOf" | "workspace">
): ReadonlyArray<{ readonly path: string }> => {
  if (typeof args !== "object" || args === null) return []
  const given = new Map<string, unknown>(Object.entries(args))
  return (toolOf(tool)?.paths ?? []).flatMap((name) => {
    const path = given.get(name)
    return typeof path === "string" && path !== "" ? [{ path: absolute(workspace, path) }] : []
  })
}

/** How an editor shows a call in one line. */
export const titleOf = (tool: string, summary: string, kind: ToolKind | undefined, agent?: string): string => {
  const line = summary === "" ? tool : kind === "execute" ? summary : `${tool} ${summary}`
  return visible((agent === undefined ? line : `[${agent}] ${line}`).replace(/\s+/g, " ").slice(0, 300))
}

/** A text as the content of a call. */
export const text = (words: string): ToolCallContent => ({ type: "content", content: { type: "text", text: words } })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Of<Tag extends AgentEvent["_tag"]> = Extract<AgentEvent, { readonly _tag: Tag }>

const none: ReadonlyArray<never> = []

/** Characters of what a running call has printed that an editor is sent. */
const longest = 8_000

const said = (
  sessionUpdate: "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk",
  words: string,
  messageId: string
): ReadonlyArray<SessionUpdate> => {
  const content: ContentBlock = { type: "text", text: words }
  return words === "" ? none : [{ sessionUpdate, content, messageId }]
}

/** Unique in a session, also when another process goes on with it. */
const messageId = (state: State, event: AgentEvent): string => `${turnOf(event)}/${state.message}`

const turnOf = ({ correlationId }: AgentEvent): string => correlationId ?? "note"

const begin = (state: State, event: Of<"TurnStarted">, around: Surroundings): Step => {
  const message = words(event.input, event.attachments)
  const asked = around.isOwn ? none : said("user_message_chunk", message, `${turnOf(event)}/words`)
  if (state.isTitled) return [state, asked]
  const title = event.input.trim().split("\n")[0]?.slice(0, 80) ?? ""
  if (title === "") return [state, asked]
  return [{ ...state, isTitled: true }, [...asked, { sessionUpdate: "session_info_update", title: visible(title) }]]
}

const words = (message: string, attachments: Of<"TurnStarted">["attachments"] = []): string =>
  [message, ...attachments.map(({ name }) => `[${name}]`)].filter((part) => part !== "").join("\n")

/** Why a turn ended is said unless the answer to its prompt says it. */
const end = (state: State, event: Of<"TurnEnded">): Step => {
  const next = { ...state, message: state.message + 1 }
  if (event.detail === undefined || (event.reason !== "halted" && event.reason !== "denied")) return [next, none]
  return [next, said("agent_message_chunk", event.detail, messageId(next, event))]
}

const propose = (state: State, event: Of<"ToolCallProposed">, around: Surroundings): Step => {
  const kind = event.kind ?? around.toolOf(event.tool)?.kind ?? "other"
  const known = isAnnounced(state, event.toolCallId)
  const locations = locationsOf(event.tool, event.arguments, around)
  const call = {
    toolCallId: event.toolCallId,
    title: titleOf(event.tool, event.summary, kind, pathOf(event, around)),
    name: event.tool,
    kind,
    status: "pending" as const,
    ...(event.arguments === undefined ? {} : { rawInput: event.arguments }),
    ...(locations.length === 0 ? {} : { locations: [...locations] })
  }
  return [
    withCall(state, event.toolCallId, { kind, printed: "", isDue: false }),
    [known ? { sessionUpdate: "tool_call_update", ...call } : { sessionUpdate: "tool_call", ...call }]
  ]
}

/** Updates a call, which is announced first if it was not. */
const update = (
  state: State,
  event: Of<"ToolCallStarted"> | Of<"ToolCallEnded">,
  around: Surroundings,
  more: { readonly status: "in_progress" | "completed" | "failed" } & Partial<
    Extract<SessionUpdate, { readonly sessionUpdate: "tool_call_update" }>
  >
): Step => {
  const { tool, toolCallId } = event
  if (isAnnounced(state, toolCallId)) return [state, [{ sessionUpdate: "tool_call_update", toolCallId, ...more }]]
  const kind = around.toolOf(tool)?.kind ?? "other"
  const summary = event._tag === "ToolCallStarted" ? event.summary : ""
  const title = titleOf(tool, summary, kind, pathOf(event, around))
  const { content, status, _meta } = more
  return [
    withCall(state, toolCallId, { kind, printed: "", isDue: false }),
    [
      {
        sessionUpdate: "tool_call",
        toolCallId,
        title,
        name: tool,
        kind,
        status,
        ...(content === undefined || content === null ? {} : { content }),
        ...(_meta === undefined ? {} : { _meta })
      }
    ]
  ]
}

const finish = (state: State, event: Of<"ToolCallEnded">, around: Surroundings): Step => {
  const { fault, outcome, toolCallId } = event
  const call = Option.getOrUndefined(HashMap.get(state.calls, toolCallId))
  const result = resultText(event)
  // A change that was shown stays on the card of its call.
  const keeps = outcome === "succeeded" && call?.kind === "edit"
  const [next, updates] = update(state, event, around, {
    status: outcome === "succeeded" ? "completed" : "failed",
    ...(keeps ? {} : { content: [printedText(fault === undefined ? result : `${result}\n[${fault}]`)] }),
    _meta: { "assent/outcome": outcome, ...(fault === undefined ? {} : { "assent/fault": fault }) }
  })
  // What it has printed is needed no longer.
  return [withCall(next, toolCallId, { kind: call?.kind ?? "other", printed: "", isDue: false }), updates]
}

/** The words of a result as a person reads them. */
const resultText = ({ leftOut, outcome, result, summary }: Of<"ToolCallEnded">): string => {
  const printed = typeof result === "object" && result !== null && "output" in result ? result.output : result
  const words = typeof printed === "string" ? printed : (JSON.stringify(printed, undefined, 2) ?? "")
  const shown = words === "" ? summary : words
  const whole = leftOut === undefined ? shown : `${shown}\n[${leftOut} more characters]`
  return outcome === "succeeded" || outcome === "failed" ? whole : `[${outcome}] ${whole}`
}

const printedText = (words: string): ToolCallContent => {
  const shortened = Truncated.make(words, { head: longest / 2, tail: longest / 2 })
  return text(shortened === undefined ? words : Truncated.text(shortened))
}

/** The end of a text; half of a surrogate pair is no character. */
const lastOf = (words: string): string =>
  words.length <= longest ? words : words.slice(-longest).replace(/^[\uDC00-\uDFFF]/, "")

const compact = (
  state: State,
  event: Of<"CompactionStarted"> | Of<"CompactionEnded">,
  { isReplay, root, shows }: Surroundings
): Step => {
  if (event.quiet === true || event.sessionId !== root) return [state, none]
  const begins = event._tag === "CompactionStarted"
  const next = begins ? { ...state, compaction: state.compaction + 1 } : state
  if (!shows.compaction || isReplay) return [next, none]
  return [
    next,
    [
      {
        sessionUpdate: "compaction_update",
        compactionId: `${turnOf(event)}/${next.compaction}`,
        status: begins ? "in_progress" : "completed"
      }
    ]
  ]
}

const jobEnd = ({ exitCode, reason, signal }: Of<"JobEnded">): string =>
  reason !== "exited" ? reason.replace(/_/g, " ") : exitCode === undefined ? (signal ?? "exited") : `exit ${exitCode}`

/** Of a subagent, because the editor knows the root alone. */
const pathOf = ({ agent, sessionId }: AgentEvent, { root }: Surroundings): string | undefined =>
  sessionId === root ? undefined : agent

/** A sentence beside the conversation; nothing for an editor that has no place for it. */
const notice = (
  event: AgentEvent,
  severity: "info" | "warning" | "error",
  sentence: string,
  around: Surroundings
): ReadonlyArray<SessionUpdate> => {
  const agent = pathOf(event, around)
  const title = visible((agent === undefined ? sentence : `[${agent}] ${sentence}`).trim().slice(0, 2_000))
  return around.shows.notices && !around.isReplay && title !== ""
    ? [{ sessionUpdate: "notice", severity, title }]
    : none
}

/** A sentence that a person has to see. */
const remark = (
  event: AgentEvent,
  severity: "warning" | "error",
  sentence: string,
  around: Surroundings
): ReadonlyArray<SessionUpdate> => {
  if (around.shows.notices) return notice(event, severity, sentence, around)
  const agent = pathOf(event, around)
  const words = `[${agent === undefined ? "" : `${agent}: `}${sentence}]\n`
  return said("agent_message_chunk", words, `${turnOf(event)}/remark`)
}

const withMode = (options: ReadonlyArray<SessionConfigOption>, mode: string): Array<SessionConfigOption> =>
  options.map((option) =>
    option.category === "mode" && option.type === "select" ? { ...option, currentValue: mode } : option
  )

/** The protocol's counts are whole. A provider may report anything. */
const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

const withCall = (state: State, id: ToolCallId, call: Call): State => ({
  ...state,
  calls: HashMap.set(state.calls, id, call)
})

/** The path as an absolute one, without `.` and `..`. */
const absolute = (workspace: string, path: string): string => {
  const parts: Array<string> = []
  for (const part of (path.startsWith("/") ? path : `${workspace}/${path}`).split("/")) {
    if (part === "..") parts.pop()
    else if (part !== "" && part !== ".") parts.push(part)
  }
  return `/${parts.join("/")}`
}
