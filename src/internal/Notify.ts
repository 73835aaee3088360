/** Fibers that wait for the next time something happens; woken all at once, with what came of it. */
import type * as Effect from "effect/Effect"
import { OneShot } from "./OneShot.js"

export class Notify<A> {
  private next: OneShot<A> | undefined

  /** Call it where the wait was decided on: from then on nothing that wakes is missed. */
  wait(): Effect.Effect<A> {
    return (this.next ??= new OneShot())
  }

  wake(value: A): void {
    const { next } = this
    this.next = undefined
    next?.complete(value)
  }
}
