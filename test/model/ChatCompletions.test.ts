/** What servers of the chat completions protocol do differently from each other. */
import * as Prompt from "@effect/ai/Prompt"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Id from "../../src/core/Id.js"
import * as ChatCompletions from "../../src/model/ChatCompletions.js"
import * as Model from "../../src/model/Model.js"
import { ask, callsIn, collect, failureOf, finishOf, key, asker, textIn, tools } from "../kit/ModelSample.js"
import * as ModelServer from "../kit/ModelServer.js"
import { chatChunk } from "../kit/Wire.js"

const setup = (extra: Partial<ChatCompletions.Options> = {}) =>
  Effect.gen(function* () {
    const server = yield* ModelServer.make
    const make = ChatCompletions.make({
      id: "local/m",
      model: "m",
      baseUrl: `${server.url}/v1`,
      apiKey: Redacted.make(key),
      ...extra
    })
    return { model: yield* Effect.orDie(make), server }
  })

const live = (name: string, test: () => Effect.Effect<void, unknown, any>) =>
  it.scopedLive(name, () =>
    (test() as Effect.Effect<void, unknown, never>).pipe(
      Effect.provide(FetchHttpClient.layer),
      Effect.provideService(Id.IdGenerator, Id.sequence())
    )
  )

/** The reply to chunks, ended as servers do. */
const replyTo = (chunks: ReadonlyArray<unknown>, ends: ReadonlyArray<unknown> = ["[DONE]"]) =>
  Effect.gen(function* () {
    const { model, server } = yield* setup()
    yield* server.play(ModelServer.eventStream(ModelServer.sse([...chunks, ...ends])))
    return yield* collect(model)
  })

const piece = (call: object) => chatChunk({ tool_calls: [call] })
const stop = chatChunk({}, {}, "tool_calls")

