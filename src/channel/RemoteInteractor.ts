/**
 * What the channels share that ask programs instead of a person at a screen: how long they wait, which kinds they send
 * over a disk or a network, and that they end with their scope.
 */
import type * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Form from "../interaction/Form.js"
import type { Answer, Interaction, Kind } from "../interaction/Interaction.js"
import { InteractionCancelled, type InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as Principal from "../interaction/Principal.js"
import * as TypedAnswer from "../interaction/TypedAnswer.js"

/** The name of a person, in events and in the audit. A text of a wire becomes a person's name only here. */
export const Name = Schema.transformOrFail(Schema.String, Schema.String.pipe(Schema.brand("Principal")), {
  strict: true,
  decode: (text, _, ast) =>
    Either.mapLeft(Principal.of(text), (reason) => new ParseResult.Type(ast, text, `the name ${reason}`)),
  encode: (name) => ParseResult.succeed(name)
}).annotations({ identifier: "a name of at most 200 characters" })

/** How long a request waits when no timeouts are given: 30 seconds for permission, 60 for each question. */
export const defaultTimeouts: Interactor.Timeouts = {
  permission: Duration.seconds(30),
  clarification: Duration.seconds(60)
}

/** What the other side sends: an answer to a request, or its filled form, and who it says has given it: see {@link Vouching}. */
export const Response = Schema.Struct({
  requestId: Schema.String,
  answer: Schema.Unknown,
  form: Schema.optional(Schema.Unknown),
  by: Schema.optional(Name)
})
export type Response = typeof Response.Type

/**
 * Who answers through a channel to a program.
 *
 * @since 0.1.0
 * @category models
 */
export interface Vouching {
  /**
   * The one person who answers there, as the channel knows it for itself: the operating system's user, the owner of a token.
   * Default: the channel's id stands for them.
   */
  readonly principal?: string | undefined
  /**
   * True: the other side knows people for itself, and vouches for the `by` of its answers. Default: `by` does not count.
   */
  readonly vouches?: boolean | undefined
}

/** What is known of the author of a response that says this. */
export const authorOf = (
  id: string,
  { principal = id, vouches }: Vouching,
  said: Principal.Principal | undefined
): string => (vouches === true && said !== undefined ? said : principal)

/** What a response says about the request. */
export type Understood<I extends Interaction> = Data.TaggedEnum<{
  Answered: { readonly answer: Answer<I> }
  Withdrawn: {}
  /** It is no answer; the reason is a sentence. */
  Misfit: { readonly reason: string }
}>

/** Reads a response, whose id has been looked at. A string is taken as typed by a person. */
export const understand = <I extends Interaction>(interaction: I, { answer, form }: Response): Understood<I> => {
  if (form !== undefined) {
    if (answer !== undefined) return { _tag: "Misfit", reason: "it has both an answer and a form" }
    return Either.match(Form.decode(interaction, form), {
      onLeft: (problems): Understood<I> => ({ _tag: "Misfit", reason: Form.told(interaction, problems) }),
      onRight: (answer): Understood<I> => ({ _tag: "Answered", answer })
    })
  }
  if (typeof answer === "string" && TypedAnswer.isCancel(interaction, answer)) return { _tag: "Withdrawn" }
  return Either.match(TypedAnswer.decodeOrParse(interaction, answer), {
    onLeft: (reason): Understood<I> => ({ _tag: "Misfit", reason }),
    onRight: (answer): Understood<I> => ({ _tag: "Answered", answer })
  })
}

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
    ended: () => Interactor.Ended | undefined,
    /** Files a vote, where several have to agree and several may answer here. */
    vote: Interactor.Options<I>["vote"]
  ) => Effect.Effect<Interactor.Reply<I>, InteractionError>
  readonly who: Vouching
  readonly dialogs: "one" | "unbounded" | undefined
  /** A part that is not given keeps its default. */
  readonly timeouts: Interactor.Timeouts | undefined
  /** Why a request failed at the end of its time, where the reason is known. */
  readonly why?: ((request: InteractionRequest) => InteractionError | undefined) | undefined
}): Effect.Effect<Interactor.Service, never, Scope.Scope> => {
  const { ask, dialogs, id, who, why } = options
  const asking: Interactor.Service = {
    id,
    relay: false,
    principal: who.vouches === true ? undefined : (who.principal ?? id),
    request: <I extends Interaction>(request: InteractionRequest<I>, asked?: Interactor.Options<I>) =>
      Object.hasOwn(taken, request.interaction._tag) && taken[request.interaction._tag]
        ? Effect.map(
            ask(request, () => asked?.ended?.(), who.vouches === true ? asked?.vote : undefined),
            ({ answer, by = who.principal ?? id }): Interactor.Reply<I> => ({ answer, by })
          )
        : Effect.fail(Interactor.declined(id, request))
  }
  const timed = Interactor.timed(asking, Interactor.timeoutsOf(options.timeouts, defaultTimeouts), why)
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
  Elicit: true,
  grantStageTool: false,
  approveSubagentEnvelope: false,
  "Auth.DeviceCode": false,
  "Auth.Password": false
}
