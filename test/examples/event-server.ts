/**
 * A server for pages that come and go, with Server-Sent Events. It has two readers:
 *
 * ```
 *  EventSource   GET  /events            every event; a page that comes back sends the last position
 *  useChat       POST /chat              words, and their turn as a UI message stream of the AI SDK 7
 *                GET  /chat/:id/stream   the last turn, from its start
 *  both          POST /answers           the answer to an approval
 * ```
 *
 * The turn goes on while no page is there. `event-page.ts` is a page for `EventSource`.
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as HttpLayerRouter from "@effect/platform/HttpLayerRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, type AgentEvent, AgentRuntime, Persistence, SessionStore } from "assent"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const Publish = Tool.make("publish", { parameters: { title: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Publish)

/** One conversation. `begun`: the position before its last turn. */
class Chat extends Context.Tag("Chat")<
  Chat,
  { readonly agent: Agent.Agent; readonly begun: Ref.Ref<number | undefined> }
>() {}
const chat = Layer.scoped(
  Chat,
  Effect.gen(function* () {
    const persistence = yield* Persistence.begin(yield* SessionStore.SessionStore)
    const agent = yield* Agent.startWith([], { persistence, whenNobody: "wait" })
    return { agent, begun: yield* Ref.make<number | undefined>(undefined) }
  })
)

/** One message of a stream. The page sends the last `id` when it comes back. */
const message = (data: unknown, id?: number) =>
  `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`

/** Proxies cut a connection on which nothing happens, so there is a comment now and then. */
const serve = <E>(messages: Stream.Stream<string, E>) =>
  HttpServerResponse.stream(
    Stream.as(Stream.tick("15 seconds"), ":\n\n").pipe(
      Stream.merge(messages, { haltStrategy: "right" }),
      Stream.encodeText
    ),
    { contentType: "text/event-stream", headers: { "cache-control": "no-cache", "x-accel-buffering": "no" } }
  )

const events = Effect.gen(function* () {
  const { agent } = yield* Chat
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const after = Number(headers["last-event-id"] ?? 0)
  // The page is of another session. `EventSource` does not come back after this status.
  if (after > (yield* Agent.position(agent))) return HttpServerResponse.empty()
  return serve(Stream.map(Agent.events(agent, { after }), (event) => message(event, event.position)))
})

/** The last turn as a UI message stream, from its start to its end. */
const lastTurn = Effect.gen(function* () {
  const { agent, begun } = yield* Chat
  const after = yield* Ref.get(begun)
  if (after === undefined) return HttpServerResponse.empty()
  return Agent.events(agent, { after }).pipe(
    Stream.filter((event) => event.sessionId === agent.id),
    Stream.dropWhile((event) => event._tag !== "TurnStarted"),
    Stream.takeUntil((event) => event._tag === "TurnEnded"),
    Stream.mapAccum(0, chunksOf),
    Stream.mapConcat((chunks) => chunks.map((chunk) => message(chunk))),
    Stream.concat(Stream.make("data: [DONE]\n\n")),
    serve,
    HttpServerResponse.setHeader("x-vercel-ai-ui-message-stream", "v1")
  )
})

interface Chunk {
  readonly type: string
  readonly [field: string]: unknown
}

