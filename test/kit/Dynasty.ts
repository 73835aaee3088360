/**
 * Trees of agents that delegate in every possible way, with a check of their authority: nothing runs that neither a
 * person nor a file's author allowed, and no agent has a tool that its parent lacks.
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Clarification from "../../src/builtin/Clarification.js"
import * as Delegate from "../../src/builtin/Delegate.js"
import * as SubagentControl from "../../src/builtin/SubagentControl.js"
import * as Origin from "../../src/core/Origin.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Stage from "../../src/session/Stage.js"
import * as SubagentProfile from "../../src/subagent/SubagentProfile.js"
import * as Subagents from "../../src/subagent/Subagents.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import { settle } from "./Recorder.js"

// -----------------------------------------------------------------------------------------------------------------
// tools
// -----------------------------------------------------------------------------------------------------------------

const deed = <Name extends string>(name: Name) => Tool.make(name, { success: Schema.String })

/** A custom tool that makes a subagent. */
const Hire = Tool.make("hire", {
  parameters: { profile: Schema.String },
  success: Schema.String,
  failure: Schema.String,
  failureMode: "return",
  dependencies: [Subagents.Subagents]
})

const own = Toolkit.make(deed("read"), deed("write"), deed("run"), Hire)
const toolkit = Toolkit.merge(own, Delegate.toolkit, SubagentControl.toolkit, Clarification.toolkit)

const deeds = ["read", "write", "run"] as const
const everything = [...deeds, "hire", "subagent"] as const

// -----------------------------------------------------------------------------------------------------------------
// plans
// -----------------------------------------------------------------------------------------------------------------

const profiles = ["explore", "plan", "worker", "chief"] as const

export interface Plan {
  /** Of the root. */
  readonly tools: ReadonlyArray<string>
  readonly profiles: Readonly<
    Record<
      (typeof profiles)[number],
      { readonly plugins: ReadonlyArray<string> | null; readonly autoApproved: boolean; readonly model: boolean }
    >
  >
  readonly whitelist: ReadonlyArray<string>
  /** What each agent does, by name. */
  readonly steps: Readonly<Record<string, ReadonlyArray<ReadonlyArray<ScriptedModel.ToolUse>>>>
  /** What the person says, over and over. */
  readonly says: ReadonlyArray<boolean>
  /** The root's work is a stage with these tools. */
  readonly stage: ReadonlyArray<string> | undefined
}

const some = (all: ReadonlyArray<string>) => FastCheck.subarray([...all])

const use: FastCheck.Arbitrary<ScriptedModel.ToolUse> = FastCheck.oneof(
  { weight: 4, arbitrary: FastCheck.constantFrom(...deeds).map((name) => ({ name })) },
  {
    weight: 5,
    arbitrary: FastCheck.record({
      name: FastCheck.constantFrom("delegate", "delegate", "spawn_subagent"),
      params: FastCheck.record({
        task: FastCheck.constant("go"),
        profile: FastCheck.constantFrom(...profiles),
        keep: FastCheck.constant(true)
      })
    })
  },
  {
    weight: 4,
    arbitrary: FastCheck.record({
      name: FastCheck.constantFrom("delegate", "spawn_subagent"),
      params: FastCheck.record(
        {
          task: FastCheck.constant("go"),
          plugins: some(everything),
          model: FastCheck.constant("other/model"),
          keep: FastCheck.constant(true)
        },
        { requiredKeys: ["task", "keep"] }
      )
    })
  },
  {
    weight: 2,
    arbitrary: FastCheck.record({
      name: FastCheck.constantFrom("explore", "plan", "agent"),
      params: FastCheck.constant({ task: "go" })
    })
  },
  {
    weight: 2,
    arbitrary: FastCheck.constantFrom(...profiles).map((profile) => ({ name: "hire", params: { profile } }))
  },
  {
    weight: 2,
    arbitrary: FastCheck.integer({ min: 1, max: 6 }).map((id) => ({
      name: "agent_ask",
      params: { agent_id: `subagent_${id}`, question: "more?" }
    }))
  },
  {
    weight: 2,
    arbitrary: FastCheck.integer({ min: 1, max: 6 }).map((id) => ({
      name: "send_to_subagent",
      params: { agent_id: `subagent_${id}`, message: "more" }
    }))
  }
)

