/**
 * The ways in which an interaction ends without an answer, and the ways in which an answer is rejected.
 *
 * Unavailable, timed out and cancelled stay different all the way into the tool result and the audit.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import { RequestId } from "../core/Id.js"
import { Problem } from "./Field.js"

/**
 * The request was withdrawn: by the person, by a closed dialog, or because the asking work was cancelled.
 *
 * @since 0.1.0
 * @category errors
 */
export class InteractionCancelled extends Schema.TaggedError<InteractionCancelled>(
  "assent/interaction/InteractionCancelled"
)("InteractionCancelled", {
  requestId: RequestId,
  by: Schema.optional(Schema.String),
  /** Milliseconds since the epoch. Present when an earlier process had withdrawn it. */
  at: Schema.optional(Schema.Number)
}) {
  override get message(): string {
    return this.by === undefined ? "The question was cancelled." : `The question was cancelled by ${this.by}.`
  }
}

/**
 * No answer came within the interactor's time.
 *
 * @since 0.1.0
 * @category errors
 */
export class InteractionTimedOut extends Schema.TaggedError<InteractionTimedOut>(
  "assent/interaction/InteractionTimedOut"
)("InteractionTimedOut", {
  requestId: RequestId,
  by: Schema.String,
  /** Milliseconds. */
  after: Schema.Number
}) {
  override get message(): string {
    return `${this.by} did not answer within ${this.after / 1000} s.`
  }
}

/**
 * The interactor could not ask: its transport failed, it does not take this kind, or all interactors have left.
 *
 * @since 0.1.0
 * @category errors
 */
export class InteractorUnavailable extends Schema.TaggedError<InteractorUnavailable>(
  "assent/interaction/InteractorUnavailable"
)("InteractorUnavailable", { requestId: RequestId, by: Schema.String, reason: Schema.String }) {
  override get message(): string {
    return `${this.by} could not answer: ${this.reason}`
  }
}

/**
 * No interactor is attached.
 *
 * @since 0.1.0
 * @category errors
 */
export class NoInteractor extends Schema.TaggedError<NoInteractor>("assent/interaction/NoInteractor")("NoInteractor", {
  requestId: RequestId
}) {
  override get message(): string {
    return "No attached channel can answer. Attach one that can."
  }
}

/**
 * How a request can end without an answer.
 *
 * @since 0.1.0
 * @category errors
 */
export const InteractionError = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Union(InteractionCancelled, InteractionTimedOut, InteractorUnavailable, NoInteractor)
)
export type InteractionError = typeof InteractionError.Type

/**
 * The answer came too late: the request was settled before; `by` says by whom. A normal end for an interactor.
 *
 * @since 0.1.0
 * @category errors
 */
export class InteractionAlreadyAnswered extends Schema.TaggedError<InteractionAlreadyAnswered>(
  "assent/interaction/InteractionAlreadyAnswered"
)("InteractionAlreadyAnswered", { requestId: RequestId, by: Schema.String }) {
  override get message(): string {
    return `Request ${this.requestId} was already settled by ${this.by}; close the dialog.`
  }

  /** @deprecated It is called `by`. */
  get winner(): string {
    return this.by
  }
}

/**
 * No request with this id is open here.
 *
 * @since 0.1.0
 * @category errors
 */
export class UnknownRequest extends Schema.TaggedError<UnknownRequest>("assent/interaction/UnknownRequest")(
  "UnknownRequest",
  { requestId: Schema.String }
) {
  override get message(): string {
    return `No open request is named ${JSON.stringify(UntrustedJson.echo(this.requestId))}.`
  }
}

/**
 * The answer does not fit the request's kind. The request stays open.
 *
 * @since 0.1.0
 * @category errors
 */
export class MalformedAnswer extends Schema.TaggedError<MalformedAnswer>("assent/interaction/MalformedAnswer")(
  "MalformedAnswer",
  {
    requestId: Schema.String,
    kind: Schema.String,
    reason: Schema.String,
    /** Field by field, where a form was filled in. */
    problems: Schema.optional(Schema.Array(Problem))
  }
) {
  override get message(): string {
    return `That is not an answer to ${this.kind} ${this.requestId}: ${this.reason}`
  }
}

/**
 * The answer of this person does not count, or could not be recorded. The request stays open.
 *
 * @since 0.1.0
 * @category errors
 */
export class VoteRefused extends Schema.TaggedError<VoteRefused>("assent/interaction/VoteRefused")("VoteRefused", {
  requestId: Schema.String,
  by: Schema.String,
  reason: Schema.String,
  /** It could not be recorded at that moment. Give it again. */
  unwritten: Schema.optional(Schema.Literal(true))
}) {
  override get message(): string {
    return `The answer of ${UntrustedJson.echo(this.by)} does not count: ${this.reason}`
  }
}

/**
 * Why an answer was turned away.
 *
 * @since 0.1.0
 * @category errors
 */
export type AnswerRejected = InteractionAlreadyAnswered | UnknownRequest | MalformedAnswer | VoteRefused

/**
 * A request names a kind outside the contract; nothing was shown.
 *
 * @since 0.1.0
 * @category errors
 */
export class InteractionKindUnknown extends Schema.TaggedError<InteractionKindUnknown>(
  "assent/interaction/InteractionKindUnknown"
)("InteractionKindUnknown", { kind: Schema.String }) {
  override get message(): string {
    return `There is no interaction kind ${JSON.stringify(UntrustedJson.echo(this.kind))} in this contract version.`
  }
}

/**
 * A request's payload does not match its kind; nothing was shown.
 *
 * @since 0.1.0
 * @category errors
 */
export class InteractionPayloadMismatch extends Schema.TaggedError<InteractionPayloadMismatch>(
  "assent/interaction/InteractionPayloadMismatch"
)("InteractionPayloadMismatch", { kind: Schema.String, reason: Schema.String }) {
  override get message(): string {
    return `The payload does not match kind ${this.kind}: ${this.reason}`
  }
}
