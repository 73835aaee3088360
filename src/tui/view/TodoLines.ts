/** The list of what an agent has to do, as lines for a person: all of it, or what has changed. */
import { counts, type Todo } from "../../core/Todo.js"
import { drawn, type Glyphs } from "../terminal/Glyphs.js"
import * as Display from "../terminal/Display.js"

/** The whole list. */
export const all = (todos: ReadonlyArray<Todo>): ReadonlyArray<string> =>
  todos.length === 0 ? ["There is nothing on the list."] : [headOf(todos), ...todos.map(row)]

/** What is new in a list, or has another status; few lines. */
export const changes = (
  before: ReadonlyArray<Todo>,
  todos: ReadonlyArray<Todo>,
  signs: Glyphs = drawn
): ReadonlyArray<string> => {
  if (todos.length === 0) return before.length === 0 ? [] : ["todo: the list is empty"]
  // Entries may have the same words: each of the old ones stands for one of the new.
  const left = before.map(keyOf)
  const changed = todos.filter((todo) => {
    const at = left.indexOf(keyOf(todo))
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
  if (changed.length === 0 && before.length === todos.length) return []
  const more = changed.length - most
  return [
    headOf(todos),
    ...changed.slice(0, most).map(row),
    ...(more > 0 ? [`  ${signs.more}${more} more: /todos`] : [])
  ]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Lines of one change. */
const most = 10

// Signs that any terminal has, and that a screen reader says.
const marks = { pending: "[ ]", in_progress: "[>]", completed: "[x]" } as const

const row = ({ content, status }: Todo): string => `  ${marks[status]} ${Display.oneLine(content)}`

const headOf = (todos: ReadonlyArray<Todo>): string => {
  const { completed, total } = counts(todos)
  return `todo: ${completed} of ${total} done`
}

const keyOf = ({ content, status }: Todo): string => `${status} ${content}`
