/**
 * The fiber that a turn works in; after a part of the turn was interrupted, the next fiber.
 *
 * A turn is a generator of effects. A section of it can be interrupted: the model's answer, by an interjection; a lone
 * tool call, by cancelling that call. An interrupted fiber stays interrupted. So it ends, and another fiber continues
 * the same generator. A section therefore costs no fiber of its own until it is interrupted.
 *
 * ```
 *  fiber 1: ─ … ─[ answer ─x cut
 *  fiber 2:                 └─ what was said, the interjection, [ answer ] ─ … ─[ tool ─x does not stop: abandoned
 *  fiber 3:                                                                        └─ cancelled, …
 * ```
 *
 * Each of these fibers is uninterruptible except in marked regions; there, stopping the turn ends it. The state is
 * written by the running fiber, by the waiter of the turn, and by interrupting or stopping fibers, in synchronous
 * sections only.
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

/** Work of a turn; it may ask the interactor. */
export type Work = Effect.Effect<void, never, Interactor>

/** A turn, step by step: an `Effect.gen` that another fiber can continue. */
export type Steps<A = void> = Generator<YieldWrap<Effect.Effect<unknown, never, Interactor>>, A, never>

export interface Options {
  /** Starts an unsupervised fiber: an abandoned one must block nothing. */
  readonly fork: (work: Work) => Effect.Effect<Fiber.RuntimeFiber<void>, never, Interactor>
  /** How long an interrupted section may take before the turn continues without it. */
  readonly patience: Duration.DurationInput
  /** Called with the cause of a fiber that failed. */
  readonly failed: (cause: Cause.Cause<never>) => void
}

export class TurnFiber {
  private running: Running | undefined
  /** Whether another fiber follows the ended one. */
  private goesOn = false
  private stopped = false
  /** Resumes the waiter: called when the fiber has ended, or must stop. */
  private notify: (() => void) | undefined

  constructor(private readonly options: Options) {}

  /** Work of one step. */
  static *steps(work: Work): Steps {
    yield* work
  }

  /** The turn was stopped: nothing new begins. */
  get isStopped(): boolean {
    return this.stopped
  }

  /** Runs a turn to its end. Only the waiting is interruptible; interrupted there, it stops the turn first. */
  run(steps: Steps, restore: Restore): Work {
    const running: Running = { fiber: undefined, section: undefined, isOver: false }
    this.running = running
    return Effect.flatMap(this.options.fork(Effect.gen(() => steps)), (fiber) => {
      running.fiber = fiber
      fiber.addObserver((exit) => {
        if (Exit.isFailure(exit) && !running.isOver && !this.goesOn) this.options.failed(exit.cause)
        this.over(running)
      })
      if (this.stopped) fiber.unsafeInterruptAsFork(FiberId.none)
      return Effect.matchCauseEffect(restore(this.told(running)), {
        onFailure: (cause) => {
          this.stop()
          return Effect.zipRight(this.ended(running, steps, restore), Effect.failCause(cause))
        },
        onSuccess: () => this.ended(running, steps, restore)
      })
    })
  }

  /**
   * An interruptible section: `yield*` it in the turn's generator, in the step in which it is made. It yields its exit.
   * With `abandoned`, a section that does not stop in time is abandoned, and `abandoned` is called.
   */
  section<A, E>(run: Effect.Effect<A, E, Interactor>, abandoned?: () => void): Section<A, E> {
    const { running } = this
    const section: Section<A, E> = new Section(
      Effect.matchCauseEffect(Effect.interruptible(run), {
        onFailure: (cause) => over(Exit.failCause(cause)),
        onSuccess: (value) => over(Exit.succeed(value))
      }),
      abandoned
    )
    if (running !== undefined) running.section = section
    const over = (exit: Exit.Exit<A, E>): Effect.Effect<void> => {
      // The section was abandoned, and the turn has continued in another fiber.
      if (running === undefined || running.section !== section) return left
      running.section = undefined
      section.exit = exit
      if (!section.isCut || this.stopped) return Effect.void
      this.goesOn = true
      return left
    }
    return section
  }

  /** Interrupts the running section, if there is one. */
  interruptSection(): void {
    const section = this.running?.section
    if (section === undefined || section.isCut) return
    section.isCut = true
    this.running?.fiber?.unsafeInterruptAsFork(FiberId.none)
  }

  /** Continues without a section that was interrupted and does not stop. */
  abandon(): void {
    const { running } = this
    const section = running?.section
    if (running === undefined || section?.abandoned === undefined) return
    running.section = undefined
    section.exit = Exit.interrupt(FiberId.none)
    this.goesOn = true
    section.abandoned()
    this.over(running)
  }

  /** Stops the turn: each of its fibers is interrupted where it is interruptible. */
  stop(): void {
    if (this.stopped) return
    this.stopped = true
    this.running?.fiber?.unsafeInterruptAsFork(FiberId.none)
    this.wake()
  }

  private over(running: Running): void {
    if (running.isOver) return
    running.isOver = true
    this.wake()
  }

  private wake(): void {
    const { notify } = this
    this.notify = undefined
    notify?.()
  }

  /** Waits until the fiber has ended, or must stop. */
  private told(running: Running): Effect.Effect<void> {
    return Effect.async((resume) => {
      if (running.isOver || this.stopped) resume(Effect.void)
      else this.notify = () => resume(Effect.void)
    })
  }

  /** After an ended fiber the next one starts, if there is one; a fiber that must stop is waited for. */
  private ended(running: Running, steps: Steps, restore: Restore): Work {
    return Effect.suspend(() => {
      if (!running.isOver) return Effect.flatMap(this.stopping(running), () => this.ended(running, steps, restore))
      if (!this.goesOn) return Effect.void
      this.goesOn = false
      return this.run(steps, restore)
    })
  }

  private stopping(running: Running): Effect.Effect<void> {
    const over = (done: () => void) => {
      if (running.isOver) done()
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

/** One of the fibers. */
interface Running {
  fiber: Fiber.RuntimeFiber<void> | undefined
  /** The section that can be interrupted now. */
  section: Section<unknown, unknown> | undefined
  /** Its fiber has ended, or was abandoned. */
  isOver: boolean
}

/** Ends a fiber whose turn continues in another one. */
const left: Effect.Effect<never> = Effect.interrupt

/**
 * Yields its effect, and then its exit: to the fiber that ran it, or to the one that continues the turn. It is one
 * object in place of a generator, because every step of every turn has several.
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
