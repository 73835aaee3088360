/** Tools that providers define: registered, offered to who knows them, and refused in words to who does not. */
import * as AnthropicTool from "@effect/ai-anthropic/AnthropicTool"
import * as OpenAiTool from "@effect/ai-openai/OpenAiTool"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Model from "../../src/model/Model.js"
import * as ModelRegistry from "../../src/model/ModelRegistry.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import { noFiles } from "../kit/agents.js"
import { ask, collect, failureOf, key } from "../kit/ModelSample.js"
import * as ModelServer from "../kit/ModelServer.js"
import type { Wire } from "../kit/Wire.js"
import * as Wires from "../kit/Wire.js"

const Search = AnthropicTool.WebSearch_20250305({ max_uses: 3 })
const Bash = AnthropicTool.Bash_20250124({})
const OpenAiSearch = OpenAiTool.WebSearch({})
const Own = Tool.make("own", { parameters: { n: Schema.Number }, success: Schema.Number })

const modelOf = (wire: Wire) =>
  Effect.gen(function* () {
    const server = yield* ModelServer.make
    const registry = yield* ModelRegistry.make({
      keys: { [wire.provider]: Redacted.make(key) },
      baseUrls: { [wire.provider]: server.url + wire.basePath }
    })
    return { server, model: yield* registry.resolve(`${wire.provider}/${wire.model}`) }
  }).pipe(Effect.provide(FetchHttpClient.layer))

describe("registering", () => {
  it.effect("a tool that its provider runs has to be allowed, and is a tool like others then", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(ToolRegistry.make(Toolkit.make(Search)))
      assert.strictEqual(refused._tag, "ProviderToolNotAllowed")
      assert.strictEqual(refused.tool, Search.name)
      assert.include(refused.message, "ToolTrait.ungated")
      const allowed = yield* ToolRegistry.make(Toolkit.make(ToolTrait.ungated(Search)))
      const [entry] = allowed.entries
      assert.strictEqual(entry?.name, Search.name)
      assert.isUndefined(entry?.handler)
      assert.isTrue(entry !== undefined && Tool.isProviderDefined(entry.tool))
      assert.isFalse(entry?.readonly)
      assert.isTrue(Option.isNone(Option.fromNullable(Search.annotations)), "the tool itself is left as it was")
    })
  )

  it.effect("a whole runtime fails in words", () =>
    Effect.gen(function* () {
      const runtime = AgentRuntime.make({ toolkit: Toolkit.make(Search) })
      const model = Model.layer({ id: "m", stream: () => assert.fail("never asked") })
      const refused = yield* Effect.flip(Effect.provide(runtime, Layer.merge(model, noFiles)))
      assert.strictEqual(refused._tag, "ProviderToolNotAllowed")
    })
  )

  it.effect("one that a handler runs needs nothing but its handler", () =>
    Effect.gen(function* () {
      const kit = Toolkit.make(Bash)
      const handlers = kit.toLayer({ AnthropicBash: ({ command }) => Effect.succeed(`ran ${command}`) })
      const set = yield* Effect.provide(ToolRegistry.make(kit), handlers)
      const entry = set.get("AnthropicBash")
      assert.isDefined(entry?.handler)
      assert.deepStrictEqual(entry?.decode({ command: "ls" })._tag, "Right")
      assert.deepStrictEqual(entry?.decode({})._tag, "Left")
    })
  )
})

describe("offering", () => {
  it.scopedLive("passes them to their own provider, as that calls them", () =>
    Effect.gen(function* () {
      const anthropic = yield* modelOf(Wires.anthropic)
      yield* anthropic.server.play(ModelServer.eventStream(Wires.anthropic.events({ text: ["ok"] })))
      yield* collect(anthropic.model, ask, [Search, Bash, Own])
      const request = yield* anthropic.server.received
      assert.deepStrictEqual(ModelServer.json(request).tools.slice(1), [
        { type: "web_search_20250305", name: "web_search", max_uses: 3 },
        { type: "bash_20250124", name: "bash" }
      ])
      assert.strictEqual(ModelServer.json(request).tools[0].name, "own")
      assert.strictEqual(request.headers["anthropic-beta"], "computer-use-2025-01-24")
      const openai = yield* modelOf(Wires.openai)
      yield* openai.server.play(ModelServer.eventStream(Wires.openai.events({ text: ["ok"] })))
      yield* collect(openai.model, ask, [OpenAiSearch])
      assert.deepStrictEqual(ModelServer.json(yield* openai.server.received).tools, [{ type: "web_search" }])
    })
  )

  it.scopedLive("refuses them in words to every other provider, and asks nobody", () =>
    Effect.gen(function* () {
      for (const wire of Wires.wires) {
        if (wire.provider === "anthropic") continue
        const { model, server } = yield* modelOf(wire)
        const error = yield* failureOf(collect(model, ask, [Search]))
        assert.strictEqual(error._tag, "Refused")
        assert.include(error.message, `cannot run the provider-defined tool ${Search.name}; use a model of anthropic`)
        assert.strictEqual(server.count(), 0)
      }
    })
  )
})

