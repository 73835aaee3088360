import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as DetachedFiber from "../../src/internal/DetachedFiber.js"
import * as Origin from "../../src/core/Origin.js"

describe("a detached fiber", () => {
  it.effect("has the values of who started it, and goes on without it", () =>
    Effect.gen(function* () {
      const go = yield* Deferred.make<void>()
      const starter = yield* Effect.fork(
        DetachedFiber.fork(Effect.zipRight(Deferred.await(go), Origin.current)).pipe(
          Origin.withOrigin({ ...Origin.outside, agent: "main/starter" })
        )
      )
      const fiber = yield* Fiber.join(starter)
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual((yield* Fiber.join(fiber)).agent, "main/starter")
    })
  )

  it.scoped("changes nothing for who started it", () =>
    Effect.gen(function* () {
      const ref = yield* FiberRef.make("before")
      const fiber = yield* DetachedFiber.fork(Effect.as(FiberRef.set(ref, "inside"), "done"))
      yield* Fiber.await(fiber)
      assert.strictEqual(yield* FiberRef.get(ref), "before")
    })
  )

  it.effect("begins also when it is interrupted at once, and ends where it says that it may be", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const work = Effect.ensuring(
        Effect.interruptible(Effect.never),
        Effect.sync(() => told.push("over"))
      )
      const fiber = yield* DetachedFiber.fork(work)
      const exit = yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.isInterrupted(exit))
      assert.deepStrictEqual(told, ["over"])
    })
  )
})
