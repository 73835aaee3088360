import * as FileSystem from "@effect/platform/FileSystem"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as HttpLayerRouter from "@effect/platform/HttpLayerRouter"
import * as HttpServer from "@effect/platform/HttpServer"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Agent, AutoChannel, HaltChannel, Interaction, InteractionRequest, Interactor, QueueChannel } from "assent"
import { TestInteractor } from "assent/testing"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import * as Tracer from "effect/Tracer"
import { reviewerInteractor } from "./custom-interactor.js"
import * as Durable from "./durable.js"
import * as Family from "./family.js"
import * as HttpAgent from "./http-agent.js"
import * as Images from "./images.js"
import * as ManyAgents from "./many-agents.js"
import * as OwnStore from "./own-store.js"
import * as OwnToolkit from "./own-toolkit.js"
import * as People from "./people.js"
import * as PerRequest from "./per-request.js"
import * as PermissionsFromCode from "./permissions-from-code.js"
import * as RealModel from "./real-model.js"
import * as SpansAndMetrics from "./spans-and-metrics.js"
import * as StageExample from "./stage.js"
import * as TwoClients from "./two-clients.js"
import * as TypedResult from "./typed-result.js"
import * as WebhookApproval from "./webhook-approval.js"
import * as WithoutEffect from "./without-effect.js"

