/** The session that somebody names: by its id, or by the beginning of one that no other has. */
import * as Either from "effect/Either"
import { visible } from "../../audit/AuditReport.js"

interface Named {
  readonly rootSessionId: string
}

/** Undefined when there is none; a left when several begin so. `ses_` in front may be left out. */
export const find = <S extends Named>(
  sessions: ReadonlyArray<S>,
  name: string
): Either.Either<S | undefined, string> => {
  const exact = sessions.find(({ rootSessionId }) => rootSessionId === name)
  if (exact !== undefined || name === "") return Either.right(exact)
  const found = sessions.filter(
    ({ rootSessionId }) => rootSessionId.startsWith(name) || rootSessionId.startsWith(`${prefix}${name}`)
  )
  if (found.length < 2) return Either.right(found[0])
  const shown = found.slice(0, 5).map(({ rootSessionId }) => rootSessionId)
  const more = found.length > shown.length ? ", …" : ""
  return Either.left(`${found.length} sessions begin with ${visible(name)}: ${shown.join(", ")}${more}.`)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const prefix = "ses_"
