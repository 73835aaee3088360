/**
 * Text on its way to a terminal: its width, its wrapping, its colours; and, from `TerminalText`, which characters may
 * pass. All pure.
 */
import stringWidth from "string-width"
import { reset } from "./Style.js"
import { isPlain, reveal, styles } from "./TerminalText.js"

export { style, type Style } from "./Style.js"
export { keepStyles, oneLine, reveal, sanitize } from "./TerminalText.js"

/** Columns that a text without newlines takes. */
export const width = (text: string): number => stringWidth(text)

/** The units of the editor's cursor: user-perceived characters, a tab counting as four columns. */
export const clusters = (text: string): ReadonlyArray<string> =>
  isPlain(text) ? [...text] : Array.from(segmenter().segment(text), (entry) => entry.segment)

/** The drawn form of one of {@link clusters}, and its columns; a cluster wider than the terminal becomes `�`. */
export const drawn = (cluster: string, columns: number): { readonly text: string; readonly width: number } => {
  const text = reveal(cluster)
  const taken = width(text)
  return taken <= columns ? { text, width: taken } : { text: "�", width: 1 }
}

/**
 * The rows of a text on a terminal of this many columns, broken at spaces where there are any. A style that is open at
 * the end of a row is closed there and opened again on the next, so each row can be drawn alone.
 */
export const wrap = (text: string, columns: number): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => (width(line) <= columns ? [line] : wrapLine(line, Math.max(1, columns))))

/** The same for lines that may begin with blanks: what does not fit goes on below their first word. */
export const wrapBelow = (text: string, columns: number): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => {
    const [all = "", opening = "", blanks = ""] = /^((?:\x1b\[[\d;]*m)*)( *)/.exec(line) ?? []
    if (blanks.length > columns / 2) return wrap(line, columns)
    return wrap(opening + line.slice(all.length), columns - blanks.length).map((row) => blanks + row)
  })

/** Cuts a line without styles to this many columns, with an ellipsis where text was removed. */
export const truncate = (text: string, columns: number): string => {
  if (width(text) <= columns) return text
  let out = ""
  let used = 1
  for (const cluster of clusters(text)) {
    used += width(cluster)
    if (used > columns) break
    out += cluster
  }
  return columns < 1 ? "" : `${out}…`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Made at the first text that is not ASCII: it costs 10 ms. */
let made: Intl.Segmenter | undefined
const segmenter = (): Intl.Segmenter => (made ??= new Intl.Segmenter())

interface Token {
  readonly text: string
  readonly width: number
}

const wrapLine = (line: string, columns: number): ReadonlyArray<string> => {
  const tokens = line
    .split(styles)
    .flatMap((part, index): ReadonlyArray<Token> =>
      index % 2 === 1 ? [{ text: part, width: 0 }] : clusters(part).map((cluster) => drawn(cluster, columns))
    )
  const rows: Array<ReadonlyArray<Token>> = []
  let row: Array<Token> = []
  let used = 0
  for (const token of tokens) {
    let isBroken = false
    // What follows a space may still be too wide together with a letter of three columns.
    while (used + token.width > columns && row.length > 0) {
      const space = row.findLastIndex((entry) => entry.text === " ")
      // A break inside the leading spaces would make an empty row and gain nothing.
      const breakable = row.slice(0, Math.max(0, space)).some((entry) => entry.text !== " " && entry.width > 0)
      const breaks = breakable && token.text !== " "
      const rest = breaks ? row.slice(space + 1) : []
      rows.push(breaks ? row.slice(0, space) : row)
      row = rest
      used = rest.reduce((sum, entry) => sum + entry.width, 0)
      isBroken = true
    }
    if (isBroken && token.text === " " && used === 0) continue
    row.push(token)
    used += token.width
  }
  rows.push(row)
  let open = ""
  return rows.map((entries) => {
    const start = open
    for (const entry of entries) {
      if (entry.text.startsWith("\x1b")) open = entry.text === reset || entry.text === "\x1b[m" ? "" : open + entry.text
    }
    return start + entries.map((entry) => entry.text).join("") + (open === "" ? "" : reset)
  })
}
