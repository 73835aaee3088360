import * as Effect from "effect/Effect"
import { assert, describe, it } from "@effect/vitest"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as PlanMode from "../../src/permission/PlanMode.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { PermissionState } from "../../src/permission/PermissionState.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import { registry, ses } from "../kit/gate.js"
import { commandField } from "../kit/Commands.js"

const root = ses("root")
const child = ses("child")
const plain = { readonly: false, autoApproved: false }

const call = (tool: string, params: unknown = {}) => PermissionRule.subject({ tool, params })
const shell = (command: string) => PermissionRule.subject({ tool: "shell", params: { command }, commandField })

const decide = (
  state: PermissionState,
  subject: PermissionRule.Subject,
  {
    policy = {},
    session = root,
    traits = plain
  }: Partial<{ policy: PolicySource; session: typeof root; traits: typeof plain }> = {}
) => {
  const { decision, method } = state.evaluate(PermissionFile.policy(policy), subject, traits, session)
  return `${decision} (${method})`
}

describe("rules of the project", () => {
  const project = (...entries: ReadonlyArray<string>) => ({
    ...PermissionFile.defaults,
    project: { entries: () => new Set(entries), revoke: () => Effect.void }
  })
  const under = (state: PermissionState, policy: ReturnType<typeof project>, tool = "a") => {
    const { decision, method, rule } = state.evaluate(policy, call(tool), plain, root)
    return `${decision} (${method}): ${rule}`
  }

  it("allow what no list denies, before the default", () => {
    const state = new PermissionState()
    assert.strictEqual(under(state, project("a")), "allow (whitelist): a (in this project)")
    assert.strictEqual(under(state, project("a"), "b"), "ask (default): the default is ask")
    state.deny("a")
    assert.strictEqual(under(state, project("a")), "deny (session_blacklist): a")
    const denying = { ...PermissionFile.policy({ blacklist: { tools: ["a"] } }), project: project("a").project }
    assert.strictEqual(new PermissionState().evaluate(denying, call("a"), plain, root).method, "blacklist")
  })

  it("are no part of a session, which does not take them with it", () => {
    const state = new PermissionState()
    under(state, project("a"))
    assert.deepStrictEqual(state.snapshot(), new PermissionState().snapshot())
  })
})

describe("suspensions", () => {
  it("of a turn and of idling belong to one session, of all to everybody", () => {
    const state = new PermissionState()
    state.suspend("turn", child)
    assert.strictEqual(decide(state, call("a"), { session: child }), "allow (turn_suspension)")
    assert.strictEqual(decide(state, call("a"), { session: root }), "ask (default)")
    state.suspend("all", child)
    assert.strictEqual(decide(state, call("a"), { session: root }), "allow (allow_all)")
  })

  it("end with what they were for, and say whether they were", () => {
    const state = new PermissionState()
    state.suspend("turn", root)
    state.suspend("idle", root)
    assert.isFalse(state.endTurn(child))
    assert.isTrue(state.endTurn(root))
    assert.isFalse(state.endTurn(root))
    assert.strictEqual(decide(state, call("a")), "allow (idle_suspension)")
    assert.isTrue(state.becomeIdle(root))
    assert.strictEqual(decide(state, call("a")), "ask (default)")
  })

  it("tell the session when they end, and at no other time", () => {
    const state = new PermissionState()
    let changes = 0
    state.suspend("turn", root)
    state.changed = () => changes++
    state.endTurn(child)
    assert.strictEqual(changes, 0)
    state.endTurn(root)
    assert.strictEqual(changes, 1)
  })

  it("all end with resume, and none with clear", () => {
    const state = new PermissionState()
    for (const scope of ["turn", "idle", "all"] as const) state.suspend(scope, root)
    state.clear()
    assert.strictEqual(state.status(PermissionFile.defaults, root).suspension, "turn")
    state.resume()
    assert.deepStrictEqual(state.status(PermissionFile.defaults, root), {
      mode: "ask",
      suspension: undefined,
      allow: [],
      deny: []
    })
  })

  it("hold over denials: guards are not their business", () => {
    const state = new PermissionState()
    state.deny("a")
    state.suspend("all", root)
    assert.strictEqual(decide(state, call("a"), { policy: { blacklist: { tools: ["a"] } } }), "allow (allow_all)")
  })
})

describe("the call that ends plan mode", () => {
  it.effect("is refused outside of plan mode and to subagents, and never as a call that changes something", () =>
    Effect.gen(function* () {
      const entry = yield* Effect.fromNullable((yield* registry).get("finish"))
      const found = (isPlanning: boolean, depth: number) =>
        PlanMode.beyond({ isPlanning }, { entry, origin: { depth } }, call(entry.name))
      assert.include(found(false, 0), "plan mode is off")
      assert.include(found(true, 1), "only the main agent")
      assert.isUndefined(found(true, 0))
    })
  )
})

