/**
 * What a stored session waits for, and an answer that is kept for it until the session is resumed.
 *
 * All of this is used under the name `SessionStore`.
 */
import * as Either from "effect/Either"
import type { RequestId, SessionId } from "../core/Id.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Tally from "../interaction/Tally.js"
import * as Interaction from "../interaction/Interaction.js"
import * as NeedText from "../interaction/NeedText.js"
import { isAskedOnce, type InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as JournalEntry from "./JournalEntry.js"
import type * as SessionSummary from "./SessionSummary.js"
import * as StoreError from "./StoreError.js"

/**
 * An answer that came while the session was not running.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredAnswer {
  readonly requestId: RequestId
  /** Encoded; it fits the request. */
  readonly answer: unknown
  readonly by: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/**
 * A request that a session waits for: who asks is in its `agentPath`, since when in its `issuedAt`. One that no other process
 * asks again is not among them.
 *
 * @since 0.1.0
 * @category models
 */
export interface WaitingRequest {
  readonly rootSessionId: SessionId
  /** The first words of the session. */
  readonly title: string
  /** The session's workspace, if it has one. */
  readonly workspace?: string | undefined
  readonly request: InteractionRequest
  /** What was stored for it; it counts when the session resumes. */
  readonly answer?: StoredAnswer | undefined
  /** The process that runs the session: there it is answered. */
  readonly holder?: StoreError.Holder | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Checks an encoded answer against a stored request; for stores.
 *
 * @since 0.1.0
 * @category operations
 */
export const accepts = (
  request: InteractionRequest,
  answer: unknown
): Either.Either<void, StoreError.AnswerRefused> => {
  const { requestId, interaction } = request
  if (isAskedOnce(request)) return Either.left(askedOnce(requestId))
  if (Interaction.isSecret(interaction._tag)) {
    const reason = `answers to ${interaction._tag} are secrets and are not stored; resume the session and answer there`
    return Either.left(new StoreError.AnswerRefused({ requestId, problem: "secret", reason }))
  }
  if (Ballot.isReserved(interaction)) {
    const reason = `it ${NeedText.describeAll(interaction.needs.all)}, so that one answer is a vote; see SessionVote`
    return Either.left(new StoreError.AnswerRefused({ requestId, problem: "reserved", reason }))
  }
  const decoded = Interaction.decodeAnswer(interaction, answer)
  return Either.isRight(decoded)
    ? Either.void
    : Either.left(new StoreError.AnswerRefused({ requestId, problem: "misfit", reason: decoded.left }))
}

/**
 * The requests that a session waits for, made of its entries about them; for stores.
 *
 * @since 0.1.0
 * @category conversions
 */
export const waitingIn = (
  { closed, holder, open, rootSessionId, title, workspace }: SessionSummary.Listed,
  about: ReadonlyArray<JournalEntry.Written>,
  answers: ReadonlyArray<StoredAnswer>
): ReadonlyArray<WaitingRequest> => {
  if (closed || open.length === 0) return []
  const raised = new Map<RequestId, InteractionRequest>()
  const votes = new Map<RequestId, ReadonlyArray<JournalEntry.EntryOf<"VoteGiven">>>()
  for (const { entry } of about) {
    if (entry._tag === "InteractionRaised") raised.set(entry.request.requestId, entry.request)
    if (entry._tag === "VoteGiven") votes.set(entry.requestId, [...(votes.get(entry.requestId) ?? []), entry])
  }
  return open.flatMap(({ requestId }) => {
    const request = raised.get(requestId)
    const answer = answers.find((answer) => answer.requestId === requestId)
    return request === undefined || isAskedOnce(request)
      ? []
      : [
          {
            rootSessionId,
            title,
            request: (votes.get(requestId) ?? []).reduce(Tally.withVote, request),
            ...(workspace === undefined ? {} : { workspace }),
            ...(answer === undefined ? {} : { answer }),
            ...(holder === undefined ? {} : { holder })
          }
        ]
  })
}

/**
 * Asked first comes first; for stores.
 *
 * @since 0.1.0
 * @category operations
 */
export const byAge = (a: WaitingRequest, b: WaitingRequest): number =>
  a.request.issuedAt - b.request.issuedAt || (a.request.requestId < b.request.requestId ? -1 : 1)

/**
 * The refusal of an answer to a request that is not open.
 *
 * @since 0.1.0
 * @category constructors
 */
export const notOpen = (requestId: RequestId): StoreError.AnswerRefused =>
  new StoreError.AnswerRefused({ requestId, problem: "notOpen", reason: "no call waits for it" })

/**
 * The refusal of an answer to a request that only its own process asks.
 *
 * @internal
 */
export const askedOnce = (requestId: RequestId): StoreError.AnswerRefused =>
  new StoreError.AnswerRefused({
    requestId,
    problem: "once",
    reason:
      "the work that asks it had begun, and no other process asks it again. A tool with ToolTrait.Resumable does: what its " +
      "handler does before the question runs again"
  })

/**
 * The refusal of an answer when another one came first, from `by`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const answeredAlready = (requestId: RequestId, by: string): StoreError.AnswerRefused =>
  new StoreError.AnswerRefused({ requestId, problem: "answered", reason: `${by} has answered it` })
