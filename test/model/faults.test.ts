/** Bodies that are no answer, answers that leave out what may be left out, and answers that hold what is new. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { ReadableStreamDefaultController } from "node:stream/web"
import * as Model from "../../src/model/Model.js"
import * as ModelRegistry from "../../src/model/ModelRegistry.js"
import { ask, callsIn, collect, failureOf, finishOf, key, asker, textIn, tools } from "../kit/ModelSample.js"
import * as ModelServer from "../kit/ModelServer.js"
import type { Wire } from "../kit/Wire.js"
import * as Wires from "../kit/Wire.js"

const modelOf = (wire: Wire) =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry.make({
      keys: { [wire.provider]: Redacted.make(key) },
      baseUrls: { [wire.provider]: `http://localhost:1${wire.basePath}` }
    })
    return yield* registry.resolve(`${wire.provider}/${wire.model}`)
  }).pipe(Effect.provide(FetchHttpClient.layer))

/** What a server answers with, with no network in between. */
const answering = (response: () => Response) =>
  Effect.provideService(FetchHttpClient.Fetch, () => Promise.resolve(response()))

const bodyOf =
  (body: string | Uint8Array | null, contentType?: string, status = 200) =>
  () =>
    new Response(body as never, { status, headers: contentType === undefined ? {} : { "content-type": contentType } })

const stream = "text/event-stream"

const reply = {
  thinking: "Hm.",
  text: ["Look", "ing."],
  calls: [
    { id: "call_a", name: "read_file", args: '{"path":"a.txt"}' },
    { id: "call_b", name: "now", args: "{}" }
  ]
}

const expected = [
  { name: "read_file", params: { path: "a.txt" } },
  { name: "now", params: {} }
]

/** Every object in a value, with one field of it changed. */
const everywhere = (value: unknown, change: (fields: Record<string, unknown>) => Record<string, unknown>): unknown =>
  Array.isArray(value)
    ? value.map((one) => everywhere(one, change))
    : typeof value === "object" && value !== null
      ? Object.fromEntries(
          Object.entries(change({ ...value })).map(([name, member]) => [name, everywhere(member, change)])
        )
      : value

/** Changes the data of events; arguments that are objects are the model's own and stay. */
const rewritten = (
  events: ReadonlyArray<string>,
  change: (fields: Record<string, unknown>) => Record<string, unknown>
): string =>
  events
    .map((event) => {
      const data = event.slice(event.indexOf("data: ") + "data: ".length).trim()
      return data === "[DONE]" ? event : `data: ${JSON.stringify(everywhere(JSON.parse(data), change))}\n\n`
    })
    .join("")

