/** The session that somebody names: by its id, or by the beginning of one that no other has. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { visible } from "../audit/AuditReport.js"
import { SessionId } from "../core/Id.js"
import type * as SessionStore from "../journal/SessionStore.js"
import type { Listed } from "../journal/SessionSummary.js"
import type { StoreUnusable } from "../journal/StoreError.js"

/** The sessions among which one is named. */
export type Sessions = Pick<SessionStore.Service, "page">

/** Undefined when there is none; a left when several begin so. `ses_` in front may be left out. */
export const find = (
  sessions: Sessions,
  name: string
): Effect.Effect<Either.Either<Listed | undefined, string>, StoreUnusable> =>
  Effect.gen(function* () {
    if (name === "") return Either.right(undefined)
    const exact = yield* get(sessions, name)
    if (exact !== undefined) return Either.right(exact)
    const pages = yield* Effect.forEach([name, `${start}${name}`], (prefix) => sessions.page({ prefix, limit: shown }))
    // One may fit both, where the name is a beginning of `ses_` itself.
    const found = Arr.dedupeWith(
      pages.flatMap(({ sessions }) => sessions),
      (a, b) => a.rootSessionId === b.rootSessionId
    )
    if (found.length < 2) return Either.right(found[0])
    const isAll = found.length <= shown && pages.every(({ next }) => next === undefined)
    const ids = found.slice(0, shown).map(({ rootSessionId }) => rootSessionId)
    return Either.left(
      `${isAll ? found.length : `More than ${shown}`} sessions begin with ${visible(name)}: ${ids.join(", ")}${isAll ? "" : ", …"}.`
    )
  })

/** The session of exactly this id. */
export const get = (sessions: Sessions, id: string): Effect.Effect<Listed | undefined, StoreUnusable> =>
  Effect.map(sessions.page({ id: SessionId.make(id), limit: 1 }), ({ sessions: [found] }) => found)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const start = "ses_"
/** Sessions in a sentence. */
const shown = 5
