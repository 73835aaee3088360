/**
 * Runs as the UI message stream of the AI SDK (version 1), for `useChat`.
 *
 * The stream knows yes and no. So approvals are its own, and a question is a part of the message, `data-question`, which is
 * answered through `/v1/requests`. The client sends its whole history back. Nothing in the history counts but the words at
 * its end, or pairs of an approval's id and a yes or no in its last message.
 */
import type { HttpServerResponse } from "@effect/platform/HttpServerResponse"
import type * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import * as Input from "../inbox/Input.js"
import type * as Interaction from "../interaction/Interaction.js"
import type * as Api from "./Api.js"
import * as EventStream from "./EventStream.js"
import * as ResumePayload from "./ResumePayload.js"
import type * as RunProjection from "./RunProjection.js"
import type * as Runs from "./Runs.js"

/** A chunk of the stream. */
export interface Chunk {
  readonly type: string
  readonly [field: string]: unknown
}

// -----------------------------------------------------------------------------------------------------------------
// what a client sends
// -----------------------------------------------------------------------------------------------------------------

/** What the run begins with. A left is a sentence for the person. */
export const startOf = ({ id, messages }: Api.ChatInput): Either.Either<Runs.Start, string> => {
  const last = lastOf(messages)
  const common = {
    thread: id,
    said: messages.flatMap(({ id, parts, role }) => (role === "user" ? [{ id, text: textOf(parts) }] : [])),
    answers: isApproval,
    refusesStale: true
  }
  if (last.role !== "user") {
    const { parts } = last
    return Either.right({ ...common, words: [], resume: parts.flatMap(answerOf), shown: parts.flatMap(requestOf) })
  }
  const parts = last.parts.flatMap((part) => {
    if (part["type"] === "text" && typeof part["text"] === "string") return [Either.right(part["text"])]
    return part["type"] === "file" ? [fileOf(part)] : []
  })
  return Either.map(Either.all(parts), (input) => ({
    ...common,
    words: [{ id: last.id, input: input.every(Predicate.isString) ? input.join("\n") : input }],
    resume: [],
    shown: []
  }))
}

/** What a page begins with that was loaded again: it has these words of its user, and nothing behind them. */
export const again = (
  thread: string,
  { id, text }: Runs.Said
): { readonly input: Api.ChatInput; readonly start: Runs.Start } => ({
  input: { id: thread, messages: [{ id, role: "user", parts: [] }] },
  start: { thread, said: [{ id, text }], words: [], resume: [], shown: [], answers: isApproval, refusesStale: true }
})

const lastOf = (messages: Api.ChatInput["messages"]) => messages[messages.length - 1] ?? messages[0]

type Part = Api.ChatInput["messages"][number]["parts"][number]

const textOf = (parts: ReadonlyArray<Part>): string =>
  parts.flatMap(({ text, type }) => (type === "text" && typeof text === "string" ? [text] : [])).join("\n")

/** Of an answered approval: its id, the yes or no, and the reason. */
const answerOf = (part: Part): ReadonlyArray<Runs.Resume> => {
  const { approval, state } = part
  if (state !== "approval-responded" || !Predicate.isReadonlyRecord(approval)) return []
  const { approved, id, reason } = approval
  if (typeof id !== "string") return []
  const comment = approved === false && typeof reason === "string" ? { comment: reason } : {}
  return [{ requestId: id, status: "resolved", payload: { approved, ...comment } }]
}

/** The request that a part shows. */
const requestOf = ({ approval, id, type }: Part): ReadonlyArray<string> => {
  const shown = type === "data-question" ? id : Predicate.isReadonlyRecord(approval) ? approval["id"] : undefined
  return typeof shown === "string" ? [shown] : []
}

const fileOf = ({ filename, mediaType, url }: Part): Either.Either<Input.Part, string> => {
  const base64 = typeof url === "string" ? /^data:[^,]*;base64,/.exec(url) : null
  if (typeof url !== "string" || base64 === null)
    return Either.left("A file of a message has to be in the message. Send it as a data: address in base64.")
  return Either.mapBoth(Encoding.decodeBase64(url.slice(base64[0].length)), {
    onLeft: () => "A file of a message is no base64. Send its bytes in base64.",
    onRight: (bytes) =>
      Input.fromBytes(bytes, {
        name: typeof filename === "string" ? filename : undefined,
        mediaType: typeof mediaType === "string" ? mediaType : undefined
      })
  })
}

// -----------------------------------------------------------------------------------------------------------------
// what it gets
// -----------------------------------------------------------------------------------------------------------------

