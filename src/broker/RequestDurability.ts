/**
 * What must be recorded of a request before it continues: that it was raised, before anybody sees it, and how it ended,
 * before that counts. An answer that could not be recorded does not count.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Origin from "../core/Origin.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import type * as Ballot from "../interaction/Ballot.js"
import * as Interaction from "../interaction/Interaction.js"
import * as InteractionAudit from "./InteractionAudit.js"
import { InteractionCancelled, InteractorUnavailable, type InteractionError } from "../interaction/InteractionError.js"
import type { InteractionJournal, Kept } from "./InteractionJournal.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Asking from "../interaction/Asking.js"
import type { Answered } from "../interaction/Interactor.js"

type End = Exit.Exit<Answered<Interaction.Interaction>, InteractionError>

export interface Options {
  readonly audit?: AuditTrail.Service | undefined
  readonly journal?: InteractionJournal | undefined
  /** The origin of the broker. */
  readonly origin?: Origin.Origin | undefined
}

/** The end of a request that is not to be asked: it ended while no process ran, or it could not be recorded. */
export const raised = ({ journal }: Options, request: InteractionRequest): Effect.Effect<End | undefined> => {
  if (journal === undefined) return Effect.succeed(undefined)
  const { requestId } = request
  const known = before(request, journal.kept(requestId))
  // The journal has its end already, and nobody is asked again.
  if (known !== undefined) return Effect.succeed(known)
  return Effect.match(journal.raised(request), {
    onFailure: (reason): End => Exit.fail(new InteractorUnavailable({ requestId, by: "journal", reason })),
    onSuccess: () => undefined
  })
}

/** The end as it counts once it is in the journal and in the audit. What the next process goes on with has none here. */
export const settled = (options: Options, request: InteractionRequest, end: End): Effect.Effect<End> => {
  const { audit, journal } = options
  if (journal === undefined) return audit === undefined ? Effect.succeed(end) : audited(audit, options, request, end)
  if (journal.isParked()) {
    const open: End = Exit.fail(new InteractionCancelled({ requestId: request.requestId }))
    return audit === undefined ? Effect.succeed(open) : audited(audit, options, request, open, true)
  }
  const kept = Effect.match(journal.settled(request, end), {
    onSuccess: () => end,
    onFailure: (reason) => uncounted(end, request, "journal", reason)
  })
  return audit === undefined ? kept : Effect.flatMap(kept, (known) => audited(audit, options, request, known))
}

/**
 * Returns when a vote is in the audit and in the journal; fails with a sentence. The audit is first: a vote that is in the
 * journal is not given again.
 */
export const voted = (
  { audit, journal, origin }: Options,
  request: InteractionRequest,
  vote: Ballot.Cast
): Effect.Effect<void, string> => {
  const kept = journal === undefined ? Effect.void : journal.voted(request, vote)
  if (audit === undefined || journal?.isParked() === true) return kept
  const recorded = Effect.flatMap(Clock.currentTimeMillis, (answeredAt) =>
    audit.record(InteractionAudit.voted(request, vote, origin?.rootSessionId, answeredAt))
  )
  return Effect.zipRight(
    Effect.mapError(recorded, ({ message }) => message),
    kept
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A kept end that does not fit belongs to another question; this one is asked. */
const before = ({ interaction, requestId }: InteractionRequest, kept: Kept | undefined): End | undefined => {
  if (kept === undefined) return undefined
  const { answer, at, by, how = "answered" } = kept
  if (answer === undefined) return Exit.fail(new InteractionCancelled({ requestId, at, by }))
  const decoded = Interaction.decodeAnswer(interaction, answer)
  return Either.isLeft(decoded) ? undefined : Exit.succeed(Asking.told({ answer: decoded.right, at, by, how }))
}

const audited = (
  audit: AuditTrail.Service,
  { origin }: Options,
  request: InteractionRequest,
  end: End,
  isLeftOpen = false
): Effect.Effect<End> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const rootSessionId = origin?.rootSessionId ?? request.sessionId
    const entry = InteractionAudit.settled(request, end, { rootSessionId, now, isLeftOpen })
    if (Option.isNone(entry)) return Effect.succeed(end)
    return Effect.match(audit.record(entry.value), {
      onSuccess: () => end,
      onFailure: ({ message }) => uncounted(end, request, "audit", message)
    })
  })

const uncounted = (end: End, { requestId }: InteractionRequest, by: string, reason: string): End =>
  Exit.isFailure(end) ? end : Exit.fail(new InteractorUnavailable({ requestId, by, reason }))