describe("calling", () => {
  /** A search that Anthropic makes itself, and what it says after it. */
  const searched = ModelServer.sse(
    [
      { type: "message_start", message: { id: "m", model: "claude-test", usage: { input_tokens: 1 } } },
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} }
      },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"query":"x"}' } },
      { type: "content_block_stop", index: 0 },
      {
        type: "content_block_start",
        index: 1,
        content_block: {
          type: "web_search_tool_result",
          tool_use_id: "srv_1",
          content: [{ type: "web_search_result", url: "https://example.com", title: "X", encrypted_content: "e" }]
        }
      },
      { type: "content_block_stop", index: 1 },
      { type: "content_block_start", index: 2, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "Found." } },
      { type: "content_block_stop", index: 2 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
      { type: "message_stop" }
    ],
    (event) => event.type
  )

  it.scopedLive("tells what the provider ran, and gives it back with the next turn", () =>
    Effect.gen(function* () {
      const { model, server } = yield* modelOf(Wires.anthropic)
      const runtime = AgentRuntime.layer({
        toolkit: Toolkit.make(ToolTrait.ungated(Search)),
        policy: PermissionFile.policy({ defaultPolicy: "deny" })
      }).pipe(Layer.provide(Layer.merge(Model.layer(model), noFiles)))
      yield* server.play(
        ModelServer.eventStream(searched),
        ModelServer.eventStream(Wires.anthropic.events({ text: ["Bye."] }))
      )
      yield* Effect.gen(function* () {
        const agent = yield* Agent.start()
        assert.deepInclude(yield* agent.run("search"), { _tag: "Completed", text: "Found." })
        assert.deepInclude(yield* agent.run("and now?"), { _tag: "Completed", text: "Bye." })
      }).pipe(Effect.provide(Layer.merge(runtime, TestInteractor.layer({}))))
      yield* server.received
      assert.deepStrictEqual(ModelServer.json(yield* server.received).messages[1], {
        role: "assistant",
        content: [
          { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "x" } },
          {
            type: "web_search_tool_result",
            tool_use_id: "srv_1",
            content: [{ type: "web_search_result", url: "https://example.com", title: "X", encrypted_content: "e" }]
          },
          { type: "text", text: "Found." }
        ]
      })
    })
  )

  it.scopedLive("asks before a handler runs what a provider has defined", () =>
    Effect.gen(function* () {
      const { model, server } = yield* modelOf(Wires.anthropic)
      const toolkit = Toolkit.make(Bash)
      const handlers = toolkit.toLayer({ AnthropicBash: ({ command }) => Effect.succeed(`ran ${command}`) })
      const runtime = AgentRuntime.layer({ toolkit, policy: PermissionFile.policy({ defaultPolicy: "deny" }) }).pipe(
        Layer.provide(Layer.mergeAll(Model.layer(model), noFiles, handlers))
      )
      const calls = [{ id: "c1", name: "bash", args: '{"command":"ls"}' }]
      yield* server.play(
        ModelServer.eventStream(Wires.anthropic.events({ calls })),
        ModelServer.eventStream(Wires.anthropic.events({ text: ["Bye."] }))
      )
      yield* Effect.gen(function* () {
        const agent = yield* Agent.start()
        assert.deepInclude(yield* agent.run("go"), { _tag: "Completed", text: "Bye." })
      }).pipe(Effect.provide(Layer.merge(runtime, TestInteractor.layer({}))))
      yield* server.received
      const { messages } = ModelServer.json(yield* server.received)
      assert.deepStrictEqual(messages[1].content, [
        { type: "tool_use", id: "c1", name: "bash", input: { command: "ls" } }
      ])
      assert.include(messages[2].content[0].content, "Permission denied")
    })
  )
})
