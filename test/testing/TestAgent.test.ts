import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/TestClock"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import type { Interactor } from "../../src/interaction/Interactor.js"
import type { IdGenerator } from "../../src/core/Id.js"
import { policy } from "../../src/permission/PermissionFile.js"
import * as Agent from "../../src/runtime/Agent.js"
import type { AgentRuntime } from "../../src/runtime/AgentRuntime.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Testing from "../../src/testing/index.js"

class Cluster extends Context.Tag("test/Cluster")<Cluster, { readonly deployed: Array<string> }>() {}

const Deploy = Tool.make("deploy", { parameters: { where: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Deploy)
const handlers = toolkit.toLayer(
  Effect.map(Cluster, ({ deployed }) =>
    toolkit.of({
      deploy: ({ where }) =>
        Effect.sync(() => {
          deployed.push(where)
          return `deployed to ${where}`
        })
    })
  )
)
const cluster = Layer.sync(Cluster, () => ({ deployed: [] }))
const program = Layer.provideMerge(handlers, cluster)

const script = [{ tools: [{ name: "deploy", params: { where: "mars" } }] }, { text: "All right." }]

describe("an agent in a test", () => {
  it.scoped("does not deploy when the person says no", () =>
    Effect.gen(function* () {
      const { agent, person, events } = yield* TestAgent.start()
      const end = yield* agent.run("ship it")
      assert.deepInclude(end, { _tag: "Completed", text: "All right." })
      assert.deepStrictEqual(
        (yield* person.shown).map(({ interaction }) => interaction._tag),
        ["Approve"]
      )
      assert.deepStrictEqual((yield* Cluster).deployed, [])
      const tags = (yield* events).map((event) => event._tag)
      assert.strictEqual(tags[0], "AgentCreated")
      assert.notInclude(tags, "ToolCallStarted")
      assert.strictEqual(tags.at(-1), "AgentStatusChanged")
    }).pipe(Effect.provide(TestAgent.layer({ toolkit, script, person: ["n"] })), Effect.provide(program))
  )

  it.scoped("deploys when the person has thought about it long enough", () =>
    Effect.gen(function* () {
      const { agent, person } = yield* TestAgent.start()
      const running = yield* Effect.fork(agent.run("ship it"))
      yield* person.next
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(running)
      assert.deepStrictEqual((yield* Cluster).deployed, ["mars"])
    }).pipe(
      Effect.provide(TestAgent.layer({ toolkit, script, person: { script: [TestInteractor.delay("1 hour", "y")] } })),
      Effect.provide(program)
    )
  )

  it.scoped("asks nobody under a policy that allows it", () =>
    Effect.gen(function* () {
      const { agent, person } = yield* TestAgent.start()
      yield* agent.run("ship it")
      assert.deepStrictEqual(yield* person.shown, [])
      assert.deepStrictEqual((yield* Cluster).deployed, ["mars"])
    }).pipe(
      Effect.provide(
        TestAgent.layer({ toolkit, script: { agents: { main: script } }, policy: policy({ defaultPolicy: "allow" }) })
      ),
      Effect.provide(program)
    )
  )

  it.scoped("may be answered through a queue instead", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.QueueChannel
      const agent = yield* Agent.start()
      const running = yield* Effect.fork(agent.run("ship it"))
      const dialog = yield* channel.take
      assert(dialog._tag === "Opened")
      yield* channel.answerText(dialog.request.requestId, "y")
      yield* Fiber.join(running)
      assert.deepStrictEqual((yield* Cluster).deployed, ["mars"])
    }).pipe(Effect.provide(TestAgent.layerQueue({ toolkit, script })), Effect.provide(program))
  )

  it.effect("has ids that can be foretold, the same in every test", () =>
    Effect.gen(function* () {
      const run = Effect.gen(function* () {
        const { agent, person } = yield* TestAgent.start()
        yield* agent.run("ship it")
        return [agent.id, ...(yield* person.shown).map(({ requestId }) => requestId)]
      }).pipe(
        Effect.scoped,
        Effect.provide(TestAgent.layer({ toolkit, script, person: ["n"] })),
        Effect.provide(program)
      )
      const first = yield* run
      assert.strictEqual(first.length, 2)
      assert.match(first[1] ?? "", /^req_[0-9]+$/)
      assert.deepStrictEqual(yield* run, first)
    })
  )

  it.effect("leaves nothing behind when its scope closes in the middle of a dialog", () =>
    Effect.gen(function* () {
      const shown = yield* Deferred.make<TestInteractor.Service>()
      const running = yield* Effect.fork(
        Effect.gen(function* () {
          const { agent, person } = yield* TestAgent.start()
          yield* Effect.fork(agent.run("ship it"))
          yield* person.next
          yield* Deferred.succeed(shown, person)
          return yield* Effect.never
        }).pipe(Effect.scoped, Effect.provide(TestAgent.layer({ toolkit, script })), Effect.provide(program))
      )
      const person = yield* Deferred.await(shown)
      assert.strictEqual((yield* person.open).length, 1)
      yield* Fiber.interrupt(running)
      assert.deepStrictEqual(yield* person.open, [])
      assert.strictEqual((yield* person.dismissed).length, 1)
    })
  )

  it.scoped("looks up paths where the test says", () =>
    Effect.gen(function* () {
      const { agent } = yield* TestAgent.start()
      assert.strictEqual((yield* agent.run("hello"))._tag, "Completed")
    }).pipe(
      Effect.provide(
        TestAgent.layer({
          toolkit: Toolkit.empty,
          script: [{ text: "hi" }],
          files: Layer.merge(FileSystem.layerNoop({ exists: () => Effect.succeed(true) }), Path.layer)
        })
      )
    )
  )
})

describe("the types", () => {
  it("leave to the test what its own tools need", () => {
    expectTypeOf(TestAgent.layer({ toolkit, script })).toEqualTypeOf<
      Layer.Layer<
        AgentRuntime | TestInteractor.TestInteractor | Interactor | IdGenerator,
        never,
        Tool.HandlersFor<typeof toolkit.tools>
      >
    >()
  })

  it("come from one entry point", () => {
    assert.hasAllKeys(Testing, [
      "ChannelSuite",
      "CrashTest",
      "ModelSuite",
      "QueueChannel",
      "ScriptedModel",
      "SessionStoreSuite",
      "TestAgent",
      "TestInteractor"
    ])
  })
})
