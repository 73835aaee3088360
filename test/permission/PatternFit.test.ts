/** Rules over the calls of a tool that can match no call, and rules in odd spelling. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import * as Glob from "../../src/core/Glob.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as PatternFit from "../../src/permission/PatternFit.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as Policy from "../../src/permission/Policy.js"
import * as PolicyRemarks from "../../src/permission/PolicyRemarks.js"
import * as PolicyFile from "../../src/permission/PolicyFile.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as SessionRule from "../../src/permission/SessionRule.js"
import * as Signature from "../../src/permission/Signature.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as UnmetRules from "../../src/runtime/UnmetRules.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as Runs from "../kit/Runs.js"

const Deploy = Tool.make("deploy", {
  parameters: {
    to: Schema.String,
    region: Schema.optional(Schema.Literal("europe", "asia")),
    count: Schema.optional(Schema.Int),
    force: Schema.optional(Schema.Boolean)
  },
  success: Schema.String
})
const Move = Tool.make("move", {
  parameters: {
    to: Schema.Struct({ account: Schema.String, note: Schema.optional(Schema.String) }),
    tags: Schema.optional(Schema.Array(Schema.String))
  },
  success: Schema.String
})
const Save = Tool.make("save", {
  parameters: { path: Schema.String.pipe(Schema.startsWith("/")), content: Schema.String },
  success: Schema.String
}).annotate(ToolTrait.Paths, ["path"])
const Shell = Tool.make("shell", { parameters: { command: Schema.String }, success: Schema.String }).annotate(
  ToolTrait.ShellCommand,
  "command"
)
const toolkit = Toolkit.make(Deploy, Move, Save, Shell)
const tools = [Deploy, Move, Save, Shell]
const done = () => Effect.succeed("done")
const handlers = toolkit.toLayer({ deploy: done, move: done, save: done, shell: done })
const registry = await Effect.runPromise(Effect.provide(ToolRegistry.make(toolkit), handlers))

/** A rule that can match no call, and the words of its error. */
const wrong: ReadonlyArray<readonly [rule: string, words: string]> = [
  ["deploy(too=production)", "Did you mean to?"],
  ["deploy(TO=production)", "Did you mean to?"],
  ["deploy(t=production)", "Did you mean to?"],
  ["deploy(*too=production*)", "Did you mean to?"],
  ["deploy(*, too=production)", "Did you mean to?"],
  ["deploy(to=production, regoin=europe)", "Did you mean region?"],
  ["deploy(region=europe, forse=true)", "Did you mean force?"],
  ["deploy(environment=production)", "Parameters: count, force, region, to."],
  ["deploy( too = 'production' )", "Did you mean to?"],
  ["dep*(too=production)", "Did you mean to?"],
  ["deplo?(regio=asia)", "Did you mean region?"],
  ["save(*pth=src/*)", "Did you mean path?"],
  ["s*e(*pth=src/*)", "Did you mean path?"],
  ["deploy(to:production)", "Did you mean deploy(to=production)?"],
  ["deploy(to: production)", "Did you mean deploy(to=production)?"],
  ["deploy(too:production)", "Did you mean deploy(to=production)?"],
  ["deploy(to==production)", "Did you mean deploy(to=production)?"],
  ["deploy(to=>production)", "Did you mean deploy(to=production)?"],
  ["deploy(to!=production)", "Did you mean to?"],
  ["move(to.account=evil)", 'Did you mean move(to=*"account":"evil"*)?'],
  ["move(to[account]=evil)", 'Did you mean move(to=*"account":"evil"*)?'],
  ['move(to["account"]=evil)', 'Did you mean move(to=*"account":"evil"*)?'],
  ["move(t.account=evil)", 'Did you mean move(to=*"account":"evil"*)?'],
  ["move(to=evil)", "It has to be JSON without blanks."],
  ['move(to=*"acount":"evil"*)', "It has to be JSON without blanks."],
  ["move(tags=a)", "It has to be JSON without blanks."],
  ["deploy(region=europ)", "Did you mean europe?"],
  ["deploy(region=Asia)", "Did you mean asia?"],
  ["deploy(region=africa)", "Values: europe, asia."],
  ["deploy(region=e*a)", "Values: europe, asia."],
  ["deploy(count=many)", "It has to be a number that its schema allows."],
  ["deploy(count=1.5)", "It has to be a number that its schema allows."],
  ["deploy(count=7.0)", "Did you mean 7?"],
  ["deploy(count=1e3)", "Did you mean 1000?"],
  ["deploy(force=yes)", "Values: true, false."],
  ["deploy(force=True)", "Did you mean true?"]
]

