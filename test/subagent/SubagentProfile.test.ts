import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as CompactionConfig from "../../src/conversation/CompactionConfig.js"
import * as DefaultProfiles from "../../src/subagent/DefaultProfiles.js"
import * as ProfileVariables from "../../src/subagent/ProfileVariables.js"
import * as SubagentProfile from "../../src/subagent/SubagentProfile.js"
import * as Runs from "../kit/Runs.js"

const decode = (value: unknown, name = "stem") => SubagentProfile.decode(value, { name, source: "a.json" })

const profileOf = (value: unknown, name?: string): SubagentProfile.SubagentProfile =>
  Either.getOrThrowWith(decode(value, name), (problems) => new Error(JSON.stringify(problems)))

const problemsOf = (value: unknown, name?: string): ReadonlyArray<string> =>
  Either.match(decode(value, name), {
    onLeft: (problems) => problems.map(({ path, message }) => `${path}: ${message}`),
    onRight: () => []
  })

const places = (value: unknown) => problemsOf(value).map((line) => line.slice(0, line.indexOf(": ")))

describe("SubagentProfile.decode", () => {
  it("needs a description and has a default for all else", () => {
    assert.deepStrictEqual(profileOf({ description: " Looks. " }), {
      name: "stem",
      description: "Looks.",
      plugins: null,
      model: undefined,
      provider: undefined,
      maxTurns: 10,
      autoApproved: false,
      systemInstructions: undefined,
      pluginConfigs: {},
      gc: undefined,
      iconName: undefined,
      source: "a.json"
    })
  })

  it("takes every field", () => {
    const profile = profileOf({
      name: "code_reviewer",
      description: "Reviews",
      plugins: ["file_edit", "cli", "file_edit"],
      model: "gemini-2.5-flash",
      provider: "google",
      max_turns: 5,
      auto_approved: true,
      system_instructions: "You are a reviewer.",
      plugin_configs: { cli: { depth: 2, more: [{ a: null }] } },
      gc: { type: "budget", threshold_percent: 80.5, pressure_percent: 0, preserve_recent_turns: 3 },
      icon_name: "eye"
    })
    assert.deepStrictEqual(profile, {
      name: "code_reviewer",
      description: "Reviews",
      plugins: ["file_edit", "cli"],
      model: "gemini-2.5-flash",
      provider: "google",
      maxTurns: 5,
      autoApproved: true,
      systemInstructions: "You are a reviewer.",
      pluginConfigs: { cli: { depth: 2, more: [{ a: null }] } },
      gc: {
        ...CompactionConfig.defaults,
        type: "budget",
        thresholdPercent: 80.5,
        pressurePercent: 0,
        preserveRecentTurns: 3
      },
      iconName: "eye",
      source: "a.json"
    })
  })

  it("keeps an empty list of tools apart from none given", () => {
    assert.deepStrictEqual(profileOf({ description: "d", plugins: [] }).plugins, [])
    assert.isNull(profileOf({ description: "d", plugins: null }).plugins)
    assert.isNull(profileOf({ description: "d" }).plugins)
  })

  it("takes null for a field that is left out", () => {
    const nulls = { name: null, model: null, provider: null, max_turns: null, gc: null, icon_name: null }
    assert.deepStrictEqual(profileOf({ ...nulls, description: "d" }), profileOf({ description: "d" }))
    assert.deepStrictEqual(places({ description: null }), ["$.description"])
  })

  it("tells all problems at once, each at its place", () => {
    assert.deepStrictEqual(
      places({
        name: "two words",
        plugins: ["files", 7, ""],
        model: "",
        max_turns: true,
        auto_approved: "yes",
        plugin_configs: { cli: 3 },
        gc: {
          type: "magic",
          target_percent: 101,
          pressure_percent: "x",
          max_turns: 0,
          preserve_recent_turns: -1,
          x: 1
        },
        colour: "red"
      }).toSorted(),
      [
        "$.auto_approved",
        "$.colour",
        "$.description",
        "$.gc.max_turns",
        "$.gc.preserve_recent_turns",
        "$.gc.pressure_percent",
        "$.gc.target_percent",
        "$.gc.type",
        "$.gc.x",
        "$.max_turns",
        "$.model",
        "$.name",
        "$.plugin_configs.cli",
        "$.plugins[1]",
        "$.plugins[2]"
      ]
    )
  })

  it("says what would be right", () => {
    const [type] = problemsOf({ description: "d", gc: { type: "magic" } })
    assert.strictEqual(type, "$.gc.type: one of truncate, summarize, hybrid, budget is expected, not magic")
    assert.deepStrictEqual(problemsOf({ description: "d", max_turn: 3 }), [
      "$.max_turn: there is no such field here. Did you mean max_turns?"
    ])
    assert.include(problemsOf(["files"])[0], "a profile such as {description:")
    assert.include(problemsOf({ description: "d", plugins: "files" })[0], "names such as [files, grep]")
    assert.deepStrictEqual(problemsOf({ description: "  " }), ["$.description: a description is expected"])
  })

  it("wants a model with a provider, and no provider with what is no provider's", () => {
    assert.deepStrictEqual(places({ description: "d", provider: "google" }), ["$.provider"])
    assert.deepStrictEqual(places({ description: "d", provider: "google", model: "offline" }), ["$.provider"])
    assert.deepStrictEqual(places({ description: "d", provider: "google/x", model: "y" }), ["$.provider"])
  })

  it("takes a sandbox with a command alone, with the network unless that is false", () => {
    const of = (sandbox: object) => profileOf({ description: "x", command: "agent", sandbox }).sandbox
    assert.deepStrictEqual(of({}), { network: true, writable: [] })
    assert.deepStrictEqual(of({ network: false, writable: ["/a"] }), { network: false, writable: ["/a"] })
    assert.deepStrictEqual(problemsOf({ description: "x", sandbox: {} }), [
      "$.sandbox: it confines an agent of others; name its command"
    ])
    assert.deepStrictEqual(places({ description: "x", command: "agent", sandbox: { writable: "/a", more: 1 } }), [
      "$.sandbox.more",
      "$.sandbox.writable"
    ])
  })

  it("refuses a target above the threshold, unless compaction is continuous", () => {
    const gc = (settings: object) => problemsOf({ description: "d", gc: settings })
    assert.include(gc({ threshold_percent: 50, target_percent: 70 })[0], "$.gc.target_percent: a target of 70")
    assert.deepStrictEqual(gc({ threshold_percent: 50, target_percent: 70, pressure_percent: null }), [])
    assert.deepStrictEqual(gc({ threshold_percent: 50 }), [])
    assert.strictEqual(profileOf({ description: "d", gc: { threshold_percent: 50 } }).gc?.targetPercent, 50)
  })

  it("makes compaction continuous only where that is written", () => {
    const pressure = (gc: object) => profileOf({ description: "d", gc }).gc?.pressurePercent
    assert.strictEqual(pressure({}), 90)
    assert.strictEqual(pressure({ pressure_percent: null }), 0)
    assert.strictEqual(pressure({ pressure_percent: 0 }), 0)
    assert.strictEqual(pressure({ pressure_percent: 70 }), 70)
  })

  it("wants a name that can be said, from the content or else from the file", () => {
    assert.deepStrictEqual(problemsOf({ description: "d" }, "two words"), [
      `$.name: the file's name "two words" cannot be the profile's; write one here`
    ])
    assert.strictEqual(profileOf({ description: "d", name: "überprüfer.2" }, "two words").name, "überprüfer.2")
    for (const name of ["", "-a", "a\nb", "a b", "\u001b[2J", "a".repeat(65)]) {
      assert.deepStrictEqual(places({ description: "d", name }), ["$.name"], JSON.stringify(name))
    }
  })

  it("refuses what JSON cannot say, what contains itself, and what is too deep or too large", () => {
    const itself: Array<unknown> = []
    itself.push(itself, itself)
    const deep = Array.from({ length: 5_000 }).reduce<unknown>((inner) => [inner], 1)
    const configs = (value: unknown) => ({ description: "d", plugin_configs: { cli: { value } } })
    assert.deepStrictEqual(problemsOf(configs(itself)), ["$.plugin_configs.cli.value[0]: it contains itself"])
    assert.deepStrictEqual(places(configs(new Date(0))), ["$.plugin_configs.cli.value"])
    assert.include(problemsOf(configs(deep))[0], "levels deep")
    assert.include(problemsOf(configs(Array.from({ length: 30_000 }, () => 1)))[0], "more than 20000 values")
    const twice = { shared: 1 }
    assert.deepStrictEqual(problemsOf(configs([twice, twice])), [])
  })

  it("keeps its messages short, whatever the value", () => {
    const lines = problemsOf({ description: "d", max_turns: "x".repeat(100_000), gc: { type: "y".repeat(100_000) } })
    assert.strictEqual(lines.length, 2)
    for (const line of lines) assert.isBelow(line.length, 400)
  })

  it("makes a profile or problems of any value, and never throws", () => {
    const field = FastCheck.oneof(FastCheck.jsonValue(), FastCheck.integer(), FastCheck.constant("files"))
    const near = FastCheck.record(
      {
        name: field,
        description: FastCheck.oneof(FastCheck.string({ minLength: 1 }), field),
        plugins: FastCheck.oneof(FastCheck.array(FastCheck.string()), field),
        model: field,
        provider: field,
        max_turns: field,
        auto_approved: FastCheck.oneof(FastCheck.boolean(), field),
        plugin_configs: field,
        gc: FastCheck.oneof(FastCheck.record({ type: field, target_percent: field, max_turns: field }), field)
      },
      { requiredKeys: [] }
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.oneof(near, FastCheck.jsonValue(), FastCheck.anything()), (value) => {
        const decoded = decode(value)
        if (Either.isLeft(decoded)) {
          assert.isAbove(decoded.left.length, 0)
          for (const { path, message } of decoded.left) {
            assert.match(path, /^\$/)
            assert.notStrictEqual(message, "")
          }
        } else {
          assert.isAbove(decoded.right.maxTurns, 0)
          assert.notStrictEqual(decoded.right.description, "")
        }
      }),
      { numRuns: Runs.of(500) }
    )
  })
})

