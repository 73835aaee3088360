/**
 * A vote on a stored request, while no process runs its session: where a rule reserves a call, an answer is one person's vote,
 * and several may give theirs before the session goes on.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as AuditTrail from "../audit/AuditTrail.js"
import * as InteractionAudit from "../broker/InteractionAudit.js"
import type { RequestId, SessionId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Tally from "../interaction/Tally.js"
import * as Interaction from "../interaction/Interaction.js"
import { isAskedOnce } from "../interaction/InteractionRequest.js"
import * as SessionSnapshot from "./SessionSnapshot.js"
import * as JournalAudit from "./JournalAudit.js"
import type * as SessionStore from "./SessionStore.js"
import * as StoreError from "./StoreError.js"
import * as WaitingRequest from "./WaitingRequest.js"

/**
 * A person's vote on a stored request.
 *
 * @since 0.1.0
 * @category models
 */
export interface Vote {
  readonly rootSessionId: SessionId
  readonly requestId: RequestId
  /** Encoded. */
  readonly answer: unknown
  /** The person, as the program has signed them in. */
  readonly by: string
  /** Roles of theirs, beside those of the policy. */
  readonly roles?: ReadonlyArray<string> | undefined
}

/**
 * What came of a vote: who is missing, or nobody is. What the votes come to is decided when the session goes on, by the policy
 * of that time.
 *
 * @since 0.1.0
 * @category models
 */
export interface Given {
  /** Such as `1 more of: ops`. */
  readonly missing: string | undefined
}

/**
 * Writes the vote into the session's journal and into the audit trail around, and returns when it is durable. The same vote again changes nothing; another one
 * of the same person replaces it.
 *
 * @since 0.1.0
 * @category operations
 */
export const give = (
  store: SessionStore.Service,
  { answer, by, requestId, roles, rootSessionId }: Vote
): Effect.Effect<
  Given,
  | AuditTrail.AuditUnwritable
  | StoreError.AnswerRefused
  | StoreError.SessionLocked
  | StoreError.SessionTakenOver
  | StoreError.SessionUnknown
  | StoreError.JournalUnreadable
  | StoreError.StoreUnwritable
  | StoreError.StoreUnusable
> =>
  Effect.gen(function* () {
    // From now on no process goes on without this vote.
    const lease = yield* store.lock(rootSessionId)
    const { sessions } = SessionSnapshot.fold((yield* store.load(rootSessionId)).entries)
    const refused = (problem: StoreError.AnswerRefused["problem"], reason: string) =>
      new StoreError.AnswerRefused({ requestId, problem, reason })
    const session = sessions.find(({ open }) => open.some((request) => request.requestId === requestId))
    const request = session?.open.find((request) => request.requestId === requestId)
    if (session === undefined || request === undefined) return yield* refused("notOpen", "no call waits for it")
    const { interaction } = request
    if (isAskedOnce(request)) return yield* WaitingRequest.askedOnce(requestId)
    if (!Ballot.isReserved(interaction)) return yield* refused("misfit", "one answer decides it, so it takes no votes")
    const decoded = Interaction.decodeAnswer(interaction, answer)
    if (Either.isLeft(decoded)) return yield* refused("misfit", decoded.left)
    const reason = Tally.refusal(interaction.needs, { by, roles })
    if (reason !== undefined) return yield* refused("reserved", reason)
    const { comment, ...decided } = { comment: undefined, ...decoded.right }
    // A vote stays in the journal, and one that is masked there is none.
    if (Redaction.shapesOnly.value(decided) !== decided) return yield* refused("secret", secret)
    const given =
      comment === undefined ? decoded.right : { ...decoded.right, comment: Redaction.shapesOnly.text(comment) }
    const { digest } = interaction.needs
    const cast = session.votes.filter((vote) => vote.requestId === requestId && vote.digest === digest)
    const vote = { answer: given, by, ...(roles && { roles }) }
    const votes = Tally.having(interaction, cast, vote)
    if (votes !== undefined) {
      const entry = { _tag: "VoteGiven", requestId, digest, ...vote } as const
      const now = yield* Clock.currentTimeMillis
      const audited = InteractionAudit.voted(request, vote, rootSessionId, now)
      yield* JournalAudit.append(lease, [{ sessionId: session.opened.sessionId, entry }], audited)
    }
    const standing = Tally.standing(interaction, votes ?? cast)
    return { missing: standing._tag === "Open" ? standing.missing : undefined }
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const secret = "it looks like it holds a secret, and votes are stored; resume the session and vote there"
