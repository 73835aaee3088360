/**
 * What the bus is told about an interaction: ids, the kind and masked summaries, never anything that could decide. One
 * event raises a request and one settles it.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Redaction from "../core/Redaction.js"
import type * as Spans from "../core/Spans.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import type * as Ballot from "./Ballot.js"
import * as Field from "./Field.js"
import type { Progress } from "./FormProgress.js"
import * as Interaction from "./Interaction.js"
import type { InteractionError } from "./InteractionError.js"
import { callOf, turnOf, type InteractionRequest } from "./InteractionRequest.js"
import type { Answered, Ended } from "./Interactor.js"
import * as Needs from "./Needs.js"
import * as Question from "./Question.js"

/** Publishes what happens to a request, with the asker's origin. */
export const publish = (
  bus: EventBus.Service,
  clock: Clock.Clock,
  request: InteractionRequest,
  body: AgentEvent.Body
): boolean => {
  const { agentPath, sessionId } = request
  return EventPublisher.publish(bus, clock, { sessionId, agent: agentPath, correlationId: turnOf(request) }, body)
}

/** Somebody is about to be asked. */
export const requested = (request: InteractionRequest, redactor: Redaction.Redactor): AgentEvent.Body => {
  const { interaction, requestId } = request
  const kind = interaction._tag
  const summary = Redaction.summarize(summaryOf(interaction), redactor)
  const toolCallId = callOf(request)
  return toolCallId === undefined
    ? { _tag: "InteractionRequested", requestId, kind, summary }
    : { _tag: "InteractionRequested", requestId, kind, summary, toolCallId }
}

/** One question of a form was asked or answered. */
export const progressed = (
  { requestId }: InteractionRequest,
  { answer, number, total }: Progress,
  redactor: Redaction.Redactor
): AgentEvent.Body =>
  answer === undefined
    ? { _tag: "QuestionDisplayed", requestId, index: number, total }
    : { _tag: "QuestionAnswered", requestId, index: number, summary: redactor.text(Question.summarize(answer)) }

/** How the request ended. An answer's value is masked, and absent for kinds whose answers are secrets. */
export const settled = (
  { interaction, requestId }: InteractionRequest,
  exit: Exit.Exit<Answered<Interaction.Interaction>, InteractionError>,
  redactor: Redaction.Redactor
): AgentEvent.Body => {
  const common = { requestId, kind: interaction._tag }
  if (Exit.isSuccess(exit)) {
    const { answer, by, how, votes } = exit.value
    // Only an approval takes votes; the type of all votes cannot say so.
    const told = votes === undefined ? {} : { votes: Needs.votedOf(votes as ReadonlyArray<Ballot.Cast>) }
    const value = Interaction.isSecret(interaction._tag) ? {} : { value: redactor.value(answer) }
    return { _tag: "InteractionAnswered", ...common, status: "answered", ...value, by, how, ...told }
  }
  const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
  switch (error?._tag) {
    case "InteractionTimedOut":
      return { _tag: "InteractionTimedOut", ...common, by: error.by }
    case "InteractorUnavailable":
    case "NoInteractor":
      return { _tag: "InteractionUnavailable", ...common, reason: redactor.text(error.message) }
    default:
      return { _tag: "InteractionCancelled", ...common, ...(error?.by === undefined ? {} : { by: error.by }) }
  }
}

/** How a request ended, in one word, and who ended it; `by` is absent when nobody decided that. */
export const endOf = (
  exit: Exit.Exit<Answered<Interaction.Interaction>, InteractionError>
): Pick<Ended, "status" | "by"> => {
  if (Exit.isSuccess(exit)) return { status: "answered", by: exit.value.by }
  const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
  switch (error?._tag) {
    case "InteractionTimedOut":
      return { status: "timed_out", by: error.by }
    case "InteractorUnavailable":
    case "NoInteractor":
      return { status: "unavailable", by: undefined }
    default:
      return { status: "cancelled", by: error?.by }
  }
}

/** The span of a request, with the asker's origin. */
export const spanOf = <I extends Interaction.Interaction>(
  { agentPath, interaction, requestId, sessionId }: InteractionRequest<I>,
  spans: Spans.Service
): Spans.Opening<Answered<I>, InteractionError> => ({
  name: "assent.interaction",
  attributes: {
    "gen_ai.agent.name": agentPath,
    "gen_ai.conversation.id": sessionId,
    "assent.request.id": requestId,
    "assent.interaction.kind": interaction._tag,
    "assent.interaction.prompt": spans.content(summaryOf(interaction))
  },
  ended: (exit) =>
    Exit.isSuccess(exit) ? { "assent.interaction.by": exit.value.by, "assent.interaction.how": exit.value.how } : {}
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const summaryOf = (interaction: Interaction.Interaction): string => {
  switch (interaction._tag) {
    case "Approve":
      return `${interaction.tool} ${interaction.argumentsSummary}`
    case "grantStageTool":
      return `${interaction.tool} ${interaction.argsSummary}`
    case "approveSubagentEnvelope":
      return `${interaction.subagentId}: ${interaction.requestedEnvelope.join(", ")}`
    case "Clarify":
      return interaction.questions.map((question) => question.text).join(" · ")
    case "Elicit":
      return `${interaction.title}: ${interaction.fields.map(Field.titleOf).join(", ")}`
    case "Auth.DeviceCode":
      return interaction.url
    default:
      return interaction.prompt
  }
}
