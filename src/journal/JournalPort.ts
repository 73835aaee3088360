/** Where a running tree notes what it does, and the journal of a tree that is not kept. */
import * as Effect from "effect/Effect"
import type { SessionId } from "../core/Id.js"
import type { Decision } from "../audit/AuditRecord.js"
import type { JournalEntry } from "./JournalEntry.js"
import type { Content } from "./SessionStore.js"
import type { SessionTakenOver, StoreUnwritable } from "./StoreError.js"

/**
 * Why entries could not be written.
 *
 * @since 0.1.0
 * @category errors
 */
export type JournalFailure = StoreUnwritable | SessionTakenOver

export interface Service {
  /** False: nothing is stored, so entries need not be made. */
  readonly enabled: boolean
  /**
   * Adds an entry. It is in memory until a flush. A request has one settling entry: a second one is left out, and so is one
   * of a request that was never raised.
   */
  readonly note: (entry: JournalEntry) => void
  /**
   * Returns when all entries of the tree until now are durable. It waits as long as the store takes, and repeats what fails for
   * a reason that passes. It fails only when the store says that nothing is written, or when the life ends first. Then
   * entries keep their place, and the next flush retries them.
   */
  readonly flush: Effect.Effect<void, JournalFailure>
  /** Notes and flushes. `decision`: what the audit has of the entries, if they are noted, and if the store keeps the audit. */
  readonly write: (entries: ReadonlyArray<JournalEntry>, decision?: Decision) => Effect.Effect<void, JournalFailure>
  /**
   * The same for entries that count only once they are durable: answers, votes, starts of tools. When it fails, none of them
   * stays, and neither does the decision, so that nothing that follows stands beside them.
   */
  readonly commit: (entries: ReadonlyArray<JournalEntry>, decision?: Decision) => Effect.Effect<void, JournalFailure>
  /**
   * Undefined if the store does not keep the audit. Adds a decision to it, which becomes durable with the entries that are
   * noted in this step, and not without them.
   */
  readonly decide: ((decision: Decision) => void) | undefined
  /**
   * Flushes, and ignores later entries: they must not be resumed from, such as the end of a turn that halted without an
   * answer. It waits for the store for `JournalWriter.patience` at most: after that no append of this life begins.
   */
  readonly freeze: Effect.Effect<void, JournalFailure>
  /** Whether it is frozen: a resuming process would know of nothing that begins now. */
  readonly isFrozen: () => boolean
  /** From now on no tool begins: a call that is allowed waits for the next process. */
  readonly hold: Effect.Effect<void>
  readonly isHeld: () => boolean
  /** Keeps content for entries that will refer to it; durable when it returns. */
  readonly keep: (contents: ReadonlyArray<Content>) => Effect.Effect<void, JournalFailure>
  /** The same journal for another session of the tree. */
  readonly of: (sessionId: SessionId) => Service
}

/** Keeps nothing. */
export const noop: Service = {
  enabled: false,
  note: () => {},
  flush: Effect.void,
  write: () => Effect.void,
  commit: () => Effect.void,
  decide: undefined,
  freeze: Effect.void,
  isFrozen: () => false,
  hold: Effect.void,
  isHeld: () => false,
  keep: () => Effect.void,
  of: () => noop
}
