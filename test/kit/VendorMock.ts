/** A third-party mock of the vendors' APIs, and the models of five providers that use it. */
import { type Fixture, LLMock } from "@copilotkit/aimock"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as ModelRegistry from "../../src/model/ModelRegistry.js"
import { key } from "./ModelSample.js"

/** The model of each provider, and what its base URL ends with. */
export const vendors = [
  ["anthropic", "claude-sonnet-4-5", ""],
  ["openai", "gpt-4o", "/v1"],
  ["google", "gemini-2.0-flash", ""],
  ["openai-compatible", "gpt-4o", "/v1"],
  ["ollama", "llama3.2", "/v1"]
] as const

export type Vendor = (typeof vendors)[number]

/** The mock, for as long as the scope lives. */
export const start = (...fixtures: ReadonlyArray<Fixture>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const mock = new LLMock({ port: 0, host: "127.0.0.1", logLevel: "silent" })
      mock.addFixtures([...fixtures])
      await mock.start()
      return mock
    }),
    (mock) => Effect.promise(() => mock.stop())
  )

/** The model of a provider, at the mock. */
export const modelAt = (mock: LLMock, [provider, model, path]: Vendor) =>
  ModelRegistry.make({
    keys: { [provider]: Redacted.make(key) },
    baseUrls: { [provider]: mock.url + path }
  }).pipe(
    Effect.flatMap((registry) => registry.resolve(`${provider}/${model}`)),
    Effect.provide(FetchHttpClient.layer)
  )
