/**
 * One process per session: a row that names its holder, which says every few seconds that it is still there.
 *
 * ```
 *  free ──acquire──► held ──release──► free
 *                     │ ▲ beat
 *       holder dead, or silent for 15 s
 *                     └──acquire by another──► held by the other; the first one's token is worth nothing from now on
 * ```
 *
 * Every write names the token it was locked with, so a holder that stood still and comes back finds out before it writes.
 */
import * as Effect from "effect/Effect"
import { globalValue } from "effect/GlobalValue"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Holder } from "./StoreError.js"

/** The process that locks. */
export interface Process extends Holder {
  /** Whether a process of this host is alive; asked about others only. */
  readonly isAlive: (pid: number) => boolean
  /**
   * What tells a process of this host from another that has its number later, such as when it began; nothing where that is
   * not known. Without an at sign.
   */
  readonly markOf?: ((pid: number) => string | undefined) | undefined
}

/** Who holds a session. */
export interface Row extends Holder {
  /** Differs for every acquisition. */
  readonly token: string
  /** When the holder was last heard of, in milliseconds since the epoch. */
  readonly heartbeat: number
}

/** Milliseconds between two signs of life. */
export const beatEvery = 5_000

/** Milliseconds after which a holder counts as gone. */
export const silentAfter = 15_000

/** Milliseconds that no clock which somebody looks after is ahead of ours. A sign of life from then was never one. */
export const impossiblyAhead = 3_600_000

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Whether the holder is still there, as far as `locker` can tell at `now`. */
export const isHeld = (row: Row, locker: Process, now: number): boolean => {
  if (now - row.heartbeat >= silentAfter) return false
  // A clock that was put back makes a lock of the past one of the future, which would hold until then.
  if (row.host !== locker.host) return row.heartbeat - now < impossiblyAhead
  // A process of our own number that is not us has ended: numbers come again, in a container nearly always.
  if (row.pid === locker.pid) return ours.has(row.token)
  if (!locker.isAlive(row.pid)) return false
  const [known, mark] = [locker.markOf?.(row.pid), markIn(row.token)]
  return known === undefined || mark === undefined || known === mark
}

/** A token that also says which process it is, for whoever finds its number in use. */
export const tokenOf = (id: string, locker: Process): string => {
  const mark = locker.markOf?.(locker.pid)
  return mark === undefined ? id : `${id}@${mark}`
}

/** The holder, when it is still there. */
export const holderOf = (row: Row | undefined, locker: Process, now: number): Holder | undefined =>
  row !== undefined && isHeld(row, locker, now) ? { pid: row.pid, host: row.host } : undefined

/**
 * Holds a token for the scope: acquires it, beats until then, and releases it. `beat` says whether the token still holds;
 * when it does not, nothing is left to beat for.
 */
export const hold = <A, E>(
  token: string,
  lifecycle: {
    readonly acquire: Effect.Effect<A, E>
    readonly beat: (held: A) => Effect.Effect<boolean>
    readonly release: (held: A) => Effect.Effect<void>
  }
): Effect.Effect<A, E, Scope.Scope> =>
  Effect.acquireRelease(
    // Ours before it is acquired: whoever sees it from then on must not take it for that of a process that has ended.
    Effect.suspend(() => {
      ours.add(token)
      return Effect.onError(lifecycle.acquire, () => Effect.sync(() => ours.delete(token)))
    }),
    (held) =>
      Effect.ensuring(
        lifecycle.release(held),
        Effect.sync(() => ours.delete(token))
      )
  ).pipe(
    Effect.tap((held) =>
      Effect.forkScoped(
        Effect.delay(lifecycle.beat(held), beatEvery).pipe(
          Effect.repeat(Schedule.recurWhile((holds: boolean) => holds))
        )
      )
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const markIn = (token: string): string | undefined => (token.includes("@") ? token.split("@").at(-1) : undefined)

/** Tokens that this very process holds. */
const ours = globalValue("assent/journal/SessionLock/ours", () => new Set<string>())
