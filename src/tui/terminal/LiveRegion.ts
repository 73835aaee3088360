/**
 * The rows at the bottom of a terminal that are drawn again and again, and the output that scrolls by above them.
 *
 * ```
 * ... finished output ...
 * an unfinished line of outp        ← the tail: the next piece of output goes on here
 * ⠹ thinking 3.2s                   ← row 0 of the region
 * > what somebody is typ            ← last row; the cursor stands somewhere in the region
 * ```
 *
 * It remembers what is drawn and where the cursor is, and turns every change into the text to write. It does not know
 * what the rows mean, and writes nothing itself.
 */
import * as Display from "./Display.js"

/** The wanted state: rows no wider than the terminal, and the cursor among them. */
export interface View {
  readonly rows: ReadonlyArray<string>
  readonly row: number
  readonly column: number
}

/**
 * A mutable region; each function returns the escape text that changes the terminal from its present to the wanted
 * state.
 */
export interface LiveRegion {
  /** Draws a view, touching only rows that differ. */
  readonly paint: (view: View) => string
  /** Writes output above the region: it may end in the middle of a line, and the next piece goes on there. */
  readonly print: (text: string, view: View) => string
  /** Whether the output above ends in the middle of a line. */
  readonly unfinished: () => boolean
  /** The terminal has other dimensions now; what it did to the rows is undone as far as it can be known. */
  readonly resize: (columns: number, rows: number, view: View) => string
  /** Draws the view anew, below what others have written since: the cursor stands on a row of its own. */
  readonly restart: (view: View) => string
  /** Clears the terminal and draws the view at its top. */
  readonly redraw: (view: View) => string
  /** Removes the region; the cursor is left where output would go on. */
  readonly close: () => string
}

/** A region for a terminal of this size whose cursor stands at the start of an empty row. */
export const make = (size: { readonly columns: number; readonly rows: number }): LiveRegion => {
  let { columns, rows: height } = size
  let drawn: ReadonlyArray<string> = []
  let cursor = { row: 0, column: 0 }
  /** Columns taken on the last row of unfinished output. */
  let tail = 0
  /** The output filled its last row exactly: a newline now would only repeat our own line end. */
  let wrapped = false

  /** The view, cut to what fits below the tail; the cursor's row stays in it. */
  const fit = (view: View): View => {
    const limit = Math.max(1, height - 1)
    if (view.rows.length <= limit) return view
    const from = Math.min(view.row, view.rows.length - limit)
    return { rows: view.rows.slice(from, from + limit), row: view.row - from, column: view.column }
  }
  const toTop = (): string => up(cursor.row) + "\r"
  const draw = (view: View): string => {
    drawn = view.rows
    cursor = { row: view.row, column: view.column }
    return view.rows.join("\r\n") + up(view.rows.length - 1 - view.row) + toColumn(view.column)
  }
  const toTail = (): string => {
    if (tail === 0) return toTop() + eraseFromRow
    return toTop() + up(1) + toColumn(tail) + eraseDown
  }
  const advance = (text: string) => {
    const last = text.slice(text.lastIndexOf("\n") + 1)
    const start = text.includes("\n") ? 0 : tail
    let used = start
    if (Display.width(last) + start < columns) used += Display.width(last)
    else {
      for (const cluster of Display.clusters(withoutStyles(last))) {
        const width = Display.width(cluster)
        used = used + width > columns ? width : used + width
      }
    }
    wrapped = used >= columns
    tail = wrapped ? 0 : used
    return wrapped || used > 0
  }

  return {
    paint: (wanted) => {
      const view = fit(wanted)
      let out = ""
      let at = cursor.row
      const goTo = (row: number): string => {
        const moved = (row < at ? up(at - row) : down(row - at)) + "\r"
        at = row
        return moved
      }
      const kept = Math.min(drawn.length, view.rows.length)
      for (let row = 0; row < kept; row++) {
        if (drawn[row] !== view.rows[row]) out += goTo(row) + eraseRow + (view.rows[row] ?? "")
      }
      if (view.rows.length > drawn.length) {
        if (drawn.length > 0) out += goTo(drawn.length - 1) + "\r\n"
        out += view.rows.slice(drawn.length).join("\r\n")
        at = view.rows.length - 1
      } else if (view.rows.length < drawn.length) {
        out += goTo(view.rows.length) + eraseDown
      }
      const moved = at !== view.row || view.column !== cursor.column || out !== ""
      if (!moved) return ""
      out += goTo(view.row) + toColumn(view.column)
      drawn = view.rows
      cursor = { row: view.row, column: view.column }
      return hideCursor + out + showCursor
    },
    print: (text, wanted) => {
      const clean = Display.keepStyles(text)
      const rest = wrapped && clean.startsWith("\n") ? clean.slice(1) : clean
      const before = toTail()
      wrapped = false
      const open = advance(rest)
      const end = (rest.includes("\x1b") ? reset : "") + (open ? "\r\n" : "")
      return hideCursor + before + rest.replaceAll("\n", "\r\n") + end + draw(fit(wanted)) + showCursor
    },
    unfinished: () => tail > 0,
    resize: (newColumns, newRows, wanted) => {
      // A narrower terminal breaks our rows into several; a wider one joins none, because we end each row. It has done so
      // before we hear of it, and counts empty rows below the cursor, as tmux does, among those that need room: the first of
      // our rows may have scrolled off by then. Those are in the scrollback for good, as with everybody who draws below
      // what scrolls; the way up ends at the first row of the screen, and nothing of the output is erased.
      const broken = (text: string) => Math.max(1, Math.ceil(Display.width(text) / newColumns))
      const above = drawn.slice(0, cursor.row).reduce((sum, row) => sum + broken(row), 0)
      const top = above + Math.floor(cursor.column / newColumns)
      columns = newColumns
      height = newRows
      // The terminal decides where the unfinished line ends now, so the next piece of output starts on a row of its
      // own.
      tail = 0
      wrapped = false
      return hideCursor + up(top) + "\r" + eraseFromRow + draw(fit(wanted)) + showCursor
    },
    restart: (wanted) => {
      tail = 0
      wrapped = false
      return hideCursor + eraseFromRow + draw(fit(wanted)) + showCursor
    },
    redraw: (wanted) => {
      tail = 0
      wrapped = false
      return hideCursor + clear + draw(fit(wanted)) + showCursor
    },
    close: () => {
      const out = toTop() + eraseFromRow + showCursor
      drawn = []
      cursor = { row: 0, column: 0 }
      tail = 0
      wrapped = false
      return out
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const hideCursor = "\x1b[?25l"
const showCursor = "\x1b[?25h"
const eraseDown = "\x1b[J"
const eraseRow = "\x1b[2K"
/**
 * This row and those below; the cursor goes to its start. Terminals such as tmux take an erasure that begins in the very
 * first column of the screen for a clearing of it all, and put a copy of what stood there into the scrollback.
 */
const eraseFromRow = `${eraseRow}\x1b[2G\x1b[J\r`
const reset = "\x1b[0m"
const clear = "\x1b[H\x1b[2J"

const up = (rows: number): string => (rows > 0 ? `\x1b[${rows}A` : "")
const down = (rows: number): string => (rows > 0 ? `\x1b[${rows}B` : "")
/** 0-based. */
const toColumn = (column: number): string => `\x1b[${column + 1}G`

const withoutStyles = (text: string): string => text.replace(/\x1b\[[0-9;]*m/g, "")
