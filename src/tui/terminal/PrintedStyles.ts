/**
 * What a command prints on its way to a person: its colours and weights stay, in the colours that every terminal has.
 * Nothing else that a terminal obeys passes, and text that a style would hide can be read: a colour is of a hue, a coloured
 * background becomes its inverse, and greys are dim or plain. Pure but for what is open from one piece to the next.
 */
import * as StyledText from "./StyledText.js"
import { colors, weights, type Run } from "./StyledText.js"
import * as TerminalText from "../../core/TerminalText.js"

/** Reads what one command prints, piece by piece. */
export interface PrintedStyles {
  /**
   * The next piece, made harmless; each of its lines opens and closes its own styles. A carriage return stays where it
   * goes back to the beginning of a line: see `PrintedRows`.
   */
  readonly take: (piece: string) => string
}

/** Without colours all of them are left out. */
export const make = (color: boolean): PrintedStyles => {
  let look = usual
  /** The beginning of a sequence, or of a line end, that goes on in the next piece. */
  let held = ""
  return {
    take: (piece) => {
      const all = held + piece
      held = unended.exec(all.slice(-longestSequence))?.[0] ?? ""
      const text = held === "" ? all : all.slice(0, -held.length)
      let out = ""
      for (const [index, part] of text.split(graphics).entries()) {
        if (index % 2 === 1) look = changed(look, part)
        else out += styled(sanitized(part), color ? styleOf(look) : 0)
      }
      return out
    }
  }
}

/** The pieces of a line that came out of {@link make}. */
export const runs = (line: string): ReadonlyArray<Run> => {
  if (!line.includes("\x1b")) return [StyledText.run(line)]
  const out: Array<Run> = []
  let style = 0
  for (const [index, part] of line.split(/(\x1b\[\d*m?)/).entries()) {
    if (index % 2 === 1) style = StyledText.opened(style, part)
    else if (part !== "") out.push({ text: part, style })
  }
  return out
}

/** The same without styles. */
export const bare = (line: string): string => line.replace(/\x1b\[\d*m?/g, "")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What is open. */
interface Look {
  readonly weight: number
  /** A colour or dim. */
  readonly color: number
  readonly background: number
  readonly isInverse: boolean
}

const usual: Look = { weight: 0, color: 0, background: 0, isInverse: false }

const graphics = /(?:\x1b\[|\x9b)([\d;:]*)m/
const unended = /(?:\r|(?:\x1b|(?:\x1b\[|\x9b)[\d;:]*))$/
/** Characters. */
const longestSequence = 64

const styled = (text: string, style: number): string =>
  style === 0 || text === "" ? text : text.replace(/[^\n\r]+/g, (line) => StyledText.line([{ text: line, style }]))

const sanitized = (text: string): string =>
  text.replaceAll("\r\n", "\n").split("\r").map(TerminalText.sanitize).join("\r")

/** Only a hue can be a background: it is drawn as the inverse of letters, which are then seen on any terminal. */
const styleOf = ({ background, color, isInverse, weight }: Look): number =>
  (isInverse ? background === 0 : background !== 0)
    ? StyledText.over(StyledText.over(weight, background === 0 ? color : background), weights.inverse)
    : StyledText.over(weight, background === 0 ? color : background)

const changed = (look: Look, parameters: string): Look => {
  const rest = parameters.split(";")
  let next = look
  while (rest.length > 0) {
    const word = rest.shift() ?? ""
    const [first = "", ...below] = word.split(":")
    const code = Number(first)
    if (code === 38 || code === 48 || code === 58) {
      const color = colorOf(below.length > 0 ? below : rest.splice(0, rest[0] === "2" ? 4 : 2))
      if (code === 38) next = { ...next, color }
      else if (code === 48) next = { ...next, background: color === weights.dim ? 0 : color }
    } else next = code === 4 && below[0] === "0" ? simple(next, 24) : simple(next, code)
  }
  return next
}

const without = (look: Look, weight: number): Look => ({ ...look, weight: look.weight & ~weight })

const simple = (look: Look, code: number): Look => {
  if (code === 0) return usual
  const weight = weightOf.get(code)
  if (weight !== undefined) return { ...look, weight: look.weight | weight }
  if (code === 7) return { ...look, isInverse: true }
  if (code === 22) return without(look, weights.bold | weights.dim)
  if (code === 23) return without(look, weights.italic)
  if (code === 24) return without(look, weights.underline)
  if (code === 27) return { ...look, isInverse: false }
  if (code === 29) return without(look, weights.struck)
  if (code === 39) return { ...look, color: 0 }
  if (code === 49) return { ...look, background: 0 }
  if (code >= 30 && code <= 37) return { ...look, color: indexed(code - 30) }
  if (code >= 90 && code <= 97) return { ...look, color: indexed(code - 90 + 8) }
  if (code >= 40 && code <= 47) return { ...look, background: hueOf(code - 40) }
  if (code >= 100 && code <= 107) return { ...look, background: hueOf(code - 100 + 8) }
  return look
}

const weightOf = new Map<number, number>([
  [1, weights.bold],
  [2, weights.dim],
  [3, weights.italic],
  [4, weights.underline],
  [9, weights.struck],
  [21, weights.underline]
])

/** `5;INDEX` or `2;RED;GREEN;BLUE`, behind colons with a colour space before red. */
const colorOf = ([kind, ...values]: ReadonlyArray<string>): number => {
  const numbers = values.map(Number)
  if (kind === "5") return indexed(numbers[0] ?? 0)
  const [red = 0, green = 0, blue = 0] = numbers.slice(-3)
  return kind === "2" ? ofLight(red, green, blue) : 0
}

/** Black and white have no hue. They are as hard to see on one terminal as they are plain on another. */
const hueOf = (index: number): number =>
  index % 8 === 0 || index % 8 === 7 ? 0 : ((index % 8) * colors.red) | (index < 8 ? 0 : colors.bright)

const indexed = (index: number): number => {
  // What terminals call bright black is the grey of what matters less.
  if (index === 8) return weights.dim
  if (index < 16) return hueOf(index)
  if (index >= 232) return index < 244 ? weights.dim : 0
  const level = (of: number) => (of === 0 ? 0 : 55 + 40 * of)
  const cube = index - 16
  return ofLight(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6))
}

/** The nearest hue. */
const ofLight = (red: number, green: number, blue: number): number => {
  const most = Math.max(red, green, blue)
  const least = Math.min(red, green, blue)
  if (most - least < 48) return most >= 64 && most < 160 ? weights.dim : 0
  const middle = (most + least) / 2
  const bits = (red > middle ? 1 : 0) | (green > middle ? 2 : 0) | (blue > middle ? 4 : 0)
  return hueOf(most > 220 && least > 60 ? bits + 8 : bits)
}