describe("SubagentProfile.modelRef", () => {
  const ref = (model: string | undefined, provider?: string, parent = "anthropic/claude") =>
    SubagentProfile.modelRef({ model, provider }, parent)

  it("is the parent's where the profile names none", () => {
    assert.isUndefined(ref(undefined))
    assert.isUndefined(ref(undefined, "google"))
  })

  it("puts the provider before the model, slashes and all", () => {
    assert.strictEqual(ref("gemini", "google"), "google/gemini")
    assert.strictEqual(ref("meta-llama/llama-3", "openrouter"), "openrouter/meta-llama/llama-3")
  })

  it("takes a model with its provider, offline and scripts as they are", () => {
    assert.strictEqual(ref("google/gemini"), "google/gemini")
    assert.strictEqual(ref("offline"), "offline")
    assert.strictEqual(ref("script:a.yaml"), "script:a.yaml")
  })

  it("takes the parent's provider for a model without one", () => {
    assert.strictEqual(ref("haiku"), "anthropic/haiku")
    assert.strictEqual(ref("llama", undefined, "openrouter/meta/big"), "openrouter/llama")
  })

  it("has no provider to take from a parent that has none", () => {
    assert.strictEqual(ref("haiku", undefined, "offline"), "haiku")
    assert.strictEqual(ref("haiku", undefined, "script:/some/where.json"), "haiku")
    assert.strictEqual(ref("haiku", undefined, "script:where.json"), "haiku")
  })
})

