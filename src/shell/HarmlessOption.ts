/**
 * Options with which a call of a program stays harmless: the listed ones, spelled as they are listed, and no others.
 *
 * Every word is read as the program's own parser reads it. So the table knows which option takes a value, and where.
 */

export interface Options {
  /**
   * Options without a value: `-abc` lists three letters, `--all` one long option. A last character says more: `=` takes
   * any value, `#` takes a number, `?` takes a value only in the same word. `-#` is a number itself, as in `head -20`.
   */
  readonly options: string
  /** The number of operands that are only read. A further operand may be written, and so may an option behind one. */
  readonly most?: number
  /** A word such as `-ps` is one option. The program knows no clusters of letters. */
  readonly single?: boolean
  /** Behind `--` a word may begin with a dash: these programs search for such texts. */
  readonly dashed?: boolean
}

/** Reads the words behind a program's name: the operands, or nothing when a word is not listed. */
export type Reader = (rest: ReadonlyArray<string>) => ReadonlyArray<string> | undefined

/** Lists are read at the first call, because a session uses few of them. */
export const reader = (options: Options): Reader => {
  let known: ReadonlyMap<string, Kind> | undefined
  return (rest) => read(options, (known ??= listed(options)), rest)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Kind = "flag" | "value" | "number" | "inWord"

const listed = ({ options, single = false }: Options): ReadonlyMap<string, Kind> => {
  const known = new Map<string, Kind>()
  for (const word of options.split(" ")) {
    const kind = word === numeric ? undefined : kinds.get(word.slice(-1))
    const name = kind === undefined ? word : word.slice(0, -1)
    if (single || name === numeric || name.startsWith("--")) known.set(name, kind ?? "flag")
    else for (const letter of name.slice(1)) known.set(letter, kind ?? "flag")
  }
  return known
}

const numeric = "-#"
const kinds: ReadonlyMap<string, Kind> = new Map([
  ["=", "value"],
  ["#", "number"],
  ["?", "inWord"]
])

/** Also a list or a size: `1,3-5`, `+10`, `2n`, `64k`. It names no file outside of the working directory. */
const aNumber = /^[-+]?\d[\w.,:%+-]*$/

const read = (
  { dashed = false, most, single = false }: Options,
  known: ReadonlyMap<string, Kind>,
  rest: ReadonlyArray<string>
): ReadonlyArray<string> | undefined => {
  const operands: Array<string> = []
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? ""
    if (!isDashed(word)) {
      operands.push(word)
      continue
    }
    if (most !== undefined && operands.length > 0) return undefined
    if (word === "--") {
      const behind = rest.slice(at + 1)
      if (!dashed && behind.some(isDashed)) return undefined
      operands.push(...behind)
      break
    }
    const takes = word.startsWith("--") ? long(known, word) : single ? exact(known, word) : letters(known, word)
    if (takes === "unlisted") return undefined
    if (takes === "nothing") continue
    const next = rest[at + 1]
    // Without a value the program only complains.
    if (next === undefined) break
    if (takes === "number" ? !aNumber.test(next) : isDashed(next)) return undefined
    at++
  }
  return most !== undefined && (operands.length > most || operands.some(mayBeSeveral)) ? undefined : operands
}

/** Any parser may take the word for an option. */
const isDashed = (word: string): boolean => word.startsWith("-") && word !== "-"

/** The shell may replace the word by several. */
const mayBeSeveral = (word: string): boolean => /[*?[]/.test(word)

/** What an option takes from the next word. */
type Takes = "nothing" | "value" | "number" | "unlisted"

const fromNext = (kind: Kind | undefined): Takes =>
  kind === undefined ? "unlisted" : kind === "value" || kind === "number" ? kind : "nothing"

const inWord = (kind: Kind | undefined, value: string): Takes =>
  kind === "value" || kind === "inWord" || (kind === "number" && aNumber.test(value)) ? "nothing" : "unlisted"

const long = (known: ReadonlyMap<string, Kind>, word: string): Takes => {
  const equals = word.indexOf("=")
  return equals < 0 ? fromNext(known.get(word)) : inWord(known.get(word.slice(0, equals)), word.slice(equals + 1))
}

const exact = (known: ReadonlyMap<string, Kind>, word: string): Takes => {
  const kind = known.get(word)
  return kind === undefined && known.get(word.slice(0, 2)) === "number"
    ? inWord("number", word.slice(2))
    : fromNext(kind)
}

const digits = /^-\d+$/

/** A cluster holds letters without a value; only a number may end it. */
const letters = (known: ReadonlyMap<string, Kind>, word: string): Takes => {
  if (known.has(numeric) && digits.test(word)) return "nothing"
  for (let at = 1; at < word.length; at++) {
    const kind = known.get(word.charAt(at))
    if (kind === "flag") continue
    if (at > 1 && kind !== "number") return "unlisted"
    return at + 1 === word.length ? fromNext(kind) : inWord(kind, word.slice(at + 1))
  }
  return "nothing"
}
