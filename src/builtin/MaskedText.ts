/**
 * Secrets that stand in files. A model reads a mask in their place, and may write it back: the secret would be gone.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redaction from "../core/Redaction.js"
import { HandlerSession } from "../session/HandlerSession.js"

/** Fails with a sentence where a text would put the mask in the place of a secret of the one before it. */
export const refuse = (shown: string, before: string, after: string): Effect.Effect<void, string> =>
  Effect.flatMap(added(before, after), (isAdded) =>
    isAdded
      ? Effect.fail(
          `${Redaction.mask} stands for a secret in ${shown} that you are not shown; written, it would take the secret's place. ` +
            "Leave such lines as they are: change others by edit_file."
        )
      : Effect.void
  )

/** A sentence for a text that was not found, where it holds the mask. */
export const hint = (part: string): string | undefined =>
  part.includes(Redaction.mask) ? `${Redaction.mask} masks a secret there: use an old_text without it.` : undefined

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A text that has no secret may well speak of masks. */
const added = (before: string, after: string): Effect.Effect<boolean> => {
  const old = masksIn(before)
  if (masksIn(after) <= old) return Effect.succeed(false)
  return Effect.map(Effect.serviceOption(HandlerSession), (hold) => {
    const { redactor } = Option.getOrElse(hold, () => ({ redactor: Redaction.shapesOnly }))
    return masksIn(redactor.text(before)) > old
  })
}

const masksIn = (text: string): number => text.split(Redaction.mask).length - 1
