/** Sets of characters that regular expressions and globs name: `\w`, `[a-z]`, `\p{Lu}`, `[[:alpha:]]`. */

/** A character on one side of a position: part of a word, or not. */
export type Side = "word" | "other"

export interface CharacterSet {
  /** Whether it has a character, given as its code point. */
  readonly has: (code: number) => boolean
  /** Of which side all its characters are, where that is known. */
  readonly side?: Side
  /** The character, where it is just one and its case counts. */
  readonly only?: string
}

/** Every character. */
export const all: CharacterSet = { has: () => true }

/** From one character to another. */
export const range = (first: number, last: number, ignoreCase: boolean): CharacterSet => {
  if (ignoreCase && mayHaveCase(first, last)) {
    const { has } = native(`[${written(first)}-${written(last)}]`, true)
    return { has }
  }
  if (first !== last) return { has: (code) => first <= code && code <= last }
  return { has: (code) => code === first, side: isWord(first) ? "word" : "other", only: String.fromCodePoint(first) }
}

/** `\d`, `\s` and `\w`, and their opposites in capitals: of all scripts. */
export const perl = (letter: string): CharacterSet | undefined => {
  switch (letter) {
    case "d":
      return { has: isDigit, side: "word" }
    case "D":
      return { has: (code) => !isDigit(code) }
    case "s":
      return { has: isSpace, side: "other" }
    case "S":
      return { has: (code) => !isSpace(code) }
    case "w":
      return { has: isWord, side: "word" }
    case "W":
      return { has: (code) => !isWord(code), side: "other" }
    default:
      return undefined
  }
}

/** Names of classes in a class, with the first and the last of their ASCII characters in pairs: `[[:digit:]x]`. */
export const posix: ReadonlyMap<string, string> = new Map([
  ["alnum", "azAZ09"],
  ["alpha", "azAZ"],
  ["blank", "  \t\t"],
  ["cntrl", "\0\x1f\x7f\x7f"],
  ["digit", "09"],
  ["graph", "!~"],
  ["lower", "az"],
  ["print", " ~"],
  ["punct", "!/:@[`{~"],
  ["space", "\t\r  "],
  ["upper", "AZ"],
  ["xdigit", "09afAF"]
])

/** Code points, the first and the last one. */
export type Range = readonly [first: number, last: number]

export const rangesOf = (pairs: string): ReadonlyArray<Range> =>
  Array.from({ length: pairs.length / 2 }, (_, at) => [pairs.charCodeAt(2 * at), pairs.charCodeAt(2 * at + 1)])

/** What Unicode calls so: a category, a script or a property, as `Lu`, `greek`, `Script=Greek`; undefined for no such name. */
export const property = (name: string, ignoreCase: boolean): CharacterSet | undefined => {
  if (!/^[\w =-]+$/.test(name)) return undefined
  const titled = name
    .split(/[_ -]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
    .join("_")
  for (const wanted of [name, titled, name.toUpperCase(), `Script=${name}`, `Script=${titled}`]) {
    try {
      return native(`\\p{${wanted}}`, ignoreCase)
    } catch {
      continue
    }
  }
  return undefined
}

export const not = (set: CharacterSet): CharacterSet => ({ has: (code) => !set.has(code) })

export const union = (sets: ReadonlyArray<CharacterSet>): CharacterSet => {
  const [first, ...others] = sets
  if (first !== undefined && others.length === 0) return first
  return { has: (code) => sets.some((set) => set.has(code)) }
}

/** `&&`, `--` and `~~` between two sets. */
export const combined = (one: CharacterSet, sign: string, other: CharacterSet): CharacterSet => {
  if (sign === "&&") return { has: (code) => one.has(code) && other.has(code) }
  if (sign === "--") return { has: (code) => one.has(code) && !other.has(code) }
  return { has: (code) => one.has(code) !== other.has(code) }
}

/** Whether a character belongs to a word, in any script. */
export const isWord = (code: number): boolean =>
  code < 128
    ? (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95
    : word.test(String.fromCodePoint(code))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const word = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u
const digit = /\p{Nd}/u
const space = /\p{White_Space}/u

const isDigit = (code: number): boolean =>
  code < 128 ? code >= 48 && code <= 57 : digit.test(String.fromCodePoint(code))
const isSpace = (code: number): boolean =>
  code < 128 ? code === 32 || (code >= 9 && code <= 13) : space.test(String.fromCodePoint(code))

const native = (source: string, ignoreCase: boolean): CharacterSet => {
  const expression = new RegExp(source, ignoreCase ? "iu" : "u")
  return { has: (code) => expression.test(String.fromCodePoint(code)) }
}

const written = (code: number): string => `\\u{${code.toString(16)}}`

const mayHaveCase = (first: number, last: number): boolean =>
  last > 127 || (first <= 122 && last >= 97) || (first <= 90 && last >= 65)
