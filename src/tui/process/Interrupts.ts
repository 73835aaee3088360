/**
 * Signals. Ctrl-C, where a terminal makes one of it, is heard by whoever listens, and otherwise ends the program as the others
 * do.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"

let hear: (() => boolean) | undefined
let hearsEnd = false
let isOver = false

/** It was pressed. False where nobody hears it, or where nobody has come to the one before. */
export const pressed = (): boolean => hear?.() === true

/** Somebody else ends the program. False as for {@link pressed}, and where only keys are heard. */
export const ended = (): boolean => hearsEnd && pressed()

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

/** The same, also for the end that another process asks for: a server ends gently. */
export const listenForEnd: Effect.Effect<Effect.Effect<void>, never, Scope.Scope> = Effect.zipRight(
  Effect.acquireRelease(
    Effect.sync(() => void (hearsEnd = true)),
    () => Effect.sync(() => void (hearsEnd = false))
  ),
  listen
)
