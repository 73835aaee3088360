/** Fibers that wait for the next occurrence; all are woken at once, with its value. */
import type * as Effect from "effect/Effect"
import { OneShot } from "./OneShot.js"

export class Notify<A> {
  private next: OneShot<A> | undefined

  /** Call it in the synchronous step that decided to wait: no occurrence after that call is missed. */
  wait(): Effect.Effect<A> {
    return (this.next ??= new OneShot())
  }

  wake(value: A): void {
    const { next } = this
    this.next = undefined
    next?.complete(value)
  }
}
