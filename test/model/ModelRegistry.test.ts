import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type * as Model from "../../src/model/Model.js"
import * as ModelRegistry from "../../src/model/ModelRegistry.js"
import { collect, key } from "../kit/ModelSample.js"
import * as ModelServer from "../kit/ModelServer.js"
import * as Wires from "../kit/Wire.js"

const offline: Model.Service = { id: "offline", stream: () => Stream.empty }

const keys = {
  anthropic: Redacted.make(key),
  openai: Redacted.make(key),
  google: Redacted.make(key),
  openrouter: Redacted.make(key)
}

const registry = (options: ModelRegistry.Options = {}) =>
  Effect.provide(ModelRegistry.make({ keys, ...options }), FetchHttpClient.layer)

const unavailable = (ref: string, options: ModelRegistry.Options = {}) =>
  Effect.flatMap(registry(options), ({ resolve }) =>
    Effect.map(Effect.flip(resolve(ref)), (error) => {
      assert.strictEqual(error._tag, "ModelUnavailable")
      assert.strictEqual(error.ref, ref)
      return error.message
    })
  )

describe("a reference", () => {
  it.effect("is a provider's model, whatever slashes its name has", () =>
    Effect.gen(function* () {
      const { resolve } = yield* registry({ contextWindows: { "anthropic/claude": 200_000 } })
      for (const ref of [
        "anthropic/claude",
        "openai/gpt",
        "google/gemini",
        "openrouter/meta-llama/llama-3:free",
        "ollama/qwen"
      ]) {
        assert.strictEqual((yield* resolve(ref)).id, ref)
      }
      assert.strictEqual((yield* resolve("anthropic/claude")).contextWindow, 200_000)
      assert.isUndefined((yield* resolve("openai/gpt")).contextWindow)
    })
  )

  it.effect("gives the same model each time, also to two who ask at once", () =>
    Effect.gen(function* () {
      const { resolve } = yield* registry()
      const [first, second] = yield* Effect.all([resolve("anthropic/a"), resolve("anthropic/a")], {
        concurrency: "unbounded"
      })
      assert.strictEqual(first, second)
      assert.strictEqual(yield* resolve("anthropic/a"), first)
      assert.notStrictEqual(yield* resolve("anthropic/b"), first)
    })
  )

  it.effect("may name a model of the caller's own", () =>
    Effect.gen(function* () {
      const { resolve } = yield* registry({ custom: (ref) => (ref === "offline" ? offline : undefined) })
      assert.strictEqual(yield* resolve("offline"), offline)
    })
  )

  it.effect("to nothing is refused with what would be valid", () =>
    Effect.gen(function* () {
      for (const ref of ["", "gpt", "offline", "mistral/large", "anthropic/", "anthropic/ ", "/x"]) {
        const message = yield* unavailable(ref)
        for (const name of ModelRegistry.providers) assert.include(message, name)
      }
      assert.include(yield* unavailable("mistral/large"), '"mistral"')
    })
  )
})

describe("settings", () => {
  it.effect("a missing key names its option and the usual variable", () =>
    Effect.gen(function* () {
      for (const [ref, name] of [
        ["anthropic/a", "ANTHROPIC_API_KEY"],
        ["openai/a", "OPENAI_API_KEY"],
        ["google/a", "MY_GOOGLE_KEY"],
        ["openrouter/a/b", "OPENROUTER_API_KEY"]
      ] as const) {
        const options = { keys: { openai: Redacted.make(" \n") }, keyNames: { google: "MY_GOOGLE_KEY" } }
        const message = yield* unavailable(ref, options)
        assert.include(message, name)
        assert.include(message, 'Give one in "keys"')
      }
    })
  )

  it.effect("a base URL that is none is refused without being shown", () =>
    Effect.gen(function* () {
      for (const url of ["localhost:8080", "ftp://x", "http://", "user:secret@host"]) {
        for (const provider of ["anthropic", "ollama"] as const) {
          const message = yield* unavailable(`${provider}/m`, { baseUrls: { [provider]: url } })
          assert.include(message, "URL")
          assert.notInclude(message, "secret")
        }
      }
      assert.include(yield* unavailable("openai-compatible/m"), 'Give one in "baseUrls".')
    })
  )

  it.scopedLive("a key from a file and a base URL with a path too many still work", () =>
    Effect.gen(function* () {
      const server = yield* ModelServer.make
      const { resolve } = yield* registry({
        keys: { anthropic: Redacted.make(`${key}\n`), google: Redacted.make(key) },
        baseUrls: {
          anthropic: `${server.url}/v1/`,
          google: `${server.url}/v1beta`,
          ollama: `${server.url}/v1//`
        }
      })
      for (const [wire, ref] of [
        [Wires.anthropic, "anthropic/claude-test"],
        [Wires.google, "google/gemini-test"],
        [Wires.chat, "ollama/local-test"]
      ] as const) {
        yield* server.play(ModelServer.eventStream(wire.events({ text: ["a"] })))
        yield* collect(yield* resolve(ref))
        const request = yield* server.received
        assert.strictEqual(request.url, wire.path)
        if (wire.provider === "anthropic") assert.strictEqual(request.headers[wire.keyHeader], key)
        if (wire.provider === "openai-compatible") assert.notProperty(request.headers, "authorization")
      }
    })
  )
})

it.effect("the layer provides what resolve asks", () =>
  Effect.gen(function* () {
    assert.strictEqual((yield* ModelRegistry.resolve("ollama/m")).id, "ollama/m")
  }).pipe(Effect.provide(ModelRegistry.layer({}).pipe(Layer.provide(FetchHttpClient.layer))))
)
