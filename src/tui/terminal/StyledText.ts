/**
 * Text in pieces that each have a style of their own, and its rows on a terminal: words are not cut, wide characters
 * take two columns, and each row opens and closes its own styles. All pure.
 *
 * `Display.wrap` does the same to a text with styles in it. This is for texts that are made of pieces, many and long
 * ones: it looks at each word once, and at single characters only where they are not ASCII.
 */
import * as Display from "./Display.js"

/** A piece of text without control characters; a line break is a `\n`. */
export interface Run {
  readonly text: string
  /** A sum of {@link weights} and at most one of {@link colors}, which may be bright. */
  readonly style: number
}

export const weights = { bold: 1, dim: 2, italic: 4, underline: 8, struck: 16, inverse: 32 } as const
/** With `bright` each of the others is another colour. */
export const colors = {
  red: 0x100,
  green: 0x200,
  yellow: 0x300,
  blue: 0x400,
  magenta: 0x500,
  cyan: 0x600,
  bright: 0x800
} as const

export const run = (text: string, style = 0): Run => ({ text, style })

/** The style with another one on top: weights add up, and the upper colour counts. */
export const over = (below: number, above: number): number =>
  ((below | above) & weightBits) | (above >= colorUnit ? above & ~weightBits : below & ~weightBits)

/** Texts before the first row of a text and before the others, with their styles. */
export interface Margin {
  readonly first: Run
  readonly rest: Run
}
const noMargin: Margin = { first: { text: "", style: 0 }, rest: { text: "", style: 0 } }

export interface Options {
  readonly margin?: Margin
  /** Blanks all stay, and rows are full. Default: false. */
  readonly exact?: boolean
}

/** A row, and the columns that it takes. */
export interface Measured {
  readonly text: string
  readonly width: number
}

/**
 * Rows of at most this many columns, with a margin on each. Blanks at a break are dropped. A word that is longer than
 * a row is cut; so is `exact` text, whose blanks all stay.
 */
export const rows = (runs: ReadonlyArray<Run>, columns: number, options: Options = {}): ReadonlyArray<string> =>
  measured(runs, columns, options).map(({ text }) => text)

/** The same, with the columns that each row takes. */
export const measured = (
  runs: ReadonlyArray<Run>,
  columns: number,
  { margin = noMargin, exact = false }: Options = {}
): ReadonlyArray<Measured> => {
  const indent = widthOf(margin.rest.text)
  const room = Math.max(1, columns - indent)
  const short = shortLine(runs, room, margin.first)
  if (short !== undefined) return [short]
  const out: Array<Measured> = []
  let row = new Row(margin.first)
  let used = 0
  /** Blanks that are printed when a word follows on their row. */
  let blanks = 0
  let blankStyle = 0
  let word: Array<Atom> = []
  let wordWidth = 0
  const newRow = (): void => {
    out.push({ text: row.end(), width: indent + used })
    row = new Row(margin.rest)
    used = 0
    blanks = 0
  }
  const put = (text: string, style: number, width: number): void => {
    row.add(text, style)
    used += width
  }
  const putCut = (text: string, style: number, width: number): void => {
    if (used + width <= room) return put(text, style, width)
    for (const cluster of Display.clusters(text)) {
      const wide = clusterWidth(cluster)
      if (used + Math.min(wide, room) > room) newRow()
      if (wide <= room) put(cluster, style, wide)
      else put("�", style, 1)
    }
  }
  const endWord = (): void => {
    if (word.length === 0) return
    if (used > 0 && used + blanks + wordWidth > room) newRow()
    if (used === 0 && out.length > 0) blanks = 0
    if (blanks > 0) put(" ".repeat(Math.min(room, blanks)), blankStyle, Math.min(room, blanks))
    blanks = 0
    for (const { style, text, width } of word) putCut(text, style, width)
    word = []
    wordWidth = 0
  }
  const addWord = (text: string, style: number, width: number): void => {
    word.push({ text, style, width })
    wordWidth += width
  }
  for (const { style, text } of runs) {
    for (let at = 0; at < text.length;) {
      const code = text.charCodeAt(at)
      let end = at + 1
      if (code === newline) {
        endWord()
        newRow()
      } else if (code === blank) {
        while (text.charCodeAt(end) === blank) end++
        if (exact) putCut(text.slice(at, end), style, end - at)
        else {
          endWord()
          blanks += end - at
          blankStyle = style
        }
      } else if (code < 0x7f) {
        for (let next = text.charCodeAt(end); next > blank && next < 0x7f; next = text.charCodeAt(end)) end++
        const next = text.charCodeAt(end)
        // A word of one piece that fits, by far the most.
        if (!exact && word.length === 0 && (next === blank || next === newline) && used + blanks + end - at <= room) {
          if (used === 0 && out.length > 0) blanks = 0
          if (blanks === 1 && style === blankStyle && at > 0) put(text.slice(at - 1, end), style, end - at + 1)
          else {
            if (blanks > 0) put(" ".repeat(blanks), blankStyle, blanks)
            put(text.slice(at, end), style, end - at)
          }
          blanks = 0
        } else if (exact) putCut(text.slice(at, end), style, end - at)
        else addWord(text.slice(at, end), style, end - at)
      } else {
        for (let next = text.charCodeAt(end); next >= 0x7f; next = text.charCodeAt(end)) end++
        for (const cluster of clustersOf(text.slice(at, end))) {
          const width = clusterWidth(cluster)
          if (exact) putCut(cluster, style, width)
          else {
            // Scripts with wide characters have no blanks between words: a row may end before each of them.
            if (width > 1 && !stays.test(cluster)) endWord()
            addWord(cluster, style, width)
          }
        }
      }
      at = end
    }
  }
  endWord()
  newRow()
  return out
}