describe("calls", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<unknown>, ReadonlyArray<unknown>]> = [
    [
      "come in pieces, interleaved by index",
      [
        piece({ index: 0, id: "a", type: "function", function: { name: "read_file", arguments: "" } }),
        piece({ index: 1, id: "b", type: "function", function: { name: "now" } }),
        piece({ index: 0, function: { arguments: '{"path":' } }),
        piece({ index: 1, function: { arguments: "{}" } }),
        piece({ index: 0, function: { arguments: '"x"}' } })
      ],
      [
        { id: "a", name: "read_file", params: { path: "x" } },
        { id: "b", name: "now", params: {} }
      ]
    ],
    [
      "come whole, without ids",
      [
        chatChunk({
          tool_calls: [
            { index: 0, function: { name: "read_file", arguments: '{"path":"x"}' } },
            { index: 1, function: { name: "read_file", arguments: '{"path":"y"}' } }
          ]
        })
      ],
      [
        { id: "call_1", name: "read_file", params: { path: "x" } },
        { id: "call_2", name: "read_file", params: { path: "y" } }
      ]
    ],
    [
      "come without an index, with or without an id",
      [
        piece({ id: "a", function: { name: "read_file", arguments: '{"path"' } }),
        piece({ id: "a", function: { arguments: ':"x"}' } }),
        piece({ function: { name: "now", arguments: "" } }),
        piece({ function: { name: "read_file", arguments: '{"path":' } }),
        piece({ function: { arguments: '"y"}' } })
      ],
      [
        { id: "a", name: "read_file", params: { path: "x" } },
        { id: "call_1", name: "now", params: {} },
        { id: "call_2", name: "read_file", params: { path: "y" } }
      ]
    ],
    [
      "come all with the same index",
      [
        piece({ index: 0, id: "a", function: { name: "read_file", arguments: '{"path":"x"}' } }),
        piece({ index: 0, id: "b", function: { name: "read_file", arguments: '{"path":"y"}' } })
      ],
      [
        { id: "a", name: "read_file", params: { path: "x" } },
        { id: "b", name: "read_file", params: { path: "y" } }
      ]
    ],
    [
      "come with the name in every piece, or with empty ids after the first",
      [
        piece({ index: 0, id: "a", function: { name: "read_file", arguments: '{"path":' } }),
        piece({ index: 0, id: "", function: { name: "read_file", arguments: '"x"}' } })
      ],
      [{ id: "a", name: "read_file", params: { path: "x" } }]
    ],
    [
      "come with arguments as an object, as null, or as nothing",
      [
        piece({ index: 0, id: "a", function: { name: "read_file", arguments: { path: "x" } } }),
        piece({ index: 1, id: "b", function: { name: "now", arguments: null } }),
        piece({ index: 2, id: "c", function: { name: "now", arguments: "  " } })
      ],
      [
        { id: "a", name: "read_file", params: { path: "x" } },
        { id: "b", name: "now", params: {} },
        { id: "c", name: "now", params: {} }
      ]
    ],
    [
      "come with arguments that are not an object, not JSON, or a trap",
      [
        piece({ index: 0, id: "a", function: { name: "now", arguments: "[1]" } }),
        piece({ index: 1, id: "b", function: { name: "now", arguments: '{"path":' } }),
        piece({ index: 2, id: "c", function: { name: "now", arguments: '{"__proto__":{"admin":true}}' } })
      ],
      [
        { id: "a", name: "now", params: [1] },
        { id: "b", name: "now", params: '{"path":' },
        { id: "c", name: "now", params: '{"__proto__":{"admin":true}}' }
      ]
    ],
    [
      "come with the same id twice, which results could not be told apart by",
      [
        piece({ index: 0, id: "a", function: { name: "now", arguments: "{}" } }),
        piece({ index: 1, id: "a", function: { name: "now", arguments: "{}" } })
      ],
      [
        { id: "a", name: "now", params: {} },
        { id: "call_1", name: "now", params: {} }
      ]
    ]
  ]
  for (const [name, chunks, expected] of cases) {
    live(name, () =>
      Effect.gen(function* () {
        const parts = yield* replyTo([...chunks, stop])
        assert.deepStrictEqual(
          parts.flatMap((part) =>
            part.type === "tool-call" ? [{ id: part.id, name: part.name, params: part.params }] : []
          ),
          expected
        )
        assert.strictEqual(finishOf(parts).reason, "tool-calls")
        // Every call is announced, and its arguments end before it.
        for (const part of parts) {
          if (part.type !== "tool-call") continue
          const types = parts.flatMap((other) => ("id" in other && other.id === part.id ? [other.type] : []))
          assert.deepStrictEqual(
            types.filter((type) => type !== "tool-params-delta"),
            ["tool-params-start", "tool-params-end", "tool-call"]
          )
        }
      })
    )
  }

  live("without a name cannot be used", () =>
    Effect.gen(function* () {
      const error = yield* failureOf(replyTo([piece({ index: 0, id: "a", function: { arguments: "{}" } }), stop]))
      assert.strictEqual(error._tag, "BadOutput")
    })
  )
})

