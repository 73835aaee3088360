/**
 * The names of providers. It is apart from the registry, so that reading settings does not load the wire formats.
 *
 * @since 0.1.0
 * @category constants
 */
export const providers = ["anthropic", "openai", "google", "openrouter", "ollama", "openai-compatible"] as const
/**
 * Providers whose models can be named.
 *
 * @since 0.1.0
 * @category models
 */
export type ProviderName = (typeof providers)[number]
