/**
 * `provider/model` → a model.
 *
 * The wire format of a provider is loaded with its first model. Requests are not retried here: the turn retries and
 * reports it.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import * as ModelRegistry from "assent/model/ModelRegistry"
 * import { Effect, Redacted } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const model = yield* ModelRegistry.resolve("anthropic/claude-sonnet-4-5")
 *   return model.id
 * }).pipe(Effect.provide(ModelRegistry.layer({})), Effect.provide(FetchHttpClient.layer))
 * ```
 *
 * @since 0.1.0
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Redaction from "../core/Redaction.js"
import * as WebAddress from "../core/WebAddress.js"
import type * as Connection from "./Connection.js"
import * as KnownModel from "./KnownModel.js"
import type * as Model from "./Model.js"
import * as ProviderAddress from "./ProviderAddress.js"
import { type ProviderName, providers } from "./ProviderName.js"

export { providers, type ProviderName }

/**
 * The reference names no usable model. The message lists valid references, or says what is missing.
 *
 * @since 0.1.0
 * @category errors
 */
export class ModelUnavailable extends Schema.TaggedError<ModelUnavailable>("assent/model/ModelUnavailable")(
  "ModelUnavailable",
  { ref: Schema.String, message: Schema.String }
) {}

/**
 * Finds models by reference.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /**
   * The model of a reference such as `anthropic/claude-sonnet-4-5` or `openrouter/meta-llama/llama-3`; the same value
   * for the same reference. No server is contacted: an unknown model fails at its first generation.
   */
  readonly resolve: (ref: string) => Effect.Effect<Model.Service, ModelUnavailable>
}

/**
 * Turns references into models.
 *
 * @since 0.1.0
 * @category services
 */
export class ModelRegistry extends Context.Tag("assent/model/ModelRegistry")<ModelRegistry, Service>() {}

/**
 * All options are values: the registry reads no environment.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** An empty key counts as none. `ollama` and `openai-compatible` need none. */
  readonly keys?: { readonly [Name in ProviderName]?: Redacted.Redacted | undefined } | undefined
  /** Replaces the provider's own URL; ends before the part of the path that names an operation. */
  readonly baseUrls?: { readonly [Name in ProviderName]?: string | undefined } | undefined
  /** Names of the keys' variables, for messages. Default: `ANTHROPIC_API_KEY` and the like. */
  readonly keyNames?: { readonly [Name in ProviderName]?: string | undefined } | undefined
  /**
   * What to do about a key or an address that is missing. Default: names `keys` and `baseUrls`.
   *
   * @internal
   */
  readonly remedies?: { readonly key: (variable: string) => string; readonly baseUrl: string } | undefined
  /** Models without a provider, by the whole reference: `offline`, `script:FILE`. Tried first. */
  readonly custom?: ((ref: string) => Model.Service | undefined) | undefined
  /** Context windows in tokens, by reference. Default: those of `KnownModel`; Ollama is asked; else unknown. */
  readonly contextWindows?: Readonly<Record<string, number>> | undefined
  /**
   * Media types of the files that a model takes, by reference; `[]` for one that reads words only. Default: what the
   * provider's format carries.
   */
  readonly inputs?: Readonly<Record<string, ReadonlyArray<string>>> | undefined
  /**
   * The most tokens of one reply. Default: the provider's. Where the provider requires a number it is 32,000, or fewer
   * where the model has fewer; 8192 for a model that is not known.
   */
  readonly maxOutputTokens?: number | undefined
  /** The same by reference, which goes before. */
  readonly maxOutputTokensOf?: Readonly<Record<string, number>> | undefined
  /** How much a model thinks, by reference. Default: the provider's. */
  readonly thinking?: Readonly<Record<string, Model.Thinking>> | undefined
}

/**
 * Resolves with the registry of the context.
 *
 * @since 0.1.0
 * @category operations
 */
export const resolve = (ref: string): Effect.Effect<Model.Service, ModelUnavailable, ModelRegistry> =>
  Effect.flatMap(ModelRegistry, (registry) => registry.resolve(ref))

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Resolves references such as `anthropic/claude-sonnet-4-5`; a provider's module is loaded with its first model.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<Service, never, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const http = yield* HttpClient.HttpClient
    const known = new Map<string, Model.Service>()
    const settings = settingsOf(options)

    const build = (ref: string, provider: ProviderName, model: string): Effect.Effect<Model.Service, string> =>
      Effect.gen(function* () {
        const needsKey = provider !== "ollama" && provider !== "openai-compatible"
        const apiKey = needsKey ? yield* settings.needKey(provider) : settings.key(provider)
        const baseUrl = yield* settings.baseUrl(provider)
        const { make } = yield* Effect.promise(formats[provider])
        return yield* make({
          id: ref,
          model,
          baseUrl,
          apiKey,
          contextWindow: own(options.contextWindows, ref) ?? KnownModel.of(ref)?.window,
          inputs: own(options.inputs, ref),
          maxOutputTokens: own(options.maxOutputTokensOf, ref) ?? options.maxOutputTokens,
          thinking: own(options.thinking, ref),
          credentials: `Check ${settings.keyName(provider)}: it must hold a key that may use this model.`,
          redactor: settings.redactor
        }).pipe(
          Effect.mapError((refused) => `The base URL for ${provider} ${refused.message}`),
          Effect.provideService(HttpClient.HttpClient, http)
        )
      })

    return {
      resolve: (ref) =>
        Effect.gen(function* () {
          const custom = options.custom?.(ref)
          if (custom !== undefined) return custom
          const existing = known.get(ref)
          if (existing !== undefined) return existing
          const { model, provider } = yield* parse(ref)
          const made = yield* build(ref, provider, model)
          // Another fiber may have made it meanwhile; all get the first one.
          const service = known.get(ref) ?? made
          known.set(ref, service)
          return service
        }).pipe(Effect.mapError((message) => new ModelUnavailable({ ref, message })))
    }
  })

