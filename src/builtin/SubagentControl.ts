/**
 * The tools with which a model controls its subagents: ask, send words, cancel, close and list. A session reaches its
 * own children only.
 *
 * @since 0.1.0
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Words } from "../inbox/Message.js"
import { Subagents } from "../subagent/Subagents.js"
import { SubagentResult } from "../subagent/SubagentResult.js"
import * as ToolTrait from "../tool/ToolTrait.js"

const agentId = Schema.NonEmptyString.annotations({ description: "Id of one of your subagents." })

const formerly = { subagent_id: "agent_id" }

const dependencies: [typeof Subagents] = [Subagents]

const sentence = { success: Schema.String, failure: Schema.String, failureMode: "return" as const, dependencies }

/**
 * Asks a subagent something more, also a kept one that has finished, and waits.
 *
 * @since 0.1.0
 * @category tools
 */
export const AgentAsk = Tool.make("agent_ask", {
  description: "Asks a subagent of yours a question about its work and waits for the answer.",
  parameters: { agent_id: agentId, question: Words },
  ...sentence,
  success: SubagentResult
})
  .annotate(ToolTrait.Kind, "think")
  .annotate(ToolTrait.Renamed, formerly)
  .annotate(ToolTrait.Groups, ["subagent"])
  .annotate(ToolTrait.AutoApproved, true)
  .annotate(ToolTrait.Resumable, true)

/**
 * Sends words to a subagent and does not wait.
 *
 * @since 0.1.0
 * @category tools
 */
export const SendToSubagent = Tool.make("send_to_subagent", {
  description:
    "Sends words to a subagent of yours: it reads them at its next step, or begins to work on them when it is idle and " +
    "reports in a message. It does not answer questions that the subagent put to the user.",
  parameters: { agent_id: agentId, message: Words },
  ...sentence
})
  .annotate(ToolTrait.Kind, "think")
  .annotate(ToolTrait.Renamed, formerly)
  .annotate(ToolTrait.Groups, ["subagent"])
  .annotate(ToolTrait.AutoApproved, true)

/**
 * Ends what a subagent does. A kept one stays.
 *
 * @since 0.1.0
 * @category tools
 */
export const CancelSubagent = Tool.make("cancel_subagent", {
  description: "Stops what a subagent of yours is doing. A kept one stays and can be given another task.",
  parameters: { agent_id: agentId },
  ...sentence
})
  .annotate(ToolTrait.Kind, "think")
  .annotate(ToolTrait.Renamed, formerly)
  .annotate(ToolTrait.Groups, ["subagent"])
  .annotate(ToolTrait.AutoApproved, true)
  .annotate(Tool.Idempotent, true)

/**
 * Ends a subagent for good.
 *
 * @since 0.1.0
 * @category tools
 */
export const CloseSubagent = Tool.make("close_subagent", {
  description: "Ends a subagent of yours; one that works is cancelled first.",
  parameters: { agent_id: agentId },
  ...sentence
})
  .annotate(ToolTrait.Kind, "think")
  .annotate(ToolTrait.Renamed, formerly)
  .annotate(ToolTrait.Groups, ["subagent"])
  .annotate(ToolTrait.AutoApproved, true)
  .annotate(Tool.Idempotent, true)

/**
 * Names the subagents of this session.
 *
 * @since 0.1.0
 * @category tools
 */
export const ListSubagents = Tool.make("list_subagents", {
  description: "Lists your subagents with what they are doing.",
  ...sentence,
  success: Schema.Array(
    Schema.Struct({
      agent_id: Schema.String,
      name: Schema.String,
      status: Schema.Literal("idle", "working"),
      turns: Schema.Number
    })
  )
})
  .annotate(Tool.Readonly, true)
  .annotate(ToolTrait.Kind, "think")
  .annotate(ToolTrait.Groups, ["subagent"])
  .annotate(ToolTrait.AutoApproved, true)

/**
 * Names the profiles that may be delegated to.
 *
 * @since 0.1.0
 * @category tools
 */
export const ListProfiles = Tool.make("list_profiles", {
  description: "Lists the profiles that delegate can be given, with what each is for.",
  ...sentence,
  success: Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.String }))
})
  .annotate(Tool.Readonly, true)
  .annotate(ToolTrait.Kind, "think")
  .annotate(ToolTrait.Groups, ["subagent"])
  .annotate(ToolTrait.AutoApproved, true)

/**
 * All tools that control subagents.
 *
 * @since 0.1.0
 * @category tools
 */
export const toolkit = Toolkit.make(
  AgentAsk,
  SendToSubagent,
  CancelSubagent,
  CloseSubagent,
  ListSubagents,
  ListProfiles
)

/**
 * The handlers. Each call provides its session's `Subagents`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> = toolkit.toLayer({
  agent_ask: ({ question, agent_id }) => Effect.flatMap(Subagents, (own) => own.ask(agent_id, question)),
  send_to_subagent: ({ message, agent_id }) => Effect.flatMap(Subagents, (own) => own.send(agent_id, message)),
  cancel_subagent: ({ agent_id }) => Effect.flatMap(Subagents, (own) => own.cancel(agent_id)),
  close_subagent: ({ agent_id }) => Effect.flatMap(Subagents, (own) => own.close(agent_id)),
  list_subagents: () => Effect.flatMap(Subagents, (own) => own.list),
  list_profiles: () =>
    Effect.map(Subagents, ({ profiles }) => profiles.map(({ description, name }) => ({ name, description })))
})
