/**
 * The port to a model: a request goes in, encoded parts of a response come out.
 *
 * All of this is used under the name `Model`; it is a separate file, so that the modules that `Model` imports can
 * import it.
 */
import type * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import type * as Tool from "@effect/ai/Tool"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Usage } from "../event/AgentEvent.js"
import type { ModelError } from "./ModelError.js"

// -----------------------------------------------------------------------------------------------------------------
// the request
// -----------------------------------------------------------------------------------------------------------------

/**
 * The request of one generation.
 *
 * `outputSchema` and `toolChoice` are binding: with a provider that does not support them the request fails as
 * `Refused`. All other optional fields are hints: they are not sent to a provider that lacks them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Request {
  /**
   * The conversation so far. Images and documents are file parts of its messages. Do not keep it: it is a live view of
   * a growing history.
   */
  readonly prompt: Prompt.Prompt
  readonly tools: ReadonlyArray<Tool.Any>
  /** Path of the calling agent, such as `main/code_reviewer`. */
  readonly agent: string
  readonly sessionId: string
  /** The required shape of the reply's text. OpenAI, Gemini and servers of `/chat/completions` support it. */
  readonly outputSchema?: OutputSchema | undefined
  /** Default: `auto`. */
  readonly toolChoice?: ToolChoice | undefined
  /** The most tokens of the reply, thinking included. A model's own limit counts as well. */
  readonly maxOutputTokens?: number | undefined
  readonly thinking?: Thinking | undefined
  /**
   * Indices of prompt messages that end a reusable prefix, which the provider should cache; none with an empty list.
   * Anthropic's API gets the last four, and by default the system message, the last message and the one that was last
   * a request ago. Other providers find prefixes themselves.
   */
  readonly cacheMarks?: ReadonlyArray<number> | undefined
  /** Detail of images. Anthropic's API has no such setting. */
  readonly imageDetail?: "auto" | "low" | "high" | undefined
  /**
   * The session that decides about the calls, for a model that works by itself.
   *
   * @internal
   */
  readonly session?: DecidingSession | undefined
}

/** What a model that works by itself needs of its session, such as an agent of others. */
export interface DecidingSession {
  /** Withdraws the question about a proposed call. Its result is the sentence. False: no decision is waited for. */
  readonly withdraw: (toolCallId: string, sentence: string) => Effect.Effect<boolean>
  /** Records what was done, or refused, without a decision. False: it cannot be recorded. */
  readonly record: (act: UndecidedAct) => Effect.Effect<boolean>
}

/** An act that nobody decided about. */
export interface UndecidedAct {
  readonly outcome: "done" | "denied"
  readonly tool: string
  /** A sentence. */
  readonly reason: string
  readonly args: unknown
}

/**
 * The schema of a JSON text.
 *
 * @since 0.1.0
 * @category models
 */
export interface OutputSchema {
  /** Letters, digits, `_` and `-`; at most 64. */
  readonly name: string
  readonly description?: string | undefined
  /** JSON Schema. Providers do not enforce it strictly: decode the reply. */
  readonly schema: object
}

/**
 * Which tools a reply may call. `auto`: the model chooses; `required`: at least one; a name: this one.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolChoice = "auto" | "none" | "required" | { readonly tool: string }

/**
 * How much a model thinks before it answers, in the two units of providers.
 *
 * @since 0.1.0
 * @category models
 */
export interface Thinking {
  /** Tokens; 0: no thinking. For Anthropic's and Google's APIs; Anthropic's newer models refuse it. */
  readonly budget?: number | undefined
  /** For OpenAI's API, servers of `/chat/completions`, and the newer models of Anthropic and Google. */
  readonly effort?: "minimal" | "low" | "medium" | "high" | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// the reply
// -----------------------------------------------------------------------------------------------------------------

/**
 * One encoded part of a streamed response. A turn uses `text-*`, `reasoning-*`, `tool-params-*`, `tool-call`, `file`,
 * `source` and `finish`; an `error` part ends the generation as `BadOutput`.
 *
 * @since 0.1.0
 * @category models
 */
export type Part = Response.StreamPartEncoded

/**
 * The remark at the end of an answer about parts that were left out: a sentence without its full stop, for people.
 *
 * @since 0.1.0
 * @category getters
 */
export const remarkOf = (metadata: Response.ProviderMetadata | undefined): string | undefined => {
  const remark = metadata?.[remarkKey]?.remark
  return typeof remark === "string" ? remark : undefined
}

/**
 * Metadata of a `finish` part with a remark; see {@link remarkOf}.
 *
 * @since 0.1.0
 * @category constructors
 */
export const remarked = (remark: string): Response.ProviderMetadata => ({ [remarkKey]: { remark } })

/**
 * Metadata of a `finish` part that says how many tokens of the prompt the provider has put into its cache; see
 * {@link usageIn}.
 *
 * @since 0.1.0
 * @category constructors
 */
export const cacheWrites = (tokens: number): Response.ProviderMetadata => ({ [remarkKey]: { cacheWrites: tokens } })

/**
 * Metadata of a `finish` part of a model that knows what its call cost, in US dollars; see {@link usageIn}.
 *
 * @internal
 */
export const costs = (cost: number): Response.ProviderMetadata => ({ [remarkKey]: { cost } })

/**
 * The usage in a `finish` part, as far as the provider reported it. A number that is no amount counts as not reported.
 *
 * @since 0.1.0
 * @category getters
 */
export const usageIn = ({ metadata, usage }: Response.FinishPartEncoded): Usage => {
  const cacheWrites = amount(metadata?.[remarkKey]?.cacheWrites)
  const cost = amount(metadata?.[remarkKey]?.cost)
  const reported = {
    inputTokens: amount(usage.inputTokens),
    outputTokens: amount(usage.outputTokens),
    cachedInputTokens: amount(usage.cachedInputTokens),
    reasoningTokens: amount(usage.reasoningTokens)
  }
  return cacheWrites !== undefined
    ? { ...reported, cacheWriteTokens: cacheWrites }
    : cost !== undefined
      ? { ...reported, cost }
      : reported
}

/** A server can report anything. A negative number would give a budget back, and one that is infinite would end it. */
const amount = (reported: unknown): number | undefined =>
  typeof reported === "number" && Number.isFinite(reported) && reported >= 0 ? reported : undefined

const remarkKey = "assent"

// -----------------------------------------------------------------------------------------------------------------
// the port
// -----------------------------------------------------------------------------------------------------------------

/**
 * One function: a request in, a stream of parts out.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** `provider/model`, for people, events and the ledger. */
  readonly id: string
  /** The model's context window in tokens; unknown when absent. */
  readonly contextWindow?: number | undefined
  /**
   * Media types of the files that it takes, such as `image/png` or `image/*`; text files count. Words with other files
   * are refused before anything is filed, and a file in the history that a model does not take is a note in its prompt.
   * Default: nobody knows, and every file is sent.
   */
  readonly inputs?: ReadonlyArray<string> | undefined
  /**
   * When a request may have an {@link Request.outputSchema}. Default: never; a typed result is then asked for by a tool.
   */
  readonly outputSchemas?: "always" | "withoutTools" | undefined
  /** One generation. The stream ends after a `finish` part. Interrupting it closes the connection. */
  readonly stream: (request: Request) => Stream.Stream<Part, ModelError>
}
