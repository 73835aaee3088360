/** Options by which a call of a program can be told to be harmless: those that are named, as they are written, and no others. */

/** A letter or a long option that is not named takes a call out. */
export interface Options {
  /** Letters without a value. */
  readonly flags?: string
  /** Letters with a value: the rest of their word, or the next word. */
  readonly values?: string
  /** Letters with a value in the next word that may end a cluster only: the letters behind them would be options too. */
  readonly lastValues?: string
  /** Letters whose value, if they have one, is the rest of their word. */
  readonly optional?: string
  /** In full, with their dashes. */
  readonly long?: ReadonlyArray<string>
  /** The same, with a value behind `=` as well. One in the next word counts as an operand: it may be one. */
  readonly longValues?: ReadonlyArray<string>
  /** `-5` is a number. */
  readonly numbers?: boolean
}

/** The words that are no options, without the values of options; nothing when some option is not among those named. */
export const takes = (options: Options, rest: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  const operands: Array<string> = []
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i] ?? ""
    if (!word.startsWith("-") || word === "-") operands.push(word)
    else if (word !== "--") {
      const known = word.startsWith("--") ? isLong(options, word) : isCluster(options, word)
      if (known === "no") return undefined
      // What follows is judged all the same, should it look like an option.
      const next = rest[i + 1]
      if (known === "wants" && next !== undefined && !next.startsWith("-")) i++
    }
  }
  return operands
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** `wants`: the next word is its value. */
type Known = "yes" | "wants" | "no"

const isLong = ({ long = [], longValues = [] }: Options, word: string): Known => {
  const equals = word.indexOf("=")
  if (equals >= 0) return longValues.includes(word.slice(0, equals)) ? "yes" : "no"
  return long.includes(word) || longValues.includes(word) ? "yes" : "no"
}

const isCluster = (options: Options, word: string): Known => {
  const { flags = "", values = "", lastValues = "", optional = "", numbers = false } = options
  if (numbers && /^-\d+$/.test(word)) return "yes"
  for (let i = 1; i < word.length; i++) {
    const letter = word.charAt(i)
    if (lastValues.includes(letter)) return i + 1 === word.length ? "wants" : "no"
    if (values.includes(letter)) return i + 1 === word.length ? "wants" : "yes"
    if (optional.includes(letter)) return "yes"
    if (!flags.includes(letter)) return "no"
  }
  return "yes"
}
