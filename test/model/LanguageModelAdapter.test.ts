import * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import * as Tool from "@effect/ai/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Redaction from "../../src/core/Redaction.js"
import * as LanguageModelAdapter from "../../src/model/LanguageModelAdapter.js"
import * as LenientTool from "../../src/model/LenientTool.js"
import * as Model from "../../src/model/Model.js"
import { ask, callsIn, collect, failureOf, finishOf, key, Now, asker, ReadFile, textIn } from "../kit/ModelSample.js"

type Encoded = Response.StreamPartEncoded

/** A language model that plays one stream per request and remembers what it was asked. */
const scripted = (...replies: ReadonlyArray<Stream.Stream<Encoded, AiError.AiError>>) =>
  Effect.gen(function* () {
    const asked: Array<LanguageModel.ProviderOptions> = []
    const languageModel = yield* LanguageModel.make({
      generateText: () => Effect.dieMessage("not used"),
      streamText: (request) =>
        Stream.suspend(() => {
          asked.push(request)
          return replies[asked.length - 1] ?? Stream.dieMessage("asked too often")
        })
    })
    const model = LanguageModelAdapter.fromService(languageModel, { id: "test/model", redactor: Redaction.make([key]) })
    return { asked, model }
  })

const text = (id: string, ...deltas: ReadonlyArray<string>): ReadonlyArray<Encoded> => [
  { type: "text-start", id },
  ...deltas.map((delta): Encoded => ({ type: "text-delta", id, delta })),
  { type: "text-end", id }
]
const call = (id: string, name: string, params: unknown): Encoded => ({ type: "tool-call", id, name, params })
const finish = (reason: Response.FinishReason): Encoded => ({
  type: "finish",
  reason,
  usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
})
/** Each part in a chunk of its own, as providers send them. */
const one = (...parts: ReadonlyArray<Encoded>) => Stream.rechunk(Stream.fromIterable(parts), 1)
/** All parts in one chunk. */
const all = (...parts: ReadonlyArray<Encoded>) => Stream.fromIterable(parts)

const lastText = (request: LanguageModel.ProviderOptions | undefined) => {
  const message = request?.prompt.content.at(-1)
  const part = message?.role === "user" ? message.content[0] : undefined
  return part?.type === "text" ? part.text : ""
}

describe("parts", () => {
  it.effect("are handed on encoded, with their metadata", () =>
    Effect.gen(function* () {
      const parts: ReadonlyArray<Encoded> = [
        { type: "response-metadata", id: "r1", modelId: "m", timestamp: "2026-01-02T03:04:05.000Z" },
        { type: "reasoning-start", id: "0", metadata: { vendor: { a: 1 } } },
        { type: "reasoning-delta", id: "0", delta: "Hm.", metadata: { vendor: { signature: "s" } } },
        { type: "reasoning-end", id: "0" },
        ...text("1", "a", "b"),
        { type: "source", sourceType: "url", id: "s1", url: "https://example.com/a", title: "A" },
        { type: "source", sourceType: "document", id: "s2", mediaType: "text/plain", title: "B" },
        { type: "file", mediaType: "image/png", data: "AQID" },
        { type: "tool-params-start", id: "c1", name: "read_file", providerExecuted: false },
        { type: "tool-params-delta", id: "c1", delta: '{"path":"x"}' },
        { type: "tool-params-end", id: "c1" },
        { ...call("c1", "read_file", { path: "x" }), providerExecuted: false, metadata: { vendor: { id: "fc" } } },
        finish("tool-calls")
      ] as ReadonlyArray<Encoded>
      const { model } = yield* scripted(one(...parts), all(...parts))
      assert.deepStrictEqual(yield* collect(model), parts)
      assert.deepStrictEqual(yield* collect(model), parts)
    })
  )

  it.effect("end with finish, whatever follows it", () =>
    Effect.gen(function* () {
      const { model } = yield* scripted(Stream.concat(one(...text("0", "a"), finish("stop")), Stream.never))
      assert.strictEqual(finishOf(yield* collect(model)).usage.inputTokens, 3)
    })
  )

  it.effect("keep arguments of the wrong type as the model wrote them", () =>
    Effect.gen(function* () {
      for (const params of [{ path: 7, extra: [1] }, "text", [1, 2], null, {}]) {
        const { model } = yield* scripted(one(call("c1", "read_file", params), finish("tool-calls")))
        assert.deepStrictEqual(callsIn(yield* collect(model)), [{ name: "read_file", params }])
      }
    })
  )

  it.effect("work without tools", () =>
    Effect.gen(function* () {
      const { asked, model } = yield* scripted(one(...text("0", "a"), finish("stop")))
      assert.strictEqual(textIn(yield* collect(model, ask, [])), "a")
      assert.deepStrictEqual(asked[0]?.tools, [])
    })
  )

  it.effect("come from the layer of any language model", () =>
    Effect.gen(function* () {
      const model = yield* Model.Model
      assert.strictEqual(model.id, "test/layer")
      assert.strictEqual(model.contextWindow, 1000)
      assert.strictEqual(textIn(yield* collect(model)), "a")
    }).pipe(
      Effect.provide(
        Model.layerLanguageModel({ id: "test/layer", contextWindow: 1000 }).pipe(
          Layer.provide(
            Layer.effect(
              LanguageModel.LanguageModel,
              LanguageModel.make({
                generateText: () => Effect.dieMessage("not used"),
                streamText: () => one(...text("0", "a"), finish("stop"))
              })
            )
          )
        )
      )
    )
  )
})

