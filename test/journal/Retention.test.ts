import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import type { SessionId } from "../../src/core/Id.js"
import * as Retention from "../../src/journal/Retention.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import { draft, opened, raised, received, turnEnded } from "../kit/JournalSample.js"

/** Sessions a day apart, the oldest first. The second one waits, and the third one runs. */
const kept = Effect.gen(function* () {
  const open = yield* SessionStore.makeMemory
  const store = open({ pid: 1, host: "here", isAlive: () => true })
  yield* TestClock.adjust("5 days")
  for (const [index, name] of ["a", "b", "c", "d", "e"].entries()) {
    const id = `ses_${name}` as SessionId
    const last = name === "b" ? raised("req_b") : turnEnded("turn_1")
    const drafts = [opened(id), received("msg_1", id), last].map((entry) => ({
      ...draft(entry, id),
      at: Duration.toMillis("1 day") * (index + 1)
    }))
    const write = Effect.flatMap(store.lock(id), (lease) => lease.append(drafts))
    yield* name === "c" ? write : Effect.scoped(write)
  }
  return store
})

const names = (sessions: ReadonlyArray<{ readonly rootSessionId: string }>) =>
  sessions.map(({ rootSessionId }) => rootSessionId.slice(4)).join("")

describe("retention", () => {
  const cases: ReadonlyArray<readonly [Retention.Policy, string]> = [
    [{}, ""],
    [{ keep: 5 }, ""],
    [{ keep: 2 }, "a"],
    [{ keep: 0 }, "eda"],
    [{ keep: 0, waiting: true }, "edba"],
    [{ unused: "3 days" }, "a"],
    [{ unused: "3 days", waiting: true }, "ba"],
    [{ unused: "1 day", keep: 1 }, "da"],
    [{ unused: 0 }, "eda"]
  ]
  for (const [policy, gone] of cases) {
    it.scoped(`deletes ${gone === "" ? "none" : gone} by ${JSON.stringify(policy)}`, () =>
      Effect.gen(function* () {
        const store = yield* kept
        assert.strictEqual(names(yield* Retention.prune(store, policy)), gone)
        const left = names(yield* store.list)
        assert.strictEqual(left, [..."edcba"].filter((name) => !gone.includes(name)).join(""))
        assert.strictEqual(names(yield* Retention.prune(store, policy)), "")
      })
    )
  }

  it.scoped("leaves alone what is gone or used meanwhile", () =>
    Effect.gen(function* () {
      const store = yield* kept
      const scope = yield* Effect.scope
      const meanwhile = Effect.orDie(
        Effect.zipRight(store.delete("ses_a" as SessionId), Scope.extend(store.lock("ses_d" as SessionId), scope))
      )
      const late = { ...store, list: Effect.tap(store.list, () => meanwhile) }
      assert.strictEqual(names(yield* Retention.prune(late, { keep: 0 })), "e")
      assert.strictEqual(names(yield* store.list), "dcb")
    })
  )
})
