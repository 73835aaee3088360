import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Family from "../kit/Family.js"
import { settle } from "../kit/Recorder.js"
import { resultsOf } from "../kit/session.js"

const { calls, delegate, work } = Family

const inline = (more: object = {}, name = "delegate"): ScriptedModel.ToolUse => ({
  name,
  params: { task: "look around", ...more }
})

const asksAboutAll: Partial<Family.Options> = { runtime: { policy: PermissionFile.defaults } }

const allowing = (...plugins: ReadonlyArray<string>) => ({ inline: { allowed: true, plugins } })

const told = (family: Family.Family, path = "main") =>
  Effect.map(family.agent.agents, (nodes) => {
    const node = nodes.find(({ origin }) => origin.agent === path)
    return node === undefined ? [] : resultsOf(node.session.history.messages)
  })

const created = (family: Family.Family) =>
  Effect.map(family.events, (events) => Family.ofTag(events, "AgentCreated").map(({ agent }) => agent))

/** Asks about everything, answers yes to everything: whatever is refused is refused before that. */
const start = (options: Family.Options) => Family.start({ person: () => "y", ...asksAboutAll, ...options })

// -----------------------------------------------------------------------------------------------------------------

describe("an order that cannot be carried out", () => {
  interface Case {
    readonly call: ScriptedModel.ToolUse
    readonly says: string | RegExp
    readonly subagents?: Family.Options["subagents"]
  }
  const cases: Readonly<Record<string, Case>> = {
    "names no profile that there is": {
      call: delegate("nope"),
      says: 'There is no profile "nope". Profiles: helper, nested.'
    },
    "is a shorthand for a profile that is not there": {
      call: inline({}, "explore"),
      says: 'There is no profile "explore". Profiles: helper, nested.'
    },
    "gives a profile and what the profile says": {
      call: inline({ profile: "helper", plugins: ["work"], max_turns: 3 }),
      says: "A profile says all of that itself: give either profile, or plugins, max_turns.",
      subagents: allowing("work")
    },
    "describes a subagent where that is not allowed": {
      call: inline({ plugins: ["work"] }),
      says: "Subagents without a profile are not allowed here (allow_inline). Name a profile: helper, nested."
    },
    "names tools that may not be passed on": {
      call: inline({ plugins: ["work", "delegate"] }),
      says: "delegate may not be given to a subagent without a profile. Allowed (inline_allowed_plugins): labour.",
      subagents: allowing("labour")
    },
    "names tools that the parent has not": {
      call: inline({ plugins: ["work", "rm"] }),
      says: /^You do not have rm yourself\. You have: work, /,
      subagents: allowing("work", "rm")
    },
    "has nothing to do": {
      call: { name: "delegate", params: { profile: "helper", task: "  " } },
      says: "There is no task. Say what the subagent is to do."
    },
    "names a model that is not to be had": {
      call: inline({ model: "other/large" }),
      says: "The model other/large is not to be had here. Leave model out to use your own.",
      subagents: allowing("work")
    },
    "names a profile whose model is not to be had": {
      call: delegate("helper"),
      says: "The model other/large is not to be had here. Leave model out to use your own.",
      subagents: { profiles: [Family.profile("helper", { model: "other/large" })] }
    },
    "comes when there are too many": {
      call: delegate("helper"),
      says: "There are 0 subagents already, and no more are allowed. Wait until one has reported, or close one that is kept.",
      subagents: { maxChildren: 0 }
    },
    "comes from too deep": {
      call: delegate("helper"),
      says: "Subagents may be nested 0 deep, and you are as deep as that. Do the task yourself.",
      subagents: { maxDepth: 0 }
    },
    "has more turns than it can": {
      call: inline({ max_turns: 0 }),
      says: /^Invalid arguments for delegate: .*max_turns/s,
      subagents: allowing("work")
    }
  }
  for (const [what, { call, says, subagents }] of Object.entries(cases)) {
    for (const name of call.name === "delegate" ? ["delegate", "spawn_subagent"] : [call.name]) {
      it.scoped(`${what}: ${name} says so, nobody is asked and nothing is made`, () =>
        Effect.gen(function* () {
          const family = yield* start({ script: { main: [calls({ ...call, name }), { text: "done" }] }, subagents })
          yield* family.agent.run("go")
          const [result, another] = yield* told(family)
          assert.isUndefined(another)
          if (typeof says === "string") assert.strictEqual(result, says)
          else assert.match(String(result).replace(name, "delegate"), says)
          assert.deepStrictEqual(yield* family.person.shown, [])
          assert.deepStrictEqual(yield* created(family), ["main"])
          const resolved = Family.ofTag(yield* family.events, "PermissionResolved")
          assert.deepStrictEqual(
            resolved.filter(({ granted }) => granted),
            []
          )
        })
      )
    }
  }

  it.scoped("comes from a child that is as deep as it may be", () =>
    Effect.gen(function* () {
      const family = yield* start({
        script: {
          main: [calls(delegate("helper")), { text: "done" }],
          helper: [calls(delegate("nested")), { text: "ok" }]
        },
        subagents: { maxDepth: 1 }
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual(yield* told(family, "main/helper"), [
        "Subagents may be nested 1 deep, and you are as deep as that. Do the task yourself."
      ])
      assert.deepStrictEqual(yield* created(family), ["main", "main/helper"])
    })
  )

  it.scoped("comes at the same time as others: no more are made than may be", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({ agents: { helper: [{ text: "ok" }] } })
      const family = yield* start({
        script: {
          main: [
            calls(delegate("helper"), delegate("helper"), delegate("helper"), delegate("helper")),
            { text: "done" }
          ]
        },
        subagents: {
          profiles: [Family.profile("helper", { model: "other/large" })],
          resolveModel: () => Effect.delay(Effect.succeed(model), "1 second"),
          maxChildren: 2
        }
      })
      const running = yield* Effect.fork(family.agent.run("go"))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(running)
      const results = (yield* told(family)).map((result) => (typeof result === "string" ? result : "made"))
      assert.deepStrictEqual(results.toSorted(), [
        "There are 2 subagents already, and no more are allowed. Wait until one has reported, or close one that is kept.",
        "There are 2 subagents already, and no more are allowed. Wait until one has reported, or close one that is kept.",
        "made",
        "made"
      ])
      assert.strictEqual((yield* created(family)).length, 3)
    })
  )

  it.scoped("is one of many that were all allowed before the first child was there", () =>
    Effect.gen(function* () {
      const family = yield* start({
        script: { main: [calls(...Array.from({ length: 6 }, () => delegate("helper"))), { text: "done" }] },
        subagents: { maxChildren: 2 },
        runtime: { policy: Family.delegationAllowed }
      })
      yield* family.agent.run("go")
      assert.strictEqual((yield* created(family)).length, 3)
    })
  )

  it.scoped("waits for a model that takes for ever: it can be cancelled", () =>
    Effect.gen(function* () {
      const family = yield* start({
        script: { main: [calls(delegate("helper")), { text: "done" }] },
        subagents: { profiles: [Family.profile("helper", { model: "other/large" })], resolveModel: () => Effect.never }
      })
      const running = yield* Effect.fork(family.agent.run("go"))
      yield* settle
      yield* family.agent.cancel()
      assert.strictEqual((yield* Fiber.join(running))._tag, "Cancelled")
      assert.deepStrictEqual(yield* created(family), ["main"])
    })
  )
})

