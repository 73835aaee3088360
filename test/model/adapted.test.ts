/** A language model of a vendor's own package, as a team may bring one, through the adapter and over its real wire. */
import * as AnthropicClient from "@effect/ai-anthropic/AnthropicClient"
import * as AnthropicLanguageModel from "@effect/ai-anthropic/AnthropicLanguageModel"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Model from "../../src/model/Model.js"
import { callsIn, collect, failureOf, finishOf, textIn } from "../kit/ModelSample.js"
import * as ModelServer from "../kit/ModelServer.js"
import * as Wires from "../kit/Wire.js"

/** Looks like no token. */
const key = "orchard-window-seven"

it.scopedLive("a vendor's own language model streams, calls tools and fails in words", () =>
  Effect.gen(function* () {
    const server = yield* ModelServer.make
    const model = yield* Effect.provide(
      Model.Model,
      Model.layerLanguageModel({ id: "mine/claude", secrets: [Redacted.make(key)] }).pipe(
        Layer.provide(AnthropicLanguageModel.layer({ model: "claude-test" })),
        Layer.provide(AnthropicClient.layer({ apiKey: Redacted.make(key), apiUrl: server.url })),
        Layer.provide(FetchHttpClient.layer)
      )
    )
    const known = Wires.anthropic
      .events({ text: ["Hel", "lo"], calls: [{ id: "c1", name: "read_file", args: '{"path":3}' }] })
      // Its schemas know the events of its day only.
      .filter((event) => !event.includes("something_new"))
      .map((event) => event.replace('"inference_geo":{"region":"elsewhere"}', '"inference_geo":null'))
    yield* server.play(
      ModelServer.eventStream(known),
      ModelServer.jsonError(401, Wires.anthropic.error(`no: ${key}`, "authentication_error"))
    )
    const parts = yield* collect(model)
    assert.strictEqual(textIn(parts), "Hello")
    assert.deepStrictEqual(callsIn(parts), [{ name: "read_file", params: { path: 3 } }])
    assert.strictEqual(finishOf(parts).reason, "tool-calls")
    const refused = yield* failureOf(collect(model))
    assert.deepInclude(refused, { _tag: "Unauthorized", status: 401 })
    assert.notInclude(JSON.stringify(refused), key)
  })
)
