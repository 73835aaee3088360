/** Every provider against its real wire format, over loopback. */
import * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Model from "../../src/model/Model.js"
import * as ModelRegistry from "../../src/model/ModelRegistry.js"
import {
  ask,
  assertClean,
  callsIn,
  collect,
  failureOf,
  finishOf,
  key,
  asker,
  textIn,
  tools
} from "../kit/ModelSample.js"
import * as ModelServer from "../kit/ModelServer.js"
import type { Wire } from "../kit/Wire.js"
import { wires } from "../kit/Wire.js"

/** A server and the model of the wire that talks to it. */
const setup = (wire: Wire) =>
  Effect.gen(function* () {
    const server = yield* ModelServer.make
    const registry = yield* ModelRegistry.make({
      keys: { [wire.provider]: Redacted.make(key) },
      baseUrls: { [wire.provider]: server.url + wire.basePath }
    })
    const model = yield* registry.resolve(`${wire.provider}/${wire.model}`)
    const generate = (prompt = ask) => collect(model, prompt)
    return { server, model, generate }
  })

const clients = [
  ["fetch", FetchHttpClient.layer],
  ["undici", NodeHttpClient.layerUndici]
] as const

for (const wire of wires) {
  for (const [clientName, client] of clients) {
    describe(`${wire.provider} over ${clientName}`, () => {
      const live = (name: string, test: () => Effect.Effect<void, unknown, any>) =>
        it.scopedLive(name, () => Effect.provide(test() as Effect.Effect<void, unknown, never>, client))

      live("streams text and usage and ends with finish", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          const usage = { input: 120, output: 7, cached: 100 }
          yield* server.play(ModelServer.eventStream(wire.events({ text: ["Hel", "lo ", "wörld 🌍"], usage })))
          const parts = yield* Effect.withSpan(generate(), "turn")
          assert.strictEqual(textIn(parts), "Hello wörld 🌍")
          assert.deepInclude(finishOf(parts), { reason: "stop" })
          assert.deepInclude(finishOf(parts).usage, {
            inputTokens: 120,
            outputTokens: 7,
            totalTokens: 127,
            cachedInputTokens: 100
          })
          const request = yield* server.received
          assert.strictEqual(request.method, "POST")
          assert.strictEqual(request.url, wire.path)
          assert.strictEqual(request.headers[wire.keyHeader], wire.keyPrefix + key)
          assert.notProperty(request.headers, "traceparent")
          assert.notProperty(request.headers, "b3")
          assert.notInclude(request.text, key)
          assertClean(parts)
        })
      )

      live("hands on two parallel calls with their arguments as written", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          const calls = [
            { id: "call_a", name: "read_file", args: '{"path":"a.txt","limit":"not a number"}' },
            { id: "call_b", name: "now", args: "" }
          ]
          yield* server.play(ModelServer.eventStream(wire.events({ text: ["Looking."], calls })))
          const parts = yield* generate()
          assert.deepStrictEqual(callsIn(parts), [
            { name: "read_file", params: { path: "a.txt", limit: "not a number" } },
            { name: "now", params: {} }
          ])
          assert.strictEqual(finishOf(parts).reason, "tool-calls")
        })
      )

      live("keeps what the provider needs to see again, and sends it back on the next turn", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          const calls = [{ id: "call_a", name: "read_file", args: '{"path":"a.txt"}' }]
          yield* server.play(ModelServer.eventStream(wire.events({ thinking: "Hm.", text: ["Looking."], calls })))
          yield* server.play(ModelServer.eventStream(wire.events({ text: ["It says hi."] })))
          const first = yield* generate()
          yield* server.received
          const second = yield* generate(history(ask, first, "hi\nthere"))
          assert.strictEqual(textIn(second), "It says hi.")
          const id = first.find((part) => part.type === "tool-call")?.id
          assert.deepStrictEqual(sentHistory(wire, ModelServer.json(yield* server.received)), expectedHistory(wire, id))
        })
      )

      live("offers tools with the schema that they declare", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          yield* server.play(ModelServer.eventStream(wire.events({ text: ["ok"] })))
          yield* generate()
          assert.deepStrictEqual(ModelServer.json(yield* server.received).tools, expectedTools(wire))
        })
      )

      live("fails as unauthorized, with what to do and without the key, when the server echoes it", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          yield* server.play((request) =>
            ModelServer.jsonError(
              401,
              wire.error(
                `bad key: ${request.headers[wire.keyHeader]} in ${JSON.stringify(request.headers)}`,
                "authentication_error"
              )
            )
          )
          const error = yield* failureOf(generate())
          assert.deepInclude(error, { _tag: "Unauthorized", status: 401, model: `${wire.provider}/${wire.model}` })
          assert.include(error.message, "API_KEY")
          assert.include(error.message, "bad key: ")
        })
      )

      live("fails as rate limited with the time to wait", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          yield* server.play(
            ModelServer.jsonError(429, wire.error("slow down", "rate_limit_error"), { "retry-after": "7" }),
            ModelServer.jsonError(429, wire.error("slow down", "rate_limit_error"), {
              "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
              date: "Wed, 21 Oct 2026 07:28:00 GMT"
            })
          )
          const error = yield* failureOf(generate())
          assert.deepInclude(error, { _tag: "RateLimited", status: 429, retryAfter: 7000 })
          assert.isTrue(Model.isTransient(error))
          assert.deepInclude(yield* failureOf(generate()), { _tag: "RateLimited", retryAfter: 30_000 })
        })
      )

      live("fails as overloaded on 500, 503 and 529", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          for (const status of [500, 503, 529]) {
            yield* server.play(ModelServer.jsonError(status, wire.error("come back later", "overloaded_error")))
            const error = yield* failureOf(generate())
            assert.deepInclude(error, { _tag: "Overloaded", status })
            assert.include(error.message, "come back later")
          }
        })
      )

      live("fails as too long where the provider says so in its words", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          yield* server.play(ModelServer.jsonError(wire.tooLong.status, wire.tooLong.body))
          assert.deepInclude(yield* failureOf(generate()), { _tag: "ContextTooLong", status: 400 })
        })
      )

      live("fails as refused on other client errors, whatever the body is", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          yield* server.play(
            ModelServer.jsonError(404, wire.error("no such model", "not_found_error")),
            { status: 400, headers: { "content-type": "text/html" }, body: `<html>${key}</html>` },
            (request) => ModelServer.jsonError(400, `{ this is no JSON ${request.headers[wire.keyHeader]}`),
            ModelServer.jsonError(422, { unrelated: key }),
            { status: 402 }
          )
          const first = yield* failureOf(generate())
          assert.deepInclude(first, { _tag: "Refused", status: 404 })
          assert.include(first.message, "no such model")
          for (const status of [400, 400, 422, 402]) {
            const error = yield* failureOf(generate())
            assert.deepInclude(error, { _tag: "Refused", status })
            assert.notInclude(error.message, "<html>")
          }
        })
      )

      live("fails as a network error when the connection is cut, after what had come", () =>
        Effect.gen(function* () {
          const { model, server } = yield* setup(wire)
          const events = wire.events({ text: ["Hel", "lo"] })
          const upToText = events.slice(0, events.findIndex((event) => event.includes("Hel")) + 1)
          for (const then of ["cut", "end"] as const) {
            yield* server.play(ModelServer.eventStream(upToText, then))
            const seen: Array<Model.Part> = []
            const error = yield* failureOf(
              Stream.runForEach(model.stream({ ...asker, prompt: ask, tools }), (part) =>
                Effect.sync(() => seen.push(part))
              )
            )
            assert.deepInclude(error, { _tag: "Network" })
            assert.strictEqual(textIn(seen), "Hel")
          }
        })
      )

      live("fails at once when nobody listens, and says what to do", () =>
        Effect.gen(function* () {
          const { url } = yield* Effect.scoped(ModelServer.make)
          const registry = yield* ModelRegistry.make({
            keys: { [wire.provider]: Redacted.make(key) },
            baseUrls: { [wire.provider]: url }
          })
          const model = yield* registry.resolve(`${wire.provider}/${wire.model}`)
          const error = yield* failureOf(Stream.runDrain(model.stream({ ...asker, prompt: ask, tools })))
          assert.strictEqual(error._tag, "Unreachable")
          assert.isFalse(Model.isTransient(error))
          assert.include(error.message, `nothing listens there (${new URL(url).host}: ECONNREFUSED). Start the server`)
        })
      )

      live("never follows a redirect, and does not try again", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          const other = yield* ModelServer.make
          yield* other.play(ModelServer.eventStream(wire.events({ text: ["stolen"] })))
          for (const status of [301, 302, 303, 307, 308]) {
            yield* server.play({ status, headers: { location: `${other.url}/elsewhere?token=${key}` } })
            const error = yield* failureOf(generate())
            assert.deepInclude(error, { _tag: "Refused", status })
            assert.include(error.message, `(${status}: to ${new URL(other.url).host})`)
          }
          assert.strictEqual(other.count(), 0)
        })
      )

      live("fails when the stream is not JSON", () =>
        Effect.gen(function* () {
          const { generate, server } = yield* setup(wire)
          yield* server.play(ModelServer.eventStream(["data: {not json\n\n"]))
          assert.strictEqual((yield* failureOf(generate()))._tag, "BadOutput")
        })
      )

      live("closes the connection when it is interrupted", () =>
        Effect.gen(function* () {
          const { model, server } = yield* setup(wire)
          const events = wire.events({ text: ["Hel", "lo"] })
          const upToText = events.slice(0, events.findIndex((event) => event.includes("Hel")) + 1)
          yield* server.play(ModelServer.eventStream(upToText, "hang"), { then: "hang" })
          const started = yield* Deferred.make<void>()
          const fiber = yield* Effect.fork(
            Stream.runForEach(model.stream({ ...asker, prompt: ask, tools }), (part) =>
              part.type === "text-delta" ? Deferred.succeed(started, undefined) : Effect.void
            )
          )
          yield* Deferred.await(started)
          const streaming = yield* server.received
          yield* Fiber.interrupt(fiber)
          yield* streaming.closed
          // The same while the headers or the first event are awaited.
          const waiting = yield* Effect.fork(Stream.runDrain(model.stream({ ...asker, prompt: ask, tools })))
          const request = yield* server.received
          yield* Fiber.interrupt(waiting)
          yield* request.closed
        })
      )
    })
  }
}

