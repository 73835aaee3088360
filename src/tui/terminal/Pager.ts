/**
 * A long text on the whole terminal, a screenful at a time, on the second buffer that terminals have for it: what stood
 * there comes back when it closes.
 *
 * | keys | do |
 * |---|---|
 * | arrows, j, k, enter | a line down or up |
 * | space, page keys, f, b | a screenful |
 * | home, end, g, G | to the beginning or the end |
 * | / | searches downwards for what is typed next; in small letters for either case |
 * | n, N | the next place, the one before |
 * | q, escape, ctrl-c, ctrl-o | close |
 *
 * Ctrl-Z never comes here: it leaves the terminal to the shell, and this comes back with it.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Option from "effect/Option"
import * as Display from "./Display.js"
import * as LineEditor from "./LineEditor.js"
import { styles } from "../../core/TerminalText.js"

/**
 * What is read: a title of one line, and for so many columns the rows of each line of the text.
 *
 * @since 0.1.0
 * @category models
 */
export interface Text {
  readonly title: string
  readonly lines: (columns: number) => ReadonlyArray<ReadonlyArray<string>>
}

export interface Pager {
  /** What to write; with a note in the last row, such as that a question waits. */
  readonly draw: (note?: string) => string
  /** The effect of a key: false closes the pager. */
  readonly press: (input: UserInput) => boolean
  readonly resize: (columns: number, rows: number) => void
  /** What to write at the end, or where others have the terminal for a while. */
  readonly close: () => string
  /** Others have had the terminal: the next drawing opens it anew. */
  readonly reopen: () => void
}

/** A pager at the beginning of a text, or at its end. */
export const make = (
  text: Text,
  size: { readonly columns: number; readonly rows: number },
  options: { readonly color: boolean; readonly atEnd: boolean }
): Pager => {
  const style = Display.style(options.color)
  let { columns, rows: height } = size
  let lines = text.lines(columns)
  let rows = lines.flat()
  let opened = false
  const room = () => Math.max(1, height - 1)
  const last = () => Math.max(0, rows.length - room())
  let top = options.atEnd ? last() : 0
  /** What stands at the top, wherever rows end: where the last key has left it. */
  let place = placeOf(lines, top)
  const goTo = (row: number): void => {
    top = Math.max(0, Math.min(last(), row))
    place = placeOf(lines, top)
  }
  const move = (by: number): void => goTo(top + by)
  let typed: string | undefined
  let sought = ""
  /** The row of the place that was found last. */
  let found: number | undefined
  let isMissing = false
  const has = (row: string): boolean => {
    const text = plain(row)
    return (sought === sought.toLowerCase() ? text.toLowerCase() : text).includes(sought)
  }
  /** To the next row that has it, around the end. */
  const search = (from: number, by: 1 | -1): void => {
    isMissing = false
    if (sought === "") return
    for (let step = 0; step < rows.length; step++) {
      const at = (from + by * step + rows.length * 2) % rows.length
      if (!has(rows[at] ?? "")) continue
      found = at
      goTo(at)
      return
    }
    found = undefined
    isMissing = true
  }
  /** The row from there on, in the same line, that has what is sought. A row's end may stand in the midst of it. */
  const rowWith = (from: number, { line }: Place): number | undefined => {
    const end = rowOf(lines, { line: line + 1, letters: 0 })
    const at = rows.slice(from, end).findIndex(has)
    return at < 0 ? undefined : from + at
  }
  const pressTyping = (text: string, input: UserInput): void => {
    const { key } = input
    if (key.name === "return" || key.name === "enter") {
      sought = text === "" ? sought : text
      typed = undefined
      search(top, 1)
    } else if (key.name === "backspace") typed = text === "" ? undefined : Display.clusters(text).slice(0, -1).join("")
    else if (key.name === "escape" || key.ctrl) typed = undefined
    else if (LineEditor.isTyped(input)) typed = text + Option.getOrElse(input.input, () => "")
  }
  const footOf = (place: string): string => {
    const what = sought === "" ? "/ searches" : isMissing ? `nothing has ${sought}` : `n: the next ${sought}`
    return `${place} · ${what} · q closes · ${text.title}`
  }
  return {
    draw: (note) => {
      const shown = rows
        .slice(top, top + room())
        .map((row, index) => (top + index === found ? style.yellow(plain(row)) : row))
      const until = Math.min(rows.length, top + room())
      const place = `${rows.length === 0 ? 0 : top + 1}-${until} of ${rows.length}`
      const foot = typed !== undefined ? `/${typed}` : (note ?? footOf(place))
      const fill = Array.from({ length: Math.max(0, room() - shown.length) }, () => "~")
      const all = [...shown, ...fill.map(style.dim), style.bold(Display.truncate(foot, columns - 1))]
      const out = `${opened ? "" : open}${home}${all.join("\r\n")}`
      opened = true
      return out
    },
    press: (pressed) => {
      if (typed !== undefined) {
        pressTyping(typed, pressed)
        return true
      }
      const { ctrl, name } = pressed.key
      const character = Option.getOrElse(pressed.input, () => "")
      if (ctrl) {
        if (name === "f") move(room())
        else if (name === "b") move(-room())
        return name !== "c" && name !== "o" && name !== "d"
      }
      if (name === "q" || name === "escape") return false
      if (character === "/") typed = ""
      else if (character === "n") search((found ?? top) + 1, 1)
      else if (character === "N") search((found ?? top) - 1, -1)
      else if (character === "G" || name === "end") move(Infinity)
      else if (character === "g" || name === "home") move(-Infinity)
      else if (name === "down" || name === "j" || name === "return" || name === "enter") move(1)
      else if (name === "up" || name === "k") move(-1)
      else if (name === "pagedown" || name === "space" || name === "f" || character === " ") move(room())
      else if (name === "pageup" || name === "b") move(-room())
      return true
    },
    resize: (newColumns, newRows) => {
      columns = newColumns
      height = newRows
      const foundAt = found === undefined ? undefined : placeOf(lines, found)
      lines = text.lines(columns)
      rows = lines.flat()
      found = foundAt && rowWith(rowOf(lines, foundAt), foundAt)
      top = Math.max(0, Math.min(last(), rowOf(lines, place)))
    },
    close: () => {
      opened = false
      return close
    },
    reopen: () => {
      opened = false
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A place in a text, whatever its width: a line of it, and how many letters of that line stand in rows above. */
interface Place {
  readonly line: number
  readonly letters: number
}

const lettersIn = (row: string): number => plain(row).replaceAll(" ", "").length

const placeOf = (lines: ReadonlyArray<ReadonlyArray<string>>, row: number): Place => {
  let left = row
  for (const [line, rows] of lines.entries()) {
    if (left < rows.length) return { line, letters: rows.slice(0, left).reduce((sum, one) => sum + lettersIn(one), 0) }
    left -= rows.length
  }
  return { line: lines.length, letters: 0 }
}

/** The row in which the place is. */
const rowOf = (lines: ReadonlyArray<ReadonlyArray<string>>, { letters, line }: Place): number => {
  const above = lines.slice(0, line).reduce((sum, rows) => sum + rows.length, 0)
  const rows = lines[line] ?? []
  let at = 0
  for (let left = letters; at < rows.length - 1; at++) {
    left -= lettersIn(rows[at] ?? "")
    if (left < 0) break
  }
  return above + at
}

const plain = (row: string): string => row.replaceAll(new RegExp(styles, "g"), "")

const open = "\x1b[?1049h\x1b[?25l"
const home = "\x1b[H\x1b[2J"
const close = "\x1b[?1049l\x1b[?25h"
