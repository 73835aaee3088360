/**
 * Calls of one step that are allowed and wait for room: more were proposed than may run concurrently.
 *
 * ```
 *  held ──room──► last look ──► runs, or refused
 *    └─ stopped ──► broken off: it never ran
 * ```
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Region from "../core/Region.js"
import * as GracePeriod from "../internal/GracePeriod.js"
import type { Pending, Verdict } from "../permission/PermissionGate.js"

export class QueuedCalls {
  /** By the call's index. */
  private readonly pending = new Map<number, Pending>()
  /** Calls in their last guard check, each in its own fiber, which reports the result. */
  private readonly settling = new Map<number, Pending>()
  private isClosed = false
  private readonly permits: Effect.Semaphore

  /** `left` is called with an abandoned check, which is still to be recorded. */
  constructor(
    atOnce: number,
    private readonly left: (pending: Pending) => void
  ) {
    this.permits = Effect.unsafeMakeSemaphore(atOnce)
  }

  hold(index: number, pending: Pending): void {
    this.pending.set(index, pending)
  }

  /** Runs the call once there is room. A call that is interrupted before that does not run. */
  admit(index: number, run: () => Effect.Effect<void>): Effect.Effect<void> {
    const brokenOff = Effect.suspend(() => this.pending.get(index)?.breakOff ?? Effect.void)
    return Effect.onInterrupt(this.permits.withPermits(1)(Region.once(Effect.suspend(run))), () => brokenOff)
  }

  /** The last guard check. */
  settle(index: number, then: (verdict: Verdict) => Effect.Effect<void>): Effect.Effect<void> {
    const pending = this.pending.get(index)
    if (pending === undefined) return Effect.void
    // It got room while the batch was being stopped.
    if (this.isClosed) return pending.breakOff
    this.pending.delete(index)
    this.settling.set(index, pending)
    return Effect.flatMap(pending.settle, (verdict) => {
      this.settling.delete(index)
      return then(verdict)
    })
  }

  /** Its guard check does not stop: the call counts as stopped. */
  leave(index: number): void {
    for (const pending of [this.pending.get(index), this.settling.get(index)])
      if (pending !== undefined) this.abandon(pending)
    this.pending.delete(index)
    this.settling.delete(index)
  }

  /** Stops all: none of them runs any more. */
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
