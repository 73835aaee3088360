/**
 * What a running session writes down with: notes at once, on the disk when it matters.
 *
 * ```
 *  note ─┐
 *  note ─┼─► noted, in the order of the whole tree ──flush──► one append ─► flush returns
 *  note ─┘
 * ```
 *
 * Noting is synchronous, so that it is one step with what it is about. All sessions of a tree note in one line, whoever
 * flushes: a child's words never overtake the parent's call that made it. Flush before anything that cannot be undone, and
 * before telling anybody that something is safe.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Defect from "../core/Defect.js"
import type { SessionId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import type { Draft, JournalEntry } from "./JournalEntry.js"
import type { Lease } from "./SessionStore.js"
import { StoreUnwritable, type SessionTakenOver } from "./StoreError.js"

/** Why something could not be written down. */
export type JournalFailure = StoreUnwritable | SessionTakenOver

export interface Service {
  /** False: nothing is kept, so entries need not be made. */
  readonly enabled: boolean
  /** Takes an entry down. It is kept in memory until somebody flushes. */
  readonly note: (entry: JournalEntry) => void
  /**
   * Returns when all that the tree has noted until now is durable. What cannot be written stays noted, in its place, and
   * is tried again by the next flush.
   */
  readonly flush: Effect.Effect<void, JournalFailure>
  /** Notes and flushes. */
  readonly write: (entries: ReadonlyArray<JournalEntry>) => Effect.Effect<void, JournalFailure>
  /**
   * Flushes, and takes nothing down any more: what happens from now on is not to be gone on with, such as the end of a turn
   * that nobody could answer.
   */
  readonly freeze: Effect.Effect<void, JournalFailure>
  /** Nothing that begins from now on would be known to whoever goes on. */
  readonly isFrozen: () => boolean
  /** The same journal for another session of the tree. */
  readonly of: (sessionId: SessionId) => Service
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Keeps nothing. */
export const noop: Service = {
  enabled: false,
  note: () => {},
  flush: Effect.void,
  write: () => Effect.void,
  freeze: Effect.void,
  isFrozen: () => false,
  of: () => noop
}

/** The journal of a tree, as its root writes it. Closing the scope flushes; make it in the scope of the lease. */
export const make = (lease: Lease): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.gen(function* () {
    const line = yield* Effect.makeSemaphore(1)
    // Filled by every session of the tree, emptied by whoever flushes; as long as what was noted since the last flush.
    let noted: Array<Draft> = []
    let writing = false
    let frozen = false

    const append = Effect.suspend(() => {
      const drafts = noted
      noted = []
      if (drafts.length === 0) return Effect.void
      writing = true
      return appended(lease, drafts).pipe(
        Effect.onError(() =>
          Effect.sync(() => {
            noted = [...drafts, ...noted]
          })
        ),
        Effect.ensuring(
          Effect.sync(() => {
            writing = false
          })
        )
      )
    })
    // Once it is handed to the store it is written, whoever loses interest: only the wait for one's turn is interruptible.
    const flush = Effect.suspend(() =>
      noted.length === 0 && !writing ? Effect.void : line.withPermits(1)(Effect.uninterruptible(append))
    )

    const of = (sessionId: SessionId): Service => ({
      enabled: true,
      note: (entry) => {
        if (!frozen) noted.push({ sessionId, entry })
      },
      flush,
      write: (entries) =>
        Effect.suspend(() => {
          if (!frozen) for (const entry of entries) noted.push({ sessionId, entry })
          return flush
        }),
      freeze: Effect.suspend(() => {
        frozen = true
        return flush
      }),
      isFrozen: () => frozen,
      of
    })
    yield* Effect.addFinalizer(() => Effect.ignore(flush))
    return of(lease.rootSessionId)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A store is foreign code: what crashes in it, or interrupts itself, has written nothing as far as anybody knows. */
const appended = (lease: Lease, drafts: ReadonlyArray<Draft>): Effect.Effect<void, JournalFailure> =>
  Effect.catchAllCause(
    Effect.suspend(() => Effect.asVoid(lease.append(drafts))),
    (cause) =>
      Option.match(Cause.failureOption(cause), {
        onSome: Effect.fail,
        onNone: () => {
          const reason = "it crashed, and why is in the log"
          const place = { session: lease.rootSessionId }
          return Effect.zipRight(
            Defect.log("The session store", cause, Redaction.shapesOnly, place),
            new StoreUnwritable({ store: "of this program", reason })
          )
        }
      })
  )
