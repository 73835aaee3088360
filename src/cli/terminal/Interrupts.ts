/**
 * Signals. Ctrl-C, where a terminal makes one of it, is heard by whoever listens, and otherwise ends the program as the others
 * do.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"

let hear: (() => boolean) | undefined
let isOver = false

/** It was pressed. False where nobody hears it, or where nobody has come to the one before. */
export const pressed = (): boolean => hear?.() === true

/** The program is being ended: nobody has answered what is open, and nobody has withdrawn it. */
export const end = (): void => void (isOver = true)
export const isEnding = (): boolean => isOver

/** Listens until the scope closes; yields what waits for the next one. */
export const listen: Effect.Effect<Effect.Effect<void>, never, Scope.Scope> = Effect.gen(function* () {
  const presses = yield* Queue.dropping<void>(1)
  yield* Effect.acquireRelease(
    Effect.sync(() => (hear = () => presses.unsafeOffer(undefined))),
    () => Effect.sync(() => (hear = undefined))
  )
  return Queue.take(presses)
})
