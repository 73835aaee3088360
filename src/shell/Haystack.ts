/**
 * Searches many texts for deny patterns at once.
 *
 * All texts are joined in one string, so that a native string search finds a pattern or rules it out. The full
 * comparison runs only where the pattern's beginning was found. A hundred patterns over a hundred thousand characters
 * take a few milliseconds, and the time grows only with the text.
 */
import * as Glob from "../core/Glob.js"
import type { Reading } from "./Reading.js"

/** A deny pattern, in the forms in which it is searched. */
export interface Needle {
  /** As written. */
  readonly text: string
  readonly glob: Glob.Glob
  /** `git *` also denies a bare `git`. */
  readonly bare: Glob.Glob | undefined
  /** The same two forms, for lists of words. */
  readonly spread: Glob.Glob
  readonly spreadBare: Glob.Glob | undefined
}

/** Never fails; blanks in a row count as one. */
export const needle = (text: string): Needle => {
  const plain = text.replace(/[ \t]+/g, " ").trim()
  const bare = plain.endsWith(" *") ? plain.slice(0, -2) : undefined
  const spread = (text: string) => Glob.compile(text.replaceAll(" ", separator))
  return {
    text,
    glob: Glob.compile(plain),
    bare: bare === undefined ? undefined : Glob.compile(bare),
    spread: spread(plain),
    spreadBare: bare === undefined ? undefined : spread(bare)
  }
}

/**
 * The pairs of neighbouring characters in texts. Most searched words have a pair that no text has. Short texts are
 * searched sooner than their pairs are written down.
 */
export class Pairs {
  private readonly found: Uint8Array | undefined

  constructor(texts: ReadonlyArray<string>) {
    let length = 0
    for (const text of texts) length += text.length
    if (length < long) return
    const found = (this.found = new Uint8Array(65_536))
    for (const text of texts) {
      let last = 0
      for (let i = 0; i < text.length; i++) {
        const code = text.charCodeAt(i)
        found[(last * 31 + code) & 0xffff] = 1
        last = code
      }
    }
  }

  /** False: the texts certainly do not hold it. */
  mayHold(sought: string): boolean {
    if (this.found === undefined) return true
    for (let i = 1; i < sought.length; i++) {
      if (this.found[(sought.charCodeAt(i - 1) * 31 + sought.charCodeAt(i)) & 0xffff] === 0) return false
    }
    return true
  }
}

/** Words, and the same joined by single spaces; `loose`: none of them holds a space. */
export type List = Pick<Reading, "words" | "text" | "loose">

/** Texts; a pattern has to match a whole text. */
export class Haystack {
  private readonly all: string
  /** Also of the texts `beside` these, for those who look into those. */
  readonly pairs: Pairs

  constructor(texts: ReadonlyArray<string>, beside: ReadonlyArray<string> = []) {
    const clean = texts.join("").includes(mark) ? texts.map(unmarked) : texts
    this.all = `${mark}${clean.join(mark)}${mark}`
    this.pairs = new Pairs([this.all, ...beside])
  }

  finds({ glob, bare }: Needle): boolean {
    return this.has(glob) || (bare !== undefined && this.has(bare))
  }

  private has(glob: Glob.Glob): boolean {
    const { all } = this
    const { head, needle } = glob
    if (!this.pairs.mayHold(needle)) return false
    if (!glob.wild) return all.includes(mark + glob.pattern + mark)
    const sought = head === "" ? needle : mark + head
    for (let at = all.indexOf(sought); at >= 0 && at < all.length - 1; at = all.indexOf(sought, at)) {
      const start = all.lastIndexOf(mark, at) + 1
      const end = all.indexOf(mark, start)
      if (end < 0) return false
      if (Glob.matches(glob, all.slice(start, end))) return true
      at = end
    }
    return false
  }
}

/**
 * Words in a row, anywhere in one of the lists, or between the blanks of one of the texts. `pairs`: of both, with one blank
 * between the words of a list.
 */
export class WordRows {
  private joined: string | undefined

  constructor(
    private readonly lists: ReadonlyArray<List>,
    private readonly texts: ReadonlyArray<string>,
    private readonly pairs: Pairs
  ) {}

  finds(rule: ReadonlyArray<string>): boolean {
    if (!rule.every((word) => this.pairs.mayHold(word))) return false
    return (
      this.all.includes(separator + rule.join(separator) + separator) || this.texts.some((text) => hasRow(text, rule))
    )
  }

  /** Joined when the first rule is searched: most are ruled out before. */
  private get all(): string {
    return (this.joined ??= separator + joined(this.lists, separator + mark + separator) + separator)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// No text that can be parsed holds this character.
export const mark = "\u0000"
export const separator = "\u0001"

/** The lists, with separators between their words. Where texts tell their words, all are taken apart at once. */
export const joined = (lists: ReadonlyArray<List>, between: string): string => {
  if (!lists.every(({ loose, text }) => loose && !text.includes(mark))) {
    return lists.map(({ words }) => unmarked(words.join(separator))).join(between)
  }
  const texts = lists.map(({ text }) => text).join(between)
  return texts.replace(/ /g, separator)
}

/** The words stand in the text one after the other, with nothing but blanks around each. */
const hasRow = (text: string, [first = "", ...others]: ReadonlyArray<string>): boolean => {
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

/** Characters from which on pairs are worth their memory. */
const long = 2_000

const isBlank = (char: string | undefined): boolean => char !== undefined && /\s/.test(char)

const unmarked = (text: string): string => (text.includes(mark) ? text.replaceAll(mark, "\ufffd") : text)
