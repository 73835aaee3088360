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
 *
 * A flush has no time limit: until the store says whether an append is written, nothing is decided on it. So a slow store
 * makes things late, and never settles them. Only the end of the life stops waiting, and it decides nothing either.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Decision } from "../audit/AuditRecord.js"
import * as Defect from "../core/Defect.js"
import type { RequestId, SessionId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import * as GracePeriod from "../internal/GracePeriod.js"
import { OneShot } from "../internal/OneShot.js"
import type { Draft, JournalEntry } from "./JournalEntry.js"
import { silentAfter } from "./SessionLease.js"
import { isPrompt, type Lease } from "./SessionStore.js"
import { StoreUnwritable } from "./StoreError.js"
import type { JournalFailure, Service } from "./JournalPort.js"

export { noop, type JournalFailure, type Service } from "./JournalPort.js"

/**
 * Milliseconds that the end of a life waits for its last append. A holder that is silent for as long has lost its lease.
 */
export const patience = silentAfter

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Called in the step in which entries are noted, and in the one in which they turn out to be appended, in order. */
export interface Observer {
  readonly note: (draft: Draft) => void
  readonly append: (drafts: ReadonlyArray<Draft & { readonly at: number }>) => void
  /** So many noted entries were taken back, none of which is appended. */
  readonly retract: (count: number) => void
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
    /** The life has ended: no append begins any more. */
    let isOver = false
    /** Ends the wait for the append that the store has now. */
    let letGo: (() => void) | undefined
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
    const takeBack = ({ decision, entries }: Own) => {
      const isOwn = ({ entry }: Draft) => entries.includes(entry)
      const own = noted.filter(isOwn)
      if (own.length === 0) return
      noted = noted.filter((draft) => !isOwn(draft))
      decided = decided.filter((one) => one !== decision)
      for (const { entry } of own) if (entry._tag === "InteractionSettled") open.add(entry.requestId)
      observer?.retract(own.length)
    }
    /** Until the store has said whether it is written, or the life is over: then the lease writes it, or the next one fences it. */
    const settled = (written: Effect.Effect<void, JournalFailure>): Effect.Effect<void, JournalFailure> =>
      Effect.flatMap(Effect.forkDaemon(written), (fiber) => {
        const verdict = new OneShot<Effect.Effect<void, JournalFailure>>()
        letGo = () => verdict.complete(unanswered)
        fiber.addObserver((exit) => verdict.complete(exit))
        const inTime = GracePeriod.wait((done) => fiber.addObserver(done), patience)
        const told = Effect.flatMap(inTime, (isInTime) => (isInTime ? Effect.void : slowness(lease)))
        return Effect.zipRight(Effect.forkDaemon(told), Effect.flatten(verdict))
      })

    const append = (own: Own | undefined) =>
      Effect.suspend(() => {
        if (isOver) {
          if (own !== undefined) takeBack(own)
          return unanswered
        }
        if (noted.length === 0 && decided.length === 0) return Effect.void
        const now = clock.unsafeCurrentTimeMillis()
        const drafts = noted.map((draft): Timed => ({ ...draft, at: draft.at ?? now }))
        const batch = { drafts, decisions: decided }
        noted = []
        decided = []
        writing = true
        const attempt = appended(lease, batch)
        const isPassing = (error: JournalFailure) =>
          !isOver && error._tag === "StoreUnwritable" && error.passing === true
        const written = Effect.matchCauseEffect(
          isPrompt(lease) ? attempt : Effect.retry(attempt, { while: isPassing, schedule: again }),
          {
            onFailure: (cause) => {
              putBack(batch)
              if (own !== undefined) takeBack(own)
              return Effect.failCause(cause)
            },
            onSuccess: () => {
              observer?.append(drafts)
              return Effect.void
            }
          }
        )
        return Effect.ensuring(
          isPrompt(lease) ? written : settled(written),
          Effect.sync(() => {
            writing = false
          })
        )
      })
    // Only the wait for the lock is interruptible: an append that has reached the store completes.
    const flushing = (own?: Own) =>
      Effect.suspend(() =>
        noted.length === 0 && decided.length === 0 && !writing
          ? Effect.void
          : line.withPermits(1)(Effect.uninterruptible(append(own)))
      )
    const flush = flushing()
    /** The last flush. A store that does not answer does not hold the end of a life. */
    const end = isPrompt(lease)
      ? flush
      : Effect.flatMap(Effect.forkDaemon(flush), (fiber) =>
          Effect.flatMap(
            GracePeriod.wait((done) => fiber.addObserver(done), patience),
            () => {
              const exit = fiber.unsafePoll()
              if (exit !== null) return exit
              isOver = true
              letGo?.()
              return unanswered
            }
          )
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
      commit: (entries, decision) =>
        Effect.suspend(() => {
          const isNew = entries.map((entry) => file({ sessionId, entry })).every((isFiled) => isFiled)
          if (isNew && decision !== undefined && decide !== undefined) decided.push(decision)
          const own = { entries, decision }
          return Effect.onInterrupt(flushing(own), () => Effect.sync(() => takeBack(own)))
        }),
      decide,
      freeze: Effect.suspend(() => {
        frozen = true
        return end
      }),
      isFrozen: () => frozen,
      hold: Effect.sync(() => {
        held = true
      }),
      isHeld: () => held,
      keep,
      of
    })
    yield* Effect.addFinalizer(() => Effect.ignore(end))
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

/** What has to be written whole, or not at all. */
interface Own {
  readonly entries: ReadonlyArray<JournalEntry>
  readonly decision: Decision | undefined
}

/** How often an append is repeated whose failure may pass. */
const again = Schedule.spaced("250 millis")

const waited = Duration.format(patience)

const unanswered = new StoreUnwritable({
  store: "of this program",
  reason: `it has not answered for ${waited}`
})

/** For the people who run the program: nothing fails meanwhile. */
const slowness = ({ rootSessionId }: Lease): Effect.Effect<void> =>
  Effect.logWarning(`The session store has written nothing for ${waited}. Session ${rootSessionId} waits for it.`)

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
