import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { vi } from "vitest"
import * as ModelRegistry from "../../src/model/ModelRegistry.js"

const missing = vi.hoisted(() => (name: string) => () => {
  throw Object.assign(new Error(`Cannot find package '${name}'`), { code: "ERR_MODULE_NOT_FOUND" })
})

vi.mock("@effect/ai-anthropic/AnthropicClient", missing("@effect/ai-anthropic"))
vi.mock("@effect/ai-openai/OpenAiLanguageModel", missing("@effect/ai-openai"))
vi.mock("@effect/ai-google/GoogleClient", missing("@effect/ai-google"))

it.effect("a provider whose package is not installed names the package, and the others work", () =>
  Effect.gen(function* () {
    const { resolve } = yield* ModelRegistry.make({
      keys: { anthropic: Redacted.make("key-a"), openai: Redacted.make("key-b"), google: Redacted.make("key-c") }
    })
    for (const provider of ["anthropic", "openai", "google"]) {
      for (const model of ["one", "two"]) {
        const error = yield* Effect.flip(resolve(`${provider}/${model}`))
        assert.strictEqual(error.ref, `${provider}/${model}`)
        assert.include(error.message, `npm install @effect/ai-${provider}`)
      }
    }
    assert.strictEqual((yield* resolve("ollama/m")).id, "ollama/m")
  }).pipe(Effect.provide(FetchHttpClient.layer))
)
