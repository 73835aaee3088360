/**
 * One dialog at a time, strictly first come, first served: the turn is handed over, never put up for grabs, so a
 * newcomer cannot slip in between one dialog's end and the next one's start.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"

export interface DialogQueue {
  /** Runs the effect when all that came before have ended. Interrupting it gives up its place, or its turn. */
  readonly hold: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** How many are in it: the one whose turn it is, and those in line. */
  readonly size: () => number
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (): DialogQueue => {
  // Each waiter awaits its own deferred; whoever leaves completes the oldest one. Unbounded: a waiter is a blocked fiber.
  const line = new Set<Deferred.Deferred<void>>()
  let busy = false

  const leave = () => {
    for (const next of line) {
      line.delete(next)
      return Deferred.unsafeDone(next, Effect.void)
    }
    busy = false
  }

  // Only the wait itself is interruptible: whoever has the turn is past every point where it could be lost.
  const enter = (restore: <A>(effect: Effect.Effect<A>) => Effect.Effect<A>) => {
    const turn = Deferred.unsafeMake<void>(FiberId.none)
    line.add(turn)
    return Effect.onInterrupt(restore(Deferred.await(turn)), () =>
      Effect.sync(() => {
        // Not in line any more: the turn was handed over in the same moment, so it has to be handed on.
        if (!line.delete(turn)) leave()
      })
    )
  }

  return {
    hold: (self) =>
      Effect.uninterruptibleMask((restore) => {
        // Leaving is a plain call: it costs nothing to the many that find nobody before them.
        const held = Effect.matchCauseEffect(restore(self), {
          onFailure: (cause) => {
            leave()
            return Effect.failCause(cause)
          },
          onSuccess: (value) => {
            leave()
            return Effect.succeed(value)
          }
        })
        if (busy) return Effect.zipRight(enter(restore), held)
        busy = true
        return held
      }),
    size: () => line.size + (busy ? 1 : 0)
  }
}
