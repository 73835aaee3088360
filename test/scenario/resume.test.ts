/** An agent whose process dies, and the one that goes on with it: what was said, decided and asked is still there. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as History from "../../src/conversation/History.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import { StoreUnwritable } from "../../src/journal/StoreError.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Family from "../kit/Family.js"
import { settle } from "../kit/Recorder.js"

const { calls, delegate, work } = Family

/** Two processes over one store. */
const store = Effect.map(SessionStore.makeMemory, (open) => ({
  first: open({ pid: 1, host: "here", isAlive: () => false }),
  second: open({ pid: 2, host: "here", isAlive: () => false })
}))

describe("going on with a session", () => {
  it.scoped("a question that was open is asked again under its id, and its answer finds the call", () =>
    Effect.gen(function* () {
      const { first, second } = yield* store
      const script = { main: [work("a"), { text: "done" }] }
      const dying = yield* Scope.make()
      const persistence = yield* Scope.extend(Persistence.begin(first), dying)
      const before = yield* Scope.extend(Family.start({ script, agent: { persistence } }), dying)
      const running = yield* Effect.forkDaemon(before.agent.run("go"))
      const asked = yield* before.person.next
      yield* persistence.journal.freeze

      const again = yield* Persistence.resume(second, persistence.rootSessionId)
      const after = yield* Family.start({ script, person: ["y"], agent: { persistence: again } })
      yield* after.agent.awaitIdle
      assert.deepStrictEqual(
        (yield* after.person.shown).map(({ requestId }) => requestId),
        [asked.requestId]
      )
      assert.deepStrictEqual(after.worked, [{ agent: "main", name: "a" }])
      assert.deepStrictEqual(before.worked, [])
      yield* Fiber.interrupt(running)
      yield* Scope.close(dying, Exit.void)
    })
  )

  it.scoped("a child's open question comes back through its parent, and both end", () =>
    Effect.gen(function* () {
      const { first, second } = yield* store
      const script = {
        main: [calls(delegate("helper")), { text: "all done" }],
        helper: [work("a"), { text: "child done" }]
      }
      const dying = yield* Scope.make()
      const persistence = yield* Scope.extend(Persistence.begin(first), dying)
      const before = yield* Scope.extend(Family.start({ script, agent: { persistence } }), dying)
      const running = yield* Effect.forkDaemon(before.agent.run("go"))
      const asked = yield* before.person.next
      yield* persistence.journal.freeze

      const again = yield* Persistence.resume(second, persistence.rootSessionId)
      const after = yield* Family.start({ script, person: ["y"], agent: { persistence: again } })
      yield* after.agent.awaitIdle
      yield* settle
      assert.deepStrictEqual(
        (yield* after.person.shown).map(({ requestId, agentPath }) => [requestId, agentPath]),
        [[asked.requestId, "main/helper"]]
      )
      assert.deepStrictEqual(after.worked, [{ agent: "main/helper", name: "a" }])
      const ends = Family.ofTag(yield* after.events, "TurnEnded").map(({ agent, reason }) => [agent, reason])
      assert.deepStrictEqual(ends, [
        ["main/helper", "completed"],
        ["main", "completed"]
      ])
      yield* Fiber.interrupt(running)
      yield* Scope.close(dying, Exit.void)
    })
  )

  it.scoped("a persistence is for one agent: another is refused in words, also when the first has ended", () =>
    Effect.gen(function* () {
      const { first } = yield* store
      const persistence = yield* Persistence.begin(first)
      const options = { script: { main: [{ text: "one" }, { text: "two" }] }, agent: { persistence } }
      const family = yield* Family.start(options)
      const refused = yield* Effect.flip(Family.startKept(options))
      assert.instanceOf(refused, Persistence.PersistenceInUse)
      assert.strictEqual(refused.rootSessionId, persistence.rootSessionId)
      assert.include(refused.message, "resume the session")
      assert.strictEqual(Family.textOf(yield* family.agent.run("go")), "one", "the first is not disturbed")
      yield* family.agent.shutdown
      const copied = { ...options, agent: { persistence: { ...persistence } } }
      assert.instanceOf(yield* Effect.flip(Family.startKept(copied)), Persistence.PersistenceInUse)
    })
  )

  it.scoped("what was used is counted on, and limits that were reached stay reached", () =>
    Effect.gen(function* () {
      const { first, second } = yield* store
      const script = {
        main: [{ text: "one", usage: { input: 60, output: 50 } }, { text: "never" }]
      }
      const runtime = { tokens: { limits: { treeTokens: 100 } } }
      const persistence = yield* Effect.scoped(
        Effect.gen(function* () {
          const persistence = yield* Persistence.begin(first)
          const { agent } = yield* Family.start({ script, runtime, agent: { persistence } })
          yield* agent.run("go")
          return persistence
        })
      )
      const again = yield* Persistence.resume(second, persistence.rootSessionId)
      const { agent, person } = yield* Family.start({ script, runtime, person: ["n"], agent: { persistence: again } })
      assert.deepInclude(agent.ledger.totals(), { calls: 1, inputTokens: 60, outputTokens: 50 })
      const end = yield* agent.run("more")
      assert.strictEqual(end._tag, "Failed")
      assert.deepStrictEqual(Family.shown(yield* person.shown), ["main: Confirm"])
    })
  )

  it.scoped("what cannot be written down is not told as done, and the tool does not begin", () =>
    Effect.gen(function* () {
      const { first } = yield* store
      let full = false
      const failing: SessionStore.Service = {
        ...first,
        lock: (id) =>
          Effect.map(first.lock(id), (lease) => ({
            ...lease,
            append: (drafts) =>
              full
                ? Effect.fail(new StoreUnwritable({ store: "here", reason: "the disk is full" }))
                : lease.append(drafts)
          }))
      }
      const script = { main: [work("a"), { text: "done" }, { text: "said" }, { text: "again" }] }
      const persistence = yield* Persistence.begin(failing)
      const family = yield* Family.start({
        script,
        person: [TestInteractor.wait(Effect.sync(() => ((full = true), "y")))],
        agent: { persistence }
      })
      const end = yield* family.agent.run("go")
      assert.deepStrictEqual(family.worked, [])
      assert.include(end._tag === "Failed" ? end.error : end._tag, "the disk is full")
      const refused = yield* Effect.flip(family.agent.send("more"))
      assert.include(refused.message, "the disk is full")
      full = false
      yield* family.agent.awaitIdle
      assert.strictEqual((yield* family.agent.run("now"))._tag, "Completed")
    })
  )

  it.scoped("an agent that was halted takes nothing more, and the next has what was queued", () =>
    Effect.gen(function* () {
      const { first, second } = yield* store
      const script = { main: [work("a"), { text: "done" }, { text: "the other thing" }] }
      const persistence = yield* Effect.scoped(
        Effect.gen(function* () {
          const persistence = yield* Persistence.begin(first)
          const { agent, person, worked } = yield* Family.start({ script, agent: { persistence } })
          yield* agent.send("go")
          yield* agent.enqueue("and then")
          yield* person.next
          yield* agent.halt("nobody is there")
          assert.strictEqual(Option.getOrUndefined(yield* agent.awaitIdle)?._tag, "Halted")
          assert.strictEqual((yield* Effect.flip(agent.send("more")))._tag, "AgentStopped")
          assert.deepStrictEqual(worked, [])
          return persistence
        })
      )
      const again = yield* Persistence.resume(second, persistence.rootSessionId)
      const after = yield* Family.start({ script, person: ["y"], agent: { persistence: again } })
      yield* after.agent.awaitIdle
      assert.deepStrictEqual(after.agent.history.messages.map(History.textOf), [
        "go",
        "",
        "",
        "done",
        "and then",
        "the other thing"
      ])
    })
  )
})
