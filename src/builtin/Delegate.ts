/**
 * The tools with which a model gives work to subagents: `delegate`, `explore`, `plan` and `agent` wait for the result,
 * `spawn_subagent` does not.
 *
 * The handlers are built once; each call says for which session they make children.
 *
 * @since 0.1.0
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as DelegationRequest from "../subagent/DelegationRequest.js"
import * as Subagents from "../subagent/Subagents.js"
import { SubagentResult } from "../subagent/SubagentResult.js"
import * as ToolTrait from "../tool/ToolTrait.js"

/** While several work, the one with the lowest number gets the user's words. */
const precedence = { explore: 0, plan: 1, agent: 2, delegate: 2 } as const

const dependencies: [typeof Subagents.Subagents] = [Subagents.Subagents]

const ending = { failure: Schema.String, failureMode: "return" as const, dependencies }

const waiting = { ...ending, success: SubagentResult }

/**
 * Gives a task to a subagent of any profile, or one that the model describes, and waits.
 *
 * @since 0.1.0
 * @category tools
 */
export const Delegate = Tool.make("delegate", {
  description:
    "Gives a task to a subagent and waits for its result. Name a profile, or describe the subagent. Several calls in one " +
    "step work at the same time. The subagent ends with its result, unless you keep it.",
  parameters: DelegationRequest.parameters,
  ...waiting
})
  .pipe(
    ToolTrait.validate((order) => Effect.flatMap(Subagents.Subagents, (subagents) => subagents.validate(order))),
    ToolTrait.preview((order) =>
      Effect.flatMap(Subagents.Subagents, (subagents) =>
        subagents.describe(order, DelegationRequest.instruction(order))
      )
    )
  )
  .annotate(ToolTrait.Kind, "think")
  .annotate(ToolTrait.Groups, ["subagent"])
  .annotate(ToolTrait.Injectable, precedence.delegate)
  .annotate(ToolTrait.Resumable, true)

/**
 * Gives a task to a subagent and continues; the result begins a turn later.
 *
 * @since 0.1.0
 * @category tools
 */
export const SpawnSubagent = Tool.make("spawn_subagent", {
  description:
    "Gives a task to a subagent and does not wait: you get its id at once and its result as a message when it is done. " +
    "Otherwise like delegate.",
  parameters: DelegationRequest.parameters,
  success: Schema.Struct({ agent_id: Schema.String, status: Schema.Literal("spawned") }),
  ...ending
})
  .pipe(
    ToolTrait.validate((order) => Effect.flatMap(Subagents.Subagents, (subagents) => subagents.validate(order))),
    ToolTrait.preview((order) =>
      Effect.flatMap(Subagents.Subagents, (subagents) =>
        subagents.describe(order, DelegationRequest.instruction(order))
      )
    )
  )
  .annotate(ToolTrait.Kind, "think")
  .annotate(ToolTrait.Groups, ["subagent"])
  .annotate(ToolTrait.Resumable, true)

const shorthand = <Name extends "agent" | "explore" | "plan">(name: Name, description: string) =>
  Tool.make(name, {
    description,
    parameters: {
      task: Schema.NonEmptyString.annotations({
        description: "What to do. The subagent sees nothing else of this conversation."
      })
    },
    ...waiting
  })
    .pipe(
      ToolTrait.validate(({ task }) =>
        Effect.flatMap(Subagents.Subagents, (subagents) => subagents.validate(DelegationRequest.shorthand(name, task)))
      ),
      ToolTrait.preview(({ task }) =>
        Effect.flatMap(Subagents.Subagents, (subagents) =>
          subagents.describe(DelegationRequest.shorthand(name, task), task)
        )
      )
    )
    .annotate(ToolTrait.Kind, "think")
    .annotate(ToolTrait.Groups, ["subagent"])
    .annotate(ToolTrait.Injectable, precedence[name])
    .annotate(ToolTrait.Resumable, true)

/**
 * Gives a question to a subagent that only reads.
 *
 * @since 0.1.0
 * @category tools
 */
export const Explore = shorthand(
  "explore",
  "Lets a subagent look around and report what it found. It changes nothing. Use it for searches that take many steps."
)
/**
 * Gives a goal to a subagent that plans and changes nothing.
 *
 * @since 0.1.0
 * @category tools
 */
export const Plan = shorthand("plan", "Lets a subagent read what a task touches and make a plan. It changes nothing.")
/**
 * Gives a task to a subagent without a profile of its own.
 *
 * @since 0.1.0
 * @category tools
 */
export const Agent = shorthand(
  "agent",
  "Lets a subagent with the same tools as yours do a task, and waits for the result."
)

/**
 * All tools that delegate.
 *
 * @since 0.1.0
 * @category tools
 */
export const toolkit = Toolkit.make(Delegate, SpawnSubagent, Explore, Plan, Agent)

/**
 * The handlers. Each call provides its session's `Subagents`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> = toolkit.toLayer({
  delegate: (order) => delegate(order, DelegationRequest.instruction(order), precedence.delegate),
  spawn_subagent: (order) =>
    Effect.flatMap(Subagents.Subagents, (subagents) =>
      Effect.map(subagents.spawn(order, DelegationRequest.instruction(order)), ({ agent_id }) => ({
        agent_id,
        status: "spawned" as const
      }))
    ),
  explore: ({ task }) => delegate(DelegationRequest.shorthand("explore", task), task, precedence.explore),
  plan: ({ task }) => delegate(DelegationRequest.shorthand("plan", task), task, precedence.plan),
  agent: ({ task }) => delegate(DelegationRequest.shorthand("agent", task), task, precedence.agent)
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const delegate = (order: DelegationRequest.Wanted, task: string, rank: number) =>
  Effect.flatMap(Subagents.Subagents, (subagents) => subagents.delegate(order, task, rank))