describe("replies", () => {
  live("keep text and reasoning apart, in order", () =>
    Effect.gen(function* () {
      const parts = yield* replyTo([
        chatChunk({ role: "assistant", reasoning: "Hm" }),
        chatChunk({ reasoning: ".", content: "" }),
        chatChunk({ content: "Yes" }),
        chatChunk({ content: [{ type: "text", text: "!" }] }),
        chatChunk({ reasoning_content: "Or?", reasoning: "Or?" }),
        chatChunk({ refusal: "No." }),
        chatChunk({}, {}, "stop")
      ])
      assert.deepStrictEqual(
        parts.flatMap((part) =>
          part.type === "finish" ? [] : [[part.type, "delta" in part ? part.delta : "id" in part ? part.id : ""]]
        ),
        [
          ["response-metadata", "chatcmpl-1"],
          ["reasoning-start", "0"],
          ["reasoning-delta", "Hm"],
          ["reasoning-delta", "."],
          ["reasoning-end", "0"],
          ["text-start", "1"],
          ["text-delta", "Yes"],
          ["text-delta", "!"],
          ["text-end", "1"],
          ["reasoning-start", "2"],
          ["reasoning-delta", "Or?"],
          ["reasoning-end", "2"],
          ["text-start", "3"],
          ["text-delta", "No."],
          ["text-end", "3"]
        ]
      )
      const finish = finishOf(parts)
      assert.strictEqual(Model.remarkOf(finish.metadata), "The model refused to answer")
      const other = yield* replyTo([
        chatChunk({ content: "Yes.", refusal: null }),
        chatChunk({ refusal: "" }, {}, "stop")
      ])
      assert.isUndefined(Model.remarkOf(finishOf(other).metadata))
    })
  )

  live("finish for the reason the server gives", () =>
    Effect.gen(function* () {
      const call = piece({ index: 0, id: "a", function: { name: "now", arguments: "{}" } })
      for (const [given, chunks, reason] of [
        ["stop", [], "stop"],
        ["length", [], "length"],
        ["content_filter", [], "content-filter"],
        ["eos", [], "other"],
        ["stop", [call], "tool-calls"],
        ["function_call", [call], "tool-calls"],
        ["length", [call], "length"]
      ] as const) {
        const parts = yield* replyTo([...chunks, chatChunk({}, {}, given)])
        assert.strictEqual(finishOf(parts).reason, reason)
      }
      assert.strictEqual((yield* failureOf(replyTo([chatChunk({}, {}, "error")])))._tag, "BadOutput")
    })
  )

  live("take usage from wherever it comes, and do without", () =>
    Effect.gen(function* () {
      const usage = {
        prompt_tokens: 9,
        completion_tokens: 4,
        prompt_cache_hit_tokens: 3,
        completion_tokens_details: { reasoning_tokens: 2 }
      }
      const expected = { inputTokens: 9, outputTokens: 4, totalTokens: 13, reasoningTokens: 2, cachedInputTokens: 3 }
      const together = yield* replyTo([chatChunk({ content: "a" }), chatChunk({}, { usage }, "stop")])
      assert.deepStrictEqual(finishOf(together).usage, expected)
      const apart = yield* replyTo([
        chatChunk({}, { usage: null }, "stop"),
        chatChunk(undefined, { choices: null, usage })
      ])
      assert.deepStrictEqual(finishOf(apart).usage, expected)
      const none = yield* replyTo([chatChunk({}, {}, "stop")])
      assert.deepStrictEqual(finishOf(none).usage, {
        inputTokens: undefined,
        outputTokens: undefined,
        totalTokens: undefined
      })
    })
  )

  live("end by the mark, by the reason, or not at all", () =>
    Effect.gen(function* () {
      const text = chatChunk({ content: "a" })
      assert.strictEqual(finishOf(yield* replyTo([text], ["[DONE]"])).reason, "unknown")
      assert.strictEqual(finishOf(yield* replyTo([text, chatChunk({}, {}, "stop")], [])).reason, "stop")
      assert.strictEqual((yield* failureOf(replyTo([text], [])))._tag, "Network")
      assert.strictEqual((yield* failureOf(replyTo([], [])))._tag, "Network")
      assert.strictEqual((yield* failureOf(replyTo([], ["[DONE]"])))._tag, "BadOutput")
    })
  )

  live("are read however the bytes are cut, with comments and either line end", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup()
      const text = [
        ": keep-alive\r\n\r\n",
        ...ModelServer.sse([chatChunk({ content: "wörld 🌍" }), chatChunk({}, {}, "stop")])
      ]
        .join("")
        .replace(/(?<!\r)\n/g, "\r\n")
      const bytes = Array.from(Buffer.from(`${text}data: [DONE]`))
      yield* server.play({
        headers: { "content-type": "text/event-stream" },
        // Writes of one byte: Latin-1 keeps each byte what it is.
        body: bytes.map((byte) => Buffer.from([byte]) as never)
      })
      assert.strictEqual(textIn(yield* collect(model)), "wörld 🌍")
    })
  )

  live("come from servers that do not stream", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup()
      const message = {
        role: "assistant",
        content: "Ok.",
        tool_calls: [{ id: "a", type: "function", function: { name: "now", arguments: "{}" } }]
      }
      const body = {
        id: "x",
        model: "m",
        choices: [{ index: 0, message, finish_reason: "tool_calls" }],
        usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }
      }
      yield* server.play({ headers: { "content-type": "application/json" }, body: JSON.stringify(body, null, 2) })
      const parts = yield* collect(model)
      assert.strictEqual(textIn(parts), "Ok.")
      assert.deepStrictEqual(callsIn(parts), [{ name: "now", params: {} }])
      assert.strictEqual(finishOf(parts).usage.totalTokens, 3)
    })
  )
})