/**
 * A registry of all providers; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<ModelRegistry, never, HttpClient.HttpClient> =>
  Layer.effect(ModelRegistry, make(options))

/**
 * Like {@link layer}, with settings from `Config`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  options: Config.Config.Wrap<Options>
): Layer.Layer<ModelRegistry, ConfigError.ConfigError, HttpClient.HttpClient> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(options), layer))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The wire format of each provider; loaded with its first model. */
const formats: {
  readonly [Name in ProviderName]: () => Promise<{
    readonly make: (
      options: Connection.Options
    ) => Effect.Effect<Model.Service, WebAddress.WebAddressRefused, HttpClient.HttpClient>
  }>
} = {
  anthropic: () => import("./AnthropicMessages.js"),
  openai: () => import("./OpenAiResponses.js"),
  google: () => import("./Gemini.js"),
  openrouter: () => import("./ChatCompletions.js"),
  ollama: () => import("./OllamaModel.js"),
  "openai-compatible": () => import("./ChatCompletions.js")
}

const defaultKeyNames: Readonly<Record<ProviderName, string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  openai: "OPENAI_API_KEY",
  google: "GOOGLE_API_KEY",
  openrouter: "OPENROUTER_API_KEY",
  ollama: "OLLAMA_API_KEY",
  "openai-compatible": "OPENAI_COMPATIBLE_API_KEY"
}

const validRefs = `Write PROVIDER/MODEL. The providers are ${providers.join(", ")}. The model "offline" needs no key`

/** A model may be called like something that every object has. */
const own = <A>(record: Readonly<Record<string, A>> | undefined, name: string): A | undefined =>
  record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined

const parse = (ref: string): Effect.Effect<{ readonly provider: ProviderName; readonly model: string }, string> => {
  const [, name = "", model = ""] = /^([^/]*)\/(.*)$/s.exec(ref) ?? []
  const provider = providers.find((candidate) => candidate === name)
  if (provider === undefined) {
    const what = name === "" ? `"${ref}" is not a model.` : `There is no provider "${name}".`
    return Effect.fail(`${what} ${validRefs}.`)
  }
  return model.trim() === ""
    ? Effect.fail(`"${ref}" names no model. ${validRefs}.`)
    : Effect.succeed({ provider, model })
}

interface Settings {
  /** Masks every key: a gateway may echo the key of another provider. */
  readonly redactor: Redaction.Redactor
  readonly keyName: (provider: ProviderName) => string
  readonly key: (provider: ProviderName) => Redacted.Redacted | undefined
  readonly needKey: (provider: ProviderName) => Effect.Effect<Redacted.Redacted, string>
  /** The override, checked; else the provider's own URL. */
  readonly baseUrl: (provider: ProviderName) => Effect.Effect<string, string>
}

const defaultRemedies: NonNullable<Options["remedies"]> = {
  key: (variable) => `Give one in "keys"; it is usually kept in ${variable}.`,
  baseUrl: 'Give one in "baseUrls".'
}

const settingsOf = (options: Options): Settings => {
  const { remedies = defaultRemedies } = options
  const keyName = (provider: ProviderName) => options.keyNames?.[provider] ?? defaultKeyNames[provider]
  const key = (provider: ProviderName) => {
    const given = options.keys?.[provider]
    // A key from a file may end in a line break, which no header can hold.
    const value = given === undefined ? "" : Redacted.value(given).trim()
    return value === "" ? undefined : Redacted.make(value)
  }
  return {
    redactor: Redaction.make(providers.flatMap((provider) => key(provider) ?? [])),
    keyName,
    key,
    needKey: (provider) =>
      Effect.fromNullable(key(provider)).pipe(
        Effect.mapError(() => `There is no API key for ${provider}. ${remedies.key(keyName(provider))}`)
      ),
    baseUrl: (provider) =>
      Effect.gen(function* () {
        const given = options.baseUrls?.[provider]?.trim()
        const url = given === undefined || given === "" ? usualOf(provider) : given
        if (url === undefined) {
          return yield* Effect.fail(
            `${provider} needs a base URL, such as http://localhost:8080/v1. ${remedies.baseUrl}`
          )
        }
        // Checked before anything runs: an invalid address is a configuration error.
        yield* Effect.mapError(WebAddress.parse(url), ({ message }) => `The base URL for ${provider} ${message}`)
        return ProviderAddress.versioned(provider, url)
      })
  }
}

const usualOf = (provider: ProviderName): string | undefined =>
  provider === "openai-compatible" ? undefined : ProviderAddress.usual[provider]