// -----------------------------------------------------------------------------------------------------------------

describe("an order that names tools", () => {
  const subagent = [work("a"), work("b"), { text: "ok" }, work("c"), { text: "ok" }]

  it.scoped("is put as an envelope instead of an approval, and its tools then ask nobody for its life", () =>
    Effect.gen(function* () {
      const family = yield* start({
        script: {
          main: [
            calls(inline({ plugins: ["labour"], keep: true })),
            calls({ name: "agent_ask", params: { agent_id: "subagent_1", question: "more?" } }),
            { text: "done" }
          ],
          subagent
        },
        person: ["approve: fine"],
        subagents: allowing("labour")
      })
      yield* family.agent.run("go")
      const [shown, another] = yield* family.person.shown
      assert.isUndefined(another)
      assert.strictEqual(shown?.agentPath, "main")
      assert.deepInclude(shown?.interaction, {
        _tag: "approveSubagentEnvelope",
        subagentId: "subagent_1",
        depth: 1,
        promptSummary: "look around"
      })
      assert.include(
        shown?.interaction._tag === "approveSubagentEnvelope" ? shown.interaction.requestedEnvelope : [],
        "work"
      )
      assert.deepStrictEqual(
        family.worked.map(({ name }) => name),
        ["a", "b", "c"]
      )
      const all = yield* family.events
      assert.deepStrictEqual(
        Family.ofTag(all, "PermissionResolved").map(({ agent, method }) => [agent, method]),
        [
          ["main", "envelope"],
          ["main/subagent", "envelope"],
          ["main/subagent", "envelope"],
          ["main", "auto_approved"],
          ["main/subagent", "envelope"]
        ]
      )
      assert.deepStrictEqual(
        Family.ofTag(all, "SubagentEnvelopeApproved").map(({ subagentId, note }) => [subagentId, note]),
        [["subagent_1", "fine"]]
      )
    })
  )

  it.scoped("may name all that its parent has", () =>
    Effect.gen(function* () {
      const names = ["labour", "subagent", "clarification"]
      const family = yield* start({
        script: { main: [calls(inline({ plugins: names })), { text: "done" }], subagent },
        person: ["approve"],
        subagents: allowing(...names)
      })
      const everything = family.agent.tools.entries.map(({ name }) => name)
      yield* family.agent.run("go")
      const [shown] = yield* family.person.shown
      assert.sameMembers(
        shown?.interaction._tag === "approveSubagentEnvelope" ? [...shown.interaction.requestedEnvelope] : [],
        everything
      )
    })
  )

  it.scoped("is still under the guards", () =>
    Effect.gen(function* () {
      const family = yield* start({
        script: { main: [calls(inline({ plugins: ["work"] })), { text: "done" }], subagent },
        person: ["approve"],
        subagents: allowing("work"),
        runtime: {
          policy: PermissionFile.defaults,
          guards: [
            ({ entry, params }) =>
              entry.name === "work" && JSON.stringify(params).includes('"a"') ? Effect.fail("never a") : Effect.void
          ]
        }
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual(
        family.worked.map(({ name }) => name),
        ["b"]
      )
      const [denied] = Family.ofTag(yield* family.events, "PermissionResolved").filter(({ granted }) => !granted)
      assert.deepInclude(denied, { agent: "main/subagent", method: "guard", reason: "never a" })
    })
  )

  it.scoped("does not pass its envelope on to children of the subagent", () =>
    Effect.gen(function* () {
      const family = yield* start({
        script: {
          main: [calls(inline({ plugins: ["work", "agent"] })), { text: "done" }],
          subagent: [calls({ name: "agent", params: { task: "dig" } }), { text: "ok" }],
          agent: [work("deep"), { text: "ok" }]
        },
        person: ["approve", "n"],
        subagents: allowing("work", "agent")
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual(Family.shown(yield* family.person.shown), [
        "main: approveSubagentEnvelope",
        "main/subagent/agent: work deep"
      ])
    })
  )

  for (const [how, person, result] of [
    ["denied", ["deny: too much"], /Subagent\/EnvelopeDenied.*too much/],
    ["withdrawn", [TestInteractor.cancel], /Subagent\/EnvelopeDenied.*cancelled/],
    ["put to nobody", [TestInteractor.fail("gone")], /Subagent\/EnvelopeDenied/]
  ] as const) {
    it.scoped(`makes nothing when it is ${how}`, () =>
      Effect.gen(function* () {
        const family = yield* start({
          script: { main: [calls(inline({ plugins: ["work"] })), { text: "done" }], subagent },
          person,
          subagents: allowing("work")
        })
        yield* family.agent.run("go")
        const [text] = yield* told(family)
        assert.match(String(text), result)
        assert.deepStrictEqual(yield* created(family), ["main"])
        assert.strictEqual((yield* family.person.shown).length, 1)
        const all = yield* family.events
        assert.strictEqual(Family.ofTag(all, "SubagentEnvelopeDenied").length, 1)
        assert.deepStrictEqual(
          Family.ofTag(all, "PermissionResolved").map(({ granted }) => granted),
          [false]
        )
      })
    )
  }

  it.scoped("has no envelope where delegating asks nobody: its tools go through the gate", () =>
    Effect.gen(function* () {
      const family = yield* start({
        script: { main: [calls(inline({ plugins: ["work"] })), { text: "done" }], subagent },
        person: ["y", "n"],
        subagents: allowing("work"),
        runtime: { policy: Family.delegationAllowed }
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual(Family.shown(yield* family.person.shown), [
        "main/subagent: work a",
        "main/subagent: work b"
      ])
      assert.deepStrictEqual(
        family.worked.map(({ name }) => name),
        ["a"]
      )
    })
  )

  it.scoped("asks nothing at all where all is allowed", () =>
    Effect.gen(function* () {
      const family = yield* start({
        script: { main: [calls(inline({ plugins: ["work"] })), { text: "done" }], subagent },
        person: [],
        subagents: allowing("work")
      })
      yield* family.agent.permissions("suspend all")
      yield* family.agent.run("go")
      assert.deepStrictEqual(yield* family.person.shown, [])
      assert.strictEqual(family.worked.length, 2)
    })
  )

  it.scoped("leaves no permission behind for another order with the same call id", () =>
    Effect.gen(function* () {
      let looks = 0
      const family = yield* start({
        script: {
          main: [
            calls({ ...inline({ plugins: ["work"] }), id: "same" }),
            { text: "refused" },
            calls({ ...inline({ plugins: ["work"], task: "something else" }), id: "same" }),
            { text: "done" }
          ],
          subagent
        },
        person: ({ interaction }) => (interaction._tag === "approveSubagentEnvelope" ? "approve" : "n"),
        subagents: allowing("work"),
        runtime: {
          policy: PermissionFile.defaults,
          // Changes its mind between the question and the execution.
          guards: [({ entry }) => (entry.name === "delegate" && ++looks === 2 ? Effect.fail("not now") : Effect.void)]
        }
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual(yield* told(family), ["Permission denied: not now"])
      yield* family.agent.permissions("allow delegate")
      yield* family.agent.run("again")
      assert.deepStrictEqual(family.worked, [])
      assert.deepStrictEqual(Family.shown(yield* family.person.shown).slice(1), [
        "main/subagent: work a",
        "main/subagent: work b"
      ])
    })
  )
})

// -----------------------------------------------------------------------------------------------------------------

describe("an order without tools of its own", () => {
  for (const [what, call, path] of [
    ["of a profile", delegate("helper", "tidy"), "main/helper"],
    ["described in place", inline(), "main/subagent"]
  ] as const) {
    it.scoped(`${what}: the call is approved, and its tools go through the gate`, () =>
      Effect.gen(function* () {
        const steps = [work("a"), { text: "ok" }]
        const family = yield* start({
          script: { main: [calls(call), { text: "done" }], helper: steps, subagent: steps },
          subagents: { ...allowing("work"), profiles: [Family.profile("helper", { iconName: "broom" })] }
        })
        yield* family.agent.run("go")
        const [approval, another] = yield* family.person.shown
        assert.strictEqual(approval?.interaction._tag, "Approve")
        assert.strictEqual(another?.agentPath, path)
        assert.deepStrictEqual(Family.ofTag(yield* family.events, "SubagentEnvelopeApproved"), [])
        const display = approval?.interaction._tag === "Approve" ? approval.interaction.display : undefined
        assert.include(display?.summary, path.split("/")[1], "it is told what is about to be made")
        assert.include(display?.details, "work")
      })
    )
  }

  it.scoped("of a profile that is approved by its author: its tools ask nobody, and guards deny all the same", () =>
    Effect.gen(function* () {
      const family = yield* start({
        script: { main: [calls(delegate("helper")), { text: "done" }], helper: [work("a", "b"), { text: "ok" }] },
        person: ["y"],
        subagents: { profiles: [Family.profile("helper", { autoApproved: true })] },
        runtime: {
          policy: PermissionFile.defaults,
          guards: [({ params }) => (JSON.stringify(params).includes('"b"') ? Effect.fail("never b") : Effect.void)]
        }
      })
      yield* family.agent.run("go")
      const [approval, another] = yield* family.person.shown
      assert.isUndefined(another)
      assert.deepStrictEqual(
        approval?.interaction._tag === "Approve" ? approval.interaction.display?.warnings : undefined,
        ["Its profile lets it use all of these without asking."]
      )
      assert.deepStrictEqual(
        family.worked.map(({ name }) => name),
        ["a"]
      )
    })
  )
})
