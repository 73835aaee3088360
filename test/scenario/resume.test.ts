/** An agent whose process dies, and the one that goes on with it: what was said, decided and asked is still there. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as SessionStore from "../../src/session/SessionStore.js"
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
})
