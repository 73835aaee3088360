/**
 * Whole sessions as JSON, and back: to take one to another store.
 *
 * A document decides what a session is allowed, as a store does. Restore only what you would open.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Schema from "effect/Schema"
import * as Digest from "../core/Digest.js"
import { RequestId, SessionId } from "../core/Id.js"
import * as JournalEntry from "./JournalEntry.js"
import type * as SessionStore from "./SessionStore.js"
import * as StoreError from "./StoreError.js"

/**
 * A whole session, with the content that its entries refer to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Archive extends SessionStore.Loaded {
  readonly contents: ReadonlyArray<SessionStore.Content>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Reads a whole session.
 *
 * @since 0.1.0
 * @category constructors
 */
export const load = (
  store: SessionStore.Service,
  rootSessionId: SessionId
): Effect.Effect<Archive, StoreError.SessionUnknown | StoreError.JournalUnreadable | StoreError.StoreUnusable> =>
  Effect.flatMap(store.load(rootSessionId), (loaded) =>
    Effect.map(
      Effect.forEach(contentsIn(loaded.entries), (sha256) =>
        Effect.map(contentOf(store, sha256), (bytes): SessionStore.Content => ({ sha256, bytes }))
      ),
      (contents) => ({ ...loaded, contents })
    )
  )

/**
 * Decodes the JSON of `SessionStore.toJson`. A left is a sentence about the problem and its place.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decode = (input: unknown): Either.Either<Archive, string> =>
  Either.gen(function* () {
    const document = yield* Either.mapLeft(
      Schema.decodeUnknownEither(Document)(input),
      (error) => `it is not an exported session: ${JournalEntry.misfit(error.issue)}`
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
    const contents: Array<SessionStore.Content> = []
    for (const { base64, sha256 } of document.contents ?? []) {
      const bytes = Either.getOrUndefined(Encoding.decodeBase64(base64))
      if (bytes === undefined || Digest.sha256(bytes) !== sha256) {
        return yield* Either.left(`its content ${sha256.slice(0, 12)} is damaged`)
      }
      contents.push({ sha256, bytes })
    }
    const missing = contentsIn(entries).find((wanted) => !contents.some(({ sha256 }) => sha256 === wanted))
    if (missing !== undefined) return yield* Either.left(`its content ${missing.slice(0, 12)} is missing`)
    const { answers, rootSessionId } = document
    return { rootSessionId, entries, answers, contents }
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
  { answers, contents, entries, rootSessionId }: Archive
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
        yield* Effect.forEach(contents, lease.putContent, { discard: true })
        yield* lease.append(entries.map(({ at, entry, sessionId }) => ({ at, entry, sessionId })))
      })
    )
    for (const { answer, by, requestId } of answers) {
      // The answer to a request that was settled since, by the journal itself.
      yield* Effect.catchTag(store.answer(requestId, answer, by), "AnswerRefused", () => Effect.void)
    }
  })

/**
 * Puts the content that these entries refer to, before they are written to another store.
 *
 * @since 0.1.0
 * @category operations
 */
export const carry = (
  from: SessionStore.Service,
  lease: SessionStore.Lease,
  entries: ReadonlyArray<JournalEntry.Draft>
): Effect.Effect<void, StoreError.StoreUnusable | StoreError.StoreUnwritable | StoreError.SessionTakenOver> =>
  Effect.forEach(
    contentsIn(entries),
    (sha256) => Effect.flatMap(contentOf(from, sha256), (bytes) => lease.putContent({ sha256, bytes })),
    { discard: true }
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Milliseconds, of which a date can be made. */
const Time = Schema.Int.pipe(Schema.between(0, 8.64e15, { message: () => "a time is expected, in milliseconds" }))

/** An entry refers to it, so a store without it is damaged. */
const contentOf = (store: SessionStore.Service, sha256: string) =>
  Effect.catchTag(store.getContent(sha256), "ContentUnknown", () => {
    const reason = `content that an entry refers to is missing (${sha256.slice(0, 12)})`
    return new StoreError.StoreUnusable({ store: store.name, problem: "unreadable", reason })
  })

const contentsIn = (entries: ReadonlyArray<JournalEntry.Draft>): ReadonlyArray<string> =>
  JournalEntry.contentsIn(entries.map(({ entry }) => entry))

const Document = Schema.Struct({
  version: Schema.Number,
  rootSessionId: SessionId,
  entries: Schema.Array(Schema.Struct({ seq: Schema.Number, sessionId: SessionId, at: Time, entry: Schema.Unknown })),
  answers: Schema.Array(Schema.Struct({ requestId: RequestId, answer: Schema.Unknown, by: Schema.String, at: Time })),
  contents: Schema.optional(Schema.Array(Schema.Struct({ sha256: Schema.String, base64: Schema.String })))
})
