/**
 * The fibers that a turn works in, one after the other; mostly there is one.
 *
 * What a turn does right now may be cut out of it: the model's answer, by an interjection; a tool that runs alone, by
 * whoever cancels that call. The fiber ends with it, and the turn goes on in another. So neither costs a fiber of its own
 * as long as nobody cuts.
 *
 * ```
 *  leg 1: ─ … ─[ answer ─x cut
 *  leg 2:                 └─ what was said, the interjection, [ answer ] ─ … ─[ tool ─x does not stop: left behind
 *  leg 3:                                                                        └─ cancelled, …
 * ```
 *
 * A leg is not interruptible but where it says so; there stopping the turn ends it. Written by the running leg, by who waits
 * for the turn, and by whoever cuts or stops it, in synchronous sections only.
 */
import type * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type { Restore } from "../core/Interruption.js"
import * as GracePeriod from "../internal/GracePeriod.js"
import type { Interactor } from "../interaction/Interactor.js"

/** What a turn does; it may ask somebody. */
export type Work = Effect.Effect<void, never, Interactor>

export interface Options {
  /** Starts a leg in a fiber that nobody supervises: one that is left behind must hold nobody up. */
  readonly fork: (work: Work) => Effect.Effect<Fiber.RuntimeFiber<void>, never, Interactor>
  /** How long what was told to stop may take before the turn goes on without it. */
  readonly patience: Duration.DurationInput
  /** Told how a leg ended that did not end by itself. */
  readonly failed: (cause: Cause.Cause<never>) => void
}

export class TurnFiber {
  private leg: Leg | undefined
  /** Begins the leg after one that was cut. */
  private next: (() => Work) | undefined
  private stopped = false
  /** Of who waits: called when the leg is over, or is to stop. */
  private notify: (() => void) | undefined

  constructor(private readonly options: Options) {}

  /** Somebody stopped the turn: nothing new is begun. */
  get isStopped(): boolean {
    return this.stopped
  }

  /** Runs a turn's work to its end. Not interruptible but where it waits; interrupted there, it stops the turn first. */
  run(work: Work, restore: Restore): Work {
    const leg: Leg = { fiber: undefined, section: undefined, isOver: false }
    this.leg = leg
    return Effect.flatMap(this.options.fork(work), (fiber) => {
      leg.fiber = fiber
      fiber.addObserver((exit) => {
        if (Exit.isFailure(exit) && !leg.isOver) this.options.failed(exit.cause)
        this.over(leg)
      })
      if (this.stopped) fiber.unsafeInterruptAsFork(FiberId.none)
      return Effect.matchCauseEffect(restore(this.told(leg)), {
        onFailure: (cause) => {
          this.stop()
          return Effect.zipRight(this.ended(leg, restore), Effect.failCause(cause))
        },
        onSuccess: () => this.ended(leg, restore)
      })
    })
  }

  /**
   * What may be cut out, and how the leg, or the next one, goes on once it has ended. Made where it is run. With `left` it
   * is left behind when it does not stop in time, and `left` is told.
   */
  section<A, E>(run: Effect.Effect<A, E, Interactor>, then: (exit: Exit.Exit<A, E>) => Work, left?: () => void): Work {
    const { leg } = this
    if (leg === undefined) return Effect.void
    const section: Section = { isCut: false, abandoned: () => then(Exit.interrupt(FiberId.none)), left }
    leg.section = section
    const over = (exit: Exit.Exit<A, E>): Work => {
      // Whoever left it behind has gone on with the turn.
      if (leg.section !== section) return Effect.void
      leg.section = undefined
      if (!section.isCut || this.stopped) return then(exit)
      this.next = () => then(exit)
      return Effect.void
    }
    return Effect.matchCauseEffect(Effect.interruptible(run), {
      onFailure: (cause) => over(Exit.failCause(cause)),
      onSuccess: (value) => over(Exit.succeed(value))
    })
  }

  /** Cuts out what runs now, if it may be. */
  interruptSection(): void {
    const section = this.leg?.section
    if (section === undefined || section.isCut) return
    section.isCut = true
    this.leg?.fiber?.unsafeInterruptAsFork(FiberId.none)
  }

  /** Goes on without what was cut out, or was to stop, and does not. */
  abandon(): void {
    const { leg } = this
    const section = leg?.section
    if (leg === undefined || section?.left === undefined) return
    leg.section = undefined
    this.next = section.abandoned
    section.left()
    this.over(leg)
  }

  /** Stops the turn: each of its legs is interrupted where it can be. */
  stop(): void {
    if (this.stopped) return
    this.stopped = true
    this.leg?.fiber?.unsafeInterruptAsFork(FiberId.none)
    this.wake()
  }

  private over(leg: Leg): void {
    if (leg.isOver) return
    leg.isOver = true
    this.wake()
  }

  private wake(): void {
    const { notify } = this
    this.notify = undefined
    notify?.()
  }

  /** Waits until the leg is over, or told to stop. */
  private told(leg: Leg): Effect.Effect<void> {
    return Effect.async((resume) => {
      if (leg.isOver || this.stopped) resume(Effect.void)
      else this.notify = () => resume(Effect.void)
    })
  }

  /** A leg that is over leads to the next, if there is one; one that was told to stop is waited for. */
  private ended(leg: Leg, restore: Restore): Work {
    return Effect.suspend(() => {
      if (!leg.isOver) return Effect.flatMap(this.stopping(leg), () => this.ended(leg, restore))
      const { next } = this
      this.next = undefined
      return next === undefined ? Effect.void : this.run(Effect.suspend(next), restore)
    })
  }

  private stopping(leg: Leg): Effect.Effect<void> {
    const over = (done: () => void) => {
      if (leg.isOver) done()
      else this.notify = done
    }
    return Effect.flatMap(GracePeriod.wait(over, this.options.patience), (isOver) => {
      if (isOver) return Effect.void
      this.abandon()
      return Effect.async((resume) => over(() => resume(Effect.void)))
    })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Leg {
  fiber: Fiber.RuntimeFiber<void> | undefined
  /** What may be cut out now. */
  section: Section | undefined
  /** Its fiber has ended, or was left behind. */
  isOver: boolean
}

interface Section {
  isCut: boolean
  readonly abandoned: () => Work
  readonly left: (() => void) | undefined
}
