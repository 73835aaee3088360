/**
 * One dialog at a time, strictly first come, first served: the turn is handed over, never put up for grabs, so a
 * newcomer cannot slip in between one dialog's end and the next one's start.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"

/** Makes a part interruptible again. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

export interface DialogQueue {
  /** Runs the effect when all that came before have ended. Interrupting it gives up its place, or its turn. */
  readonly hold: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** The same for an effect that says itself where it may be interrupted: the rest of it may not. */
  readonly holdMask: <A, E, R>(self: (restore: Restore) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** How many are in it: the one whose turn it is, and those in line. */
  readonly size: () => number
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (): DialogQueue => new Line()

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Line implements DialogQueue {
  // Each waiter awaits its own deferred; whoever leaves completes the oldest one. Unbounded: a waiter is a blocked fiber.
  private line: Set<Deferred.Deferred<void>> | undefined
  private busy = false

  hold<A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return this.holdMask((restore) => restore(self))
  }

  holdMask<A, E, R>(self: (restore: Restore) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.uninterruptibleMask((restore) => {
      // Leaving is a plain call: it costs nothing to the many that find nobody before them.
      const held = Effect.matchCauseEffect(self(restore), {
        onFailure: (cause) => {
          this.leave()
          return Effect.failCause(cause)
        },
        onSuccess: (value) => {
          this.leave()
          return Effect.succeed(value)
        }
      })
      if (this.busy) return Effect.zipRight(this.enter(restore), held)
      this.busy = true
      return held
    })
  }

  size(): number {
    return (this.line?.size ?? 0) + (this.busy ? 1 : 0)
  }

  // Only the wait itself is interruptible: whoever has the turn is past every point where it could be lost.
  private enter(restore: Restore): Effect.Effect<void> {
    const turn = Deferred.unsafeMake<void>(FiberId.none)
    const line = (this.line ??= new Set())
    line.add(turn)
    return Effect.onInterrupt(restore(Deferred.await(turn)), () =>
      Effect.sync(() => {
        // Not in line any more: the turn was handed over in the same moment, so it has to be handed on.
        if (!line.delete(turn)) this.leave()
      })
    )
  }

  private leave(): void {
    for (const next of this.line ?? []) {
      this.line?.delete(next)
      return Deferred.unsafeDone(next, Effect.void)
    }
    this.busy = false
  }
}
