/**
 * A model behind any server that speaks the `/chat/completions` protocol: Ollama, llama.cpp, vLLM, OpenRouter.
 *
 * Thinking is sent as an effort; servers find cached prefixes themselves. Servers ignore or refuse optional fields that
 * they do not know. The API key is in the `Authorization` header of the request and nowhere else.
 *
 * @since 0.1.0
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import type * as WebAddress from "../core/WebAddress.js"
import * as ChatMessage from "./ChatMessage.js"
import * as ChatReply from "./ChatReply.js"
import * as Connection from "./Connection.js"
import * as FileData from "./FileData.js"
import * as Model from "./Model.js"
import * as OfferedTool from "./OfferedTool.js"

export { WebAddressRefused } from "../core/WebAddress.js"
export type { Options } from "./Connection.js"

/**
 * A model that asks the server through the client of the context. Nothing is sent before the first generation.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Connection.Options
): Effect.Effect<Model.Service, WebAddress.WebAddressRefused, HttpClient.HttpClient> =>
  Connection.make(options, {
    keyHeader: Connection.bearer,
    inputs: FileData.usual,
    read: (answer) => ChatReply.make(answer),
    request: (request) =>
      Either.gen(function* () {
        const { imageDetail, outputSchema, prompt, thinking, tools } = request
        const messages = yield* ChatMessage.fromPrompt(prompt, imageDetail)
        const functions = yield* ChatMessage.fromTools(tools)
        const chosen = yield* OfferedTool.chosen(request)
        const limit = Connection.outputLimit(options, request)
        return {
          path: "/chat/completions",
          body: {
            model: options.model,
            messages,
            ...(functions.length === 0 ? {} : { tools: functions }),
            ...(chosen === undefined ? {} : { tool_choice: ChatMessage.toolChoice(chosen) }),
            ...(limit === undefined ? {} : { max_tokens: limit }),
            ...(thinking?.effort === undefined ? {} : { reasoning_effort: thinking.effort }),
            ...(outputSchema === undefined
              ? {}
              : { response_format: { type: "json_schema", json_schema: { ...outputSchema, strict: false } } }),
            stream: true,
            stream_options: { include_usage: true }
          }
        }
      })
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * The model of this server is the one that agents use; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Connection.Options
): Layer.Layer<Model.Model, WebAddress.WebAddressRefused, HttpClient.HttpClient> =>
  Layer.effect(Model.Model, make(options))

/**
 * Like {@link layer}, with settings from `Config`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  options: Config.Config.Wrap<Connection.Options>
): Layer.Layer<Model.Model, WebAddress.WebAddressRefused | ConfigError.ConfigError, HttpClient.HttpClient> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(options), layer))