describe("examples", () => {
  it.scoped("own toolkit: asks before it deploys", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.QueueChannel
      const running = yield* Effect.fork(OwnToolkit.program)
      const dialog = yield* channel.take
      assert(dialog._tag === "Opened" && dialog.request.interaction._tag === "Approve")
      assert.strictEqual(dialog.request.interaction.tool, "deploy")
      yield* channel.answerText(dialog.request.requestId, "y", "ada") // who answered, for events and audit
      const end = yield* Fiber.join(running)
      assert(end._tag === "Completed")
      assert.strictEqual(end.text, "Deployed.")
    }).pipe(Effect.provide(OwnToolkit.live), Effect.provide(QueueChannel.layer()))
  )

  it.scoped("a service of a request: two customers have their own, and a run without one has none", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.start()
      const ada = yield* Effect.fork(PerRequest.serve(agent, "refund ada", "ada"))
      yield* PerRequest.serve(agent, "refund ben", "ben")
      yield* Fiber.join(ada)
      yield* agent.run("refund")
      const results = agent.history.prompt.content.flatMap((message) =>
        message.role === "tool" ? message.content.map(({ result }) => result) : []
      )
      assert.sameMembers(results.slice(0, 2), ["500 to ada", "500 to ben"])
      assert.deepStrictEqual(results.slice(2), ["There is no customer."])
    }).pipe(Effect.provide(PerRequest.live), Effect.provide([PerRequest.model, HaltChannel.layer, NodeContext.layer]))
  )

  it.effect("real model: asks the vendor's own server, with the key", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const client = HttpClient.make((request, url) =>
        Effect.sync(() => {
          seen.push(`${url.href} ${request.headers["x-api-key"]}`)
          const answer = {
            type: "message",
            content: [{ type: "text", text: "Nothing to do." }],
            stop_reason: "end_turn"
          }
          return HttpClientResponse.fromWeb(request, Response.json(answer))
        })
      )
      const end = yield* Effect.provide(OwnToolkit.program, [
        OwnToolkit.handlers,
        Layer.provide(RealModel.model, Layer.succeed(HttpClient.HttpClient, client)),
        AutoChannel.layer(),
        NodeContext.layer
      ])
      assert(end._tag === "Completed" && end.text === "Nothing to do.", JSON.stringify(end))
      assert.deepStrictEqual(seen, ["https://api.anthropic.com/v1/messages secret"])
    }).pipe(Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["ANTHROPIC_API_KEY", "secret"]]))))
  )

  it.effect("people: two of operations agree, and nobody else is asked", () =>
    Effect.gen(function* () {
      const { ada, grace, mallory } = yield* TestInteractor.people({ ada: ["y"], grace: ["y"], mallory: ["y"] })
      const end = yield* People.program([mallory.interactor, ada.interactor, grace.interactor])
      assert(end._tag === "Completed" && end.text === "Deployed.")
      assert.deepStrictEqual(yield* mallory.shown, [])
      const [asked] = yield* grace.shown
      assert(asked?.interaction._tag === "Approve")
      assert.deepInclude(asked.interaction.needs?.all[0], { quorum: 2, roles: ["ops"] })
    }).pipe(Effect.provide(People.live))
  )

  it.effect("people: the desk is asked, and after ten minutes whoever is on call", () =>
    Effect.gen(function* () {
      const { desk, night } = yield* TestInteractor.people({ desk: [TestInteractor.silent], night: ["y"] })
      const ask = Interactor.request(new Interaction.Confirm({ prompt: "Deploy?", default: false }))
      const asked = Interactor.withInteractor(People.people(desk.interactor, night.interactor))(ask)
      const running = yield* Effect.fork(asked)
      yield* desk.next
      yield* TestClock.adjust("10 minutes")
      const { answer, by } = yield* Fiber.join(running)
      assert.deepStrictEqual({ answer, by }, { answer: true, by: "night" })
    })
  )

  it.scopedLive("images: a picture is shown, and another file is refused in a sentence", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const directory = yield* fs.makeTempDirectoryScoped()
      const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
      yield* fs.writeFile(`${directory}/shot.png`, Buffer.from(pixel, "base64"))
      yield* fs.writeFileString(`${directory}/notes.txt`, "hello")
      assert.strictEqual(yield* Images.look(`${directory}/shot.png`), "I see shot.png, image/png.")
      assert.include(yield* Images.look(`${directory}/notes.txt`), "takes no text/plain (notes.txt)")
      assert.include(yield* Images.look(`${directory}/none.png`), "there is no such file")
    }).pipe(Effect.provide(Images.live))
  )

  it.effect("typed result: is decoded, after the model was told what did not fit", () =>
    Effect.gen(function* () {
      const invoice = yield* TypedResult.read("Invoice A-17, 12.50, due on the first of December.")
      assert.deepStrictEqual(invoice, { number: "A-17", due: new Date("2026-12-01"), cents: 1250 })
    }).pipe(Effect.provide(TypedResult.live))
  )

  it.effect("custom interactor: a reviewer decides, and one who is away does not", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const reviewer = reviewerInteractor({
        name: "ada",
        decide: (question) => {
          asked.push(question)
          return question.startsWith("Deploy") ? Effect.succeed(true) : Effect.fail("away")
        }
      })
      const ask = (prompt: string) =>
        Interactor.ask(new Interaction.Confirm({ prompt, default: false })).pipe(Interactor.withInteractor(reviewer))
      assert.isTrue(yield* ask("Deploy?"))
      const error = yield* Effect.flip(ask("Delete?"))
      assert.strictEqual(error._tag, "InteractorUnavailable")
      assert.deepStrictEqual(asked, ["Deploy?", "Delete?"])
    })
  )

  it.effect("permissions from code: rules, guards and compound commands", () =>
    Effect.gen(function* () {
      const results = yield* PermissionsFromCode.program
      assert.deepStrictEqual(results, [
        "ran git status --short",
        "Permission denied: blocked by default: the default is deny",
        "paid 20",
        "Permission denied: no agent pays more than 100"
      ])
    }).pipe(Effect.provide(PermissionsFromCode.live), Effect.provide(QueueChannel.layer()))
  )

  it.effect("stage: repeats until the assertion holds, and asks once for the tool outside its list", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.QueueChannel
      const running = yield* Effect.fork(StageExample.program)
      const dialog = yield* channel.take
      assert(dialog._tag === "Opened" && dialog.request.interaction._tag === "grantStageTool")
      assert.strictEqual(dialog.request.interaction.tool, "fetch")
      yield* channel.answerText(dialog.request.requestId, "approve")
      const end = yield* Fiber.join(running)
      assert(end._tag === "Ok")
      assert.strictEqual(end.value, "green")
      assert.deepStrictEqual(
        end.attempts.map(({ grants }) => grants.map(({ tool, outcome }) => `${tool} ${outcome}`)),
        [[], ["fetch approve"]]
      )
    }).pipe(Effect.provide(StageExample.live), Effect.provide(QueueChannel.layer()))
  )

  it.scoped("family: a subagent's question reaches the person under its own name", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.QueueChannel
      const running = yield* Effect.fork(Family.program)
      const dialog = yield* channel.take
      assert(dialog._tag === "Opened" && dialog.request.interaction._tag === "Approve")
      assert.strictEqual(dialog.request.agentPath, "main/reviewer")
      assert.strictEqual(dialog.request.interaction.tool, "diff")
      yield* channel.answerText(dialog.request.requestId, "y", "ada") // who answered, for events and audit
      const { end, tokens } = yield* Fiber.join(running)
      assert.deepStrictEqual({ ...end }, { _tag: "Completed", text: "Yes.", steps: 2 })
      assert.deepStrictEqual(tokens, ["main 200", "main/reviewer 100"])
    }).pipe(Effect.provide(Family.live), Effect.provide(QueueChannel.layer()))
  )

  it.scopedLive("durable: what halted is asked again by another process, and done once", () =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const file = `${yield* fileSystem.makeTempDirectoryScoped()}/sessions.db`
      const paid: Array<number> = []
      const first = yield* Effect.provide(Durable.begin("pay the bill"), Durable.live(file, paid))
      assert.deepStrictEqual(paid, [])

      const channel = yield* QueueChannel.QueueChannel
      const running = yield* Effect.fork(Effect.provide(Durable.goOn(first), Durable.live(file, paid)))
      const dialog = yield* channel.take
      assert(dialog._tag === "Opened")
      yield* channel.answerText(dialog.request.requestId, "y", "ada") // who answered, for events and audit
      const end = Option.getOrThrow(yield* Fiber.join(running))
      assert.deepStrictEqual({ ...end }, { _tag: "Completed", text: "Paid.", steps: 2 })
      assert.deepStrictEqual(paid, [20])
    }).pipe(Effect.provide(QueueChannel.layer()), Effect.provide(NodeContext.layer))
  )

  it.scopedLive("agent inside an HTTP handler: two clients at once, and an answer that comes by a third request", () =>
    Effect.gen(function* () {
      const client = yield* HttpClient.HttpClient
      const asked = yield* Deferred.make<typeof InteractionRequest.InteractionRequest.Encoded>()
      const run = (task: string) =>
        Effect.flatMap(
          client.execute(HttpClientRequest.post("/task").pipe(HttpClientRequest.bodyText(task))),
          (response) => response.json
        )
      const task = yield* Effect.fork(run("publish it"))
      yield* Effect.fork(
        client.get("/questions").pipe(
          Effect.flatMap((response) => response.json),
          Effect.map((questions) => questions as ReadonlyArray<typeof InteractionRequest.InteractionRequest.Encoded>),
          Effect.repeat({ until: (questions) => questions.length > 0 }),
          Effect.flatMap(([first]) => (first === undefined ? Effect.void : Deferred.succeed(asked, first)))
        )
      )
      const { requestId } = yield* Deferred.await(asked)
      const other = yield* Effect.fork(run("where is it?"))
      const post = (answer: unknown) =>
        client.execute(HttpClientRequest.bodyUnsafeJson(HttpClientRequest.post("/answers"), { requestId, answer }))
      assert.strictEqual((yield* post({ decision: "maybe" })).status, 409)
      assert.strictEqual((yield* post({ decision: "allow", scope: "once" })).status, 204)
      assert.strictEqual((yield* post({ decision: "allow", scope: "once" })).status, 409)
      assert.deepStrictEqual(yield* Fiber.join(task), { _tag: "Completed", text: "Published.", steps: 2 })
      assert.deepStrictEqual(yield* Fiber.join(other), { _tag: "Completed", text: "On the front page.", steps: 1 })
    }).pipe(Effect.provide(HttpAgent.server.pipe(Layer.provideMerge(NodeHttpServer.layerTest))))
  )

  it.effect("webhook: a bot in a chat approves", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const bot = HttpLayerRouter.serve(
        HttpLayerRouter.add(
          "POST",
          "/ask",
          Effect.gen(function* () {
            const request = yield* HttpServerRequest.schemaBodyJson(InteractionRequest.InteractionRequest)
            const { authorization } = (yield* HttpServerRequest.HttpServerRequest).headers
            told.push(`${authorization} ${request.agentPath} ${request.interaction._tag}`)
            return yield* HttpServerResponse.json({ requestId: request.requestId, answer: "y", by: "grace" })
          })
        ),
        { disableListenLog: true }
      )
      const end = yield* Effect.gen(function* () {
        const { address } = yield* HttpServer.HttpServer
        assert(address._tag === "TcpAddress")
        const settings = ConfigProvider.fromMap(
          new Map([
            ["BOT_URL", `http://127.0.0.1:${address.port}/ask`],
            ["BOT_TOKEN", "s3same"]
          ])
        )
        return yield* WebhookApproval.program.pipe(
          Effect.provide(WebhookApproval.live),
          Effect.withConfigProvider(settings)
        )
      }).pipe(Effect.provide(Layer.provideMerge(bot, NodeHttpServer.layerTest)))
      assert.deepStrictEqual({ ...end }, { _tag: "Completed", text: "She has it back.", steps: 2 })
      assert.deepStrictEqual(told, ["Bearer s3same main Approve"])
    })
  )

  it.scoped("two clients: both are asked, one answers, and the other's dialog is closed", () =>
    Effect.gen(function* () {
      const { agent, join, telephone, terminal } = yield* TwoClients.start
      yield* join
      const running = yield* Effect.fork(agent.run("merge it"))
      const [here, there] = [yield* terminal.take, yield* telephone.take]
      assert(here._tag === "Opened" && there._tag === "Opened")
      assert.strictEqual(here.request.requestId, there.request.requestId)
      yield* telephone.answerText(there.request.requestId, "y", "ada")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      assert.strictEqual((yield* terminal.take)._tag, "Closed")
      const late = yield* Effect.flip(terminal.answerText(here.request.requestId, "n", "bob"))
      assert.strictEqual(late._tag, "InteractionAlreadyAnswered")
    }).pipe(Effect.provide(TwoClients.live))
  )

  describe("own store", () => {
    for (const { check, name } of OwnStore.checks) it.effect(name, () => check)
  })

  it.effect("spans and metrics: the program's tracer and registry have them", () =>
    Effect.gen(function* () {
      const spans: Array<string> = []
      const tracer = Tracer.make({
        context: (run) => run(),
        span: (name, parent, context, links, startTime, kind) => {
          spans.push(name)
          const attributes = new Map<string, unknown>()
          return {
            _tag: "Span",
            name,
            spanId: `${spans.length}`,
            traceId: "trace",
            parent,
            context,
            links,
            kind,
            attributes,
            sampled: true,
            status: { _tag: "Started", startTime },
            attribute: (key, value) => void attributes.set(key, value),
            event: () => {},
            addLinks: () => {},
            end: () => {}
          }
        }
      })
      const before = yield* SpansAndMetrics.completed
      yield* SpansAndMetrics.program.pipe(Effect.provide(SpansAndMetrics.live), Effect.withTracer(tracer))
      assert.strictEqual(yield* SpansAndMetrics.completed, before + 1)
      assert.deepStrictEqual(spans, ["checkout", "invoke_agent main", "chat script/script"])
    })
  )

  it.effect("many agents: each does what its own policy allows", () =>
    Effect.gen(function* () {
      const got = yield* ManyAgents.program(1_000)
      assert.deepStrictEqual(got[7], ["shelf 7"])
      const denied = got.filter(([result = ""]) => result.startsWith("Permission denied: "))
      assert.lengthOf(denied, 999)
    }).pipe(Effect.provide(ManyAgents.live))
  )

  it("without Effect: promises, and a function that approves", async () => {
    const asked: Array<string> = []
    const assistant = WithoutEffect.makeAssistant((tool, summary) => {
      asked.push(`${tool} ${summary}`)
      return Promise.resolve(true)
    })
    assert.strictEqual(await assistant.ask("Write to Ada."), "It is on its way.")
    assert.deepStrictEqual(asked, ["mail ada@example.com"])
    await assistant.close()
  })
})
