/**
 * What the audit records about an interaction that has ended: that it was answered, and by whom; never the answer.
 *
 * `Approve` is left out: the gate that asked records its decision, which says more than the answer. For grants and
 * envelopes the answer is the decision.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { SessionId } from "../core/Id.js"
import { leftOpen, type AuditClass, type AuditEntry, type AuditOutcome } from "../audit/AuditRecord.js"
import type * as Ballot from "../interaction/Ballot.js"
import type * as Interaction from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import { callOf, turnOf, type InteractionRequest } from "../interaction/InteractionRequest.js"
import type { Answered } from "../interaction/Interactor.js"

/** The entry for a request that was settled with `exit`; nothing when somebody else records the decision. */
export const settled = (
  request: InteractionRequest,
  exit: Exit.Exit<Answered<Interaction.Interaction>, InteractionError>,
  options: {
    /** The root of the tree whose broker settled it. */
    readonly rootSessionId: SessionId
    /** Milliseconds since the epoch. */
    readonly now: number
    /** The process ended first, and the next one goes on with the question. */
    readonly isLeftOpen?: boolean
  }
): Option.Option<AuditEntry> => {
  const { interaction } = request
  return interaction._tag === "Approve"
    ? Option.none()
    : Option.some({
        class: classes[interaction._tag] ?? "interaction",
        kind: interaction._tag,
        rootSessionId: options.rootSessionId,
        sessionId: request.sessionId,
        agent: request.agentPath,
        correlationId: turnOf(request),
        requestId: request.requestId,
        askedAt: request.issuedAt,
        answeredAt: options.now,
        tool: interaction._tag === "grantStageTool" ? interaction.tool : undefined,
        ...(options.isLeftOpen === true
          ? { outcome: "left_open", reason: leftOpen }
          : Exit.isSuccess(exit)
            ? { ...answered(interaction._tag, exit.value), ...timeOf(exit.value, options.now) }
            : unanswered(exit.cause, options.now))
      })
}

/** The entry for the vote of one of several people who have to agree on a call. */
export const voted = (
  request: InteractionRequest,
  { answer, by }: Ballot.Cast,
  rootSessionId: SessionId = request.sessionId,
  answeredAt: number
): AuditEntry => ({
  class: "permission",
  kind: request.interaction._tag,
  outcome: "voted",
  rootSessionId,
  sessionId: request.sessionId,
  agent: request.agentPath,
  correlationId: turnOf(request),
  requestId: request.requestId,
  toolCallId: callOf(request),
  tool: request.interaction._tag === "Approve" ? request.interaction.tool : undefined,
  votes: [{ by, vote: answer.decision }],
  by,
  askedAt: request.issuedAt,
  answeredAt
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const classes: { readonly [K in Interaction.Kind]?: AuditClass } = {
  grantStageTool: "grant",
  approveSubagentEnvelope: "envelope"
}

const timeOf = ({ at }: { readonly at?: number | undefined }, now: number) =>
  at === undefined ? {} : { answeredAt: at, countedAt: now }

type Ending = Pick<AuditEntry, "outcome" | "reason" | "by" | "how">

const answered = (kind: Interaction.Kind, { answer, by, how }: Answered<Interaction.Interaction>): Ending => {
  if (classes[kind] === undefined) return { outcome: "answered", by, how }
  // The answer fits its request's kind, which the type of `Answered` has forgotten.
  const { note, outcome } = answer as Interaction.Answer<Interaction.GrantStageTool>
  return { outcome: outcome === "approve" ? "granted" : "denied", reason: note, by, how }
}

const unanswered = (cause: Cause.Cause<InteractionError>, now: number): Ending => {
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  if (error === undefined) {
    return Cause.isInterrupted(cause)
      ? { outcome: "cancelled", reason: "the work that asked was cancelled" }
      : { outcome: "unavailable", reason: "asking failed" }
  }
  const by = "by" in error ? error.by : undefined
  const time = error._tag === "InteractionCancelled" ? timeOf(error, now) : {}
  return { outcome: outcomes[error._tag], reason: error.message, by, ...time }
}

const outcomes: { readonly [Tag in InteractionError["_tag"]]: AuditOutcome } = {
  InteractionCancelled: "cancelled",
  InteractionTimedOut: "timed_out",
  InteractorUnavailable: "unavailable",
  NoInteractor: "unavailable"
}
