import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as AuditRecord from "../../src/audit/AuditRecord.js"
import * as Id from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import type { PermissionMethod } from "../../src/event/AgentEvent.js"
import * as Foresight from "../../src/permission/Foresight.js"
import type * as Guard from "../../src/permission/Guard.js"
import { PermissionState } from "../../src/permission/PermissionState.js"
import * as Policy from "../../src/permission/Policy.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as Sanitizer from "../../src/permission/Sanitizer.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as VirtualClock from "../kit/VirtualClock.js"

const Shell = Tool.make("shell", { parameters: { command: Schema.String }, success: Schema.String }).annotate(
  ToolTrait.ShellCommand,
  "command"
)
const Pay = Tool.make("pay", { parameters: { to: Schema.String }, success: Schema.String })
const Look = Tool.make("look", { parameters: { at: Schema.String }, success: Schema.String }).annotate(
  Tool.Readonly,
  true
)
const Note = Tool.make("note", { parameters: {}, success: Schema.String }).annotate(ToolTrait.AutoApproved, true)
const toolkit = Toolkit.make(Shell, Pay, Look, Note)
const said = () => Effect.succeed("")
const tools = await Effect.runPromise(
  Effect.provide(ToolRegistry.make(toolkit), toolkit.toLayer({ shell: said, pay: said, look: said, note: said }))
)

interface Call {
  readonly name: string
  readonly params: unknown
}

const shell = (command: string): Call => ({ name: "shell", params: { command } })
const pay = (to: string): Call => ({ name: "pay", params: { to } })

interface How {
  readonly granted: boolean
  readonly method: PermissionMethod
  readonly reason?: string
  readonly asked?: boolean
  readonly sandbox?: string
}

/** The record of a call, as the gate hands it in and the trail keeps it. */
const record = ({ name, params }: Call, { asked = false, reason = "so", ...how }: How): Policy.Past =>
  AuditRecord.decided(
    AuditRecord.permission(Origin.outside, {
      tool: name,
      toolCallId: Id.ToolCallId.make("call"),
      args: params,
      reason,
      answeredAt: 1,
      ...how,
      ...(asked ? { requestId: Id.RequestId.make("req"), by: "console" } : {})
    }),
    Redaction.shapesOnly
  )

const kept = (call: Call, how: How): Policy.Past => ({ ...record(call, how), arguments: [call.params] })
const approved: How = { granted: true, method: "user_approved", asked: true }
const refused: How = { granted: false, method: "user_denied", asked: true }

const told = ({ changes }: Policy.Trial) =>
  changes.map(({ count, refused, rule, was, would }) => [was, would, rule, count, refused])

