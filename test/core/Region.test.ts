import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Region from "../../src/core/Region.js"

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

/** An effect made of work, and what nobody but that work holds. */
const loaded = (make: (work: Effect.Effect<number>) => Effect.Effect<number>) => {
  const held = new Uint8Array(1000)
  return { effect: make(Effect.sync(() => held.length)), seen: new WeakRef(held) }
}

/** Whether it is gone once everything that can be collected is. A WeakRef keeps what it was made with until the next tick. */
const isGone = (seen: WeakRef<object>) =>
  Effect.map(
    Effect.promise(() => new Promise<void>((resume) => setImmediate(resume))),
    () => {
      collect()
      return seen.deref() === undefined
    }
  )

describe("work that runs once", () => {
  it.effect("runs, and dies when it is run again", () =>
    Effect.gen(function* () {
      let runs = 0
      const work = Region.once(Effect.sync(() => ++runs))
      assert.strictEqual(yield* work, 1)
      const again = yield* Effect.exit(work)
      assert.isTrue(Exit.isFailure(again) && Cause.isDie(again.cause))
      assert.strictEqual(runs, 1)
    })
  )

  it.live("is let go when it begins, though the effect that ran it is kept", () =>
    Effect.gen(function* () {
      const { effect, seen } = loaded((work) => Region.once(work))
      assert.isFalse(yield* isGone(seen))
      assert.strictEqual(yield* Effect.interruptible(effect), 1000)
      assert.isTrue(yield* isGone(seen))
      assert.isTrue(Effect.isEffect(effect))
    })
  )
})

describe("an uninterruptible region", () => {
  it.effect("runs as often as it is run, and restores what was around it as Effect's does", () =>
    Effect.gen(function* () {
      const interruptibleWithin = (mask: typeof Region.uninterruptibleMask) =>
        mask((restore) =>
          Effect.all([Effect.checkInterruptible(Effect.succeed), restore(Effect.checkInterruptible(Effect.succeed))])
        )
      for (const around of [Effect.interruptible, Effect.uninterruptible]) {
        const ours = around(interruptibleWithin(Region.uninterruptibleMask))
        const theirs = around(interruptibleWithin(Effect.uninterruptibleMask))
        for (let i = 0; i < 2; i++) assert.deepStrictEqual(yield* ours, yield* theirs)
      }
    })
  )

  it.effect("is not interrupted but where it restores", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const log: Array<string> = []
      const fiber = yield* Effect.fork(
        Region.uninterruptibleMask((restore) =>
          Effect.gen(function* () {
            yield* Deferred.succeed(begun, undefined)
            yield* Deferred.await(goOn)
            log.push("guarded")
            yield* restore(Effect.sync(() => log.push("restored")))
          }).pipe(Effect.onInterrupt(() => Effect.sync(() => log.push("interrupted"))))
        )
      )
      yield* Deferred.await(begun)
      yield* Fiber.interruptFork(fiber)
      yield* Deferred.succeed(goOn, undefined)
      assert.isTrue(Exit.isInterrupted(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(log, ["guarded", "interrupted"])
    })
  )

  it.live("lets go what it restored when that begins, though the effect is kept", () =>
    Effect.gen(function* () {
      const kept: Array<Effect.Effect<number>> = []
      const { effect, seen } = loaded((work) => {
        let next: Effect.Effect<number> | undefined = work
        return Region.uninterruptibleMask((restore) => {
          const restored = restore(next ?? Effect.die("ran twice"))
          next = undefined
          kept.push(restored)
          return restored
        })
      })
      assert.isFalse(yield* isGone(seen))
      assert.strictEqual(yield* effect, 1000)
      assert.isTrue(yield* isGone(seen))
      assert.lengthOf(kept, 1)
    })
  )
})
