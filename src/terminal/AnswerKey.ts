/**
 * An answer of one key: which one is being given, and what of the word behind it is still to come.
 *
 * ```
 *  y ──── 300 ms without another key ────► answered: yes        e s ⏎ within two seconds: the rest of the word, dropped
 *  y e s ─────────────────────────────────► a word, which Enter answers with
 * ```
 *
 * The wait makes words possible, and keeps somebody who types on without looking from answering with the first letter.
 * Pure time: its owner says what time it is, in milliseconds.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Option from "effect/Option"

/** How long a key must stay alone. */
export const wait = 300
/** How long the rest of a word, or an Enter, still belongs to the answer. */
const following = 2_000

export interface AnswerKey {
  /** What stands in the answer now; a single one of `keys` becomes due. */
  readonly typed: (text: string, keys: ReadonlyMap<string, ReadonlyArray<string>>, now: number) => void
  /** When the answer counts, if no key comes before. */
  readonly due: () => number | undefined
  /** The answer is given now, by its key. */
  readonly give: (now: number) => void
  /** The question is gone. */
  readonly forget: () => void
  /** Whether this key is only the rest of an answer that counts already. */
  readonly takes: (input: UserInput, now: number) => boolean
}

export const make = (): AnswerKey => {
  let due: number | undefined
  let words: ReadonlyArray<string> = []
  let rest: { readonly words: ReadonlyArray<string>; readonly until: number } | undefined
  return {
    typed: (text, keys, now) => {
      const meant = keys.get(text.toLowerCase())
      due = meant === undefined ? undefined : now + wait
      words = (meant ?? []).map((word) => word.slice(text.length))
    },
    due: () => due,
    give: (now) => {
      due = undefined
      rest = { words, until: now + following }
    },
    forget: () => {
      due = undefined
    },
    takes: ({ input, key }, now) => {
      if (rest === undefined) return false
      const { until, words } = rest
      rest = undefined
      if (now >= until || key.ctrl || key.meta) return false
      if (key.name === "return" || key.name === "enter") return true
      const typed = Option.getOrElse(input, () => "").toLowerCase()
      const left = words
        .filter((word) => typed !== "" && word.startsWith(typed))
        .map((word) => word.slice(typed.length))
      if (left.length === 0) return false
      rest = { words: left, until }
      return true
    }
  }
}
