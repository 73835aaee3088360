/**
 * Runs in the Agent-User Interaction protocol (AG-UI 1.0, and 0.0.59 as most frameworks pin it): its input read, its events
 * made of pieces.
 *
 * A run that ends as interrupted carries all open requests. Each has a JSON Schema of its answer. The next run carries the
 * answers in `resume`.
 */
import type { HttpServerResponse } from "@effect/platform/HttpServerResponse"
import type * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import * as Input from "../inbox/Input.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type * as Api from "./Api.js"
import * as EventStream from "./EventStream.js"
import * as ResumePayload from "./ResumePayload.js"
import * as RunProjection from "./RunProjection.js"
import type * as Runs from "./Runs.js"

/** An event of the protocol. */
export interface Event {
  readonly type: string
  readonly [field: string]: unknown
}

// -----------------------------------------------------------------------------------------------------------------
// what a client sends
// -----------------------------------------------------------------------------------------------------------------

/**
 * What the run begins with. Only the user's words behind the last other message are said. The rest of the history decides
 * what is not sent again, and nothing else. A left is a sentence for the person.
 */
export const startOf = ({ messages, resume = [], threadId }: Api.RunAgentInput): Either.Either<Runs.Start, string> =>
  Either.gen(function* () {
    const users = messages.filter(({ role }) => role === "user")
    const last = messages.findLastIndex(({ role }) => role !== "user" && role !== "system" && role !== "developer")
    const words: Array<Runs.Start["words"][number]> = []
    for (const { content, id, role } of messages.slice(last + 1)) {
      if (role !== "user" || id.startsWith(RunProjection.saidPrefix)) continue
      words.push({ id, input: yield* inputOf(content) })
    }
    return {
      thread: threadId,
      words,
      resume: resume.map(({ interruptId, payload, status }) => ({ requestId: interruptId, status, payload })),
      said: users.map(({ content, id }) => ({ id, text: textOf(content) })),
      known: knownOf(messages),
      shown: [],
      answers: (kind) => kind !== "Auth.Password",
      refusesStale: false
    }
  })

const knownOf = (messages: Api.RunAgentInput["messages"]): RunProjection.Known => {
  const known = {
    texts: new Map<string, string>(),
    calls: new Map<string, string>(),
    results: new Set<string>()
  }
  for (const { content, id, role, toolCallId, toolCalls } of messages) {
    if (role === "tool") {
      if (toolCallId !== undefined) known.results.add(toolCallId)
      continue
    }
    // A message that only holds calls has no words yet.
    if (typeof content === "string") known.texts.set(id, content)
    for (const call of Array.isArray(toolCalls) ? toolCalls : []) {
      if (!Predicate.isReadonlyRecord(call) || typeof call["id"] !== "string") continue
      const written = Predicate.isReadonlyRecord(call["function"]) ? call["function"]["arguments"] : undefined
      known.calls.set(call["id"], typeof written === "string" ? written : "")
    }
  }
  return known
}

const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
      ? content
          .flatMap((part) =>
            Predicate.isReadonlyRecord(part) && typeof part["text"] === "string" ? [part["text"]] : []
          )
          .join("\n")
      : ""

/** Words, with files by their bytes. */
const inputOf = (content: unknown): Either.Either<Input.Input, string> => {
  if (typeof content === "string") return Either.right(content)
  if (!Array.isArray(content)) return Either.left("The content of a message has to be a text, or a list of parts.")
  return Either.map(Either.all(content.map(partOf)), (parts) => parts)
}

const partOf = (part: unknown): Either.Either<Input.Part, string> => {
  if (!Predicate.isReadonlyRecord(part)) return Either.left("A part of a message has to be an object.")
  const { data, filename, mimeType, source, text, type } = part
  if (type === "text" && typeof text === "string") return Either.right(text)
  const from = Predicate.isReadonlyRecord(source)
    ? { base64: source["type"] === "data" ? source["value"] : undefined, mediaType: source["mimeType"] }
    : { base64: data, mediaType: mimeType }
  if (typeof from.base64 !== "string")
    return Either.left("A file of a message has to be in the message. Send its bytes as data, in base64.")
  return Either.mapBoth(Encoding.decodeBase64(from.base64), {
    onLeft: () => "A file of a message is no base64. Send its bytes in base64.",
    onRight: (bytes) =>
      Input.fromBytes(bytes, {
        name: typeof filename === "string" ? filename : undefined,
        mediaType: typeof from.mediaType === "string" ? from.mediaType : undefined
      })
  })
}

