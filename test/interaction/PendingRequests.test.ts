import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import type { RequestId } from "../../src/core/Id.js"
import * as PendingRequests from "../../src/interaction/PendingRequests.js"
import * as Recorder from "../kit/Recorder.js"

interface Request {
  readonly requestId: RequestId
}

const request = (n: number): Request => ({ requestId: `req_${n}` as RequestId })
const make = () => PendingRequests.make<Request, string, string>()

describe("what waits for an answer", () => {
  it.effect("is settled once, whoever tries again", () =>
    Effect.gen(function* () {
      const pending = make()
      const entry = pending.open(request(1))
      const waiting = yield* Effect.fork(Effect.either(entry.await))
      yield* Recorder.settle
      assert.deepStrictEqual(pending.get("req_1"), request(1))
      assert.isTrue(pending.settle("req_1", Exit.succeed("first"), "ada"))
      assert.isFalse(pending.settle("req_1", Exit.fail("second"), "bob"))
      assert.strictEqual(yield* Effect.flatten(Fiber.join(waiting)), "first")
      assert.strictEqual(pending.settledBy("req_1"), "ada")
      assert.isUndefined(pending.get("req_1"))
      assert.strictEqual(pending.size(), 0)
    })
  )

  it.effect("may be settled before anybody waits", () =>
    Effect.gen(function* () {
      const pending = make()
      const entry = pending.open(request(1))
      pending.settle("req_1", Exit.fail("no"), "ada")
      assert.strictEqual(yield* Effect.flip(entry.await), "no")
    })
  )

  it.effect("stays open when the one who waits is interrupted", () =>
    Effect.gen(function* () {
      const pending = make()
      const entry = pending.open(request(1))
      const waiting = yield* Effect.fork(entry.await)
      yield* Recorder.settle
      yield* Fiber.interrupt(waiting)
      assert.strictEqual(pending.size(), 1)
      assert.isTrue(pending.settle("req_1", Exit.succeed("late"), "ada"))
      assert.strictEqual(yield* entry.await, "late")
    })
  )

  it("does not know what was never opened", () => {
    const pending = make()
    assert.isFalse(pending.settle("req_1", Exit.succeed("x"), "ada"))
    assert.isUndefined(pending.settledBy("req_1"), "and it is not taken for settled either")
    for (const name of ["__proto__", "constructor", ""]) assert.isUndefined(pending.get(name))
  })

  it("is listed oldest first", () => {
    const pending = make()
    for (const n of [3, 1, 2]) pending.open(request(n))
    pending.settle("req_1", Exit.succeed("x"), "ada")
    pending.open(request(4))
    assert.deepStrictEqual(pending.list(), [request(3), request(2), request(4)])
  })

  it("remembers at least the last 512 who settled, and not for ever", () => {
    const pending = make()
    for (let n = 0; n < 5_000; n++) {
      pending.open(request(n))
      pending.settle(`req_${n}`, Exit.succeed("x"), `by ${n}`)
    }
    for (let n = 4_999; n > 4_999 - 512; n--) assert.strictEqual(pending.settledBy(`req_${n}`), `by ${n}`)
    assert.isUndefined(pending.settledBy("req_3000"))
  })

  it.effect.prop(
    "gets each answer to its own asker, 10,000 of them in any order, and leaves nothing behind",
    [FastCheck.integer()],
    ([seed]) =>
      Effect.gen(function* () {
        const count = 10_000
        const pending = make()
        const entries = Array.from({ length: count }, (_, n) => pending.open(request(n)))
        const askers = yield* Effect.forEach(entries, (entry) => Effect.fork(entry.await))
        yield* Recorder.settle
        assert.strictEqual(pending.size(), count)
        for (const n of shuffled(count, seed)) {
          assert.isTrue(pending.settle(`req_${n}`, Exit.succeed(`answer ${n}`), "ada"))
        }
        for (const [n, asker] of askers.entries()) assert.strictEqual(yield* Fiber.join(asker), `answer ${n}`)
        assert.strictEqual(pending.size(), 0)
        assert.deepStrictEqual(pending.list(), [])
      }),
    { fastCheck: { numRuns: 3 } }
  )

  it("costs the same however much is open: settling one looks at no other", () => {
    const answer = Exit.succeed("x")
    const costs = [10, 100, 10_000].map((count) => {
      const pending = make()
      for (let n = 0; n < count; n++) pending.open(request(n))
      const some = shuffled(count, count).slice(0, 10)
      return countLooks(() => {
        for (const n of some) pending.settle(`req_${n}`, answer, "ada")
      })
    })
    assert.deepStrictEqual(costs, [0, 0, 0])
  })
})

/** How often something iterates over a map or an array, or searches one, while `run` runs. */
const countLooks = (run: () => void): number => {
  let looks = 0
  const spied = [
    [Map.prototype, ["values", "keys", "entries", "forEach", Symbol.iterator]],
    [Array.prototype, ["indexOf", "find", "findIndex", "filter", "splice", "shift"]]
  ] as const
  const restore = spied.flatMap(([prototype, names]) =>
    names.map((name) => {
      const original = Object.getOwnPropertyDescriptor(prototype, name)
      assert(original !== undefined)
      Object.defineProperty(prototype, name, {
        ...original,
        value: function (this: unknown, ...args: Array<unknown>) {
          looks++
          return original.value.apply(this, args)
        }
      })
      return () => Object.defineProperty(prototype, name, original)
    })
  )
  looks = 0
  run()
  for (const undo of restore) undo()
  return looks
}

const shuffled = (count: number, seed: number): ReadonlyArray<number> => {
  const numbers = Array.from({ length: count }, (_, n) => n)
  let state = seed >>> 0
  for (let last = count - 1; last > 0; last--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    const other = state % (last + 1)
    const moved = numbers[last] ?? 0
    numbers[last] = numbers[other] ?? 0
    numbers[other] = moved
  }
  return numbers
}
