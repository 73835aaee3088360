/**
 * Sessions that come from elsewhere.
 *
 * | | from | brings | id |
 * |---|---|---|---|
 * | {@link adopt} | the state of a workspace that was moved, which is the person's own | everything | the same |
 * | {@link takeOver} | a store that may be anybody's | what was said and done, and nothing that was allowed or is under way | a new one |
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Id from "../core/Id.js"
import type { SessionId } from "../core/Id.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import * as SessionArchive from "../journal/SessionArchive.js"
import * as SessionFork from "../journal/SessionFork.js"
import type * as SessionStore from "../journal/SessionStore.js"
import * as SessionName from "./SessionName.js"

export interface Target {
  readonly store: SessionStore.Service
  /** Real path of the workspace that they go on in. */
  readonly workspace: string
}

/** Moves a session with all that belongs to it. In the same store it only changes its workspace. */
export const adopt = (from: SessionStore.Service, { store, workspace }: Target, id: SessionId) =>
  Effect.gen(function* () {
    const moved: JournalEntry.Draft = { sessionId: id, entry: { _tag: "SessionResumed", workspace } }
    if (from === store) {
      return yield* Effect.scoped(Effect.flatMap(store.lock(id), (lease) => lease.append([moved])))
    }
    yield* Effect.scoped(
      Effect.gen(function* () {
        // Both are locked: nobody may resume the one while the other is written.
        yield* from.lock(id)
        const { answers, entries } = yield* from.load(id)
        const lease = yield* store.lock(id)
        // If it is already there, an earlier process moved it and ended before the next step.
        if (!(yield* holds(store, id))) {
          yield* SessionArchive.carry(from, lease, entries)
          yield* lease.append([...entries, moved])
        }
        return answers
      })
    ).pipe(
      Effect.flatMap((answers) =>
        Effect.forEach(answers, ({ answer, by, requestId }) => Effect.ignore(store.answer(requestId, answer, by)))
      )
    )
    yield* from.delete(id)
  })

/**
 * Copies what a session's own model and user said, up to the end of its last whole turn. Nothing that decides is
 * copied: no permissions, grants, envelopes, decisions, open questions, subagents, model or profile. Yields the new id.
 */
export const takeOver = (
  from: SessionStore.Service,
  { model, store, workspace }: Target & { readonly model: string },
  id: SessionId
) =>
  Effect.gen(function* () {
    const loaded = yield* from.load(id)
    const ids = yield* Id.IdGenerator
    const rootSessionId = Id.session(ids)
    const now = yield* Clock.currentTimeMillis
    const drafts = SessionFork.told(loaded, SessionFork.endOf(loaded).entry).map(({ at, entry }) => ({
      sessionId: rootSessionId,
      // A valid time, no later than now: the store may hold any value.
      at: at >= 0 && at <= now ? at : now,
      entry: withoutAuthority(entry, { rootSessionId, workspace, model })
    }))
    yield* Effect.scoped(
      Effect.flatMap(store.lock(rootSessionId), (lease) =>
        Effect.zipRight(SessionArchive.carry(from, lease, drafts), lease.append(drafts))
      )
    )
    return rootSessionId
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const holds = (store: SessionStore.Service, id: SessionId) =>
  Effect.map(SessionName.get(store, id), (found) => found !== undefined)

interface Identity {
  readonly rootSessionId: SessionId
  readonly workspace: string
  readonly model: string
}

const withoutAuthority = (entry: JournalEntry.JournalEntry, identity: Identity): JournalEntry.JournalEntry => {
  if (entry._tag === "SessionOpened") {
    const { model, rootSessionId, workspace } = identity
    const origin = { agent: "main", depth: 0, rootSessionId, sessionId: rootSessionId }
    return { ...JournalEntry.opening(origin, model, ""), instructions: entry.instructions, workspace }
  }
  // System messages are dropped: a history has none of its own, and a foreign one would speak in our name.
  return entry._tag === "HistoryReplaced"
    ? { ...entry, messages: entry.messages.filter(({ role }) => role !== "system") }
    : entry
}