// -----------------------------------------------------------------------------------------------------------------
// what it gets
// -----------------------------------------------------------------------------------------------------------------

/** The events of a run as a response gets them. */
export const lines = (pieces: Stream.Stream<RunProjection.Piece>, input: Api.RunAgentInput): Stream.Stream<string> =>
  Stream.map(events(pieces, input), encode)

/** The end of a run that is cut off. */
export const farewell = (message: string): string => encode({ type: "RUN_ERROR", message, code: "stream_ended" })

/** The lines of a run as a response. */
export const response = (
  lines: Stream.Stream<string>,
  parting: Effect.Effect<EventStream.Parting>
): HttpServerResponse => EventStream.finite(lines, farewell, parting)

/** The events of a run. */
export const events = (pieces: Stream.Stream<RunProjection.Piece>, input: Api.RunAgentInput): Stream.Stream<Event> =>
  Stream.suspend(() => Stream.concat(Stream.make(started(input)), Stream.mapConcat(pieces, encoder(input))))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const version = "1.0"

/** As a server-sent event. */
const encode = (event: Event): string => EventStream.encode({ data: event })

const started = ({ protocolVersion, runId, threadId }: Api.RunAgentInput): Event => ({
  type: "RUN_STARTED",
  threadId,
  runId,
  ...(protocolVersion === undefined ? {} : { protocolVersion: version })
})

/** Makes the events of one run, piece by piece. */
const encoder = (input: Api.RunAgentInput): ((piece: RunProjection.Piece) => ReadonlyArray<Event>) => {
  let state: { readonly [name: string]: unknown } | undefined
  return (piece) => {
    if (piece._tag !== "StateChanged") return eventsOf(piece, input)
    const before = state
    state = plain(piece.state)
    return before === undefined ? [{ type: "STATE_SNAPSHOT", snapshot: state }] : deltaOf(before, state)
  }
}

