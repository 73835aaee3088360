/** Fibers that wait for a moment of a session; woken all at once, with how its last turn ended. */
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import { Once } from "./Once.js"
import type { TurnEnd } from "./Turn.js"

type End = Option.Option<TurnEnd>

export class Waiters {
  private next: Once<End> | undefined

  /** Call it where the wait was decided on: from then on nothing that wakes is missed. */
  wait(): Effect.Effect<End> {
    return (this.next ??= new Once())
  }

  wake(end: End): void {
    const { next } = this
    this.next = undefined
    next?.settle(end)
  }
}
