/**
 * Which characters a terminal gets. All pure, and loaded by every module that prints; text width is in `Display`.
 *
 * | door | for | does |
 * |---|---|---|
 * | {@link sanitize} | what models and tools print | removes escape sequences, control and direction characters |
 * | {@link reveal} | what a person decides on | shows them instead, so that nothing that will run is hidden |
 * | {@link keepStyles} | our own text | as `sanitize`, but colours pass |
 * | {@link printed}, {@link drawn}, {@link json} | whatever leaves the process | the last look: whoever forgot one of the others has not opened a hole |
 */
import { codePoint, picture, visible } from "./Visible.js"

/** Foreign text made harmless: newlines stay, tabs become spaces, every other control or escape sequence is removed. */
export const sanitize = (text: string): string =>
  isPlain(text) ? text : text.replace(lineBreaks, "\n").replace(sequences, "").replaceAll("\t", tab).replace(hidden, "")

/** {@link sanitize} for a text that arrives in pieces. */
export interface Sanitizer {
  /** Takes the next piece; returns what can be shown now. A sequence that may go on in the next piece is held back. */
  readonly push: (piece: string) => string
  /** Returns what was held back. */
  readonly end: () => string
}

export const sanitizer = (): Sanitizer => {
  let held = ""
  return {
    push: (piece) => {
      if (held === "" && isPlain(piece)) return piece
      const text = held + piece
      held = unfinished.exec(text.slice(-longestString))?.[0] ?? ""
      return sanitize(held === "" ? text : text.slice(0, -held.length))
    },
    end: () => {
      // What is no string that lost its end says nothing.
      const rest = opensString.test(held) ? sanitize(held) : ""
      held = ""
      return rest
    }
  }
}

/**
 * Foreign text on which a person decides: characters that a terminal would swallow are shown as `␛`, `␀` or `⟨U+202E⟩`.
 */
export const reveal = (text: string): string =>
  isPlain(text) ? text : visible(text.replace(/\r\n/g, "\n").replaceAll("\t", tab))

/** The same for text on which nobody decides, such as what a person types: emoji that are joined stay so. */
export const revealWords = (text: string): string =>
  isPlain(text) ? text : spelledOut(text.replace(/\r\n/g, "\n").replaceAll("\t", tab))

/** Like {@link reveal}, on one line: line ends are shown as `↵`. At most `limit` characters. */
export const oneLine = (text: string, limit = Infinity): string => {
  const line = reveal(text.length > limit ? `${text.slice(0, Math.max(0, limit - 1))}…` : text)
  return line.replaceAll("\n", "↵")
}

/** Our own text, which may quote foreign text: colours pass, and nothing else that {@link sanitize} removes. */
export const keepStyles = (text: string): string =>
  isPlain(text)
    ? text
    : text
        .split(styles)
        .map((part, index) => (index % 2 === 0 ? sanitize(part) : part))
        .join("")

// -----------------------------------------------------------------------------------------------------------------
// the last look
// -----------------------------------------------------------------------------------------------------------------

/**
 * Lines on their way out: tabs and line ends pass, and to a terminal our own styles, which end with the text. All other
 * characters that a terminal would obey or hide are spelled out.
 */
export const printed = (text: string, styled: boolean): string => {
  if (isPrintable(text)) return text
  const lines = text.replace(/\r\n/g, "\n")
  if (!styled) return withTabs(lines)
  const parts = lines.split(ownStyles)
  const last = parts.at(-2)
  return (
    parts.map((part, index) => (index % 2 === 0 ? withTabs(part) : part)).join("") +
    (last === undefined || last === reset ? "" : reset)
  )
}

/** A screen on its way out: our own drawing sequences pass too. */
export const drawn = (text: string): string =>
  isPrintable(text)
    ? text
    : text
        .split(drawing)
        .map((part, index) => (index % 2 === 0 ? withTabs(part) : part))
        .join("")

/** A value as one line of JSON with the same meaning and without characters that a terminal would obey or hide. */
export const json = (value: unknown): string => {
  const text = JSON.stringify(value)
  return isPrintable(text) ? text : text.replace(unseen, escaped)
}

/** The escapes of {@link json}, for a text in which such characters stand in double quotes only. */
export const escapeUnseen = (text: string): string => (isPrintable(text) ? text : text.replace(unseen, escaped))

/** Whether {@link escapeUnseen} would escape anything in the text. */
export const hasUnseen = (text: string): boolean => !isPrintable(text) && text.search(unseen) >= 0

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const tab = "    "

export const isPlain = (text: string): boolean => /^[\n\x20-\x7e]*$/.test(text)
const isPrintable = (text: string): boolean => /^[\n\t\x20-\x7e]*$/.test(text)

const lineBreaks = /\r\n?|[\u2028\u2029\x85]/g
/**
 * In one pass, so that nothing that is left becomes a sequence: operating system commands and similar, with their payload;
 * the beginning of one that has no end on its line, which must not swallow the rest; other sequences; other characters.
 */
const sequences =
  /(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])(?:[^\x07\x1b\x90\x98\x9c-\x9f\n]{0,4000}(?:\x07|\x9c|\x1b\\))?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g
const controls = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/g
// Invisible and direction-changing characters, except the joiner and the selectors used in emoji.
const hidden =
  /(?![\u200d\ufe0e\ufe0f])[\p{Default_Ignorable_Code_Point}\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu
/** The beginning of a sequence, of a line end or of a character, at the end of a text. */
const unfinished =
  /(?:(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]{0,4000}\x1b?|(?:\x1b\[|\x9b)[0-?]*[ -/]*|\x1b[ -/]*|\r|[\ud800-\udbff])$/
const opensString = /^(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])/
/** Characters of the longest text that is held back, and one more. */
const longestString = 4_100
/** Characters in JSON that a terminal would not show. `JSON.stringify` itself escapes lone surrogates. */
const unseen = /[\x00-\x08\x0b-\x1f\x7f-\x9f\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu
export const styles = /(\x1b\[[0-9;]*m)/

/** The styles of `Display.style` and `StyledText`, and no others: another one makes text invisible. */
const ownStyles = /(\x1b\[(?:[0-4]|7|9|[39][1-6])?m)/
const reset = "\x1b[0m"
/** The sequences of `LiveRegion`, `Pager`, `ConsoleScreen` and `NodeTerminal`. */
const drawing = /(\x1b\[(?:(?:[0-4]|7|9|[39][1-6])?m|\?25[hl]|\?2004[hl]|\?1049[hl]|2?J|2K|H|\d{1,4}[ABG])|\r)/

const withTabs = (text: string): string =>
  text.includes("\t") ? text.split("\t").map(spelledOut).join("\t") : spelledOut(text)

const spelledOut = (text: string): string =>
  text
    .replace(controls, picture)
    .replace(/[\u2028\u2029]/g, codePoint)
    .replace(hidden, codePoint)

/** Each surrogate by itself, as in JSON. */
const escaped = (char: string): string =>
  Array.from({ length: char.length }, (_, index) => `\\u${char.charCodeAt(index).toString(16).padStart(4, "0")}`).join(
    ""
  )
