/**
 * Crashes of code that is not ours: a handler, a guard, a model, a store. The cause goes to the log, with the place it
 * belongs to. A model and the events get only a sentence that points to the log, because a raw message may hold
 * secrets.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Redactor } from "./Redaction.js"

/** What a crash belongs to, for the log. */
export interface Place {
  readonly session?: string | undefined
  readonly agent?: string | undefined
  readonly tool?: string | undefined
  readonly call?: string | undefined
  readonly model?: string | undefined
}

/** Whether the cause holds a crash. Failures of a known kind and interruptions are none. */
export const isIn = (cause: Cause.Cause<unknown>): boolean => Cause.isDie(cause)

/** What a model, an event and a person get to see of a crash. */
export const sentence = (what: string): string => `${what} crashed. The log has the reason.`

/** Writes the cause to the log, secrets masked; never fails. */
export const log = (
  what: string,
  cause: Cause.Cause<unknown>,
  { text }: Pick<Redactor, "text">,
  place: Place
): Effect.Effect<void> =>
  Effect.annotateLogs(
    Effect.suspend(() => Effect.logError(`${what} crashed`, masked(cause, text))),
    Object.fromEntries(Object.entries(place).filter(([, value]) => value !== undefined))
  ).pipe(Effect.catchAllCause(() => Effect.void))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** One error with the texts of everything in the cause: a cause of foreign objects cannot be masked. */
const masked = (cause: Cause.Cause<unknown>, text: Redactor["text"]): Cause.Cause<never> => {
  const [first] = Cause.prettyErrors(cause)
  const error = new Error(text(first?.message ?? "unknown"))
  error.name = first?.name ?? "Error"
  error.stack = text(Cause.pretty(cause, { renderErrorCause: true }))
  return Cause.die(error)
}
