/**
 * A model behind Ollama, in the format of {@link ChatCompletions}.
 *
 * Ollama gives a model as much context as its server was started with, 4,096 tokens on most machines, whatever the model
 * could take; it forgets the beginning of a longer prompt, without a word. No request can change that in this format. What it
 * gives is told once the model is loaded (`GET /api/ps`, `context_length`), so it is asked at the end of the first reply: from
 * then on the window is known, and a small one is remarked on.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as WebAddress from "../core/WebAddress.js"
import * as ChatCompletions from "./ChatCompletions.js"
import * as Connection from "./Connection.js"
import * as Model from "./Model.js"

/** Like `ChatCompletions.make`. Without a `contextWindow` the server is asked for it. */
export const make = (
  options: Connection.Options
): Effect.Effect<Model.Service, WebAddress.WebAddressRefused, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const model = yield* ChatCompletions.make(options)
    if (options.contextWindow !== undefined) return model
    const client = Connection.untraced(yield* HttpClient.HttpClient)
    const base = yield* WebAddress.parse(options.baseUrl)
    let window: number | undefined
    let looks = 0
    const look = Effect.suspend(() => {
      looks++
      return Effect.map(loadedWindow(client, options, base), (found) => (window = found))
    })
    const finished = (part: Model.Part): Effect.Effect<Model.Part> =>
      part.type !== "finish" || window !== undefined || looks >= mostLooks
        ? Effect.succeed(part)
        : Effect.map(look, (found) =>
            found === undefined || found >= enough
              ? part
              : { ...part, metadata: { ...Model.remarked(remarkOn(options.model, found)), ...part.metadata } }
          )
    return {
      ...model,
      get contextWindow() {
        return window
      },
      stream: (request) =>
        Stream.mapChunksEffect(model.stream(request), (chunk) =>
          Chunk.some(chunk, ({ type }) => type === "finish")
            ? Effect.map(Effect.forEach(chunk, finished), Chunk.unsafeFromArray)
            : Effect.succeed(chunk)
        )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A server that does not know is not asked for ever. */
const mostLooks = 3

/** Tokens with which an agent can work: its instructions and tools alone take some 4,000. */
const enough = 16_384

const remarkOn = (model: string, window: number): string =>
  `Ollama gives ${model} ${String(window).replace(/\B(?=(\d{3})+$)/g, ",")} tokens of context, and forgets the beginning of longer conversations; ` +
  "OLLAMA_CONTEXT_LENGTH=64000 ollama serve gives more"

/** The context of the model as it is loaded; nothing where the server does not say, or not soon. */
const loadedWindow = (
  client: HttpClient.HttpClient,
  { apiKey, model }: Connection.Options,
  base: URL
): Effect.Effect<number | undefined> => {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/(?:\/v1)?\/*$/, "")}/api/ps`
  const key = apiKey === undefined ? {} : { authorization: `Bearer ${Redacted.value(apiKey)}` }
  return Connection.unredirected(client.execute(HttpClientRequest.get(url, { headers: key }))).pipe(
    Effect.flatMap(({ text }) => text),
    Effect.map((text) => windowIn(text, model)),
    Effect.timeout("1 second"),
    Effect.catchAllCause(() => Effect.succeed(undefined))
  )
}

const windowIn = (text: string, model: string): number | undefined => {
  const json = Either.getOrUndefined(UntrustedJson.parse(text))
  const loaded = typeof json === "object" && json !== null && "models" in json ? json.models : undefined
  for (const one of Array.isArray(loaded) ? (loaded as ReadonlyArray<unknown>) : []) {
    if (typeof one !== "object" || one === null || !("context_length" in one)) continue
    const { context_length: length } = one
    const name = "model" in one ? one.model : "name" in one ? one.name : undefined
    if ((name === model || name === `${model}:latest`) && typeof length === "number" && length > 0) return length
  }
  return undefined
}
