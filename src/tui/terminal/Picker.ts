/**
 * A list below the prompt from which the word at the cursor is picked.
 *
 * | keys | do |
 * |---|---|
 * | up, down, ctrl-p, ctrl-n | another one |
 * | tab, enter | takes it; enter sends a line whose word is taken already, or which nothing fits but by its letters |
 * | escape | closes the list, until the next such word |
 * | any other key | goes to the line, and the list follows |
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Data from "effect/Data"
import * as Display from "./Display.js"

/**
 * One thing to pick.
 *
 * @since 0.1.0
 * @category models
 */
export interface Choice {
  /** What replaces the word. */
  readonly text: string
  /** What is shown. */
  readonly label: string
}

/**
 * What can be picked for a word.
 *
 * @since 0.1.0
 * @category models
 */
export interface Offer {
  /** Where the word begins in the text before the cursor. */
  readonly from: number
  /** What the word says of the choice. */
  readonly query: string
  /** Best first. */
  readonly choices: ReadonlyArray<Choice>
}

/**
 * The offer for the text before the cursor; nothing where its last word is not to be picked.
 *
 * @since 0.1.0
 * @category models
 */
export type Offers = (before: string) => Offer | undefined

export interface Picker {
  readonly offer: Offer
  /** Index of the choice that is marked. */
  readonly at: number
  /** Whether somebody has moved the mark. */
  readonly isMoved: boolean
}

/** The effect of a key. */
export type Outcome = Data.TaggedEnum<{
  readonly Moved: { readonly picker: Picker }
  readonly Taken: { readonly choice: Choice }
  readonly GivenUp: {}
  /** The key is for the line. */
  readonly Unused: {}
}>
export const { Moved, Taken, GivenUp, Unused, $match: match } = Data.taggedEnum<Outcome>()

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The first one is marked. Nothing where there is none. */
export const make = (offer: Offer): Picker | undefined =>
  offer.choices.length === 0 ? undefined : { offer, at: 0, isMoved: false }

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The effect of one key, where this stands before the cursor. */
export const press = (picker: Picker, { key }: UserInput, before: string): Outcome => {
  const { ctrl, meta, name, shift } = key
  const { at, isMoved, offer } = picker
  const count = offer.choices.length
  const move = (by: number) => Moved({ picker: { offer, at: (at + by + count) % count, isMoved: true } })
  if (meta || shift) return Unused()
  if ((ctrl && name === "n") || (!ctrl && name === "down")) return move(1)
  if ((ctrl && name === "p") || (!ctrl && name === "up")) return move(-1)
  if (ctrl) return Unused()
  if (name === "escape") return GivenUp()
  const choice = offer.choices[at]
  if (choice === undefined) return Unused()
  if (name === "tab") return Taken({ choice })
  if (name !== "return") return Unused()
  if (isMoved) return Taken({ choice })
  const typed = before.slice(offer.from)
  if (offer.choices.some(({ text }) => text.trimEnd().replace(/\/$/, "") === typed.replace(/\/$/, ""))) return Unused()
  return choice.label.toLowerCase().includes(offer.query.toLowerCase()) ? Taken({ choice }) : Unused()
}

/** A third of the terminal's rows, and not many, around the marked one. */
export const rows = (
  picker: Picker,
  style: Display.Style,
  size: { readonly columns: number; readonly rows: number }
): ReadonlyArray<string> =>
  window(picker, style, { ...size, rows: Math.min(most, Math.max(1, Math.floor(size.rows / 3))) }, endOf, true)

/** At most so many rows, around the marked one, each cut to its columns; counted there where not all are shown. */
export const window = (
  { at, offer }: Picker,
  style: Display.Style,
  { columns, rows: room }: { readonly columns: number; readonly rows: number },
  cut: (text: string, columns: number) => string,
  isCounted = false
): ReadonlyArray<string> => {
  const { choices } = offer
  const first = Math.max(0, Math.min(at - Math.floor(room / 2), choices.length - room))
  const more = choices.length - room
  return choices.slice(first, first + room).map(({ label }, index) => {
    const isMarked = first + index === at
    const note = isCounted && isMarked && more > 0 ? ` (${at + 1} of ${choices.length})` : ""
    const text = `${isMarked ? "›" : " "} ${cut(Display.oneLine(label), columns - 3 - note.length)}`
    return isMarked ? style.cyan(text) + style.dim(note) : style.dim(text)
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const most = 8

/** The end of a path says more than its beginning. */
const endOf = (text: string, columns: number): string => {
  if (Display.width(text) <= columns) return text
  const kept: Array<string> = []
  let used = 1
  for (const cluster of [...Display.clusters(text)].reverse()) {
    used += Display.width(cluster)
    if (used > columns) break
    kept.unshift(cluster)
  }
  return columns < 1 ? "" : `…${kept.join("")}`
}
