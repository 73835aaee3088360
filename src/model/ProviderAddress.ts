/** Where providers' servers are, and what their models are called with us. */
import type * as Connection from "./Connection.js"
import * as KnownModel from "./KnownModel.js"
import type { ProviderName } from "./ProviderName.js"

/** A provider whose server has one place, and a wire format of its own. */
export type Vendor = "anthropic" | "openai" | "google"

/**
 * Which model of a vendor, with which key.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends Omit<Connection.Options, "id" | "baseUrl"> {
  /** For people, events and the ledger. Default: the vendor and the model, such as `anthropic/claude-sonnet-4-5`. */
  readonly id?: string | undefined
  /** Another server that speaks the same, such as a gateway; with or without the version of the API. Default: the vendor's own. */
  readonly baseUrl?: string | undefined
}

export const usual: { readonly [Name in Exclude<ProviderName, "openai-compatible">]: string } = {
  anthropic: "https://api.anthropic.com",
  openai: "https://api.openai.com/v1",
  google: "https://generativelanguage.googleapis.com",
  openrouter: "https://openrouter.ai/api/v1",
  ollama: "http://localhost:11434/v1"
}

/** People write the address with or without the version of the API. */
export const versioned = (provider: ProviderName, url: string): string => {
  const trimmed = url.trim().replace(/\/+$/, "")
  const version = { anthropic: "/v1", google: "/v1beta" }[provider as string]
  if (version !== undefined) return trimmed.endsWith(version) ? trimmed.slice(0, -version.length) : trimmed
  const isBare = provider === "openai" || provider === "ollama"
  return isBare && /^[^/]*\/\/[^/?#]+$/.test(trimmed) ? `${trimmed}/v1` : trimmed
}

/** With what is known of the vendor where nothing else is said. */
export const ofVendor = (vendor: Vendor, options: Options): Connection.Options => {
  const id = options.id ?? `${vendor}/${options.model}`
  return {
    ...options,
    id,
    baseUrl: options.baseUrl === undefined ? usual[vendor] : versioned(vendor, options.baseUrl),
    contextWindow: options.contextWindow ?? KnownModel.of(`${vendor}/${options.model}`)?.window
  }
}
