import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"
import * as fc from "fast-check"
import * as DetachedFiber from "../../src/internal/DetachedFiber.js"
import { OneShot } from "../../src/internal/OneShot.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import { TurnFiber, type Fork, type Steps } from "../../src/turn/TurnFiber.js"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import { settle } from "../kit/Recorder.js"
import * as Runs from "../kit/Runs.js"

/** One whose failures are seen. */
const make = () => {
  const seen = { failed: new Array<Cause.Cause<never>>() }
  const legs = new TurnFiber({ gracePeriod: "5 seconds", failed: (cause) => seen.failed.push(cause) })
  return { legs, seen }
}

/** Notes in which fiber it runs. */
const notedIn = <A, E>(fibers: Set<string>, effect: Effect.Effect<A, E>) =>
  Effect.flatMap(Effect.fiberId, (id) => {
    fibers.add(FiberId.threadName(id))
    return effect
  })

/** Runs a turn as a session does, in a fiber that a test waits for. */
const start = (legs: TurnFiber, work: () => Steps) =>
  Effect.gen(function* () {
    const nobody = yield* HaltChannel.make
    const end = new OneShot<void>()
    const place = yield* DetachedFiber.here
    const fork: Fork = (work) => void DetachedFiber.unsafeFork(place, Interactor.inFiber(nobody.interactor)(work))
    fork(Effect.suspend(() => legs.run(work(), () => Effect.sync(() => end.complete()), fork)))
    return end
  })

const kindOf = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.isSuccess(exit) ? `value ${String(exit.value)}` : Cause.isInterruptedOnly(exit.cause) ? "interrupted" : "failed"

describe("the legs of a turn", () => {
  it.effect("nobody cuts: one fiber, whatever the number of sections", () =>
    Effect.gen(function* () {
      const { legs, seen } = make()
      const ends: Array<string> = []
      const fibers = new Set<string>()
      const work = function* (): Steps {
        for (const n of [1, 2, 3]) {
          ends.push(kindOf(yield* legs.section(notedIn(fibers, n === 2 ? Effect.fail("no") : Effect.succeed(n)))))
        }
      }
      yield* yield* start(legs, work)
      assert.deepStrictEqual(ends, ["value 1", "failed", "value 3"])
      assert.strictEqual(fibers.size, 1)
      assert.deepStrictEqual(seen, { failed: [] })
    })
  )

  it.effect("what was cut out ends, with what it has to clean up, and the turn goes on in another fiber", () =>
    Effect.gen(function* () {
      const { legs } = make()
      const told: Array<string> = []
      const fibers = new Set<string>()
      const waiting = Effect.onInterrupt(Effect.never, () => Effect.sync(() => told.push("cleaned up")))
      const work = function* (): Steps {
        told.push(kindOf(yield* legs.section(notedIn(fibers, waiting))))
        told.push(kindOf(yield* legs.section(notedIn(fibers, Effect.succeed("on")))))
      }
      const running = yield* start(legs, work)
      yield* settle
      legs.interruptSection()
      legs.interruptSection()
      yield* running
      assert.deepStrictEqual(told, ["cleaned up", "interrupted", "value on"])
      assert.strictEqual(fibers.size, 2)
    })
  )

  it.effect("between two sections there is nothing to cut", () =>
    Effect.gen(function* () {
      const { legs } = make()
      const gate = yield* Deferred.make<void>()
      const ends: Array<string> = []
      const fibers = new Set<string>()
      const work = function* (): Steps {
        ends.push(kindOf(yield* legs.section(notedIn(fibers, Effect.succeed(1)))))
        yield* Deferred.await(gate)
        ends.push(kindOf(yield* legs.section(notedIn(fibers, Effect.succeed(2)))))
      }
      const running = yield* start(legs, work)
      yield* settle
      legs.interruptSection()
      yield* Deferred.succeed(gate, undefined)
      yield* running
      assert.deepStrictEqual(ends, ["value 1", "value 2"])
      assert.strictEqual(fibers.size, 1)
    })
  )

  it.effect("what does not stop is left behind when the turn is stopped, and is not heard any more", () =>
    Effect.gen(function* () {
      const { legs } = make()
      const gate = yield* Deferred.make<void>()
      const told: Array<string> = []
      const work = function* (): Steps {
        const stubborn = Effect.uninterruptible(Deferred.await(gate))
        told.push(kindOf(yield* legs.section(stubborn, () => told.push("left behind"))))
      }
      const running = yield* start(legs, work)
      yield* settle
      legs.stop()
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(told, [])
      yield* TestClock.adjust("1 second")
      yield* running
      assert.deepStrictEqual(told, ["left behind", "interrupted"])
      yield* Deferred.succeed(gate, undefined)
      yield* settle
      assert.deepStrictEqual(told, ["left behind", "interrupted"], "and its end is nobody's")
    })
  )

  it.effect("what may not be left behind is waited for", () =>
    Effect.gen(function* () {
      const { legs } = make()
      const gate = yield* Deferred.make<void>()
      const ends: Array<string> = []
      const work = function* (): Steps {
        ends.push(kindOf(yield* legs.section(Effect.uninterruptible(Deferred.await(gate)))))
      }
      const running = yield* start(legs, work)
      yield* settle
      legs.stop()
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(ends, [])
      yield* Deferred.succeed(gate, undefined)
      yield* running
      assert.lengthOf(ends, 1)
    })
  )

  it.effect("one that was stopped before it began does nothing", () =>
    Effect.gen(function* () {
      const { legs } = make()
      const told: Array<string> = []
      legs.stop()
      const run = Effect.zipRight(
        Effect.sync(() => told.push("begun")),
        Effect.never
      )
      const work = function* (): Steps {
        told.push(kindOf(yield* legs.section(run)))
      }
      yield* yield* start(legs, work)
      assert.deepStrictEqual(told, ["interrupted"])
    })
  )

  it.effect("a crash between the sections is told, and ends the turn", () =>
    Effect.gen(function* () {
      const { legs, seen } = make()
      const work = function* (): Steps {
        yield* legs.section(Effect.void)
        throw new Error("broken")
      }
      yield* yield* start(legs, work)
      assert.deepStrictEqual(seen.failed.map(Cause.isDie), [true])
    })
  )
})

