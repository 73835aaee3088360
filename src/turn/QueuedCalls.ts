/**
 * Calls of one step that are allowed and wait for room to run: more were proposed than may run at once.
 *
 * ```
 *  held ──room──► last look ──► runs, or refused
 *    └─ stopped ──► broken off: it never ran
 * ```
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as GracePeriod from "../internal/GracePeriod.js"
import type { Pending, Verdict } from "../permission/PermissionGate.js"

export class QueuedCalls {
  /** By the call's index. */
  private readonly pending = new Map<number, Pending>()
  /** Those that guards look at for the last time, each in its own fiber, which tells what comes of it. */
  private readonly settling = new Map<number, Pending>()
  private isClosed = false
  private readonly permits: Effect.Semaphore

  /** `left` is told of one that was left behind; that is still to be written down. */
  constructor(
    atOnce: number,
    private readonly left: (pending: Pending) => void
  ) {
    this.permits = Effect.unsafeMakeSemaphore(atOnce)
  }

  hold(index: number, pending: Pending): void {
    this.pending.set(index, pending)
  }

  /** Runs it once there is room. One that is interrupted before does not run. */
  admit(index: number, run: () => Effect.Effect<void>): Effect.Effect<void> {
    const brokenOff = Effect.suspend(() => this.pending.get(index)?.breakOff ?? Effect.void)
    return Effect.onInterrupt(this.permits.withPermits(1)(Effect.suspend(run)), () => brokenOff)
  }

  /** The last look. */
  settle(index: number, then: (verdict: Verdict) => Effect.Effect<void>): Effect.Effect<void> {
    const pending = this.pending.get(index)
    if (pending === undefined) return Effect.void
    // It got room while all are broken off.
    if (this.isClosed) return pending.breakOff
    this.pending.delete(index)
    this.settling.set(index, pending)
    return Effect.flatMap(pending.settle, (verdict) => {
      this.settling.delete(index)
      return then(verdict)
    })
  }

  /** Whoever looks at it does not stop: it counts as broken off. */
  leave(index: number): void {
    for (const pending of [this.pending.get(index), this.settling.get(index)])
      if (pending !== undefined) this.abandon(pending)
    this.pending.delete(index)
    this.settling.delete(index)
  }

  /** None of them runs any more. */
  breakOff(patience: Duration.DurationInput): Effect.Effect<void> {
    this.isClosed = true
    if (this.pending.size === 0) return Effect.void
    const pending = [...this.pending.values()]
    const all = Effect.forEach(pending, ({ breakOff }) => breakOff, { discard: true })
    return Effect.flatMap(Effect.forkDaemon(all), (fiber) =>
      Effect.map(
        GracePeriod.wait((done) => fiber.addObserver(done), patience),
        (isOver) => {
          if (!isOver) for (const one of pending) this.abandon(one)
        }
      )
    )
  }

  private abandon(pending: Pending): void {
    pending.leave()
    this.left(pending)
  }
}
