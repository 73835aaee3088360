/** Ends of a process that are no kill: signals, scopes and channels that close. A kept session goes on in the next one. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberMap from "effect/FiberMap"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Policy from "../../src/permission/Policy.js"
import type * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Family from "../kit/Family.js"
import * as Kit from "../kit/session.js"
import { settle } from "../kit/Recorder.js"

const work = (name: string) => ({ tools: [{ name: "work", params: { name }, id: `call_${name}` }] })

const processes = Effect.map(
  SessionStore.makeMemory,
  (open) => (pid: number) => open({ pid, host: `h${pid}`, isAlive: () => false })
)

/** An agent of a process, in a scope of its own. */
const living = (scope: Scope.Scope, options: Partial<Kit.Options> = {}) =>
  Effect.gen(function* () {
    const view = yield* processes
    const persistence = yield* Persistence.begin(view(1))
    const kit = yield* Kit.start({
      model: [work("a"), { text: "done" }],
      runtime: { policy: Policy.make({}) },
      person: [TestInteractor.silent],
      ...options,
      agent: { persistence, ...options.agent }
    })
    /** The next process: everybody says yes. */
    const next = Effect.gen(function* () {
      const persistence = yield* Persistence.resume(view(2), kit.agent.id)
      const worked: Array<string> = []
      const after = yield* Kit.start({
        model: [work("a"), { text: "done" }],
        runtime: { policy: Policy.make({}) },
        worker: (name) => Effect.sync(() => (worked.push(name), name)),
        person: () => "y",
        agent: { persistence }
      })
      const end = yield* after.agent.awaitIdle
      return { end: Option.getOrUndefined(end), results: after.results(), worked }
    })
    return { ...kit, store: view(3), next }
  }).pipe(Scope.extend(scope))

type Living = Effect.Effect.Success<ReturnType<typeof living>>

describe("the end of a process while an approval is open", () => {
  const ends: ReadonlyArray<readonly [string, (agent: Agent.Agent, scope: Scope.Scope) => Effect.Effect<unknown>]> = [
    ["words that were sent", (agent) => Effect.orDie(agent.send("go"))],
    ["a fiber of the scope", (agent, scope) => Effect.forkIn(agent.run("go"), scope)],
    [
      "a FiberSet",
      (agent, scope) =>
        Effect.flatMap(Scope.extend(FiberSet.make(), scope), (set) => FiberSet.run(set, agent.run("go")))
    ],
    [
      "a FiberMap",
      (agent, scope) =>
        Effect.flatMap(Scope.extend(FiberMap.make<string>(), scope), (map) => FiberMap.run(map, "a", agent.run("go")))
    ],
    ["a stage's turn", (agent, scope) => Effect.forkIn(agent.turn("go"), scope)]
  ]
  for (const [name, begin] of ends) {
    it.scoped(`keeps it, for ${name}`, () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { agent, next, person, store } = yield* living(scope)
        yield* begin(agent, scope)
        yield* person.next
        yield* Scope.close(scope, Exit.void)
        yield* settle
        assert.strictEqual((yield* store.openRequests()).length, 1)
        const { end, worked } = yield* next
        assert.deepInclude(end, { _tag: "Completed", text: "done" })
        assert.deepStrictEqual(worked, ["a"])
      })
    )
  }

  it.scoped("keeps it, for a main fiber that a signal interrupts", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<Living>()
      const main = Effect.scoped(
        Effect.gen(function* () {
          const one = yield* living(yield* Effect.scope)
          const running = yield* Effect.fork(one.agent.run("go"))
          yield* one.person.next
          yield* Deferred.succeed(asked, one)
          return yield* Fiber.join(running)
        })
      )
      const fiber = yield* Effect.forkDaemon(main)
      const { next, store } = yield* Deferred.await(asked)
      assert.isTrue(Exit.isInterrupted(yield* Fiber.interrupt(fiber)), "no end that the journal does not have")
      assert.strictEqual((yield* store.openRequests()).length, 1)
      assert.deepStrictEqual((yield* next).worked, ["a"])
    })
  )

  it.scoped("keeps it, for a ManagedRuntime", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<Living>()
      const service = Layer.scopedDiscard(
        Effect.gen(function* () {
          const one = yield* living(yield* Effect.scope)
          yield* Effect.forkScoped(one.agent.run("go"))
          yield* one.person.next
          yield* Deferred.succeed(asked, one)
        })
      )
      const runtime = ManagedRuntime.make(service)
      yield* runtime.runtimeEffect
      const { next, store } = yield* Deferred.await(asked)
      yield* runtime.disposeEffect
      assert.strictEqual((yield* store.openRequests()).length, 1)
      assert.deepStrictEqual((yield* next).worked, ["a"])
    })
  )

  for (const how of ["of its own", "attached later"]) {
    it.scoped(`keeps it, when a channel ${how} closes before its agent`, () =>
      Effect.gen(function* () {
        const [scope, channelScope] = yield* Effect.all([Scope.make(), Scope.make()])
        const queue = yield* Scope.extend(QueueChannel.make(), channelScope)
        const own = how === "of its own"
        const { agent, next, store } = yield* living(scope, { interactors: own ? [queue.interactor] : [] })
        if (!own) yield* Scope.extend(agent.broker.attach(queue.interactor), channelScope)
        yield* Effect.forkIn(agent.run("go"), scope)
        yield* queue.take
        yield* Scope.close(channelScope, Exit.void)
        yield* settle
        assert.strictEqual((yield* agent.broker.open).length, 1)
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* store.openRequests()).length, 1)
        assert.deepStrictEqual((yield* next).worked, ["a"])
      })
    )
  }

  it.scoped("keeps the question of a child", () =>
    Effect.gen(function* () {
      const view = yield* processes
      const scope = yield* Scope.make()
      const persistence = yield* Scope.extend(Persistence.begin(view(1)), scope)
      const script = {
        main: [Family.calls(Family.delegate("helper")), { text: "all done" }],
        helper: [Family.work("a"), { text: "child done" }]
      }
      const before = yield* Scope.extend(Family.start({ script, agent: { persistence } }), scope)
      yield* Effect.forkIn(before.agent.run("go"), scope)
      yield* before.person.next
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* view(2).openRequests()).length, 1)
      const again = yield* Persistence.resume(view(3), before.agent.id)
      const after = yield* Family.start({ script, person: ["y"], agent: { persistence: again } })
      yield* after.agent.awaitIdle
      assert.deepStrictEqual(after.worked, [{ agent: "main/helper", name: "a" }])
    })
  )
})

