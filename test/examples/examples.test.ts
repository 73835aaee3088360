import * as FileSystem from "@effect/platform/FileSystem"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as HttpLayerRouter from "@effect/platform/HttpLayerRouter"
import * as HttpServer from "@effect/platform/HttpServer"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as KeyValueStore from "@effect/platform/KeyValueStore"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import {
  Agent,
  AutoChannel,
  HaltChannel,
  Id,
  Interaction,
  InteractionRequest,
  Interactor,
  JournalEntry,
  QueueChannel,
  ScriptedModel,
  SessionStore
} from "assent"
import { TestInteractor } from "assent/testing"
import { DefaultChatTransport, readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai"
import * as Context from "effect/Context"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Tracer from "effect/Tracer"
import { connect, createServer, type Socket } from "node:net"
import { EventSource } from "undici"
import { reviewerInteractor } from "./custom-interactor.js"
import * as Durable from "./durable.js"
import * as EventPage from "./event-page.js"
import * as EventServer from "./event-server.js"
import * as Family from "./family.js"
import * as HttpAgent from "./http-agent.js"
import * as Images from "./images.js"
import * as ManyAgents from "./many-agents.js"
import * as MountedApi from "./mounted-api.js"
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
  it.scopedLive("a mounted API: knows its people", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const workspace = yield* fs.makeTempDirectoryScoped({ prefix: "assent-mounted-" })
      const context = yield* Layer.build(
        MountedApi.served({ workspaces: [workspace], store: ":memory:", model: "offline" }, 0)
      )
      const { address } = Context.get(context, HttpServer.HttpServer)
      assert(address._tag === "TcpAddress")
      const ask = (path: string, token: string) =>
        Effect.promise(() =>
          fetch(`http://127.0.0.1:${address.port}${path}`, { headers: { authorization: `Bearer ${token}` } })
        )
      assert.strictEqual((yield* ask("/v1/sessions", "of nobody")).status, 401)
      const found = yield* ask("/v1/sessions", "the-token-of-ada")
      assert.deepStrictEqual(yield* Effect.promise(() => found.json()), { sessions: [], remarks: [] })
    }).pipe(Effect.provide(NodeContext.layer))
  )

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
      const goOn = Effect.provide(Durable.goOn(first, "pay the bill"), Durable.live(file, paid))
      const running = yield* Effect.fork(goOn)
      const dialog = yield* channel.take
      assert(dialog._tag === "Opened")
      yield* channel.answerText(dialog.request.requestId, "y", "ada") // who answered, for events and audit
      const end = yield* Fiber.join(running)
      assert.deepStrictEqual({ ...end }, { _tag: "Completed", text: "Paid.", steps: 2 })
      assert.deepStrictEqual({ ...(yield* goOn) }, { ...end })
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

  for (const decision of ["allow", "deny"] as const)
    it.live(`pages that come and go: cut twice, they show what pages show that stayed; ${decision}`, () =>
      Effect.gen(function* () {
        const { address } = yield* HttpServer.HttpServer
        assert(address._tag === "TcpAddress")
        const direct = `http://127.0.0.1:${address.port}`
        const wire = yield* wireTo(address.port)
        const [stayed, cut] = [yield* pageOf(direct), yield* pageOf(wire.url)]
        const transportOf = (url: string) => new DefaultChatTransport<UIMessage>({ api: `${url}/chat` })
        const words: UIMessage = { id: "words_1", role: "user", parts: [{ type: "text", text: "Publish it." }] }
        const post = Effect.promise(() =>
          transportOf(wire.url).sendMessages({
            trigger: "submit-message",
            chatId: "chat",
            messageId: undefined,
            messages: [words],
            abortSignal: undefined
          })
        )
        const resumed = (url: string) =>
          Effect.flatMap(
            Effect.promise(() => transportOf(url).reconnectToStream({ chatId: "chat" })),
            (stream) => (stream === null ? assert.fail("there is no turn") : readerOf(stream))
          )

        // In the middle of an answer. The page does not know whether its words arrived, and sends them again.
        const first = yield* readerOf(yield* post)
        const follower = yield* resumed(direct)
        yield* first.until(({ parts }) => parts.some((part) => part.type === "text" && part.text !== ""))
        yield* cut.until(({ answer }) => answer !== "")
        yield* wire.cut
        yield* first.isCut
        const second = yield* readerOf(yield* post)

        // In the middle of an approval.
        yield* second.until((message) => stateOf(message) === "approval-requested")
        yield* cut.until(({ questions }) => Object.keys(questions).length > 0)
        yield* wire.cut
        yield* second.isCut
        const third = yield* resumed(wire.url)
        yield* third.until((message) => stateOf(message) === "approval-requested")
        const { questions } = yield* cut.until(({ questions }) => Object.keys(questions).length > 0)

        const answer = (requestId = "") => {
          const body = JSON.stringify({ requestId, answer: { decision, scope: "once" } })
          return Effect.promise(() => fetch(`${wire.url}/answers`, { method: "POST", body, headers: json }))
        }
        assert.strictEqual((yield* answer(Object.keys(questions)[0])).status, 204)
        assert.strictEqual((yield* answer(Object.keys(questions)[0])).status, 409)

        const isOver = ({ answer, lines }: EventPage.Page) => answer === "" && lines.at(-1) === "That is all."
        const shown = yield* stayed.until(isOver)
        assert.deepStrictEqual(yield* cut.until(isOver), shown)
        assert.deepStrictEqual(shown, {
          lines: ["> Publish it.", "Let me publish it, as you wish.", "That is all."],
          answer: "",
          calls: {
            call_1: decision === "allow" ? 'publish: "Hello" is out' : "publish: Permission denied: page said no"
          },
          questions: {}
        })
        for (const at of stayed.sent.keys()) assert.deepStrictEqual(pageCutAt(stayed.sent, at), shown, `cut at ${at}`)
        const message = yield* follower.end
        assert.deepStrictEqual(yield* third.end, message)
        assert.strictEqual(stateOf(message), decision === "allow" ? "output-available" : "output-denied")
        assert.deepStrictEqual(
          message.parts.flatMap((part) => (part.type === "text" ? `${part.text} ${part.state}` : [])),
          ["Let me publish it, as you wish. done", "That is all. done"]
        )
      }).pipe(
        // The clients leave before the server does.
        Effect.scoped,
        Effect.provide(EventServer.server.pipe(Layer.provide(slowly), Layer.provideMerge(NodeHttpServer.layerTest)))
      )
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

    it.scoped("has everything in the next process, and says what is damaged", () =>
      Effect.gen(function* () {
        const values = yield* Effect.map(Layer.build(KeyValueStore.layerMemory), (context) =>
          Context.get(context, KeyValueStore.KeyValueStore)
        )
        const opened = OwnStore.layer({ pid: 1, host: "here", isAlive: () => true }).pipe(
          Layer.provide(Layer.succeed(KeyValueStore.KeyValueStore, values))
        )
        const inProcess = <A, E>(use: (store: SessionStore.Service) => Effect.Effect<A, E, Scope.Scope>) =>
          Effect.scoped(Effect.provide(Effect.flatMap(SessionStore.SessionStore, use), opened))
        const root = Id.SessionId.make("ses_kept")
        const entry: JournalEntry.SessionOpened = {
          _tag: "SessionOpened",
          version: JournalEntry.version,
          sessionId: root,
          rootSessionId: root,
          agent: "main",
          depth: 0,
          model: "offline",
          instructions: "digest"
        }
        yield* inProcess((store) =>
          Effect.flatMap(store.lock(root), (lease) => lease.append([{ sessionId: root, entry, at: 7 }]))
        )
        const loaded = yield* inProcess((store) => store.load(root))
        assert.deepStrictEqual(loaded.entries, [{ sessionId: root, entry, seq: 1, at: 7 }])
        yield* values.set(`session:${root}`, "{")
        const damaged = yield* Effect.flip(inProcess((store) => store.load(root)))
        assert.strictEqual(damaged._tag, "StoreUnusable")
        yield* values.set("sessions", "[]")
        assert.deepStrictEqual(yield* inProcess((store) => store.list), [])
      })
    )
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

const json = { "content-type": "application/json" }

/** Says and writes a piece at a time, so that there is a middle in which it can be cut. */
const slowly = ScriptedModel.layer({
  agents: {
    main: [
      {
        text: "Let me publish it, as you wish.",
        tools: [{ name: "publish", id: "call_1", params: { title: "Hello" } }],
        chunks: 8,
        chunkDelay: "50 millis"
      },
      { text: "That is all.", chunks: 4, chunkDelay: "50 millis" }
    ]
  }
})

/** A way to the server that can be cut. */
const wireTo = (port: number) =>
  Effect.acquireRelease(
    Effect.async<{ readonly url: string; readonly cut: Effect.Effect<void>; readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      const cut = () => sockets.forEach((socket) => socket.destroy())
      const join = (from: Socket, to: Socket) => {
        sockets.add(from)
        from.pipe(to)
        from.on("error", () => {})
        from.on("close", () => {
          sockets.delete(from)
          to.destroy()
        })
      }
      const server = createServer((near) => {
        const far = connect(port, "127.0.0.1")
        join(near, far)
        join(far, near)
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        assert(typeof address === "object" && address !== null)
        resume(
          Effect.succeed({
            url: `http://127.0.0.1:${address.port}`,
            cut: Effect.sync(cut),
            close: () => {
              cut()
              server.close()
            }
          })
        )
      })
    }),
    (wire) => Effect.sync(wire.close)
  )

