/** A root agent that can have subagents, with one tool that needs approval and a person who answers. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Delegate from "../../src/builtin/Delegate.js"
import * as SubagentControl from "../../src/builtin/SubagentControl.js"
import * as Id from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import type { AgentEvent, EventOf } from "../../src/event/AgentEvent.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Clarification from "../../src/builtin/Clarification.js"
import type * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import type * as Agent from "../../src/runtime/Agent.js"
import * as SubagentProfile from "../../src/subagent/SubagentProfile.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import type * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"

/** Asks before it works, and does what the test says. */
const Work = Tool.make("work", { parameters: { name: Schema.String }, success: Schema.String })
  .annotate(ToolTrait.Groups, ["labour"])
  .pipe(ToolTrait.editable(["name"]))

const own = Toolkit.make(Work)
export const toolkit = Toolkit.merge(own, Delegate.toolkit, SubagentControl.toolkit, Clarification.toolkit)

export const profile = (name: string, more: Partial<SubagentProfile.SubagentProfile> = {}) =>
  SubagentProfile.make({ name, description: `does ${name}`, ...more })

export interface Options {
  readonly script: ScriptedModel.Script["agents"]
  readonly person?: TestInteractor.Script | TestInteractor.Options | undefined
  readonly worker?: ((name: string) => Effect.Effect<string>) | undefined
  readonly subagents?: AgentRuntime.SubagentOptions | undefined
  readonly runtime?: Partial<Omit<AgentRuntime.Options<typeof toolkit.tools>, "toolkit">> | undefined
  readonly agent?: Agent.Options | undefined
  /** Default: ids that count from 1, which a resumed agent must not give again where that counts. */
  readonly ids?: Id.Generator | undefined
}

/** Delegating asks nobody, working does. */
export const delegationAllowed = PermissionFile.policy({
  whitelist: { tools: ["delegate", "spawn_subagent", "explore", "plan", "agent"] }
})

/** The agents that did some work, in order. */
export interface Family extends TestAgent.TestAgent {
  readonly worked: ReadonlyArray<{ readonly agent: string; readonly name: string }>
}

export const start = (options: Options) => Effect.orDie(startKept(options))

/** As {@link start}, where the persistence may be in use. */
export const startKept = (options: Options) => {
  const worked: Array<{ readonly agent: string; readonly name: string }> = []
  const worker = options.worker ?? Effect.succeed
  const handlers = Layer.mergeAll(
    own.toLayer({
      work: ({ name }) =>
        Effect.flatMap(Origin.current, ({ agent }) => {
          worked.push({ agent, name })
          return worker(name)
        })
    }),
    Delegate.layer,
    SubagentControl.layer,
    Clarification.layer
  )
  const runtime = TestAgent.layer({
    toolkit,
    script: { agents: options.script },
    person: options.person,
    policy: delegationAllowed,
    subagents: { profiles: [profile("helper"), profile("nested")], ...options.subagents },
    ...options.runtime
  }).pipe(Layer.provide(handlers))
  return Effect.map(
    Effect.flatMap(Layer.build(runtime), (context) => {
      const { ids = Context.get(context, Id.IdGenerator) } = options
      return Effect.provide(TestAgent.start(options.agent), Context.add(context, Id.IdGenerator, ids))
    }),
    (family): Family => ({ ...family, worked })
  )
}

/** A step that proposes these calls. */
export const calls = (...tools: ReadonlyArray<ScriptedModel.ToolUse>): ScriptedModel.Step => ({ tools })
export const work = (...names: ReadonlyArray<string>): ScriptedModel.Step =>
  calls(...names.map((name) => ({ name: "work", params: { name } })))
/** The child is kept, so that a test can look at it after its report. */
export const delegate = (profile: string, task = "go"): ScriptedModel.ToolUse => ({
  name: "delegate",
  params: { task, profile, keep: true }
})
export const spawn = (profile: string, task = "go"): ScriptedModel.ToolUse => ({
  name: "spawn_subagent",
  params: { task, profile, keep: true }
})

export const ofTag = <Tag extends AgentEvent["_tag"]>(
  events: ReadonlyArray<AgentEvent>,
  tag: Tag
): ReadonlyArray<EventOf<Tag>> => events.filter((event): event is EventOf<Tag> => event._tag === tag)

/** Who asks, and for what. */
export const shown = (requests: ReadonlyArray<InteractionRequest>): ReadonlyArray<string> =>
  requests.map(
    ({ agentPath, interaction }) =>
      `${agentPath}: ${interaction._tag === "Approve" ? `${interaction.tool} ${interaction.argumentsSummary}` : interaction._tag}`
  )

/** The text of a completed turn. */
export const textOf = (end: Effect.Effect.Success<ReturnType<Agent.Agent["run"]>>): string =>
  end._tag === "Completed" ? end.text : end._tag

/** Says something to the root, and waits until nothing works any more: also for what its children report. */
export const untilIdle = (agent: Agent.Agent, text: string) =>
  Effect.map(Effect.zipRight(agent.send(text), agent.awaitIdle), Option.getOrThrow)

export const gate = Effect.map(Deferred.make<void>(), (latch) => ({
  open: Deferred.succeed(latch, undefined),
  pass: Deferred.await(latch)
}))

export const some = Option.getOrUndefined
