import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Arguments from "../../../src/cli/config/Arguments.js"
import * as ConfigFile from "../../../src/host/local/ConfigFile.js"
import * as Settings from "../../../src/host/Settings.js"
import * as Launch from "../../../src/host/Launch.js"
import * as KnownModel from "../../../src/model/KnownModel.js"

const full = {
  limits: {
    max_steps: 1,
    calls_per_step: 7,
    model_silence: 0.5,
    retry_within: 90,
    max_depth: 2,
    max_children: 3,
    max_tokens: 4,
    max_tree_tokens: 5
  },
  mediator: "agent",
  price_table: { "a/b": { input: 3, output: 15, cached: 0.3 } },
  currency: "EUR",
  allow_inline: true,
  inline_allowed_plugins: ["files"]
}

/** The settings of a place with these two files. */
const load = (
  files: { readonly user?: unknown; readonly workspace?: unknown },
  flags: Arguments.Flags = {},
  env = {}
) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const root = yield* fileSystem.realPath(yield* fileSystem.makeTempDirectoryScoped())
    const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
    yield* fileSystem.makeDirectory(at("workspace", ".assent"), { recursive: true })
    yield* fileSystem.makeDirectory(at("config"))
    const write = (file: string, content: unknown) =>
      content === undefined ? Effect.void : fileSystem.writeFileString(file, JSON.stringify(content))
    yield* write(at("config", "config.json"), files.user)
    yield* write(at("workspace", ".assent", "config.json"), files.workspace)
    const places = { ASSENT_CONFIG_DIR: at("config"), ASSENT_STATE_DIR: at("state") }
    const variables = new Map(Object.entries({ ...places, ...env }))
    return yield* Effect.withConfigProvider(
      Settings.load({ workspace: at("workspace"), ...flags }),
      ConfigProvider.fromMap(variables)
    )
  }).pipe(Effect.provide(NodeContext.layer))

