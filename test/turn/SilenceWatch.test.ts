import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"

describe("a model that says nothing", () => {
  it.scoped("for five minutes fails as one that may be tried again, and is", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies(Stream.never, { text: "here I am" })
      const kit = yield* Kit.start({ model })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* TestClock.adjust("299 seconds")
      assert.strictEqual(heard.length, 1)
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      const [retried] = yield* kit.of("ModelRetried")
      assert.strictEqual(retried?.reason, "The model said nothing for 5m.")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("again and again ends the turn as failed", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: Kit.replies(Stream.never, Stream.never).model,
        agent: { limits: { modelAttempts: 2, modelSilence: "1 minute" } }
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      for (let i = 0; i < 4; i++) {
        yield* settle
        yield* TestClock.adjust("1 minute")
      }
      const end = yield* Fiber.join(running)
      assert.deepStrictEqual(end, { _tag: "Failed", error: "The model said nothing for 1m.", steps: 1 } as never)
      assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("but a word now and then is waited for, however long it takes", () =>
    Effect.gen(function* () {
      const slow = Stream.concat(
        Stream.mapEffect(Stream.range(1, 10), (n) => Effect.as(Effect.sleep("4 minutes"), Kit.text(`${n} `))),
        Stream.make(Kit.finish())
      )
      const kit = yield* Kit.start({ model: Kit.replies(slow).model })
      const running = yield* Effect.fork(kit.agent.run("go"))
      for (let i = 0; i < 10; i++) {
        yield* settle
        yield* TestClock.adjust("4 minutes")
      }
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.of("ModelRetried"), [])
    })
  )

  it.scoped("is waited for for ever where the limit is zero", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { model } = Kit.replies(Kit.halting([], begun))
      const kit = yield* Kit.start({ model, agent: { limits: { modelSilence: 0 } } })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* Deferred.await(begun)
      yield* TestClock.adjust("1 day")
      assert.isTrue(Option.isNone(yield* Fiber.poll(running)))
      yield* kit.agent.cancel()
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("and does not let itself be interrupted is left behind, by silence and by cancel", () =>
    Effect.gen(function* () {
      const stuck = Stream.fromEffect(Effect.uninterruptible(Effect.never))
      const { model } = Kit.replies(stuck, { text: "better" }, stuck)
      const kit = yield* Kit.start({ model, agent: { limits: { modelSilence: "1 minute" } } })
      const running = yield* Effect.fork(kit.agent.run("go"))
      for (const time of ["1 minute", "5 seconds", "2 seconds"] as const) {
        yield* settle
        yield* TestClock.adjust(time)
      }
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      yield* kit.agent.send("again")
      yield* settle
      const cancelling = yield* Effect.fork(kit.agent.cancel())
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(Option.getOrThrow(yield* Fiber.join(cancelling))._tag, "Cancelled")
      assert.strictEqual((yield* kit.of("AgentError")).length, 2)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.live("is noticed by the real clock too", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { model } = Kit.replies(Stream.never, { text: "here I am" })
        const kit = yield* Kit.start({ model, agent: { limits: { modelSilence: 20, retryDelay: 0 } } })
        assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
        assert.strictEqual((yield* kit.of("ModelRetried")).length, 1)
      })
    )
  )
})