describe("failures", () => {
  live("reported in the middle of a stream keep what came before", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup()
      for (const [error, tag] of [
        [
          {
            error: {
              code: 502,
              message: `Provider returned error ${key}`,
              metadata: { raw: '{"error":{"message":"behind"}}' }
            }
          },
          "Overloaded"
        ],
        [{ error: { code: 429, message: "slow" } }, "RateLimited"],
        [{ error: "model runner has unexpectedly stopped" }, "BadOutput"],
        [
          { error: { message: "This model's maximum context length is 8192 tokens.", type: "BadRequestError" } },
          "ContextTooLong"
        ],
        [{ choices: "none" }, "BadOutput"],
        ["[1,2", "BadOutput"]
      ] as const) {
        const events = ModelServer.sse([chatChunk({ content: "Hel" }), error])
        yield* server.play(ModelServer.eventStream([events.join("")], "hang"))
        const seen: Array<Model.Part> = []
        const failure = yield* failureOf(
          Stream.runForEach(model.stream({ ...asker, prompt: ask, tools }), (part) =>
            Effect.sync(() => seen.push(part))
          )
        )
        assert.strictEqual(failure._tag, tag)
        assert.strictEqual(textIn(seen), "Hel")
        if (tag === "Overloaded") assert.include(failure.message, "behind")
        yield* (yield* server.received).closed
      }
    })
  )

  live("of other shapes keep their message", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup()
      for (const body of [
        { error: "model 'm' not found" },
        { object: "error", message: "model 'm' not found", type: "NotFoundError", code: 404 },
        { detail: "model 'm' not found" },
        "model 'm' not found"
      ]) {
        yield* server.play(ModelServer.jsonError(404, body))
        const failure = yield* failureOf(collect(model))
        assert.deepInclude(failure, { _tag: "Refused", status: 404 })
        assert.include(failure.message, "(404: model 'm' not found)")
      }
    })
  )

  live("name a web page for what it is", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup()
      yield* server.play({ headers: { "content-type": "text/html; charset=utf-8" }, body: "<html></html>" })
      const failure = yield* failureOf(collect(model))
      assert.strictEqual(failure._tag, "BadOutput")
      assert.include(failure.message, "base URL")
    })
  )

  live("name an event that is too large", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup()
      yield* server.play(
        ModelServer.eventStream(
          Array.from({ length: 12 }, () => `data: ${"x".repeat(1024 * 1024)}\n`),
          "hang"
        )
      )
      assert.strictEqual((yield* failureOf(collect(model)))._tag, "BadOutput")
    })
  )
})

