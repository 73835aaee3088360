/** A process dies between the moment a call was allowed and the one it began, and in the next process nothing allows it any more. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Delegate from "../../src/builtin/Delegate.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import type { Approval, PolicySource } from "../../src/permission/PolicySource.js"
import type * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Stage from "../../src/session/Stage.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as Family from "../kit/Family.js"
import * as Mortal from "../kit/Mortal.js"
import * as Runs from "../kit/Runs.js"

const parameters = { name: Schema.String }
const Work = Tool.make("work", { parameters, success: Schema.String }).annotate(ToolTrait.Groups, ["labour"])
/** May be done again. */
const Look = Tool.make("look", { parameters, success: Schema.String })
  .annotate(Tool.Idempotent, true)
  .annotate(ToolTrait.Groups, ["labour"])
const own = Toolkit.make(Work, Look)
const toolkit = Toolkit.merge(own, Delegate.toolkit)

const working: ReadonlyArray<ScriptedModel.Step> = [
  { tools: ["work", "look", "work"].map((name, index) => ({ name, id: `call_${index}`, params: { name } })) },
  { text: "done" },
  { text: "over" }
]
const script: ScriptedModel.Script["agents"] = { main: working }
/** A subagent does the work. */
const delegating = (child: string, params: { readonly [name: string]: unknown }): ScriptedModel.Script["agents"] => ({
  main: [
    { tools: [{ name: "delegate", id: "call_d", params: { task: "go", ...params } }] },
    { text: "done" },
    { text: "over" }
  ],
  [child]: working
})
const free = (autoApproved: boolean) => ({ profiles: [Family.profile("free", { autoApproved })] })

interface Case {
  readonly policy?: PolicySource
  readonly drive?: (agent: Agent.Agent) => Effect.Effect<unknown, Agent.NotTaken>
  readonly answer?: TestInteractor.Step
  /** What the person is who gives it. */
  readonly roles?: ReadonlyArray<string>
  /** The policy of the second process. Default: it asks about everything. */
  readonly then?: PolicySource
  /** What is said there. Default: no. */
  readonly thenSaid?: TestInteractor.Step
  /** What runs in the second process without a question. */
  readonly keeps?: true
  readonly script?: ScriptedModel.Script["agents"]
  readonly subagents?: AgentRuntime.SubagentOptions
  /** Those of the second process. Default: the same. */
  readonly thenSubagents?: AgentRuntime.SubagentOptions
}

const run = (agent: Agent.Agent) => agent.run("go")

const reserved = (approval: Omit<Approval, "tools">, ops: ReadonlyArray<string> = []): PolicySource => ({
  approvals: [{ ...approval, tools: ["work", "look"] }],
  roles: { ops: [...ops] }
})

const cases: Readonly<Record<string, Case>> = {
  "the policy": { policy: { whitelist: { tools: ["work", "look"] } } },
  "its default": { policy: { defaultPolicy: "allow" } },
  "the mode": { drive: (agent) => Effect.zipRight(Effect.orDie(agent.permissions.setMode("allow")), run(agent)) },
  "a stage": {
    drive: (agent) =>
      Stage.run(
        agent,
        Stage.make({
          name: "build",
          allowedTools: ["look"],
          act: "go",
          assert: () => Effect.succeed(Stage.ok("")),
          retryPolicy: { maxAttempts: 1 }
        })
      ).pipe(Effect.catchTag("StageInvalid", Effect.die)),
    answer: TestInteractor.answer({ outcome: "approve" }),
    then: { whitelist: { tools: ["work", "look"] } }
  },
  "a person, and a list denies it now": { answer: "y", then: { blacklist: { tools: ["work", "look"] } } },
  "the policy, and it is reserved now": {
    policy: { whitelist: { tools: ["work", "look"] } },
    then: { whitelist: { tools: ["work", "look"] }, approvals: [{ tools: ["work", "look"] }] }
  },
  "a person": { answer: "y", keeps: true },
  "a person, and it is just for a person now": { answer: "y", then: reserved({}), keeps: true },
  "a person, and two are wanted now": { answer: "y", then: reserved({ quorum: 2 }) },
  "a person, and another one is wanted now": { answer: "y", roles: ["ops"], then: reserved({ roles: ["ops"] }) },
  "somebody of the role": {
    policy: reserved({ roles: ["ops"] }),
    answer: "y",
    roles: ["ops"],
    then: reserved({ roles: ["ops"] }),
    keeps: true
  },
  "somebody whom the policy has in the role": {
    policy: reserved({ roles: ["ops"] }, ["person"]),
    answer: "y",
    then: reserved({ roles: ["ops"] }, ["other", "person"]),
    keeps: true
  },
  "somebody who is not in the role any more": {
    policy: reserved({ roles: ["ops"] }, ["person"]),
    answer: "y",
    then: reserved({ roles: ["ops"] }, ["other"])
  },
  "somebody of the role, and two are wanted now": {
    policy: reserved({ roles: ["ops"] }),
    answer: "y",
    roles: ["ops"],
    then: reserved({ roles: ["ops"], quorum: 2 })
  },
  "a suspension of everything": {
    drive: (agent) => Effect.zipRight(Effect.orDie(agent.permissions.suspend("all")), run(agent)),
    keeps: true
  },
  "the profile of its subagent": {
    script: delegating("free", { profile: "free" }),
    policy: { whitelist: { tools: ["delegate"] } },
    then: { whitelist: { tools: ["delegate"] } },
    subagents: free(true),
    thenSubagents: free(false)
  },
  "the profile of its subagent, which still does": {
    script: delegating("free", { profile: "free" }),
    policy: { whitelist: { tools: ["delegate"] } },
    subagents: free(true),
    keeps: true
  },
  "a person, with all its subagent may do": {
    script: delegating("subagent", { plugins: ["labour"] }),
    answer: TestInteractor.answer({ outcome: "approve" }),
    subagents: { inline: { allowed: true, plugins: ["labour"] } },
    keeps: true
  }
}

