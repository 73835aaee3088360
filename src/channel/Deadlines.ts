/**
 * The times at which the open dialogs of one channel end. One fiber watches all of them: a fiber and a timer for each
 * dialog would cost more than asking and answering it.
 *
 * ```
 *  set ──► earlier than what the watcher sleeps for? ─ yes ─► a new watcher
 *                                                    └ no ──► nothing: it looks again when it wakes
 * ```
 *
 * The watcher runs while there is a deadline, and ends with the scope. The fiber that sets the first deadline forks it,
 * so it uses that fiber's clock.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type * as Scope from "effect/Scope"

export interface Deadlines<Key> {
  /** Calls `expire` once, when the time is up, unless the key was cleared before. Setting a key again replaces it. */
  readonly set: (key: Key, limit: Duration.DurationInput, expire: () => void) => Effect.Effect<void>
  /** Like `set`, at once and by this clock. The effect forks the watcher; it is `Effect.void` itself if none is due. */
  readonly unsafeSet: (
    key: Key,
    limit: Duration.DurationInput,
    expire: () => void,
    clock: Clock.Clock
  ) => Effect.Effect<void>
  readonly clear: (key: Key) => void
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = <Key>(scope: Scope.Scope): Deadlines<Key> => {
  // All times are nanoseconds of the monotonic clock.
  const deadlines = new Map<Key, { readonly at: bigint; readonly expire: () => void }>()
  let watcher: { readonly fiber: Fiber.RuntimeFiber<void>; readonly until: () => bigint } | undefined

  const watch = (from: bigint) => {
    let until = from
    const sleep = (now: bigint) =>
      Effect.flatMap(Effect.sleep(Duration.nanos(until > now ? until - now : 0n)), () => look)
    const look: Effect.Effect<void> = Effect.clockWith((clock) => {
      const now = clock.unsafeCurrentTimeNanos()
      let next: bigint | undefined
      for (const [key, { at, expire }] of deadlines) {
        if (at <= now) {
          deadlines.delete(key)
          expire()
        } else if (next === undefined || at < next) next = at
      }
      if (next === undefined) {
        // In the same step as the look, so that a deadline which is set after it starts a new watcher.
        watcher = undefined
        return Effect.void
      }
      until = next
      return sleep(now)
    })
    // It sleeps before it looks. A dialog that is answered at once would leave a first look nothing to watch: the
    // watcher would end, and the next dialog would need another.
    const start = Effect.clockWith((clock) => sleep(clock.unsafeCurrentTimeNanos()))
    return { start, until: () => until }
  }

  const unsafeSet: Deadlines<Key>["unsafeSet"] = (key, limit, expire, clock) => {
    const at = clock.unsafeCurrentTimeNanos() + BigInt(Math.ceil(Duration.toMillis(limit))) * 1_000_000n
    deadlines.set(key, { at, expire })
    const late = watcher
    if (late !== undefined && late.until() <= at) return Effect.void
    const { start, until } = watch(at)
    return Effect.uninterruptible(
      Effect.map(Effect.forkIn(Effect.interruptible(start), scope), (fiber) => {
        late?.fiber.unsafeInterruptAsFork(FiberId.none)
        watcher = { fiber, until }
      })
    )
  }

  return {
    set: (key, limit, expire) => Effect.clockWith((clock) => unsafeSet(key, limit, expire, clock)),
    unsafeSet,
    clear: (key) => {
      deadlines.delete(key)
    }
  }
}
