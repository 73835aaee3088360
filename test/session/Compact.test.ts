/** Compaction between two turns: because somebody asks while the session is idle, or because its turn did not come to it. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { SessionId } from "../../src/core/Id.js"
import * as SessionFork from "../../src/journal/SessionFork.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as Kit from "../kit/session.js"
import { brief, compactions, config, conversing, says, start, turns } from "../kit/SmallWindow.js"
import { settle } from "../kit/Recorder.js"

describe("compacting because somebody asks", () => {
  it.scoped("leaves the latest turns, at once when idle, and says what it did", () =>
    Effect.gen(function* () {
      const { model } = conversing([says(20, "a"), says(20, "b"), says(20, "c")])
      const kit = yield* start(model, config({ preserveRecentTurns: 2 }))
      yield* turns(kit, "1", "2", "3")
      assert.deepStrictEqual(yield* kit.agent.compact, { removed: 2, tokens: 50 })
      assert.deepStrictEqual(yield* kit.agent.compact, { removed: 0, tokens: 50 }, "nothing more may go")
      assert.deepStrictEqual(yield* compactions(kit), ["manual…", "manual -2", "manual…", "manual -0"])
      assert.isTrue(yield* kit.agent.isIdle)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("costs tokens that the next process counts, too, and a fork of it", () =>
    Effect.gen(function* () {
      const store = (yield* SessionStore.makeMemory)({ pid: 1, host: "here", isAlive: () => true })
      const id = SessionId.make("long")
      const { model } = conversing([says(200, "a"), says(20, "b")], {
        summaries: [{ text: "short", usage: { input: 700, output: 30 } }]
      })
      const compaction = config({ type: "summarize" })
      const started = (persistence: Persistence.Persistence) =>
        Kit.start({ model, runtime: { compaction }, agent: { persistence } })
      const spent = yield* Effect.scoped(
        Effect.gen(function* () {
          const kit = yield* started(yield* Persistence.open(store, id))
          yield* turns(kit, "1", "2")
          const before = kit.agent.ledger.totals()
          yield* kit.agent.compact
          const after = kit.agent.ledger.totals()
          assert.deepStrictEqual([after.summaries, after.inputTokens - before.inputTokens], [1, 700])
          return after
        })
      )
      const fork = yield* SessionFork.fork(store, id)
      for (const one of [id, fork.rootSessionId]) {
        const kit = yield* Effect.flatMap(Persistence.resume(store, one), started)
        assert.deepStrictEqual(kit.agent.ledger.totals(), spent)
      }
    })
  )

  it.scoped("is done after a turn that was cancelled before it came to it", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { model } = conversing([says(20), Kit.halting([], begun)])
      const kit = yield* start(model, config())
      yield* turns(kit, "1")
      const running = yield* Effect.fork(kit.agent.run("2"))
      yield* Deferred.await(begun)
      const compacting = yield* Effect.fork(kit.agent.compact)
      yield* settle
      yield* kit.agent.cancel()
      yield* Fiber.join(running)
      assert.strictEqual((yield* Fiber.join(compacting)).removed, 2)
      yield* kit.agent.awaitIdle
      const events = yield* kit.events
      const last = events.findLastIndex((event) => event._tag === "TurnEnded")
      assert.deepStrictEqual(
        events.slice(last + 1).map((event) => (event._tag === "AgentStatusChanged" ? event.status : event._tag)),
        ["CompactionStarted", "CompactionEnded", "idle"],
        "not idle in between"
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("while idle gives way to words, and is done in their turn", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { heard, model } = conversing([says(200, "a"), says(20, "b"), { text: "hello" }], {
        summaries: [Kit.halting([Kit.text("ne")], begun), { text: "made again" }]
      })
      const kit = yield* start(model, config({ type: "summarize" }))
      yield* turns(kit, "1", "2")
      const compacting = yield* Effect.fork(kit.agent.compact)
      yield* Deferred.await(begun)
      assert.isFalse(yield* kit.agent.isIdle)
      yield* kit.agent.send("3")
      assert.strictEqual(Option.getOrUndefined(yield* kit.agent.awaitIdle)?._tag, "Completed")
      assert.strictEqual((yield* Fiber.join(compacting)).removed, 4)
      assert.deepStrictEqual(brief(heard[2]?.messages ?? []), ["summary made again", "user 3"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("while idle lets queued words wait, and the turn begins with the shorter history", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const slow = Stream.unwrap(Effect.as(Deferred.await(go), Kit.parts({ text: "short" })))
      const { heard, model } = conversing([says(200, "a"), says(20, "b"), { text: "hello" }], {
        summaries: [Kit.halting([], begun, slow)]
      })
      const kit = yield* start(model, config({ type: "hybrid" }))
      yield* turns(kit, "1", "2")
      const compacting = yield* Effect.fork(kit.agent.compact)
      yield* Deferred.await(begun)
      yield* kit.agent.enqueue("3")
      yield* settle
      assert.strictEqual(heard.length, 2)
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(compacting)
      yield* kit.agent.awaitIdle
      assert.deepStrictEqual(brief(heard[2]?.messages ?? []), ["summary short", "user 2", "assistant bbbbb", "user 3"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("while idle can be cancelled, and ends with the agent", () =>
    Effect.gen(function* () {
      const begun = yield* Effect.forEach([1, 2], () => Deferred.make<void>())
      const { model } = conversing([says(200, "a"), says(20, "b"), { text: "hello" }], {
        summaries: begun.map((latch) => Kit.halting([], latch))
      })
      const kit = yield* start(model, config({ type: "summarize" }))
      yield* turns(kit, "1", "2")
      const first = yield* Effect.fork(Effect.exit(kit.agent.compact))
      yield* Deferred.await(begun[0] ?? assert.fail())
      yield* kit.agent.cancel()
      const cancelled = yield* Fiber.join(first)
      assert.include(Exit.isFailure(cancelled) ? String(cancelled.cause) : "", "Compaction was cancelled")
      assert.isTrue(yield* kit.agent.isIdle)
      assert.strictEqual(kit.agent.history.messages.length, 4)
      const second = yield* Effect.fork(Effect.exit(kit.agent.compact))
      yield* Deferred.await(begun[1] ?? assert.fail())
      yield* kit.agent.shutdown
      assert.isTrue(Exit.isFailure(yield* Fiber.join(second)))
      assert.strictEqual((yield* Effect.flip(kit.agent.compact))._tag, "CompactionFailed")
    })
  )
})
