import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as PolicySources from "../../src/permission/PolicySource.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import { commandField } from "../kit/Commands.js"
import * as Runs from "../kit/Runs.js"

const decode = (value: unknown) =>
  PermissionFile.decode(typeof value === "string" ? value : JSON.stringify(value), "p.json")

const problems = (value: unknown) =>
  Either.match(decode(value), {
    onLeft: ({ problems }) => problems.map(({ path, message }) => `${path}: ${message}`),
    onRight: () => []
  })

const full = {
  version: 1,
  defaultPolicy: "deny",
  guards: {
    deny: { tools: ["drop"], patterns: ["rm -rf *"], arguments: ["--force"] },
    sanitize: {
      metacharacters: true,
      dangerousCommands: { blocked: ["x"], allowed: ["rm"] },
      pathScope: { roots: ["../shared"], allowTmp: true, allowHome: false, blockAbsolute: true }
    }
  },
  blacklist: { tools: ["a"] },
  whitelist: { tools: ["b"], patterns: ["git *"], readonly: true },
  channel: { type: "webhook", endpoint: "https://example.com/x", timeout: 30 }
} as const

describe("a permission file", () => {
  it("becomes a policy", () => {
    const policy = Either.getOrThrow(decode(full))
    assert.strictEqual(policy.defaultPolicy, "deny")
    assert.deepStrictEqual(policy.deny.rules, full.guards.deny)
    assert.deepStrictEqual(policy.blacklist.rules, { tools: ["a"], patterns: [], arguments: [] })
    assert.deepStrictEqual(policy.whitelist.rules, { tools: ["b"], patterns: ["git *"], arguments: [] })
    assert.isTrue(policy.whitelistReadonly)
    assert.deepStrictEqual(policy.sanitize, full.guards.sanitize)
    assert.deepStrictEqual(policy.channel, full.channel)
    assert.deepStrictEqual(policy.warnings, [])
  })

  it("may leave everything out", () => {
    for (const text of ["{}", '\ufeff{"version": "1.0"}']) {
      const policy = Either.getOrThrow(decode(text))
      assert.strictEqual(policy.defaultPolicy, "ask")
      assert.deepStrictEqual(policy.sanitize, { metacharacters: false, dangerousCommands: false, pathScope: "ask" })
      assert.isFalse("channel" in policy)
      assert.deepStrictEqual(policy.deny, PermissionRule.empty)
    }
  })

  it("is refused with all its problems, each with its place", () => {
    const found = problems({
      version: 2,
      defaultPolicy: "maybe",
      whitelist: { tools: ["ok", 3, " "], extra: true },
      guards: { deny: { patterns: "rm *" }, sanitise: {} },
      channel: { type: "webhook", "time out": 3 },
      blackList: {}
    })
    const places = new Set(found.map((line) => line.slice(0, line.indexOf(": "))))
    assert.deepStrictEqual(
      [...places].sort(),
      [
        "$.blackList",
        '$.channel["time out"]',
        "$.defaultPolicy",
        "$.guards.deny.patterns",
        "$.guards.sanitise",
        "$.version",
        "$.whitelist.extra",
        "$.whitelist.tools[1]",
        "$.whitelist.tools[2]"
      ],
      found.join("\n")
    )
    assert.include(found, '$.defaultPolicy: expected one of "allow", "deny", "ask"')
    assert.include(found, "$.blackList: there is no such field here. Did you mean blacklist?")
    assert.include(found, "$.whitelist.tools[2]: a rule must not be empty")
  })

  it("needs what its channel needs", () => {
    assert.deepStrictEqual(problems({ channel: { type: "webhook" } }), [
      "$.channel.endpoint: a webhook needs an endpoint"
    ])
    assert.deepStrictEqual(problems({ channel: { type: "file" } }), [
      "$.channel.directory: a file channel needs a directory"
    ])
    assert.deepStrictEqual(problems({ channel: { type: "webhook", endpoint: "ftp://x" } }), [
      "$.channel.endpoint: an endpoint starts with http:// or https://"
    ])
    assert.deepStrictEqual(problems({ channel: { type: "console", timeout: -1 } }), [])
  })

  it("that is not JSON, or no object, says so", () => {
    assert.match(problems("{")[0] ?? "", /^\$: not JSON: /)
    assert.strictEqual(problems("[]").length > 0, true)
    assert.strictEqual(problems("null").length > 0, true)
    const error = Either.getOrThrow(Either.flip(decode("{")))
    assert.match(error.message, /^The permission file p\.json is not valid. Correct it:\n {2}\$: not JSON/)
  })

  it("is warned about the same entry in both lists, and stays valid", () => {
    const policy = Either.getOrThrow(
      decode({
        whitelist: { tools: ["a", "b"] },
        blacklist: { tools: ["b"], patterns: ["a"] },
        guards: { deny: { tools: ["a"] } }
      })
    )
    assert.deepStrictEqual(policy.warnings, [
      '"a" is in whitelist.tools and in guards.deny.tools: it is denied.',
      '"b" is in whitelist.tools and in blacklist.tools: it is denied.'
    ])
  })

  it.scopedLive("is read from disk, and its absence is a failure", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const directory = yield* fs.makeTempDirectoryScoped()
      yield* fs.writeFileString(`${directory}/p.json`, JSON.stringify(full))
      const policy = yield* PermissionFile.load(`${directory}/p.json`)
      assert.deepStrictEqual(policy.source, full)
      const missing = yield* Effect.flip(PermissionFile.load(`${directory}/none.json`))
      assert.deepStrictEqual(
        { ...missing },
        { ...new PermissionFile.PermissionFileUnreadable({ path: `${directory}/none.json`, reason: "NotFound" }) }
      )
      yield* fs.writeFileString(`${directory}/p.json`, '{"x":1}')
      const invalid = yield* Effect.flip(PermissionFile.load(`${directory}/p.json`))
      assert.strictEqual(invalid._tag, "PermissionFileInvalid")
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

describe("the policy of a workspace", () => {
  const user = PermissionFile.policy({ whitelist: { tools: ["a"] }, blacklist: { tools: ["b"] } })
  const workspace = PermissionFile.policy({
    defaultPolicy: "allow",
    whitelist: { tools: ["c"], readonly: true },
    blacklist: { tools: ["d"] },
    guards: { deny: { patterns: ["x*"] }, sanitize: { metacharacters: true, pathScope: false } },
    channel: { type: "queue" }
  })

  it("adds its refusals, and its permissions when it is trusted", () => {
    const merged = PermissionFile.merge(user, workspace, { trusted: true })
    assert.strictEqual(merged.defaultPolicy, "allow")
    assert.deepStrictEqual(merged.whitelist.rules.tools, ["a", "c"])
    assert.deepStrictEqual(merged.blacklist.rules.tools, ["b", "d"])
    assert.deepStrictEqual(merged.deny.rules.patterns, ["x*"])
    assert.isTrue(merged.whitelistReadonly)
    assert.deepStrictEqual(merged.channel, { type: "queue" })
    assert.deepStrictEqual(merged.sanitize, { metacharacters: true, dangerousCommands: false, pathScope: false })
    assert.deepStrictEqual(merged.warnings, [])
  })

  it("only takes away until then, and says what has no effect", () => {
    const merged = PermissionFile.merge(user, workspace, { trusted: false })
    assert.strictEqual(merged.defaultPolicy, "ask")
    assert.deepStrictEqual(merged.whitelist.rules.tools, ["a"])
    assert.deepStrictEqual(merged.blacklist.rules.tools, ["b", "d"])
    assert.deepStrictEqual(merged.deny.rules.patterns, ["x*"])
    assert.isFalse(merged.whitelistReadonly)
    assert.isFalse("channel" in merged)
    assert.deepStrictEqual(merged.sanitize, { metacharacters: true, dangerousCommands: false, pathScope: "ask" })
    assert.deepStrictEqual(merged.warnings, [
      "The workspace is not trusted: guards.sanitize.pathScope, whitelist, defaultPolicy, channel of its permission file has no effect."
    ])
    assert.isTrue(PermissionFile.widens(workspace))
    assert.isFalse(PermissionFile.widens(PermissionFile.policy({ defaultPolicy: "deny", blacklist: { tools: ["x"] } })))
  })

  it("may deny by default without being trusted", () => {
    const strict = PermissionFile.policy({ defaultPolicy: "deny" })
    assert.strictEqual(PermissionFile.merge(user, strict, { trusted: false }).defaultPolicy, "deny")
    assert.strictEqual(PermissionFile.merge(strict, user, { trusted: false }).defaultPolicy, "deny")
  })

  it("never widens what an untrusted workspace's user would get", () => {
    const names = fc.subarray(["a", "b", "c", "read*", "git *", "*"])
    const list = fc.record({ tools: names, patterns: names, arguments: names }, { requiredKeys: [] })
    const optionally = <A>(arbitrary: fc.Arbitrary<A>) => fc.oneof(arbitrary, fc.boolean())
    const source = fc.record(
      {
        defaultPolicy: fc.constantFrom("allow", "deny", "ask"),
        blacklist: list,
        whitelist: fc.record({ tools: names, patterns: names, readonly: fc.boolean() }, { requiredKeys: [] }),
        guards: fc.record(
          {
            deny: list,
            sanitize: fc.record(
              {
                metacharacters: fc.boolean(),
                dangerousCommands: optionally(
                  fc.record(
                    { blocked: fc.subarray(["x", "y"]), allowed: fc.subarray(["rm", "x"]) },
                    { requiredKeys: [] }
                  )
                ),
                pathScope: optionally(
                  fc.record(
                    {
                      roots: fc.subarray(["r", "s"]),
                      allowTmp: fc.boolean(),
                      allowHome: fc.boolean(),
                      blockAbsolute: fc.boolean()
                    },
                    { requiredKeys: [] }
                  )
                )
              },
              { requiredKeys: [] }
            )
          },
          { requiredKeys: [] }
        )
      },
      { requiredKeys: [] }
    ) as fc.Arbitrary<PolicySource>
    const calls = [
      ...["a", "b", "c", "read_x"].map((tool) => PermissionRule.subject({ tool, params: { p: "a", q: "b" } })),
      ...["git log", "git log; a", "b", "a $X"].map((command) =>
        PermissionRule.subject({ tool: "cli", params: { command }, commandField })
      )
    ]
    const rank = { deny: 0, ask: 1, allow: 2 }
    const decide = (policy: PermissionFile.Policy, call: PermissionRule.Subject) =>
      PermissionRule.denies(policy.deny, call) !== undefined ||
      PermissionRule.denies(policy.blacklist, call) !== undefined
        ? rank.deny
        : PermissionRule.allows(policy.whitelist, call) !== undefined
          ? rank.allow
          : rank[policy.defaultPolicy]
    const blocks = ({ sanitize: { dangerousCommands: rule } }: PermissionFile.Policy, program: string) =>
      rule !== false &&
      (rule === true || rule.allowed?.includes(program) !== true) &&
      (program === "rm" || (rule !== true && rule.blocked?.includes(program) === true))
    const reaches =
      ({ sanitize: { pathScope: scope } }: PermissionFile.Policy) =>
      (place: string) =>
        typeof scope === "object"
          ? place === "tmp"
            ? scope.allowTmp !== false
            : (place === "home" ? scope.allowHome : scope.roots?.includes(place)) === true
          : scope === false || scope === "off" || place === "tmp"
    fc.assert(
      fc.property(source, source, (mine, theirs) => {
        const user = PermissionFile.policy(mine)
        const merged = PermissionFile.merge(user, PermissionFile.policy(theirs), { trusted: false })
        for (const call of calls) assert.isAtMost(decide(merged, call), decide(user, call))
        assert.isTrue(merged.sanitize.metacharacters || !user.sanitize.metacharacters)
        for (const program of ["rm", "x", "y"]) assert.isTrue(blocks(merged, program) || !blocks(user, program))
        for (const place of ["tmp", "home", "r", "s", "/"])
          assert.isTrue(reaches(user)(place) || !reaches(merged)(place))
        assert.isFalse(merged.whitelistReadonly && !user.whitelistReadonly)
        assert.deepStrictEqual(merged.channel, user.channel)
      }),
      { numRuns: Runs.of(1000) }
    )
  })
})

describe("what a trusted workspace adds", () => {
  it("is reading and sandboxes that either file allows, and commands as the person says", () => {
    const allowing = (readonly?: true, sandboxed?: true | "reading"): PolicySource => ({
      whitelist: { ...(readonly !== undefined && { readonly }), ...(sandboxed !== undefined && { sandboxed }) }
    })
    for (const one of [undefined, true] as const) {
      for (const other of [undefined, true] as const) {
        const [user, workspace] = [allowing(one, one), allowing(other, other && "reading")]
        const merged = (trusted: boolean) => PolicySources.merge(user, workspace, trusted).whitelist
        assert.strictEqual(merged(true)?.readonly, one === true || other === true)
        assert.strictEqual(merged(true)?.sandboxed, one ?? workspace.whitelist?.sandboxed)
        assert.deepStrictEqual(merged(false), user.whitelist)
      }
    }
    for (const one of [undefined, true] as const) {
      for (const other of [undefined, true] as const) {
        const strict = (metacharacters: true | undefined): PolicySource => ({
          guards: { sanitize: metacharacters === undefined ? {} : { metacharacters } }
        })
        const { guards } = PolicySources.merge(strict(one), strict(other), false)
        assert.strictEqual(guards?.sanitize?.metacharacters, one === true || other === true)
      }
    }
  })
})

describe("a workspace's file in words", () => {
  const everything: PolicySource = {
    defaultPolicy: "allow",
    whitelist: { tools: ["a"], patterns: ["b(*)"], arguments: ["c d"], readonly: true, sandboxed: true },
    roles: { ops: ["ada", "grace"] },
    delegated: { tools: ["e"], patterns: ["f(*)"], arguments: ["g"] },
    channel: { type: "queue" },
    guards: {
      deny: { tools: ["h"], patterns: ["i(*)"], arguments: ["j"] },
      sanitize: { metacharacters: true, dangerousCommands: { blocked: ["rm"] }, pathScope: "off" }
    },
    blacklist: { tools: ["k"], patterns: ["l(*)"], arguments: ["m"] },
    approvals: [{ patterns: ["deploy*"], quorum: 2 }]
  }

  it("says what it allows, one line for each rule", () => {
    assert.deepStrictEqual(PolicySources.allowances({}), [])
    assert.deepStrictEqual(
      PolicySources.allowances({ defaultPolicy: "deny", whitelist: { readonly: false, sandboxed: false } }),
      []
    )
    assert.deepStrictEqual(PolicySources.allowances(everything), [
      "every call that no rule decides (defaultPolicy: allow)",
      "the tool a, with any arguments",
      "calls like b(*)",
      "calls with the arguments c d",
      "every tool that only reads",
      "every command that runs in a sandbox",
      "the role ops is that of ada, grace",
      "a model may allow the tool e",
      "a model may allow calls like f(*)",
      "a model may allow calls with the arguments g",
      'questions go to the channel {"type":"queue"}',
      "paths anywhere outside the workspace"
    ])
    for (const [pathScope, line] of [
      [false, ["paths anywhere outside the workspace"]],
      ["ask", []],
      [{ roots: ["/x"] }, ['paths as in {"roots":["/x"]}']]
    ] as const)
      assert.deepStrictEqual(PolicySources.allowances({ guards: { sanitize: { pathScope } } }), line)
  })

  it("says what it denies and reserves, one line for each rule", () => {
    assert.deepStrictEqual(PolicySources.denials({}), [])
    assert.deepStrictEqual(
      PolicySources.denials({
        defaultPolicy: "allow",
        guards: { sanitize: { metacharacters: false, dangerousCommands: false } }
      }),
      []
    )
    assert.deepStrictEqual(PolicySources.denials({ ...everything, defaultPolicy: "deny" }), [
      "every call that no rule decides (defaultPolicy: deny)",
      "the tool h",
      "calls like i(*)",
      "calls with the arguments j",
      "the tool k",
      "calls like l(*)",
      "calls with the arguments m",
      'what is reserved by {"patterns":["deploy*"],"quorum":2}',
      "metacharacters of a shell",
      'dangerous commands ({"blocked":["rm"]})'
    ])
  })

  it("says what has no effect without trust", () => {
    const said = (source: PolicySource) =>
      /^The workspace is not trusted: (.*) of its permission file has no effect\.$/.exec(
        PolicySources.ignored(source).join()
      )?.[1]
    assert.isUndefined(said({}))
    assert.isUndefined(said({ defaultPolicy: "deny", blacklist: { tools: ["a"] }, approvals: [{ tools: ["a"] }] }))
    assert.strictEqual(
      said(everything),
      "guards.sanitize.pathScope, whitelist, defaultPolicy, roles, delegated, channel"
    )
    for (const [pathScope, isMilder] of [
      ["ask", false],
      [{}, false],
      [{ roots: [] }, false],
      [{ roots: ["/x"] }, true],
      [{ allowHome: true }, true],
      [{ allowHome: false }, false],
      ["off", true]
    ] as const) {
      const source = { guards: { sanitize: { pathScope } } }
      assert.strictEqual(said(source), isMilder ? "guards.sanitize.pathScope" : undefined, JSON.stringify(pathScope))
    }
  })
})
