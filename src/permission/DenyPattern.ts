/** Patterns as rules that deny read them: over whole texts, with blanks in a row as one. */
import * as Glob from "../core/Glob.js"

export interface DenyPattern {
  /** As written. */
  readonly text: string
  readonly glob: Glob.Glob
  /** `git *` also denies a bare `git`. */
  readonly bare: Glob.Glob | undefined
  /** Every text that it matches contains this. */
  readonly needle: string
}

/** Never fails. */
export const make = (text: string): DenyPattern => {
  const plain = text.replace(/[ \t]+/g, " ").trim()
  const glob = Glob.compile(plain)
  const bare = plain.endsWith(" *") ? Glob.compile(plain.slice(0, -2)) : undefined
  return { text, glob, bare, needle: (bare ?? glob).needle }
}

export const matches = ({ bare, glob }: DenyPattern, text: string): boolean =>
  Glob.matches(glob, text) || (bare !== undefined && Glob.matches(bare, text))

/** The words stand in the text one after the other, with nothing but blanks around each. */
export const holdsRow = (text: string, [first = "", ...others]: ReadonlyArray<string>): boolean => {
  for (let at = text.indexOf(first); at >= 0 && at < text.length; at = text.indexOf(first, at + 1)) {
    let end = at + first.length
    if ((at > 0 && !isBlank(text[at - 1])) || (end < text.length && !isBlank(text[end]))) continue
    const rest = others.every((word) => {
      while (end < text.length && isBlank(text[end])) end++
      const begins = text.startsWith(word, end)
      end += word.length
      return begins && (end === text.length || isBlank(text[end]))
    })
    if (rest) return true
  }
  return false
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isBlank = (char: string | undefined): boolean => char !== undefined && /\s/.test(char)
