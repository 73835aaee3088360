/**
 * The entries of all sessions of a store in the order in which they were appended, for readers that come back.
 *
 * ```
 *  append ─► a place behind all that a reader has seen ─► readAll({ after })
 *     └────► a hint: the session's id ─► whoever waits reads
 * ```
 *
 * All of this is used under the name `SessionStore`.
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { RequestId, SessionId } from "../core/Id.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as JournalEntry from "./JournalEntry.js"
import type * as StoreError from "./StoreError.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * A place among all entries of a store; its text says nothing to others. It stays valid when the store is opened again.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Cursor = Schema.String.pipe(Schema.brand("assent/journal/Cursor"))
export type Cursor = typeof Cursor.Type

/**
 * An entry, and its place among those of all sessions.
 *
 * @since 0.1.0
 * @category models
 */
export interface Appended {
  readonly rootSessionId: SessionId
  /** Of this entry: what is read behind it follows it. */
  readonly cursor: Cursor
  /** On the left: an entry that cannot be read. The others are there all the same. */
  readonly written: Either.Either<JournalEntry.Written, StoreError.JournalUnreadable>
}

/**
 * Which entries of one session.
 *
 * @since 0.1.0
 * @category models
 */
export interface Behind {
  /** Only entries behind this `seq`. Default: 0, and all are read. */
  readonly after?: number | undefined
  /** At most so many. Default: all. */
  readonly limit?: number | undefined
}

/**
 * Which entries of all sessions.
 *
 * @since 0.1.0
 * @category models
 */
export interface BehindAll {
  /** Only entries behind this place. Default: from the beginning. */
  readonly after?: Cursor | undefined
  /** At most so many, and at least 1. Default: 500. */
  readonly limit?: number | undefined
}

/**
 * A request that the journal knows, open or settled.
 *
 * @since 0.1.0
 * @category models
 */
export interface KnownRequest {
  readonly rootSessionId: SessionId
  readonly request: InteractionRequest
  /** How it ended; absent while it is open. */
  readonly settled?: JournalEntry.EntryOf<"InteractionSettled"> | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * A request and how it ended, made of the entries about it, in their order; for stores.
 *
 * @since 0.1.0
 * @category conversions
 */
export const knownRequest = (
  rootSessionId: SessionId,
  requestId: RequestId,
  about: ReadonlyArray<JournalEntry.Written>
): KnownRequest | undefined => {
  let found: KnownRequest | undefined
  for (const { entry } of about) {
    // Asked again by a later process, it is open again.
    if (entry._tag === "InteractionRaised" && entry.request.requestId === requestId)
      found = { rootSessionId, request: entry.request }
    if (entry._tag === "InteractionSettled" && entry.requestId === requestId && found !== undefined)
      found = { ...found, settled: entry }
  }
  return found
}

/**
 * Tells readers which sessions were appended to; for stores. A reader gets each session once for all appends that it has
 * not heard of yet, so nobody waits for a slow reader, and what waits for it is bounded by the number of sessions.
 *
 * @since 0.1.0
 * @category constructors
 */
export class Hints {
  private readonly readers = new Set<{ readonly pending: Set<SessionId>; readonly latch: Effect.Latch }>()

  /** Whether somebody listens. */
  get isHeard(): boolean {
    return this.readers.size > 0
  }

  tell(rootSessionId: SessionId): void {
    for (const { latch, pending } of this.readers) {
      pending.add(rootSessionId)
      latch.unsafeOpen()
    }
  }

  /** What is appended from now on. */
  readonly appends: Effect.Effect<Stream.Stream<SessionId>, never, Scope.Scope> = Effect.acquireRelease(
    Effect.sync(() => {
      const reader = { pending: new Set<SessionId>(), latch: Effect.unsafeMakeLatch(false) }
      this.readers.add(reader)
      return reader
    }),
    (reader) => Effect.sync(() => this.readers.delete(reader))
  ).pipe(
    Effect.map(({ latch, pending }) =>
      Stream.repeatEffectChunk(
        Effect.map(latch.await, () => {
          latch.unsafeClose()
          const roots = Chunk.unsafeFromArray([...pending])
          pending.clear()
          return roots
        })
      )
    )
  )
}

/**
 * The number in a cursor of this store, and undefined for a cursor of another one; for stores.
 *
 * @since 0.1.0
 * @category conversions
 */
export const numbersIn = (cursor: Cursor, mark: string, count: number): ReadonlyArray<bigint> | undefined => {
  const [found, ...numbers] = cursor.split(".")
  return found === mark && numbers.length === count && numbers.every((text) => /^\d{1,20}$/.test(text))
    ? numbers.map(BigInt)
    : undefined
}

/**
 * A cursor of the store with this mark; for stores.
 *
 * @since 0.1.0
 * @category constructors
 */
export const cursorOf = (mark: string, ...numbers: ReadonlyArray<number | bigint | string>): Cursor =>
  Cursor.make([mark, ...numbers].join("."))

/**
 * How many entries of all sessions are read at once; for stores.
 *
 * @since 0.1.0
 * @category getters
 */
export const limitOfAll = ({ limit = 500 }: BehindAll): number => (limit >= 1 ? Math.floor(limit) : 1)
