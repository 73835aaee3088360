import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import { OneShot } from "../../src/internal/OneShot.js"
import { settle } from "../kit/Recorder.js"
import * as Runs from "../kit/Runs.js"
import * as Shuffled from "../kit/Shuffled.js"

describe("OneShot", () => {
  it.effect("gives its value to all who waited, and to all who come later", () =>
    Effect.gen(function* () {
      const once = new OneShot<string>()
      const waiting = yield* Effect.fork(Effect.all([once, once], { concurrency: "unbounded" }))
      yield* settle
      once.complete("first")
      assert.deepStrictEqual(yield* Fiber.join(waiting), ["first", "first"])
      assert.strictEqual(yield* once, "first")
      assert.strictEqual(yield* OneShot.of("there"), "there")
    })
  )

  it.effect("comes once: a later value is dropped", () =>
    Effect.gen(function* () {
      const once = new OneShot<string>()
      const told: Array<string> = []
      once.observe((value) => told.push(value))
      once.complete("first")
      once.complete("second")
      assert.strictEqual(yield* once, "first")
      assert.deepStrictEqual(told, ["first"])
    })
  )

  it("calls observers before settling returns, in order, and late ones at once", () => {
    const once = new OneShot<number>()
    const told: Array<string> = []
    once.observe((n) => told.push(`a${n}`))
    once.observe((n) => told.push(`b${n}`))
    assert.deepStrictEqual(told, [])
    once.complete(1)
    assert.deepStrictEqual(told, ["a1", "b1"])
    once.observe((n) => told.push(`c${n}`))
    assert.deepStrictEqual(told, ["a1", "b1", "c1"])
  })

  it.effect("does without whoever was interrupted", () =>
    Effect.gen(function* () {
      const once = new OneShot<string>()
      const gone = yield* Effect.fork(once)
      const waiting = yield* Effect.fork(once)
      yield* settle
      yield* Fiber.interrupt(gone)
      once.complete("here")
      assert.strictEqual(yield* Fiber.join(waiting), "here")
    })
  )

  it("reaches everybody, whatever runs between looking and waiting", () =>
    fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 1, max: 8 }), async (seed, readers) => {
        const once = new OneShot<number>()
        const all = Effect.all(
          [
            ...Array.from({ length: readers }, () => once),
            Effect.as(
              Effect.sync(() => once.complete(7)),
              7
            )
          ],
          { concurrency: "unbounded" }
        )
        const scheduler = new Shuffled.Shuffled(Shuffled.random(seed), 4)
        const values = await Effect.runPromise(Effect.withScheduler(all, scheduler))
        assert.deepStrictEqual(
          values,
          Array.from({ length: readers + 1 }, () => 7)
        )
      }),
      { numRuns: Runs.of(200) }
    ))
})