const eventsOf = (
  piece: Exclude<RunProjection.Piece, { readonly _tag: "StateChanged" }>,
  { protocolVersion, runId, threadId }: Api.RunAgentInput
): ReadonlyArray<Event> => {
  const of = "child" in piece && piece.child !== undefined ? { subagentRunId: piece.child } : {}
  const finished = (more: object): ReadonlyArray<Event> => [{ type: "RUN_FINISHED", threadId, runId, ...more }]
  switch (piece._tag) {
    case "Said": {
      const { id: messageId, text } = piece
      return [
        { type: "TEXT_MESSAGE_START", messageId, role: "user" },
        { type: "TEXT_MESSAGE_CONTENT", messageId, delta: text },
        { type: "TEXT_MESSAGE_END", messageId }
      ]
    }
    case "StepStarted":
      return [{ type: "STEP_STARTED", stepName: piece.name, ...of }]
    case "StepEnded":
      return [{ type: "STEP_FINISHED", stepName: piece.name, ...of }]
    case "BlockStarted": {
      const { id: messageId } = piece
      return piece.block === "text"
        ? [{ type: "TEXT_MESSAGE_START", messageId, role: "assistant", ...of }]
        : [
            { type: "REASONING_START", messageId, ...of },
            { type: "REASONING_MESSAGE_START", messageId, role: "reasoning", ...of }
          ]
    }
    case "BlockDelta": {
      const type = piece.block === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT"
      return [{ type, messageId: piece.id, delta: piece.text, ...of }]
    }
    case "BlockEnded": {
      const { id: messageId } = piece
      return piece.block === "text"
        ? [{ type: "TEXT_MESSAGE_END", messageId, ...of }]
        : [
            { type: "REASONING_MESSAGE_END", messageId, ...of },
            { type: "REASONING_END", messageId, ...of }
          ]
    }
    case "CallStarted": {
      const parent = piece.blockId === undefined ? {} : { parentMessageId: piece.blockId }
      return [{ type: "TOOL_CALL_START", toolCallId: piece.callId, toolCallName: piece.tool, ...parent, ...of }]
    }
    case "CallArguments":
      return [{ type: "TOOL_CALL_ARGS", toolCallId: piece.callId, delta: piece.text, ...of }]
    case "CallReady":
      return [{ type: "TOOL_CALL_END", toolCallId: piece.callId, ...of }]
    case "CallEnded": {
      const { duration, fault, leftOut, outcome, result, summary, toolCallId } = piece.event
      return [
        {
          type: "TOOL_CALL_RESULT",
          messageId: `${toolCallId}.result`,
          toolCallId,
          role: "tool",
          content: typeof result === "string" ? result : (JSON.stringify(result) ?? ""),
          metadata: { assent: { outcome, summary, duration, fault, leftOut } },
          ...of
        }
      ]
    }
    case "ChildStarted": {
      const { callId, child, name, parent } = piece
      return [
        {
          type: "SUBAGENT_STARTED",
          subagentRunId: child,
          name,
          ...(parent === undefined ? {} : { parentSubagentRunId: parent }),
          ...(callId === undefined ? {} : { parentToolCallId: callId })
        }
      ]
    }
    case "ChildEnded":
      return piece.error === undefined
        ? [{ type: "SUBAGENT_FINISHED", subagentRunId: piece.child, outcome: { type: "success" } }]
        : [{ type: "SUBAGENT_ERROR", subagentRunId: piece.child, message: piece.error }]
    case "ChildLeft": {
      const outcome = { type: "suspended", interruptIds: piece.requests }
      return [{ type: "SUBAGENT_FINISHED", subagentRunId: piece.child, outcome }]
    }
    case "Happened":
      return [{ type: "CUSTOM", name: `assent.${piece.event._tag}`, value: piece.event, ...of }]
    case "AnsweredBefore": {
      const { requestId, winner } = piece
      return [{ type: "CUSTOM", name: "assent.LateAnswer", value: { _tag: "LateAnswer", requestId, winner } }]
    }
    case "Interrupted":
      return finished({ outcome: { type: "interrupt", interrupts: piece.requests.map(interruptOf) } })
    case "Finished":
      return finished({ outcome: { type: "success" } })
    case "Cancelled":
      // Clients of 0.x know no such outcome, and refuse what they do not know.
      return finished(
        protocolVersion === undefined
          ? { result: { reason: "cancelled", detail: piece.detail } }
          : { outcome: { type: "cancelled" } }
      )
    case "Failed":
      return [{ type: "RUN_ERROR", message: piece.message, code: piece.code }]
  }
}

const interruptOf = ({ callId, child, redactor, request }: RunProjection.Asked) => {
  const { interaction, requestId } = request
  const schema = ResumePayload.schemaOf(interaction)
  return {
    id: String(requestId),
    reason: reasonOf(request),
    message: ResumePayload.messageOf(request, redactor),
    ...(callId === undefined ? {} : { toolCallId: callId }),
    ...(schema === undefined ? {} : { responseSchema: redactor.value(schema) }),
    ...(interaction._tag === "Auth.DeviceCode" ? { expiresAt: new Date(interaction.expiresAt).toISOString() } : {}),
    metadata: { assent: redactor.value(InteractionRequest.encode(request)) },
    ...(child === undefined ? {} : { subagentRunId: child })
  }
}

const reasonOf = ({ interaction }: InteractionRequest.InteractionRequest): string => {
  switch (interaction._tag) {
    case "Approve":
    case "grantStageTool":
      return "tool_call"
    case "approveSubagentEnvelope":
      return "subagent"
    case "Auth.DeviceCode":
    case "Auth.Password":
      return "sign_in"
    default:
      return "input"
  }
}

/** As it is on a wire: without what is undefined. */
const plain = (state: object): { readonly [name: string]: unknown } => JSON.parse(JSON.stringify(state))

/** The members that differ, as JSON Patch. */
const deltaOf = (
  before: { readonly [name: string]: unknown },
  after: { readonly [name: string]: unknown }
): ReadonlyArray<Event> => {
  const delta = [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) => {
    const path = `/${name}`
    if (!Object.hasOwn(after, name)) return [{ op: "remove", path }]
    const value = after[name]
    if (!Object.hasOwn(before, name)) return [{ op: "add", path, value }]
    return JSON.stringify(before[name]) === JSON.stringify(value) ? [] : [{ op: "replace", path, value }]
  })
  return delta.length === 0 ? [] : [{ type: "STATE_DELTA", delta }]
}
