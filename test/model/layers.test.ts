/** Models behind providers as layers: what agents use, with settings from `Config`. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Config from "effect/Config"
import * as ConfigError from "effect/ConfigError"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AnthropicMessages from "../../src/model/AnthropicMessages.js"
import * as ChatCompletions from "../../src/model/ChatCompletions.js"
import * as Gemini from "../../src/model/Gemini.js"
import * as Model from "../../src/model/Model.js"
import * as ModelRegistry from "../../src/model/ModelRegistry.js"
import * as OpenAiResponses from "../../src/model/OpenAiResponses.js"
import { collect, key, textIn } from "../kit/ModelSample.js"
import * as ModelServer from "../kit/ModelServer.js"
import { wires } from "../kit/Wire.js"

const formats = {
  anthropic: AnthropicMessages,
  openai: OpenAiResponses,
  google: Gemini,
  "openai-compatible": ChatCompletions
}

const withVariables = (variables: Readonly<Record<string, string>>) =>
  Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))

const keyOf = Config.redacted("MODEL_KEY")

describe("a model from settings", () => {
  for (const wire of wires) {
    const { layerConfig } = formats[wire.provider]
    const model = layerConfig({
      id: Config.succeed(`${wire.provider}/${wire.model}`),
      model: Config.succeed(wire.model),
      baseUrl: Config.string("MODEL_URL"),
      apiKey: keyOf
    }).pipe(Layer.provide(FetchHttpClient.layer))

    it.scoped(`of ${wire.provider} is the one that agents use`, () =>
      Effect.gen(function* () {
        const server = yield* ModelServer.make
        yield* server.play(ModelServer.eventStream(wire.events({ text: ["Hello"] })))
        const parts = yield* Effect.flatMap(Model.Model, (model) => collect(model)).pipe(
          Effect.provide(model),
          Effect.provide(withVariables({ MODEL_URL: server.url + wire.basePath, MODEL_KEY: key }))
        )
        assert.strictEqual(textIn(parts), "Hello")
        const request = yield* server.received
        assert.strictEqual(request.headers[wire.keyHeader], wire.keyPrefix + key)
      })
    )

    it.effect(`of ${wire.provider} says which variable is missing, and which address cannot be used`, () =>
      Effect.gen(function* () {
        const failure = (variables: Readonly<Record<string, string>>) =>
          Effect.flip(Effect.provide(Effect.scoped(Layer.build(model)), withVariables(variables)))
        const missing = yield* failure({ MODEL_URL: "http://localhost:1" })
        assert.isTrue(ConfigError.isConfigError(missing))
        assert.include(String(missing), "MODEL_KEY")
        assert.deepInclude(yield* failure({ MODEL_URL: "ftp://here", MODEL_KEY: key }), { _tag: "WebAddressRefused" })
      })
    )
  }
})

describe("a registry from settings", () => {
  it.effect("takes single keys", () =>
    Effect.gen(function* () {
      const registry = ModelRegistry.layerConfig({ keys: { anthropic: keyOf } }).pipe(
        Layer.provide(FetchHttpClient.layer),
        Layer.provide(withVariables({ MODEL_KEY: key }))
      )
      const resolved = yield* Effect.provide(ModelRegistry.resolve("anthropic/claude"), registry)
      assert.strictEqual(resolved.id, "anthropic/claude")
      const other = yield* Effect.flip(Effect.provide(ModelRegistry.resolve("openai/gpt"), registry))
      assert.strictEqual(other._tag, "ModelUnavailable")
    })
  )
})
