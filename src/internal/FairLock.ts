/**
 * A mutex, strictly first come, first served. The turn is handed over and never put up for grabs, so a newcomer cannot
 * slip in between one dialog's end and the next one's start.
 */
import * as Effect from "effect/Effect"
import type { Restore } from "../core/Interruption.js"

export interface FairLock {
  /**
   * Runs the effect when all earlier holders and waiters have left. Interruption gives up the place in line, or the
   * turn.
   */
  readonly hold: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Takes the turn if nobody has it. After `true`, {@link leave} must be called once. */
  readonly tryEnter: () => boolean
  /**
   * Takes a place in line at once, and waits there for the turn, which somebody else has. Call and run it in an
   * uninterruptible region. With the turn, {@link leave} must be called once.
   */
  readonly lineUp: (restore: Restore) => Effect.Effect<void>
  readonly leave: () => void
  /** How many are in it: the holder and those in line. */
  readonly size: () => number
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (): FairLock => new Line()

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Line implements FairLock {
  // How each waiter is resumed; the leaving holder resumes the oldest. Unbounded: a waiter is a blocked fiber.
  private line: Set<() => void> | undefined
  private busy = false

  hold<A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.uninterruptibleMask((restore) => {
      const held = Effect.matchCauseEffect(restore(self), {
        onFailure: (cause) => {
          this.leave()
          return Effect.failCause(cause)
        },
        onSuccess: (value) => {
          this.leave()
          return Effect.succeed(value)
        }
      })
      return this.tryEnter() ? held : Effect.zipRight(this.lineUp(restore), held)
    })
  }

  tryEnter(): boolean {
    if (this.busy) return false
    this.busy = true
    return true
  }

  // Only the wait itself is interruptible: past it, a holder cannot lose the turn by interruption.
  lineUp(restore: Restore): Effect.Effect<void> {
    let resume = () => {}
    const turn = () => resume()
    const line = (this.line ??= new Set())
    line.add(turn)
    const waiting = Effect.async<void>((resumed) => {
      // No longer in line: the turn was handed over before the wait began.
      if (!line.has(turn)) return resumed(Effect.void)
      resume = () => resumed(Effect.void)
    })
    return Effect.onInterrupt(restore(waiting), () =>
      Effect.sync(() => {
        // No longer in line: the turn was handed over in the same moment, so it has to be passed on.
        if (!line.delete(turn)) this.leave()
      })
    )
  }

  leave(): void {
    for (const next of this.line ?? []) {
      this.line?.delete(next)
      return next()
    }
    this.busy = false
  }

  size(): number {
    return (this.line?.size ?? 0) + (this.busy ? 1 : 0)
  }
}