/** The chunks of a run as a response gets them. */
export const lines = (pieces: Stream.Stream<RunProjection.Piece>, input: Api.ChatInput): Stream.Stream<string> =>
  Stream.concat(Stream.map(chunks(pieces, input), encode), Stream.make(done))

/** The end of a run that is cut off. */
export const farewell = (message: string): string => `${encode({ type: "error", errorText: message })}${done}`

/** The lines of a run as a response. */
export const response = (
  lines: Stream.Stream<string>,
  parting: Effect.Effect<EventStream.Parting>
): HttpServerResponse => EventStream.finite(lines, farewell, parting, { "x-vercel-ai-ui-message-stream": "v1" })

/** The chunks of a run. */
export const chunks = (pieces: Stream.Stream<RunProjection.Piece>, input: Api.ChatInput): Stream.Stream<Chunk> =>
  Stream.suspend(() => {
    const encoder = new Encoder(input)
    return Stream.concat(
      Stream.fromIterable(encoder.begin()),
      Stream.mapConcat(pieces, (piece) => encoder.encode(piece))
    )
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const done = "data: [DONE]\n\n"

const encode = (chunk: Chunk): string => EventStream.encode({ data: chunk })

/** What yes and no answer. */
const isApproval = (kind: Interaction.Kind): boolean =>
  kind === "Approve" || kind === "grantStageTool" || kind === "approveSubagentEnvelope"

class Encoder {
  private readonly messageId: string
  /** Calls that the message shows. */
  private readonly shown: Set<string>
  /** Calls that the user has denied. */
  private readonly denied: ReadonlySet<string>
  private readonly children = new Map<string, { readonly name: string; status: string; text?: string | undefined }>()
  private isInStep = false

  constructor({ messages }: Api.ChatInput) {
    const last = lastOf(messages)
    const parts = last.role === "user" ? [] : last.parts
    this.messageId = last.role === "user" ? `assent-${last.id}` : last.id
    this.shown = new Set(parts.flatMap(({ toolCallId }) => (typeof toolCallId === "string" ? [toolCallId] : [])))
    this.denied = new Set(
      parts.flatMap(({ approval, toolCallId }) =>
        Predicate.isReadonlyRecord(approval) && approval["approved"] === false && typeof toolCallId === "string"
          ? [toolCallId]
          : []
      )
    )
  }

  begin(): ReadonlyArray<Chunk> {
    return [{ type: "start", messageId: this.messageId }]
  }

  encode(piece: RunProjection.Piece): ReadonlyArray<Chunk> {
    switch (piece._tag) {
      case "Said":
        return [{ type: "data-said", id: piece.id, data: { text: piece.text } }]
      case "StepStarted":
        return piece.child === undefined ? this.step() : []
      case "BlockStarted":
      case "BlockEnded": {
        if (piece.child !== undefined)
          return this.ofChild(piece.child, piece._tag === "BlockStarted" ? { text: "" } : {})
        const type = piece.block === "text" ? "text" : "reasoning"
        return [{ type: `${type}-${piece._tag === "BlockStarted" ? "start" : "end"}`, id: piece.id }]
      }
      case "BlockDelta": {
        const { block, child, id, text } = piece
        if (child === undefined) return [{ type: `${block === "text" ? "text" : "reasoning"}-delta`, id, delta: text }]
        const one = this.children.get(child)
        if (one !== undefined && block === "text") one.text = `${one.text ?? ""}${text}`
        return []
      }
      case "CallEnded":
        return this.callEnded(piece)
      case "ChildStarted":
        this.children.set(piece.child, { name: piece.name, status: "running" })
        return this.ofChild(piece.child, {})
      case "ChildEnded":
        return this.ofChild(piece.child, { status: piece.error === undefined ? "finished" : "failed" })
      case "ChildLeft":
        return this.ofChild(piece.child, { status: piece.requests.length > 0 ? "waiting" : "running" })
      case "Happened":
        return this.happened(piece)
      case "AnsweredBefore": {
        const { requestId, winner } = piece
        return [{ type: "data-late-answer", id: requestId, data: { requestId, winner } }]
      }
      case "StateChanged":
        return [{ type: "data-state", data: piece.state, transient: true }]
      case "Interrupted":
        return this.interrupted(piece.requests)
      case "Finished":
        return this.finish("stop")
      case "Cancelled":
        return [{ type: "abort", reason: piece.detail ?? "The turn was cancelled." }]
      case "Failed":
        return [{ type: "error", errorText: piece.message }, ...this.finish("error")]
      case "StepEnded":
      case "CallStarted":
      case "CallArguments":
      case "CallReady":
        // A call is shown once it is decided or asked about: a client sends answers by itself when no other call waits.
        return []
    }
  }

  private step(): ReadonlyArray<Chunk> {
    const ended = this.isInStep ? [{ type: "finish-step" }] : []
    this.isInStep = true
    return [...ended, { type: "start-step" }]
  }

  private finish(finishReason: string): ReadonlyArray<Chunk> {
    return [...(this.isInStep ? [{ type: "finish-step" }] : []), { type: "finish", finishReason }]
  }

  private ofChild(child: string, change: { readonly status?: string; readonly text?: string }): ReadonlyArray<Chunk> {
    const one = this.children.get(child)
    if (one === undefined) return []
    const hasChanged = Object.assign(one, change)
    return change.text === "" ? [] : [{ type: "data-subagent", id: child, data: { ...hasChanged } }]
  }

  private show(toolCallId: string, toolName: string, input: unknown, child: string | undefined): ReadonlyArray<Chunk> {
    if (this.shown.has(toolCallId)) return []
    this.shown.add(toolCallId)
    const name = child === undefined ? undefined : this.children.get(child)?.name
    const title = name === undefined ? {} : { title: `${name}: ${toolName}` }
    return [{ type: "tool-input-available", toolCallId, toolName, input: input ?? {}, dynamic: true, ...title }]
  }

  private callEnded({ child, event, input }: Extract<RunProjection.Piece, { readonly _tag: "CallEnded" }>) {
    const { outcome, result, summary, tool, toolCallId } = event
    const shown = this.show(toolCallId, tool, input, child)
    if (outcome === "succeeded")
      return [...shown, { type: "tool-output-available", toolCallId, output: result ?? null, dynamic: true }]
    if (outcome === "denied" && this.denied.has(toolCallId))
      return [...shown, { type: "tool-output-denied", toolCallId }]
    return [...shown, { type: "tool-output-error", toolCallId, errorText: `${outcome}: ${summary}`, dynamic: true }]
  }

  private happened({ child, event, input }: Extract<RunProjection.Piece, { readonly _tag: "Happened" }>) {
    const data: Chunk = { type: "data-event", data: event, transient: true }
    if (event._tag === "ToolCallStarted") return [...this.show(event.toolCallId, event.tool, input, child), data]
    // A request that no call stands for has a call of its own in the message.
    if (event._tag === "InteractionAnswered" && this.shown.has(event.requestId))
      return [
        { type: "tool-output-available", toolCallId: event.requestId, output: event.value ?? null, dynamic: true }
      ]
    return [data]
  }

  private interrupted(requests: ReadonlyArray<RunProjection.Asked>): ReadonlyArray<Chunk> {
    const approvals = requests.filter(({ request }) => isApproval(request.interaction._tag))
    const others = requests.filter(({ request }) => !isApproval(request.interaction._tag))
    // A client looks at the last step only, and there at all calls.
    const isFresh = approvals.every(({ callId, request }) => !this.shown.has(callId ?? request.requestId))
    return [
      ...(approvals.length > 0 && isFresh ? this.step() : []),
      ...approvals.flatMap((asked) => this.approval(asked)),
      ...others.map(question),
      ...this.finish("tool-calls")
    ]
  }

  private approval({ callId, child, redactor, request }: RunProjection.Asked): ReadonlyArray<Chunk> {
    const { interaction, requestId } = request
    const toolCallId = callId ?? requestId
    const shown = ((): ReadonlyArray<Chunk> => {
      switch (interaction._tag) {
        case "Approve": {
          const { argumentsSummary, tool } = interaction
          const input = interaction.arguments ?? { summary: argumentsSummary }
          return this.show(toolCallId, tool, redactor.value(input), child)
        }
        case "grantStageTool":
          return this.show(toolCallId, interaction.tool, { summary: interaction.argsSummary }, child)
        case "approveSubagentEnvelope": {
          const { promptSummary, requestedEnvelope } = interaction
          return this.show(toolCallId, "allow_subagent", { tools: requestedEnvelope, task: promptSummary }, child)
        }
        default:
          return []
      }
    })()
    const reason = ResumePayload.messageOf(request, redactor)
    return [...shown, { type: "tool-approval-request", approvalId: String(requestId), toolCallId, reason }]
  }
}

const question = ({ child, redactor, request }: RunProjection.Asked): Chunk => {
  const { agentPath, interaction, requestId } = request
  const schema = ResumePayload.schemaOf(interaction)
  return {
    type: "data-question",
    id: String(requestId),
    data: {
      requestId,
      kind: interaction._tag,
      message: ResumePayload.messageOf(request, redactor),
      ...(schema === undefined ? {} : { schema: redactor.value(schema) }),
      agent: agentPath,
      ...(child === undefined ? {} : { subagent: child })
    }
  }
}