describe("a tool that does not exist", () => {
  it.effect("is corrected when the reply has shown nothing", () =>
    Effect.gen(function* () {
      const { asked, model } = yield* scripted(
        one(
          { type: "response-metadata", id: "r1" },
          { type: "tool-params-start", id: "c1", name: "rm_rf" },
          { type: "tool-params-delta", id: "c1", delta: "{}" },
          { type: "tool-params-end", id: "c1" },
          call("c1", "rm_rf", {}),
          finish("tool-calls")
        ),
        all(...text("0", "one"), call("c1", "rm_rf", {}), finish("tool-calls")),
        one(call("c2", "now", {}), finish("tool-calls"))
      )
      const parts = yield* collect(model)
      assert.deepStrictEqual(
        parts.map((part) => part.type),
        ["response-metadata", "tool-call", "finish"]
      )
      assert.strictEqual(asked.length, 3)
      assert.strictEqual(asked[0]?.prompt.content.length, 2)
      assert.strictEqual(asked[2]?.prompt.content.length, 4)
      assert.include(lastText(asked[1]), '"rm_rf"')
      assert.include(lastText(asked[1]), "read_file, greet, now")
    })
  )

  it.effect("is bad output after two corrections", () =>
    Effect.gen(function* () {
      const invented = one(call("c1", "rm_rf", {}), finish("tool-calls"))
      const { asked, model } = yield* scripted(invented, invented, invented, invented)
      const error = yield* failureOf(collect(model))
      assert.strictEqual(error._tag, "BadOutput")
      assert.include(error.message, "rm_rf")
      assert.strictEqual(asked.length, 3)
    })
  )

  it.effect("is handed on when the reply cannot be taken back, with what came in the same piece", () =>
    Effect.gen(function* () {
      const { asked, model } = yield* scripted(
        Stream.concat(
          one(...text("0", "Deleting."), call("c1", "now", {})),
          all(call("c2", "rm_rf", { path: "/" }), call("c3", "read_file", { path: "a" }), finish("tool-calls"))
        ),
        one(...text("0", "Deleting."), call("c2", "rm_rf", { path: "/" }), call("c3", "now", {}), finish("tool-calls"))
      )
      const whole = yield* collect(model)
      assert.deepStrictEqual(callsIn(whole), [
        { name: "now", params: {} },
        { name: "rm_rf", params: { path: "/" } },
        { name: "read_file", params: { path: "a" } }
      ])
      assert.strictEqual(finishOf(whole).usage.totalTokens, 5)
      const cut = yield* collect(model)
      assert.strictEqual(textIn(cut), "Deleting.")
      assert.deepStrictEqual(callsIn(cut), [{ name: "rm_rf", params: { path: "/" } }])
      assert.deepInclude(finishOf(cut), { reason: "tool-calls" })
      assert.strictEqual(asked.length, 2)
    })
  )

  it.effect("is found again under the name the provider gave it", () =>
    Effect.gen(function* () {
      const Bash = Tool.make("bash", { parameters: { command: Schema.String } })
      const { model } = yield* scripted(
        one(
          ...text("0", "Listing."),
          { type: "tool-call", id: "c1", name: "AnthropicBash", providerName: "bash", params: { command: "ls" } },
          finish("tool-calls")
        )
      )
      assert.deepStrictEqual(callsIn(yield* collect(model, ask, [Bash])), [{ name: "bash", params: { command: "ls" } }])
    })
  )
})

