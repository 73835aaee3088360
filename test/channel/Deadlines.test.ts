import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as Deadlines from "../../src/channel/Deadlines.js"

const make = Effect.map(Effect.scope, (scope) => {
  const deadlines = Deadlines.make<string>(scope)
  const expired: Array<string> = []
  const set = (key: string, seconds: number) =>
    deadlines.set(key, Duration.seconds(seconds), () => void expired.push(key))
  return { deadlines, expired, set }
})

describe("deadlines", () => {
  it.scoped("expire each at its own time, whatever the order they were set in", () =>
    Effect.gen(function* () {
      const { expired, set } = yield* make
      yield* set("late", 30)
      yield* TestClock.adjust("1 second")
      yield* set("early", 5)
      yield* set("middle", 10)
      yield* TestClock.adjust("4999 millis")
      assert.deepStrictEqual(expired, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(expired, ["early"])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(expired, ["early", "middle"])
      yield* TestClock.adjust("19 seconds")
      assert.deepStrictEqual(expired, ["early", "middle", "late"])
    })
  )

  it.scoped("do not expire once they are cleared, and hold nothing else up", () =>
    Effect.gen(function* () {
      const { deadlines, expired, set } = yield* make
      yield* set("answered", 5)
      yield* set("open", 6)
      deadlines.clear("answered")
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(expired, [])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(expired, ["open"])
    })
  )

  it.scoped("begin again after all were over", () =>
    Effect.gen(function* () {
      const { expired, set } = yield* make
      yield* set("first", 1)
      yield* TestClock.adjust("1 minute")
      yield* set("second", 1)
      assert.deepStrictEqual(expired, ["first"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(expired, ["first", "second"])
    })
  )

  it.effect("end with their scope", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { expired, set } = yield* Scope.extend(make, scope)
      yield* set("never", 1)
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(expired, [])
    })
  )
})
