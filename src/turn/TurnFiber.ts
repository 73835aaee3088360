/**
 * The fiber that a turn works in; after a part of the turn was interrupted, the next fiber.
 *
 * A turn is a generator of effects. A section of it can be interrupted: the model's answer, by an interjection; a lone
 * tool call, by cancelling that call. An interrupted fiber stays interrupted. So it ends, and another fiber continues
 * the same generator. A section therefore costs no fiber of its own until it is interrupted, and nobody waits for a
 * turn that works: the fiber in which it ends does what is to be done then. The end of a stopped turn runs in a new fiber.
 *
 * ```
 *  fiber 1: ─ … ─[ answer ─x cut
 *  fiber 2:                 └─ what was said, the interjection, [ answer ] ─ … ─[ tool ─x does not stop: abandoned
 *  fiber 3:                                                                        └─ cancelled, …, the end
 * ```
 *
 * Each of these fibers is uninterruptible except in marked regions; there, stopping the turn ends it. The state is
 * written by the running fiber, and by interrupting or stopping fibers, in synchronous sections only.
 */
import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import { YieldWrap } from "effect/Utils"
import * as Region from "../core/Region.js"
import * as GracePeriod from "../internal/GracePeriod.js"
import * as LateInterrupt from "../internal/LateInterrupt.js"
import type { Interactor } from "../interaction/Interactor.js"

/** Work of a turn; it may ask the interactor. */
export type Work = Effect.Effect<void, never, Interactor>

/** A turn, step by step: an `Effect.gen` that another fiber can continue. */
export type Steps<A = void> = Generator<YieldWrap<Effect.Effect<unknown, never, Interactor>>, A, never>

/** Starts a fiber in the world of the turn, uninterruptible except where its work says otherwise. */
export type Fork = (work: Work) => void

export interface Options {
  /** How long an interrupted section may take before the turn continues without it. */
  readonly gracePeriod: Duration.DurationInput
  /** Called with the cause of a fiber that failed. */
  readonly failed: (cause: Cause.Cause<never>) => void
}

export class TurnFiber {
  private running: Running | undefined
  /** Whether another fiber follows the ended one. */
  private goesOn = false
  private stopped = false

  constructor(private readonly options: Options) {}

  /** Work of one step. */
  static *steps(work: Work): Steps {
    yield* work
  }

  /** The turn was stopped: nothing new begins. */
  get isStopped(): boolean {
    return this.stopped
  }

  /** The fiber that works now; undefined when the turn was stopped, and its fiber may be interrupted. */
  get fiber(): Fiber.RuntimeFiber<unknown, unknown> | undefined {
    return this.stopped ? undefined : this.running?.fiber
  }

  /**
   * Runs a turn to its end, and then `ended`: in this fiber, and in others that `fork` starts once this one was
   * interrupted. Run it in an uninterruptible fiber that does nothing else after it.
   */
  run(steps: Steps, ended: () => Work, fork: Fork): Work {
    return Effect.withFiberRuntime((fiber) => this.leg({ steps, ended, fork }, fiber))
  }

  /**
   * An interruptible section: `yield*` it in the turn's generator, in the step in which it is made. It yields its exit.
   * With `abandoned`, a section that does not stop in time is abandoned, and `abandoned` is called. While `mayEnd` is
   * true, an uninterruptible region ends before the section is interrupted.
   */
  section<A, E>(run: Effect.Effect<A, E, Interactor>, abandoned?: () => void, mayEnd?: () => boolean): Section<A, E> {
    const { running } = this
    const section: Section<A, E> = new Section(
      Effect.matchCauseEffect(Effect.interruptible(Region.once(run)), {
        onFailure: (cause) => over(Exit.failCause(cause)),
        onSuccess: (value) => over(Exit.succeed(value))
      }),
      abandoned,
      mayEnd
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
    const { running } = this
    const section = running?.section
    if (section === undefined || section.isCut) return
    section.isCut = true
    if (running !== undefined) this.breakOff(running)
  }

  /** Continues without a section that was interrupted and does not stop. */
  abandon(): void {
    const { running } = this
    const section = running?.section
    if (running === undefined || section?.abandoned === undefined) return
    running.section = undefined
    section.exit = Exit.interrupt(FiberId.none)
    section.abandoned()
    running.fiber.unsafeInterruptAsFork(FiberId.none)
    this.over(running)
    this.next(running.turn)
  }

  /** Stops the turn: each of its fibers is interrupted where it is interruptible. */
  stop(): void {
    if (this.stopped) return
    this.stopped = true
    if (this.running !== undefined) this.interrupt(this.running)
  }

  /** The part of the turn that this fiber does. */
  private leg(turn: Whole, fiber: Fiber.RuntimeFiber<unknown, unknown>): Work {
    const running: Running = { turn, fiber, section: undefined, isOver: false, notify: undefined }
    this.running = running
    if (this.stopped) this.interrupt(running)
    return Effect.matchCauseEffect(
      Effect.gen(() => turn.steps),
      {
        onFailure: (cause) => this.left(running, cause),
        onSuccess: () => this.left(running, Cause.empty)
      }
    )
  }

  /** Continues in another fiber. */
  private next(turn: Whole): void {
    this.goesOn = false
    turn.fork(Effect.withFiberRuntime((fiber) => this.leg(turn, fiber)))
  }

  /** What a fiber does at its end: nothing when it was abandoned, or when another one continues. */
  private left(running: Running, cause: Cause.Cause<never>): Work {
    const { turn } = running
    if (running.isOver) return Effect.void
    this.over(running)
    if (this.goesOn) {
      this.next(turn)
      return Effect.void
    }
    if (!Cause.isEmpty(cause)) this.options.failed(cause)
    if (!this.stopped) return turn.ended()
    // An interrupted fiber is no place for effects of others, such as a store's.
    turn.fork(Effect.suspend(turn.ended))
    return Effect.void
  }

  private breakOff(running: Running): void {
    const { fiber, section } = running
    if (section?.mayEnd?.() !== true) fiber.unsafeInterruptAsFork(FiberId.none)
    else LateInterrupt.interrupt(fiber, () => running.isOver || running.section !== section)
  }

  private over(running: Running): void {
    running.isOver = true
    running.notify?.()
  }

  /** Interrupts a fiber, and abandons it if it does not stop in time. */
  private interrupt(running: Running): void {
    if (running.isOver) return
    this.breakOff(running)
    const over = (done: () => void) => {
      if (running.isOver) done()
      else running.notify = done
    }
    running.turn.fork(
      Effect.map(GracePeriod.wait(over, this.options.gracePeriod), (isOver) => {
        if (!isOver && !running.isOver) this.abandon()
      })
    )
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A turn, and what starts its further fibers. */
interface Whole {
  readonly steps: Steps
  readonly ended: () => Work
  readonly fork: Fork
}

/** One of the fibers. */
interface Running {
  readonly turn: Whole
  readonly fiber: Fiber.RuntimeFiber<unknown, unknown>
  /** The section that can be interrupted now. */
  section: Section<unknown, unknown> | undefined
  /** Its fiber has ended, or was abandoned. */
  isOver: boolean
  /** Called when it is over. */
  notify: (() => void) | undefined
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
    readonly abandoned: (() => void) | undefined,
    readonly mayEnd?: (() => boolean) | undefined
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