/** What ran in the second process, where the person says no; the first died in this write. */
const second = (
  {
    answer = "n",
    drive = run,
    policy = {},
    roles,
    script: agents = script,
    subagents,
    then = {},
    thenSaid = "n",
    thenSubagents = subagents
  }: Case,
  death: Mortal.Death
) =>
  Effect.gen(function* () {
    const world = yield* Mortal.world
    const ran: Array<string> = []
    const worked = ({ name }: { readonly name: string }) => Effect.sync(() => (ran.push(name), name))
    const runtimeOf =
      (source: PolicySource, subagents: Case["subagents"]): Mortal.Options["runtime"] =>
      (ids) =>
        AgentRuntime.layer({ toolkit, policy: PermissionFile.policy(source), ...(subagents && { subagents }) }).pipe(
          Layer.provide([own.toLayer({ work: worked, look: worked }), Delegate.layer]),
          Layer.provide([ScriptedModel.layer({ agents }), FileSystem.layerNoop({}), Path.layer]),
          Layer.provide(ids),
          Layer.merge(ids)
        )
    const first = yield* Mortal.live(
      world,
      { runtime: runtimeOf(policy, subagents), person: () => answer, roles },
      drive,
      death
    )
    // What was never written down leaves nothing to go on with.
    if (!first.died || (death.at === 1 && !death.written)) return { died: first.died, ran: [] }
    ran.splice(0)
    yield* Mortal.live(
      world,
      { runtime: runtimeOf(then, thenSubagents), person: () => thenSaid },
      (agent) => agent.awaitIdle
    )
    return { died: true, ran }
  })

describe("a call that another process allowed", () => {
  for (const [what, one] of Object.entries(cases)) {
    it.effect(`${one.keeps ? "runs" : "does not run"}, wherever that died, as it was allowed by ${what}`, () =>
      Effect.gen(function* () {
        let resumed = 0
        for (let at = 1, goesOn = true; goesOn; at++) {
          for (const written of Runs.isWhole ? [false, true] : [at % 2 === 0]) {
            const { died, ran } = yield* second(one, { at, written })
            goesOn = died
            if (!one.keeps) assert.deepStrictEqual(ran, [], `at ${at}, ${written}`)
            resumed += ran.length
          }
        }
        if (one.keeps) assert.isAbove(resumed, 0)
      })
    )
  }
})

describe("a call that another process proposed", () => {
  it.effect("does not run with a mask in the place of what is not kept, also where a person allows it", () =>
    Effect.gen(function* () {
      const name = `ghp_${"a1B2".repeat(9)}`
      const agents = { main: [{ tools: [{ name: "work", params: { name } }] }, { text: "done" }, { text: "over" }] }
      for (let at = 1, goesOn = true; goesOn; at++) {
        for (const written of Runs.isWhole ? [false, true] : [at % 2 === 0]) {
          const { died, ran } = yield* second({ answer: "y", thenSaid: "y", script: agents }, { at, written })
          goesOn = died
          assert.deepStrictEqual(
            ran.filter((given) => given !== name),
            [],
            `at ${at}, ${written}`
          )
        }
      }
    })
  )
})
