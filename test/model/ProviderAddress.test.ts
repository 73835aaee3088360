import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as AnthropicMessages from "../../src/model/AnthropicMessages.js"
import * as Gemini from "../../src/model/Gemini.js"
import * as KnownModel from "../../src/model/KnownModel.js"
import * as OpenAiResponses from "../../src/model/OpenAiResponses.js"
import { ask, collect } from "../kit/ModelSample.js"

const vendors = {
  anthropic: {
    make: AnthropicMessages.make,
    usual: "https://api.anthropic.com/v1/messages",
    given: ["https://gate.example", "https://gate.example/v1", "https://gate.example/v1/ "],
    there: "https://gate.example/v1/messages"
  },
  openai: {
    make: OpenAiResponses.make,
    usual: "https://api.openai.com/v1/responses",
    given: ["https://gate.example", "https://gate.example/", "https://gate.example/v1"],
    there: "https://gate.example/v1/responses"
  },
  google: {
    make: Gemini.make,
    usual: "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
    given: ["https://gate.example", "https://gate.example/v1beta"],
    there: "https://gate.example/v1beta/models/m:streamGenerateContent?alt=sse"
  }
} as const

describe("a vendor's model", () => {
  for (const [vendor, { given, make, there, usual }] of Object.entries(vendors)) {
    it.effect(`of ${vendor} needs no address, and takes another one as people write it`, () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        const client = HttpClient.make((request, url) =>
          Effect.sync(() => {
            seen.push(url.href)
            return HttpClientResponse.fromWeb(request, new Response("no", { status: 400 }))
          })
        )
        for (const baseUrl of [undefined, ...given]) {
          const model = yield* make({ model: "m", baseUrl }).pipe(Effect.provideService(HttpClient.HttpClient, client))
          assert.strictEqual(model.id, `${vendor}/m`)
          yield* Effect.ignore(collect(model, ask))
        }
        assert.deepStrictEqual(seen, [usual, ...given.map(() => there)])
      })
    )
  }

  it.effect("has the window that its vendor tells of it, unless another one is given", () =>
    Effect.gen(function* () {
      const ref = KnownModel.refs().find((name) => name.startsWith("anthropic/")) ?? ""
      const window = KnownModel.of(ref)?.window
      const model = ref.slice("anthropic/".length)
      assert.isNumber(window)
      assert.strictEqual((yield* AnthropicMessages.make({ model })).contextWindow, window)
      assert.strictEqual((yield* AnthropicMessages.make({ model, contextWindow: 5 })).contextWindow, 5)
      assert.strictEqual((yield* AnthropicMessages.make({ model, id: "mine/x" })).id, "mine/x")
    }).pipe(
      Effect.provideService(
        HttpClient.HttpClient,
        HttpClient.make(() => Effect.never)
      )
    )
  )
})
