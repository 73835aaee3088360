/** What an agent still has to do, as its model keeps it. */
import * as Schema from "effect/Schema"

/**
 * One thing to be done.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Todo = Schema.Struct({
  content: Schema.String,
  status: Schema.Literal("pending", "in_progress", "completed")
}).annotations({ identifier: "Todo" })
export type Todo = typeof Todo.Type

/**
 * How many there are, by status.
 *
 * @since 0.1.0
 * @category models
 */
export interface TodoCounts {
  readonly total: number
  readonly pending: number
  readonly inProgress: number
  readonly completed: number
}

/**
 * Counts a list, for a status line.
 *
 * @since 0.1.0
 * @category getters
 */
export const counts = (todos: ReadonlyArray<Todo>): TodoCounts => {
  const of = (status: Todo["status"]) => todos.filter((todo) => todo.status === status).length
  return { total: todos.length, pending: of("pending"), inProgress: of("in_progress"), completed: of("completed") }
}

/** The list that a `todo_write` of a journal wrote; nothing for arguments of another tool of that name. */
export const written = (tool: string, params: unknown): ReadonlyArray<Todo> | undefined => {
  if (tool !== writer || typeof params !== "object" || params === null || !("items" in params)) return undefined
  const { items } = params
  return Array.isArray(items) && items.every(isTodo) ? items.map(tidy) : undefined
}

/** As it is kept. */
export const tidy = ({ content, status }: Todo): Todo => ({ content: content.trim(), status })

/** The name of the tool that writes the list. */
export const writer = "todo_write"

/** The list for a model that may not remember it. */
export const reminder = (todos: ReadonlyArray<Todo>): string =>
  ["[Your list of what is to be done, as it was when the conversation was shortened]", ...todos.map(line)].join("\n")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const marks = { pending: "[ ]", in_progress: "[>]", completed: "[x]" } as const

const line = ({ content, status }: Todo): string => `${marks[status]} ${content.replace(/\s+/g, " ")}`

const statuses: ReadonlySet<unknown> = new Set<Todo["status"]>(["pending", "in_progress", "completed"])

const isTodo = (value: unknown): value is Todo =>
  typeof value === "object" &&
  value !== null &&
  "content" in value &&
  typeof value.content === "string" &&
  "status" in value &&
  statuses.has(value.status)
