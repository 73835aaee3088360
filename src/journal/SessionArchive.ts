/**
 * Whole sessions as JSON, and back: to take one to another store.
 *
 * A document decides what a session is allowed, as a store does. Restore only what you would open.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { RequestId, SessionId } from "../core/Id.js"
import * as JournalEntry from "./JournalEntry.js"
import type * as SessionStore from "./SessionStore.js"
import * as StoreError from "./StoreError.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Decodes what `SessionStore.toJson` made. A string on the left says what is wrong, and where.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decode = (input: unknown): Either.Either<SessionStore.Loaded, string> =>
  Either.gen(function* () {
    const document = yield* Either.mapLeft(
      Schema.decodeUnknownEither(Document)(input),
      (error) => `it is no exported session: ${ParseResult.TreeFormatter.formatErrorSync(error)}`
    )
    if (document.version > JournalEntry.version) {
      return yield* Either.left(
        `it was written with version ${document.version} of the journal; this program reads ${JournalEntry.version}`
      )
    }
    const entries: Array<JournalEntry.Written> = []
    for (const { at, entry, seq, sessionId } of document.entries) {
      if (seq !== entries.length + 1) return yield* Either.left(`entry ${entries.length + 1} is missing`)
      const decoded = yield* Either.mapLeft(JournalEntry.decode(entry), (reason) => `entry ${seq}: ${reason}`)
      entries.push({ seq, sessionId, at, entry: decoded })
    }
    if (entries.length === 0) return yield* Either.left("it has no entries")
    const { answers, rootSessionId } = document
    return { rootSessionId, entries, answers }
  })

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Writes a whole session into a store that does not have it, with the times at which it happened. Nothing is written
 * when the store has it. Answers that were kept are kept again, as of now.
 *
 * @since 0.1.0
 * @category operations
 */
export const restore = (
  store: SessionStore.Service,
  { answers, entries, rootSessionId }: SessionStore.Loaded
): Effect.Effect<
  void,
  | StoreError.SessionPresent
  | StoreError.SessionLocked
  | StoreError.SessionTakenOver
  | StoreError.JournalUnreadable
  | StoreError.StoreUnwritable
  | StoreError.StoreUnusable
> =>
  Effect.gen(function* () {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const lease = yield* store.lock(rootSessionId)
        const isThere = yield* Effect.match(store.load(rootSessionId), {
          onSuccess: () => true,
          // One that cannot be read is there too.
          onFailure: (error) => error._tag !== "SessionUnknown"
        })
        if (isThere) return yield* new StoreError.SessionPresent({ rootSessionId })
        yield* lease.append(entries.map(({ at, entry, sessionId }) => ({ at, entry, sessionId })))
      })
    )
    for (const { answer, by, requestId } of answers) {
      // The answer to a request that was settled since, by the journal itself.
      yield* Effect.catchTag(store.answer(requestId, answer, by), "AnswerRefused", () => Effect.void)
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Milliseconds, of which a date can be made. */
const Time = Schema.Int.pipe(Schema.between(0, 8.64e15, { message: () => "a time is expected, in milliseconds" }))

const Document = Schema.Struct({
  version: Schema.Number,
  rootSessionId: SessionId,
  entries: Schema.Array(Schema.Struct({ seq: Schema.Number, sessionId: SessionId, at: Time, entry: Schema.Unknown })),
  answers: Schema.Array(Schema.Struct({ requestId: RequestId, answer: Schema.Unknown, by: Schema.String, at: Time }))
})
