/**
 * A lease: one process per session. A row names the holder, which sends a heartbeat every few seconds.
 *
 * ```
 *  free ──acquire──► held ──release──► free
 *                     │ ▲ beat
 *       holder dead, or silent for 15 s
 *                     └──acquire by another──► held by the other; the first one's token is worth nothing from now on
 * ```
 *
 * Every write names the token of its lease, so a holder that was suspended and comes back finds out before it writes.
 *
 * With `holding: "fence"` something else decides which process runs a session, such as the shards of a cluster. Then a lease
 * sends no heartbeats, and another process that holds by fences takes it over at once. To all others it is held.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { globalValue } from "effect/GlobalValue"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Holder } from "./StoreError.js"

/**
 * The process that takes leases.
 *
 * @since 0.1.0
 * @category models
 */
export interface Process extends Holder {
  /** Whether another process of this host is alive. */
  readonly isAlive: (pid: number) => boolean
  /**
   * Distinguishes a process of this host from a later one with the same number, such as its start time; undefined when
   * unknown. Without an at sign.
   */
  readonly markOf?: ((pid: number) => string | undefined) | undefined
  /**
   * How leases are held; `fence` is for SQL stores only. Default: `beat`.
   */
  readonly holding?: Holding | undefined
}

/**
 * `beat`: a lease is its holder's until the holder dies or falls silent. `fence`: it is the last process's that took it.
 *
 * @since 0.1.0
 * @category models
 */
export type Holding = "beat" | "fence"

/**
 * The process that holds a session, with the time of its last heartbeat.
 *
 * @since 0.1.0
 * @category models
 */
export interface Row extends Holder {
  /** Differs for every acquisition. */
  readonly token: string
  /** The holder's last heartbeat, in milliseconds since the epoch; {@link silent} of a fence. */
  readonly heartbeat: number
}

/**
 * Milliseconds between two heartbeats.
 *
 * @since 0.1.0
 * @category constants
 */
export const beatEvery = 5_000

/**
 * Milliseconds after which a holder counts as gone.
 *
 * @since 0.1.0
 * @category constants
 */
export const silentAfter = 15_000

/**
 * Milliseconds. No maintained clock is that far ahead of ours, so a heartbeat from that far in the future is invalid.
 *
 * @since 0.1.0
 * @category constants
 */
export const impossiblyAhead = 3_600_000

/**
 * The heartbeat of a fence: there is none.
 *
 * @internal
 */
export const silent = -1

/**
 * The token of a session that no process runs and that needs none before an answer, words, or its deadline, which is in the
 * place of the process's number: milliseconds since the epoch, or 0.
 *
 * @since 0.1.0
 * @category constants
 */
export const parked = "parked"

/**
 * The token of a session that its process gave back and that another one has to go on with.
 *
 * @since 0.1.0
 * @category constants
 */
export const left = "left"

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Whether the holder is still alive, as far as `locker` can tell at `now`.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isHeld = (row: Row, locker: Process, now: number): boolean => {
  if (isGivenBack(row)) return false
  if (locker.holding === "fence" || row.heartbeat === silent) return true
  if (now - row.heartbeat >= silentAfter) return false
  // After a clock was set back, a past heartbeat is in the future, and the lease would hold until then.
  if (row.host !== locker.host) return row.heartbeat - now < impossiblyAhead
  // Another process with our own number has ended: numbers are reused, in a container nearly always.
  if (row.pid === locker.pid) return ours.has(row.token)
  if (!locker.isAlive(row.pid)) return false
  const [known, mark] = [locker.markOf?.(row.pid), markIn(row.token)]
  return known === undefined || mark === undefined || known === mark
}

/**
 * Whether a process that holds by fences gave the session back. The others look after it.
 *
 * @internal
 */
export const isGivenBack = ({ token }: Pick<Row, "token">): boolean => token === parked || token === left

/**
 * A token that also identifies the process, to detect a reused process number.
 *
 * @since 0.1.0
 * @category getters
 */
export const tokenOf = (id: string, locker: Process): string => {
  const mark = locker.markOf?.(locker.pid)
  return mark === undefined ? id : `${id}@${mark}`
}

/**
 * The holder, if it is still alive.
 *
 * @since 0.1.0
 * @category getters
 */
export const holderOf = (row: Row | undefined, locker: Process, now: number): Holder | undefined =>
  row !== undefined && isHeld(row, locker, now) ? { pid: row.pid, host: row.host } : undefined

/**
 * Holds a token until the scope closes: acquires it, sends heartbeats, and releases it. `beat` yields whether the token
 * still holds; when it does not, the heartbeats stop.
 *
 * @since 0.1.0
 * @category operations
 */
export const hold = <A, E>(
  token: string,
  lifecycle: {
    readonly acquire: Effect.Effect<A, E>
    /** Default: no heartbeats. */
    readonly beat?: ((held: A) => Effect.Effect<boolean>) | undefined
    readonly release: (held: A) => Effect.Effect<void>
  }
): Effect.Effect<A, E, Scope.Scope> =>
  Effect.acquireRelease(
    // Registered as ours before it is acquired: otherwise another fiber of this process could take it for the token of
    // an ended process.
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
    Effect.tap((held) => {
      const { beat } = lifecycle
      return beat === undefined
        ? Effect.void
        : Effect.forkScoped(
            Effect.delay(beat(held), beatEvery).pipe(Effect.repeat(Schedule.recurWhile((holds: boolean) => holds)))
          )
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const markIn = (token: string): string | undefined => (token.includes("@") ? token.split("@").at(-1) : undefined)

/** Tokens that this process holds. */
const ours = globalValue("assent/journal/SessionLock/ours", () => new Set<string>())
