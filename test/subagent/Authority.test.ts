/** What a subagent may do is never more than what its parent may: on every way to one, and after a restart. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import type { JournalEntry } from "../../src/journal/JournalEntry.js"
import * as Stage from "../../src/session/Stage.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Dynasty from "../kit/Dynasty.js"
import * as Family from "../kit/Family.js"
import { settle } from "../kit/Recorder.js"
import * as Runs from "../kit/Runs.js"

const { calls, delegate, profile, spawn, work } = Family

/** Two processes over one store. */
const store = Effect.map(SessionStore.makeMemory, (open) => ({
  first: open({ pid: 1, host: "here", isAlive: () => false }),
  second: open({ pid: 2, host: "here", isAlive: () => false })
}))

const asksAboutAll = { policy: PermissionFile.defaults }

const toolsAt = (family: Family.Family, path: string) =>
  Effect.map(family.agent.agents, (nodes) =>
    nodes.find(({ origin }) => origin.agent === path)?.session.tools.entries.map(({ name }) => name)
  )

const stageOf = (...allowedTools: ReadonlyArray<string>) =>
  Stage.make({
    name: "bound",
    allowedTools,
    act: "go",
    assert: () => Effect.succeed(Stage.ok("")),
    retryPolicy: { maxAttempts: 1 }
  })

/** What the first process left when it died while somebody was asked, gone on with by another of other options. */
const resumed = (
  before: Family.Options & {
    readonly dies?: (entry: JournalEntry) => boolean
    /** The tools of the stage that is run, instead of a plain turn. */
    readonly stage?: ReadonlyArray<string>
  },
  after: Family.Options
) =>
  Effect.gen(function* () {
    const { first, second } = yield* store
    const { dies = () => false } = before
    const dying = yield* Scope.make()
    const begun = yield* Scope.extend(Persistence.begin(first), dying)
    let isDead = false
    const persistence: Persistence.Persistence = {
      ...begun,
      journal: {
        ...begun.journal,
        of: (id) => {
          const own = begun.journal.of(id)
          return {
            ...own,
            note: (entry) => {
              isDead ||= dies(entry)
              if (!isDead) own.note(entry)
            }
          }
        }
      }
    }
    const family = yield* Scope.extend(Family.start({ ...before, agent: { ...before.agent, persistence } }), dying)
    const { agent } = family
    const work: Effect.Effect<unknown, unknown> =
      before.stage === undefined ? Family.untilIdle(agent, "go") : Stage.run(agent, stageOf(...before.stage))
    const running = yield* Effect.forkDaemon(work)
    yield* settle
    yield* settle
    const had = (yield* toolsAt(family, "main/helper")) ?? []
    yield* persistence.journal.freeze
    const again = yield* Persistence.resume(second, persistence.rootSessionId)
    const next = yield* Family.start({ ...after, agent: { ...after.agent, persistence: again } })
    yield* settle
    yield* Fiber.interrupt(running)
    yield* Scope.close(dying, Exit.void)
    return { before: family, after: next, had }
  })

const warningsOf = (request: InteractionRequest | undefined) =>
  request?.interaction._tag === "Approve" ? request.interaction.display?.warnings : undefined

const detailsOf = (request: InteractionRequest | undefined) =>
  request?.interaction._tag === "Approve" ? request.interaction.display?.details : undefined