/** One row from runs that fit. */
export const line = (runs: ReadonlyArray<Run>): string => {
  const row = new Row(noMargin.first)
  for (const { style, text } of runs) row.add(text, style)
  return row.end()
}

/** The style after one of the sequences of {@link line}. */
export const opened = (style: number, sequence: string): number => {
  const code = Number(sequence.slice(2, -1))
  if (code === 0) return 0
  const weight = weightCodes.find(([, opens]) => opens === code)?.[0]
  return over(style, weight ?? (code < 90 ? (code - 30) * colorUnit : ((code - 90) * colorUnit) | colors.bright))
}

/** One row of at most so many columns, with an ellipsis where something was left out. */
export const cut = (runs: ReadonlyArray<Run>, columns: number): string => {
  const [whole = "", more] = rows(runs, columns, { exact: true })
  if (more === undefined) return whole
  const [part = ""] = rows(runs, columns - 1, { exact: true })
  return `${part}…`
}

/** Columns of a text without control characters. */
export const widthOf = (text: string): number =>
  isAscii(text) ? text.length : text.length < 16 ? clusterWidth(text) : Display.width(text)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Atom extends Run {
  readonly width: number
}

const weightBits = 0xff
const colorUnit = 0x100
const newline = 0x0a
const blank = 0x20

const isAscii = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/** Most lines are shorter than a row: those are not taken apart. */
const shortLine = (runs: ReadonlyArray<Run>, room: number, first: Run): Measured | undefined => {
  let length = 0
  for (const { text } of runs) length += text.length
  if (length > room) return undefined
  for (const { text } of runs) if (!isAscii(text)) return undefined
  // Blanks at the end are dropped; to look for them takes longer than to leave that to the long way.
  if (runs.at(-1)?.text.endsWith(" ") === true) return undefined
  const row = new Row(first)
  for (const { style, text } of runs) row.add(text, style)
  return { text: row.end(), width: widthOf(first.text) + length }
}

/** Punctuation of such scripts that does not begin a row. */
const stays = /^[、。，．：；？！）」』】〉》］｝〕ー々]/u

/** Measuring one takes longer than all else that is done with it, and texts use few different ones. */
const clusterWidth = (cluster: string): number => {
  const known = clusterWidths.get(cluster)
  if (known !== undefined) return known
  const width = Display.width(cluster)
  if (clusterWidths.size < 8_192) clusterWidths.set(cluster, width)
  return width
}
const clusterWidths = new Map<string, number>()

/**
 * Punctuation, arrows, boxes, letters of Europe and East Asia: each is a cluster by itself, unless something is combined
 * with it.
 */
const single =
  /^[\u00a1-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u22ff\u2500-\u259f\u3001-\u3029\u3041-\u3096\u30a1-\u30fc\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]+$/
const clustersOf = (text: string): Iterable<string> => (single.test(text) ? text : Display.clusters(text))

const weightCodes = [
  [weights.bold, 1],
  [weights.dim, 2],
  [weights.italic, 3],
  [weights.underline, 4],
  [weights.inverse, 7],
  [weights.struck, 9]
] as const

/** The sequences of a style; `Display` closes with the same. */
const codesOf = (style: number): string => {
  let codes = ""
  for (const [weight, code] of weightCodes) if (style & weight) codes += `\x1b[${code}m`
  const color = (style & ~colors.bright) >> 8
  return color === 0 ? codes : `${codes}\x1b[${(style & colors.bright ? 90 : 30) + color}m`
}
const reset = "\x1b[0m"

/** A row that is being filled. */
class Row {
  private text = ""
  private style = 0

  constructor({ style, text }: Run) {
    this.add(text, style)
  }

  add(text: string, style: number): void {
    if (text === "") return
    if (style !== this.style) {
      this.text += (this.style === 0 ? "" : reset) + codesOf(style)
      this.style = style
    }
    this.text += text
  }

  end(): string {
    return this.style === 0 ? this.text : this.text + reset
  }
}
