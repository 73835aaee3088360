/**
 * A search backwards through what was submitted before, as shells have it with ctrl-r.
 *
 * | keys | do |
 * |---|---|
 * | text, backspace | change what is looked for |
 * | ctrl-r, ctrl-s | an older one, a newer one |
 * | enter | takes the one that is shown, and submits it |
 * | escape, tab, any other key | takes it, to be edited |
 * | ctrl-c, ctrl-g | gives it up: the draft stays as it was |
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Data from "effect/Data"
import * as Option from "effect/Option"

export interface HistorySearch {
  readonly query: string
  /** Index of what is shown; the history's length when nothing fits. */
  readonly at: number
}

/** The effect of a key. */
export type Outcome = Data.TaggedEnum<{
  readonly Searching: { readonly search: HistorySearch }
  /** The shown text replaces the draft, and the key is pressed there if it is none of the search's own. */
  readonly Taken: { readonly isOver: boolean }
  readonly GivenUp: {}
}>
export const { Searching, Taken, GivenUp, $match: match } = Data.taggedEnum<Outcome>()

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Nothing is looked for yet. */
export const make = (history: ReadonlyArray<string>): HistorySearch => ({ query: "", at: history.length })

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The text that is found. */
export const found = ({ at }: HistorySearch, history: ReadonlyArray<string>): string | undefined => history[at]

export const press = (search: HistorySearch, input: UserInput, history: ReadonlyArray<string>): Outcome => {
  const { ctrl, meta, name } = input.key
  if (ctrl && (name === "c" || name === "g")) return GivenUp()
  if (ctrl && name === "r") return Searching({ search: step(search, history, -1) })
  if (ctrl && name === "s") return Searching({ search: step(search, history, 1) })
  if (name === "escape" || name === "tab") return search.query === "" ? GivenUp() : Taken({ isOver: true })
  if (name === "backspace") return Searching({ search: lookFor(search.query.slice(0, -1), history) })
  const typed = ctrl || meta ? "" : Option.getOrElse(input.input, () => "").replace(/\p{Cc}/gu, "")
  if (typed === "") return found(search, history) === undefined ? GivenUp() : Taken({ isOver: false })
  return Searching({ search: lookFor(search.query + typed, history) })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Capitals count only where some are typed. */
const fits = (query: string): ((text: string) => boolean) => {
  const exact = query !== query.toLowerCase()
  return (text) => (exact ? text : text.toLowerCase()).includes(query)
}

const lookFor = (query: string, history: ReadonlyArray<string>): HistorySearch => {
  const at = query === "" ? -1 : history.findLastIndex(fits(query))
  return { query, at: at < 0 ? history.length : at }
}

/** The next one that differs from what is shown; the same where there is none. */
const step = (search: HistorySearch, history: ReadonlyArray<string>, by: -1 | 1): HistorySearch => {
  if (search.query === "") return search
  const isFit = fits(search.query)
  for (let at = search.at + by; at >= 0 && at < history.length; at += by) {
    const text = history[at]
    if (text !== undefined && text !== history[search.at] && isFit(text)) return { ...search, at }
  }
  return search
}
