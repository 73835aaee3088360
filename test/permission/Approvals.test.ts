/** Approvals in policies: what is refused in a file, whose rules hold, and which calls they reserve. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Approvals from "../../src/permission/Approvals.js"
import * as ApprovalText from "../../src/permission/ApprovalText.js"
import * as CompiledPolicy from "../../src/permission/CompiledPolicy.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as PolicyFile from "../../src/permission/PolicyFile.js"
import { commandField } from "../kit/Commands.js"

const problemsOf = (json: unknown) =>
  Either.match(PolicyFile.decode(JSON.stringify(json), "permissions.json"), {
    onLeft: ({ problems }) => problems.map(({ message, path }) => `${path}: ${message}`),
    onRight: () => []
  })

const command = (text: string) =>
  PermissionRule.subject({
    tool: "run_command",
    params: { command: text },
    commandField,
    pathFields: [],
    workspace: "/work"
  })

const needed = (policy: CompiledPolicy.Policy, text: string) => {
  const needs = policy.approvals && Approvals.needsOf(policy.approvals, command(text))
  return needs === undefined ? undefined : ApprovalText.describe(needs)
}

describe("approvals in a file", () => {
  it.each([
    { file: { approvals: [{}] }, at: "$.approvals[0]" },
    { file: { approvals: [{ patterns: [] }] }, at: "$.approvals[0]" },
    { file: { approvals: [{ patterns: ["a"], quorum: 0 }] }, at: "$.approvals[0].quorum" },
    { file: { approvals: [{ patterns: ["a"], quorum: 1.5 }] }, at: "$.approvals[0].quorum" },
    { file: { approvals: [{ patterns: ["a"], quorum: "2" }] }, at: "$.approvals[0].quorum" },
    { file: { approvals: [{ patterns: ["a"], roles: [] }] }, at: "$.approvals[0].roles[0]" },
    { file: { approvals: [{ patterns: ["a"], roles: [" ops"] }] }, at: "$.approvals[0].roles[0]" },
    { file: { approvals: [{ patterns: ["a"], deny: "all" }] }, at: "$.approvals[0].deny" },
    { file: { approvals: [{ patterns: ["a"], role: "ops" }] }, at: "$.approvals[0].role" },
    { file: { approvals: [{ patterns: ["a"] }, { tools: [""] }] }, at: "$.approvals[1].tools[0]" },
    { file: { approvals: [{ tools: ["write*"] }] }, at: "$.approvals[0].tools[0]" },
    { file: { approvals: { patterns: ["a"] } }, at: "$.approvals" },
    { file: { roles: { ops: "ada" } }, at: "$.roles.ops" },
    { file: { roles: { ops: [""] } }, at: "$.roles.ops[0]" },
    { file: { delegated: { patterns: ["*"] } }, at: "$.delegated.patterns[0]" },
    { file: { channel: { type: "webhook", endpoint: "https://x", vouches: "yes" } }, at: "$.channel.vouches" }
  ])("are refused with their place: $at", ({ at, file }) => {
    const problems = problemsOf(file)
    assert.isTrue(
      problems.some((problem) => problem.startsWith(`${at}: `)),
      problems.join("\n")
    )
  })

  it("name tools that there are", () => {
    const policy = Either.getOrThrow(PolicyFile.decode('{"approvals": [{"tools": ["run_comand"]}]}', "p.json"))
    const { message } = Either.getOrThrow(Either.flip(PolicyFile.checkTools(policy, ["run_command"])))
    assert.include(message, '$.approvals[0].tools[0]: there is no tool "run_comand". Did you mean run_command?')
  })

  it("name them in patterns as well", () => {
    const text = '{"approvals": [{"patterns": ["deploy *", "deplyo(target=*)"]}], "whitelist": {"patterns": ["pya()"]}}'
    const check = (known: ReadonlyArray<string>) =>
      PolicyFile.checkTools(Either.getOrThrow(PolicyFile.decode(text, "p.json")), known)
    const { message } = Either.getOrThrow(Either.flip(check(["deploy", "pay"])))
    assert.include(message, '$.approvals[0].patterns[1]: there is no tool "deplyo". Did you mean deploy?')
    assert.deepStrictEqual(Either.getOrThrow(check(["deplyo", "pay"])), [
      { file: "p.json", path: "$.whitelist.patterns[0]", message: 'there is no tool "pya". Did you mean pay?' }
    ])
  })

  it("that nobody could mean are refused in code as in a file", () => {
    const cases: ReadonlyArray<readonly [approval: object, problem: RegExp]> = [
      [{ tools: ["deploy"], quorum: 0 }, /approvals\.0\.quorum: a quorum is a whole number from 1 to 100/],
      [{ tools: ["deploy"], quorum: -1 }, /quorum/],
      [{ tools: ["deploy"], quorum: 1.5 }, /quorum/],
      [{ tools: ["deploy"], quorum: Number.NaN }, /quorum/],
      [{ tools: ["deploy"], quorum: "2" }, /quorum/],
      [{ tools: ["deploy"], roles: [] }, /roles/],
      [{ tools: ["deploy"], roles: ["ops "] }, /a name is not empty and has no blanks around it/],
      [{ tools: ["deploy"], deny: "nobody" }, /expected one of "one", "quorum"/],
      [{ tool: ["deploy"] }, /approvals\.0/],
      // They would reserve nothing.
      [{ quorum: 2 }, /an approval needs tools, patterns or arguments/],
      [{ quorum: 2, tools: [], patterns: [] }, /an approval needs tools, patterns or arguments/]
    ]
    for (const [approval, problem] of cases) {
      // Types see few of these: numbers come from settings, and not every program is checked.
      const source = { approvals: [approval] } as PolicySource
      assert.throws(() => CompiledPolicy.make(source), problem, JSON.stringify(approval))
      assert.isTrue(Either.isLeft(PolicyFile.decode(JSON.stringify(source), "p.json")), JSON.stringify(approval))
    }
    assert.doesNotThrow(() => CompiledPolicy.make({ approvals: [] }))
  })

  it("are remarked on where nobody could meet them", () => {
    const { warnings } = CompiledPolicy.make({
      roles: { ops: ["ada"] },
      approvals: [{ patterns: ["a"], quorum: 2, roles: ["ops"] }]
    })
    assert.deepStrictEqual(warnings, ['An approval needs 2 of: ops, and "roles" names only ada there.'])
  })
})

describe("approvals of several policies", () => {
  const user = CompiledPolicy.make({
    roles: { ops: ["ada", "grace"] },
    approvals: [{ patterns: ["deploy*"], quorum: 2, roles: ["ops"] }]
  })
  const workspace = CompiledPolicy.make({
    roles: { ops: ["mallory"], qa: ["mary"] },
    approvals: [{ patterns: ["deploy*"] }, { patterns: ["release*"], roles: ["qa"] }],
    delegated: { patterns: ["npm test"] }
  })
  const membersOf = (policy: CompiledPolicy.Policy) => policy.approvals?.map(({ need }) => need.members)

  it("add up, and whose are the roles is the person's own business", () => {
    const untrusted = CompiledPolicy.merge(user, workspace, { trusted: false })
    assert.deepStrictEqual(membersOf(untrusted), [["ada", "grace"], [], []])
    assert.deepStrictEqual(untrusted.delegated, PermissionRule.empty)
    assert.include(untrusted.warnings.join("\n"), "roles, delegated of its permission file has no effect")
    const trusted = CompiledPolicy.merge(user, workspace, { trusted: true })
    assert.deepStrictEqual(membersOf(trusted), [["ada", "grace"], [], ["mary"]])
    assert.strictEqual(needed(trusted, "deploy now"), "needs 2 of: ops, needs a person (deploy*)")
  })

  it("hold below an agent's own policy", () => {
    const own = CompiledPolicy.within(user, CompiledPolicy.make({ defaultPolicy: "allow" }))
    assert.strictEqual(needed(own, "deploy now"), "needs 2 of: ops (deploy*)")
  })
})

describe("a call is reserved", () => {
  const policy = CompiledPolicy.make({ approvals: [{ patterns: ["deploy*"], quorum: 2 }] })

  it.each([
    "deploy now",
    "cd x && deploy now",
    "true; deploy now",
    "env A=1 deploy now",
    "sudo deploy now",
    "echo a | xargs deploy",
    "sh -c 'deploy now'",
    "$(echo deploy) now",
    "d''eploy now",
    'bash -c "$X"',
    "for f in deploy; do $f; done"
  ])("however its command is written: %s", (text) => {
    assert.isDefined(needed(policy, text))
  })

  it.each(["ls", "git status", "echo deployed"])("and not where it plainly is none: %s", (text) => {
    assert.isUndefined(needed(policy, text))
  })

  it.effect("or nothing is looked at", () => Effect.sync(() => assert.isUndefined(CompiledPolicy.make({}).approvals)))
})