describe("what cancels a kept turn", () => {
  const cancels: ReadonlyArray<readonly [string, (one: Living) => Effect.Effect<unknown>]> = [
    ["cancel", ({ agent }) => agent.cancel()],
    ["shutdown", ({ agent }) => agent.shutdown],
    [
      "a person who withdraws the question",
      ({ agent, person }) =>
        Effect.flatMap(person.open, ([request]) => Effect.orDie(agent.broker.cancel(request?.requestId ?? "", "ada")))
    ]
  ]
  for (const [name, cancel] of cancels) {
    it.scoped(`${name} does`, () =>
      Effect.gen(function* () {
        const one = yield* living(yield* Effect.scope)
        const running = yield* Effect.fork(one.agent.run("go"))
        yield* one.person.next
        yield* cancel(one)
        yield* Fiber.await(running)
        assert.deepStrictEqual(yield* one.store.openRequests(), [])
      })
    )
  }

  it.scoped("an interrupted run does not, and the agent works on", () =>
    Effect.gen(function* () {
      const one = yield* living(yield* Effect.scope, { person: undefined })
      const running = yield* Effect.fork(one.agent.run("go"))
      const request = yield* one.person.next
      yield* Fiber.interrupt(running)
      yield* one.agent.broker.answer(request.requestId, "ada", { decision: "allow", scope: "once" })
      assert.deepInclude(Option.getOrUndefined(yield* one.agent.awaitIdle), { _tag: "Completed", text: "done" })
    })
  )

  it.scoped("in memory an interrupted run does", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [work("a")], runtime: { policy: Policy.make({}) } })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* kit.person.next
      yield* Fiber.interrupt(running)
      assert.deepStrictEqual(yield* kit.agent.broker.open, [])
    })
  )
})

