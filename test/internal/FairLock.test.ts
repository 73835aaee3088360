import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FairLock from "../../src/internal/FairLock.js"

const settle = Effect.repeatN(Effect.yieldNow(), 20)

describe("a queue of dialogs", () => {
  it.effect("lets nobody slip in between one dialog's end and the next one's start", () =>
    Effect.gen(function* () {
      const queue = FairLock.make()
      const order: Array<string> = []
      const gate = yield* Deferred.make<void>()
      const held = yield* Effect.fork(queue.hold(Deferred.await(gate)))
      yield* settle
      const waiting = yield* Effect.fork(queue.hold(Effect.sync(() => order.push("waited"))))
      yield* settle
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.zipRight(Fiber.join(held), queue.hold(Effect.sync(() => order.push("came late"))))
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(order, ["waited", "came late"])
      assert.strictEqual(queue.size(), 0)
    })
  )

  it.effect("forgets one that is interrupted in line", () =>
    Effect.gen(function* () {
      const queue = FairLock.make()
      const held = yield* Effect.fork(queue.hold(Effect.never))
      yield* settle
      const waiting = yield* Effect.fork(queue.hold(Effect.never))
      yield* settle
      assert.strictEqual(queue.size(), 2)
      yield* Fiber.interrupt(waiting)
      assert.strictEqual(queue.size(), 1)
      yield* Fiber.interrupt(held)
      assert.strictEqual(queue.size(), 0)
    })
  )

  it.effect("hands the turn on when it reaches somebody who was interrupted in that very moment", () =>
    Effect.gen(function* () {
      const queue = FairLock.make()
      const gate = yield* Deferred.make<Fiber.RuntimeFiber<never>>()
      // The same step that hands the turn over also interrupts whoever gets it.
      yield* Effect.fork(
        Effect.map(queue.hold(Deferred.await(gate)), (victim) => victim.unsafeInterruptAsFork(victim.id()))
      )
      yield* settle
      const unlucky = yield* Effect.fork(queue.hold(Effect.never))
      yield* settle
      const next = yield* Effect.fork(queue.hold(Effect.succeed("mine")))
      yield* settle
      yield* Deferred.succeed(gate, unlucky)
      assert.strictEqual(yield* Fiber.join(next), "mine")
      yield* Fiber.await(unlucky)
      assert.strictEqual(queue.size(), 0)
    })
  )
})
