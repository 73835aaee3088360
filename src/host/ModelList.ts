/**
 * The models that can be used here: those of vendors for whom there is a key, those that the person's settings name, and
 * what servers on this machine say that they have.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as KnownModel from "../model/KnownModel.js"
import type { ProviderName } from "../model/ProviderName.js"
import * as HttpProxy from "./HttpProxy.js"
import type { Settings } from "./Settings.js"

/** A model that may be chosen. */
export interface Listed {
  readonly ref: string
  /** What is known of it, in few words. */
  readonly note?: string | undefined
}

export type Source = Pick<Settings, "baseUrls" | "keys" | "models" | "prices" | "proxy">

/** Those that are known without asking anybody. */
export const named = (settings: Source): ReadonlyArray<string> => {
  const own = [...Object.keys(settings.models), ...Object.keys(settings.prices)]
  return [...new Set([...own, ...KnownModel.refs()])].filter((ref) => isUsable(settings, ref))
}

/** The same with those of local servers, as far as they answer at once; and the one that is always there. */
export const all = (settings: Source): Effect.Effect<ReadonlyArray<Listed>> =>
  Effect.map(
    Effect.forEach(serversOf(settings), (server) => modelsAt(server, settings.proxy), { concurrency: "unbounded" }),
    (found) => {
      const listed = [
        ...named(settings).map(described),
        ...found.flat(),
        { ref: "offline/offline", note: "no language model" }
      ]
      const seen = new Set<string>()
      return listed.filter(({ ref }) => !seen.has(ref) && seen.add(ref))
    }
  )

/**
 * The models that the server of a local one says it has, none where it tells none; undefined where nobody answers. Of a
 * vendor's model nobody is asked.
 */
export const atServerOf = (
  settings: Source,
  ref: string
): Effect.Effect<{ readonly url: string; readonly models: ReadonlyArray<string> | undefined } | undefined> => {
  const server = serversOf(settings).find(({ provider }) => ref.startsWith(`${provider}/`))
  if (server === undefined) return Effect.succeed(undefined)
  const { url } = server
  return responseOf(server, settings.proxy).pipe(
    Effect.map((text) => ({ url, models: modelsIn(server, text).map((one) => one.ref) })),
    Effect.catchAllCause(() => Effect.succeed({ url, models: undefined }))
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isUsable = ({ baseUrls, keys }: Source, ref: string): boolean => {
  const provider = ref.slice(0, ref.indexOf("/")) as ProviderName
  if (provider === "ollama") return true
  if (provider === "openai-compatible") return baseUrls[provider] !== undefined
  const key = keys[provider]
  return key !== undefined && Redacted.value(key) !== ""
}

const described = (ref: string): Listed => {
  const known = KnownModel.of(ref)
  if (known === undefined) return { ref }
  const { price, window } = known
  const money = price === undefined ? [] : [`$${price.input} in, $${price.output} out a million`]
  return { ref, note: [`${sized(window)} tokens`, ...money].join(", ") }
}

const sized = (tokens: number): string =>
  tokens < 1_000_000 ? `${Math.round(tokens / 1_000)}k` : `${Number((tokens / 1e6).toFixed(2))}M`

interface Server {
  readonly provider: ProviderName
  readonly url: string
  readonly key: Redacted.Redacted | undefined
}

/** A server that nobody set up is looked for where it usually is. */
const serversOf = ({ baseUrls, keys }: Source): ReadonlyArray<Server> => {
  const ollama = baseUrls.ollama ?? "http://localhost:11434/v1"
  const compatible = baseUrls["openai-compatible"]
  return [
    { provider: "ollama", url: ollama, key: undefined },
    ...(compatible === undefined
      ? []
      : [{ provider: "openai-compatible", url: compatible, key: keys["openai-compatible"] } as const])
  ]
}

/** The most models of a server that are listed. */
const most = 50

/** What does not answer in time, or answers something else, has none. */
const modelsAt = (server: Server, proxy: HttpProxy.HttpProxy): Effect.Effect<ReadonlyArray<Listed>> =>
  responseOf(server, proxy).pipe(
    Effect.map((text) => modelsIn(server, text).slice(0, most)),
    Effect.catchAllCause(() => Effect.succeed([]))
  )

const modelsIn = ({ provider }: Server, text: string): ReadonlyArray<Listed> => {
  const json = Either.getOrUndefined(UntrustedJson.parse(text))
  const data = typeof json === "object" && json !== null && "data" in json ? json.data : undefined
  return (Array.isArray(data) ? data : []).flatMap((one: unknown): ReadonlyArray<Listed> => {
    const id = typeof one === "object" && one !== null && "id" in one ? one.id : undefined
    return typeof id === "string" && /^[\w.:/@+-]{1,120}$/.test(id) ? [{ ref: `${provider}/${id}` }] : []
  })
}

/** What a server says when it is asked for its models. */
const responseOf = ({ key, provider, url }: Server, proxy: HttpProxy.HttpProxy) =>
  Effect.gen(function* () {
    const { FetchHttpClient, HttpClient } = yield* loadClient
    const client = (yield* Effect.provide(HttpClient.HttpClient, HttpProxy.client(proxy))).pipe(
      HttpClient.withTracerPropagation(false),
      HttpClient.withTracerDisabledWhen(() => true)
    )
    const address = new URL(url)
    const path = address.pathname.replace(/\/+$/, "")
    address.pathname = `${path === "" && provider === "ollama" ? "/v1" : path}/models`
    const headers = key === undefined ? {} : { authorization: `Bearer ${Redacted.value(key)}` }
    // A redirect would carry the key to another server.
    return yield* Effect.provideService(
      Effect.flatMap(client.get(address, { headers }), ({ text }) => text),
      FetchHttpClient.RequestInit,
      { redirect: "error" }
    )
  }).pipe(Effect.timeout("1500 millis"))

/** Not needed before somebody wants the list. */
const loadClient = Effect.promise(async () => ({
  FetchHttpClient: await import("@effect/platform/FetchHttpClient"),
  HttpClient: await import("@effect/platform/HttpClient")
}))
