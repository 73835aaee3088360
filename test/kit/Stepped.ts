/**
 * A machine that a test drives by hand: fibers run one step at a time in random order, and time moves only on demand.
 * Nothing in it waits for real time, so a hundred thousand runs take seconds.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Runtime from "effect/Runtime"
import type { Scheduler, Task } from "effect/Scheduler"

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

export class Stepped implements Scheduler {
  private readonly tasks: Array<Task> = []
  private readonly sleepers = new Set<Sleeper>()
  private limit = 12
  private time = 0

  readonly runFork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.RuntimeFiber<A, E>

  constructor(
    /** Numbers from 0 up to 1. */
    private readonly next: () => number,
    private readonly patience = 30
  ) {
    const runtime = Runtime.defaultRuntime.pipe(
      Runtime.setFiberRef(FiberRef.currentScheduler, this as Scheduler),
      Runtime.setFiberRef(
        DefaultServices.currentServices,
        Context.add(DefaultServices.liveServices, Clock.Clock, this.clock)
      )
    )
    this.runFork = (effect) => Runtime.runFork(runtime)(effect, { immediate: false })
  }

  shouldYield(fiber: Fiber.RuntimeFiber<unknown, unknown> & { readonly currentOpCount?: number }): number | false {
    if ((fiber.currentOpCount ?? 0) < this.limit) return false
    // At least so many that a fiber gets on: yielding costs some operations itself.
    this.limit = 12 + Math.floor(this.next() * this.patience)
    return 0
  }

  scheduleTask(task: Task): void {
    this.tasks.push(task)
  }

  /** Runs one fiber until it waits, ends or yields. False when none can run. */
  step(): boolean {
    const { tasks } = this
    if (tasks.length === 0) return false
    const at = Math.floor(this.next() * tasks.length)
    const task = tasks[at]
    const last = tasks.pop()
    if (at < tasks.length && last !== undefined) tasks[at] = last
    task?.()
    return true
  }

  steps(count: number): void {
    for (let i = 0; i < count && this.step(); i++);
  }

  /** Until every fiber waits or has ended. False when that takes for ever. */
  rest(): boolean {
    for (let i = 0; i < 20_000; i++) if (!this.step()) return true
    return false
  }

  get asleep(): number {
    return this.sleepers.size
  }

  /** Advances time by so many milliseconds; fibers that slept until then can run. */
  pass(millis: number): void {
    this.time += millis
    for (const sleeper of [...this.sleepers].sort((one, other) => one.at - other.at)) {
      if (sleeper.at > this.time) return
      this.sleepers.delete(sleeper)
      sleeper.wake()
    }
  }

  /** Advances time to the next timer. False when no fiber sleeps. */
  passToNext(): boolean {
    const moments = [...this.sleepers].map(({ at }) => at)
    if (moments.length === 0) return false
    this.pass(Math.max(0, Math.min(...moments) - this.time))
    return true
  }

  private get clock(): Clock.Clock {
    return {
      [Clock.ClockTypeId]: Clock.ClockTypeId,
      unsafeCurrentTimeMillis: () => this.time,
      unsafeCurrentTimeNanos: () => BigInt(this.time) * 1_000_000n,
      currentTimeMillis: Effect.sync(() => this.time),
      currentTimeNanos: Effect.sync(() => BigInt(this.time) * 1_000_000n),
      sleep: (duration) => {
        let sleeper: Sleeper | undefined
        return waiting<void>(
          (resume) => {
            sleeper = { at: this.time + Duration.toMillis(duration), wake: () => resume(Effect.void) }
            this.sleepers.add(sleeper)
          },
          () => {
            if (sleeper !== undefined) this.sleepers.delete(sleeper)
          }
        )
      }
    }
  }
}

/**
 * `Effect.async` whose cleanup is registered from the start. Effect registers its own one step later, and this
 * scheduler can interrupt in between.
 */
export const waiting = <A, E = never>(
  start: (resume: (end: Effect.Effect<A, E>) => void) => void,
  giveUp: () => void
): Effect.Effect<A, E> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.onInterrupt(restore(Effect.async<A, E>((resume) => start(resume))), () => Effect.sync(giveUp))
  )
