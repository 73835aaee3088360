import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import * as GracePeriod from "../../src/internal/GracePeriod.js"
import { settle } from "../kit/Recorder.js"

describe("waiting with patience", () => {
  it.effect("ends when what is waited for comes, also at once", () =>
    Effect.gen(function* () {
      assert.isTrue(yield* GracePeriod.wait((done) => done(), "1 second"))
      let come = () => {}
      const waiting = yield* Effect.fork(
        GracePeriod.wait((done) => {
          come = done
        }, "1 second")
      )
      yield* settle
      come()
      assert.isTrue(yield* Fiber.join(waiting))
    })
  )

  it.effect("ends when its time is up, and not before", () =>
    Effect.gen(function* () {
      const waiting = yield* Effect.fork(GracePeriod.wait(() => {}, "1 second"))
      yield* settle
      yield* TestClock.adjust("999 millis")
      assert.isTrue(Option.isNone(yield* Fiber.poll(waiting)))
      yield* TestClock.adjust("1 millis")
      assert.isFalse(yield* Fiber.join(waiting))
    })
  )

  it.effect("is not ended by interrupting whoever waits", () =>
    Effect.gen(function* () {
      const ends: Array<boolean> = []
      const wait = Effect.map(
        GracePeriod.wait(() => {}, "1 second"),
        (came) => ends.push(came)
      )
      const waiting = yield* Effect.fork(Effect.uninterruptible(wait))
      yield* settle
      yield* Effect.forkDaemon(Fiber.interrupt(waiting))
      yield* settle
      assert.deepStrictEqual(ends, [])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(ends, [false])
    })
  )
})