/** A rule, and a call that it means. */
const right: ReadonlyArray<readonly [rule: string, tool: string, params: Readonly<Record<string, unknown>>]> = [
  ...[
    "deploy(to=production)",
    "deploy(to = production)",
    "deploy(to =production)",
    "deploy(to= production)",
    "deploy( to=production )",
    "deploy(\tto\t=\tproduction\t)",
    " deploy(to=production) ",
    "deploy(to='production')",
    'deploy(to="production")',
    "deploy(to = 'production')",
    'deploy( to = "production" )',
    "deploy(to=prod*)",
    "deploy(to='prod*')",
    "deploy(to=production)*",
    "deplo?(to = production)",
    "dep*( to='production' )",
    "*ploy(*to=production*)"
  ].map((rule) => [rule, "deploy", { to: "production" }] as const),
  ...[
    "deploy(region=asia, to=production)",
    "deploy(to=production, region=asia)",
    "deploy(to=production,region=asia)",
    "deploy(to = production , region = asia)",
    "deploy(to='production',region='asia')",
    'deploy( region = "asia" , to = "production" )'
  ].map((rule) => [rule, "deploy", { to: "production", region: "asia" }] as const),
  ["deploy(count=7, to=x)", "deploy", { count: 7, to: "x" }],
  ['deploy(count="7", to=x)', "deploy", { count: 7, to: "x" }],
  ["deploy(force = true, to=x)", "deploy", { force: true, to: "x" }],
  ["deploy(to='a, b')", "deploy", { to: "a, b" }],
  ["deploy(to=it's)", "deploy", { to: "it's" }],
  ['move(to={"account":"evil"})', "move", { to: { account: "evil" } }],
  ['move(to = *"account":"evil"*)', "move", { to: { account: "evil" } }],
  ["save(*path = src/*)", "save", { content: "x", path: "src/a" }],
  ["save(*, path='src/*')", "save", { content: "x", path: "src/a" }]
]

const denying: Readonly<Record<string, (rule: string) => PolicySource>> = {
  blacklist: (rule) => ({ blacklist: { patterns: [rule] } }),
  "guards.deny": (rule) => ({ guards: { deny: { patterns: [rule] } } }),
  "approvals[0]": (rule) => ({ approvals: [{ patterns: [rule], quorum: 2 }] })
}
const allowing: typeof denying = {
  whitelist: (rule) => ({ whitelist: { patterns: [rule] } }),
  delegated: (rule) => ({ delegated: { patterns: [rule] } })
}

const fileOf = (source: PolicySource) => Either.getOrThrow(PolicyFile.decode(JSON.stringify(source), "p.json"))
const invalid = (source: PolicySource) =>
  Effect.runSync(
    Effect.flip(UnmetRules.check(registry, "this runtime", { policy: Policy.make(source) }, { text: (text) => text }))
  )

