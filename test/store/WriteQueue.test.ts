import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as WriteQueue from "../../src/store/WriteQueue.js"

const rest = Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow(), { discard: true })

/** A queue whose commits wait at a gate and are remembered. */
const gated = (capacity: number) =>
  Effect.gen(function* () {
    const committed: Array<ReadonlyArray<string>> = []
    const gate = yield* Deferred.make<void>()
    const scope = yield* Scope.make()
    const write = yield* Scope.extend(
      WriteQueue.make<string, string>({
        capacity,
        closed: () => "closed",
        commit: (jobs) =>
          Effect.as(
            Effect.zipRight(
              Effect.sync(() => committed.push(jobs)),
              Deferred.await(gate)
            ),
            jobs.map((job) => (job.startsWith("bad") ? Exit.fail(job) : Exit.void))
          )
      }),
      scope
    )
    return { committed, write, open: Deferred.succeed(gate, undefined), close: Scope.close(scope, Exit.void) }
  })

describe("a write queue", () => {
  it.effect("writes together what waits, and lets no more in than there is room for", () =>
    Effect.gen(function* () {
      const { committed, open, write } = yield* gated(3)
      const fibers = yield* Effect.forEach(["a", "b", "c", "d", "e"], (job) => Effect.fork(write(job)))
      yield* rest
      assert.deepStrictEqual(committed, [["a", "b", "c"]])
      yield* open
      yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(committed, [
        ["a", "b", "c"],
        ["d", "e"]
      ])
    })
  )

  it.effect("tells each how its own went", () =>
    Effect.gen(function* () {
      const { open, write } = yield* gated(10)
      yield* open
      const outcomes = yield* Effect.forEach(["a", "bad b", "c"], (job) => Effect.either(write(job)), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        outcomes.map((outcome) => (outcome._tag === "Left" ? outcome.left : "written")),
        ["written", "bad b", "written"]
      )
    })
  )

  it.effect("withdraws what is interrupted before it is written, and gives its room back", () =>
    Effect.gen(function* () {
      const { committed, open, write } = yield* gated(2)
      const first = yield* Effect.fork(write("a"))
      yield* rest
      const waiting = yield* Effect.forEach(["b", "c", "d"], (job) => Effect.fork(write(job)))
      yield* rest
      yield* Fiber.interruptAll(waiting.slice(0, 2))
      yield* open
      yield* Fiber.joinAll([first, ...waiting.slice(2)])
      assert.deepStrictEqual(committed, [["a"], ["d"]])
      yield* write("e")
    })
  )

  it.effect("writes what it is writing though whoever handed it in is interrupted", () =>
    Effect.gen(function* () {
      const { committed, open, write } = yield* gated(1)
      const first = yield* Effect.fork(write("a"))
      yield* rest
      yield* Fiber.interrupt(first)
      yield* open
      yield* write("b")
      assert.deepStrictEqual(committed, [["a"], ["b"]])
    })
  )

  it.effect("writes what waits when it is closed, and takes nothing after", () =>
    Effect.gen(function* () {
      const { close, committed, open, write } = yield* gated(2)
      const fibers = yield* Effect.forEach(["a", "b", "c"], (job) => Effect.fork(Effect.either(write(job))))
      yield* rest
      const closing = yield* Effect.fork(close)
      yield* rest
      yield* open
      yield* Fiber.join(closing)
      const [, , late] = yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(committed, [["a", "b"]])
      assert.strictEqual(late?._tag === "Left" ? late.left : "written", "closed")
      assert.strictEqual(yield* Effect.flip(write("d")), "closed")
    })
  )
})
