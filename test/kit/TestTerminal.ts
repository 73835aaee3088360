/**
 * A terminal for tests: keys go in, and a small screen model interprets the output, so tests can check what a person
 * would see. An escape sequence the model does not know is a defect: nothing but the screen itself may steer it.
 */
import * as PlatformError from "@effect/platform/Error"
import * as Terminal from "@effect/platform/Terminal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import stringWidth from "string-width"

export interface Modifiers {
  readonly ctrl?: boolean
  readonly meta?: boolean
  readonly shift?: boolean
}

export interface TestTerminal {
  readonly terminal: Terminal.Terminal
  readonly layer: Layer.Layer<Terminal.Terminal>
  /** Types characters; a newline is the Enter key. All arrive together; returns once they were handled. */
  readonly type: (text: string) => Effect.Effect<void>
  readonly press: (name: string, modifiers?: Modifiers) => Effect.Effect<void>
  readonly paste: (text: string) => Effect.Effect<void>
  readonly resize: (columns: number, rows: number) => Effect.Effect<void>
  /** Ends the input. */
  readonly end: Effect.Effect<void>
  /** Makes every later write fail. */
  readonly breakOutput: Effect.Effect<void>
  /** Lets every fiber that can run come to rest. */
  readonly settle: Effect.Effect<void>
  /** The visible rows, without trailing blanks and empty rows at the end. */
  readonly screen: () => ReadonlyArray<string>
  /** Everything on the screen and scrolled off it, oldest row first. */
  readonly history: () => ReadonlyArray<string>
  readonly cursor: () => { readonly row: number; readonly column: number; readonly visible: boolean }
  readonly pasteMode: () => boolean
  /** The bytes as they were written. */
  readonly raw: () => string
  /** How often something was written. */
  readonly writes: () => number
}

/** The input events of a text, as Node's parser makes them. */
export const keysOf = (text: string): ReadonlyArray<Terminal.UserInput> => [...text].map(keyOf)

export const key = (name: string, modifiers: Modifiers = {}, input?: string): Terminal.UserInput => ({
  input: Option.fromNullable(input),
  key: { name, ctrl: modifiers.ctrl ?? false, meta: modifiers.meta ?? false, shift: modifiers.shift ?? false }
})

