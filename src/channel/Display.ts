/**
 * Text on its way to a terminal: what may pass, how wide it is, how it wraps, how it is coloured. All pure.
 *
 * Three doors, by who wrote the text:
 *
 * | door | for | does |
 * |---|---|---|
 * | {@link sanitize} | what models and tools print | removes escape sequences, control and direction characters |
 * | {@link reveal} | what a person decides on | shows them instead, so that nothing that will run is hidden |
 * | {@link keepStyles} | our own text | as `sanitize`, but colours pass |
 */
import stringWidth from "string-width"

/** Colours and weights; each closes what it opens. All of them are the identity when colours are off. */
export interface Style {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly blue: (text: string) => string
  readonly magenta: (text: string) => string
  readonly cyan: (text: string) => string
}

export const style = (color: boolean): Style => (color ? colored : plain)

/** Foreign text made harmless: newlines stay, tabs become spaces, every other control or escape sequence goes. */
export const sanitize = (text: string): string =>
  isPlain(text)
    ? text
    : text
        .replace(lineBreaks, "\n")
        .replaceAll("\t", tab)
        .replace(stringSequences, "")
        .replace(controlSequences, "")
        .replace(controls, "")
        .replace(hidden, "")

/** Foreign text on which somebody decides: what a terminal would swallow is shown as `␛`, `␀` or `⟨U+202E⟩`. */
export const reveal = (text: string): string =>
  isPlain(text)
    ? text
    : text
        .replace(/\r\n/g, "\n")
        .replaceAll("\t", tab)
        .replace(controls, picture)
        .replace(/[\u2028\u2029]/g, codePoint)
        .replace(hidden, codePoint)

/** As {@link reveal}, on one line: line ends are shown as `↵`. At most `limit` characters. */
export const oneLine = (text: string, limit = Infinity): string => {
  const line = reveal(text.length > limit ? `${text.slice(0, Math.max(0, limit - 1))}…` : text)
  return line.replaceAll("\n", "↵")
}

/** Our own text, which may quote foreign text: colours pass, and nothing else that {@link sanitize} stops. */
export const keepStyles = (text: string): string =>
  isPlain(text)
    ? text
    : text
        .split(styles)
        .map((part, index) => (index % 2 === 0 ? sanitize(part) : part))
        .join("")

/** Columns that a text without newlines takes. */
export const width = (text: string): number => stringWidth(text)

/** What the editor moves over: user-perceived characters, a tab counting as four columns. */
export const clusters = (text: string): ReadonlyArray<string> =>
  isPlain(text) ? [...text] : Array.from(segmenter.segment(text), (entry) => entry.segment)

/** How one of {@link clusters} is drawn, and in how many columns; one that is wider than the terminal becomes `�`. */
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

/** Cuts a line without styles to this many columns, with an ellipsis where something went. */
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

const tab = "    "
const segmenter = new Intl.Segmenter()

const isPlain = (text: string): boolean => /^[\n\x20-\x7e]*$/.test(text)

const lineBreaks = /\r\n?|[\u2028\u2029\x85]/g
// Operating system commands and their kin. Their payload stays: a sequence that is never ended must not swallow the rest.
const stringSequences = /\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]|\x1b\\/g
const controlSequences = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]/g
const controls = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/g
// Invisible and direction-changing characters, without the joiner and the selectors that emoji are made of.
const hidden =
  /(?![\u200d\ufe0e\ufe0f])[\p{Default_Ignorable_Code_Point}\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu
const styles = /(\x1b\[[0-9;]*m)/

const codePoint = (char: string): string => {
  const hex = (char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")
  return `⟨U+${hex}⟩`
}
const picture = (char: string): string => {
  const code = char.charCodeAt(0)
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : codePoint(char)
}

const reset = "\x1b[0m"
const sgr = (code: number) => (text: string) => (text === "" ? "" : `\x1b[${code}m${text}${reset}`)
const identity = (text: string): string => text

const colored: Style = {
  bold: sgr(1),
  dim: sgr(2),
  red: sgr(31),
  green: sgr(32),
  yellow: sgr(33),
  blue: sgr(34),
  magenta: sgr(35),
  cyan: sgr(36)
}
const plain: Style = {
  bold: identity,
  dim: identity,
  red: identity,
  green: identity,
  yellow: identity,
  blue: identity,
  magenta: identity,
  cyan: identity
}

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
    if (used + token.width > columns && row.length > 0) {
      const space = row.findLastIndex((entry) => entry.text === " ")
      // A break inside the leading spaces would make an empty row and gain nothing.
      const breakable = row.slice(0, Math.max(0, space)).some((entry) => entry.text !== " " && entry.width > 0)
      const breaks = breakable && token.text !== " "
      const rest = breaks ? row.slice(space + 1) : []
      rows.push(breaks ? row.slice(0, space) : row)
      row = rest
      used = rest.reduce((sum, entry) => sum + entry.width, 0)
      if (token.text === " " && used === 0) continue
    }
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
