/**
 * Searches many texts for deny patterns at once.
 *
 * All texts are joined in one string, so that a native string search finds a pattern or rules it out. The full
 * comparison runs only where the pattern's beginning was found. A hundred patterns over a hundred thousand characters
 * take a few milliseconds, and the time grows only with the text.
 */
import * as Glob from "../core/Glob.js"

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

/** Texts; a pattern has to match a whole text. */
export class Haystack {
  private readonly all: string
  private readonly pairs: Pairs

  constructor(texts: Iterable<string>) {
    this.all = `${mark}${Array.from(texts, unmarked).join(mark)}${mark}`
    this.pairs = new Pairs(this.all)
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
 * Lists of words. A pattern may match from any word of a list to its end, and a program by its path as well as by its
 * name.
 */
export class WordLists {
  private readonly all: string
  private readonly pairs: Pairs

  constructor(lists: ReadonlyArray<ReadonlyArray<string>>) {
    this.all = lists.map((words) => separator + unmarked(words.join(separator)) + mark).join("")
    this.pairs = new Pairs(this.all)
  }

  finds({ spread, spreadBare }: Needle): boolean {
    if (this.all === "") return false
    return this.has(spread) || (spreadBare !== undefined && this.has(spreadBare))
  }

  private has(glob: Glob.Glob): boolean {
    if (!this.pairs.mayHold(glob.needle)) return false
    // A leading star matches any words, so the whole text is searched instead.
    if (glob.pattern.startsWith("*")) return false
    return this.behind(separator, glob) || (glob.head !== "" && this.behind("/", glob))
  }

  private behind(before: string, glob: Glob.Glob): boolean {
    const { all } = this
    const sought = before + glob.head
    let end = -1
    for (let at = all.indexOf(sought); at >= 0; at = all.indexOf(sought, at)) {
      const start = at + 1
      if (end < start) end = all.indexOf(mark, start)
      if (before === "/") {
        const wordEnd = firstOf(all.indexOf(separator, start), end)
        const last = all.lastIndexOf("/", wordEnd - 1)
        if (last !== at) {
          at = last
          continue
        }
      }
      const text = all.slice(start, end)
      if (Glob.matches(glob, text)) return true
      // A pattern with stars that fails behind its first beginning fails behind all later ones: they leave less text
      // for the stars.
      at = glob.stars && Glob.begins(glob, text) ? end : start
    }
    return false
  }
}

/** Words in a row, anywhere in one of the lists, or between the blanks of one of the texts. */
export class WordRows {
  private readonly all: string
  private readonly pairs: Pairs

  constructor(lists: ReadonlyArray<ReadonlyArray<string>>, texts: ReadonlyArray<string>) {
    const rows = lists.map((words) => words.join(separator))
    for (const text of texts) rows.push(text.trim().replace(/\s+/g, separator))
    this.all = rows.map((row) => separator + row + separator).join(mark)
    this.pairs = new Pairs(this.all)
  }

  finds(rule: ReadonlyArray<string>): boolean {
    const sought = separator + rule.join(separator) + separator
    return this.pairs.mayHold(sought) && this.all.includes(sought)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// No text that can be parsed holds this character.
const mark = "\u0000"
const separator = "\u0001"

/**
 * The pairs of neighbouring characters in a text. Most searched words have a pair that the text does not have. A short text
 * is searched sooner than its pairs are written down.
 */
class Pairs {
  private readonly found: Uint8Array | undefined

  constructor(text: string) {
    if (text.length < long) return
    this.found = new Uint8Array(65_536)
    let last = 0
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      this.found[(last * 31 + code) & 0xffff] = 1
      last = code
    }
  }

  /** False: the text certainly does not hold it. */
  mayHold(sought: string): boolean {
    if (this.found === undefined) return true
    for (let i = 1; i < sought.length; i++) {
      if (this.found[(sought.charCodeAt(i - 1) * 31 + sought.charCodeAt(i)) & 0xffff] === 0) return false
    }
    return true
  }
}

/** Characters from which on pairs are worth their memory. */
const long = 2_000

const unmarked = (text: string): string => (text.includes(mark) ? text.replaceAll(mark, "\ufffd") : text)

const firstOf = (at: number, end: number): number => (at < 0 || at > end ? end : at)