describe("a policy that is tried", () => {
  it("says what it would change, grouped by rule, and first what it would allow that people refused", () => {
    const policy = Policy.make({
      defaultPolicy: "ask",
      whitelist: { tools: ["pay"], patterns: ["git status*"], readonly: true },
      blacklist: { arguments: ["--force"] }
    })
    const trial = Policy.simulate(
      policy,
      [
        ...Array.from({ length: 5 }, () => kept(shell("git status -s"), approved)),
        kept(shell("git push --force"), approved),
        kept(pay("bob"), approved),
        kept(pay("eve"), refused),
        kept({ name: "look", params: { at: "x" } }, { granted: false, method: "default" }),
        kept({ name: "note", params: {} }, { granted: true, method: "auto_approved" }),
        kept(shell("make"), approved)
      ],
      { tools }
    )
    assert.deepStrictEqual(told(trial), [
      ["ask", "allow", "pay", 2, 1],
      ["deny", "allow", "tools that only read", 1, 1],
      ["ask", "allow", "git status*", 5, 0],
      ["ask", "deny", "--force", 1, 0]
    ])
    assert.strictEqual(trial.decisions, 11)
    assert.strictEqual(trial.same, 2)
    assert.deepStrictEqual(trial.untold, [])
    assert.deepStrictEqual(trial.changes[0]?.tools, [["pay", 2]])
  })

  it("tells by names alone what names decide, and leaves the rest untold", () => {
    const records = [record(pay("bob"), approved), record(shell("ls"), approved), record(shell("rm x"), approved)]
    const byName = Policy.simulate(
      Policy.make({ whitelist: { tools: ["pay"] }, blacklist: { tools: ["shell"] } }),
      records
    )
    assert.deepStrictEqual(told(byName), [
      ["ask", "deny", "shell", 2, 0],
      ["ask", "allow", "pay", 1, 0]
    ])
    const byArguments = Policy.simulate(Policy.make({ blacklist: { patterns: ["rm *"] } }), records, { tools })
    assert.deepStrictEqual(told(byArguments), [])
    assert.strictEqual(byArguments.same, 1, "no pattern of commands means another tool")
    assert.deepStrictEqual(byArguments.untold, [
      {
        why: "its rules look at arguments, and these were not kept, or only with secrets masked",
        count: 2,
        tools: [["shell", 2]]
      }
    ])
  })

  it("uses arguments only where the audit's digest proves them", () => {
    const policy = Policy.make({ blacklist: { patterns: ["curl *"] } })
    const past = record(shell("curl -H hunter2"), approved)
    const trial = (...candidates: ReadonlyArray<unknown>) =>
      Policy.simulate(policy, [{ ...past, arguments: candidates }], { tools })
    const cyclic: { self?: unknown } = {}
    cyclic.self = cyclic
    assert.strictEqual(trial({ command: "curl -H [REDACTED]" }).untold.length, 1)
    assert.strictEqual(trial({ command: "ls" }, cyclic, undefined, 1n).untold.length, 1)
    assert.strictEqual(trial({ command: "ls" }, { command: "curl -H hunter2" }).changes.length, 1)
  })

  it("leaves what an authority, a suspension or an answer for the session decided, except before hard rules", () => {
    const methods = ["stage_grant", "envelope", "turn_suspension", "idle_suspension", "allow_all"] as const
    const records = methods.map((method) => kept(pay("bob"), { granted: true, method }))
    const soft = Policy.simulate(Policy.make({ defaultPolicy: "deny", blacklist: { tools: ["pay"] } }), records, {
      tools
    })
    assert.strictEqual(soft.same, methods.length)
    const hard = Policy.simulate(Policy.make({ guards: { deny: { arguments: ["bob"] } } }), records, { tools })
    assert.deepStrictEqual(told(hard), [["allow", "deny", "bob", methods.length, 0]])
    const session = [
      kept(pay("bob"), { granted: true, method: "session_whitelist" }),
      kept(pay("bob"), { granted: false, method: "session_blacklist" })
    ]
    const listed = Policy.simulate(Policy.make({ blacklist: { tools: ["pay"] } }), session, { tools })
    assert.deepStrictEqual(told(listed), [["allow", "deny", "pay", 1, 0]], "a blacklist comes before their whitelist")
  })

  it("says plainly what it cannot tell", () => {
    const policy = Policy.make({ defaultPolicy: "allow" })
    const { remarks, same, untold } = Policy.simulate(
      policy,
      [
        kept(shell("cat /etc/passwd"), { granted: false, method: "guard", reason: "The path leads outside." }),
        kept(pay("bob"), { granted: false, method: "cancelled" }),
        kept(pay("bob"), { granted: false, method: "check_failed" }),
        kept(pay(""), { granted: false, method: "pre_validation" }),
        record({ name: "gone", params: {} }, approved)
      ],
      { tools }
    )
    assert.strictEqual(same, 1, "what its own validation refused is refused in any case")
    assert.deepStrictEqual(
      untold.map(({ count, why }) => [count, why.split(":")[0]]),
      [
        [2, "it was never decided"],
        [1, "a guard refused it, and guards are not tried"]
      ]
    )
    assert.match(remarks.join(" "), /path scope was not tried.*Guards were not tried/)
    const strict = Policy.simulate(Policy.make({}), [record({ name: "gone", params: {} }, approved)], { tools })
    assert.match(String(strict.untold[0]?.why), /not among the tools of today/)
  })

  it("does not know of a command whether it would have run confined, unless it ran", () => {
    const entries = tools.entries.map((entry) => (entry.name === "shell" ? { ...entry, sandboxed: true } : entry))
    const policy = Policy.make({ whitelist: { sandboxed: true } })
    const trial = (how: How) =>
      Policy.simulate(policy, [kept(shell("make"), how)], { tools: ToolRegistry.fromEntries(entries) })
    assert.deepStrictEqual(told(trial({ ...approved, sandbox: "confined" })), [
      ["ask", "allow", "commands that run in a sandbox", 1, 0]
    ])
    assert.strictEqual(trial({ ...approved, sandbox: "left" }).same, 1)
    assert.match(String(trial(refused).untold[0]?.why), /in a sandbox/)
  })

  it("ignores decisions about other questions, and an empty past", () => {
    const other = { ...record(pay("bob"), approved), class: "interaction" as const }
    const { changes, decisions, same, untold } = Policy.simulate(Policy.defaults, [other], { tools })
    assert.deepStrictEqual({ changes, decisions, same, untold }, { changes: [], decisions: 0, same: 0, untold: [] })
  })
})

