import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { RequestId } from "../../src/core/Id.js"
import { OneShot } from "../../src/internal/OneShot.js"
import * as ChildRequestQueue from "../../src/inbox/ChildRequestQueue.js"
import { InteractionCancelled } from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import { settle } from "../kit/Recorder.js"
import * as Runs from "../kit/Runs.js"
import * as Shuffled from "../kit/Shuffled.js"

const entry = (id: string) =>
  ChildRequestQueue.Withdraw({
    requestId: id,
    why: new InteractionCancelled({ requestId: id as RequestId }),
    taken: new OneShot()
  })

const ids = (entries: ReadonlyArray<ChildRequestQueue.Entry>) =>
  entries.map((entry) => (entry._tag === "Withdraw" ? entry.requestId : entry.raised.request.requestId))

describe("RequestLane", () => {
  it.effect("hands over all that is there, in order of arrival, and then nothing twice", () =>
    Effect.gen(function* () {
      const lane = ChildRequestQueue.make()
      for (const id of ["a", "b", "c"]) lane.post(entry(id))
      assert.deepStrictEqual(ids(yield* lane.take), ["a", "b", "c"])
      const waiting = yield* Effect.fork(lane.take)
      yield* settle
      assert.isTrue(Option.isNone(yield* Fiber.poll(waiting)))
      lane.post(entry("d"))
      lane.post(entry("e"))
      assert.deepStrictEqual(ids(yield* Fiber.join(waiting)), ["d", "e"])
    })
  )

  it.effect("keeps what comes while nobody reads, also after a reader that gave up", () =>
    Effect.gen(function* () {
      const lane = ChildRequestQueue.make()
      const first = yield* Effect.fork(lane.take)
      yield* settle
      yield* Fiber.interrupt(first)
      lane.post(entry("a"))
      assert.deepStrictEqual(ids(yield* lane.take), ["a"])
    })
  )

  it("loses nothing and changes no order, whatever runs between looking and waiting", () =>
    fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 1, max: 12 }), async (seed, count) => {
        const random = Shuffled.random(seed)
        const sent = Array.from({ length: count }, (_, index) => `r${index}`)
        const read: Array<string> = []
        const program = Effect.gen(function* () {
          const lane = ChildRequestQueue.make()
          const reader = yield* Effect.fork(
            Effect.repeat(
              Effect.map(lane.take, (entries) => read.push(...ids(entries))),
              { until: () => read.length === count }
            )
          )
          for (const id of sent) {
            yield* Effect.repeatN(Effect.yieldNow(), Math.floor(random() * 4))
            lane.post(entry(id))
          }
          yield* Fiber.join(reader)
        })
        await Effect.runPromise(Effect.withScheduler(program, new Shuffled.Shuffled(random)))
        assert.deepStrictEqual(read, sent)
      }),
      { numRuns: Runs.of(500), timeout: 30_000, endOnFailure: true }
    ))
})

describe("a child's question", () => {
  const raise = (id: string) =>
    Effect.map(InteractionSample.request(InteractionSample.samples.Ask.interaction), (request) => {
      const late: Array<ChildRequestQueue.Late> = []
      const named: InteractionRequest = { ...request, requestId: id as RequestId }
      return { late, raised: new ChildRequestQueue.ChildRequest(named, {}, (reply) => void late.push(reply)) }
    })
  const said = (answer: string, by: string) => Exit.succeed({ answer, by, how: "answered" as const })
  const gone = Exit.fail(new InteractionCancelled({ requestId: "r1" as RequestId }))

  it.effect("ends once: the first reply counts, and each later one is reported with the winner", () =>
    Effect.gen(function* () {
      const { late, raised } = yield* raise("r1")
      assert.isTrue(raised.isOpen)
      assert.isTrue(raised.reply(said("first", "main"), "main"))
      assert.isFalse(raised.reply(said("second", "else"), "else"))
      assert.isFalse(raised.close(gone))
      assert.isFalse(raised.isOpen)
      assert.strictEqual((yield* raised.await).answer, "first")
      assert.deepStrictEqual(late, [{ requestId: "r1", by: "else", winner: "main" }])
    })
  )

  it.effect("takes no reply once its asker has gone", () =>
    Effect.gen(function* () {
      const { late, raised } = yield* raise("r1")
      assert.isTrue(raised.close(gone))
      assert.isFalse(raised.reply(said("yes", "main"), "main"))
      assert.strictEqual((yield* Effect.flip(raised.await))._tag, "InteractionCancelled")
      assert.deepStrictEqual(late, [{ requestId: "r1", by: "main", winner: "the asker" }])
    })
  )

  it.effect("wakes its own asker, in whatever order the questions are answered", () =>
    Effect.gen(function* () {
      const all = yield* Effect.forEach(
        Array.from({ length: 50 }, (_, index) => `r${index}`),
        raise
      )
      const askers = yield* Effect.forEach(all, ({ raised }) => Effect.fork(raised.await))
      for (const { raised } of all.toReversed())
        assert.isTrue(raised.reply(said(`for ${raised.request.requestId}`, "main"), "main"))
      for (const [index, asker] of askers.entries())
        assert.strictEqual((yield* Fiber.join(asker)).answer, `for r${index}`)
    })
  )

  it.effect("stays open when its asker is interrupted, and a later waiter gets the reply", () =>
    Effect.gen(function* () {
      const { raised } = yield* raise("r1")
      const asker = yield* Effect.fork(raised.await)
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(asker)
      assert.isTrue(raised.isOpen)
      assert.isTrue(raised.reply(said("late", "main"), "main"))
      assert.strictEqual((yield* raised.await).answer, "late")
    })
  )
})
