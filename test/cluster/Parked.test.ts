import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Parked from "../../src/cluster/Parked.js"
import { Confirm } from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Family from "../kit/Family.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"

const work = (name: string) => ({ name: "work", id: `call_${name}`, params: { name } })

/** A tool that asks without saying so in its type; the session's interactor is there all the same. */
const asking = Effect.gen(function* () {
  const interactor = yield* Interactor.current as Effect.Effect<Interactor.Service>
  const request = Interactor.ask(new Confirm({ prompt: "Sure?", default: false }))
  return yield* Interactor.withInteractor(interactor)(request)
}).pipe(Effect.orDie)

describe("An agent that is parked", () => {
  it.scoped("is true while every call of the turn waits for people, and not before or after", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: [work("a"), work("b")] }, { text: "done" }],
        runtime: { policy: PermissionFile.policy({}) },
        person: [TestInteractor.silent]
      })
      assert.isUndefined(yield* Parked.of(kit.agent))
      yield* kit.agent.send("go")
      yield* kit.person.next
      yield* settle
      assert.deepStrictEqual(yield* Parked.of(kit.agent), { dueAt: undefined })
      const [open] = yield* kit.agent.broker.open
      assert(open !== undefined)
      yield* kit.agent.broker.cancel(open.requestId, "ann")
      yield* kit.agent.cancel()
      assert.isUndefined(yield* Parked.of(kit.agent))
    })
  )

  it.scoped("is false while a tool runs beside the question, and true when the tool has ended", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: [{ tools: [work("a"), work("b")] }, { text: "done" }],
        runtime: { policy: PermissionFile.policy({}) },
        person: ["y", TestInteractor.silent],
        worker: (name) => Effect.as(Deferred.await(gate), name)
      })
      yield* kit.agent.send("go")
      yield* kit.person.next
      yield* kit.person.next
      yield* settle
      assert.isUndefined(yield* Parked.of(kit.agent))
      yield* Deferred.succeed(gate, undefined)
      yield* settle
      assert.deepStrictEqual(yield* Parked.of(kit.agent), { dueAt: undefined })
    })
  )

  it.scoped("is false while a tool asks that does not run again in another process", () =>
    Effect.gen(function* () {
      const open = yield* SessionStore.makeMemory
      const store = open({ pid: 1, host: "here", isAlive: () => true })
      const kit = yield* Kit.start({
        agent: { persistence: yield* Persistence.begin(store) },
        model: [{ tools: [work("a")] }, { text: "done" }],
        person: () => TestInteractor.silent,
        worker: (name) => Effect.as(asking, name)
      })
      yield* kit.agent.send("go")
      yield* settle
      assert.lengthOf(yield* kit.agent.broker.open, 1)
      assert.isUndefined(yield* Parked.of(kit.agent))
    })
  )

  it.scoped("is true while only a subagent asks, until the time at which its parent gives up", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [Family.calls(Family.delegate("helper")), { text: "done" }],
          helper: [Family.work("a"), { text: "ok" }]
        },
        subagents: { profiles: [Family.profile("helper")], timeouts: { permission: "20 seconds" } },
        runtime: { policy: Family.delegationAllowed },
        person: [TestInteractor.silent]
      })
      yield* family.agent.send("go")
      yield* family.person.next
      yield* settle
      const [open] = yield* family.agent.broker.open
      assert(open !== undefined)
      assert.deepStrictEqual(yield* Parked.of(family.agent), { dueAt: open.issuedAt + 20_000 })
    })
  )

  it.scoped("is true until the limit that a tool has set itself", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: [work("a")] }, { text: "done" }],
        person: () => TestInteractor.silent,
        worker: (name) =>
          Effect.flatMap(Interactor.current as Effect.Effect<Interactor.Service>, (interactor) =>
            Interactor.withInteractor(Interactor.withTimeout(interactor, { clarification: "1 hour" }))(
              Interactor.ask(new Confirm({ prompt: "Sure?", default: false }))
            )
          ).pipe(Effect.orDie, Effect.as(name))
      })
      yield* kit.agent.send("go")
      yield* settle
      const [open] = yield* kit.agent.broker.open
      assert(open !== undefined)
      assert.deepStrictEqual(yield* Parked.of(kit.agent), { dueAt: open.issuedAt + 3_600_000 })
    })
  )

  it.scoped("is false while a parent works beside the subagent that asks", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const family = yield* Family.start({
        script: {
          main: [Family.calls(Family.delegate("helper"), { name: "work", params: { name: "own" } }), { text: "done" }],
          helper: [Family.work("a"), { text: "ok" }]
        },
        subagents: { profiles: [Family.profile("helper")], timeouts: { permission: 0 } },
        runtime: { policy: Family.delegationAllowed },
        person: ["y", TestInteractor.silent],
        worker: (name) => Effect.as(Deferred.await(gate), name)
      })
      yield* family.agent.send("go")
      yield* family.person.next
      yield* family.person.next
      yield* settle
      assert.lengthOf(yield* family.agent.broker.open, 1)
      assert.isUndefined(yield* Parked.of(family.agent))
      yield* Deferred.succeed(gate, undefined)
      yield* settle
      assert.deepStrictEqual(yield* Parked.of(family.agent), { dueAt: undefined })
    })
  )
})
