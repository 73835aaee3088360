/**
 * One dialog at a time, strictly first come, first served: the turn is handed over, never put up for grabs, so a
 * newcomer cannot slip in between one dialog's end and the next one's start.
 */
import * as Effect from "effect/Effect"
import type { Restore } from "../core/Interruption.js"

export interface FairLock {
  /** Runs the effect when all that came before have ended. Interrupting it gives up its place, or its turn. */
  readonly hold: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Takes the turn if nobody has it. Whoever gets it must {@link leave}, once. */
  readonly tryEnter: () => boolean
  /**
   * Takes a place in line, at once, and waits there for the turn, which somebody has. To be called, and run, where nothing
   * else can be interrupted. Whoever gets the turn must {@link leave}, once.
   */
  readonly lineUp: (restore: Restore) => Effect.Effect<void>
  readonly leave: () => void
  /** How many are in it: the one whose turn it is, and those in line. */
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
  // How each is resumed that waits; whoever leaves resumes the oldest. Unbounded: a waiter is a blocked fiber.
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

  // Only the wait itself is interruptible: whoever has the turn is past every point where it could be lost.
  lineUp(restore: Restore): Effect.Effect<void> {
    let resume = () => {}
    const turn = () => resume()
    const line = (this.line ??= new Set())
    line.add(turn)
    const waiting = Effect.async<void>((resumed) => {
      // Not in line any more: the turn was handed over before the wait began.
      if (!line.has(turn)) return resumed(Effect.void)
      resume = () => resumed(Effect.void)
    })
    return Effect.onInterrupt(restore(waiting), () =>
      Effect.sync(() => {
        // Not in line any more: the turn was handed over in the same moment, so it has to be handed on.
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
