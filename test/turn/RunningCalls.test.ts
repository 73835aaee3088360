import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import type { ToolCallId } from "../../src/core/Id.js"
import { RunningCalls, ToolCallNotRunning } from "../../src/turn/RunningCalls.js"
import { settle } from "../kit/Recorder.js"

const call = (id: string) => ({ id: id as ToolCallId, name: "work", params: {} })
const stuck = Effect.uninterruptible(Effect.never)

/** Running calls, what was said of those left behind, and the ids of those that are over. */
const make = () => {
  const [said, over]: [Array<string>, Array<string>] = [[], []]
  const calls = new RunningCalls("5 seconds", (sentence) => said.push(sentence))
  /** Begins a call in a fiber of its own, which releases the call at its end. */
  const begin = (id: string, work: Effect.Effect<unknown>) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkDaemon(Effect.asVoid(work))
      const entry = calls.begin(
        call(id),
        fiber,
        () => void over.push(id),
        () => true
      )
      fiber.addObserver(() => calls.release(entry))
      yield* settle
      return { entry, fiber }
    })
  return { begin, calls, over, said }
}

const left = (id: string) =>
  `work (${id}) did not stop within 5s and was abandoned. Nobody sees what it still does; make its handler interruptible.`

describe("the calls of a session", () => {
  it.effect("are at work once their tools run, until they are released, once", () =>
    Effect.gen(function* () {
      const { begin, calls, over } = make()
      assert.deepStrictEqual([calls.ids, calls.atWork], [[], []])
      assert.isFalse(calls.has("a" as ToolCallId))
      const { entry } = yield* begin("a", Effect.never)
      const fiber = yield* Effect.fork(Effect.void)
      const waiting = calls.begin(call("b"), fiber, () => void over.push("b"))
      assert.deepStrictEqual<ReadonlyArray<string>>(calls.ids, ["a", "b"])
      assert.deepStrictEqual(calls.atWork, [entry])
      assert.deepStrictEqual(
        ["a", "b"].map((id) => calls.has(id as ToolCallId)),
        [true, false]
      )
      calls.release(waiting)
      calls.release(waiting)
      assert.deepStrictEqual(over, ["b"])
      assert.deepStrictEqual<ReadonlyArray<string>>(calls.ids, ["a"])
    })
  )

  it.effect("of one id are kept apart: the end of the first leaves the second", () =>
    Effect.gen(function* () {
      const { begin, calls } = make()
      const first = yield* begin("a", Effect.never)
      const second = yield* begin("a", Effect.never)
      calls.release(first.entry)
      assert.deepStrictEqual(calls.atWork, [second.entry])
    })
  )

  it.effect("are cancelled alone, and the cancel waits for the end", () =>
    Effect.gen(function* () {
      const { begin, calls, over, said } = make()
      const cleaning = Effect.onInterrupt(Effect.never, () => Effect.sleep("3 seconds"))
      const { fiber } = yield* begin("a", cleaning)
      yield* begin("b", Effect.never)
      const cancelling = yield* Effect.fork(calls.cancel("a"))
      yield* settle
      assert.deepStrictEqual(
        ["a", "b", "c"].map((id) => calls.isCancelled(id as ToolCallId)),
        [true, false, false]
      )
      assert.isTrue(Option.isNone(yield* Fiber.poll(cancelling)))
      yield* TestClock.adjust("3 seconds")
      assert.isTrue(yield* Fiber.join(cancelling))
      assert.isTrue(Option.isSome(yield* Fiber.poll(fiber)))
      assert.deepStrictEqual([over, said], [["a"], []])
      assert.deepStrictEqual<ReadonlyArray<string>>(calls.ids, ["b"])
    })
  )

  it.effect("that wait to be decided are skipped, and others are not there", () =>
    Effect.gen(function* () {
      const { calls } = make()
      assert.isFalse(yield* calls.cancel("a"))
      calls.waiting = { skip: (id) => id === "a" }
      assert.isTrue(yield* calls.cancel("a"))
      assert.isFalse(yield* calls.cancel("b"))
    })
  )

  it.effect("stop together, and only those that do not stop in time are left behind", () =>
    Effect.gen(function* () {
      const { begin, calls, over, said } = make()
      const [ends, ready, hangs] = yield* Effect.all([
        begin(
          "ends",
          Effect.onInterrupt(Effect.never, () => Effect.sleep("1 second"))
        ),
        begin("ready", Effect.void),
        begin("hangs", stuck)
      ])
      yield* calls.stop([])
      yield* calls.stop([ready.entry])
      const stopping = yield* Effect.fork(calls.stop([ends.entry, ready.entry, hangs.entry]))
      yield* settle
      yield* TestClock.adjust("4 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.poll(stopping)))
      assert.deepStrictEqual([over, said], [["ready", "ends"], []])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(stopping)
      assert.deepStrictEqual([over, said], [["ready", "ends", "hangs"], [left("hangs")]])
      calls.abandon(hangs.entry)
      assert.deepStrictEqual([said, calls.ids], [[left("hangs")], []])
    })
  )

  it.effect("that all stop do not use up the time", () =>
    Effect.gen(function* () {
      const { begin, calls, over } = make()
      const all = yield* Effect.forEach(["a", "b", "c"], (id) => begin(id, Effect.never))
      yield* calls.stop(all.map(({ entry }) => entry))
      assert.deepStrictEqual([...over].sort(), ["a", "b", "c"])
    })
  )

  it("that do not run are named, beside those that do", () => {
    const said = (...running: ReadonlyArray<string>) => new ToolCallNotRunning({ toolCallId: 'x"y', running }).message
    assert.strictEqual(said(), 'There is no running tool call "x\\"y". No call runs.')
    assert.strictEqual(said("a", "b"), 'There is no running tool call "x\\"y". Running: a, b.')
  })
})
