/**
 * What an agent keeps of its own work, for the tools with which its model does that: the todo list, and the end of plan
 * mode. Its session provides it to every call.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Todo } from "../core/Todo.js"

/**
 * The agenda of one agent.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** Puts a list in the place of the one there is, and tells it. */
  readonly writeTodos: (todos: ReadonlyArray<Todo>) => Effect.Effect<void>
  /**
   * Ends plan mode: the mode is what it was before, and asks at least. For a tool that a person has approved: one of the
   * kind `switch_mode`. Yields the mode from now on.
   */
  readonly endPlan: Effect.Effect<string>
}

/**
 * The agenda of the agent whose call runs.
 *
 * @since 0.1.0
 * @category services
 */
export class Agenda extends Context.Tag("assent/tool/Agenda")<Agenda, Service>() {}