describe("session lists", () => {
  it("an exact name lifts patterns over names, never those over signatures", () => {
    const state = new PermissionState()
    state.deny("create*")
    state.allow("createPlan")
    assert.strictEqual(decide(state, call("createPlan")), "allow (session_whitelist)")
    assert.strictEqual(decide(state, call("createFile")), "deny (session_blacklist)")
    state.deny("createPlan(*secret*)")
    assert.strictEqual(decide(state, call("createPlan", { about: "secret" })), "deny (session_blacklist)")
    assert.strictEqual(decide(state, call("createPlan", { about: "cakes" })), "allow (session_whitelist)")
  })

  it("a pattern over names does not lift another one", () => {
    const state = new PermissionState()
    state.deny("create*")
    state.allow("create*n")
    assert.strictEqual(decide(state, call("createPlan")), "deny (session_blacklist)")
  })

  it("the exact name of a command tool does not lift what was denied about commands", () => {
    const state = new PermissionState()
    state.allow("shell")
    state.deny("rm *")
    assert.strictEqual(decide(state, shell("ls")), "allow (session_whitelist)")
    assert.strictEqual(decide(state, shell("ls && rm -rf x")), "deny (session_blacklist)")
  })

  it("remember the later of two words about the same entry", () => {
    const state = new PermissionState()
    state.allow("a")
    state.deny("a")
    assert.strictEqual(decide(state, call("a")), "deny (session_blacklist)")
    state.allow("a")
    assert.strictEqual(decide(state, call("a")), "allow (session_whitelist)")
    assert.deepStrictEqual(state.status(PermissionFile.defaults, root).deny, [])
  })

  it("remember it too where one word was of a person's, and the other came of an answer", () => {
    const state = new PermissionState()
    const never = { decision: "deny", scope: "session" } as const
    state.apply(never, "(reading) git *", root)
    assert.strictEqual(decide(state, shell("git log")), "deny (session_blacklist)")
    state.allow("git *")
    assert.strictEqual(decide(state, shell("git log")), "allow (session_whitelist)")
    state.allow("(reading) ls *")
    state.deny("ls")
    assert.deepStrictEqual(state.status(PermissionFile.defaults, root).allow, ["git *"])
  })

  it("take what an older journal holds for what was remembered by name", () => {
    const state = new PermissionState()
    const older = { allow: ["git *", "touch *", "npm test"], deny: [], all: false, turn: [], idle: [] }
    state.restore(older)
    assert.strictEqual(decide(state, shell("git log")), "allow (session_whitelist)")
    assert.strictEqual(decide(state, shell("git push")), "ask (default)")
    assert.strictEqual(decide(state, shell("touch a")), "ask (default)")
    const newer = new PermissionState()
    newer.allow("git *")
    const again = new PermissionState()
    again.restore(newer.snapshot())
    assert.strictEqual(decide(again, shell("git push")), "allow (session_whitelist)")
  })

  it("allow a compound only when entries allow all of it", () => {
    const state = new PermissionState()
    state.allow("git *")
    assert.strictEqual(decide(state, shell("git status && make")), "ask (default)")
    state.allow("make *")
    assert.strictEqual(decide(state, shell("git status && make")), "allow (session_whitelist)")
    assert.strictEqual(decide(state, shell("git status > x")), "ask (default)")
  })

  it("what the policy denies, no session list allows; what it allows, a session list may deny", () => {
    const state = new PermissionState()
    state.allow("a")
    state.deny("b")
    assert.strictEqual(decide(state, call("a"), { policy: { blacklist: { tools: ["a"] } } }), "deny (blacklist)")
    assert.strictEqual(
      decide(state, call("b"), { policy: { whitelist: { tools: ["b"] } } }),
      "deny (session_blacklist)"
    )
  })
})

describe("traits and defaults", () => {
  it("a tool that asks nobody is allowed unless somebody denied it", () => {
    const state = new PermissionState()
    const traits = { readonly: false, autoApproved: true }
    assert.strictEqual(decide(state, call("a"), { traits, policy: { defaultPolicy: "deny" } }), "allow (auto_approved)")
    state.deny("a")
    assert.strictEqual(decide(state, call("a"), { traits }), "deny (session_blacklist)")
  })

  it("a tool that only reads is asked about unless the policy allows reading", () => {
    const state = new PermissionState()
    const traits = { readonly: true, autoApproved: false }
    assert.strictEqual(decide(state, call("a"), { traits }), "ask (default)")
    assert.strictEqual(
      decide(state, call("a"), { traits, policy: { whitelist: { readonly: true } } }),
      "allow (whitelist)"
    )
  })

  it("the mode goes before the policy's default, until it is forgotten", () => {
    const state = new PermissionState()
    const policy: PolicySource = { defaultPolicy: "allow" }
    state.setMode("deny")
    assert.strictEqual(decide(state, call("a"), { policy }), "deny (mode)")
    state.clear()
    assert.strictEqual(decide(state, call("a"), { policy }), "allow (default)")
  })
})

describe("answers", () => {
  it("of once change nothing, nor do edits", () => {
    const state = new PermissionState()
    state.apply({ decision: "allow", scope: "once" }, "a", root)
    state.apply({ decision: "deny", scope: "once", comment: "no" }, "a", root)
    state.apply({ decision: "edit", editedArguments: {} }, "a", root)
    assert.deepStrictEqual(
      state.status(PermissionFile.defaults, root),
      new PermissionState().status(PermissionFile.defaults, root)
    )
  })

  it("of a session are remembered under their key", () => {
    const state = new PermissionState()
    state.apply({ decision: "allow", scope: "session" }, "git *", root)
    state.apply({ decision: "deny", scope: "session" }, "rm *", root)
    const { allow, deny } = state.status(PermissionFile.defaults, child)
    assert.deepStrictEqual({ allow, deny }, { allow: ["git *"], deny: ["rm *"] })
  })
})
