/**
 * The children of one session: makes them, gives them work, asks, cancels and closes them. A session sees and controls
 * only its own children.
 *
 * Every tool call runs with the `Subagents` of the session that made it, so the tools themselves are built once.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ToolDisplay } from "../tool/ToolCall.js"
import type * as DelegationRequest from "./DelegationRequest.js"
import type * as SubagentProfile from "./SubagentProfile.js"
import type * as SubagentResult from "./SubagentResult.js"

/**
 * One child as its parent may see it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Listed {
  readonly agent_id: string
  readonly name: string
  readonly status: "idle" | "working"
  readonly turns: number
}

/**
 * All failures are sentences for the model.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  readonly profiles: ReadonlyArray<SubagentProfile.SubagentProfile>
  /** Checks a request before a person is asked. */
  readonly validate: (order: DelegationRequest.Wanted) => Effect.Effect<void, string>
  /** Shows what approving the request means. */
  readonly describe: (order: DelegationRequest.Wanted, task: string) => Effect.Effect<ToolDisplay, string>
  /**
   * Makes a child, gives it its task and waits. The child ends with its report, unless the request keeps it. With a
   * `precedence` the child may receive the user's words meanwhile.
   */
  readonly delegate: (
    order: DelegationRequest.Wanted,
    task: string,
    precedence?: number
  ) => Effect.Effect<SubagentResult.SubagentResult, string>
  /** Like `delegate`, and does not wait. The report comes as a message. */
  readonly spawn: (
    order: DelegationRequest.Wanted,
    task: string
  ) => Effect.Effect<{ readonly agent_id: string }, string>
  /** Asks a living child something and waits for the answer. */
  readonly ask: (id: string, question: string) => Effect.Effect<SubagentResult.SubagentResult, string>
  /**
   * Sends words to a living child. It reads them at its next step, or starts a task with them and reports the end as a
   * message.
   */
  readonly send: (id: string, message: string) => Effect.Effect<string, string>
  readonly cancel: (id: string) => Effect.Effect<string, string>
  readonly close: (id: string) => Effect.Effect<string, string>
  readonly list: Effect.Effect<ReadonlyArray<Listed>>
}

/**
 * The children of the session that called the tool.
 *
 * @since 0.1.0
 * @category services
 */
export class Subagents extends Context.Tag("assent/subagent/Subagents")<Subagents, Service>() {}