describe("a subagent", () => {
  it.scoped("of a profile has none of the tools that its parent has not got, and says so to whoever decides", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [calls(delegate("reader")), { text: "done" }],
          reader: [calls(delegate("doer")), { text: "ok" }],
          doer: [work("a"), { text: "ok" }]
        },
        person: () => "y",
        subagents: {
          profiles: [profile("reader", { plugins: ["subagent"] }), profile("doer", { autoApproved: true })]
        },
        runtime: asksAboutAll
      })
      yield* Family.untilIdle(family.agent, "go")
      assert.deepStrictEqual(family.worked, [])
      assert.notInclude((yield* toolsAt(family, "main/reader")) ?? [], "work")
      assert.deepStrictEqual(yield* toolsAt(family, "main/reader/doer"), yield* toolsAt(family, "main/reader"))
      const [first, second] = yield* family.person.shown
      assert.notInclude(detailsOf(first), "without")
      assert.include(detailsOf(second), "without work, ")
    })
  )

  it.scoped(
    "of a profile that lost tools to its parent has their names in each result, with a question or without",
    () =>
      Effect.gen(function* () {
        const reader = calls(delegate("doer"))
        const family = yield* Family.start({
          script: {
            main: [
              calls(delegate("reader"), delegate("doer")),
              calls({ name: "agent_ask", params: { agent_id: "subagent_1", question: "again" } }),
              { text: "done" }
            ],
            reader: [reader, { text: "ok" }, reader, { text: "ok" }],
            doer: [{ text: "ok" }, { text: "ok" }, { text: "ok" }]
          },
          subagents: { profiles: [profile("reader", { plugins: ["subagent"] }), profile("doer")] }
        })
        yield* Family.untilIdle(family.agent, "go")
        const missing = (yield* family.agent.agents).map(({ origin, session }) => [
          origin.agent,
          session.history.prompt.content.flatMap((message) =>
            message.role === "tool"
              ? message.content.map(({ result }) => Reflect.get(Object(result), "missing_tools"))
              : []
          )
        ])
        const lost = ["work", "ask_user", "request_input"]
        assert.deepStrictEqual(missing.slice(0, 2), [
          ["main", [undefined, undefined, undefined]],
          ["main/reader", [lost, lost]]
        ])
      })
  )

  it.scoped("of a root that has few tools has no more, by whatever profile", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: { main: [calls(delegate("helper")), { text: "done" }], helper: [work("a"), { text: "ok" }] },
        agent: { tools: ["delegate"] }
      })
      yield* Family.untilIdle(family.agent, "go")
      assert.deepStrictEqual(yield* toolsAt(family, "main/helper"), ["delegate", "request_clarification"])
      assert.deepStrictEqual(family.worked, [])
    })
  )

  const auto = [profile("helper", { autoApproved: true }), profile("nested", { autoApproved: true })]
  const chain = {
    main: [calls(delegate("helper")), { text: "done" }],
    helper: [calls(delegate("nested")), { text: "ok" }],
    nested: [work("deep"), { text: "ok" }]
  }

  it.scoped("whose profile's author approved it does not start another such without a question", () =>
    Effect.gen(function* () {
      for (const [says, ran] of [
        ["y", 1],
        ["n", 0]
      ] as const) {
        const family = yield* Family.start({
          script: chain,
          person: ({ agentPath }) => (agentPath === "main" ? "y" : says),
          subagents: { profiles: auto },
          runtime: asksAboutAll
        })
        yield* Family.untilIdle(family.agent, "go")
        const shown = yield* family.person.shown
        assert.deepStrictEqual(
          shown.map(({ agentPath, interaction }) => [agentPath, interaction._tag]),
          [
            ["main", "Approve"],
            ["main/helper", "Approve"]
          ]
        )
        assert.deepStrictEqual(warningsOf(shown[1]), [
          "Its profile lets it use all of these without asking.",
          "Its parent may use these tools, but not start this subagent."
        ])
        assert.strictEqual(family.worked.length, ran)
      }
    })
  )

  it.scoped("in an approved envelope does not start one whose author approved it, nor one with another model", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({ agents: { other: [{ text: "ok" }] } }, { id: "other/large" })
      const order = { name: "delegate", params: { task: "go", plugins: ["labour", "delegate"] } }
      const family = yield* Family.start({
        script: {
          main: [calls(order), { text: "done" }],
          subagent: [
            calls(delegate("nested")),
            calls(delegate("other")),
            calls(delegate("plain")),
            work("own"),
            { text: "ok" }
          ],
          nested: [work("deep"), { text: "ok" }],
          plain: [work("asked"), { text: "ok" }]
        },
        person: ({ interaction }) => (interaction._tag === "approveSubagentEnvelope" ? "approve" : "n"),
        subagents: {
          profiles: [
            profile("nested", { autoApproved: true }),
            profile("other", { model: "other/large" }),
            profile("plain")
          ],
          inline: { allowed: true, plugins: ["labour", "delegate"] },
          resolveModel: () => Effect.succeed(model)
        },
        runtime: asksAboutAll
      })
      yield* Family.untilIdle(family.agent, "go")
      assert.deepStrictEqual(Family.shown(yield* family.person.shown), [
        "main: approveSubagentEnvelope",
        "main/subagent: delegate task=go, profile=nested, keep=true",
        "main/subagent: delegate task=go, profile=other, keep=true",
        "main/subagent/plain: work asked"
      ])
      assert.deepStrictEqual(
        family.worked.map(({ name }) => name),
        ["own"]
      )
    })
  )

  it.effect("hands on no more than it has, and nothing runs that was not approved for whoever runs it", () =>
    Effect.gen(function* () {
      const seen = new Map<string, number>()
      const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)
      for (const plan of FastCheck.sample(Dynasty.plans, { numRuns: Runs.of(960), seed: 11 })) {
        const apart = { ...plan, stage: undefined }
        assert.deepStrictEqual(yield* Dynasty.play(apart, note), [], JSON.stringify(apart, null, 1))
        if (plan.stage === undefined) continue
        assert.deepStrictEqual(yield* Dynasty.play(plan, note), [], JSON.stringify(plan, null, 1))
      }
      // The plans are worth something: all of it has happened, and often.
      for (const what of ["depth 3", "user_approved", "an author's approval", "an approved envelope", "stage_grant"]) {
        assert.isAbove(seen.get(what) ?? 0, 1, what)
      }
    })
  )
})

