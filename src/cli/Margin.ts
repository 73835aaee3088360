/**
 * What stands to the left of an agent's lines, so that several agents can be read at once:
 *
 * ```
 * ● delegate code_reviewer: review the change          the main agent has no margin
 * │ code_reviewer ▸ I am looking at the change.        a bar for each level, then who it is
 * │ │ explore ● search_files isAdmin
 * ```
 *
 * On a narrow terminal the name gets a row of its own, where another agent begins to speak. Pure.
 */
import * as Display from "../channel/Display.js"
import type { Node } from "./Outline.js"

/** Before a line: what it is. */
export const marks = {
  says: "▸",
  task: "○",
  call: "●",
  succeeded: "✓",
  failed: "✗",
  note: "·"
} as const

/** One line of an agent on its way to the screen. */
export interface Line {
  readonly node: Node
  /** As it is shown; may hold styles. */
  readonly mark: string
  /** May hold styles, and no line breaks. */
  readonly text: string
  /** The line goes on where the agent's last one stopped, and nobody spoke between. */
  readonly continues: boolean
  /** The last line was another agent's. */
  readonly changes: boolean
}

export interface Options {
  readonly style: Display.Style
  /** Absent: lines are as long as they are, for whoever reads them breaks them. */
  readonly columns: number | undefined
}

/** The rows of a line, none wider than the terminal. */
export const rows = ({ changes, continues, mark, node, text }: Line, options: Options): ReadonlyArray<string> => {
  const { columns, style } = options
  if (node.depth === 0) return wrapped(text, "", "", columns)
  const bar = style.dim(gutter(node.depth, columns))
  const name = tint(style, node)(label(node, columns))
  if (isNarrow(columns)) {
    const heading = changes ? [`${bar}${name}`] : []
    return [...heading, ...wrapped(text, `${bar}${continues && !changes ? " " : mark} `, `${bar}  `, columns)]
  }
  const first = `${bar}${name} ${mark} `
  const rest = `${bar}${" ".repeat(Display.width(first) - Display.width(bar))}`
  return wrapped(text, continues && !changes ? rest : first, rest, columns)
}

/** Columns that are left for an agent's text; `Infinity` where nothing is broken. */
export const room = (node: Node, columns: number | undefined): number => {
  if (columns === undefined) return Infinity
  if (node.depth === 0) return columns
  const bar = Display.width(gutter(node.depth, columns))
  return Math.max(1, columns - bar - (isNarrow(columns) ? 2 : Display.width(label(node, columns)) + 3))
}

/** An agent's name in its own colour. */
export const tint = (style: Display.Style, { depth, order }: Node): ((text: string) => string) =>
  depth === 0 ? style.bold : (style[colors[(order - 1) % colors.length] ?? "cyan"])

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Without red, which says that something went wrong. */
const colors = ["cyan", "magenta", "yellow", "blue", "green"] as const

const isNarrow = (columns: number | undefined): columns is number => columns !== undefined && columns < 60

/** Where bars would take a quarter of the row, they become a number. */
const gutter = (depth: number, columns: number | undefined): string =>
  columns !== undefined && depth > 1 && 2 * depth > columns / 4 ? `│${depth} ` : "│ ".repeat(depth)

const label = ({ label }: Node, columns: number | undefined): string =>
  Display.truncate(Display.oneLine(label), columns === undefined ? 60 : Math.max(10, Math.floor(columns / 4)))

const wrapped = (text: string, first: string, rest: string, columns: number | undefined): ReadonlyArray<string> => {
  if (columns === undefined) return [first + text]
  return Display.wrap(text, Math.max(1, columns - Display.width(rest))).map(
    (row, index) => (index === 0 ? first : rest) + row
  )
}
