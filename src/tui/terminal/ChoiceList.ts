/**
 * A question's list to choose from: numbered rows that follow what is typed. Arrows move the mark, Enter takes the marked
 * row; where no row fits what is typed, the words count as they are. All pure.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Display from "./Display.js"
import * as Picker from "./Picker.js"

export interface Listing {
  readonly choices: ReadonlyArray<Picker.Choice>
  readonly typed: string
  /** Index, among those that fit, of the marked one. */
  readonly at: number
}

/** The choices with the numbers by which they can be named. */
export const numbered = (choices: ReadonlyArray<Picker.Choice>): ReadonlyArray<Picker.Choice> => {
  const width = Math.max(2, String(choices.length).length)
  return choices.map(({ label, text }, index) => ({ text, label: `${String(index + 1).padStart(width)}. ${label}` }))
}

/** The effect of a key on the list; a key of the line's is unused. */
export const press = (listing: Listing, input: UserInput): Picker.Outcome =>
  Picker.press(pickerOf(listing), input, listing.typed)

/** At most so many rows, around the marked one. */
export const rows = (
  listing: Listing,
  style: Display.Style,
  size: { readonly columns: number; readonly rows: number }
): ReadonlyArray<string> => {
  const picker = pickerOf(listing)
  const count = picker.offer.choices.length
  const drawn = (rows: number) => Picker.window(picker, style, { ...size, rows }, Display.truncate)
  if (count <= size.rows || size.rows < 3) return drawn(size.rows)
  return [...drawn(size.rows - 1), style.dim(`  ${picker.at + 1} of ${count}`)]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Its mark counts as moved: Enter takes what is marked, whatever was typed. */
const pickerOf = ({ at, choices, typed }: Listing): Picker.Picker => {
  const found = fitting(choices, typed)
  return { offer: { from: 0, query: typed, choices: found }, at: Math.min(at, found.length - 1), isMoved: true }
}

/**
 * Those in which every word that is typed begins a word; the one that is named by its number, or by all of its name, first. An
 * id is one word, in which some letters stand by chance.
 */
const fitting = (choices: ReadonlyArray<Picker.Choice>, typed: string): ReadonlyArray<Picker.Choice> => {
  const all = numbered(choices)
  const words = typed
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
  if (words.length === 0) return all
  const name = typed.trim().toLowerCase()
  const isNamed = (index: number): boolean => name === String(index + 1) || choices[index]?.text.toLowerCase() === name
  const fits = (index: number): boolean => {
    const choice = choices[index]
    const text = `${choice?.label ?? ""} ${choice?.text ?? ""}`.toLowerCase()
    return words.every((word) => begins(text, word))
  }
  return [...all.filter((_, index) => isNamed(index)), ...all.filter((_, index) => !isNamed(index) && fits(index))]
}

/** Whether a word of the text begins so. Scripts that do not part words have it anywhere. */
const begins = (text: string, word: string): boolean => {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1))
    if (!/^[a-z0-9_]/.test(word) || !/[a-z0-9_]/.test(text.charAt(at - 1))) return true
  return false
}