describe("requests", () => {
  live("hold the model, the messages and the tools, and only the header holds the key", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup({ headers: { "X-Title": "Assent", "X-Api-Key": "second-secret" } })
      yield* server.play(ModelServer.jsonError(401, { error: { message: "no: second-secret" } }))
      const failure = yield* failureOf(collect(model, Prompt.make("hi"), []))
      assert.notInclude(failure.message, "second-secret")
      const request = yield* server.received
      assert.strictEqual(request.headers.authorization, `Bearer ${key}`)
      assert.strictEqual(request.headers["x-title"], "Assent")
      assert.deepStrictEqual(ModelServer.json(request), {
        model: "m",
        messages: [{ role: "user", content: "hi" }],
        stream: true,
        stream_options: { include_usage: true }
      })
      const rest = Object.entries(request.headers).filter(([name]) => name !== "authorization")
      assert.notInclude(JSON.stringify([rest, request.url, request.text]), key)
    })
  )

  live("carry images, documents and text files", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup()
      yield* server.play(ModelServer.eventStream(ModelServer.sse([chatChunk({}, {}, "stop"), "[DONE]"])))
      const bytes = new Uint8Array([1, 2, 3])
      const prompt = Prompt.make([
        {
          role: "user",
          content: [
            { type: "text", text: "Look:" },
            { type: "file", mediaType: "image/png", data: bytes },
            { type: "file", mediaType: "image/*", data: "AQID" },
            { type: "file", mediaType: "image/png", data: new URL("https://example.com/a.png") },
            { type: "file", mediaType: "text/plain", fileName: "a.txt", data: new TextEncoder().encode("wörld") },
            { type: "file", mediaType: "application/json", data: "e30=" },
            { type: "file", mediaType: "application/pdf", fileName: "a.pdf", data: bytes }
          ]
        }
      ])
      yield* collect(model, prompt)
      assert.deepStrictEqual(ModelServer.json(yield* server.received).messages[0].content, [
        { type: "text", text: "Look:" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AQID" } },
        { type: "image_url", image_url: { url: "data:image/jpeg;base64,AQID" } },
        { type: "image_url", image_url: { url: "https://example.com/a.png" } },
        { type: "text", text: "a.txt:\nwörld" },
        { type: "text", text: "{}" },
        { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AQID" } }
      ])
    })
  )

  live("that the protocol cannot carry are refused before anything is sent", () =>
    Effect.gen(function* () {
      const { model } = yield* setup({ baseUrl: "http://127.0.0.1:9" })
      const file = (mediaType: string, data: string | URL) =>
        Prompt.make([{ role: "user", content: [{ type: "file", mediaType, data }] }])
      const cyclic: Record<string, unknown> = {}
      cyclic.self = cyclic
      const call = { type: "tool-call" as const, id: "c1", name: "now", params: cyclic, providerExecuted: false }
      for (const [prompt, text] of [
        [Prompt.fromMessages([Prompt.assistantMessage({ content: [Prompt.toolCallPart(call)] })]), "JSON"],
        [file("video/mp4", "AQID"), "video/mp4"],
        [file("application/pdf", new URL("https://example.com/a.pdf")), "URL"],
        [file("text/plain", "%%%"), "base64"]
      ] as const) {
        const failure = yield* failureOf(collect(model, prompt))
        assert.strictEqual(failure._tag, "Refused")
        assert.include(failure.message, text)
      }
    })
  )

  live("send every result in a message of its own, and text that was not JSON inside an object", () =>
    Effect.gen(function* () {
      const { model, server } = yield* setup()
      yield* server.play(ModelServer.eventStream(ModelServer.sse([chatChunk({}, {}, "stop"), "[DONE]"])))
      const prompt = Prompt.make([
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b" }
          ]
        },
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "Hm." },
            { type: "tool-call", id: "c1", name: "now", params: {}, providerExecuted: false },
            { type: "tool-call", id: "c2", name: "read_file", params: '{"path":', providerExecuted: false }
          ]
        },
        {
          role: "tool",
          content: [
            {
              type: "tool-result",
              id: "c1",
              name: "now",
              isFailure: false,
              result: { at: 1 },
              providerExecuted: false
            },
            {
              type: "tool-result",
              id: "c2",
              name: "read_file",
              isFailure: true,
              result: "no JSON",
              providerExecuted: false
            }
          ]
        },
        { role: "assistant", content: [{ type: "reasoning", text: "Only thoughts." }] },
        { role: "assistant", content: [{ type: "text", text: "Done." }] }
      ])
      yield* collect(model, prompt)
      const call = (id: string, name: string, args: string) => ({
        id,
        type: "function",
        function: { name, arguments: args }
      })
      assert.deepStrictEqual(ModelServer.json(yield* server.received).messages, [
        { role: "user", content: "a\nb" },
        {
          role: "assistant",
          content: null,
          tool_calls: [call("c1", "now", "{}"), call("c2", "read_file", '{"arguments":"{\\"path\\":"}')]
        },
        { role: "tool", tool_call_id: "c1", content: '{"at":1}' },
        { role: "tool", tool_call_id: "c2", content: "no JSON" },
        { role: "assistant", content: "Done." }
      ])
    })
  )
})
