/**
 * How long a store retains sessions: by age, by number, or both.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SessionStore from "./SessionStore.js"
import * as SessionSummary from "./SessionSummary.js"
import type * as StoreError from "./StoreError.js"

/**
 * The sessions to retain. A running session is always retained.
 *
 * @since 0.1.0
 * @category models
 */
export interface Policy {
  /** Sessions that were not used for so long go. Default: none goes for its age. */
  readonly unused?: Duration.DurationInput | undefined
  /** So many that were used last stay, and others go. Default: none goes for the number. */
  readonly keep?: number | undefined
  /** Sessions that wait for an answer go too. Default: they stay. */
  readonly waiting?: boolean | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * The sessions that go, last used first.
 *
 * @since 0.1.0
 * @category operations
 */
export const due = (
  sessions: ReadonlyArray<SessionSummary.Listed>,
  { keep = Infinity, unused = Duration.infinity, waiting = false }: Policy,
  now: number
): ReadonlyArray<SessionSummary.Listed> =>
  [...sessions]
    .sort(SessionSummary.byActivity)
    .filter(
      ({ lastActivity, state }, index) =>
        state !== "running" &&
        (waiting || state !== "waiting") &&
        (index >= keep || now - lastActivity >= Duration.toMillis(unused))
    )

/**
 * Deletes the sessions that go, and yields them. One that is used or deleted meanwhile is left alone.
 *
 * @since 0.1.0
 * @category operations
 */
export const prune = (
  store: SessionStore.Service,
  policy: Policy
): Effect.Effect<ReadonlyArray<SessionSummary.Listed>, StoreError.StoreUnwritable | StoreError.StoreUnusable> =>
  Effect.gen(function* () {
    const going = due(yield* store.list, policy, yield* Clock.currentTimeMillis)
    return yield* Effect.filter(going, ({ rootSessionId }) =>
      Effect.catchTags(Effect.as(store.delete(rootSessionId), true), {
        SessionLocked: () => Effect.succeed(false),
        SessionUnknown: () => Effect.succeed(false)
      })
    )
  })
