/** Where models come from. Apart from the registry, so that who reads settings need not load how to reach them. */
export const providers = ["anthropic", "openai", "google", "openrouter", "ollama", "openai-compatible"] as const
/** Providers whose models can be named. */
export type ProviderName = (typeof providers)[number]
