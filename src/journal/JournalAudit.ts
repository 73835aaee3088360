/** The audit of a tree whose store keeps it: a decision becomes durable with the entry about it, in one append. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as AuditRecord from "../audit/AuditRecord.js"
import * as AuditTrail from "../audit/AuditTrail.js"
import type { SessionId } from "../core/Id.js"
import type { Redactor } from "../core/Redaction.js"
import type { Service } from "./JournalPort.js"
import type { SessionTakenOver, StoreUnwritable } from "./StoreError.js"
import type { Draft } from "./JournalEntry.js"
import type * as SessionStore from "./SessionStore.js"
import * as Redaction from "../core/Redaction.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Undefined if the store of the journal keeps no audit. */
export const of = (journal: Service, redactor: Redactor): AuditTrail.Service | undefined => {
  const { decide } = journal
  return (
    decide && {
      record: (entry) =>
        Effect.flatMap(decisionOf(entry, redactor), (decision) =>
          Effect.mapError(journal.write([], decision), ({ message }) =>
            unwritable(entry.rootSessionId, message.replace(/\.$/, ""))
          )
        ),
      note: (entries) => {
        const decisions = Either.all(entries.map((entry) => decisionOf(entry, redactor)))
        if (Either.isLeft(decisions)) return decisions.left
        decisions.right.forEach(decide)
        return undefined
      },
      release: () => Effect.void
    }
  )
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Appends entries with what the audit has of them: in one step if the store keeps the audit, else into the trail around,
 * before the entries.
 */
export const append = (
  lease: SessionStore.Lease,
  drafts: ReadonlyArray<Draft>,
  audited: AuditRecord.AuditEntry
): Effect.Effect<void, AuditTrail.AuditUnwritable | StoreUnwritable | SessionTakenOver> =>
  lease.decide === undefined
    ? Effect.zipRight(AuditTrail.record(audited), lease.append(drafts))
    : Effect.flatMap(decisionOf(audited, Redaction.shapesOnly), (decision) =>
        lease.append(drafts.map((draft, index) => (index === 0 ? { ...draft, decisions: [decision] } : draft)))
      )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decisionOf = (entry: AuditRecord.AuditEntry, redactor: Redactor) =>
  Either.mapLeft(AuditRecord.decision(entry, redactor), (reason) => unwritable(entry.rootSessionId, reason))

const unwritable = (sessionId: SessionId, reason: string) =>
  new AuditTrail.AuditUnwritable({ directory: "the session store", sessionId, reason })
