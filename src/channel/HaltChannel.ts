/**
 * Halts the turn at a question, for programs without a person. The first request is reported as a line that programs
 * can read. Each request ends the root's turn as `Halted`, once the running tools have ended. Only a stage's request
 * for another tool is answered, with a denial, and the stage continues.
 *
 * With {@link yolo} everything is allowed without a person: an opt-in that is recorded as such. Guards still
 * deny.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { CorrelationId, RequestId } from "../core/Id.js"
import * as Interaction from "../interaction/Interaction.js"
import { InteractionCancelled } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as NeedText from "../interaction/NeedText.js"
import * as AutoChannel from "./AutoChannel.js"

/**
 * The request that halted the agent, as one machine-readable record.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Halted = Schema.TaggedStruct("InteractionRequired", {
  kind: Schema.String,
  requestId: RequestId,
  correlationId: CorrelationId,
  /** A sentence: how to get the request answered the next time. */
  hint: Schema.String,
  /** The plan that waits for approval: the result of a run in plan mode. */
  plan: Schema.optional(Schema.String)
})
export type Halted = typeof Halted.Type

/**
 * The interactor, and its first request.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  readonly interactor: Interactor.Service
  /** Completes with the first request. One writer, any number of readers. */
  readonly halted: Deferred.Deferred<Halted>
}

/**
 * How to get such a request answered the next time, in a sentence. A plan is shown to be approved, not a call.
 *
 * @internal
 */
export type Hint = (interaction: Interaction.Interaction, plan: string | undefined) => string

/**
 * The channel of a run without a person.
 *
 * @since 0.1.0
 * @category services
 */
export class HaltChannel extends Context.Tag("assent/channel/HaltChannel")<HaltChannel, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A channel that halts the agent that asks; agents may share it. A request of no agent waits until it is interrupted.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<Service> = Effect.suspend(() => makeWith(hintOf))

/**
 * Like {@link make}, for a program that has its own ways to get a request answered.
 *
 * @internal
 */
export const makeWith = (hint: Hint): Effect.Effect<Service> =>
  Effect.map(Deferred.make<Halted>(), (halted) => {
    const asked = halt(halted, hint)
    return {
      halted,
      interactor: Interactor.make({
        id: "halt",
        how: "auto",
        // A waiting request must not keep a stage's question from being answered.
        dialogs: "unbounded",
        handlers: {
          Approve: asked,
          grantStageTool: () => Effect.succeed({ outcome: "deny", note: "no person can be asked" }),
          approveSubagentEnvelope: asked,
          Clarify: asked,
          Ask: asked,
          Select: asked,
          Confirm: asked,
          Elicit: asked,
          "Auth.DeviceCode": asked,
          "Auth.Password": asked
        }
      })
    }
  })

/**
 * Allows everything once, confirms, takes the first choice or the default, and gives an empty text where text is
 * wanted. A form gets its defaults, and is cancelled when a required field has none. Signing in is cancelled, so that it fails loudly. Answers are recorded as `yolo`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const yolo: Interactor.Service = Interactor.make({
  id: "yolo",
  how: "yolo",
  dialogs: "unbounded",
  handlers: {
    Approve: () => Effect.succeed({ decision: "allow", scope: "once" }),
    grantStageTool: () => Effect.succeed({ outcome: "approve" }),
    approveSubagentEnvelope: () => Effect.succeed({ outcome: "approve" }),
    Clarify: ({ interaction }) => Effect.succeed(AutoChannel.answers(interaction.questions, "")),
    Ask: () => Effect.succeed(""),
    Select: () => Effect.succeed(0),
    Confirm: () => Effect.succeed(true),
    Elicit: (request) => AutoChannel.filled("yolo", request),
    "Auth.DeviceCode": ({ requestId }) => new InteractionCancelled({ requestId, by: "yolo" }),
    "Auth.Password": ({ requestId }) => new InteractionCancelled({ requestId, by: "yolo" })
  }
})

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * The halting channel, which is also the interactor to ask.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<HaltChannel | Interactor.Interactor> = Layer.effectContext(
  Effect.map(make, (channel) =>
    Context.make(HaltChannel, channel).pipe(Context.add(Interactor.Interactor, channel.interactor))
  )
)

/**
 * Allows everything that guards do not deny; recorded as such.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerYolo: Layer.Layer<Interactor.Interactor> = Interactor.layer(yolo)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const halt =
  (halted: Deferred.Deferred<Halted>, hint: Hint) =>
  (
    request: InteractionRequest,
    options?: Pick<Interactor.Options<Interaction.Interaction>, "halt">
  ): Effect.Effect<never> => {
    const plan = planIn(request.interaction)
    const record = Halted.make({
      kind: request.interaction._tag,
      requestId: request.requestId,
      correlationId: request.correlationId,
      hint: hint(request.interaction, plan),
      ...(plan === undefined ? {} : { plan })
    })
    const stopped = options?.halt?.(`${record.kind} needs an answer. ${record.hint}`) ?? Effect.void
    return Deferred.succeed(halted, record).pipe(Effect.zipRight(stopped), Effect.zipRight(Effect.never))
  }

/** A document is shown to be approved, not a call. */
const planIn = (interaction: Interaction.Interaction): string | undefined => {
  const display = interaction._tag === "Approve" ? interaction.display : undefined
  return display?.format === "markdown" ? display.details : undefined
}

const hintOf: Hint = (interaction, plan) => {
  switch (interaction._tag) {
    case "Approve":
      if (plan !== undefined)
        return "No person can approve the plan, and nothing was changed. Resume the session with a channel to a person who may approve it."
      if (interaction.needs !== undefined) {
        return (
          `No person can decide about ${interaction.tool}, which ${NeedText.describeAll(interaction.needs.all)}. Attach a ` +
          `channel over which they answer; nothing else allows it.`
        )
      }
      return (
        `No person can approve ${interaction.tool}. Attach a channel to a person, allow the tool in the ` +
        `policy's whitelist, or allow everything with HaltChannel.layerYolo.`
      )
    case "grantStageTool":
    case "approveSubagentEnvelope":
      return (
        "No person can grant these tools. Attach a channel to a person, use a profile with " +
        "autoApproved, or allow everything with HaltChannel.layerYolo."
      )
    case "Auth.DeviceCode":
    case "Auth.Password":
      return "No person can sign in. Attach a channel to a person."
    default:
      return (
        "No person can answer the question. Attach a channel to a person, or take defaults and first " +
        "choices with AutoChannel or HaltChannel.layerYolo."
      )
  }
}
