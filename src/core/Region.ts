/**
 * Interruptible and uninterruptible regions that do not hold on to what has run in them.
 *
 * Effect keeps the work of a region in a function that it sets as a property, and V8 puts such functions straight into
 * the old generation. There they are found dead only by a full collection. Until then every collection of the young
 * generation copies what they hold, which is a whole agent for each turn: two fifths of the life of a short agent. Here
 * such a function holds a place, which is empty once the work has begun.
 *
 * ```
 * Effect.interruptible(Region.once(work))
 * ```
 */
import * as Effect from "effect/Effect"
import type { Restore } from "./Interruption.js"

/** The same work, to be run once: it is let go when it begins. */
export const once = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  let next = work
  return Effect.suspend(() => {
    const now = next
    next = runAgain
    return now
  })
}

/** `Effect.uninterruptibleMask`; what it restores is run once. */
export const uninterruptibleMask = <A, E, R>(
  work: (restore: Restore) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let next = work
    return Effect.uninterruptibleMask((restore) => {
      const now = next
      next = begun
      return now((effect) => restore(once(effect)))
    })
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const runAgain: Effect.Effect<never> = Effect.dieMessage("Work that runs once ran twice.")

const begun = (): Effect.Effect<never> => runAgain
