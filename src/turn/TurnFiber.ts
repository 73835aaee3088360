/**
 * The fiber that a turn works in; after a part of the turn was cut out, the next one.
 *
 * A turn is a generator of effects. What it does right now may be cut out of it: the model's answer, by an interjection; a
 * tool that runs alone, by whoever cancels that call. A fiber that was interrupted stays so. It ends, and another one goes on
 * with the same generator. So neither costs a fiber of its own as long as nobody cuts.
 *
 * ```
 *  fiber 1: ─ … ─[ answer ─x cut
 *  fiber 2:                 └─ what was said, the interjection, [ answer ] ─ … ─[ tool ─x does not stop: abandoned
 *  fiber 3:                                                                        └─ cancelled, …
 * ```
 *
 * A leg is what one fiber does of the turn. It is not interruptible but where it says so; there stopping the turn ends it.
 * Written by the running leg, by who waits for the turn, and by whoever cuts or stops it, in synchronous sections only.
 */
import type * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import { YieldWrap } from "effect/Utils"
import type { Restore } from "../core/Interruption.js"
import * as GracePeriod from "../internal/GracePeriod.js"
import type { Interactor } from "../interaction/Interactor.js"

/** What a turn does; it may ask somebody. */
export type Work = Effect.Effect<void, never, Interactor>

/** A turn, step by step: an `Effect.gen` that another fiber may go on with. */
export type Steps = Generator<YieldWrap<Effect.Effect<unknown, never, Interactor>>, void, never>

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
  /** Whether a leg that is over leads to another one. */
  private goesOn = false
  private stopped = false
  /** Of who waits: called when the leg is over, or is to stop. */
  private notify: (() => void) | undefined

  constructor(private readonly options: Options) {}

  /** Work of one step. */
  static *steps(work: Work): Steps {
    yield* work
  }

  /** Somebody stopped the turn: nothing new is begun. */
  get isStopped(): boolean {
    return this.stopped
  }

  /** Runs a turn to its end. Not interruptible but where it waits; interrupted there, it stops the turn first. */
  run(steps: Steps, restore: Restore): Work {
    const leg: Leg = { fiber: undefined, section: undefined, isOver: false }
    this.leg = leg
    return Effect.flatMap(this.options.fork(Effect.gen(() => steps)), (fiber) => {
      leg.fiber = fiber
      fiber.addObserver((exit) => {
        if (Exit.isFailure(exit) && !leg.isOver && !this.goesOn) this.options.failed(exit.cause)
        this.over(leg)
      })
      if (this.stopped) fiber.unsafeInterruptAsFork(FiberId.none)
      return Effect.matchCauseEffect(restore(this.told(leg)), {
        onFailure: (cause) => {
          this.stop()
          return Effect.zipRight(this.ended(leg, steps, restore), Effect.failCause(cause))
        },
        onSuccess: () => this.ended(leg, steps, restore)
      })
    })
  }

  /**
   * What may be cut out: `yield*` it in the turn's generator, in the step in which it is made. Yields how it ended. With
   * `abandoned` it is left behind when it does not stop in time, and `abandoned` is told.
   */
  section<A, E>(run: Effect.Effect<A, E, Interactor>, abandoned?: () => void): Section<A, E> {
    const { leg } = this
    const section: Section<A, E> = new Section(
      Effect.matchCauseEffect(Effect.interruptible(run), {
        onFailure: (cause) => over(Exit.failCause(cause)),
        onSuccess: (value) => over(Exit.succeed(value))
      }),
      abandoned
    )
    if (leg !== undefined) leg.section = section
    const over = (exit: Exit.Exit<A, E>): Effect.Effect<void> => {
      // Whoever left it behind has gone on with the turn.
      if (leg === undefined || leg.section !== section) return left
      leg.section = undefined
      section.exit = exit
      if (!section.isCut || this.stopped) return Effect.void
      this.goesOn = true
      return left
    }
    return section
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
    if (leg === undefined || section?.abandoned === undefined) return
    leg.section = undefined
    section.exit = Exit.interrupt(FiberId.none)
    this.goesOn = true
    section.abandoned()
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
  private ended(leg: Leg, steps: Steps, restore: Restore): Work {
    return Effect.suspend(() => {
      if (!leg.isOver) return Effect.flatMap(this.stopping(leg), () => this.ended(leg, steps, restore))
      if (!this.goesOn) return Effect.void
      this.goesOn = false
      return this.run(steps, restore)
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
  section: Section<unknown, unknown> | undefined
  /** Its fiber has ended, or was left behind. */
  isOver: boolean
}

/** Ends a fiber whose turn goes on in another one. */
const left: Effect.Effect<never> = Effect.interrupt

/**
 * Yields its effect, and then how that ended: to the fiber that ran it, or to the one that goes on with the turn. One object
 * in place of a generator, because every step of every turn has some.
 */
export class Section<A, E> {
  isCut = false
  exit: Exit.Exit<A, E> | undefined
  private isBegun = false

  constructor(
    private readonly run: Effect.Effect<void, never, Interactor>,
    readonly abandoned: (() => void) | undefined
  ) {}

  [Symbol.iterator](): this {
    return this
  }

  next(): IteratorResult<YieldWrap<Effect.Effect<void, never, Interactor>>, Exit.Exit<A, E>> {
    if (this.isBegun) return { done: true, value: this.exit ?? Exit.interrupt(FiberId.none) }
    this.isBegun = true
    return { done: false, value: new YieldWrap(this.run) }
  }
}