describe("a rule that can match no call", () => {
  it.each(wrong)("is an error where it is made: %s", (rule, words) => {
    for (const [place, policyOf] of Object.entries(denying)) {
      const file = Either.getOrThrow(Either.flip(PolicyFile.checkTools(fileOf(policyOf(rule)), tools)))
      assert.deepStrictEqual(
        file.problems.map(({ path }) => path),
        [`$.${place}.patterns[0]`]
      )
      assert.include(file.message, words)
    }
    for (const [place, policyOf] of Object.entries({ ...denying, ...allowing })) {
      const error = invalid(policyOf(rule))
      assert.strictEqual(error._tag, "PolicyInvalid")
      assert.include(error.message, `policy.${place}.patterns[0]: `)
      assert.include(error.message, words)
    }
    for (const verb of ["allow", "deny"] as const)
      assert.include(Either.getOrThrow(Either.flip(SessionRule.of(verb, rule, registry))).message, words)
    // What a file allows may be for another program.
    for (const policyOf of Object.values(allowing)) {
      const remarks = Either.getOrThrow(PolicyFile.checkTools(fileOf(policyOf(rule)), tools))
      assert.include(remarks.map(({ message }) => message).join(), words)
    }
  })

  it.effect("fails the making of a runtime and the start of an agent", () =>
    Effect.gen(function* () {
      const source: PolicySource = { blacklist: { patterns: ["deploy(too=production)"] } }
      const made = yield* Effect.flip(AgentRuntime.make({ toolkit, policy: Policy.make(source) })).pipe(
        Effect.provide([handlers, ScriptedModel.layer({ agents: {} }), FileSystem.layerNoop({}), Path.layer])
      )
      assert.deepInclude(made, { _tag: "PolicyInvalid", by: "this runtime" })
      const started = yield* Effect.flip(TestAgent.start({ policy: Policy.make(source) })).pipe(
        Effect.scoped,
        Effect.provide(TestAgent.layer({ toolkit, script: [] })),
        Effect.provide(handlers)
      )
      assert.deepInclude(started, { _tag: "PolicyInvalid", by: "agent main" })
    })
  )

  it("that allows has to cover all parameters", () => {
    assert.include(PatternFit.problem("save(path=src/*)", "allow", tools), "Did you mean save(*path=src/*)?")
    assert.isUndefined(PatternFit.problem("save(path=src/*)", "deny", tools))
    assert.isUndefined(PatternFit.problem("save(*path=src/*)", "allow", tools))
  })

  it("is not looked for where a call may be meant", () => {
    for (const rule of [
      "m*(too=x)",
      "mcp__*(too=x)",
      "mcp__bank__pay(too=x)",
      "shell(too=x)",
      "*(to=x)",
      "*(path=.env)",
      "*(command=rm *)",
      "*(rm *)",
      "git commit(x)",
      "deploy(production)",
      "deploy(https://example.com/*)",
      "deploy(*)",
      "deploy()"
    ])
      assert.isUndefined(PatternFit.problem(rule, "deny", tools), rule)
  })

  it("for many tools has to match a call of one of them", () => {
    const wrong: ReadonlyArray<readonly [rule: string, words: string]> = [
      ["*(too=x)", "Did you mean to?"],
      ["*(*pth=.env)", "Did you mean path?"],
      ["s*(pth=x)", "Did you mean path?"],
      ["sh*(too=x)", 'shell has no parameter "too"'],
      ["*ploy(count=many)", 'the parameter "count" of deploy is never "many"'],
      ["deplyo*(to=x)", "Did you mean deploy*?"],
      ["*eploi(to=x)", "Did you mean *eploy?"],
      ["pay*(to=x)", "begin with mcp__"]
    ]
    for (const [rule, words] of wrong) assert.include(PatternFit.problem(rule, "deny", tools) ?? "", words, rule)
  })

  it("denies by the bare name of a tool, under patterns", () => {
    for (const [rule, words] of [
      ["deploy", 'Write it under "tools". Did you mean deploy(*)?'],
      [" save ", "Did you mean save(*)?"],
      ["shell", "Did you mean shell(*)?"],
      ["depl?y", "Did you mean depl?y(*)?"],
      ["*ploy", "Did you mean *ploy(*)?"]
    ] as const)
      assert.include(PatternFit.bare(rule, tools) ?? "", words, rule)
    // The last are patterns over calls, or over commands.
    for (const rule of ["deploy*", "deploy(*)", "deploy now", "s*", "git", "*ell", "she?l"])
      assert.isUndefined(PatternFit.bare(rule, tools), rule)
    const problems = PolicyRemarks.unmatchable(
      {
        blacklist: { patterns: ["save"] },
        guards: { deny: { patterns: ["deploy"] } },
        approvals: [{ patterns: ["move"] }],
        whitelist: { patterns: ["save"] }
      },
      tools
    )
    assert.deepStrictEqual(
      problems.denying.map(({ path }) => path),
      ["$.guards.deny.patterns[0]", "$.blacklist.patterns[0]", "$.approvals[0].patterns[0]"]
    )
  })
})