describe("a subagent in a stage", () => {
  const run = (family: Family.Family, ...allowedTools: ReadonlyArray<string>) =>
    Stage.run(family.agent, stageOf(...allowedTools))
  const script = {
    main: [calls(delegate("helper")), { text: "done" }],
    helper: [work("a"), calls(delegate("nested")), { text: "ok" }],
    nested: [work("b"), { text: "ok" }]
  }
  const auto = { profiles: [profile("helper", { autoApproved: true }), profile("nested", { autoApproved: true })] }

  for (const [what, options] of Object.entries({
    "its author's approval": { subagents: auto },
    "a rule": { runtime: { policy: PermissionFile.policy({ whitelist: { tools: ["work", "delegate"] } }) } },
    "a default": { runtime: { policy: PermissionFile.policy({ defaultPolicy: "allow" }) } }
  })) {
    it.scoped(`asks for a grant of what the stage does not allow, for all that ${what} says`, () =>
      Effect.gen(function* () {
        const family = yield* Family.start({
          script,
          person: ({ agentPath }) => (agentPath === "main/helper" ? "approve" : "deny"),
          ...options
        })
        const end = yield* run(family, "delegate")
        assert.deepStrictEqual(
          (yield* family.person.shown).map(({ agentPath, interaction }) => [agentPath, interaction._tag]),
          [
            ["main/helper", "grantStageTool"],
            ["main/helper/nested", "grantStageTool"]
          ]
        )
        assert.deepStrictEqual(family.worked, [{ agent: "main/helper", name: "a" }])
        assert.deepStrictEqual(
          end.attempts[0]?.grants.map(({ outcome, tool }) => [tool, outcome]),
          [
            ["work", "approve"],
            ["work", "deny"]
          ]
        )
      })
    )
  }

  it.scoped("asks nobody for what the stage allows, as the turn itself", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({ script, runtime: asksAboutAll })
      yield* run(family, "delegate", "work")
      assert.deepStrictEqual(yield* family.person.shown, [])
      assert.strictEqual(family.worked.length, 2)
    })
  )

  it.scoped("made before it is bound by it when it is asked, and told something, in it", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [
            calls(delegate("helper")),
            { text: "made" },
            calls({ name: "agent_ask", params: { agent_id: "subagent_1", question: "more?" } }),
            calls({ name: "send_to_subagent", params: { agent_id: "subagent_1", message: "more" } }),
            { text: "done" }
          ],
          helper: [work("own"), { text: "ok" }, work("asked"), { text: "ok" }, work("told"), { text: "ok" }]
        },
        person: () => "deny",
        subagents: auto
      })
      yield* family.agent.run("go")
      yield* run(family, "agent_ask", "send_to_subagent")
      yield* family.agent.awaitIdle
      assert.deepStrictEqual(family.worked, [{ agent: "main/helper", name: "own" }])
    })
  )

  it.scoped("that was at work before it goes on with that, and does the stage's work apart from it", () =>
    Effect.gen(function* () {
      const latch = yield* Family.gate
      const family = yield* Family.start({
        script: {
          main: [
            calls(spawn("helper")),
            { text: "made" },
            calls({ name: "send_to_subagent", params: { agent_id: "subagent_1", message: "do that, too" } }),
            { text: "done" },
            { text: "heard" },
            { text: "heard" }
          ],
          helper: [work("slow"), work("own"), { text: "ok" }, work("told"), { text: "ok" }]
        },
        worker: (name) => (name === "slow" ? Effect.as(latch.pass, name) : Effect.succeed(name)),
        subagents: auto
      })
      yield* Effect.fork(Family.untilIdle(family.agent, "go"))
      yield* settle
      yield* run(family, "send_to_subagent")
      const [said] = family.agent.history.messages.flatMap((message) =>
        message.role === "tool"
          ? message.content.flatMap(({ result }) => (typeof result === "string" ? [result] : []))
          : []
      )
      assert.strictEqual(said, "subagent_1 is working and begins this after that. Its end comes as a message.")
      yield* latch.open
      yield* settle
      yield* family.agent.awaitIdle
      assert.deepStrictEqual(
        family.worked.map(({ name }) => name),
        ["slow", "own"]
      )
      const denied = Family.ofTag(yield* family.events, "PermissionResolved").find(({ granted }) => !granted)
      assert.include(denied?.reason, "stage bound is over")
    })
  )
})

