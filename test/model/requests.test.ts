/** What a request may say besides its prompt and its tools, as each wire format says it, and what none of them leaves out in silence. */
import * as OpenAiTool from "@effect/ai-openai/OpenAiTool"
import * as Prompt from "@effect/ai/Prompt"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Redacted from "effect/Redacted"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as Stream from "effect/Stream"
import * as LanguageModelAdapter from "../../src/model/LanguageModelAdapter.js"
import type * as Model from "../../src/model/Model.js"
import * as ThinkingSetting from "../../src/model/ThinkingSetting.js"
import * as ModelRegistry from "../../src/model/ModelRegistry.js"
import * as SentJson from "../../src/model/SentJson.js"
import { ask, asker, collect, failureOf, key, tools } from "../kit/ModelSample.js"
import * as ModelServer from "../kit/ModelServer.js"
import type { Wire } from "../kit/Wire.js"
import { wires } from "../kit/Wire.js"

type Provider = Wire["provider"]

const modelOf = (wire: Wire, maxOutputTokens?: number) =>
  Effect.gen(function* () {
    const server = yield* ModelServer.make
    const registry = yield* ModelRegistry.make({
      keys: { [wire.provider]: Redacted.make(key) },
      baseUrls: { [wire.provider]: server.url + wire.basePath },
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens })
    })
    return { server, model: yield* registry.resolve(`${wire.provider}/${wire.model}`) }
  })