const untilIn =
  <A>(queue: Queue.Dequeue<A>) =>
  (condition: (shown: A) => boolean): Effect.Effect<A> =>
    Effect.repeat(Queue.take(queue), { until: condition })

/** A page of a browser that follows the server. */
const pageOf = (url: string) =>
  Effect.gen(function* () {
    const shown = yield* Queue.unbounded<EventPage.Page>()
    const source = yield* Effect.acquireRelease(
      Effect.sync(() => new EventSource(`${url}/events`, { node: { reconnectionTime: 10 } })),
      (source) => Effect.sync(() => source.close())
    )
    const sent: Array<Sent> = []
    const { onmessage, onopen } = EventPage.follow((page) => shown.unsafeOffer(page))
    source.addEventListener("open", onopen)
    source.addEventListener("message", ({ data }) => {
      sent.push({ data })
      onmessage({ data })
    })
    return { until: untilIn(shown), sent }
  })

interface Sent {
  readonly data: string
}

/** The page whose connection was cut behind so many messages, and which was sent again what came behind its position. */
const pageCutAt = (sent: ReadonlyArray<Sent>, at: number): EventPage.Page => {
  let shown = EventPage.empty
  const { onmessage, onopen } = EventPage.follow((page) => (shown = page))
  onopen()
  sent.slice(0, at).forEach(onmessage)
  onopen()
  const isStored = ({ data }: Sent) => "position" in JSON.parse(data)
  sent.slice(sent.slice(0, at).findLastIndex(isStored) + 1).forEach(onmessage)
  return shown
}

/** What the AI SDK makes of a stream. */
const readerOf = (stream: ReadableStream<UIMessageChunk>) =>
  Effect.gen(function* () {
    const shown = yield* Queue.unbounded<UIMessage>()
    const reading = yield* Stream.fromAsyncIterable(
      readUIMessageStream({ stream, terminateOnError: true }),
      (error) => error
    ).pipe(
      Stream.tap((message) => Queue.offer(shown, message)),
      Stream.runLast,
      Effect.forkScoped
    )
    return {
      until: untilIn(shown),
      isCut: Effect.flip(Fiber.join(reading)),
      // As it would be stored.
      end: Effect.map(Fiber.join(reading), (last) => JSON.parse(JSON.stringify(Option.getOrThrow(last))) as UIMessage)
    }
  })

/** How its tool call stands. */
const stateOf = ({ parts }: UIMessage) =>
  parts.flatMap((part) => (part.type === "tool-publish" && "state" in part ? part.state : []))[0]