describe("arguments that are not JSON", () => {
  const notJson = new AiError.MalformedOutput({
    module: "SomeLanguageModel",
    method: "makeStreamResponse",
    description: "Failed to securely parse tool call parameters",
    cause: new SyntaxError("Unexpected end of JSON input")
  })
  const started = (delta: string): ReadonlyArray<Encoded> => [
    { type: "tool-params-start", id: "c1", name: "read_file", providerExecuted: false },
    { type: "tool-params-delta", id: "c1", delta }
  ]

  it.effect("become a call with the text as its arguments", () =>
    Effect.gen(function* () {
      const { model } = yield* scripted(
        Stream.concat(one(...text("0", "Ok."), call("c0", "now", {}), ...started('{"path": ')), Stream.fail(notJson)),
        Stream.concat(one(...started("")), Stream.fail(notJson))
      )
      const parts = yield* collect(model)
      assert.deepStrictEqual(callsIn(parts), [
        { name: "now", params: {} },
        { name: "read_file", params: '{"path": ' }
      ])
      assert.strictEqual(finishOf(parts).reason, "tool-calls")
      assert.deepStrictEqual(callsIn(yield* collect(model)), [{ name: "read_file", params: {} }])
    })
  )

  it.effect("fail the reply where no call is known", () =>
    Effect.gen(function* () {
      const { model } = yield* scripted(Stream.fail(notJson))
      assert.strictEqual((yield* failureOf(collect(model)))._tag, "BadOutput")
    })
  )

  it.effect("go back to the provider inside an object", () =>
    Effect.gen(function* () {
      const { asked, model } = yield* scripted(one(...text("0", "a"), finish("stop")))
      const prompt = Prompt.make([
        { role: "user", content: [{ type: "text", text: "Read." }] },
        {
          role: "assistant",
          content: [
            { type: "text", text: "Ok." },
            { type: "tool-call", id: "c1", name: "read_file", params: '{"path": ', providerExecuted: false },
            { type: "tool-call", id: "c2", name: "now", params: {}, providerExecuted: false }
          ]
        }
      ])
      yield* collect(model, prompt)
      const sent = asked[0]?.prompt.content[1]
      assert.deepStrictEqual(
        sent?.role === "assistant"
          ? sent.content.flatMap((part) => (part.type === "tool-call" ? [part.params] : []))
          : [],
        [{ arguments: '{"path": ' }, {}]
      )
    })
  )
})

describe("failures", () => {
  it.effect("of the wrapped model never carry its error", () =>
    Effect.gen(function* () {
      const request = {
        method: "POST" as const,
        url: `http://localhost:1/v1?key=${key}`,
        urlParams: [],
        hash: undefined,
        headers: { authorization: `Bearer ${key}` }
      }
      const make = <A>(error: A): A => error
      const errors: ReadonlyArray<readonly [AiError.AiError, Partial<Model.ModelError>]> = [
        [
          new AiError.HttpRequestError(
            { module: "M", method: "m", reason: "Transport", request, description: key } as never,
            { disableValidation: true }
          ),
          { _tag: "Network" }
        ],
        [
          new AiError.HttpRequestError({ module: "M", method: "m", reason: "InvalidUrl", request } as never, {
            disableValidation: true
          }),
          { _tag: "Refused" }
        ],
        [
          new AiError.HttpResponseError(
            make({
              module: "M",
              method: "m",
              reason: "StatusCode",
              request,
              response: { status: 529, headers: { "retry-after-ms": "1500", "x-echo": key } },
              body: JSON.stringify({ error: { type: "overloaded_error", message: `overloaded ${key}` } })
            }) as never,
            { disableValidation: true }
          ),
          { _tag: "Overloaded", status: 529, retryAfter: 1500 }
        ],
        [
          new AiError.HttpResponseError(
            { module: "M", method: "m", reason: "Decode", request, response: { status: 200, headers: {} } } as never,
            { disableValidation: true }
          ),
          { _tag: "Network" }
        ],
        [new AiError.MalformedInput({ module: "M", method: "m", description: `no ${key}` }), { _tag: "Refused" }],
        [new AiError.MalformedOutput({ module: "M", method: "m", description: `no ${key}` }), { _tag: "BadOutput" }],
        [
          new AiError.UnknownError({ module: "M", method: "m", description: key, cause: new Error(key) }),
          { _tag: "BadOutput" }
        ]
      ]
      for (const [error, expected] of errors) {
        const { model } = yield* scripted(Stream.fail(error))
        assert.deepInclude(yield* failureOf(collect(model)), expected)
      }
    })
  )

  it.effect("are made of error parts, after what came before them", () =>
    Effect.gen(function* () {
      const reported = [
        [{ type: "overloaded_error", message: "Overloaded" }, "Overloaded"],
        [{ type: "rate_limit_error", message: "slow" }, "RateLimited"],
        [{ type: "authentication_error", message: `bad ${key}` }, "Unauthorized"],
        [{ type: "invalid_request_error", message: "prompt is too long" }, "ContextTooLong"],
        [{ type: "invalid_request_error", message: "bad" }, "Refused"],
        [{ code: "server_error", message: "x" }, "Overloaded"],
        [{ code: "insufficient_quota", message: "x" }, "Refused"],
        [{ error: { code: 502, message: "x" } }, "Overloaded"],
        ["something", "BadOutput"],
        [undefined, "BadOutput"]
      ] as const
      for (const [error, tag] of reported) {
        const { model } = yield* scripted(
          all({ type: "text-start", id: "0" }, { type: "error", error }, finish("stop"))
        )
        const seen: Array<string> = []
        const failure = yield* failureOf(
          Stream.runForEach(model.stream({ ...asker, prompt: ask, tools: [] }), (part) =>
            Effect.sync(() => seen.push(part.type))
          )
        )
        assert.strictEqual(failure._tag, tag)
        assert.deepStrictEqual(seen, ["text-start"])
      }
    })
  )

  it.effect("are cut to a length that can be shown", () =>
    Effect.gen(function* () {
      const error = new AiError.UnknownError({ module: "M", method: "m", description: `line\n`.repeat(10_000) })
      const { model } = yield* scripted(Stream.fail(error))
      const { message } = yield* failureOf(collect(model))
      assert.isBelow(message.length, 700)
      assert.notInclude(message, "\n")
    })
  )

  it.effect("replace a client library that throws", () =>
    Effect.gen(function* () {
      const { model } = yield* scripted(Stream.die(new TypeError(`undefined is not ${key}`)))
      const error = yield* failureOf(collect(model))
      assert.strictEqual(error._tag, "BadOutput")
      assert.include(error.message, "undefined is not [REDACTED]")
    })
  )

  it.effect("tell a reply that ends early from one that stopped because of an error", () =>
    Effect.gen(function* () {
      const { model } = yield* scripted(one(...text("0", "a")), one(...text("0", "a"), finish("error")))
      assert.strictEqual((yield* failureOf(collect(model)))._tag, "Network")
      assert.strictEqual((yield* failureOf(collect(model)))._tag, "BadOutput")
    })
  )
})

