/**
 * The port to a language model: a prompt and tool definitions in, a stream of encoded response parts out.
 *
 * It is smaller than `@effect/ai`'s `LanguageModel` on purpose. A malformed tool call is an ordinary part that the turn
 * can answer, provider metadata survives, tools are not run inside the stream, and errors have no field that could hold
 * a key.
 *
 * @example
 * ```ts
 * import { Model } from "assent"
 * import { Effect } from "effect"
 *
 * const echo = Model.fromAnswer({
 *   id: "own/echo",
 *   answer: ({ prompt }) =>
 *     Effect.succeed([
 *       { type: "text-start", id: "1" },
 *       { type: "text-delta", id: "1", delta: `There are ${prompt.content.length} messages.` },
 *       { type: "text-end", id: "1" },
 *       { type: "finish", reason: "stop", usage: { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined } }
 *     ])
 * })
 * ```
 *
 * @since 0.1.0
 */
import type * as LanguageModel from "@effect/ai/LanguageModel"
import * as Channel from "effect/Channel"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { ModelError } from "./ModelError.js"
import type { Part, Request, Service } from "./ModelPort.js"
import * as WholeAnswer from "./WholeAnswer.js"

export {
  BadOutput,
  ContextTooLong,
  isTransient,
  ModelError,
  Network,
  Overloaded,
  RateLimited,
  Refused,
  Unauthorized,
  Unreachable
} from "./ModelError.js"
export {
  cacheWrites,
  type OutputSchema,
  type Part,
  remarked,
  remarkOf,
  type Request,
  type Service,
  type Thinking,
  type ToolChoice,
  usageIn
} from "./ModelPort.js"

/**
 * The model of every session whose profile names no other.
 *
 * @since 0.1.0
 * @category services
 */
export class Model extends Context.Tag("assent/model/Model")<Model, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A model that has its whole answer at once, and is otherwise what {@link Service} says. The turn takes the answer without
 * a stream; a wrapper around `stream` is still called.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromAnswer = (
  options: Omit<Service, "stream"> & {
    /** Ends with a `finish` part: without one the answer counts as cut off, and is asked for again. */
    readonly answer: (request: Request) => Effect.Effect<Iterable<Part>, ModelError>
  }
): Service => {
  const { answer, ...about } = options
  // All parts at once, as the cheapest stream.
  const stream: Service["stream"] = (request) =>
    Stream.fromChannel(
      Channel.flatMap(Channel.fromEffect(Effect.suspend(() => answer(request))), (parts) =>
        Channel.write(Chunk.fromIterable(parts))
      )
    )
  return { ...about, stream: WholeAnswer.bind(stream, answer) }
}

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * This model is the one that agents use.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (service: Service): Layer.Layer<Model> => Layer.succeed(Model, service)

/**
 * Makes a model of any `@effect/ai` language model. The adapter is loaded when the layer is built.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerLanguageModel = (options: {
  /** `provider/model`, for people, events and the ledger. */
  readonly id: string
  readonly contextWindow?: number | undefined
  /** See `Service`. */
  readonly inputs?: ReadonlyArray<string> | undefined
  /**
   * The keys that its client sends. They are masked in what a provider says of an error, which may repeat them. Default:
   * only what looks like a token is.
   */
  readonly secrets?: ReadonlyArray<Redacted.Redacted> | undefined
}): Layer.Layer<Model, never, LanguageModel.LanguageModel> =>
  Layer.effect(
    Model,
    Effect.flatMap(
      Effect.promise(() => import("./LanguageModelAdapter.js")),
      (adapter) => adapter.make(options)
    )
  )
