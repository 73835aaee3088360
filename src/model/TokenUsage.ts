/**
 * What a provider reported of one call, with one meaning: input is the whole prompt, whatever of it came from a cache or
 * went into one. Anthropic counts the parts beside each other, all others as parts of the input; Google counts reasoning
 * beside the output.
 */
import type { ContextUse, Usage } from "../event/AgentEvent.js"

export interface TokenUsage {
  /** The whole prompt. */
  readonly input: number
  readonly output: number
  /** The part of the input that came from the provider's cache. */
  readonly cached: number
  /** The part of the input that went into the cache. */
  readonly written: number
  /** Whether input and output were reported. */
  readonly complete: boolean
}

/** The usage of a call of this model, by its reference. */
export const of = (model: string, usage: Usage): TokenUsage => {
  const input = counted(usage.inputTokens)
  const output = counted(usage.outputTokens)
  const cached = counted(usage.cachedInputTokens)
  const written = counted(usage.cacheWriteTokens)
  const apart = countsBeside(model) || cached > input
  return {
    input: apart ? input + cached + written : input,
    output: model.startsWith("google/") ? output + counted(usage.reasoningTokens) : output,
    cached,
    written: apart ? written : Math.min(written, input - cached),
    complete: usage.inputTokens !== undefined && usage.outputTokens !== undefined
  }
}

/** The other way: what the model's provider would have reported of so many tokens. */
export const reported = (
  model: string,
  { cached, input, output }: Pick<TokenUsage, "cached" | "input" | "output">
): Usage => ({
  inputTokens: countsBeside(model) ? input - cached : input,
  outputTokens: output,
  ...(cached === 0 ? {} : { cachedInputTokens: cached })
})

/** What a call took of a context window; nothing where the provider did not tell how long the prompt was. */
export const contextOf = (model: string, usage: Usage, window: number | undefined): ContextUse | undefined => {
  const { input } = of(model, usage)
  return input === 0 ? undefined : { tokens: input, ...(window === undefined ? {} : { window }) }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Whether a provider counts what it has in its cache beside the input. */
const countsBeside = (model: string): boolean => model.startsWith("anthropic/")

/** A server can report anything; a value that is no amount would spoil all later sums. */
const counted = (tokens: number | undefined): number =>
  tokens !== undefined && Number.isFinite(tokens) && tokens > 0 ? tokens : 0
