/** A long text by its beginning and its end, and the amount left out between them. */

export interface Truncated {
  readonly head: string
  readonly tail: string
  /** Characters left out. */
  readonly characters: number
  /** Line ends left out. */
  readonly lines: number
}

export interface Limits {
  /** Characters of the beginning and of the end. */
  readonly head: number
  readonly tail: number
  /** Lines of each part, at most. Default: as many as there are. */
  readonly headLines?: number | undefined
  readonly tailLines?: number | undefined
}

/** Nothing for a text that is shown whole. Cuts at line ends where there are any nearby, never through a character. */
export const make = (text: string, limits: Limits): Truncated | undefined => {
  const { head, headLines = Infinity, tail, tailLines = Infinity } = limits
  const fewLines = countTo(text, headLines + tailLines)
  if (text.length <= head + tail && fewLines) return undefined
  const to = headEnd(text, Math.min(head, text.length), headLines)
  const from = Math.max(to, tailStart(text, Math.max(text.length - tail, 0), tailLines))
  if (from <= to) return undefined
  const between = text.slice(to, from)
  let lines = 0
  for (let at = between.indexOf("\n"); at >= 0; at = between.indexOf("\n", at + 1)) lines++
  return { head: text.slice(0, to), tail: text.slice(from), characters: between.length, lines }
}

/** The note that stands in place of the omitted part. */
export const note = ({ characters, lines }: Truncated): string =>
  `${grouped(characters)} characters${lines > 1 ? ` in ${grouped(lines)} lines` : ""} are between, and not shown here`

/** The text with that note in the middle. */
export const text = (shortened: Truncated): string => `${shortened.head}\n[${note(shortened)}]\n${shortened.tail}`

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const grouped = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ",")

const countTo = (text: string, limit: number): boolean => {
  let lines = 1
  for (let at = text.indexOf("\n"); at >= 0 && lines <= limit; at = text.indexOf("\n", at + 1)) lines++
  return lines <= limit
}

const headEnd = (text: string, limit: number, lines: number): number => {
  let end = 0
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf("\n", end)
    if (next < 0 || next + 1 > limit) {
      // A long line is cut; a line that only begins here is left out.
      return end > limit / 2 && next >= 0 ? end : whole(text, limit)
    }
    end = next + 1
  }
  return end
}

const tailStart = (text: string, limit: number, lines: number): number => {
  let start = text.length
  for (let line = 0; line < lines; line++) {
    const before = text.lastIndexOf("\n", start - 2)
    if (before < 0 || before + 1 < limit) {
      return text.length - start > (text.length - limit) / 2 ? start : whole(text, limit)
    }
    start = before + 1
  }
  return start
}

/** A cut never splits a surrogate pair. */
const whole = (text: string, at: number): number => {
  const code = text.charCodeAt(at - 1)
  return code >= 0xd800 && code <= 0xdbff ? at - 1 : at
}