describe("ProfileVariables", () => {
  const known: ReadonlyMap<string, string> = new Map([
    ["HOME", "/home/me"],
    ["A_1", "$& ${HOME}"]
  ])
  const expand = (value: unknown) => ProfileVariables.expand(value, (name) => known.get(name))

  it("puts in what is known, once, and leaves the rest as it is written", () => {
    assert.strictEqual(expand("${HOME}/x ${HOME}"), "/home/me/x /home/me")
    assert.strictEqual(expand("${A_1}"), "$& ${HOME}")
    for (const text of ["${NOPE}", "$HOME", "${}", "${1A}", "${HOME", "${ HOME }"])
      assert.strictEqual(expand(text), text)
  })

  it("reaches into lists and fields, and touches no name and nothing but text", () => {
    assert.deepStrictEqual(expand({ "${HOME}": ["${HOME}", 1, null, true, { a: "${HOME}" }] }), {
      "${HOME}": ["/home/me", 1, null, true, { a: "/home/me" }]
    })
  })
})

describe("the shipped profiles", () => {
  it("say what they are for and what to do", () => {
    assert.deepStrictEqual(
      DefaultProfiles.all.map(({ name, source }) => [name, source]),
      [
        ["code_reviewer", "built-in"],
        ["explore", "built-in"],
        ["plan", "built-in"]
      ]
    )
    for (const profile of DefaultProfiles.all) {
      assert.isFalse(profile.autoApproved)
      assert.isAbove(profile.systemInstructions?.length ?? 0, 200)
    }
  })
})
