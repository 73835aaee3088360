/** Fibers that wait for a moment of a session; woken all at once, with how its last turn ended. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import type * as Option from "effect/Option"
import type { TurnEnd } from "./Turn.js"

type End = Option.Option<TurnEnd>

export class Waiters {
  private waiting: Set<Deferred.Deferred<End>> | undefined

  /** Call it where the wait was decided on: from then on nothing that wakes is missed. */
  wait(): Effect.Effect<End> {
    const waiter = Deferred.unsafeMake<End>(FiberId.none)
    const waiting = (this.waiting ??= new Set())
    waiting.add(waiter)
    return Effect.onInterrupt(Deferred.await(waiter), () => Effect.sync(() => waiting.delete(waiter)))
  }

  wake(end: End): void {
    const { waiting } = this
    this.waiting = undefined
    for (const waiter of waiting ?? []) Deferred.unsafeDone(waiter, Effect.succeed(end))
  }
}