/** What was sent, without what every request says. */
const sent = (wire: Wire, more: Partial<Model.Request>, maxOutputTokens?: number) =>
  Effect.gen(function* () {
    const { model, server } = yield* modelOf(wire, maxOutputTokens)
    yield* server.play(ModelServer.eventStream(wire.events({ text: ["ok"] })))
    const { prompt = ask, tools: offered = tools, ...rest } = more
    yield* collect(model, prompt, offered, rest)
    return ModelServer.json(yield* server.received) as Record<string, any>
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

/** Why it was not sent. */
const refusal = (wire: Wire, more: Partial<Model.Request>, maxOutputTokens?: number) =>
  Effect.gen(function* () {
    const { model, server } = yield* modelOf(wire, maxOutputTokens)
    yield* server.play(ModelServer.eventStream(wire.events({ text: ["ok"] })))
    const { prompt = ask, tools: offered = tools, ...rest } = more
    const error = yield* failureOf(collect(model, prompt, offered, rest))
    assert.strictEqual(error._tag, "Refused")
    return error.message
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false
}
const outputSchema: Model.OutputSchema = { name: "place", schema }

type Said = { readonly [P in Provider]: Readonly<Record<string, unknown>> | "refused" }

const mode = (mode: string, more = {}) => ({ toolConfig: { functionCallingConfig: { mode, ...more } } })

const cases: ReadonlyArray<readonly [string, Partial<Model.Request>, Said]> = [
  [
    "nothing",
    {},
    {
      anthropic: { max_tokens: 8192, tool_choice: undefined, thinking: undefined },
      openai: { max_output_tokens: undefined, tool_choice: undefined, reasoning: undefined, text: undefined },
      google: { generationConfig: undefined, toolConfig: undefined },
      "openai-compatible": {
        max_tokens: undefined,
        tool_choice: undefined,
        reasoning_effort: undefined,
        response_format: undefined
      }
    }
  ],
  [
    "that tools are called as the model likes",
    { toolChoice: "auto" },
    {
      anthropic: { tool_choice: { type: "auto" } },
      openai: { tool_choice: "auto" },
      google: mode("AUTO"),
      "openai-compatible": { tool_choice: "auto" }
    }
  ],
  [
    "that no tool is called",
    { toolChoice: "none" },
    {
      anthropic: { tool_choice: { type: "none" } },
      openai: { tool_choice: "none" },
      google: mode("NONE"),
      "openai-compatible": { tool_choice: "none" }
    }
  ],
  [
    "that some tool is called",
    { toolChoice: "required" },
    {
      anthropic: { tool_choice: { type: "any" } },
      openai: { tool_choice: "required" },
      google: mode("ANY"),
      "openai-compatible": { tool_choice: "required" }
    }
  ],
  [
    "that one tool is called",
    { toolChoice: { tool: "now" } },
    {
      anthropic: { tool_choice: { type: "tool", name: "now" } },
      openai: { tool_choice: { type: "function", name: "now" } },
      google: mode("ANY", { allowedFunctionNames: ["now"] }),
      "openai-compatible": { tool_choice: { type: "function", function: { name: "now" } } }
    }
  ],
  [
    "that a tool is called that was not given",
    { toolChoice: { tool: "unheard_of" } },
    { anthropic: "refused", openai: "refused", google: "refused", "openai-compatible": "refused" }
  ],
  [
    "that a tool is called where there is none",
    { tools: [], toolChoice: "required" },
    { anthropic: "refused", openai: "refused", google: "refused", "openai-compatible": "refused" }
  ],
  [
    "that no tool is called where there is none",
    { tools: [], toolChoice: "none" },
    {
      anthropic: { tool_choice: undefined },
      openai: { tool_choice: undefined },
      google: { toolConfig: undefined },
      "openai-compatible": { tool_choice: undefined }
    }
  ],
  [
    "how long the reply may be",
    { maxOutputTokens: 300 },
    {
      anthropic: { max_tokens: 300 },
      openai: { max_output_tokens: 300 },
      google: { generationConfig: { maxOutputTokens: 300 } },
      "openai-compatible": { max_tokens: 300 }
    }
  ],
  [
    "how many tokens it thinks",
    { thinking: { budget: 2048 } },
    {
      anthropic: { thinking: { type: "enabled", budget_tokens: 2048 }, max_tokens: 8192 + 2048 },
      openai: { reasoning: undefined },
      google: { generationConfig: { thinkingConfig: { thinkingBudget: 2048 } } },
      "openai-compatible": { reasoning_effort: undefined }
    }
  ],
  [
    "that it does not think",
    { thinking: { budget: 0, effort: "minimal" } },
    {
      anthropic: { thinking: { type: "disabled" }, max_tokens: 8192 },
      openai: { reasoning: { effort: "minimal" } },
      google: { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
      "openai-compatible": { reasoning_effort: "minimal" }
    }
  ],
  [
    "how hard it thinks",
    { thinking: { effort: "high" } },
    {
      anthropic: { thinking: undefined, max_tokens: 8192 },
      openai: { reasoning: { effort: "high" } },
      google: { generationConfig: undefined },
      "openai-compatible": { reasoning_effort: "high" }
    }
  ],
  [
    "the shape of its text",
    { tools: [], outputSchema },
    {
      anthropic: "refused",
      openai: { text: { format: { type: "json_schema", name: "place", schema, strict: false } } },
      google: {
        generationConfig: {
          responseMimeType: "application/json",
          responseSchema: { type: "OBJECT", properties: { city: { type: "STRING" } }, required: ["city"] }
        }
      },
      "openai-compatible": {
        response_format: { type: "json_schema", json_schema: { name: "place", schema, strict: false } }
      }
    }
  ]
]

for (const wire of wires) {
  describe(`a request to ${wire.provider}`, () => {
    for (const [what, more, said] of cases) {
      const expected = said[wire.provider]
      it.live(`that says ${what} is ${expected === "refused" ? "refused in words" : "sent"}`, () =>
        Effect.gen(function* () {
          if (expected === "refused") {
            assert.match(yield* refusal(wire, more), /\bit (is|cannot)\b/)
            return
          }
          const body = yield* sent(wire, more)
          for (const [field, value] of Object.entries(expected)) assert.deepStrictEqual(body[field], value, field)
        })
      )
    }

    it.live("has the smaller of two limits", () =>
      Effect.gen(function* () {
        const limitIn = (body: Record<string, any>) =>
          body.max_tokens ?? body.max_output_tokens ?? body.generationConfig.maxOutputTokens
        assert.strictEqual(limitIn(yield* sent(wire, { maxOutputTokens: 300 }, 200)), 200)
        assert.strictEqual(limitIn(yield* sent(wire, { maxOutputTokens: 100 }, 200)), 100)
        assert.strictEqual(limitIn(yield* sent(wire, {}, 200)), 200)
      })
    )

    it.live("says how closely its images are looked at, where that can be said", () =>
      Effect.gen(function* () {
        const data = new Uint8Array([1, 2, 3])
        const image = Prompt.filePart({ mediaType: "image/png", data })
        const prompt = Prompt.fromMessages([Prompt.userMessage({ content: [image] })])
        const text = JSON.stringify(yield* sent(wire, { prompt, imageDetail: "low" }))
        const usual = JSON.stringify(yield* sent(wire, { prompt }))
        assert.include(text, "AQID")
        const said = { anthropic: false, openai: true, google: true, "openai-compatible": true }[wire.provider]
        assert.strictEqual(/"(?:low|MEDIA_RESOLUTION_LOW)"/.test(text), said)
        assert.notMatch(usual, /"(?:low|MEDIA_RESOLUTION_LOW)"/)
      })
    )
  })
}

const wireOf = (provider: Provider): Wire => wires.find((wire) => wire.provider === provider) ?? assert.fail(provider)

describe("words with half a surrogate pair", () => {
  const asText = (text: string) => Buffer.from(text).toString()
  const isWhole = (value: unknown): boolean =>
    typeof value === "string"
      ? value === asText(value)
      : typeof value !== "object" || value === null || Object.values(value).every(isWhole)
  const prompt = Prompt.make([
    { role: "system", content: "Be \udc00brief." },
    { role: "user", content: [{ type: "text", text: "a\ud83d, \\ud83d and \u{1f600}?" }] },
    {
      role: "assistant",
      content: [
        { type: "text", text: "I look\ud800." },
        { type: "tool-call", id: "call_1", name: "read_file", params: { path: "x\udfff" }, providerExecuted: false }
      ]
    },
    {
      role: "tool",
      content: [
        {
          type: "tool-result",
          id: "call_1",
          name: "read_file",
          isFailure: false,
          providerExecuted: false,
          result: "y\ud800"
        }
      ]
    }
  ])

  for (const wire of wires) {
    it.live(`are sent as text to ${wire.provider}`, () =>
      Effect.gen(function* () {
        const body = yield* sent(wire, { prompt })
        assert.isTrue(isWhole(body))
        const text = JSON.stringify(body)
        assert.include(text, JSON.stringify("a\ufffd, \\ud83d and \u{1f600}?"))
        // The arguments may be JSON in JSON.
        assert.include(text.replaceAll('\\"', '"'), '{"path":"x\ufffd"}')
        assert.notInclude(text, "udfff")
      })
    )
  }

  it("are read by a model as the tool wrote them, and structured results as JSON", () => {
    const text = '     1\tsay "hi" \\n\n     2\té'
    assert.strictEqual(SentJson.resultText(text), text)
    assert.strictEqual(SentJson.resultText('"quoted"'), '"quoted"')
    assert.strictEqual(SentJson.resultText(""), "(empty)")
    assert.strictEqual(SentJson.resultText({ output: 'a\n"b"' }), '{"output":"a\\n\\"b\\""}')
    assert.strictEqual(SentJson.resultText(undefined), "null")
  })

  it("are written as JSON that is text", () => {
    const unit = FastCheck.constantFrom("\ud83d", "\ude00", "\\", "u", "d", "8", "3", '"', "\n", "é")
    FastCheck.assert(
      FastCheck.property(FastCheck.array(FastCheck.string({ unit, maxLength: 12 })), (strings) => {
        assert.deepStrictEqual(JSON.parse(SentJson.stringify(strings)), strings.map(asText))
      })
    )
  })
})

describe("what only one provider knows", () => {
  it.live("anthropic keeps what it has read up to the marks, the last four of them", () =>
    Effect.gen(function* () {
      const say = (role: "user" | "assistant", text: string): Prompt.MessageEncoded => ({
        role,
        content: [{ type: "text", text }]
      })
      const prompt = Prompt.make([
        { role: "system", content: "a" },
        say("user", "b"),
        say("assistant", "c"),
        say("user", "d"),
        say("user", "e"),
        say("assistant", "f"),
        say("user", "g")
      ])
      const marksIn = (body: Record<string, any>) =>
        [...(body.system ?? []), ...body.messages.flatMap(({ content }: any) => content)].flatMap((block: any) =>
          block.cache_control === undefined ? [] : [[block.text, block.cache_control.type]]
        )
      const wire = wireOf("anthropic")
      const marked = (request: Partial<Model.Request>) =>
        Effect.map(sent(wire, request), (body) => marksIn(body).map(([text]) => text))
      assert.deepStrictEqual(yield* marked({ prompt }), ["a", "e", "g"], "what this request and the last one end with")
      assert.deepStrictEqual(yield* marked({ prompt: Prompt.make([say("user", "b")]) }), ["b"])
      assert.deepStrictEqual(yield* marked({ prompt, cacheMarks: [] }), [])
      const kept = { anthropic: { cacheControl: { type: "ephemeral" as const } } }
      const own = Prompt.make([
        { role: "system", content: "a" },
        { role: "user", content: [{ type: "text", text: "b", options: kept }] },
        say("assistant", "c"),
        say("user", "d")
      ])
      assert.deepStrictEqual(yield* marked({ prompt: own }), ["b"], "the marks that somebody set are all there are")
      assert.deepStrictEqual(marksIn(yield* sent(wire, { prompt, cacheMarks: [3, 0] })), [
        ["a", "ephemeral"],
        ["d", "ephemeral"]
      ])
      assert.deepStrictEqual(
        marksIn(yield* sent(wire, { prompt, cacheMarks: [0, 1, 2, 3, 4, 6, 6, 99] })).map(([text]) => text),
        ["c", "d", "e", "g"],
        "one that is there twice or nowhere is harmless"
      )
      for (const other of wires.filter(({ provider }) => provider !== "anthropic")) {
        assert.notInclude(JSON.stringify(yield* sent(other, { prompt, cacheMarks: [0, 6] })), "ephemeral")
      }
    })
  )

  it.live("anthropic's newer models are told by a word how hard to think, and in how many tokens never", () =>
    Effect.gen(function* () {
      const wire = { ...wireOf("anthropic"), model: "claude-sonnet-5-5" }
      const high = yield* sent(wire, { thinking: { effort: "high" } })
      assert.deepStrictEqual([high.output_config, high.thinking], [{ effort: "high" }, undefined])
      const least = yield* sent(wire, { thinking: { effort: "minimal" } })
      assert.deepStrictEqual(least.output_config, { effort: "low" })
      assert.include(yield* refusal(wire, { thinking: { budget: 2048 } }), "by an effort")
    })
  )

  it.live("anthropic's models think no longer than they can answer", () =>
    Effect.gen(function* () {
      const wire = { ...wireOf("anthropic"), model: "claude-haiku-4-5" }
      assert.strictEqual((yield* sent(wire, { thinking: { budget: 50_000 } })).max_tokens, 64_000)
      assert.include(yield* refusal(wire, { thinking: { budget: 64_000 } }), "64000")
    })
  )

  it.live("google's newer models are told by a word how hard to think", () =>
    Effect.gen(function* () {
      const newer = { ...wireOf("google"), model: "gemini-3-flash-preview", path: "/unused" }
      assert.deepStrictEqual((yield* sent(newer, { thinking: { effort: "low" } })).generationConfig, {
        thinkingConfig: { thinkingLevel: "low" }
      })
      const older = { ...newer, model: "gemini-2.5-pro" }
      assert.isUndefined((yield* sent(older, { thinking: { effort: "low" } })).generationConfig)
    })
  )

  it.live("anthropic does not think longer than a reply may be", () =>
    Effect.gen(function* () {
      const wire = wireOf("anthropic")
      const thinking = { budget: 2048 }
      assert.include(yield* refusal(wire, { thinking, maxOutputTokens: 2048 }), "2048")
      assert.include(yield* refusal(wire, { thinking }, 1000), "1000")
      assert.strictEqual((yield* sent(wire, { thinking, maxOutputTokens: 2049 })).max_tokens, 2049)
    })
  )

  it.live("openai can be made to call a tool of its own, by what it is", () =>
    Effect.gen(function* () {
      const search = OpenAiTool.WebSearch({})
      const more = { tools: [search], toolChoice: { tool: search.name } }
      assert.deepStrictEqual((yield* sent(wireOf("openai"), more)).tool_choice, { type: "web_search" })
      assert.include(yield* refusal(wireOf("anthropic"), more), search.name)
    })
  )
})

describe("any language model", () => {
  const adapted = Effect.gen(function* () {
    const chosen: Array<unknown> = []
    const languageModel = yield* LanguageModel.make({
      generateText: () => Effect.dieMessage("not used"),
      streamText: ({ toolChoice }) => {
        chosen.push(toolChoice)
        return Stream.make({
          type: "finish",
          reason: "stop",
          usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
        } as const)
      }
    })
    const model = LanguageModelAdapter.fromService(languageModel, { id: "test/model" })
    const run = (more: Partial<Model.Request>) =>
      Stream.runDrain(model.stream({ ...asker, prompt: ask, tools, ...more }))
    return { chosen, run }
  })

  it.effect("is told which tools it may call, and cannot be held to a schema", () =>
    Effect.gen(function* () {
      const { chosen, run } = yield* adapted
      for (const toolChoice of [undefined, "auto", "none", "required", { tool: "now" }] as const) {
        yield* run({ toolChoice })
      }
      assert.deepStrictEqual(chosen, ["auto", "auto", "none", "required", { tool: "now" }])
      yield* run({ tools: [], toolChoice: "none" })
      for (const more of [
        { outputSchema },
        { toolChoice: { tool: "unheard_of" } },
        { tools: [], toolChoice: "required" }
      ] as const) {
        assert.strictEqual((yield* failureOf(run(more)))._tag, "Refused")
      }
      assert.lengthOf(chosen, 6, "it was not asked what it cannot do")
    })
  )

  const thoughts: ReadonlyArray<Model.Thinking> = [{ budget: 2048 }, { budget: 0 }, { effort: "high" }]
  const thinkers = [
    ...wires,
    { ...wireOf("anthropic"), model: "claude-sonnet-5-5" },
    { ...wireOf("google"), model: "gemini-2.5-pro" },
    { ...wireOf("google"), model: "gemini-3-flash-preview", path: "/unused" }
  ]
  for (const wire of thinkers) {
    it.live(`what ${wire.provider}/${wire.model} takes of a thinking setting is what is said of it`, () =>
      Effect.gen(function* () {
        const usual = yield* sent(wire, {})
        for (const thinking of thoughts) {
          const got = yield* Effect.exit(sent(wire, { thinking }))
          const isTaken = Exit.isSuccess(got) && JSON.stringify(got.value) !== JSON.stringify(usual)
          const problem = ThinkingSetting.problem(`${wire.provider}/${wire.model}`, thinking)
          assert.strictEqual(problem === undefined, isTaken, JSON.stringify(thinking))
          if (problem !== undefined) assert.strictEqual(/ is refused: /.test(problem), Exit.isFailure(got), problem)
        }
      })
    )
  }
})
