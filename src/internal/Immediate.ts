/** Effects that have their value already, so that a caller can continue without a step. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type YieldWrap, yieldWrapGet } from "effect/Utils"

export const isImmediate = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): effect is Effect.Effect<A, E, R> & Exit.Success<A, E> => Exit.isExit(effect) && Exit.isSuccess(effect)

/**
 * `Effect.gen` that runs its steps at once as long as each has its value already. An exit when nothing has to be waited for;
 * else the rest, to be run once, in the fiber that called this. It halves what one of many parallel calls costs at the gate.
 */
export const gen = <A, E, R>(steps: Effect.fn.Return<A, E, R>): Effect.Effect<A, E, R> => advance(steps, undefined)

/** What a step of {@link gen} yields: an effect that has its value already does not leave the generator. */
export const step = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> | Known<A> =>
  isImmediate(effect) ? new Known(effect.value) : effect

/** A value for `yield*` that is there already. */
export class Known<A> {
  constructor(private readonly value: A) {}

  [Symbol.iterator](): this {
    return this
  }

  next(): IteratorReturnResult<A> {
    return { done: true, value: this.value }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const advance = <A, E, R>(steps: Effect.fn.Return<A, E, R>, value: unknown): Effect.Effect<A, E, R> => {
  try {
    let step = (steps as Steps<A, E, R>).next(value)
    while (step.done !== true) {
      const effect = yieldWrapGet(step.value)
      if (!isImmediate(effect)) return Effect.flatMap(effect, (value) => advance(steps, value))
      step = (steps as Steps<A, E, R>).next(effect.value)
    }
    return Exit.succeed(step.value)
  } catch (thrown) {
    return Effect.die(thrown)
  }
}

/** What each step yields is known to the generator alone. */
type Steps<A, E, R> = Generator<YieldWrap<Effect.Effect<unknown, E, R>>, A, unknown>