const without =
  (...names: ReadonlyArray<string>) =>
  (fields: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

/** What the formats' documents call optional, and what servers that imitate them are known to leave out. */
const optional: Readonly<Record<Wire["provider"], ReadonlyArray<string>>> = {
  anthropic: ["index", "usage", "model", "role", "stop_sequence", "stop_reason", "signature"],
  openai: [
    "sequence_number",
    "item_id",
    "output_index",
    "content_index",
    "summary_index",
    "created_at",
    "model",
    "usage",
    "status",
    "object",
    "annotations",
    "encrypted_content"
  ],
  google: ["index", "role", "modelVersion", "responseId", "usageMetadata", "thoughtSignature"],
  "openai-compatible": ["index", "object", "created", "model", "usage", "role", "type"]
}

const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`

for (const wire of Wires.wires) {
  describe(wire.provider, () => {
    const nonsense: ReadonlyArray<readonly [string, () => Response]> = [
      ["nothing", bodyOf("", stream)],
      ["no body", bodyOf(null, undefined, 204)],
      ["blanks", bodyOf(" \n\n ", "application/json")],
      ["a web page", bodyOf("<!doctype html><p>Hi", "text/html; charset=utf-8")],
      ["a web page that nobody calls one", bodyOf("\uFEFF\n  <html><body>Sign in</body></html>")],
      ["a web page that is called a stream", bodyOf("<html></html>", stream)],
      ["words", bodyOf("OK", "text/plain")],
      ["an empty object", bodyOf("{}", "application/json")],
      ["an empty list", bodyOf("[]", "application/json")],
      ["null", bodyOf("null", "application/json")],
      ["half an object", bodyOf('{"id": "x", "choi', "application/json")],
      ["an object of another kind", bodyOf('{"status":"ok","version":"1.2"}', "application/json")],
      ["something too deep", bodyOf(deep, "application/json")],
      ["events of nothing", bodyOf('data: null\n\ndata: 5\n\ndata: []\n\ndata: "x"\n\n', stream)],
      ["an event that is too deep", bodyOf(`data: ${deep}\n\n`, stream)],
      ["comments", bodyOf(": ping\n\n: ping\n\n", stream)],
      ["half an event", bodyOf('data: {"typ', stream)],
      ["bytes", bodyOf(new Uint8Array([0, 255, 254, 1, 2, 3, 200, 10, 10]), "application/octet-stream")],
      ["an error in words", bodyOf("event: error\ndata: upstream is gone\n\n", stream)],
      ["new events only", bodyOf('data: {"type":"brand.new","delta":"x"}\n\n'.repeat(3), stream)]
    ]
    for (const [name, response] of nonsense) {
      it.effect(`${name} instead of an answer is a failure in words`, () =>
        Effect.gen(function* () {
          const error = yield* failureOf(collect(yield* modelOf(wire)))
          assert.include(["BadOutput", "Network"], error._tag)
          assert.match(error.message, new RegExp(`^${wire.provider}/${wire.model}: .+\\. [A-Z]`))
          assert.isBelow(error.message.length, 700)
          if (name.includes("web page")) assert.include(error.message, "base URL")
          if (name === "an error in words") assert.include(error.message, "upstream is gone")
          if (name === "new events only") {
            assert.include(
              error.message,
              "the provider sent 3 parts that Assent does not understand: brand.new (3 times)"
            )
          }
        }).pipe(answering(response))
      )
    }

    for (const name of optional[wire.provider]) {
      it.effect(`${name} may be left out everywhere`, () =>
        Effect.gen(function* () {
          const parts = yield* collect(yield* modelOf(wire))
          assert.strictEqual(textIn(parts), "Looking.")
          assert.deepStrictEqual(callsIn(parts), expected)
          assert.strictEqual(finishOf(parts).reason, "tool-calls")
        }).pipe(answering(bodyOf(rewritten(wire.events(reply), without(name)), stream)))
      )
    }

    it.effect("all of them may be left out at once, or be null", () =>
      Effect.gen(function* () {
        const names = optional[wire.provider]
        const nulled = (fields: Record<string, unknown>) =>
          Object.fromEntries(Object.entries(fields).map(([name, one]) => [name, names.includes(name) ? null : one]))
        for (const change of [without(...names), nulled]) {
          const body = rewritten(wire.events(reply), change)
          const parts = yield* Effect.flatMap(modelOf(wire), collect).pipe(answering(bodyOf(body, stream)))
          assert.strictEqual(textIn(parts), "Looking.")
          assert.deepStrictEqual(callsIn(parts), expected)
        }
      })
    )

    it.effect("calls without ids get ids, each its own", () =>
      Effect.gen(function* () {
        const same = { ...reply, calls: reply.calls.map((call) => ({ ...call, id: "same" })) }
        const noIds = rewritten(wire.events(reply), (fields) => {
          const { call_id: _, id: __, ...rest } = fields
          return "name" in fields || fields.type === "tool_use" || "function" in fields ? rest : fields
        })
        // In this format the id is the call: one that comes again is told, and not made.
        const twice = wire.provider === "openai" ? [] : [wire.events(same).join("")]
        for (const body of [noIds, ...twice]) {
          const parts = yield* Effect.flatMap(modelOf(wire), collect).pipe(answering(bodyOf(body, stream)))
          const ids = parts.flatMap((part) => (part.type === "tool-call" ? [part.id] : []))
          assert.strictEqual(new Set(ids).size, 2)
          assert.deepStrictEqual(callsIn(parts), expected)
        }
      })
    )

    if (wire.provider === "openai") {
      it.effect("a call with the id of another is told, and not made", () =>
        Effect.gen(function* () {
          const same = { ...reply, calls: reply.calls.map((call) => ({ ...call, id: "same" })) }
          const parts = yield* collect(yield* modelOf(wire)).pipe(answering(bodyOf(wire.events(same).join(""), stream)))
          assert.deepStrictEqual(callsIn(parts), expected.slice(0, 1))
          assert.include(Model.remarkOf(finishOf(parts).metadata), "an id used before")
        })
      )
    }

    it.effect("what is new is told, and the rest is taken", () =>
      Effect.gen(function* () {
        const events = [...wire.events({ text: ["Hel", "lo"] })]
        events.splice(2, 0, `data: ${JSON.stringify(aNewPart[wire.provider])}\n\n`)
        const body = bodyOf(events.join(""), stream)
        const parts = yield* Effect.flatMap(modelOf(wire), collect).pipe(answering(body))
        assert.strictEqual(textIn(parts), "Hello")
        const told = Model.remarkOf(finishOf(parts).metadata)
        assert.match(told ?? "", /^The provider sent \d parts? that Assent does not understand: .*hologram/)
      })
    )

    it.effect("a reason to finish that is new ends the answer, with its calls", () =>
      Effect.gen(function* () {
        const renamed = (fields: Record<string, unknown>) => ({
          ...fields,
          ...("stop_reason" in fields ? { stop_reason: "brand_new" } : {}),
          ...("finishReason" in fields ? { finishReason: "FUNCTION_CALL" } : {}),
          ...(typeof fields.finish_reason === "string" ? { finish_reason: "brand_new" } : {}),
          ...("status" in fields ? { status: "brand_new" } : {})
        })
        const body = bodyOf(rewritten(wire.events(reply), renamed), stream)
        const parts = yield* Effect.flatMap(modelOf(wire), collect).pipe(answering(body))
        assert.deepStrictEqual(callsIn(parts), expected)
        assert.strictEqual(finishOf(parts).reason, "tool-calls")
      })
    )

    it.effect("a connection that breaks once the reason is known breaks nothing", () =>
      Effect.gen(function* () {
        const events = wire.events({ text: ["Hel", "lo"] })
        const last = wire.provider === "openai" ? events.length : events.findIndex((event) => reasonIn.test(event)) + 1
        const broken = () => {
          const body = new ReadableStream({
            start: (controller: ReadableStreamDefaultController) => {
              controller.enqueue(new TextEncoder().encode(events.slice(0, last).join("")))
              setImmediate(() => controller.error(Object.assign(new Error("gone"), { code: "ECONNRESET" })))
            }
          } as never)
          return new Response(body, { headers: { "content-type": stream } })
        }
        const parts = yield* Effect.flatMap(modelOf(wire), collect).pipe(answering(broken))
        assert.strictEqual(textIn(parts), "Hello")
        assert.strictEqual(finishOf(parts).reason, "stop")
      })
    )

    it.effect("arguments that are too deep are no arguments, and cost one call", () =>
      Effect.gen(function* () {
        const args = `{"path":${"[".repeat(80)}${"]".repeat(80)}}`
        const calls = [{ id: "call_a", name: "read_file", args }, ...reply.calls.slice(1)]
        const body = bodyOf(wire.events({ calls }).join(""), stream)
        const parts = yield* Effect.flatMap(modelOf(wire), collect).pipe(answering(body))
        const [deep, other] = callsIn(parts)
        assert.strictEqual(typeof deep?.params, "string")
        assert.deepStrictEqual(other, { name: "now", params: {} })
      })
    )

    it.effect("calls that never end are stopped", () =>
      Effect.gen(function* () {
        const calls = Array.from({ length: 5000 }, (_, n) => ({ id: `c${n}`, name: "now", args: "{}" }))
        const body = bodyOf(wire.events({ calls }).join(""), stream)
        const error = yield* failureOf(collect(yield* modelOf(wire)).pipe(answering(body)))
        assert.strictEqual(error._tag, "BadOutput")
        assert.include(error.message, "4096 calls")
      })
    )

    it.scopedLive("a ping is a sign of life, though it says nothing", () =>
      Effect.gen(function* () {
        const pinging = () => {
          const start = (controller: ReadableStreamDefaultController) =>
            controller.enqueue(new TextEncoder().encode(": ping\n\n"))
          return new Response(new ReadableStream({ start } as never), { headers: { "content-type": stream } })
        }
        const model = yield* modelOf(wire)
        const pull = yield* Stream.toPull(model.stream({ ...asker, prompt: ask, tools })).pipe(answering(pinging))
        assert.strictEqual((yield* answering(pinging)(pull)).length, 0)
      })
    )

    it.scopedLive("words that never end are stopped by whoever reads, and the connection is closed", () =>
      Effect.gen(function* () {
        let cancelled = false
        const delta = wire.events({ text: ["Hel", "lo"] }).find((event) => event.includes("Hel"))
        const endless = () => {
          const body = new ReadableStream({
            pull: async (controller: ReadableStreamDefaultController) => {
              await new Promise(setImmediate)
              controller.enqueue(new TextEncoder().encode(delta))
            },
            cancel: () => {
              cancelled = true
            }
          } as never)
          return new Response(body, { headers: { "content-type": stream } })
        }
        const model = yield* modelOf(wire)
        yield* Stream.runDrain(Stream.take(model.stream({ ...asker, prompt: ask, tools }), 300)).pipe(
          answering(endless)
        )
        assert.isTrue(cancelled)
      })
    )
  })
}

const reasonIn = /"stop_reason":"|"finishReason":"|"finish_reason":"/

/** In each format something that is not in any of today's. */
const aNewPart: Readonly<Record<Wire["provider"], unknown>> = {
  anthropic: { type: "hologram_start", index: 0, hologram: "…" },
  openai: { type: "response.hologram.delta", delta: "…" },
  google: { candidates: [{ content: { role: "model", parts: [{ hologram: { data: "…" } }] }, index: 0 }] },
  "openai-compatible": Wires.chatChunk({ content: [{ type: "hologram", data: "…" }] })
}

describe("answers of servers that do not stream", () => {
  const whole: Readonly<Record<Wire["provider"], unknown>> = {
    anthropic: {
      type: "message",
      id: "msg_1",
      role: "assistant",
      model: "m",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "c2ln" },
        { type: "text", text: "Looking." },
        { type: "tool_use", id: "a", name: "read_file", input: { path: "a.txt" } },
        { type: "tool_use", id: "b", name: "now", input: {} }
      ],
      stop_reason: "tool_use",
      usage: { input_tokens: 12, output_tokens: 3 }
    },
    openai: {
      object: "response",
      id: "resp_1",
      status: "completed",
      error: null,
      output: [
        { type: "reasoning", id: "rs", summary: [{ type: "summary_text", text: "Hm." }] },
        { type: "message", id: "m", role: "assistant", content: [{ type: "output_text", text: "Looking." }] },
        { type: "function_call", id: "f1", call_id: "a", name: "read_file", arguments: '{"path":"a.txt"}' },
        { type: "function_call", id: "f2", call_id: "b", name: "now", arguments: "{}" }
      ],
      usage: { input_tokens: 12, output_tokens: 3 }
    },
    google: [
      { candidates: [{ content: { parts: [{ text: "Hm.", thought: true }, { text: "Look" }] } }] },
      {
        candidates: [
          {
            content: {
              parts: [
                { text: "ing." },
                { functionCall: { name: "read_file", args: { path: "a.txt" } } },
                { functionCall: { name: "now" } }
              ]
            },
            finishReason: "STOP"
          }
        ],
        usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 3 }
      }
    ],
    "openai-compatible": {
      choices: [
        {
          message: {
            content: "Looking.",
            reasoning_content: "Hm.",
            tool_calls: [
              { id: "a", function: { name: "read_file", arguments: '{"path":"a.txt"}' } },
              { id: "b", function: { name: "now", arguments: "{}" } }
            ]
          },
          finish_reason: "stop"
        }
      ],
      usage: { prompt_tokens: 12, completion_tokens: 3 }
    }
  }
  for (const wire of Wires.wires) {
    for (const contentType of ["application/json", stream, undefined]) {
      it.effect(`are read: ${wire.provider}, called ${contentType ?? "nothing"}`, () =>
        Effect.gen(function* () {
          const parts = yield* collect(yield* modelOf(wire))
          assert.strictEqual(textIn(parts), "Looking.")
          assert.deepStrictEqual(callsIn(parts), expected)
          assert.deepInclude(finishOf(parts), { reason: "tool-calls" })
          assert.deepInclude(finishOf(parts).usage, { inputTokens: 12, outputTokens: 3, totalTokens: 15 })
        }).pipe(answering(bodyOf(JSON.stringify(whole[wire.provider], null, 2), contentType)))
      )
    }
  }
})

describe("a connection that cannot be made", () => {
  const failing = (cause: unknown) =>
    Effect.provideService(FetchHttpClient.Fetch, () => Promise.reject(new TypeError("fetch failed", { cause })))
  const coded = (code: string) => Object.assign(new Error(code), { code })
  for (const [cause, tag, what] of [
    [coded("ECONNREFUSED"), "Unreachable", "nothing listens there (localhost:1: ECONNREFUSED)"],
    [coded("ENOTFOUND"), "Unreachable", "there is no such host (localhost:1: ENOTFOUND)"],
    [coded("CERT_HAS_EXPIRED"), "Unreachable", "no secure connection"],
    [coded("ERR_TLS_CERT_ALTNAME_INVALID"), "Unreachable", "no secure connection"],
    [coded("DEPTH_ZERO_SELF_SIGNED_CERT"), "Unreachable", "no secure connection"],
    [coded("UNABLE_TO_VERIFY_LEAF_SIGNATURE"), "Unreachable", "no secure connection"],
    [coded("ERR_SSL_WRONG_VERSION_NUMBER"), "Unreachable", "no secure connection"],
    [coded("HPE_INVALID_CONSTANT"), "Unreachable", "does not speak HTTP"],
    [new Error("bad port"), "Unreachable", "not for web servers"],
    [coded("EAI_AGAIN"), "Network", "the connection failed"],
    [coded("ECONNRESET"), "Network", "the connection failed"],
    [coded("ETIMEDOUT"), "Network", "the connection failed"],
    [coded("UND_ERR_CONNECT_TIMEOUT"), "Network", "the connection failed"]
  ] as const) {
    it.effect(`${cause.message} is ${tag}`, () =>
      Effect.gen(function* () {
        const error = yield* failureOf(collect(yield* modelOf(Wires.chat)))
        assert.strictEqual(error._tag, tag)
        assert.strictEqual(Model.isTransient(error), tag === "Network")
        assert.include(error.message, what)
        assert.match(error.message, /(Check|Start) the /)
      }).pipe(failing(cause))
    )
  }
})

it.scopedLive("a line that never ends is stopped", () =>
  Effect.gen(function* () {
    const server = yield* ModelServer.make
    const registry = yield* ModelRegistry.make({ baseUrls: { ollama: `${server.url}/v1` } })
    const model = yield* registry.resolve("ollama/m")
    const piece = "x".repeat(1024 * 1024)
    for (const start of ["data: ", "", "{", ": "]) {
      yield* server.play(ModelServer.eventStream([start, ...Array.from({ length: 17 }, () => piece)], "hang"))
      assert.strictEqual((yield* failureOf(collect(model)))._tag, "BadOutput")
    }
  }).pipe(Effect.provide(FetchHttpClient.layer))
)