/** What the AI SDK shows of an event. `step` is the number of the last model call: one that begins anew has the same. */
const chunksOf = (
  step: number,
  event: AgentEvent.AgentEvent
): readonly [step: number, chunks: ReadonlyArray<Chunk>] => {
  const send = (...chunks: ReadonlyArray<Chunk>) => [step, chunks] as const
  switch (event._tag) {
    case "TurnStarted":
      return send({ type: "start", messageId: event.correlationId })
    case "ModelCallStarted":
      return [event.step, [{ type: event.step === step ? "reset-step" : "start-step" }]]
    case "ModelRetried":
      return send({ type: "reset-step" })
    case "BlockStarted":
      return send({ type: `${kinds[event.block]}-start`, id: event.block })
    case "TextDelta":
      return send({ type: "text-delta", id: "text", delta: event.text })
    case "ThinkingDelta":
      return send({ type: "reasoning-delta", id: "thinking", delta: event.text })
    case "BlockEnded":
      return send({ type: `${kinds[event.block]}-end`, id: event.block })
    case "ToolArgumentsStarted":
      return send({ type: "tool-input-start", toolCallId: event.toolCallId, toolName: event.tool })
    case "ToolArgumentsDelta":
      return send({ type: "tool-input-delta", toolCallId: event.toolCallId, inputTextDelta: event.text })
    case "ToolCallProposed":
      return send({
        type: "tool-input-available",
        toolCallId: event.toolCallId,
        toolName: event.tool,
        input: event.arguments
      })
    case "InteractionRequested":
      if (event.kind !== "Approve") return send()
      return send({ type: "tool-approval-request", toolCallId: event.toolCallId, approvalId: event.requestId })
    case "PermissionResolved":
      if (event.requestId === undefined) return send()
      return send({ type: "tool-approval-response", approvalId: event.requestId, approved: event.granted })
    case "ToolCallEnded": {
      const { outcome, result, summary, toolCallId } = event
      if (outcome === "succeeded") return send({ type: "tool-output-available", toolCallId, output: result })
      if (outcome === "denied") return send({ type: "tool-output-denied", toolCallId })
      return send({ type: "tool-output-error", toolCallId, errorText: summary })
    }
    case "TurnEnded":
      if (event.reason === "completed") return send({ type: "finish" })
      return send({ type: "error", errorText: event.detail ?? event.reason }, { type: "finish" })
    default:
      return send()
  }
}
const kinds = { text: "text", thinking: "reasoning" }

/** What `useChat` posts. */
const Words = Schema.Struct({
  messages: Schema.Array(
    Schema.Struct({ id: Schema.String, parts: Schema.Array(Schema.Struct({ text: Schema.optional(Schema.String) })) })
  )
})

const send = Effect.gen(function* () {
  const { agent, begun } = yield* Chat
  const { messages } = yield* HttpServerRequest.schemaBodyJson(Words)
  const { id, parts } = messages.at(-1) ?? { id: "", parts: [] }
  const after = yield* Agent.position(agent)
  return yield* agent.enqueue(parts.map(({ text = "" }) => text).join(""), { id }).pipe(
    Effect.zipRight(Ref.set(begun, after)),
    // The page did not know whether its words arrived, and sent them again.
    Effect.catchTag("MessageAlreadyTaken", () => Effect.void),
    Effect.zipRight(lastTurn),
    Effect.catchAll(({ message }) => HttpServerResponse.text(message, { status: 400 }))
  )
})

const Answer = Schema.Struct({ requestId: Schema.String, answer: Schema.Unknown })

const answer = Effect.gen(function* () {
  const { agent } = yield* Chat
  const { answer, requestId } = yield* HttpServerRequest.schemaBodyJson(Answer)
  // A real server names the person who is signed in.
  return yield* Effect.match(agent.broker.answer(requestId, "page", answer), {
    onFailure: ({ message }) => HttpServerResponse.text(message, { status: 409 }),
    onSuccess: () => HttpServerResponse.empty()
  })
})

const routes = Layer.mergeAll(
  HttpLayerRouter.add("GET", "/events", events),
  HttpLayerRouter.add("POST", "/chat", send),
  HttpLayerRouter.add("GET", "/chat/:id/stream", lastTurn),
  HttpLayerRouter.add("POST", "/answers", answer)
)

/** The server without a port and a model: provide an `HttpServer` and a `Model`. */
export const server = HttpLayerRouter.serve(routes).pipe(
  Layer.provide(chat),
  Layer.provide(AgentRuntime.layer({ toolkit })),
  Layer.provide(toolkit.toLayer({ publish: ({ title }) => Effect.succeed(`"${title}" is out`) })),
  Layer.provide([SessionStore.layerMemory, NodeContext.layer])
)