// -----------------------------------------------------------------------------------------------------------------

/** What a session makes of a reply: parts with their metadata as options, and the results of calls. */
const history = (prompt: Prompt.Prompt, parts: ReadonlyArray<Model.Part>, result: unknown): Prompt.Prompt => {
  const content: Array<any> = []
  const results: Array<any> = []
  const blocks = new Map<string, any>()
  for (const part of parts) {
    const options: any = "metadata" in part && part.metadata !== undefined ? part.metadata : {}
    if (part.type === "text-start" || part.type === "reasoning-start") {
      const block = { type: part.type === "text-start" ? "text" : "reasoning", text: "", options }
      blocks.set(part.id, block)
      content.push(block)
    } else if (
      part.type === "text-delta" ||
      part.type === "reasoning-delta" ||
      part.type === "text-end" ||
      part.type === "reasoning-end"
    ) {
      const block = blocks.get(part.id)
      if ("delta" in part) block.text += part.delta
      block.options = { ...block.options, ...options }
    } else if (part.type === "tool-call") {
      content.push({
        type: "tool-call",
        id: part.id,
        name: part.name,
        params: part.params,
        providerExecuted: false,
        options
      })
      results.push({
        type: "tool-result",
        id: part.id,
        name: part.name,
        isFailure: false,
        result,
        providerExecuted: false
      })
    }
  }
  return Prompt.fromMessages([
    ...prompt.content,
    ...Prompt.make([
      { role: "assistant", content },
      { role: "tool", content: results }
    ]).content
  ])
}

