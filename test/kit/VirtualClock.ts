/**
 * A clock for property tests: like `TestClock` it moves only on demand, but it does not check every fiber first, which
 * is too slow for hundreds of runs with hundreds of sleeping fibers.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { settle } from "./Recorder.js"

export interface VirtualClock {
  readonly clock: Clock.Clock
  readonly now: () => number
  /** Advances, waking sleeping fibers one instant after the other; between two instants all fibers come to rest. */
  readonly advance: (millis: number) => Effect.Effect<void>
}

export const make = (): VirtualClock => {
  const sleepers = new Set<{ readonly at: number; readonly wake: () => void }>()
  let now = 0
  const next = (limit: number): number | undefined => {
    let first: number | undefined
    for (const { at } of sleepers) if (at <= limit && (first === undefined || at < first)) first = at
    return first
  }
  return {
    now: () => now,
    clock: {
      [Clock.ClockTypeId]: Clock.ClockTypeId,
      unsafeCurrentTimeMillis: () => now,
      unsafeCurrentTimeNanos: () => BigInt(now) * 1_000_000n,
      currentTimeMillis: Effect.sync(() => now),
      currentTimeNanos: Effect.sync(() => BigInt(now) * 1_000_000n),
      sleep: (duration) =>
        Effect.async<void>((resume) => {
          const millis = Duration.toMillis(duration)
          if (millis <= 0) return resume(Effect.void)
          const sleeper = { at: now + millis, wake: () => resume(Effect.void) }
          sleepers.add(sleeper)
          return Effect.sync(() => sleepers.delete(sleeper))
        })
    },
    advance: (millis) =>
      Effect.gen(function* () {
        const limit = now + millis
        yield* settle
        for (let at = next(limit); at !== undefined; at = next(limit)) {
          now = at
          for (const sleeper of [...sleepers]) {
            if (sleeper.at > at) continue
            sleepers.delete(sleeper)
            sleeper.wake()
          }
          yield* settle
        }
        now = limit
      })
  }
}
