/**
 * A recheck that looks without waiting. Callers may run it as an effect, or call it as a function and use its value in
 * the same step.
 */
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import type * as Option from "effect/Option"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = <A>(look: () => Option.Option<A>): Effect.Effect<Option.Option<A>> => new Recheck(look)

/** The function of a recheck; nothing for any other effect, also for an effect derived from a recheck. */
export const lookOf = <A>(recheck: Effect.Effect<Option.Option<A>>): (() => Option.Option<A>) | undefined =>
  Recheck.is(recheck) ? recheck.own : undefined

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Recheck<A> extends Effectable.Class<Option.Option<A>> {
  /** Neither inherited nor copied nor seen through a proxy: a wrapper around this effect is run, not bypassed. */
  readonly #look: () => Option.Option<A>

  constructor(readonly look: () => Option.Option<A>) {
    super()
    this.#look = look
  }

  static is<A>(effect: Effect.Effect<Option.Option<A>>): effect is Recheck<A> {
    return #look in effect
  }

  /** Only for an effect that {@link is} a recheck. */
  get own(): () => Option.Option<A> {
    return this.#look
  }

  commit(): Effect.Effect<Option.Option<A>> {
    return Effect.sync(this.look)
  }
}
