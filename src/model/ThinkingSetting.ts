/** What a model takes of what a person says about its thinking. */
import * as KnownModel from "./KnownModel.js"
import type * as Model from "./ModelPort.js"
import { providers } from "./ProviderName.js"

/** Gemini's models that are told by a word how much to think; earlier ones refuse it. */
export const isByWord = (model: string): boolean => /^gemini-(?:[3-9]|\d\d)/.test(model)

/** Why a model cannot honour its thinking setting, as a sentence; `undefined` if it can. */
export const problem = (ref: string, { budget, effort }: Model.Thinking): string | undefined => {
  const [provider = ""] = ref.split("/")
  const isClaude = provider === "anthropic"
  const taken = takenBy(provider, ref)
  const isTaken = {
    either: true,
    // No thinking is said alike to all of Anthropic's models.
    word: effort !== undefined || (isClaude && budget === 0),
    tokens: budget !== undefined,
    nothing: false
  }
  if (isTaken[taken]) return undefined
  const said = `"thinking": ${JSON.stringify(budget ?? effort)} of ${ref}`
  switch (taken) {
    case "tokens":
      return `${said} does nothing: this model takes a number of tokens, such as 2048.`
    case "word":
      return `${said} ${isClaude ? "is refused" : "does nothing"}: this model takes low, medium or high.`
    default:
      return `${said} does nothing: this model has no such setting.`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const takenBy = (provider: string, ref: string): "tokens" | "word" | "either" | "nothing" => {
  if (provider === "anthropic") return KnownModel.of(ref)?.thinking === "effort" ? "word" : "tokens"
  if (provider === "google") return isByWord(ref.slice(provider.length + 1)) ? "either" : "tokens"
  return providers.some((name) => name === provider) ? "word" : "nothing"
}
