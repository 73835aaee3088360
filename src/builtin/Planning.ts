/**
 * The tools with which a model plans its work: the list of what is to be done, which people see.
 *
 * @since 0.1.0
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { counts, tidy, Todo, writer } from "../core/Todo.js"
import { Agenda } from "../tool/Agenda.js"
import * as ToolTrait from "../tool/ToolTrait.js"

export { counts, Todo, type TodoCounts } from "../core/Todo.js"
export { Agenda, type Service as AgendaService } from "../tool/Agenda.js"

/**
 * The most entries of a list, and the most characters of one.
 *
 * @since 0.1.0
 * @category constants
 */
export const todoLimits = { items: 50, content: 500 } as const

const dependencies: [typeof Agenda] = [Agenda]

const sentence = { success: Schema.String, failure: Schema.String, failureMode: "return" as const, dependencies }

/**
 * Writes the whole list of what is to be done.
 *
 * @since 0.1.0
 * @category tools
 */
export const TodoWrite = Tool.make(writer, {
  description:
    "Writes your list of what is to be done, which the user sees. Give the whole list each time: it replaces the one " +
    "before. Use it for work of several steps; mark what you begin as in_progress, and what is done as completed at once.",
  parameters: {
    items: Schema.Array(
      Schema.Struct({
        content: Schema.String.annotations({ description: "What is to be done, in a few words." }),
        status: Todo.fields.status
      })
    ).annotations({
      description: `At most ${todoLimits.items}, in the order in which they are to be done. An empty list clears it.`
    })
  },
  ...sentence
})
  .annotate(ToolTrait.Kind, "think")
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolTrait.Groups, ["plan"])
  .annotate(ToolTrait.AutoApproved, true)
  .pipe(
    ToolTrait.validate(({ items }) => {
      const wrong = problem(items)
      return wrong === undefined ? Effect.void : Effect.fail(wrong)
    })
  )

/**
 * The tools as a toolkit, to be merged with others.
 *
 * @since 0.1.0
 * @category tools
 */
export const toolkit = Toolkit.make(TodoWrite)

/**
 * The handlers. Each call provides its session's `Agenda`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> = toolkit.toLayer({
  todo_write: ({ items }) =>
    Effect.flatMap(Agenda, (agenda) => Effect.as(agenda.writeTodos(items.map(tidy)), said(items)))
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const problem = (items: ReadonlyArray<Todo>): string | undefined => {
  if (items.length > todoLimits.items)
    return `The list has ${items.length} entries, and at most ${todoLimits.items} are kept. Join small steps, or leave out those that are done.`
  const blank = items.findIndex(({ content }) => content.trim() === "")
  if (blank >= 0) return `Entry ${blank + 1} says nothing. Give its content, or leave it out.`
  const long = items.findIndex(({ content }) => content.length > todoLimits.content)
  return long < 0
    ? undefined
    : `Entry ${long + 1} has ${items[long]?.content.length} characters, and at most ${todoLimits.content} are kept. Say it in few words.`
}

const said = (items: ReadonlyArray<Todo>): string => {
  const { completed, inProgress, total } = counts(items)
  return total === 0 ? "The list is empty." : `${total} on the list: ${completed} done, ${inProgress} in progress.`
}
