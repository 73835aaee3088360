import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as FastCheck from "effect/FastCheck"
import * as Delegate from "../../src/builtin/Delegate.js"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as Family from "../kit/Family.js"
import { resultsOf } from "../kit/session.js"

const { calls } = Family

const use = (name: string, params: object = {}): ScriptedModel.ToolUse => ({ name, params })

/** Starts a child in each way that there is. */
const ways = {
  delegate: use("delegate", { task: "go", profile: "helper" }),
  spawn_subagent: use("spawn_subagent", { task: "go", profile: "helper" }),
  explore: use("explore", { task: "go" }),
  agent: use("agent", { task: "go" })
} as const

const profiles = ["helper", "explore"].map((name) => Family.profile(name))

const answers = [{ text: "ok" }, { text: "ok" }, { text: "ok" }, { text: "ok" }, { text: "ok" }, { text: "ok" }]

/** A root with the tools that delegate, and no tool that closes. */
const withDelegateAlone = (script: ScriptedModel.Script["agents"], maxChildren: number) =>
  Effect.gen(function* () {
    const runtime = TestAgent.layer({
      toolkit: Delegate.toolkit,
      script: { agents: { helper: answers, explore: answers, agent: answers, ...script } },
      policy: Family.delegationAllowed,
      subagents: { profiles, maxChildren }
    }).pipe(Layer.provide(Delegate.layer))
    return yield* Effect.provide(TestAgent.start(), yield* Layer.build(runtime))
  })

const results = (agent: { readonly history: { readonly messages: Parameters<typeof resultsOf>[0] } }) =>
  agent.history.messages.flatMap((message) =>
    message.role === "tool" ? message.content.map(({ result }) => result) : []
  )

const living = (family: { readonly agent: TestAgent.TestAgent["agent"] }) =>
  Effect.map(family.agent.agents, (nodes) => nodes.map(({ origin }) => origin.agent))

const isRefused = (result: unknown) => typeof result === "string"

describe("the limit of children", () => {
  for (const [name, call] of Object.entries(ways)) {
    it.scoped(`is no quota for life: ${name} works again after each report`, () =>
      Effect.gen(function* () {
        const turns = Array.from({ length: 5 }, () => [calls(call), { text: "done" }, { text: "heard" }])
        const family = yield* withDelegateAlone({ main: turns.flat() }, 1)
        for (const _ of turns) {
          yield* Family.untilIdle(family.agent, "go")
          // A report to an idle parent takes a turn of its own; a call that waits has it already.
          if (name !== "spawn_subagent") yield* Family.untilIdle(family.agent, "and?")
          assert.deepStrictEqual(yield* living(family), ["main"])
        }
        assert.deepStrictEqual(results(family.agent).filter(isRefused), [])
        assert.strictEqual(results(family.agent).length, 5)
      })
    )
  }

  it.scoped("takes the room of kept children where no tool can close them", () =>
    Effect.gen(function* () {
      const kept = use("delegate", { task: "go", profile: "helper", keep: true })
      const family = yield* withDelegateAlone({ main: [calls(kept), calls(kept), calls(kept), { text: "done" }] }, 1)
      yield* family.agent.run("go")
      assert.deepStrictEqual(results(family.agent).filter(isRefused), [])
      assert.deepStrictEqual(yield* living(family), ["main", "main/helper-3"])
    })
  )

  it.scoped("counts kept children where a tool can close them", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [
            calls(Family.delegate("helper")),
            calls(ways.delegate),
            calls(use("close_subagent", { agent_id: "subagent_1" })),
            calls(ways.delegate),
            { text: "done" }
          ],
          helper: answers
        },
        subagents: { maxChildren: 1 }
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual(results(family.agent).map(isRefused), [false, true, true, false])
      assert.include(results(family.agent)[1], "Wait until one has reported, or close one that is kept.")
      assert.deepStrictEqual(yield* living(family), ["main"])
    })
  )

  it.effect.prop(
    "is no quota for life, whatever ways a model takes",
    [FastCheck.array(FastCheck.constantFrom(...Object.values(ways)), { minLength: 1, maxLength: 6 })],
    ([made]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const family = yield* withDelegateAlone(
            { main: made.flatMap((call) => [calls(call), { text: "done" }, { text: "heard" }, { text: "heard" }]) },
            2
          )
          for (const _ of made) yield* Family.untilIdle(family.agent, "go")
          assert.deepStrictEqual(yield* living(family), ["main"])
        })
      ),
    { fastCheck: { numRuns: 20 } }
  )
})

describe("an ended child", () => {
  it.scoped("is not there to be asked, and the answer says how to keep one", () =>
    Effect.gen(function* () {
      const asked = ["agent_ask", "send_to_subagent", "cancel_subagent", "close_subagent"].map((name) =>
        use(name, { agent_id: "subagent_1", question: "more?", message: "more" })
      )
      const family = yield* Family.start({
        script: { main: [calls(ways.delegate), calls(...asked), { text: "done" }], helper: answers }
      })
      yield* family.agent.run("go")
      for (const result of results(family.agent).slice(1)) {
        assert.strictEqual(
          result,
          'You have no subagent "subagent_1". You have none. A subagent ends with its report. ' +
            "To ask it more, start it with keep: true."
        )
      }
    })
  )

  it.scoped("was cancelled with the call that waited for it", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: { main: [calls(ways.delegate), { text: "done" }], helper: [{ text: "ok", delay: "1 hour" }] }
      })
      yield* family.agent.send("go")
      yield* Effect.yieldNow()
      yield* Effect.repeatN(Effect.yieldNow(), 200)
      assert.deepStrictEqual(yield* living(family), ["main", "main/helper"])
      yield* family.agent.cancel()
      yield* Effect.repeatN(Effect.yieldNow(), 200)
      assert.deepStrictEqual(yield* living(family), ["main"])
    })
  )
})

describe("the id of a child", () => {
  it.scoped("is agent_id in every tool; its former name is read as well", () =>
    Effect.gen(function* () {
      const { tools } = (yield* Family.start({ script: {} })).agent
      for (const name of ["agent_ask", "send_to_subagent", "cancel_subagent", "close_subagent"]) {
        const decode = (id: object) => tools.get(name)?.decode({ question: "q", message: "m", ...id })
        assert.deepStrictEqual(decode({ subagent_id: "a" }), decode({ agent_id: "a" }))
        assert.deepStrictEqual(decode({ subagent_id: "b", agent_id: "a" }), decode({ agent_id: "a" }))
        assert.strictEqual(decode({})?._tag, "Left")
      }
    })
  )
})