it.effect("interruption ends the language model's stream", () =>
  Effect.gen(function* () {
    const released = yield* Deferred.make<void>()
    const started = yield* Deferred.make<void>()
    const { model } = yield* scripted(
      Stream.ensuring(
        Stream.concat(one({ type: "text-start", id: "0" }), Stream.never),
        Deferred.succeed(released, undefined)
      )
    )
    const fiber = yield* Effect.fork(
      Stream.runForEach(model.stream({ ...asker, prompt: ask, tools: [] }), () => Deferred.succeed(started, undefined))
    )
    yield* Deferred.await(started)
    const exit = yield* Fiber.interrupt(fiber)
    yield* Deferred.await(released)
    assert.isTrue(Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause))
  })
)

describe("tool sets", () => {
  it("are prepared once, and again when one was added", () => {
    const kitOf = LenientTool.makeKits(false)
    const set: Array<Tool.Any> = [ReadFile]
    const kit = kitOf(set)
    assert.strictEqual(kitOf(set), kit)
    assert.strictEqual(kitOf([ReadFile]).toolkit.tools.read_file, kit.toolkit.tools.read_file)
    set.push(Now)
    assert.deepStrictEqual(Array.from(kitOf(set).names), ["read_file", "now"])
  })

  it("keep name, description and schema, and accept anything", () => {
    const tool = LenientTool.make(ReadFile, false)
    assert.strictEqual(tool.name, "read_file")
    assert.strictEqual(Tool.getDescription(tool), "Reads a file.")
    assert.deepStrictEqual(Tool.getJsonSchema(tool), Tool.getJsonSchema(ReadFile))
    assert.strictEqual(Schema.decodeUnknownSync(tool.parametersSchema as never)("anything"), "anything")
  })

  it("write references out, and stop at schemas that contain themselves", () => {
    const Leaf = Schema.Struct({ n: Schema.Number }).annotations({ identifier: "Leaf" })
    interface Tree {
      readonly leaf: { readonly n: number }
      readonly children: ReadonlyArray<Tree>
    }
    const Tree: Schema.Schema<Tree> = Schema.Struct({
      leaf: Leaf,
      children: Schema.Array(Schema.suspend(() => Tree))
    }).annotations({ identifier: "Tree" })
    const schema = Tool.getJsonSchema(
      LenientTool.make(Tool.make("plant", { parameters: { tree: Tree, other: Leaf } }), true)
    )
    const text = JSON.stringify(schema)
    assert.notInclude(text, "$ref")
    assert.notInclude(text, "$defs")
    const leaf = { type: "object", required: ["n"], properties: { n: { type: "number" } }, additionalProperties: false }
    assert.deepStrictEqual((schema as any).properties.other, leaf)
    const inner = (schema as any).properties.tree.properties.children.items
    assert.deepStrictEqual(inner.properties.leaf, leaf)
    assert.deepStrictEqual(inner.properties.children.items, { type: "object" })
  })
})
