/**
 * A recheck that looks without waiting: an effect like any other to whoever runs it, and a function to who can use its
 * value in the step it is in.
 */
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import type * as Option from "effect/Option"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = <A>(look: () => Option.Option<A>): Effect.Effect<Option.Option<A>> => new Recheck(look)

/** How to look at once; nothing for any other effect, also for one that is made of such a one. */
export const lookOf = <A>(recheck: Effect.Effect<Option.Option<A>>): (() => Option.Option<A>) | undefined =>
  Recheck.is(recheck) ? recheck.own : undefined

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Recheck<A> extends Effectable.Class<Option.Option<A>> {
  /** Neither inherited nor copied, nor seen through a proxy: what somebody has put before this effect is run instead. */
  readonly #look: () => Option.Option<A>

  constructor(readonly look: () => Option.Option<A>) {
    super()
    this.#look = look
  }

  static is<A>(effect: Effect.Effect<Option.Option<A>>): effect is Recheck<A> {
    return #look in effect
  }

  /** Only of one that {@link is} a recheck. */
  get own(): () => Option.Option<A> {
    return this.#look
  }

  commit(): Effect.Effect<Option.Option<A>> {
    return Effect.sync(this.look)
  }
}
