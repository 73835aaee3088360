/** Effects that have their value already, so that a caller can continue without a step. */
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

export const isImmediate = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): effect is Effect.Effect<A, E, R> & Exit.Success<A, E> => Exit.isExit(effect) && Exit.isSuccess(effect)
