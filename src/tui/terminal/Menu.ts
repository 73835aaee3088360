/**
 * The choices of a question that somebody else wrote: all of them stand below it, whole, whatever is typed. All pure.
 *
 * | keys, where nothing is typed | do |
 * |---|---|
 * | up, down, ctrl-p, ctrl-n | mark another one; where nothing was marked at first, none is among them |
 * | space | takes the marked one in or out, where several can be taken |
 * | enter | takes those that were taken in, else the marked one, else is a key of the line's |
 *
 * What is typed counts alone: no mark is shown then, and no key moves one.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Data from "effect/Data"
import * as Display from "./Display.js"

/**
 * What can be taken below a question. The answer is the number of what was taken, or several with commas between them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Menu {
  readonly labels: ReadonlyArray<string>
  /** The number, from 1, of the one that is marked at first. Default: none is, and Enter alone takes none. */
  readonly preset?: number | undefined
  /** Whether several can be taken. Default: false. */
  readonly several?: boolean | undefined
  /** The numbers of those that were taken when this was asked before, which are marked at first in place of the default. */
  readonly before?: ReadonlyArray<number> | undefined
  /** Whether they are in what was printed of this question already, and need not stay once more. Default: false. */
  readonly isKept?: boolean | undefined
}

/** What a person has done to a menu; numbers from 0. */
export interface Marks {
  readonly at: number | undefined
  /** Those that are taken in, in their order. */
  readonly taken: ReadonlyArray<number>
}

/** The effect of a key. */
export type Outcome = Data.TaggedEnum<{
  readonly Moved: { readonly marks: Marks }
  /** The answer, and how it stands on the screen. */
  readonly Taken: { readonly text: string; readonly shown: string }
  /** The key is for the line. */
  readonly Unused: {}
}>
export const { Moved, Taken, Unused, $match: match } = Data.taggedEnum<Outcome>()

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** As a menu is at first. */
export const marks = ({ before = [], preset, several }: Partial<Menu> = {}): Marks => {
  const first = before[0] ?? preset
  return {
    at: first === undefined ? undefined : first - 1,
    taken: several === true ? before.map((one) => one - 1) : []
  }
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Whether nobody has done anything to it. */
export const isUntouched = (menu: Menu, { at, taken }: Marks): boolean => {
  const first = marks(menu)
  return at === first.at && taken.join() === first.taken.join()
}

/** The effect of one key, where this is typed. */
export const press = (menu: Menu, current: Marks, typed: string, { key }: UserInput): Outcome => {
  const { ctrl, meta, name, shift } = key
  if (isTyped(typed) || meta || shift) return Unused()
  if (ctrl ? name === "n" : name === "down") return Moved({ marks: move(menu, current, 1) })
  if (ctrl ? name === "p" : name === "up") return Moved({ marks: move(menu, current, -1) })
  if (ctrl) return Unused()
  if (name === "space" && menu.several === true) return Moved({ marks: toggle(current) })
  if (name !== "return") return Unused()
  const { at, taken } = current
  const all = taken.length > 0 || at === undefined ? taken : [at]
  if (all.length === 0) return Unused()
  return Taken({
    text: all.map((index) => index + 1).join(", "),
    shown: all.map((index) => menu.labels[index] ?? "").join(", ")
  })
}

/** At most so many rows, around the marked one; with a row that counts where not all are shown. */
export const rows = (
  menu: Menu,
  current: Marks,
  typed: string,
  style: Display.Style,
  { columns, rows: room }: { readonly columns: number; readonly rows: number }
): ReadonlyArray<string> => {
  const shown = isTyped(typed) ? { at: undefined, taken: [] } : current
  const all = menu.labels.map((_, index) => entry(menu, shown, index, style, columns))
  if (height(all) <= room) return all.flat()
  const isCounted = room > 2
  const most = isCounted ? room - 1 : room
  let first = Math.min(current.at ?? 0, all.length - 1)
  let end = first + 1
  const hasRoom = (index: number): boolean => height(all.slice(first, end)) + (all[index]?.length ?? Infinity) <= most
  while (hasRoom(end) || hasRoom(first - 1)) {
    if (hasRoom(end)) end++
    if (hasRoom(first - 1)) first--
  }
  const count = shown.at === undefined ? `${all.length} choices` : `${shown.at + 1} of ${all.length}`
  return [
    ...all.slice(first, end).flat().slice(0, most),
    ...(isCounted ? [style.dim(Display.truncate(`  ${count}`, columns - 1))] : [])
  ]
}

/** How many rows all of it takes. */
export const heightOf = (menu: Menu, columns: number): number =>
  height(menu.labels.map((_, index) => entry(menu, marks(menu), index, Display.style(false), columns)))

/** Its choices with their numbers, as they stay in what is printed of a question. */
export const numbered = ({ labels, preset }: Menu, style: Display.Style): ReadonlyArray<string> =>
  labels.map((label, index) => {
    const line = `${index + 1}. ${Display.oneLine(label)}`
    return index + 1 === preset ? `${line} ${style.dim("(default)")}` : line
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A blank is no answer yet. */
const isTyped = (typed: string): boolean => typed.trim() !== ""

/** Columns of words below which it is not worth while to keep them apart from their number. */
const leastHung = 8

const height = (entries: ReadonlyArray<ReadonlyArray<string>>): number =>
  entries.reduce((sum, { length }) => sum + length, 0)

/** Where nothing was marked at first, that can be had again between the last and the first. */
const move = ({ labels, preset }: Menu, { at, taken }: Marks, by: 1 | -1): Marks => {
  const count = labels.length + (preset === undefined ? 1 : 0)
  const place = ((at ?? labels.length) + by + count) % count
  return { at: place < labels.length ? place : undefined, taken }
}

const toggle = ({ at, taken }: Marks): Marks => {
  if (at === undefined) return { at, taken }
  const others = taken.filter((index) => index !== at)
  return { at, taken: others.length < taken.length ? others : [...taken, at].sort((one, other) => one - other) }
}

/** The rows of one choice, whole: who is to decide has to read it. */
const entry = (
  menu: Menu,
  { at, taken }: Marks,
  index: number,
  style: Display.Style,
  columns: number
): ReadonlyArray<string> => {
  const box = menu.several === true ? `[${taken.includes(index) ? "x" : " "}] ` : ""
  const number = `${index + 1}. `.padStart(String(menu.labels.length).length + 2)
  const lead = `${index === at ? "›" : " "} ${box}${number}`
  const words = Display.oneLine(menu.labels[index] ?? "") + (index + 1 === menu.preset ? " (default)" : "")
  const width = columns - 1 - lead.length
  const rows =
    width < leastHung
      ? Display.wrap(lead + words, Math.max(1, columns - 1))
      : Display.wrap(words, width).map((row, place) => (place === 0 ? lead : " ".repeat(lead.length)) + row)
  return index === at ? rows.map(style.cyan) : rows
}
