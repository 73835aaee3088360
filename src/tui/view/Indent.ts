/**
 * The margin to the left of an agent's lines, so that several agents can be read at once:
 *
 * ```
 * ● delegate code_reviewer: review the change          the main agent has no margin
 * │ code_reviewer ▸ I am looking at the change.        a bar for each level, then who it is
 * │ │ explore ● search_files isAdmin
 * ```
 *
 * On a narrow terminal the name gets a row of its own when another agent begins to speak. Pure.
 */
import * as Display from "../terminal/Display.js"
import { said, type Glyphs } from "../terminal/Glyphs.js"
import type { Node } from "./AgentOutline.js"

/** One line of an agent on its way to the screen. */
export interface Line {
  readonly node: Node
  /** Printed as given; may hold styles. */
  readonly mark: string
  /** May hold styles, and no line breaks. */
  readonly text: string
  /** The line continues the agent's last one, and no other agent printed in between. */
  readonly continues: boolean
  /** The last line was another agent's. */
  readonly changes: boolean
}

export interface Options {
  readonly style: Display.Style
  /** Absent: lines are not broken; the reader breaks them. */
  readonly columns: number | undefined
  readonly signs: Glyphs
}

/** The rows of a line, none wider than the terminal. */
export const rows = (line: Line, options: Options): ReadonlyArray<string> => {
  const { changes, continues, mark, node, text } = line
  const { columns, signs, style } = options
  if (signs === said) return spoken(line, columns)
  if (node.depth === 0) {
    const before = mark === signs.says || mark === "" ? "" : `${mark} `
    return wrapped(text, before, " ".repeat(Display.width(before)), columns)
  }
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

/** Without bars and colours: the name of an agent says whose row it is. */
const spoken = ({ continues, mark, node, text }: Line, columns: number | undefined): ReadonlyArray<string> => {
  const word = mark.trim()
  const indent = node.depth === 0 ? mark.slice(0, mark.length - mark.trimStart().length) : ""
  const isPlain = word === said.says || word === ""
  const what = text === "" ? word.replace(/:$/, "") : isPlain ? "" : `${word} `
  if (node.depth === 0) return wrapped(what + text, indent, indent, columns)
  if (continues) return wrapped(text, "  ", "  ", columns)
  const name = label(node, columns)
  return wrapped(`${name}${isPlain ? ":" : ""} ${what}${text}`, "", "  ", columns)
}

/**
 * Rows of one agent that are printed together while its line continues. More on a narrow terminal, where each change of
 * agents costs a row.
 */
export const together = (columns: number | undefined): number => (isNarrow(columns) ? 4 : 1)

/** Columns for an agent's text; `Infinity` when lines are not broken. */
export const room = (node: Node, columns: number | undefined): number => {
  if (columns === undefined) return Infinity
  if (node.depth === 0) return columns
  const bar = Display.width(gutter(node.depth, columns))
  return Math.max(1, columns - bar - (isNarrow(columns) ? 2 : Display.width(label(node, columns)) + 3))
}

/** An agent's name in its own colour. */
export const tint = (style: Display.Style, { depth, order }: Node): ((text: string) => string) =>
  depth === 0 ? style.bold : style[colors[(order - 1) % colors.length] ?? "cyan"]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Without red, which marks failures. */
const colors = ["cyan", "magenta", "yellow", "blue", "green"] as const

const isNarrow = (columns: number | undefined): columns is number => columns !== undefined && columns < 60

/** Bars that would take a quarter of the row become a number. */
const gutter = (depth: number, columns: number | undefined): string =>
  columns !== undefined && depth > 1 && 2 * depth > columns / 4 ? `│${depth} ` : "│ ".repeat(depth)

/** A long name loses its beginning: its end distinguishes it from the others. */
const label = ({ label, path }: Node, columns: number | undefined): string => {
  const name = Display.oneLine(label)
  const room = columns === undefined ? 60 : isNarrow(columns) ? Math.max(1, columns - 8) : Math.floor(columns / 4)
  if (Display.width(name) <= room) return name
  const last = Display.oneLine(path.slice(path.lastIndexOf("/") + 1))
  return Display.truncate(last === name ? last : `…/${last}`, room)
}

const wrapped = (text: string, first: string, rest: string, columns: number | undefined): ReadonlyArray<string> => {
  if (columns === undefined) return [first + text]
  return Display.wrapBelow(text, Math.max(1, columns - Display.width(rest))).map(
    (row, index) => (index === 0 ? first : rest) + row
  )
}
