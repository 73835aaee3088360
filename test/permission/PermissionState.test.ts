import * as Effect from "effect/Effect"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as PlanMode from "../../src/permission/PlanMode.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { PermissionState } from "../../src/permission/PermissionState.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as ToolDefinition from "../../src/tool/ToolDefinition.js"
import { registry, ses } from "../kit/gate.js"
import { commandField } from "../kit/Commands.js"

const root = ses("root")
const child = ses("child")
const plain = { readonly: false, autoApproved: false }

const call = (tool: string, params: unknown = {}) => PermissionRule.subject({ tool, params })
const shell = (command: string) =>
  PermissionRule.subject({ tool: "shell", params: { command }, commandField, repository: "harmless" })

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

describe("a mode", () => {
  const policy = (defaultPolicy: "ask" | "allow" | "deny") => PermissionFile.policy({ defaultPolicy })

  it("is that of the policy until somebody chooses one", () => {
    for (const given of ["ask", "allow", "deny"] as const) {
      const state = new PermissionState()
      assert.deepStrictEqual(
        [state.mode(policy(given)), state.isChosen, state.asksNobody],
        [given, false, false],
        "a policy's default covers only calls without a rule"
      )
      for (const mode of ["allow", "ask", "deny"] as const) {
        state.setMode(mode)
        assert.deepStrictEqual([state.mode(policy(given)), state.isChosen], [mode, true])
        assert.strictEqual(state.asksNobody, mode === "deny")
      }
    }
  })

  it("of planning lies over the one before, and asks at least when it ends", () => {
    const table = [
      [undefined, "ask", "ask"],
      [undefined, "allow", "ask"],
      [undefined, "deny", "deny"],
      ["allow", "deny", "ask"],
      ["deny", "allow", "deny"],
      ["ask", "deny", "ask"]
    ] as const
    for (const [chosen, given, after] of table) {
      const state = new PermissionState()
      if (chosen !== undefined) state.setMode(chosen)
      state.endPlan(policy(given))
      assert.strictEqual(state.mode(policy(given)), chosen ?? given, "there was no plan")
      state.setMode("plan")
      assert.deepStrictEqual([state.mode(policy(given)), state.isChosen], ["plan", true])
      state.clear()
      assert.strictEqual(state.mode(policy(given)), "plan", "lists are forgotten, and no mode")
      state.endPlan(policy(given))
      assert.strictEqual(state.mode(policy(given)), after)
    }
  })

  it("with which a session begins is the one that is left when its lists are forgotten", () => {
    const state = new PermissionState()
    state.begin("deny")
    state.setMode("allow")
    state.clear()
    assert.strictEqual(state.mode(policy("ask")), "deny")
  })

  it("is told with the one before, where it changed, and with what is suspended", () => {
    const state = new PermissionState()
    state.setMode("allow")
    const told = (before?: "ask" | "allow") => {
      const { _tag, ...rest } = state.told(policy("ask"), root, before) as { readonly _tag: string }
      return rest as object
    }
    assert.deepStrictEqual(told(), { mode: "allow" })
    assert.deepStrictEqual(told("allow"), { mode: "allow" })
    assert.deepStrictEqual(told("ask"), { mode: "allow", before: "ask" })
    for (const [scope, session] of [
      ["all", child],
      ["idle", root],
      ["turn", root]
    ] as const) {
      state.suspend(scope, session)
      assert.deepStrictEqual(told(), { mode: "allow", suspension: scope })
    }
  })
})

