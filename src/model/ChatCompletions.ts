/**
 * A model behind any server that speaks the `/chat/completions` protocol: Ollama, llama.cpp, vLLM, OpenRouter.
 *
 * The API key is in the `Authorization` header of the request and nowhere else.
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import type * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as WebAddress from "../core/WebAddress.js"
import * as ChatMessage from "./ChatMessage.js"
import * as ChatReply from "./ChatReply.js"
import * as Connection from "./Connection.js"
import type * as Model from "./Model.js"

/** `baseUrl` goes up to and without `/chat/completions`, such as `http://localhost:11434/v1`. */
export type Options = Connection.Options

/** A model that asks the server through the client of the context. Nothing is sent before the first generation. */
export const make = (
  options: Options
): Effect.Effect<Model.Service, WebAddress.WebAddressRefused, HttpClient.HttpClient> =>
  Connection.make(options, {
    keyHeader: Connection.bearer,
    read: (answer) => ChatReply.make(answer),
    request: (prompt, tools) =>
      Either.gen(function* () {
        const messages = yield* ChatMessage.fromPrompt(prompt)
        const functions = yield* ChatMessage.fromTools(tools)
        return {
          path: "/chat/completions",
          body: {
            model: options.model,
            messages,
            ...(functions.length === 0 ? {} : { tools: functions }),
            ...(options.maxOutputTokens === undefined ? {} : { max_tokens: options.maxOutputTokens }),
            stream: true,
            stream_options: { include_usage: true }
          }
        }
      })
  })