const steps = FastCheck.array(FastCheck.array(use, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 })

const recipe = FastCheck.record({
  plugins: FastCheck.option(some(everything), { nil: null, freq: 3 }),
  autoApproved: FastCheck.boolean(),
  model: FastCheck.boolean()
})

export const plans: FastCheck.Arbitrary<Plan> = FastCheck.record({
  tools: FastCheck.oneof(FastCheck.constant([...everything]), some(everything)),
  profiles: FastCheck.record({ explore: recipe, plan: recipe, worker: recipe, chief: recipe }),
  whitelist: FastCheck.oneof(
    { weight: 3, arbitrary: FastCheck.constant([]) },
    { weight: 1, arbitrary: some(["read", "delegate", "hire"]) }
  ),
  steps: FastCheck.record({
    main: steps,
    explore: steps,
    plan: steps,
    worker: steps,
    chief: steps,
    subagent: steps,
    agent: steps
  }),
  says: FastCheck.array(FastCheck.constantFrom(true, true, true, false), { minLength: 1, maxLength: 7 }).map((says) => [
    true,
    ...says
  ]),
  stage: FastCheck.option(some([...deeds, "delegate", "spawn_subagent", "agent", "hire", "agent_ask"]), {
    freq: 3,
    nil: undefined
  })
})

// -----------------------------------------------------------------------------------------------------------------
// playing
// -----------------------------------------------------------------------------------------------------------------

