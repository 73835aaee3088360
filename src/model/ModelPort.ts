/**
 * What a model is to whoever wants a reply: a request goes in, encoded parts of a response come out.
 *
 * `Model` is the name under which all of this is used; it stands here so that what `Model` is made with can know of it.
 */
import type * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import type * as Tool from "@effect/ai/Tool"
import type * as Stream from "effect/Stream"
import type { ModelError } from "./ModelError.js"

// -----------------------------------------------------------------------------------------------------------------
// the request
// -----------------------------------------------------------------------------------------------------------------

/**
 * One generation, as it is asked for.
 *
 * What a reply must be (`outputSchema`, `toolChoice`) is kept to, or the request fails as `Refused` where a provider
 * cannot be held to it. Everything else that is optional is a wish: a provider that knows nothing like it is not told.
 */
export interface Request {
  /**
   * What was said so far. Images and documents are file parts of its messages. It must not be kept: it is a view of a
   * history that grows.
   */
  readonly prompt: Prompt.Prompt
  readonly tools: ReadonlyArray<Tool.Any>
  /** Path of the agent that asks, such as `main/code_reviewer`. */
  readonly agent: string
  readonly sessionId: string
  /** What the text of the reply must be. OpenAI, Gemini and servers of `/chat/completions` can be held to it. */
  readonly outputSchema?: OutputSchema | undefined
  /** Default: `auto`. */
  readonly toolChoice?: ToolChoice | undefined
  /** The most tokens that the reply may have, what the model thinks among them. A model's own limit counts as well. */
  readonly maxOutputTokens?: number | undefined
  readonly thinking?: Thinking | undefined
  /**
   * Messages of the prompt, by index, with which something ends that comes again: up to there the provider is to keep
   * what it has read. Anthropic's API is told, of the last four; other providers find such beginnings themselves.
   */
  readonly cacheMarks?: ReadonlyArray<number> | undefined
  /** How closely images are looked at. Anthropic's API has no such setting. */
  readonly imageDetail?: "auto" | "low" | "high" | undefined
}

/** The shape of a text that is JSON. */
export interface OutputSchema {
  /** Letters, digits, `_` and `-`; at most 64. */
  readonly name: string
  readonly description?: string | undefined
  /** JSON Schema. It is not enforced to the letter: what comes back is to be decoded all the same. */
  readonly schema: object
}

/** Which tools a reply may call. `auto`: as the model likes; `required`: at least one; else this one. */
export type ToolChoice = "auto" | "none" | "required" | { readonly tool: string }

/** How much a model thinks before it answers, in the two ways in which providers count that. */
export interface Thinking {
  /** Tokens; 0: it does not think. Anthropic's and Google's APIs count so. */
  readonly budget?: number | undefined
  /** OpenAI's API, and servers of `/chat/completions`, count so. */
  readonly effort?: "minimal" | "low" | "medium" | "high" | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// the reply
// -----------------------------------------------------------------------------------------------------------------

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

// -----------------------------------------------------------------------------------------------------------------
// the port
// -----------------------------------------------------------------------------------------------------------------

/** One function: a request in, a stream of parts out. */
export interface Service {
  /** `provider/model`, for people, events and the ledger. */
  readonly id: string
  /** Tokens the model can take in; unknown when absent. */
  readonly contextWindow?: number | undefined
  /** One generation. The stream ends after a `finish` part. Interrupting it closes the connection. */
  readonly stream: (request: Request) => Stream.Stream<Part, ModelError>
}
