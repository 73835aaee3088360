/** Patterns over the calls of a tool, to deny and to reserve: over those of one that runs commands, and of any other. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import { commandField } from "../kit/Commands.js"
import * as Kit from "../kit/gate.js"

const patterns = [
  "shell(rm *)",
  "shell(command=rm*)",
  "shell(command=rm *)",
  "shell( rm *)",
  "shell(rm *",
  "shell(command=rm *, cwd=src/*)",
  "shell(background=true, command=rm *)",
  "sh*(command=rm *)"
]

const commands = ["rm x", "git status; rm x", "env FOO=1 rm -rf x", "echo $(rm x)", "ls && ( rm x )"]

const lists: Readonly<Record<string, (pattern: string) => PolicySource>> = {
  "in a blacklist": (pattern) => ({ defaultPolicy: "allow", blacklist: { patterns: [pattern] } }),
  "in the guards": (pattern) => ({ defaultPolicy: "allow", guards: { deny: { patterns: [pattern] } } }),
  "in approvals": (pattern) => ({ defaultPolicy: "allow", approvals: [{ patterns: [pattern], quorum: 2 }] })
}

describe("a pattern over the calls of a tool that runs commands", () => {
  for (const [where, policyOf] of Object.entries(lists)) {
    it.effect.each(patterns)(`is one over its commands, ${where}: %s`, (pattern) =>
      Effect.gen(function* () {
        const { interactor } = yield* TestInteractor.make({ id: "ada", script: ["y"] })
        const kit = yield* Kit.make({ policy: policyOf(pattern), interactor })
        for (const command of commands) {
          assert.strictEqual((yield* kit.check("shell", { command }))._tag, "Denied", command)
        }
        for (const command of ["ls x", "echo rmdir"]) {
          assert.strictEqual((yield* kit.check("shell", { command }))._tag, "Allowed", command)
        }
        // Nobody is there to be asked about what cannot be told.
        const silent = yield* Kit.make({ policy: policyOf(pattern), person: [] })
        for (const command of ["$X y", "f() { ls; }; f", 'eval "$x"', "curl x | sh", "LD_PRELOAD=x ls"]) {
          assert.strictEqual((yield* silent.check("shell", { command }))._tag, "Denied", command)
        }
      })
    )
  }

  it.effect("is one over its commands in a session's list", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.make({ policy: { defaultPolicy: "allow" }, person: [] })
      kit.state.deny("shell(rm *)")
      assert.strictEqual((yield* kit.check("shell", { command: "git status; rm x" }))._tag, "Denied")
      assert.strictEqual((yield* kit.check("shell", { command: "$X" }))._tag, "Denied")
      assert.strictEqual((yield* kit.check("shell", { command: "ls" }))._tag, "Allowed")
    })
  )

  it.effect("is about that tool alone, and allows nothing", () =>
    Effect.gen(function* () {
      const other = yield* Kit.make({ policy: { defaultPolicy: "allow", blacklist: { patterns: ["bash(rm *)"] } } })
      assert.strictEqual((yield* other.check("shell", { command: "rm x" }))._tag, "Allowed")
      const allowing = yield* Kit.make({
        policy: { defaultPolicy: "deny", whitelist: { patterns: ["shell(git status)"] } }
      })
      assert.strictEqual((yield* allowing.check("shell", { command: "git status" }))._tag, "Denied")
    })
  )

  it.effect("costs no more than it is long, however it is written", () =>
    Effect.gen(function* () {
      const none = ["a".repeat(100_000), "*-".repeat(50_000), "shell(".repeat(15_000)]
      const quiet = yield* Kit.make({ policy: { defaultPolicy: "allow", blacklist: { patterns: none } } })
      assert.strictEqual((yield* quiet.check("shell", { command: "ls" }))._tag, "Allowed")
      // Nobody can say what that means.
      const patterns = [`shell(${"a=,".repeat(30_000)})`]
      const kit = yield* Kit.make({ policy: { defaultPolicy: "allow", blacklist: { patterns } } })
      assert.strictEqual((yield* kit.check("shell", { command: "ls" }))._tag, "Denied")
    })
  )
})

const deploy = {
  parametersSchema: Schema.Struct({
    target: Schema.optionalWith(Schema.Literal("staging", "production"), { default: () => "production" }),
    by: Schema.optional(Schema.String),
    count: Schema.optional(Schema.NumberFromString),
    tags: Schema.optional(Schema.Array(Schema.String))
  })
}

const command = {
  parametersSchema: Schema.Struct({
    command: Schema.String,
    cwd: Schema.optional(Schema.String),
    sandbox: Schema.optional(Schema.String)
  })
}

const further: ReadonlyArray<Readonly<Record<string, unknown>>> = [
  {},
  { a: 1 },
  { zz: "target=staging" },
  { by: "x" },
  { by: "x, target=staging", "dry-run": true, zz: null },
  { tags: ["a", "b"] },
  { "": "", "a, b": "=" }
]

describe("a pattern over the calls of a tool, to deny", () => {
  const means = [
    ["deploy(target=production)", { target: "production" }],
    ["deploy(target=production)", {}],
    ["deploy(target=prod*)", { target: "production" }],
    ["deploy(*target=production*)", { target: "production" }],
    ["deploy(*, target=production, *)", { target: "production" }],
    ["deploy(target=production)*", { target: "production" }],
    ["deploy(target=production", { target: "production" }],
    ["deploy(*production)", { target: "production" }],
    ["deploy(production)", { target: "production" }],
    ["dep*(target=production)", { target: "production" }],
    ["deploy(target=production, count=7)", { count: "7", target: "production" }],
    ["deploy(count=7, target=production)", { count: " 7.0", target: "production" }],
    ['deploy(tags=[[]"a","b"])', { tags: ["a", "b"] }]
  ] as const
  it.each(means)("means a call whatever else is said: %s", (pattern, params) => {
    const rules = PermissionRule.compile({ ...PermissionRule.noRules, patterns: [pattern] })
    for (const more of further) {
      for (const given of [
        { ...more, ...params },
        { ...params, ...more }
      ]) {
        if ("tags" in params && "tags" in more) continue
        const subject = PermissionRule.subject({ tool: "deploy", params: given, takes: deploy })
        assert.strictEqual(PermissionRule.denies(rules, subject), pattern, JSON.stringify(given))
      }
    }
  })

  it.each([
    ["deploy(target=production)", { target: "staging", by: "production" }],
    ["deploy(target=production)", { target: "staging", zz: "target=production" }],
    ["deploy(count=7)", { count: "77" }],
    ["deploy(count=7)", {}],
    ["deploy(production)", { target: "staging" }],
    ["rollout(target=production)", { target: "production" }]
  ])("means no other call: %s", (pattern, params) => {
    const rules = PermissionRule.compile({ ...PermissionRule.noRules, patterns: [pattern] })
    assert.isUndefined(PermissionRule.denies(rules, PermissionRule.subject({ tool: "deploy", params, takes: deploy })))
  })

  it("means what a tool has by default and how it reads a text, also as words", () => {
    const rules = PermissionRule.compile({ ...PermissionRule.noRules, arguments: ["production"] })
    const subject = (params: unknown) => PermissionRule.subject({ tool: "deploy", params, takes: deploy })
    for (const params of [{}, undefined, { by: "x" }]) assert.isDefined(PermissionRule.denies(rules, subject(params)))
    assert.isUndefined(PermissionRule.denies(rules, subject({ target: "staging" })))
  })

  it.each([
    ["shell(sandbox=off)", { sandbox: "off" }],
    ["shell(*sandbox=off*)", { sandbox: "off" }],
    ["shell(*sandbox=*)", { sandbox: "network" }],
    ["shell(cwd=prod*)", { cwd: "./prod/x" }],
    ["shell(cwd=prod, sandbox=off)", { cwd: "prod/", sandbox: "off" }]
  ])("means what a tool that runs commands is told beside its command: %s", (pattern, params) => {
    const rules = PermissionRule.compile({ ...PermissionRule.noRules, patterns: [pattern] })
    const subject = (params: object) =>
      PermissionRule.subject({ tool: "shell", params, commandField, pathFields: ["cwd"], takes: command })
    for (const more of [{}, { a: 1, zz: 2 }]) {
      assert.strictEqual(PermissionRule.denies(rules, subject({ command: "ls", ...params, ...more })), pattern)
      assert.isUndefined(PermissionRule.denies(rules, subject({ command: "ls", ...more })))
      // It says nothing of commands.
      assert.isFalse(PermissionRule.concernsCommands(rules, subject({ command: "$X", ...more }).call))
    }
  })
})
