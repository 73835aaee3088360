/** Fibers that wait for a moment of a session; woken all at once, with how its last turn ended. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import type * as Option from "effect/Option"
import type { TurnEnd } from "./Turn.js"

type End = Option.Option<TurnEnd>

export class Waiters {
  private readonly waiting = new Set<Deferred.Deferred<End>>()

  /** Call it where the wait was decided on: from then on nothing that wakes is missed. */
  readonly wait = (): Effect.Effect<End> => {
    const waiter = Deferred.unsafeMake<End>(FiberId.none)
    this.waiting.add(waiter)
    return Effect.onInterrupt(Deferred.await(waiter), () => Effect.sync(() => this.waiting.delete(waiter)))
  }

  wake(end: End): void {
    for (const waiter of this.waiting) Deferred.unsafeDone(waiter, Effect.succeed(end))
    this.waiting.clear()
  }
}
