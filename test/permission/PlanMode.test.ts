import * as Tool from "@effect/ai/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as PlanMode from "../../src/permission/PlanMode.js"
import type { ToolKind } from "../../src/tool/ToolCall.js"
import type * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import { commandField } from "../kit/Commands.js"

const plain = Tool.make("tool")
const reading = Tool.make("tool").annotate(Tool.Readonly, true)
const writing = Tool.make("tool").annotate(Tool.Readonly, false)
const harmless = Tool.make("tool").annotate(Tool.Destructive, false)
const destructive = Tool.make("tool").annotate(Tool.Destructive, true)

/** Only what the mode looks at. */
const entry = (kind: ToolKind, tool: Tool.Any, more: Partial<ToolRegistry.Entry> = {}) =>
  ({ name: "tool", kind, tool, readonly: false, webAddress: undefined, ...more }) as ToolRegistry.Entry
const subject = PermissionRule.subject({ tool: "tool", params: {} })
const web = { webAddress: "url" }

describe("in plan mode", () => {
  const table: ReadonlyArray<readonly [string, ToolRegistry.Entry, boolean]> = [
    ...(["read", "search", "think"] as const).flatMap((kind) => [
      [`a tool that is to ${kind}`, entry(kind, plain), true] as const,
      [`one that is to ${kind}, and only reads`, entry(kind, reading), true] as const,
      [`one that is to ${kind}, and denies that`, entry(kind, writing), false] as const,
      [`one that is to ${kind}, and is destructive`, entry(kind, destructive), false] as const
    ]),
    ["any other tool", entry("other", plain), false],
    ["any other one that only reads", entry("other", plain, { readonly: true }), true],
    ["any other one that reads and is destructive", entry("other", destructive, { readonly: true }), false],
    ["the end of the mode", entry("switch_mode", plain), true],
    ["a page of the web", entry("fetch", harmless, web), true],
    ["a page of the web that may change something", entry("fetch", plain, web), false],
    ["a page of the web that changes something", entry("fetch", destructive, web), false],
    [
      "a page of the web that does not only read",
      entry("fetch", writing.annotate(Tool.Destructive, false), web),
      false
    ],
    ["what is fetched from no address", entry("fetch", harmless), false],
    ["an edit", entry("edit", reading, { readonly: true }), false],
    ["work", entry("execute", reading, { readonly: true }), false]
  ]
  for (const [what, tool, runs] of table) {
    it(`${what} ${runs ? "may run" : "is refused"}`, () => {
      const refusal = PlanMode.refusal(tool, subject)
      if (runs) assert.isUndefined(refusal)
      else
        assert.match(refusal ?? "", /^plan mode: tool is not run, because it may change something\. Nothing is changed/)
    })
  }

  it("a command runs when each of its programs just reads", () => {
    const shell = entry("execute", plain, { shellCommand: commandField })
    for (const [command, runs] of [
      ["ls -la", true],
      ["git log | head", true],
      ["make", false],
      ["ls && make", false],
      ["ls > out", false]
    ] as const) {
      const call = PermissionRule.subject({ tool: "tool", params: { command }, commandField })
      const refusal = PlanMode.refusal(shell, call)
      assert.strictEqual(refusal === undefined, runs, command)
      if (!runs) assert.match(refusal ?? "", /^plan mode: only commands that just read may run/)
    }
  })

  it("a person is told the first sentence of a refusal, and other rules whole", () => {
    const refusal = PlanMode.refusal(entry("edit", plain), subject) ?? ""
    assert.strictEqual(PlanMode.forPerson(refusal), "plan mode: tool is not run, because it may change something.")
    assert.strictEqual(PlanMode.forPerson("rm *. Never."), "rm *. Never.")
    assert.strictEqual(PlanMode.blockedBy("mode", refusal), refusal)
    assert.strictEqual(PlanMode.blockedBy("session_blacklist", "rm *"), "blocked by session blacklist: rm *")
  })
})

describe("the end of plan mode", () => {
  const end = entry("switch_mode", plain)

  it("is the main agent's, and only in plan mode; other calls are free outside of it", () => {
    const said = (isPlanning: boolean, depth: number, tool = end) =>
      PlanMode.beyond({ isPlanning }, { entry: tool, origin: { depth } }, subject)
    assert.isUndefined(said(true, 0))
    assert.match(said(true, 1) ?? "", /^only the main agent proposes a plan/)
    for (const depth of [0, 1]) assert.match(said(false, depth) ?? "", /^plan mode is off: do the work/)
    const edit = entry("edit", plain)
    assert.isUndefined(said(false, 0, edit))
    assert.match(said(true, 0, edit) ?? "", /^plan mode: tool is not run/)
  })

  it("is a person's word: no rule, model or time that ran out allows it, and all may deny it", () => {
    const allow = { decision: "allow", scope: "once" } as const
    const deny = { decision: "deny", scope: "once" } as const
    for (const how of ["timeout", "yolo", "model", "recheck"] as const) {
      assert.isTrue(PlanMode.isUnheard(end, how, allow), how)
      assert.isFalse(PlanMode.isUnheard(end, how, deny), how)
      assert.isFalse(PlanMode.isUnheard(entry("edit", plain), how, allow), how)
    }
    assert.isFalse(PlanMode.isUnheard(end, "answered", allow))
  })

  it("is asked about in the mode deny, too, with what each answer does", () => {
    const other = entry("edit", plain)
    assert.isTrue(PlanMode.isSilent({ asksNobody: true }, other))
    assert.isFalse(PlanMode.isSilent({ asksNobody: true }, end))
    assert.isFalse(PlanMode.isSilent({ asksNobody: false }, other))
    assert.isUndefined(PlanMode.questionOf(other, undefined))
    assert.strictEqual(PlanMode.questionOf(end, undefined), PlanMode.question)
    assert.match(PlanMode.question.reason, /^`yes` ends plan mode .* then only another mode ends plan mode\.$/)
  })

  it("is told to the model, and its begin with what its agent does in the end", () => {
    assert.match(PlanMode.note(false, 1), /^\[Plan mode is over\. Do the work\./)
    assert.match(PlanMode.note(true, 0), /^\[Plan mode: .* call propose_plan with the whole plan\..*\]$/)
    assert.match(PlanMode.note(true, 1), /^\[Plan mode: .* Report what you found\.\]$/)
  })
})
