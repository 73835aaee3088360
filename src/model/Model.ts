/**
 * The port to a language model: a prompt and tool definitions in, a stream of encoded response parts out.
 *
 * Smaller than `@effect/ai`'s `LanguageModel` on purpose. A malformed tool call is an ordinary part that the turn can
 * answer, provider metadata survives, tools are not run inside the stream, and errors hold nothing that could hold a key.
 */
import type * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import type * as Tool from "@effect/ai/Tool"
import type * as LanguageModel from "@effect/ai/LanguageModel"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"

/**
 * One encoded part of a streamed response. Of these a turn uses `text-*`, `reasoning-*`, `tool-params-*`, `tool-call`,
 * `file`, `source` and `finish`; an `error` part ends the generation as `BadOutput`.
 */
export type Part = Response.StreamPartEncoded

/** What the end of an answer says of parts that were left out of it: a sentence without its full stop, for people. */
export const remarkOf = (metadata: Response.ProviderMetadata | undefined): string | undefined => {
  const remark = metadata?.[remarkKey]?.remark
  return typeof remark === "string" ? remark : undefined
}

/** Metadata of a `finish` part that says so; see {@link remarkOf}. */
export const remarked = (remark: string): Response.ProviderMetadata => ({ [remarkKey]: { remark } })

const remarkKey = "assent"

/** What a model may want to know about who is asking. */
export interface Options {
  /** Agent path such as `main/code_reviewer`. */
  readonly agent: string
  readonly sessionId: string
}

export interface Service {
  /** `provider/model`, for people, events and the ledger. */
  readonly id: string
  /** Tokens the model can take in; unknown when absent. */
  readonly contextWindow?: number | undefined
  /**
   * One generation. The stream ends after a `finish` part. Interrupting it closes the connection. The prompt must not be
   * kept: it is a view of a history that grows.
   */
  readonly stream: (
    prompt: Prompt.Prompt,
    tools: ReadonlyArray<Tool.Any>,
    options: Options
  ) => Stream.Stream<Part, ModelError>
  /**
   * As {@link stream}, for a model that has its whole answer at once, such as one that plays a script: taken instead of it,
   * because a stream costs more than the rest of a turn. Undefined: this answer comes as a stream. Whoever wraps a model
   * leaves this out, or the wrapper is passed by.
   */
  readonly answer?:
    | ((
        prompt: Prompt.Prompt,
        tools: ReadonlyArray<Tool.Any>,
        options: Options
      ) => Effect.Effect<Iterable<Part>, ModelError> | undefined)
    | undefined
}

/** The model of a session. */
export class Model extends Context.Tag("assent/model/Model")<Model, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

const fields = {
  /** `provider/model`. */
  model: Schema.String,
  /** A sentence for a person; holds no key and no request. */
  message: Schema.String,
  /** HTTP status, when there was one. */
  status: Schema.optional(Schema.Number)
}

/** Too many requests; milliseconds to wait when the provider said so. Transient. */
export class RateLimited extends Schema.TaggedError<RateLimited>("assent/model/RateLimited")("RateLimited", {
  ...fields,
  retryAfter: Schema.optional(Schema.Number)
}) {}

/** The provider cannot serve right now; milliseconds to wait when it said so. Transient. */
export class Overloaded extends Schema.TaggedError<Overloaded>("assent/model/Overloaded")("Overloaded", {
  ...fields,
  retryAfter: Schema.optional(Schema.Number)
}) {}

/** No connection, or one that broke. Transient. */
export class Network extends Schema.TaggedError<Network>("assent/model/Network")("Network", fields) {}

/** Nobody is there: nothing listens at the address, or there is no such address. Trying again would find the same. */
export class Unreachable extends Schema.TaggedError<Unreachable>("assent/model/Unreachable")("Unreachable", fields) {}

/** The key is missing, wrong, or may not use this model. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>("assent/model/Unauthorized")(
  "Unauthorized",
  fields
) {}

/** The prompt does not fit into the model's context. */
export class ContextTooLong extends Schema.TaggedError<ContextTooLong>("assent/model/ContextTooLong")(
  "ContextTooLong",
  fields
) {}

/** The provider or model answered with something that cannot be used. */
export class BadOutput extends Schema.TaggedError<BadOutput>("assent/model/BadOutput")("BadOutput", fields) {}

/** The provider refused the request: bad parameters, unknown model, content policy. */
export class Refused extends Schema.TaggedError<Refused>("assent/model/Refused")("Refused", fields) {}

export const ModelError = Schema.Union(
  RateLimited,
  Overloaded,
  Network,
  Unreachable,
  Unauthorized,
  ContextTooLong,
  BadOutput,
  Refused
)
export type ModelError = typeof ModelError.Type

/** Whether trying the same request again may succeed. */
export const isTransient: Predicate.Refinement<ModelError, RateLimited | Overloaded | Network> = Predicate.or(
  Predicate.or(Predicate.isTagged("RateLimited"), Predicate.isTagged("Overloaded")),
  Predicate.isTagged("Network")
) as Predicate.Refinement<ModelError, RateLimited | Overloaded | Network>

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

export const layer = (service: Service): Layer.Layer<Model> => Layer.succeed(Model, service)

/** Makes a model of any `@effect/ai` language model. The adapter is loaded when the layer is built. */
export const layerLanguageModel = (options: {
  /** `provider/model`, for people, events and the ledger. */
  readonly id: string
  readonly contextWindow?: number | undefined
}): Layer.Layer<Model, never, LanguageModel.LanguageModel> =>
  Layer.effect(
    Model,
    Effect.flatMap(
      Effect.promise(() => import("./LanguageModelAdapter.js")),
      (adapter) => adapter.make(options)
    )
  )