describe("an end that the journal does not have", () => {
  it.scoped("is given to no caller and told by no event", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const view = yield* processes
      const persistence = yield* Persistence.begin(view(1))
      const kit = yield* Kit.start({
        model: [work("a"), { text: "done" }],
        worker: () => Deferred.await(gate),
        agent: { persistence }
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* persistence.journal.freeze
      yield* Deferred.succeed(gate, undefined)
      assert.isTrue(Exit.isInterrupted(yield* Fiber.await(running)))
      assert.deepStrictEqual(
        (yield* kit.of("TurnEnded")).map(({ reason }) => reason),
        ["cancelled"]
      )
    })
  )
})

describe("draining", () => {
  const deployed = (within: "10 seconds" | "1 second", names: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const gate = yield* Deferred.make<void>()
      const ran: Array<string> = []
      const one = yield* living(scope, {
        model: [{ tools: names.flatMap((name) => work(name).tools) }, { text: "done" }],
        worker: (name) =>
          Effect.as(
            Effect.zipRight(
              Effect.sync(() => ran.push(name)),
              Deferred.await(gate)
            ),
            name
          ),
        person: ["y", TestInteractor.silent],
        agent: { limits: { parallelTools: 1 } }
      })
      const running = yield* Effect.fork(one.agent.run("go"))
      yield* settle
      const draining = yield* Effect.fork(one.agent.drain(within))
      yield* settle
      assert.strictEqual((yield* Effect.flip(one.agent.send("more")))._tag, "AgentStopped")
      return { ...one, draining, ran, running, scope, write: Deferred.succeed(gate, undefined) }
    })

  it.scoped("lets running tools end and be written, and parks the open question", () =>
    Effect.gen(function* () {
      const { agent, draining, next, ran, running, scope, store, write } = yield* deployed("10 seconds", ["b", "a"])
      assert.deepStrictEqual(ran, ["b"])
      yield* write
      yield* Fiber.join(draining)
      assert.isTrue(Exit.isInterrupted(yield* Fiber.await(running)))
      const { entries } = yield* store.load(agent.id)
      assert.deepStrictEqual(
        entries.flatMap(({ entry }) => (entry._tag === "ToolEnded" ? [entry.result] : [])),
        ["b"]
      )
      assert.strictEqual((yield* store.openRequests()).length, 1)
      yield* agent.shutdown
      yield* Scope.close(scope, Exit.void)
      const { results, worked } = yield* next
      assert.deepStrictEqual([results, worked], [["b", "a"], ["a"]])
    })
  )

  it.scoped("waits no longer than it may; what still ran is not known", () =>
    Effect.gen(function* () {
      const { draining, next, scope } = yield* deployed("1 second", ["b"])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(draining)
      yield* Scope.close(scope, Exit.void)
      const { results, worked } = yield* next
      assert.deepStrictEqual(worked, [])
      assert.include(String(results[0]), "Whether it took effect is not known.")
    })
  )

  it.scoped("waits no longer when it is interrupted", () =>
    Effect.gen(function* () {
      const { agent, draining, next, scope } = yield* deployed("10 seconds", ["b"])
      yield* Fiber.interrupt(draining)
      yield* agent.done
      yield* Scope.close(scope, Exit.void)
      assert.include(String((yield* next).results[0]), "Whether it took effect is not known.")
    })
  )

  it.scoped("begins no tool any more: the next process does", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const gate = yield* Deferred.make<void>()
      const ran: Array<string> = []
      const one = yield* living(scope, {
        model: [work("b"), work("a"), { text: "done" }],
        runtime: { policy: Kit.allowAll },
        worker: (name) =>
          Effect.as(
            Effect.zipRight(
              Effect.sync(() => ran.push(name)),
              Deferred.await(gate)
            ),
            name
          )
      })
      yield* one.agent.send("go")
      yield* settle
      const draining = yield* Effect.fork(one.agent.drain("10 seconds"))
      yield* settle
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(draining)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(ran, ["b"])
      assert.deepInclude((yield* one.next).end, { _tag: "Completed" })
    })
  )

  it.scoped("ends an idle agent, and one in memory as cancelled", () =>
    Effect.gen(function* () {
      const idle = yield* Kit.start({ model: [] })
      yield* idle.agent.drain("1 second")
      yield* idle.agent.drain("1 second")
      const busy = yield* Kit.start({ model: [work("a")], runtime: { policy: Policy.make({}) } })
      const running = yield* Effect.fork(busy.agent.run("go"))
      yield* busy.person.next
      yield* busy.agent.drain("1 second")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Cancelled")
    })
  )
})