// -----------------------------------------------------------------------------------------------------------------

/** What one section does. */
const section = fc.constantFrom("at once", "gate", "stubborn", "fails")
const action = fc.oneof(
  { weight: 4, arbitrary: fc.constant("cut" as const) },
  { weight: 4, arbitrary: fc.constant("open" as const) },
  { weight: 2, arbitrary: fc.constant("stop" as const) },
  { weight: 2, arbitrary: fc.constant("a minute" as const) },
  { weight: 4, arbitrary: fc.constant("let run" as const) }
)

describe("whatever is cut and stopped, and when", () => {
  it("every section that began is followed once, in order, and the turn ends", () =>
    fc.assert(
      fc.asyncProperty(fc.array(section, { maxLength: 6 }), fc.array(action, { maxLength: 14 }), (sections, actions) =>
        Effect.gen(function* () {
          const { legs, seen } = make()
          const gates = yield* Effect.forEach(sections, () => Deferred.make<void>())
          const log: Array<string> = []
          let current = -1
          let running = 0
          const body = (kind: string, at: number): Effect.Effect<void, string> => {
            const begun = Effect.sync(() => {
              log.push(`begin ${at}`)
              assert.isFalse(legs.isStopped, "nothing begins once the turn is stopped")
              assert.strictEqual(++running, 1)
            })
            const gate = gates[at] === undefined ? Effect.void : Deferred.await(gates[at])
            const inner =
              kind === "gate"
                ? gate
                : kind === "stubborn"
                  ? Effect.uninterruptible(gate)
                  : kind === "fails"
                    ? Effect.fail("no")
                    : Effect.void
            return Effect.zipRight(begun, inner)
          }
          const work = function* (): Steps {
            for (const [at, kind] of sections.entries()) {
              if (legs.isStopped) break
              current = at
              yield* legs.section(body(kind, at), kind === "stubborn" ? () => undefined : undefined)
              running = 0
              log.push(`then ${at}`)
            }
            log.push("end")
          }
          const end = yield* start(legs, work)
          for (const what of actions) {
            if (what === "cut") legs.interruptSection()
            else if (what === "stop") legs.stop()
            else if (what === "a minute") yield* TestClock.adjust("1 minute")
            else if (what === "let run") yield* Effect.yieldNow()
            else
              for (const gate of gates.slice(Math.max(0, current), current + 1))
                yield* Deferred.succeed(gate, undefined)
          }
          legs.stop()
          yield* TestClock.adjust("1 minute")
          yield* end
          const before = [...log]
          for (const gate of gates) yield* Deferred.succeed(gate, undefined)
          yield* settle
          assert.deepStrictEqual(log, before, "what was left behind is not heard any more")
          assert.deepStrictEqual(seen.failed, [])
          const thens = log.filter((entry) => entry.startsWith("then"))
          assert.deepStrictEqual(
            thens,
            thens.map((_, at) => `then ${at}`)
          )
          assert.isAtMost(log.filter((entry) => entry.startsWith("begin")).length, thens.length)
          if (log.length > 0) assert.strictEqual(log.at(-1), "end")
        }).pipe(Effect.provide(TestContext.TestContext), Effect.runPromise)
      ),
      { numRuns: Runs.of(1_400) }
    ))
})