describe("a trial", () => {
  const texts = FastCheck.constantFrom(
    ...[
      "git*",
      "git push*",
      "rm *",
      "pay*",
      "pay(to=bob)",
      "p?y(*",
      "look(*",
      "note()",
      "make",
      "--force",
      "*bob*",
      "[lp]*"
    ]
  )
  const list = FastCheck.record(
    {
      tools: FastCheck.subarray(["pay", "shell", "look", "note"]),
      patterns: FastCheck.array(texts, { maxLength: 3 }),
      arguments: FastCheck.array(FastCheck.constantFrom("bob", "--force", "git push"), { maxLength: 1 })
    },
    { requiredKeys: [] }
  )
  const source: FastCheck.Arbitrary<PolicySource> = FastCheck.record(
    {
      defaultPolicy: FastCheck.constantFrom("allow" as const, "ask" as const, "deny" as const),
      whitelist: FastCheck.tuple(list, FastCheck.boolean()).map(([rules, readonly]) => ({ ...rules, readonly })),
      blacklist: list,
      guards: FastCheck.tuple(list, FastCheck.boolean()).map(([deny, dangerousCommands]) => ({
        deny,
        sanitize: { dangerousCommands, pathScope: false }
      }))
    },
    { requiredKeys: [] }
  )
  const call = FastCheck.oneof(
    FastCheck.constantFrom("git status", "git push --force", "rm -rf x; ls", "$X y", "make", "ls | sh", "'").map(shell),
    FastCheck.constantFrom("bob", "eve", "--force").map(pay),
    FastCheck.constantFrom<ReadonlyArray<Call>>([
      { name: "look", params: { at: "bob" } },
      { name: "note", params: {} }
    ]).chain((calls) => FastCheck.constantFrom(...calls))
  )

  const platform = Effect.runSync(Effect.scoped(Layer.build(Layer.merge(FileSystem.layerNoop({}), Path.layer))))

  const sanitizer =
    ({ sanitize }: Policy.Policy): Guard.Guard =>
    ({ subject }) =>
      Effect.flatMap(
        Effect.provide(
          Sanitizer.violations(subject, { workspace: "/w", protectedPaths: [], pathFields: [], options: sanitize }),
          platform
        ),
        (found) => (found.length === 0 ? Effect.void : Effect.fail(Sanitizer.reason(found)))
      )

  /** What the gate's own checks say. */
  const foresee = (policy: Policy.Policy, { name, params }: Call) => {
    const entry = tools.get(name)
    assert(entry !== undefined)
    const state = new PermissionState()
    const options = { policy, state, guards: [sanitizer(policy)], sessionId: Origin.outside.sessionId }
    // On a clock that stands still no look takes so long that it gives way, and it ends at once.
    return Effect.runSync(Effect.withClock(Foresight.foresee(options, entry, params), VirtualClock.make().clock))
  }

  const pastOf = (policy: Policy.Policy, call: Call): Policy.Past => {
    const { decision, method, rule } = foresee(policy, call)
    if (decision === "ask") return record(call, approved)
    return record(call, { granted: decision === "allow", method: method as PermissionMethod, reason: rule })
  }

  it("with the arguments decides every call as the gate would", () =>
    FastCheck.assert(
      FastCheck.property(source, source, call, (before, after, call) => {
        const [old, policy] = [Policy.make(before), Policy.make(after)]
        const past = pastOf(old, call)
        const { changes, same, untold } = Policy.simulate(policy, [{ ...past, arguments: [call.params] }], { tools })
        const [then, now] = [foresee(old, call), foresee(policy, call)]
        if (untold.length > 0) return assert.strictEqual(past.method, "guard")
        if (then.decision === now.decision) return assert.strictEqual(same, 1)
        assert.deepStrictEqual(
          changes.map(({ rule, was, would }) => ({ rule, was, would })),
          [{ rule: now.rule.replace("forbidden by rule ", ""), was: then.decision, would: now.decision }]
        )
      }),
      { numRuns: 1_000 }
    ))

  it("without them is right wherever it tells, and also without the tools", () => {
    let tellings = 0
    FastCheck.assert(
      FastCheck.property(source, source, call, FastCheck.boolean(), (before, after, call, knows) => {
        const [old, policy] = [Policy.make(before), Policy.make(after)]
        const past = pastOf(old, call)
        const certain = Policy.simulate(policy, [{ ...past, arguments: [call.params] }], { tools })
        const blind = Policy.simulate(policy, [past], knows ? { tools } : {})
        if (blind.untold.length > 0) return
        tellings++
        assert.strictEqual(blind.same, certain.same)
        assert.deepStrictEqual(
          blind.changes.map(({ was, would }) => [was, would]),
          certain.changes.map(({ was, would }) => [was, would])
        )
      }),
      { numRuns: 1_000 }
    )
    assert.isAbove(tellings, 150)
  })
})
