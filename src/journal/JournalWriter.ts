/**
 * Writes the journal of a running tree: notes in memory at once, and on the disk when it matters.
 *
 * ```
 *  note ─┐
 *  note ─┼─► noted, in the order of the whole tree ──flush──► one append ─► flush returns
 *  note ─┘
 * ```
 *
 * Noting is synchronous, so that an action and its entry are one step. All sessions of a tree share one queue,
 * whichever of them flushes: a child's entries never overtake the parent's call that made it. Flush before anything
 * that cannot be undone, and before reporting that something is safe.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { Decision } from "../audit/AuditRecord.js"
import * as Defect from "../core/Defect.js"
import type { RequestId, SessionId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import * as GracePeriod from "../internal/GracePeriod.js"
import type { Draft } from "./JournalEntry.js"
import { silentAfter } from "./SessionLease.js"
import { isPrompt, type Lease } from "./SessionStore.js"
import { StoreUnwritable } from "./StoreError.js"
import type { JournalFailure, Service } from "./JournalPort.js"

export { noop, type JournalFailure, type Service } from "./JournalPort.js"

/** Milliseconds that a store may take for an append. A holder that is silent for as long has lost its lease. */
export const patience = silentAfter

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Called in the step in which entries are noted, and in the one in which they turn out to be appended, in order. */
export interface Observer {
  readonly note: (draft: Draft) => void
  readonly append: (drafts: ReadonlyArray<Draft & { readonly at: number }>) => void
}

/**
 * The journal of a tree, as its root writes it. Closing the scope flushes; make it in the scope of the lease. `raised`: the
 * requests that are open in it.
 */
export const make = (
  lease: Lease,
  { observer, raised = [] }: { readonly observer?: Observer; readonly raised?: Iterable<RequestId> } = {}
): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.gen(function* () {
    const line = yield* Effect.makeSemaphore(1)
    const clock = yield* Effect.clock
    // A queue filled by every session of the tree and emptied by a flush; as long as the entries since the last flush.
    let noted: Array<Draft> = []
    /** Of the entries that are noted. */
    let decided: Array<Decision> = []
    const open = new Set(raised)
    let writing = false
    let frozen = false
    let held = false
    // An append that the store has not answered in time. Until it does nobody knows whether its entries are written, so
    // nothing is written behind them.
    let late: (Batch & { readonly fiber: Appending }) | undefined
    /** Every entry passes here. A request that is not open has its one settling entry. False: it is left out. */
    const file = (draft: Draft): boolean => {
      if (frozen) return false
      const { entry } = draft
      if (entry._tag === "InteractionRaised") open.add(entry.request.requestId)
      if (entry._tag === "InteractionSettled" && !open.delete(entry.requestId)) return false
      noted.push(draft)
      observer?.note(draft)
      return true
    }
    const putBack = ({ decisions, drafts }: Batch) => {
      noted = [...drafts, ...noted]
      decided = [...decisions, ...decided]
    }
    /** False while it is not answered. */
    const lateIsOver = (): boolean => {
      if (late === undefined) return true
      const exit = late.fiber.unsafePoll()
      if (exit === null) return false
      const batch = late
      late = undefined
      if (Exit.isFailure(exit)) putBack(batch)
      else observer?.append(batch.drafts)
      return true
    }
    const bounded = (batch: Batch): Effect.Effect<void, JournalFailure> =>
      Effect.flatMap(Effect.forkDaemon(appended(lease, batch)), (fiber) =>
        Effect.flatMap(
          GracePeriod.wait((done) => fiber.addObserver(done), patience),
          () => {
            late = { fiber, ...batch }
            return lateIsOver() ? (fiber.unsafePoll() ?? Exit.void) : unanswered
          }
        )
      )

    const append = Effect.suspend(() => {
      if (!lateIsOver()) return unanswered
      if (noted.length === 0 && decided.length === 0) return Effect.void
      const now = clock.unsafeCurrentTimeMillis()
      const drafts = noted.map((draft): Timed => ({ ...draft, at: draft.at ?? now }))
      const batch = { drafts, decisions: decided }
      noted = []
      decided = []
      writing = true
      const written = isPrompt(lease)
        ? Effect.matchCauseEffect(appended(lease, batch), {
            onFailure: (cause) => {
              putBack(batch)
              return Effect.failCause(cause)
            },
            onSuccess: () => {
              observer?.append(drafts)
              return Effect.void
            }
          })
        : bounded(batch)
      return Effect.ensuring(
        written,
        Effect.sync(() => {
          writing = false
        })
      )
    })
    // Only the wait for the lock is interruptible: an append that has reached the store completes.
    const flush = Effect.suspend(() =>
      noted.length === 0 && decided.length === 0 && !writing && late === undefined
        ? Effect.void
        : line.withPermits(1)(Effect.uninterruptible(append))
    )

    const decide: Service["decide"] =
      lease.decide &&
      ((decision) => {
        if (!frozen) decided.push(decision)
      })

    const keep: Service["keep"] = (contents) =>
      Effect.forEach(contents, (content) => sound(lease, () => lease.putContent(content)), { discard: true })

    const of = (sessionId: SessionId): Service => ({
      enabled: true,
      note: (entry) => file({ sessionId, entry }),
      flush,
      write: (entries, decision) =>
        Effect.suspend(() => {
          const filed = entries.map((entry) => file({ sessionId, entry }))
          if (decision !== undefined && decide !== undefined && filed.every((isNew) => isNew)) decided.push(decision)
          return flush
        }),
      decide,
      freeze: Effect.suspend(() => {
        frozen = true
        return flush
      }),
      isFrozen: () => frozen,
      hold: Effect.sync(() => {
        held = true
      }),
      isHeld: () => held,
      keep,
      of
    })
    yield* Effect.addFinalizer(() => Effect.ignore(flush))
    return of(lease.rootSessionId)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** With the time at which it is written. */
type Timed = Draft & { readonly at: number }

/** What is appended in one step. */
interface Batch {
  readonly drafts: ReadonlyArray<Timed>
  readonly decisions: ReadonlyArray<Decision>
}

type Appending = Fiber.RuntimeFiber<void, JournalFailure>

const unanswered = new StoreUnwritable({
  store: "of this program",
  reason: `it has not answered for ${Duration.format(patience)}`
})

/** A store is foreign code: a defect or an interrupt of its own counts as nothing written. */
const appended = (lease: Lease, { decisions, drafts: [first, ...rest] }: Batch): Effect.Effect<void, JournalFailure> =>
  sound(lease, () => {
    if (first === undefined) return lease.decide?.(decisions) ?? Effect.void
    return lease.append([decisions.length === 0 ? first : { ...first, decisions }, ...rest])
  })

const sound = (
  { rootSessionId }: Lease,
  write: () => Effect.Effect<void, JournalFailure>
): Effect.Effect<void, JournalFailure> =>
  Effect.catchAllCause(
    Effect.suspend(() => Effect.asVoid(write())),
    (cause) =>
      Option.match(Cause.failureOption(cause), {
        onSome: Effect.fail,
        onNone: () => {
          const reason = "it crashed, and why is in the log"
          const place = { session: rootSessionId }
          return Effect.zipRight(
            Defect.log("The session store", cause, Redaction.shapesOnly, place),
            new StoreUnwritable({ store: "of this program", reason })
          )
        }
      })
  )
