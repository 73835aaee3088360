import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Model from "../../src/model/Model.js"
import * as OllamaModel from "../../src/model/OllamaModel.js"
import * as ModelServer from "../kit/ModelServer.js"
import * as Wires from "../kit/Wire.js"

const loaded = (...models: ReadonlyArray<unknown>): ModelServer.Script => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ models })
})
const reply = ModelServer.eventStream(Wires.chat.events({ text: ["a", "b"] }))

const start = (options: { readonly contextWindow?: number } = {}) =>
  Effect.gen(function* () {
    const server = yield* ModelServer.make
    const made = OllamaModel.make({
      id: "ollama/small",
      model: "small",
      baseUrl: `${server.url}/behind/v1/`,
      apiKey: Redacted.make("a key of a gateway"),
      ...options
    })
    const model = yield* Effect.provide(made, FetchHttpClient.layer)
    /** One reply; its words, and the remark at its end. */
    const ask = Effect.gen(function* () {
      const prompt = Prompt.fromMessages([Prompt.userMessage({ content: [Prompt.textPart({ text: "hello" })] })])
      const parts = yield* Stream.runCollect(model.stream({ prompt, tools: [], agent: "main", sessionId: "s" }))
      const words = Chunk.toReadonlyArray(parts).flatMap((part) => (part.type === "text-delta" ? [part.delta] : []))
      const end = Chunk.toReadonlyArray(parts).find((part) => part.type === "finish")
      return { words: words.join(""), remark: Model.remarkOf(end?.metadata) }
    })
    return { ask, model, server }
  })

describe("the context that Ollama gives a model", () => {
  it.scopedLive("is asked for once the model is loaded, and a small one is remarked on", () =>
    Effect.gen(function* () {
      const { ask, model, server } = yield* start()
      assert.isUndefined(model.contextWindow)
      yield* server.play(
        reply,
        loaded({ model: "other:latest", context_length: 32_768 }, { model: "small:latest", context_length: 4_096 }),
        reply
      )
      const first = yield* ask
      assert.strictEqual(first.words, "ab")
      assert.strictEqual(
        first.remark,
        "Ollama gives small 4,096 tokens of context, and forgets the beginning of longer conversations; " +
          "OLLAMA_CONTEXT_LENGTH=64000 ollama serve gives more"
      )
      assert.strictEqual(model.contextWindow, 4_096)
      yield* server.received
      const { headers, url } = yield* server.received
      assert.deepStrictEqual([url, headers.authorization], ["/behind/api/ps", "Bearer a key of a gateway"])
      assert.isUndefined((yield* ask).remark, "once")
      assert.strictEqual(server.count(), 3)
    })
  )

  it.scopedLive("is not remarked on where it is enough", () =>
    Effect.gen(function* () {
      const { ask, model, server } = yield* start()
      yield* server.play(reply, loaded({ name: "small", context_length: 65_536 }))
      assert.isUndefined((yield* ask).remark)
      assert.strictEqual(model.contextWindow, 65_536)
    })
  )

  it.scopedLive("is not asked for where a person says it", () =>
    Effect.gen(function* () {
      const { ask, model, server } = yield* start({ contextWindow: 8_192 })
      yield* server.play(reply)
      assert.isUndefined((yield* ask).remark)
      assert.strictEqual(model.contextWindow, 8_192)
      assert.strictEqual(server.count(), 1)
    })
  )

  it.scopedLive("stays unknown where nobody says it, and is not asked for ever", () =>
    Effect.gen(function* () {
      const { ask, model, server } = yield* start()
      const nothing: ReadonlyArray<ModelServer.Script> = [
        { status: 404, body: "<p>no</p>" },
        loaded({ model: "small", context_length: "4096" }, { model: "small" }, null),
        { body: "[", then: "cut" }
      ]
      for (const script of nothing) {
        yield* server.play(reply, script)
        assert.deepStrictEqual(yield* ask, { words: "ab", remark: undefined })
      }
      yield* server.play(reply)
      assert.strictEqual((yield* ask).words, "ab")
      assert.isUndefined(model.contextWindow)
      assert.strictEqual(server.count(), 7)
    })
  )

  it.scopedLive("does not keep an answer waiting", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* start()
      yield* server.play(reply, { then: "hang" })
      assert.deepStrictEqual(yield* ask, { words: "ab", remark: undefined })
    })
  )
})
