/**
 * An answer of one key: which one is being given, and what of the word behind it is still to come.
 *
 * ```
 *  y ──── 300 ms without another key ────► answered: yes        e s ⏎ : the rest of the word, which is no next answer
 *  y e s ─────────────────────────────────► a word, which Enter answers with
 * ```
 *
 * The wait makes words possible, and keeps somebody who types on without looking from answering with the first letter.
 *
 * Whether `e` is the rest of a `yes` or the beginning of `explore` is known only later, so no key is kept back for it: it
 * is typed like any other, but answers nothing by itself. Only the Enter that ends the word takes it away again.
 *
 * Pure time: its owner says what time it is, in milliseconds.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Option from "effect/Option"

/** How long a key must stay alone. */
export const wait = 300
/** How long after a key the next one, or an Enter, may still be the rest of a word. */
const following = 2_000

/** Keys that answer by themselves, with the words that they stand for. */
export type Keys = ReadonlyMap<string, ReadonlyArray<string>>
export const noKeys: Keys = new Map()

/** What a key is to an answer that counts already, or whose question is gone. */
export type Part =
  /** Nothing. */
  | "none"
  /** Perhaps the next letter of its word. */
  | "letter"
  /** The Enter behind the answer, or behind its whole word. */
  | "end"
  /** An Enter behind a part of its word. */
  | "stray"

export interface AnswerKey {
  /** What stands in the answer now; a single one of `keys` becomes due. */
  readonly typed: (text: string, keys: Keys, now: number) => void
  /** When the answer counts, if no key comes before. */
  readonly due: () => number | undefined
  /** The answer is given now, by its key. */
  readonly give: (now: number) => void
  /** Whether the last key that was pressed gave an answer. */
  readonly isGiven: () => boolean
  /** The question is gone. */
  readonly forget: () => void
  /** The question is gone, and of an answer to it this much was typed. False where it is a part of none. */
  readonly abandon: (text: string, keys: Keys, now: number) => boolean
  readonly part: (input: UserInput, now: number) => Part
  /** What comes now is the rest of nothing. */
  readonly over: () => void
}

/** Whether this text answers such a question: one of its keys, however often it was pressed, or one of its words. */
export const isAnswer = (text: string, keys: Keys): boolean => {
  const said = text.trim().toLowerCase()
  return said !== "" && [...keys].some(([key, words]) => said === key.repeat(said.length) || words.includes(said))
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (): AnswerKey => {
  let due: number | undefined
  let words: ReadonlyArray<string> = []
  let rest: { readonly words: ReadonlyArray<string>; readonly isBegun: boolean; readonly until: number } | undefined
  return {
    typed: (text, keys, now) => {
      const meant = keys.get(text.toLowerCase())
      due = meant === undefined ? undefined : now + wait
      words = (meant ?? []).map((word) => word.slice(text.length))
    },
    due: () => due,
    give: (now) => {
      due = undefined
      rest = { words, isBegun: false, until: now + following }
    },
    isGiven: () => rest?.isBegun === false,
    forget: () => {
      due = undefined
    },
    abandon: (text, keys, now) => {
      due = undefined
      const left = restOf(
        [...keys].flatMap(([key, words]) => [key, ...words]),
        text
      )
      rest = left.length === 0 ? undefined : { words: left, isBegun: true, until: now + following }
      return rest !== undefined
    },
    part: ({ input, key }, now) => {
      if (rest === undefined) return "none"
      const { isBegun, until, words } = rest
      rest = undefined
      if (now >= until || key.ctrl || key.meta) return "none"
      const isNewLine = key.name === "enter"
      if (key.name === "return" || isNewLine) {
        if (key.shift) return "none"
        return !isBegun || words.includes("") ? "end" : isNewLine ? "none" : "stray"
      }
      const left = restOf(
        words,
        Option.getOrElse(input, () => "")
      )
      if (left.length === 0) return "none"
      rest = { words: left, isBegun: true, until: now + following }
      return "letter"
    },
    over: () => {
      rest = undefined
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What is left of those words that begin with this text. */
const restOf = (words: ReadonlyArray<string>, text: string): ReadonlyArray<string> => {
  const begun = text.toLowerCase()
  return begun === "" ? [] : words.flatMap((word) => (word.startsWith(begun) ? [word.slice(begun.length)] : []))
}