/** Plays the plan. Yields violations; `seen` is called with the kinds of events. */
export const play = (plan: Plan, seen: (what: string) => void) =>
  Effect.scoped(
    Effect.gen(function* () {
      const worked: Array<{
        readonly session: string
        readonly agent: string
        readonly call: string
        readonly tool: string
      }> = []
      const work = (tool: string) => () =>
        Effect.map(Origin.current, ({ agent, sessionId, toolCallId = "" }) => {
          worked.push({ session: sessionId, agent, call: toolCallId, tool })
          return "done"
        })
      const handlers = Layer.mergeAll(
        own.toLayer({
          read: work("read"),
          write: work("write"),
          run: work("run"),
          hire: ({ profile }) =>
            Effect.flatMap(Subagents.Subagents, (subagents) =>
              Effect.as(subagents.delegate({ task: "go", profile }, "go"), "hired")
            )
        }),
        Delegate.layer,
        SubagentControl.layer,
        Clarification.layer
      )
      const script = {
        agents: Object.fromEntries(
          Object.entries(plan.steps).map(([name, own]) => [name, [...own.map((tools) => ({ tools })), { text: "ok" }]])
        )
      }
      const runtime = TestAgent.layer({
        toolkit,
        script,
        person: (_: InteractionRequest, index: number) => (plan.says[index % plan.says.length] === true ? "y" : "n"),
        policy: PermissionFile.policy({ whitelist: { tools: plan.whitelist } }),
        subagents: {
          profiles: profiles.map((name) => {
            const { autoApproved, model, plugins } = plan.profiles[name]
            return SubagentProfile.make({
              name,
              description: name,
              plugins,
              autoApproved,
              model: model ? "other/model" : undefined
            })
          }),
          resolveModel: (id) => Effect.succeed(ScriptedModel.make(script, { id })),
          inline: { allowed: true, plugins: [...everything] },
          maxDepth: 3,
          maxChildren: 8
        }
      }).pipe(Layer.provide(handlers))
      const context = yield* Layer.build(runtime)
      const family = yield* Effect.provide(TestAgent.start({ tools: plan.tools, limits: { maxSteps: 12 } }), context)
      if (plan.stage === undefined) yield* Effect.zipRight(family.agent.send("go"), family.agent.awaitIdle)
      else {
        const known = plan.stage.filter((name) => family.agent.tools.get(name) !== undefined)
        yield* Effect.provide(
          Stage.run(family.agent, {
            name: "bound",
            allowedTools: known,
            act: "go",
            assert: () => Effect.succeed(Stage.ok("")),
            retryPolicy: { maxAttempts: 1 }
          }),
          context
        )
      }
      yield* settle
      yield* family.agent.awaitIdle
      const nodes = yield* family.agent.agents
      return wrongIn(plan, { nodes, worked, events: yield* family.events, shown: yield* family.person.shown }, seen)
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Family = Effect.Effect.Success<ReturnType<typeof TestAgent.start>>

interface Played {
  readonly nodes: Effect.Effect.Success<Family["agent"]["agents"]>
  readonly worked: ReadonlyArray<{
    readonly session: string
    readonly agent: string
    readonly call: string
    readonly tool: string
  }>
  readonly events: ReadonlyArray<AgentEvent>
  readonly shown: ReadonlyArray<InteractionRequest>
}

const wrongIn = (plan: Plan, { events, nodes, shown, worked }: Played, seen: (what: string) => void) => {
  const wrong: Array<string> = []
  for (const { origin, session } of nodes) {
    const parent = nodes.find((other) => other.origin.sessionId === origin.parentSessionId)
    if (parent === undefined) continue
    seen(`depth ${origin.depth}`)
    for (const { name } of session.tools.entries) {
      if (parent.session.tools.get(name) === undefined) wrong.push(`${origin.agent} has ${name}, its parent has not`)
    }
  }
  const resolved = events.filter((event) => event._tag === "PermissionResolved")
  const how = (session: string, call: string) =>
    resolved.findLast((event) => event.sessionId === session && event.toolCallId === call)
  const approved = new Set(
    events.flatMap((event) => (event._tag === "SubagentEnvelopeApproved" ? [event.subagentId] : []))
  )
  const root = nodes.find(({ origin }) => origin.depth === 0)?.origin.sessionId
  const stageEnd = events.findIndex((event) => event._tag === "TurnEnded" && event.sessionId === root)
  const isOver = (event: AgentEvent) => stageEnd >= 0 && events.indexOf(event) > stageEnd
  for (const { agent, call, session, tool } of worked) {
    const decision = how(session, call)
    if (decision?.granted !== true) {
      wrong.push(`${agent} ran ${tool} that nobody decided about`)
      continue
    }
    seen(decision.method)
    if (decision.method === "user_approved" || decision.method === "stage_grant") continue
    if (decision.method === "whitelist") {
      if (!plan.whitelist.includes(tool)) wrong.push(`${agent} ran ${tool} by a rule that is not there`)
      continue
    }
    if (decision.method !== "envelope") {
      wrong.push(`${agent} ran ${tool}: ${decision.method}`)
      continue
    }
    if (decision.reason.includes("stage")) {
      if (plan.stage?.includes(tool) !== true) wrong.push(`${agent} ran ${tool} outside of its stage`)
      continue
    }
    // What goes on after its stage has its own envelope again, and never more than the stage had.
    if (plan.stage !== undefined && (!isOver(decision) || !plan.stage.includes(tool))) {
      wrong.push(`${agent} ran ${tool} by its own envelope in a stage`)
      continue
    }
    const created = events.find((event) => event._tag === "AgentCreated" && event.sessionId === session)
    if (created?._tag !== "AgentCreated" || created.subagentId === undefined) {
      wrong.push(`${agent} ran ${tool} in the envelope of nobody`)
      continue
    }
    const asked = shown.find(
      ({ interaction }) =>
        interaction._tag === "approveSubagentEnvelope" && interaction.subagentId === created.subagentId
    )?.interaction
    if (asked?._tag === "approveSubagentEnvelope" && approved.has(created.subagentId)) {
      seen("an approved envelope")
      if (!asked.requestedEnvelope.includes(tool)) wrong.push(`${agent} ran ${tool} that was not in its envelope`)
      continue
    }
    const named = profiles.find((name) => name === created.profile)
    const author = named !== undefined && plan.profiles[named].autoApproved
    if (!author) {
      wrong.push(`${agent} ran ${tool} and nobody approved it`)
      continue
    }
    seen("an author's approval")
    const order = how(created.parentSessionId ?? "", created.parentToolCallId ?? "")
    if (order === undefined || order.method === "envelope") {
      wrong.push(`${agent} runs ${tool}, approved by its author, below an envelope that nobody widened`)
    }
  }
  return wrong
}
