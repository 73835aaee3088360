/**
 * What the channels share that ask programs instead of a person at a screen: how long they wait, which kinds they send
 * over a disk or a network, and that they end with their scope.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Interaction, Kind } from "../interaction/Interaction.js"
import { InteractionCancelled, type InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"

/** The name of the person who answers, in events and in the audit. */
export const Name = Schema.String.pipe(
  Schema.filter((name) => name.trim() !== "" && name.length <= 200 && !/[\p{Cc}\p{Cf}]/u.test(name), {
    identifier: "a name of at most 200 characters"
  })
)

/** How long a request waits when no timeouts are given: 30 seconds for permission, 60 for each question. */
export const defaultTimeouts: Interactor.Timeouts = {
  permission: Duration.seconds(30),
  clarification: Duration.seconds(60)
}

/** What the other side sends: an answer to a request, and who gave it. */
export const Response = Schema.Struct({
  requestId: Schema.String,
  answer: Schema.Unknown,
  by: Schema.optional(Name)
})

/**
 * An interactor that asks elsewhere, by one handler. It takes what may leave the process: approvals and questions. It
 * does not take grants, envelopes or anything to do with signing in.
 *
 * Closing the scope cancels what is open, what waits in line, and what comes later.
 */
export const make = (options: {
  readonly id: string
  /** Asks. `ended` tells how the question ended, once asking was interrupted. */
  readonly ask: <I extends Interaction>(
    request: InteractionRequest<I>,
    ended: () => Interactor.Ended | undefined
  ) => Effect.Effect<Interactor.Reply<I>, InteractionError>
  readonly dialogs: "one" | "unbounded" | undefined
  /** A part that is not given keeps its default. */
  readonly timeouts: Interactor.Timeouts | undefined
  /** Why a request failed at the end of its time, where the reason is known. */
  readonly why?: ((request: InteractionRequest) => InteractionError | undefined) | undefined
}): Effect.Effect<Interactor.Service, never, Scope.Scope> => {
  const { ask, dialogs, id, why } = options
  const asking: Interactor.Service = {
    id,
    relay: false,
    request: <I extends Interaction>(request: InteractionRequest<I>, asked?: Interactor.Options<I>) =>
      Object.hasOwn(taken, request.interaction._tag) && taken[request.interaction._tag]
        ? Effect.map(
            ask(request, () => asked?.ended?.()),
            ({ answer, by = id }): Interactor.Reply<I> => ({ answer, by })
          )
        : Effect.fail(Interactor.declined(id, request))
  }
  const timed = Interactor.withTimeout(asking, Interactor.timeoutsOf(options.timeouts, defaultTimeouts), why)
  const service = dialogs === "unbounded" ? timed : Interactor.serialized(timed)
  // The end of the scope completes it; every asker reads it.
  return Effect.map(
    Effect.acquireRelease(Deferred.make<void>(), (closed) => Deferred.succeed(closed, undefined)),
    (closed) => ({
      ...service,
      request: (request, asked) => {
        // This was nobody's decision: others may still answer, so it names no author.
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

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What a program may be asked; grants, envelopes and sign-ins belong to a person who sees them. */
const taken: { readonly [K in Kind]: boolean } = {
  Approve: true,
  Clarify: true,
  Ask: true,
  Select: true,
  Confirm: true,
  grantStageTool: false,
  approveSubagentEnvelope: false,
  "Auth.DeviceCode": false,
  "Auth.Password": false
}
