import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { RequestId } from "../../src/core/Id.js"
import { OneShot } from "../../src/internal/OneShot.js"
import * as ChildRequestQueue from "../../src/inbox/ChildRequestQueue.js"
import { InteractionCancelled } from "../../src/interaction/InteractionError.js"
import { settle } from "../kit/Recorder.js"
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
      { numRuns: 500, timeout: 30_000, endOnFailure: true }
    ))
})