export const make = (size: { readonly columns: number; readonly rows: number }): Effect.Effect<TestTerminal> =>
  Effect.map(Mailbox.make<Terminal.UserInput>(), (mailbox) => {
    const model = makeModel(size)
    let raw = ""
    let writes = 0
    let broken = false
    const settle = Effect.repeatN(Effect.yieldNow(), 50)
    const offer = (keys: ReadonlyArray<Terminal.UserInput>) => Effect.zipRight(mailbox.offerAll(keys), settle)
    const terminal = Terminal.Terminal.of({
      columns: Effect.sync(() => model.size().columns),
      rows: Effect.sync(() => model.size().rows),
      isTTY: Effect.succeed(true),
      readInput: Effect.succeed(mailbox),
      readLine: Effect.never,
      display: (text) =>
        Effect.suspend(() => {
          if (broken) {
            return new PlatformError.SystemError({ reason: "Unknown", module: "Terminal", method: "display" })
          }
          raw += text
          writes++
          model.write(text)
          return Effect.void
        })
    })
    return {
      terminal,
      layer: Layer.succeed(Terminal.Terminal, terminal),
      type: (text) => offer(keysOf(text)),
      press: (name, modifiers) => offer([key(name, modifiers)]),
      paste: (text) => offer([key("paste-start"), ...keysOf(text), key("paste-end")]),
      resize: (columns, rows) =>
        Effect.suspend(() => {
          model.resize(columns, rows)
          return offer([key("resize")])
        }),
      end: Effect.zipRight(mailbox.end, settle),
      breakOutput: Effect.sync(() => {
        broken = true
      }),
      settle,
      screen: model.screen,
      history: model.history,
      cursor: model.cursor,
      pasteMode: model.pasteMode,
      raw: () => raw,
      writes: () => writes
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const keyOf = (char: string): Terminal.UserInput => {
  if (char === "\n" || char === "\r") return key("return", {}, "\r")
  if (char === "\t") return key("tab", {}, "\t")
  if (char === " ") return key("space", {}, " ")
  return /^[A-Za-z0-9]$/.test(char) ? key(char.toLowerCase(), { shift: /[A-Z]/.test(char) }, char) : key("", {}, char)
}

interface Row {
  cells: Array<string>
  /** The next row goes on with this one's line. */
  wrapped: boolean
}

const segmenter = new Intl.Segmenter()
const blank = (): Row => ({ cells: [], wrapped: false })
const textOf = (row: Row): string =>
  Array.from(row.cells, (cell) => cell ?? " ")
    .join("")
    .trimEnd()
const trimmed = (rows: ReadonlyArray<string>): ReadonlyArray<string> =>
  rows.slice(0, rows.findLastIndex((row) => row !== "") + 1)

const makeModel = (initial: { readonly columns: number; readonly rows: number }) => {
  let { columns, rows: height } = initial
  let rows: Array<Row> = Array.from({ length: height }, blank)
  let x = 0
  /** Index into `rows`; the screen is their last `height`. */
  let y = 0
  let full = false
  let visible = true
  let pasteMode = false
  let aside: { readonly rows: Array<Row>; readonly x: number; readonly y: number } | undefined

  const top = () => rows.length - height
  const row = (): Row => rows[y] ?? blank()
  const lineFeed = () => {
    if (y === rows.length - 1) rows.push(blank())
    y++
  }
  const put = (cluster: string) => {
    const width = stringWidth(cluster)
    if (width === 0) return
    if (full || x + width > columns) {
      row().wrapped = true
      lineFeed()
      x = 0
      full = false
    }
    const { cells } = row()
    while (cells.length < x) cells.push(" ")
    cells[x] = cluster
    if (width === 2) cells[x + 1] = ""
    x += width
    if (x >= columns) {
      x = columns - 1
      full = true
    }
  }
  const control = (parameters: string, final: string) => {
    const count = parameters === "" ? 1 : Number(parameters)
    if (final === "m") return
    full = false
    if (final === "A") y = Math.max(top(), y - count)
    else if (final === "B") y = Math.min(rows.length - 1, y + count)
    else if (final === "G") x = Math.min(columns - 1, count - 1)
    else if (final === "H" && parameters === "") {
      x = 0
      y = top()
    } else if (final === "J" && parameters === "" && x === 0 && y === top()) {
      // As tmux does: a screen that is erased from its first column on goes into the scrollback.
      const used = trimmed(rows.slice(top()).map(textOf)).length
      rows.push(...Array.from({ length: used }, blank))
      y += used
    } else if (final === "J" && parameters === "") {
      row().cells.length = Math.min(row().cells.length, x)
      row().wrapped = false
      for (let index = y + 1; index < rows.length; index++) rows[index] = blank()
    } else if (final === "J" && parameters === "2") {
      for (let index = top(); index < rows.length; index++) rows[index] = blank()
    } else if (final === "K" && parameters === "2") rows[y] = blank()
    else if (parameters === "?25" && (final === "l" || final === "h")) visible = final === "h"
    else if (parameters === "?1049" && (final === "l" || final === "h")) {
      // The other buffer is this one, put aside and brought back.
      if (final === "h") aside = { rows, x, y }
      else if (aside !== undefined) ({ rows, x, y } = aside)
      if (final === "h") rows = Array.from({ length: height }, blank)
      else aside = undefined
    } else if (parameters === "?2004" && (final === "l" || final === "h")) pasteMode = final === "h"
    else throw new Error(`the screen model does not know ESC [ ${parameters} ${final}`)
  }

  return {
    size: () => ({ columns, rows: height }),
    write: (text: string) => {
      for (const [token, parameters, final] of text.matchAll(
        /\x1b\[([?0-9;]*)([A-Za-z])|\r|\n|[\x00-\x1f\x7f-\x9f]|[^\x00-\x1f\x7f-\x9f]+/g
      )) {
        if (final !== undefined) control(parameters ?? "", final)
        else if (token === "\r") {
          x = 0
          full = false
        } else if (token === "\n") {
          full = false
          lineFeed()
        } else if (/^[\x00-\x1f\x7f-\x9f]/.test(token)) throw new Error(`a stray ${JSON.stringify(token)} was written`)
        else for (const { segment } of segmenter.segment(token)) put(segment)
      }
    },
    /** Breaks long lines anew and joins what was broken, as most terminals do. */
    resize: (newColumns: number, newRows: number) => {
      const out: Array<Row> = []
      let line: Array<string> = []
      let at: number | undefined
      let cursor = { x, y: 0 }
      for (const [index, entry] of rows.entries()) {
        const cells = entry.wrapped
          ? Array.from({ length: columns }, (_, cell) => entry.cells[cell] ?? " ")
          : entry.cells
        if (index === y) at = line.length + x
        line = line.concat(cells)
        if (entry.wrapped) continue
        const first = out.length
        do {
          out.push({ cells: line.slice(0, newColumns), wrapped: line.length > newColumns })
          line = line.slice(newColumns)
        } while (line.length > 0)
        if (at !== undefined) {
          cursor = { x: at % newColumns, y: first + Math.floor(at / newColumns) }
          while (out.length <= cursor.y) out.push(blank())
        }
        at = undefined
      }
      // Empty rows below the cursor give way first.
      while (out.length > newRows && out.length - 1 > cursor.y && textOf(out[out.length - 1] ?? blank()) === "")
        out.pop()
      while (out.length < newRows) out.push(blank())
      rows = out
      columns = newColumns
      height = newRows
      x = cursor.x
      y = cursor.y
      full = false
    },
    screen: () => trimmed(rows.slice(top()).map(textOf)),
    history: () => trimmed(rows.map(textOf)),
    cursor: () => ({ row: y - top(), column: x, visible }),
    pasteMode: () => pasteMode
  }
}
