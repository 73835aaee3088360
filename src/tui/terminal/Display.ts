/**
 * Text on its way to a terminal: its width, its wrapping, its colours; and, from `TerminalText`, which characters may
 * pass. All pure.
 */
import stringWidth from "string-width"
import { reset } from "./Style.js"
import { isPlain, revealWords, styles } from "../../core/TerminalText.js"

export { style, type Style } from "./Style.js"
export { keepStyles, oneLine, reveal, revealWords, sanitize } from "../../core/TerminalText.js"

/** Columns that a text without newlines takes. */
export const width = (text: string): number => stringWidth(text)

/** The units of the editor's cursor: user-perceived characters, a tab counting as four columns. */
export const clusters = (text: string): ReadonlyArray<string> =>
  isPlain(text) ? [...text] : Array.from(segmenter().segment(text), (entry) => entry.segment)

/** The drawn form of one of {@link clusters}, and its columns; a cluster wider than the terminal becomes `�`. */
export const drawn = (cluster: string, columns: number): { readonly text: string; readonly width: number } => {
  const text = revealWords(cluster)
  const taken = width(text)
  return taken <= columns ? { text, width: taken } : { text: "�", width: 1 }
}

/**
 * The rows of a text on a terminal of this many columns, broken at spaces where there are any. A style that is open at
 * the end of a row is closed there and opened again on the next, so each row can be drawn alone.
 */
export const wrap = (text: string, columns: number): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => (width(line) <= columns ? [line] : wrapLine(line, Math.max(1, columns))))

/** What stands before the words of a line: blanks, the number or the box of a list, or the number and sign of a diff. */
const usualLead = /^ *(?:\d+(?:\. | [-+ ] )|\[[ x>]\] )?/

/** Whether what stands in columns is to be kept in them. */
interface Below {
  /** The first of two columns, with two blanks behind it, stands before the words, too. Default: false. */
  readonly columned?: boolean | undefined
}

/** The same, with a hanging indent: the rest of a long line continues below its first words. */
export const wrapBelow = (text: string, columns: number, options: Below = {}): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => {
    if (width(line) <= columns) return [line]
    const before = leadOf(line, options)
    const indent = indentOf(line, columns, options)
    if (indent === 0) return wrap(line, columns)
    const [first, rest] = cut(line.split(styles), before.length)
    const rows = wrap(rest, columns - indent)
    // The first column alone takes too much of a row.
    if (indent < width(before)) return [...wrap(first.trimEnd(), columns), ...rows.map((row) => blanks(indent) + row)]
    return rows.map((row, at) => (at > 0 || before.trim() === "" ? blanks(indent) : first) + row)
  })

/** In which column {@link wrapBelow} goes on. */
export const indentOf = (line: string, columns: number, options: Below = {}): number => {
  const before = leadOf(line, options)
  const indent = width(before)
  if (columns - indent >= Math.min(leastBeside, columns / 2)) return indent
  return usualLead.exec(before)?.[0] === before ? 0 : Math.min(4, Math.floor(columns / 4))
}

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

/** Columns of words below which it is not worth while to keep them to the right of anything, unless they are half of all. */
const leastBeside = 16

/** The first of two columns. */
const columnLead = /^ *\S.*? {2,}(?=\S)/

const leadOf = (line: string, { columned = false }: Below): string => {
  const bare = line
    .split(styles)
    .filter((_, index) => index % 2 === 0)
    .join("")
  return ((columned ? columnLead.exec(bare) : null) ?? usualLead.exec(bare))?.[0] ?? ""
}

const blanks = (count: number): string => " ".repeat(count)

/** Cuts a line, in its texts and the styles between them; a style that is open there goes on in the second half. */
const cut = (parts: ReadonlyArray<string>, at: number): readonly [before: string, behind: string] => {
  let left = at
  let open = ""
  let before = ""
  let behind = ""
  for (const [index, part] of parts.entries()) {
    if (index % 2 === 0) {
      before += part.slice(0, left)
      behind += part.slice(left)
      left -= Math.min(left, part.length)
    } else if (left > 0) {
      before += part
      open = part === reset ? "" : open + part
    } else behind += part
  }
  return [before, open + behind]
}

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
    }
    // A row that goes on begins with a word, however many blanks stand before it.
    if (token.text === " " && used === 0 && rows.length > 0) continue
    row.push(token)
    used += token.width
  }
  if (used > 0 || rows.length === 0) rows.push(row)
  let open = ""
  return rows.map((entries) => {
    const start = open
    for (const entry of entries) {
      if (entry.text.startsWith("\x1b")) open = entry.text === reset || entry.text === "\x1b[m" ? "" : open + entry.text
    }
    return start + entries.map((entry) => entry.text).join("") + (open === "" ? "" : reset)
  })
}
