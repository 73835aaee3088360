/** Ctrl-C where a terminal makes a signal of it: whoever listens hears it, and otherwise it ends the program. */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"

let hear: (() => boolean) | undefined

/** It was pressed. False where nobody hears it, or where nobody has come to the one before. */
export const pressed = (): boolean => hear?.() === true

/** Listens until the scope closes; yields what waits for the next one. */
export const listen: Effect.Effect<Effect.Effect<void>, never, Scope.Scope> = Effect.gen(function* () {
  const presses = yield* Queue.dropping<void>(1)
  yield* Effect.acquireRelease(
    Effect.sync(() => (hear = () => presses.unsafeOffer(undefined))),
    () => Effect.sync(() => (hear = undefined))
  )
  return Queue.take(presses)
})
