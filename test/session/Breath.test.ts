/** An agent whose model and tools answer at once keeps nothing else from happening. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Model from "../../src/model/Model.js"
import * as Kit from "../kit/session.js"

/**
 * Counts how often a timer fires while `work` runs, and yields how much of the processor the work took from one time to the
 * next, in milliseconds: not how long that was, because others may want the processor too. And what became of the work.
 */
const betweenTicks = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<readonly [millis: number, exit: A], E, R> =>
  Effect.suspend(() => {
    let ticks = 0
    const timer = setInterval(() => ticks++, 1)
    const before = process.cpuUsage()
    return Effect.ensuring(
      Effect.map(work, (value) => {
        const { system, user } = process.cpuUsage(before)
        return [(user + system) / 1_000 / ticks, value] as const
      }),
      Effect.sync(() => clearInterval(timer))
    )
  })

/** A model that says the same for ever, at once. */
const tireless = (parts: ReadonlyArray<Model.Part>): Model.Service => ({
  id: "test/tireless",
  stream: () => Stream.fromIterable(parts)
})

const calling = tireless([Kit.call("work", { name: "a" }), Kit.finish("tool-calls")])
const talking = tireless([Kit.text("hello"), Kit.finish()])

const table: ReadonlyArray<
  readonly [name: string, work: Effect.Effect<Effect.Effect<unknown, unknown>, never, Scope.Scope>]
> = [
  [
    "calls tools in one turn",
    Effect.map(Kit.start({ model: calling, agent: { limits: { maxSteps: 1_000_000 } } }), ({ agent }) =>
      agent.run("go")
    )
  ],
  [
    "ends one turn after the other",
    Effect.map(Kit.start({ model: talking }), ({ agent }) => Effect.forever(agent.run("go")))
  ],
  [
    "says very much in one answer, piece by piece",
    Effect.map(
      Kit.start({
        model: { id: "test/endless", stream: () => Stream.repeatValue(Kit.text("a")) },
        agent: { limits: { maxGeneration: Number.POSITIVE_INFINITY }, events: { capacity: 16 } }
      }),
      ({ agent }) => agent.run("go")
    )
  ],
  [
    "says very much in one answer, all at once",
    Effect.map(
      Kit.start({
        model: tireless([...Array.from({ length: 500_000 }, () => Kit.text("a")), Kit.finish()]),
        agent: { limits: { maxGeneration: Number.POSITIVE_INFINITY }, events: { capacity: 16 } }
      }),
      ({ agent }) => Effect.forever(agent.run("go"))
    )
  ]
]

describe("an agent that never waits", () => {
  for (const [name, starting] of table) {
    it.scopedLive(`and ${name} lets timers fire, its own timeout and a cancel among them`, () =>
      Effect.gen(function* () {
        const work = yield* starting
        const [millis, end] = yield* betweenTicks(Effect.timeoutOption(Effect.either(work), "400 millis"))
        assert.isTrue(Option.isNone(end), "its time was up")
        // On all threads, while the code is still being compiled; without a pause there is no tick at all.
        assert.isBelow(millis, 200)
      })
    )
  }

  it.scopedLive("can be cancelled from outside", () =>
    Effect.gen(function* () {
      const { agent } = yield* Kit.start({ model: calling, agent: { limits: { maxSteps: 1_000_000 } } })
      const running = yield* Effect.fork(agent.run("go"))
      yield* Effect.sleep("50 millis")
      yield* agent.cancel()
      assert.strictEqual((yield* Fiber.join(running))._tag, "Cancelled")
    })
  )
})