const sentHistory = (wire: Wire, body: any): unknown => {
  switch (wire.provider) {
    case "anthropic":
      return { system: body.system, messages: body.messages }
    case "openai":
      return body.input
    case "google":
      return { system: body.systemInstruction, contents: body.contents }
    case "openai-compatible":
      return body.messages
  }
}

const expectedHistory = (wire: Wire, id: string | undefined): unknown => {
  switch (wire.provider) {
    case "anthropic":
      return {
        system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
        messages: [
          { role: "user", content: [{ type: "text", text: "Hello?", cache_control: { type: "ephemeral" } }] },
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "Hm.", signature: "c2lnbmF0dXJl" },
              { type: "text", text: "Looking." },
              { type: "tool_use", id: "call_a", name: "read_file", input: { path: "a.txt" } }
            ]
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "call_a",
                content: "hi\nthere",
                is_error: false,
                cache_control: { type: "ephemeral" }
              }
            ]
          }
        ]
      }
    case "openai":
      return [
        { role: "system", content: "Be brief." },
        { role: "user", content: [{ type: "input_text", text: "Hello?" }] },
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "ZW5j" },
        { role: "assistant", content: [{ type: "output_text", text: "Looking." }], id: "msg_1" },
        { type: "function_call", id: "fc_call_a", call_id: "call_a", name: "read_file", arguments: '{"path":"a.txt"}' },
        { type: "function_call_output", call_id: "call_a", output: "hi\nthere" }
      ]
    case "google":
      return {
        system: { parts: [{ text: "Be brief." }] },
        contents: [
          { role: "user", parts: [{ text: "Hello?" }] },
          {
            role: "model",
            parts: [
              { text: "Hm.", thought: true },
              { text: "Looking." },
              { functionCall: { name: "read_file", args: { path: "a.txt" } }, thoughtSignature: "c2ln" }
            ]
          },
          { role: "user", parts: [{ functionResponse: { id, name: "read_file", response: { result: "hi\nthere" } } }] }
        ]
      }
    case "openai-compatible":
      return [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello?" },
        {
          role: "assistant",
          content: "Looking.",
          tool_calls: [
            { id: "call_a", type: "function", function: { name: "read_file", arguments: '{"path":"a.txt"}' } }
          ]
        },
        { role: "tool", tool_call_id: "call_a", content: "hi\nthere" }
      ]
  }
}

const expectedTools = (wire: Wire): unknown => {
  const declared = tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    schema: Tool.getJsonSchema(tool as never)
  }))
  switch (wire.provider) {
    case "anthropic":
      return declared.map(({ description, name, schema }) => ({ name, description, input_schema: schema }))
    case "openai":
      return declared.map(({ description, name, schema }) => ({
        type: "function",
        name,
        description,
        parameters: schema,
        strict: false
      }))
    case "google":
      return [
        {
          functionDeclarations: [
            {
              name: "read_file",
              description: "Reads a file.",
              parameters: {
                type: "OBJECT",
                properties: {
                  path: { type: "STRING" },
                  limit: { type: "INTEGER", title: "int", description: "an integer" }
                },
                required: ["path"]
              }
            },
            {
              name: "greet",
              description: "Greets.",
              parameters: {
                type: "OBJECT",
                properties: {
                  person: { type: "OBJECT", properties: { name: { type: "STRING" } }, required: ["name"] }
                },
                required: ["person"]
              }
            },
            { name: "now", description: "Tells the time." }
          ]
        }
      ]
    case "openai-compatible":
      return declared.map(({ description, name, schema }) => ({
        type: "function",
        function: { name, description, parameters: schema }
      }))
  }
}
