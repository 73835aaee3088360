/** The words of commands, where patterns are searched that begin at any of them. */
import * as Glob from "../core/Glob.js"
import { joined, mark, separator, type List, type Needle, type Pairs } from "./Haystack.js"

/**
 * Lists of words. A pattern may match from any word of a list to its end, and a program by its path as well as by its
 * name. `pairs`: of the words with one blank between them.
 */
export class WordLists {
  private joined: string | undefined

  constructor(
    private readonly lists: ReadonlyArray<List>,
    private readonly pairs: Pairs
  ) {}

  finds({ bare, glob, spread, spreadBare }: Needle): boolean {
    if (this.lists.length === 0) return false
    if (this.pairs.mayHold(glob.needle) && this.has(spread)) return true
    return bare !== undefined && spreadBare !== undefined && this.pairs.mayHold(bare.needle) && this.has(spreadBare)
  }

  /** Joined when the first pattern is searched: most are ruled out before. */
  private get all(): string {
    return (this.joined ??= separator + joined(this.lists, mark + separator) + mark)
  }

  private has(glob: Glob.Glob): boolean {
    // A leading star matches any words, so the whole text is searched instead.
    if (glob.pattern.startsWith("*")) return false
    return this.behind(separator, glob) || (glob.head !== "" && this.behind("/", glob))
  }

  private behind(before: string, glob: Glob.Glob): boolean {
    const { all } = this
    const sought = before + glob.head
    let end = -1
    let needleAt = -1
    for (let at = all.indexOf(sought); at >= 0; at = all.indexOf(sought, at)) {
      const start = at + 1
      if (end < start) end = all.indexOf(mark, start)
      // What a list must hold to match: lists without it are passed over.
      if (needleAt < start) needleAt = all.indexOf(glob.needle, start)
      if (needleAt < 0) return false
      if (needleAt >= end && glob.needle !== "") {
        at = end
        continue
      }
      // A match begins close before it.
      if (needleAt - start > glob.reach) {
        at = needleAt - glob.reach - 1
        continue
      }
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

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const firstOf = (at: number, end: number): number => (at < 0 || at > end ? end : at)