describe("a subagent that goes on after a restart", () => {
  const script = {
    main: [calls(delegate("helper")), { text: "done" }],
    helper: [calls({ name: "ask_user", params: { prompt: "Which?" } }), work("a"), { text: "ok" }]
  }
  const answers = ({ interaction }: InteractionRequest) => (interaction._tag === "Ask" ? "this" : "y")

  it.scoped("has no tool that its parent has not got any more", () =>
    Effect.gen(function* () {
      const { after, had } = yield* resumed(
        { script },
        { script, person: answers, agent: { tools: ["delegate", "ask_user"] } }
      )
      assert.include(had, "work")
      yield* after.agent.awaitIdle
      assert.deepStrictEqual(yield* toolsAt(after, "main/helper"), ["delegate", "request_clarification", "ask_user"])
      assert.deepStrictEqual(after.worked, [])
    })
  )

  it.scoped("has no tool that it had not before, whatever its parent has by now", () =>
    Effect.gen(function* () {
      const few = { tools: ["delegate", "ask_user"] }
      const { after, had } = yield* resumed({ script, agent: few }, { script, person: answers })
      yield* after.agent.awaitIdle
      assert.include((yield* toolsAt(after, "main")) ?? [], "work")
      assert.deepStrictEqual(yield* toolsAt(after, "main/helper"), had)
      assert.deepStrictEqual(after.worked, [])
    })
  )

  for (const [what, approved, asks] of [
    ["is still approved", true, 0],
    ["is not approved any more", false, 1]
  ] as const) {
    it.scoped(`asks ${asks === 0 ? "nobody" : "again"} when its profile ${what} by its author`, () =>
      Effect.gen(function* () {
        const { after } = yield* resumed(
          { script, subagents: { profiles: [profile("helper", { autoApproved: true })] } },
          { script, person: answers, subagents: { profiles: [profile("helper", { autoApproved: approved })] } }
        )
        yield* after.agent.awaitIdle
        const approvals = (yield* after.person.shown).filter(({ interaction }) => interaction._tag === "Approve")
        assert.strictEqual(approvals.length, asks)
        assert.deepStrictEqual(after.worked, [{ agent: "main/helper", name: "a" }])
      })
    )
  }

  it.scoped("is one of a subagent's own: its question comes back as its own, once", () =>
    Effect.gen(function* () {
      const script = {
        main: [calls(delegate("helper")), { text: "done" }],
        helper: [calls(delegate("nested")), { text: "ok" }],
        nested: [work("deep"), { text: "ok" }]
      }
      const { after, before } = yield* resumed({ script }, { script, person: () => "y" })
      yield* after.agent.awaitIdle
      const ids = (requests: ReadonlyArray<InteractionRequest>) => requests.map(({ requestId }) => requestId)
      assert.deepStrictEqual(ids(yield* after.person.shown), ids(yield* before.person.shown))
      assert.deepStrictEqual(after.worked, [{ agent: "main/helper/nested", name: "deep" }])
      assert.deepStrictEqual(
        Family.ofTag(yield* after.events, "AgentCreated").map(({ agent }) => agent),
        ["main", "main/helper", "main/helper/nested"]
      )
    })
  )

  it.scoped("and was at work in a stage uses nothing any more, nor does the turn that was the stage's", () =>
    Effect.gen(function* () {
      const script = {
        main: [calls(delegate("helper")), work("main"), { text: "done" }],
        helper: [work("a"), work("b"), { text: "ok" }]
      }
      const runtime = { policy: PermissionFile.policy({ defaultPolicy: "allow" }) }
      const auto = { profiles: [profile("helper", { autoApproved: true })] }
      const { after, before } = yield* resumed(
        { script, runtime, subagents: auto, stage: ["delegate"] },
        { script, runtime, subagents: auto, person: () => "approve" }
      )
      assert.deepStrictEqual(Family.shown(yield* before.person.shown), ["main/helper: grantStageTool"])
      const end = Family.some(yield* after.agent.awaitIdle)
      assert.strictEqual(end?._tag, "Completed")
      assert.deepStrictEqual(after.worked, [])
      assert.deepStrictEqual(yield* after.person.shown, [])
      assert.deepStrictEqual(
        Family.ofTag(yield* after.events, "PermissionResolved").map(({ agent, granted, tool }) => [
          agent,
          tool,
          granted
        ]),
        [
          ["main/helper", "work", false],
          ["main/helper", "work", false],
          ["main", "work", false]
        ]
      )
      assert.strictEqual((yield* after.agent.run("and now"))._tag, "Completed", "what comes after is free of it")
    })
  )

  const inline = { allowed: true, plugins: ["labour", "subagent"] }
  const model = ScriptedModel.make(
    { agents: { subagent: [calls(spawn("helper")), { text: "ok" }] } },
    { id: "other/large" }
  )
  const quick = { inline, resolveModel: () => Effect.succeed(model) }
  const slow = () => {
    let asked = 0
    // It is there when the order is looked at, and not when the subagent is made.
    return { inline, resolveModel: () => (++asked < 2 ? Effect.succeed(model) : Effect.never) }
  }
  const order = (plugins: ReadonlyArray<string>) => ({
    name: "delegate",
    params: { task: "go", plugins, model: "other/large" }
  })

  it.scoped("may do what was approved before it was made, and not what its groups of tools came to mean since", () =>
    Effect.gen(function* () {
      const script = { main: [calls(order(["subagent"])), { text: "done" }] }
      const { after, before } = yield* resumed(
        {
          script,
          person: ["approve"],
          subagents: slow(),
          runtime: asksAboutAll,
          agent: { tools: ["delegate", "agent_ask"] }
        },
        { script, person: () => "n", subagents: quick, runtime: asksAboutAll }
      )
      yield* after.agent.awaitIdle
      const [asked] = yield* before.person.shown
      assert.deepStrictEqual(
        asked?.interaction._tag === "approveSubagentEnvelope" ? asked.interaction.requestedEnvelope : [],
        ["delegate", "agent_ask", "request_clarification"]
      )
      assert.deepStrictEqual(Family.shown(yield* after.person.shown), [
        "main/subagent: spawn_subagent task=go, profile=helper, keep=true"
      ])
    })
  )

  it.scoped("asks for itself when it was ordered inside of an envelope: that one was its parent's", () =>
    Effect.gen(function* () {
      const inner = { name: "spawn_subagent", params: { task: "go", plugins: ["labour"] } }
      const script = {
        main: [calls(delegate("helper")), { text: "done" }],
        helper: [calls(inner), { text: "ok" }],
        subagent: [work("deep"), { text: "ok" }]
      }
      const options = {
        script,
        subagents: { profiles: [profile("helper", { autoApproved: true })], inline },
        runtime: asksAboutAll
      }
      // The first process dies when the order was decided and nothing was made.
      const { after } = yield* resumed(
        { ...options, person: ["y"], dies: (entry) => entry._tag === "SessionOpened" && entry.depth === 2 },
        { ...options, person: () => "n" }
      )
      yield* after.agent.awaitIdle
      assert.deepStrictEqual(Family.shown(yield* after.person.shown), ["main/helper/subagent: work deep"])
      assert.deepStrictEqual(after.worked, [])
    })
  )
})
