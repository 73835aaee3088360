/** What is particular to one vendor's wire format. */
import * as Prompt from "@effect/ai/Prompt"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as ModelRegistry from "../../src/model/ModelRegistry.js"
import { ask, callsIn, collect, failureOf, finishOf, key, textIn } from "../kit/ModelSample.js"
import * as ModelServer from "../kit/ModelServer.js"
import type { Wire } from "../kit/Wire.js"
import * as Wires from "../kit/Wire.js"

const setup = (wire: Wire, extra: Partial<ModelRegistry.Options> = {}) =>
  Effect.gen(function* () {
    const server = yield* ModelServer.make
    const registry = yield* ModelRegistry.make({
      keys: { [wire.provider]: Redacted.make(key) },
      baseUrls: { [wire.provider]: server.url + wire.basePath },
      ...extra
    })
    const model = yield* registry.resolve(`${wire.provider}/${wire.model}`)
    return { model, server, registry }
  })

const live = (name: string, test: () => Effect.Effect<void, unknown, any>) =>
  it.scopedLive(name, () => Effect.provide(test() as Effect.Effect<void, unknown, never>, FetchHttpClient.layer))

const broken = { id: "call_b", name: "read_file", args: '{"path": "a.t' }

describe("malformed arguments", () => {
  for (const wire of [Wires.anthropic, Wires.openai, Wires.chat]) {
    live(`reach the turn as text: ${wire.provider}`, () =>
      Effect.gen(function* () {
        const { model, server } = yield* setup(wire)
        const calls = [{ id: "call_a", name: "now", args: "{}" }, broken]
        yield* server.play(ModelServer.eventStream(wire.events({ text: ["Ok."], calls })))
        const parts = yield* collect(model)
        assert.deepStrictEqual(callsIn(parts), [
          { name: "now", params: {} },
          { name: "read_file", params: broken.args }
        ])
        assert.strictEqual(finishOf(parts).reason, "tool-calls")
      })
    )
  }
})

describe("an invented tool", () => {
  for (const wire of Wires.wires) {
    live(`reaches the turn, which answers it: ${wire.provider}`, () =>
      Effect.gen(function* () {
        const { model, server } = yield* setup(wire)
        const calls = [{ id: "call_a", name: "rm_rf", args: '{"path":"/"}' }]
        yield* server.play(ModelServer.eventStream(wire.events({ calls })))
        assert.deepStrictEqual(callsIn(yield* collect(model)), [{ name: "rm_rf", params: { path: "/" } }])
        assert.strictEqual(server.count(), 1)
      })
    )
  }
})

describe("anthropic", () => {
  live("reports errors in the middle of a stream, of known and of new types", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.anthropic)
      const events = Wires.anthropic.events({ text: ["Hel", "lo"] }).slice(0, 5)
      const error = (type: string) => ModelServer.sse([{ type: "error", error: { type, message: `${type} ${key}` } }])
      for (const [type, tag] of [
        ["overloaded_error", "Overloaded"],
        ["timeout_error", "Overloaded"],
        ["invalid_request_error", "Refused"],
        ["brand_new_error", "BadOutput"]
      ] as const) {
        yield* server.play(ModelServer.eventStream([...events, ...error(type)]))
        const failure = yield* failureOf(collect(model))
        assert.strictEqual(failure._tag, tag)
        assert.include(failure.message, type)
      }
    })
  )

  live("asks for as many tokens as the model gives, or as many as it is told", () =>
    Effect.gen(function* () {
      const maxTokens = (model: string, maxOutputTokens?: number) =>
        Effect.gen(function* () {
          const { registry, server } = yield* setup(Wires.anthropic, { maxOutputTokens })
          yield* server.play(ModelServer.eventStream(Wires.anthropic.events({ text: ["a"] })))
          yield* collect(yield* registry.resolve(`anthropic/${model}`))
          return ModelServer.json(yield* server.received).max_tokens
        })
      assert.strictEqual(yield* maxTokens("claude-of-tomorrow"), 8192)
      assert.strictEqual(yield* maxTokens("claude-sonnet-4-5"), 32_000)
      assert.strictEqual(yield* maxTokens("claude-sonnet-4-5-20250929"), 32_000, "a snapshot")
      assert.strictEqual(yield* maxTokens("claude-3-haiku-20240307"), 4096)
      assert.strictEqual(yield* maxTokens("claude-sonnet-4-5", 100), 100)
    })
  )

  live("leaves out what is newer than its client inside a block", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.anthropic)
      const events = Array.from(Wires.anthropic.events({ text: ["Hel", "lo"] }))
      const delta = { type: "content_block_delta", index: 0, delta: { type: "newer_delta", with: "fields" } }
      events.splice(-3, 0, ...ModelServer.sse([delta]))
      yield* server.play(ModelServer.eventStream(events))
      assert.strictEqual(textIn(yield* collect(model)), "Hello")
    })
  )

  live("takes a stop reason that is new, and says when the window is full", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.anthropic)
      for (const [stop, reason] of [
        ["brand_new_reason", "unknown"],
        ["model_context_window_exceeded", "length"]
      ] as const) {
        const events = Wires.anthropic.events({ text: ["a"] }).map((event) => event.replace("end_turn", stop))
        yield* server.play(ModelServer.eventStream(events))
        assert.strictEqual(finishOf(yield* collect(model)).reason, reason)
      }
    })
  )
})