describe("a rule in odd spelling", () => {
  it.each(right)("is read as it is meant: %s", (rule, tool, params) => {
    assert.isUndefined(PatternFit.problem(rule, "deny", tools))
    const given = tools.find(({ name }) => name === tool)
    const subject = PermissionRule.subject({ tool, params, takes: given, pathFields: tool === "save" ? ["path"] : [] })
    const rules = PermissionRule.compile({ ...PermissionRule.noRules, patterns: [rule] })
    assert.strictEqual(PermissionRule.denies(rules, subject), rule)
    assert.strictEqual(PermissionRule.allows(rules, subject), rule)
    for (const verb of ["allow", "deny"] as const) {
      const entry = Either.getOrThrow(SessionRule.of(verb, rule, registry))
      assert.isDefined(PermissionRule.entryMatches(entry, subject, verb), entry)
    }
    const other = PermissionRule.subject({ tool, params: { ...params, to: "staging", path: "lib/a" }, takes: given })
    assert.isUndefined(PermissionRule.denies(rules, other))
  })

  it("of an answer that was remembered keeps its quotes: they are the argument's", () => {
    const quoted = PermissionRule.subject({ tool: "deploy", params: { to: "'x'" }, takes: Deploy })
    const plain = PermissionRule.subject({ tool: "deploy", params: { to: "x" }, takes: Deploy })
    assert.isDefined(PermissionRule.entriesAllow(["deploy(to='x')"], quoted))
    assert.isUndefined(PermissionRule.entriesAllow(["deploy(to='x')"], plain))
  })
})

describe("a rule that is accepted", () => {
  const values: ReadonlyArray<Schema.Schema.AnyNoContext> = [
    Schema.Literal("a", "ab", "b"),
    Schema.Boolean,
    Schema.Int.pipe(Schema.between(0, 3)),
    Schema.Literal(1, "x", null),
    Schema.Struct({ a: Schema.Literal("x", "y"), b: Schema.optional(Schema.Boolean) }),
    Schema.Tuple(Schema.Literal("a"), Schema.Boolean)
  ]
  it("matches some value of the schema", () => {
    const value = FastCheck.constantFrom(...values)
    const piece = FastCheck.constantFrom("a", "b", "x", "true", "1", "9", "null", "*", "?", "{", '"', ",", "[a-c]", "")
    const change = FastCheck.array(FastCheck.tuple(FastCheck.nat(30), piece), { maxLength: 3 })
    let accepted = 0
    FastCheck.assert(
      FastCheck.property(value, change, FastCheck.constantFrom("p", "p", "q"), (schema, changes, name) => {
        const tool = Tool.make("t", { parameters: { p: schema }, success: Schema.Void })
        const samples: ReadonlyArray<unknown> = FastCheck.sample(Arbitrary.make(schema), 60)
        const chars = [...Signature.shown(samples[0])]
        for (const [at, piece] of changes) chars[at % (chars.length + 1)] = piece
        const glob = chars.join("")
        if (PatternFit.problem(`t(${name}=${glob})`, "deny", [tool]) !== undefined) return
        accepted++
        assert.strictEqual(name, "p")
        const rule = PermissionRule.compile({ ...PermissionRule.noRules, patterns: [`t(p=${glob})`] })
        // A wildcard may stand for a digit that a refinement excludes.
        if (Glob.isWild(glob) && schema === values[2]) return
        const isMeant = samples.some(
          (value) =>
            PermissionRule.denies(rule, PermissionRule.subject({ tool: "t", params: { p: value }, takes: tool })) !==
            undefined
        )
        assert.isTrue(isMeant, `${glob} for ${samples.map(Signature.shown).join(" ")}`)
      }),
      { numRuns: Runs.of(400) }
    )
    assert.isAbove(accepted, 0)
  })
})
