/** An interactor of one's own: a rota of reviewers who are asked in turn, behind a broker that lets the first answer win. */
import { InteractionError, Interactor, type InteractionRequest } from "assent"
import * as Effect from "effect/Effect"

/** Somebody who can be asked, such as a chat bot. */
export interface Reviewer {
  readonly name: string
  readonly decide: (question: string) => Effect.Effect<boolean, "away">
}

/** A reviewer as an interactor: decides about tool calls and yes-or-no questions, and takes nothing else. */
export const reviewerInteractor = (reviewer: Reviewer): Interactor.Service => {
  const decide = ({ requestId }: InteractionRequest.InteractionRequest, question: string) =>
    Effect.mapError(
      reviewer.decide(question),
      (reason) => new InteractionError.InteractorUnavailable({ requestId, by: reviewer.name, reason })
    )
  return Interactor.make({
    id: reviewer.name,
    handlers: {
      Approve: (request) =>
        Effect.map(
          decide(
            request,
            `${request.agentPath} wants ${request.interaction.tool} ${request.interaction.argumentsSummary}`
          ),
          (yes) => (yes ? { decision: "allow", scope: "once" } : { decision: "deny", scope: "once" })
        ),
      Confirm: (request) => decide(request, request.interaction.prompt),
      grantStageTool: Interactor.declines,
      approveSubagentEnvelope: Interactor.declines,
      Clarify: Interactor.declines,
      Ask: Interactor.declines,
      Select: Interactor.declines,
      Elicit: Interactor.declines,
      "Auth.DeviceCode": Interactor.declines,
      "Auth.Password": Interactor.declines
    },
    timeouts: { permission: "10 minutes" }
  })
}
