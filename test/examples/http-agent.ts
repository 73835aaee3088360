/**
 * An agent inside an HTTP server: one request runs a task, another lists what it asks, a third answers. Every client gets
 * the end of its own task; one that goes away takes its task with it.
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as HttpLayerRouter from "@effect/platform/HttpLayerRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, Interactor, InteractionRequest, QueueChannel, ScriptedModel } from "assent"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Publish = Tool.make("publish", { parameters: { title: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Publish)

/** One agent for the server's whole life; it works on one client's task after the other. */
class Editor extends Context.Tag("Editor")<Editor, Agent.Agent>() {}
const editor = Layer.scoped(Editor, Agent.start({ whenNobody: "wait" }))

const Answer = Schema.Struct({ requestId: Schema.String, answer: Schema.Unknown })

const routes = Layer.mergeAll(
  HttpLayerRouter.add(
    "POST",
    "/task",
    Effect.gen(function* () {
      const agent = yield* Editor
      const request = yield* HttpServerRequest.HttpServerRequest
      const end = yield* agent.run(yield* request.text)
      return yield* HttpServerResponse.json(end)
    })
  ),
  HttpLayerRouter.add(
    "GET",
    "/questions",
    Effect.gen(function* () {
      const channel = yield* QueueChannel.QueueChannel
      return yield* HttpServerResponse.json((yield* channel.open).map(InteractionRequest.encode))
    })
  ),
  HttpLayerRouter.add(
    "POST",
    "/answers",
    Effect.gen(function* () {
      const channel = yield* QueueChannel.QueueChannel
      const { requestId, answer } = yield* HttpServerRequest.schemaBodyJson(Answer)
      return yield* Effect.match(channel.answer(requestId, answer), {
        onFailure: (rejected) => HttpServerResponse.text(rejected.message, { status: 409 }),
        onSuccess: () => HttpServerResponse.empty()
      })
    })
  )
)

const model = ScriptedModel.layer({
  agents: {
    main: [
      { tools: [{ name: "publish", params: { title: "Hello" } }] },
      { text: "Published." },
      { expect: { contains: "where is it?" }, text: "On the front page." }
    ]
  }
})

/** The server without a port: provide an `HttpServer` to open one. */
export const server = HttpLayerRouter.serve(routes).pipe(
  Layer.provide(editor),
  Layer.provide(AgentRuntime.layer({ toolkit })),
  Layer.provide(toolkit.toLayer({ publish: ({ title }) => Effect.succeed(`"${title}" is out`) })),
  Layer.provide(
    QueueChannel.layer({ timeouts: {}, dialogs: "unbounded" }) satisfies Layer.Layer<
      QueueChannel.QueueChannel | Interactor.Interactor
    >
  ),
  Layer.provide(Layer.merge(model, NodeContext.layer))
)