describe("a restored state", () => {
  const entries = fc.uniqueArray(fc.constantFrom("a", "b", "git *", "rm *", "pay(amount=*)"), { maxLength: 3 })
  const sessions = fc.uniqueArray(fc.constantFrom(root, child), { maxLength: 2 })

  it("is the one that was taken, without a mode that allows", () => {
    fc.assert(
      fc.property(
        fc.record({
          allow: entries,
          deny: entries,
          mode: fc.constantFrom(...([undefined, "ask", "allow", "deny"] as const)),
          plan: fc.boolean(),
          all: fc.boolean(),
          turn: sessions,
          idle: sessions,
          definitions: fc.uniqueArray(fc.constantFrom("x", "y"), { maxLength: 2 })
        }),
        ({ all, allow, definitions, deny, idle, mode, plan, turn }) => {
          const state = new PermissionState()
          for (const entry of allow) state.allow(entry)
          for (const entry of deny) state.deny(entry)
          for (const session of turn) state.suspend("turn", session)
          for (const session of idle) state.suspend("idle", session)
          for (const name of definitions) {
            const definition = ToolDefinition.make(name, "does it", {})
            state.noteDefinition(PermissionFile.defaults, definition, false)
          }
          if (all) state.suspend("all", root)
          if (mode !== undefined) state.setMode(mode)
          if (plan) state.setMode("plan")
          const again = new PermissionState()
          const { default: chosen, ...rest } = state.snapshot()
          again.restore(state.snapshot())
          assert.strictEqual(chosen, mode)
          assert.deepStrictEqual(
            again.snapshot(),
            mode === undefined || mode === "allow" ? rest : { ...rest, default: mode }
          )
          assert.strictEqual(again.isPlanning, plan)
          for (const session of [root, child]) {
            const { suspension } = again.status(PermissionFile.defaults, session)
            const expected = turn.includes(session) ? "turn" : idle.includes(session) ? "idle" : all ? "all" : undefined
            assert.strictEqual(suspension, expected)
          }
        }
      )
    )
  })
})

describe("a tool of a server", () => {
  const made = (description: string) => ToolDefinition.make("mcp__x__send", description, { type: "object" })
  const [first, second] = [made("sends"), made("sends, and keeps a copy")]
  const calling = (definition: ToolDefinition.ToolDefinition) =>
    PermissionRule.subject({ tool: definition.name, params: {}, definition })
  /** What a person allowed before this session. */
  const known = (...before: ReadonlyArray<ToolDefinition.ToolDefinition>) => {
    const all = new Map(before.map((definition) => [definition.name, definition]))
    const definitions: ToolDefinition.Known = {
      get: (name) => all.get(name),
      note: (definition) => void all.set(definition.name, definition)
    }
    return { policy: { ...PermissionFile.policy({ defaultPolicy: "allow" }), definitions }, all }
  }
  const under = (state: PermissionState, { policy }: ReturnType<typeof known>, definition = first) => {
    const { decision, rule } = state.evaluate(policy, calling(definition), plain, root)
    return `${decision}: ${rule}`
  }
  const changed = "ask: The server changed mcp__x__send after it was allowed."
  const usual = "allow: the default is allow"

  it("is allowed in the definition that somebody allowed, here or before", () => {
    const state = new PermissionState()
    assert.strictEqual(under(state, known()), usual)
    assert.strictEqual(under(state, known(first)), usual)
    assert.include(under(state, known(first), second), changed)
    let changes = 0
    state.changed = () => changes++
    state.noteDefinition(known().policy, first, false)
    assert.strictEqual(changes, 1)
    assert.strictEqual(under(state, known(first)), usual)
    assert.include(under(state, known(), second), changed)
    state.noteDefinition(known().policy, second, false)
    assert.strictEqual(changes, 1, "the first one stays")
    assert.include(under(state, known(), second), changed)
    state.noteDefinition(known().policy, second, true)
    assert.strictEqual(under(state, known(), second), usual)
    assert.include(under(state, known(), first), changed)
    state.noteDefinition(known().policy, second, true)
    assert.strictEqual(changes, 2, "nothing is new")
  })

  it("is noted for later sessions, once", () => {
    const [state, before] = [new PermissionState(), known()]
    state.noteDefinition(before.policy, first, false)
    assert.strictEqual(before.all.get(first.name), first)
    const later = new PermissionState()
    later.noteDefinition(before.policy, made("sends"), false)
    assert.strictEqual(before.all.get(first.name), first)
    assert.deepStrictEqual(later.snapshot().definitions, { [first.name]: first.digest })
  })

  it("is known by its digest alone in a restored session, and by what a person allowed before where that is the same", () => {
    const state = new PermissionState()
    state.noteDefinition(known().policy, first, false)
    const again = new PermissionState()
    again.restore(state.snapshot())
    assert.strictEqual(under(again, known()), usual)
    assert.strictEqual(under(again, known(), second), changed)
    assert.match(under(again, known(first), second), /after it was allowed\. .+/, "then it says what is new")
    assert.strictEqual(under(again, known(second), second), changed)
  })
})