describe("config.json", () => {
  it.scopedLive("sets limits, prices, the mediator and what a model may make up itself", () =>
    Effect.gen(function* () {
      const settings = yield* load({ user: full })
      assert.deepStrictEqual(settings.limits, {
        maxSteps: 1,
        callsPerStep: 7,
        modelSilence: 500,
        retryWithin: 90_000,
        maxDepth: 2,
        maxChildren: 3,
        maxTokens: 4,
        maxTreeTokens: 5
      })
      assert.deepStrictEqual(settings.prices, full.price_table)
      assert.strictEqual(settings.currency, "EUR")
      assert.strictEqual(settings.mediator, "agent")
      assert.deepStrictEqual(settings.inline, { allowed: true, plugins: ["files"] })
      assert.isUndefined(settings.profile)
    })
  )

  it.scopedLive("allows nothing that it does not say", () =>
    Effect.gen(function* () {
      const settings = yield* load({ user: { allow_inline: true } })
      assert.deepStrictEqual(settings.inline, { allowed: true, plugins: [] })
      const none = yield* load({})
      assert.deepStrictEqual(none.inline, { allowed: false, plugins: [] })
      assert.deepStrictEqual([none.limits, none.prices, none.currency, none.mediator], [{}, {}, undefined, "forward"])
    })
  )

  it.scopedLive("counts in a workspace only when a person trusts it, and then adds to the user's", () =>
    Effect.gen(function* () {
      const files = {
        user: { limits: { max_steps: 9, parallel_tools: 9 }, price_table: { x: { input: 1, output: 1 } } },
        workspace: full
      }
      const before = yield* load(files)
      assert.isFalse(before.trusted)
      assert.isTrue(before.wantsTrust)
      assert.deepStrictEqual(before.limits, { maxSteps: 9, parallelTools: 9 })
      assert.deepStrictEqual(Object.keys(before.prices), ["x"])
      assert.deepStrictEqual([before.mediator, before.inline.allowed], ["forward", false])
      const after = yield* load(files, { trust: true })
      assert.isTrue(after.trusted)
      assert.isFalse(after.wantsTrust)
      assert.deepStrictEqual([after.limits.maxSteps, after.limits.maxDepth, after.limits.parallelTools], [1, 2, 9])
      assert.deepStrictEqual(Object.keys(after.prices).toSorted(), ["a/b", "x"])
      assert.deepStrictEqual([after.mediator, after.inline.allowed], ["agent", true])
    })
  )

  it.scopedLive("limits money by the run, the session and the day, each of them for itself", () =>
    Effect.gen(function* () {
      const limits = (max_cost: unknown) => ({ limits: { max_cost } })
      const both = { user: limits({ run: 1, day: 20.5 }), workspace: limits({ session: 5, day: 10 }) }
      assert.deepStrictEqual((yield* load(both)).limits, { maxCost: { run: 1, day: 20.5 } })
      assert.deepStrictEqual((yield* load(both, { trust: true })).limits, { maxCost: { run: 1, session: 5, day: 10 } })
      for (const wrong of [{ run: 0 }, { day: -1 }, { week: 1 }, { session: "5" }, 5]) {
        const { message } = yield* Effect.flip(load({ user: limits(wrong) }))
        assert.include(message, "limits.max_cost", JSON.stringify(wrong))
      }
    })
  )

  it.scopedLive("gives way to the variable, and the variable to the flag", () =>
    Effect.gen(function* () {
      const mediator = (flags: Arguments.Flags, env: Record<string, string> = {}) =>
        Effect.map(load({ user: full }, flags, env), (settings) => settings.mediator)
      assert.strictEqual(yield* mediator({}), "agent")
      assert.strictEqual(yield* mediator({}, { ASSENT_MEDIATOR: "forward" }), "forward")
      assert.strictEqual(yield* mediator({ mediator: "agent" }, { ASSENT_MEDIATOR: "forward" }), "agent")
      const variable = yield* Effect.flip(mediator({}, { ASSENT_MEDIATOR: "me" }))
      assert.strictEqual(variable.message, 'ASSENT_MEDIATOR takes forward or agent, not "me".')
      const flag = yield* Effect.flip(mediator({ mediator: "me" }))
      assert.strictEqual(flag.message, '--mediator takes forward or agent, not "me".')
      assert.strictEqual((yield* load({}, { profile: "plan" })).profile, "plan")
    })
  )

  it.scopedLive("says of models what goes before what is known of them, each thing where it is said last", () =>
    Effect.gen(function* () {
      const user = { models: { "a/b": { context_window: 1_000, thinking: "low" }, "a/c": { thinking: 0 } } }
      const workspace = { models: { "a/b": { context_window: 2_000 } } }
      const settings = yield* load({ user, workspace }, { trust: true })
      assert.deepStrictEqual(settings.models, {
        "a/b": { context_window: 2_000, thinking: "low" },
        "a/c": { thinking: 0 }
      })
      const model = yield* Launch.resolveModel(
        { ...settings, models: { "offline/offline": { context_window: 7 } } },
        "offline"
      )
      assert.strictEqual(model.contextWindow, 7)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("says whether, when and how a conversation is made shorter by itself", () =>
    Effect.gen(function* () {
      const compaction = (user?: object) => Effect.map(load({ user }), (settings) => settings.compaction)
      const usual = yield* compaction()
      assert.deepInclude(usual, { type: "summarize", thresholdPercent: 80, preserveRecentTurns: 3 })
      assert.deepInclude(yield* compaction({ gc: { type: "budget" } }), { type: "budget", thresholdPercent: 80 })
      assert.isUndefined(yield* compaction({ compaction: false, gc: { type: "budget" } }))
    })
  )

  it.scopedLive("says whether there is a status line, unless the variable does", () =>
    Effect.gen(function* () {
      const line = (user: object, env = {}) => Effect.map(load({ user }, {}, env), (settings) => settings.statusLine)
      assert.isTrue(yield* line({}))
      assert.isFalse(yield* line({ status_line: false }))
      assert.isTrue(yield* line({ status_line: false }, { ASSENT_STATUS_LINE: "ON" }))
      assert.isFalse(yield* line({}, { ASSENT_STATUS_LINE: "0" }))
      const { message } = yield* Effect.flip(line({}, { ASSENT_STATUS_LINE: "maybe" }))
      assert.strictEqual(message, 'ASSENT_STATUS_LINE takes on or off, not "maybe".')
    })
  )

  it("has prices that go before those of vendors, which do not count in other money", () => {
    const priceOf = (own: Partial<Parameters<typeof Launch.tokenPrices>[0]>, model: string) => {
      const { currency, prices } = Launch.tokenPrices({ currency: undefined, prices: {}, ...own })
      assert.isFunction(prices)
      return [currency, typeof prices === "function" ? prices(model) : undefined]
    }
    const known = "anthropic/claude-haiku-4-5"
    const mine = { input: 9, output: 9 }
    assert.deepStrictEqual(priceOf({}, known), ["USD", KnownModel.priceOf(known)])
    assert.deepStrictEqual(priceOf({ prices: { [known]: mine } }, known), ["USD", mine])
    assert.deepStrictEqual(priceOf({ currency: "EUR" }, known), ["EUR", undefined])
    assert.deepStrictEqual(priceOf({ currency: "EUR", prices: { [known]: mine } }, known), ["EUR", mine])
    for (const name of ["constructor", "__proto__", "ollama/x"])
      assert.deepStrictEqual(priceOf({ prices: { x: mine } }, name), ["USD", undefined])
  })

  it("refuses a tool server that cannot be meant, with its place", () => {
    const messageOf = (servers: unknown) =>
      Either.match(ConfigFile.decode(JSON.stringify({ mcp_servers: servers }), "config.json"), {
        onLeft: (error) =>
          error.message.replace(
            "config.json is not valid. Correct it; `assent help settings` lists the settings:\n",
            ""
          ),
        onRight: () => ""
      })
    const command = "node"
    const url = "https://mcp.example.com"
    assert.strictEqual(messageOf({ a: { command, args: ["x"], env: { A: "1" }, sandbox: { network: false } } }), "")
    assert.strictEqual(messageOf({ "my-server_2": { url, headers: { A: "${TOKEN}" }, timeout: 5, tools: ["x"] } }), "")
    const wrong = [
      [{ a: { command, url } }, 'mcp_servers.a: it has both "command" and "url"'],
      [{ a: {} }, 'mcp_servers.a: it has neither "command" nor "url"'],
      [{ a: { url, args: [] } }, 'mcp_servers.a: "args" means nothing for a server with "url"'],
      [{ a: { command, headers: {} } }, 'mcp_servers.a: "headers" means nothing for a server with "command"'],
      [{ a: { url: "ftp://x" } }, 'mcp_servers.a: "url" is not an http or https address'],
      [{ a: { command, colour: "red" } }, "mcp_servers.a.colour"],
      [{ a: { command, timeout: 0 } }, "mcp_servers.a.timeout"],
      [{ "": { command } }, "mcp_servers."],
      [{ a__b: { command } }, "mcp_servers.a__b"],
      [{ "a/b": { command } }, "mcp_servers.a/b"]
    ] as const
    for (const [servers, expected] of wrong) assert.include(messageOf(servers), expected, JSON.stringify(servers))
  })

  it("says in one line what is wrong with a value of another kind, and which setting was meant", () => {
    const linesOf = (text: string) =>
      Either.match(ConfigFile.decode(text, "config.json"), {
        onLeft: (error) => error.message.split("\n").slice(1),
        onRight: () => []
      })
    assert.deepStrictEqual(linesOf("[]"), ["  (file): Expected an object, actual []"])
    assert.deepStrictEqual(linesOf('"hi"'), ['  (file): Expected an object, actual "hi"'])
    assert.deepStrictEqual(linesOf('{ "modle": "x" }'), ["  modle: there is no such field here. Did you mean model?"])
    assert.deepStrictEqual(linesOf('{ "sandbox": "maybe" }'), [
      '  sandbox: Expected "auto", "require", "off" or { mode?, network?, readable?, writable? }, actual "maybe"'
    ])
    assert.deepStrictEqual(linesOf('{ "limits": [] }'), ["  limits: Expected an object, actual []"])
    assert.deepStrictEqual(linesOf('{ "escalate": 5, "sandbox": 5 }'), [
      "  escalate: Expected string or { after, to?: [channels] }, actual 5",
      '  sandbox: Expected "auto", "require", "off" or { mode?, network?, readable?, writable? }, actual 5'
    ])
  })

  it("tells every problem with its place", () => {
    const text = JSON.stringify({
      limits: { max_depth: 0, max_tokens: 1.5, max_children: "2" },
      mediator: "me",
      price_table: { "a/b": { input: -1, output: 1 }, "a/c": { input: 1 } },
      allow_inline: "yes",
      inline_allowed_plugins: "files",
      colour: "red"
    })
    const message = Either.match(ConfigFile.decode(text, "config.json"), {
      onLeft: (error) => error.message,
      onRight: () => ""
    })
    const [head, ...lines] = message.split("\n")
    assert.strictEqual(head, "config.json is not valid. Correct it; `assent help settings` lists the settings:")
    assert.deepStrictEqual(lines.map((line) => line.trim().split(":")[0]).toSorted(), [
      "allow_inline",
      "colour",
      "inline_allowed_plugins",
      "limits.max_children",
      "limits.max_depth",
      "limits.max_tokens",
      "mediator",
      "price_table.a/b.input",
      "price_table.a/c.output"
    ])
    assert.include(message, 'mediator: one of forward, agent is expected, not "me"')
  })
})
