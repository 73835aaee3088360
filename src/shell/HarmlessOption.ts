/** Options with which a call of a program stays harmless: the named ones, as they are written, and no others. */

/** One letter or long option that is not named makes the call not harmless. */
export interface Options {
  /** Letters without a value. */
  readonly flags?: string
  /** Letters with a value: the rest of their word, or the next word. */
  readonly values?: string
  /**
   * Letters with a value in the next word. They may only end a cluster: the letters behind them would be options too.
   */
  readonly lastValues?: string
  /** Letters whose value, if they have one, is the rest of their word. */
  readonly optional?: string
  /** In full, with their dashes. */
  readonly long?: ReadonlyArray<string>
  /** The same, also with a value behind `=`. A value in the next word counts as an operand, because it may be one. */
  readonly longValues?: ReadonlyArray<string>
  /** `-5` counts as a number. */
  readonly numbers?: boolean
}

/** The words that are no options, without the values of options; nothing when an option is not named. */
export const takes = (options: Options, rest: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  const operands: Array<string> = []
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i] ?? ""
    if (!word.startsWith("-") || word === "-") operands.push(word)
    else if (word !== "--") {
      const known = word.startsWith("--") ? isLong(options, word) : isCluster(options, word)
      if (known === "no") return undefined
      // The value is judged as an option too, if it looks like one.
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
