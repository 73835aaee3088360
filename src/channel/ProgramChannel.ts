/**
 * What the channels have in common that ask programs rather than a person at a screen: how long they wait, which kinds
 * they hand out over a disk or a network, and that they end with their scope.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Answer, Interaction } from "../interaction/Interaction.js"
import { InteractionCancelled, type InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"

/** How long a request waits when no timeouts are given: 30 seconds for permission, 60 for each question. */
export const defaultTimeouts: Interactor.Timeouts = {
  permission: Duration.seconds(30),
  clarification: Duration.seconds(60)
}

/**
 * An interactor that asks elsewhere, by one handler, what may leave the process: approvals and questions. Grants,
 * envelopes and everything about signing in it does not take.
 *
 * Closing the scope cancels what is open, what waits in line, and what comes later.
 */
export const make = (options: {
  readonly id: string
  readonly ask: <I extends Interaction>(request: InteractionRequest<I>) => Effect.Effect<Answer<I>, InteractionError>
  readonly dialogs: "one" | "unbounded" | undefined
  readonly timeouts: Interactor.Timeouts
}): Effect.Effect<Interactor.Service, never, Scope.Scope> => {
  const { ask, dialogs, id, timeouts } = options
  const service = Interactor.make({
    id,
    dialogs,
    timeouts,
    handlers: {
      Approve: ask,
      grantStageTool: Interactor.declines,
      approveSubagentEnvelope: Interactor.declines,
      Clarify: ask,
      Ask: ask,
      Select: ask,
      Confirm: ask,
      "Auth.DeviceCode": Interactor.declines,
      "Auth.Password": Interactor.declines
    }
  })
  // Completed by the scope's end; read by every asker.
  return Effect.map(
    Effect.acquireRelease(Deferred.make<void>(), (closed) => Deferred.succeed(closed, undefined)),
    (closed) => ({
      ...service,
      request: (request, asked) => {
        // Nobody decided that: others may still answer, so it names no author.
        const cancelled = new InteractionCancelled({ requestId: request.requestId })
        return Effect.flatMap(Deferred.isDone(closed), (done) =>
          done
            ? Effect.fail(cancelled)
            : Effect.raceFirst(
                service.request(request, asked),
                Effect.zipRight(Deferred.await(closed), Effect.fail(cancelled))
              )
        )
      }
    })
  )
}
