/**
 * How a subagent's task ended, for the agent that gave it.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type * as Turn from "../turn/Turn.js"

/**
 * The result that the delegating model reads.
 *
 * @since 0.1.0
 * @category schemas
 */
export const SubagentResult = Schema.Struct({
  success: Schema.Boolean,
  /** The subagent's answer; without one, all that it said in the task. */
  response: Schema.optional(Schema.String),
  /** Replaces the response when people have already read it. */
  response_note: Schema.optional(Schema.String),
  /** Replaces the response where the profile has an `outputSchema`: the answer in that form, as JSON. */
  output: Schema.optional(Schema.Unknown),
  /** Model calls of this task. */
  turns_used: Schema.Number,
  error: Schema.optional(Schema.String),
  /** Tokens of the subagent so far. */
  token_usage: Schema.optional(Schema.Struct({ input: Schema.Number, output: Schema.Number })),
  /** Id of the subagent, for further questions to one that is kept. */
  agent_id: Schema.String,
  output_streamed: Schema.Boolean,
  /** Tools of its profile that it does not have, because the agent that delegated does not have them. */
  missing_tools: Schema.optional(Schema.Array(Schema.String))
})
export type SubagentResult = typeof SubagentResult.Type

/**
 * How a subagent's task ended.
 *
 * @since 0.1.0
 * @category models
 */
export interface Task {
  readonly agentId: string
  readonly end: Turn.TurnEnd
  /** Its answer, or all that it said in the task. */
  readonly text: string
  readonly usage: { readonly input: number; readonly output: number } | undefined
  readonly outputStreamed: boolean
  /** The answer in the form of the profile's `outputSchema`, as JSON. */
  readonly output?: { readonly value: unknown } | undefined
  /** Names of the tools of its profile that its parent lacks. */
  readonly lacking: ReadonlyArray<string>
}

/**
 * The result of a task.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = ({ agentId, end, lacking, output, outputStreamed, text, usage }: Task): SubagentResult => {
  const error = errorOf(end)
  return {
    success: error === undefined,
    ...(output !== undefined
      ? { output: output.value }
      : outputStreamed
        ? { response_note: `The user has read this answer while it was written. Do not repeat it: ${text}` }
        : { response: text }),
    turns_used: end.steps,
    ...(error === undefined ? {} : { error }),
    ...(usage === undefined ? {} : { token_usage: usage }),
    agent_id: agentId,
    output_streamed: outputStreamed,
    ...(lacking.length === 0 ? {} : { missing_tools: lacking })
  }
}

/**
 * The message for a parent that does not wait.
 *
 * @since 0.1.0
 * @category conversions
 */
export const announce = (result: SubagentResult, end: Turn.TurnEnd): string => {
  const event = end._tag === "Cancelled" ? "CANCELLED" : result.success ? "COMPLETED" : "ERROR"
  return `[SUBAGENT agent_id=${result.agent_id} event=${event}]\n${JSON.stringify(result)}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const errorOf = (end: Turn.TurnEnd): string | undefined => {
  switch (end._tag) {
    case "Completed":
      return undefined
    case "Cancelled":
      return `cancelled (${end.reason})`
    case "TurnLimit":
      return "turn limit"
    case "Halted":
    case "Denied":
      return end.detail
    case "Failed":
      return end.error
  }
}
