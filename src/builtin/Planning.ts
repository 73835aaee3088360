/**
 * The tools with which a model plans its work: the list of what is to be done, which people see, and the plan that ends plan
 * mode once a person has approved it.
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
 * Writes the whole todo list.
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
 * The most characters of a plan.
 *
 * @since 0.1.0
 * @category constants
 */
export const longestPlan = 20_000

/**
 * Proposes a plan, which ends plan mode when a person approves it. No rule, suspension or model approves one.
 *
 * @since 0.1.0
 * @category tools
 */
export const ProposePlan = Tool.make("propose_plan", {
  description:
    "Shows the user your plan and asks them to approve it. Only in plan mode, which the user sets: then nothing is changed " +
    "until they have approved a plan. When they have, begin with it; when they comment, change it and propose it again.",
  parameters: {
    plan: Schema.String.annotations({
      description:
        "The whole plan, in Markdown: the goal, what you found, the steps in their order with their files, how to check them."
    })
  },
  ...sentence
})
  .annotate(ToolTrait.Kind, "switch_mode")
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolTrait.Groups, ["plan"])
  .pipe(
    ToolTrait.validate(({ plan }) =>
      plan.trim() === ""
        ? Effect.fail("The plan says nothing.")
        : plan.length > longestPlan
          ? Effect.fail(
              `The plan has ${plan.length} characters, and at most ${longestPlan} are shown. Make it shorter.`
            )
          : Effect.void
    ),
    ToolTrait.preview(({ plan }) =>
      Effect.succeed({ summary: "begin with this plan", details: plan.trim(), format: "markdown" as const })
    )
  )

/**
 * The tools as a toolkit, to be merged with others.
 *
 * @since 0.1.0
 * @category tools
 */
export const toolkit = Toolkit.make(TodoWrite, ProposePlan)

/**
 * The handlers. Each call provides its session's `Agenda`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> = toolkit.toLayer({
  propose_plan: () =>
    Effect.flatMap(Agenda, (agenda) =>
      Effect.map(
        agenda.endPlan,
        (mode) => `The user approved the plan. Plan mode has ended. The mode is ${mode}. Begin with the plan now.`
      )
    ),
  todo_write: ({ items }) =>
    Effect.flatMap(Agenda, (agenda) => Effect.as(agenda.writeTodos(items.map(tidy)), said(items)))
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const problem = (items: ReadonlyArray<Todo>): string | undefined => {
  if (items.length > todoLimits.items)
    return `The list has ${items.length} entries; the limit is ${todoLimits.items}. Join small steps, or leave out completed ones.`
  const blank = items.findIndex(({ content }) => content.trim() === "")
  if (blank >= 0) return `Entry ${blank + 1} says nothing. Give its content, or leave it out.`
  const long = items.findIndex(({ content }) => content.length > todoLimits.content)
  return long < 0
    ? undefined
    : `Entry ${long + 1} has ${items[long]?.content.length} characters; the limit is ${todoLimits.content}. Use fewer words.`
}

const said = (items: ReadonlyArray<Todo>): string => {
  const { completed, inProgress, total } = counts(items)
  return total === 0 ? "The list is empty." : `${total} on the list: ${completed} done, ${inProgress} in progress.`
}