describe("openai", () => {
  live("fails when the response failed", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.openai)
      const failed = (code: string) =>
        ModelServer.sse([
          {
            type: "response.failed",
            sequence_number: 9,
            response: Wires.openaiResponse({}, { status: "failed", error: { code, message: `sorry ${key}` } })
          }
        ])
      for (const [code, tag] of [
        ["server_error", "Overloaded"],
        ["rate_limit_exceeded", "RateLimited"],
        ["invalid_prompt", "Refused"]
      ] as const) {
        yield* server.play(ModelServer.eventStream([...Wires.openai.events({}).slice(0, 2), ...failed(code)]))
        assert.strictEqual((yield* failureOf(collect(model)))._tag, tag)
      }
    })
  )

  live("says that a reply was cut by its length", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.openai)
      const events = Wires.openai.events({ text: ["a"] }).slice(0, -1)
      const response = Wires.openaiResponse({}, { incomplete_details: { reason: "max_output_tokens" } })
      const end = ModelServer.sse([{ type: "response.incomplete", sequence_number: 9, response }])
      yield* server.play(ModelServer.eventStream([...events, ...end]))
      assert.strictEqual(finishOf(yield* collect(model)).reason, "length")
    })
  )

  live("tells an exhausted account from too many requests", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.openai)
      const error = {
        message: "You exceeded your current quota.",
        type: "insufficient_quota",
        code: "insufficient_quota"
      }
      yield* server.play(ModelServer.jsonError(429, { error }))
      const failure = yield* failureOf(collect(model))
      assert.deepInclude(failure, { _tag: "Refused", status: 429 })
      assert.include(failure.message, "billing")
    })
  )
})

describe("google", () => {
  const end = (candidate: object | undefined, extra: object = {}) =>
    ModelServer.eventStream(
      ModelServer.sse([
        { ...(candidate === undefined ? {} : { candidates: [candidate] }), modelVersion: "g", ...extra }
      ])
    )

  live("finishes a reply that has no content", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.google)
      yield* server.play(end({ finishReason: "SAFETY", index: 0 }), end({ finishReason: "MAX_TOKENS", index: 0 }))
      assert.strictEqual(finishOf(yield* collect(model)).reason, "content-filter")
      assert.strictEqual(finishOf(yield* collect(model)).reason, "length")
    })
  )

  live("fails on a call that the model could not write", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.google)
      yield* server.play(end({ finishReason: "MALFORMED_FUNCTION_CALL", index: 0 }))
      assert.strictEqual((yield* failureOf(collect(model)))._tag, "BadOutput")
    })
  )

  live("fails as refused when the prompt was blocked", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.google)
      yield* server.play(end(undefined, { promptFeedback: { blockReason: "PROHIBITED_CONTENT" } }))
      const failure = yield* failureOf(collect(model))
      assert.strictEqual(failure._tag, "Refused")
      assert.include(failure.message, "PROHIBITED_CONTENT")
    })
  )

  live("knows a wrong key and a wait by their details", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.google)
      yield* server.play(
        ModelServer.jsonError(400, {
          error: {
            code: 400,
            message: "API key not valid. Please pass a valid API key.",
            status: "INVALID_ARGUMENT",
            details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }]
          }
        }),
        ModelServer.jsonError(429, [
          {
            error: {
              code: 429,
              message: "You exceeded your current quota, please check your plan and billing details.",
              status: "RESOURCE_EXHAUSTED",
              details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "35.2s" }]
            }
          }
        ])
      )
      assert.strictEqual((yield* failureOf(collect(model)))._tag, "Unauthorized")
      assert.deepInclude(yield* failureOf(collect(model)), { _tag: "RateLimited", retryAfter: 35_200 })
    })
  )

  live("leaves results that are objects as they are", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup(Wires.google)
      yield* server.play(ModelServer.eventStream(Wires.google.events({ text: ["a"] })))
      const call = { type: "tool-call" as const, name: "now", params: {}, providerExecuted: false }
      const result = { type: "tool-result" as const, name: "now", isFailure: false, providerExecuted: false }
      const prompt = Prompt.make([
        ...ask.content.map((message) => ({ ...message })),
        { role: "assistant", content: [1, 2, 3].map((n) => ({ ...call, id: `c${n}` })) },
        {
          role: "tool",
          content: [{ ok: true }, [1], null].map((value, n) => ({ ...result, id: `c${n + 1}`, result: value }))
        }
      ])
      yield* collect(model, prompt)
      const { contents } = ModelServer.json(yield* server.received)
      assert.deepStrictEqual(
        contents.at(-1).parts.map((part: any) => part.functionResponse.response),
        [{ ok: true }, { result: [1] }, { result: null }]
      )
    })
  )
})
