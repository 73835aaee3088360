/**
 * What allows programs: patterns that people wrote, names, and what was remembered, each compared word by word.
 *
 * A pattern means what it says: `git push*` is `git push` with anything behind it, `npm test` is `npm test`. A wildcard
 * never extends the word of a program or a subcommand: `git*` is `git *`, which is `git` alone and `git` with any words
 * behind it; `git diff*` is `git diff *`. Words by which git, find and a few others run other programs (`git -c`,
 * `-exec`) have to be spelled out. One word without a wildcard (`git`) is a name: it allows what the harmless table lists for the
 * program, and for a program outside the table a call without arguments.
 */
import { isAssignment, isStars, words } from "./CommandText.js"
import * as Glob from "../core/Glob.js"
import * as Harmless from "./Harmless.js"
import * as Program from "./Program.js"
import type { ProgramRun } from "./ProgramRun.js"
import * as Reading from "./Reading.js"
import * as Runner from "./Runner.js"

export { isStars, namesNothing, normal, onlyProgram, remark, words } from "./CommandText.js"

export interface CommandPattern {
  /** As written. */
  readonly text: string
  /** The only program it can allow; nothing when it may allow any. */
  readonly program: string | undefined
  /** `whole`: with all programs it would run. `itself`: the programs it would run need rules of their own. */
  readonly covers: (run: ProgramRun) => "whole" | "itself" | undefined
  /** The patterns for programs run in turn: `sudo apt *` speaks of `apt` as well. */
  readonly tails: ReadonlyArray<CommandPattern>
  /** It allows what the harmless table lists. Nobody spelled the words of the command. */
  readonly byTable?: true
}

/** A pattern as a person wrote it. */
export const pattern = (text: string): CommandPattern => fromWords(text, words(text))

/** Words that a command has to begin with, taken literally. */
export const beginning = (rule: ReadonlyArray<string>): CommandPattern => {
  const text = rule.join(" ")
  const [program = ""] = rule
  if (rule.length === 1) return named(text, program)
  return {
    text,
    program,
    tails: tailsOf(rule, (tail) => spelled(text, tail, everything, tail)),
    covers: spelled(text, rule, everything, rule).covers
  }
}

/** By name: what the harmless table lists for it, else its call without arguments. */
export const named = (text: string, program: string): CommandPattern => ({
  text,
  program,
  tails: [],
  byTable: true,
  covers: (run) => {
    if (run.words[0] !== program || !isPlain(run)) return undefined
    if (run.words.length === 1 && run.open === undefined && !Harmless.isListed(program))
      return takesOrders(run) ? undefined : "whole"
    return plainName.test(program) && onlyReads(run) ? "itself" : undefined
  }
})

/** What the harmless table lists for a program, and nothing of a program that is not in it. */
export const reading = (text: string, program: string): CommandPattern => ({
  text,
  program,
  tails: [],
  byTable: true,
  covers: (run) => (run.words[0] === program && onlyReads(run) ? "itself" : undefined)
})

/** What another pattern allows, in this directory alone. */
export const inDirectory = (pattern: CommandPattern, cwd: string): CommandPattern => ({
  ...pattern,
  covers: (run) => (run.cwd === cwd ? pattern.covers(run) : undefined)
})

/** Allows every command that the harmless table lists. */
export const harmless = (text: string): CommandPattern => ({
  text,
  program: undefined,
  tails: [],
  byTable: true,
  covers: (run) => (onlyReads(run) ? "itself" : undefined)
})

/** Allows what looks like reading, for a line that runs where nothing can be written. */
export const reads = (text: string): CommandPattern => ({
  text,
  program: undefined,
  tails: [],
  covers: (run) => (Reading.isReading(run) ? "itself" : undefined)
})

/** Allows exactly this simple command. Where no word of it is quoted, blanks and quotes do not matter. */
export const exactly = (text: string, command: string): CommandPattern => {
  const all = plainText.test(command) ? words(command) : undefined
  return {
    text,
    program: undefined,
    tails: [],
    covers: (run) => {
      if (!run.known || run.fed || run.text === undefined) return undefined
      const is = run.text === command || (all !== undefined && run.assignments.length === 0 && equal(all, run.words))
      return is ? "whole" : undefined
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A command that can be parsed holds no control character, so joining words by one is unambiguous. */
const separator = "\u0001"

const plainName = /^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/
/** A word that may be a subcommand, perhaps with stars behind it. */
const bareWord = /^([A-Za-z0-9_][A-Za-z0-9_.+-]*)(\**)$/

/** Words and blanks that mean the same to every shell. */
const plainText = /^[A-Za-z0-9_./:,@%+ -]+$/

/** Letters mixed with wildcards, in the place of a subcommand. */
const partlyNamed = /^(?=.*[A-Za-z0-9_])[A-Za-z0-9_*?[][A-Za-z0-9_*?[\]!-]*$/

const everything = Glob.compile("*")
const nothing: CommandPattern["covers"] = () => undefined

const isPlain = (run: ProgramRun): boolean => run.known && run.assignments.length === 0

/** What a program does may rest on its variables, so it has to get them as they are. */
const onlyReads = (run: ProgramRun): boolean => {
  if (!isPlain(run) || run.changed) return false
  const { confined, globs, inner, open, own, words } = run
  // Where nothing confines, a link of the repository may lead anywhere.
  if (!confined && !Harmless.followsNoLink(words, globs)) return false
  return Harmless.isHarmless(own, { alone: inner?.length === 0, confined, open })
}

const fromWords = (text: string, all: ReadonlyArray<string>): CommandPattern => {
  const quoted = /["'\\]/.test(text)
  if (!Glob.isWild(text)) {
    const [only] = all
    if (all.length === 1 && only !== undefined && Harmless.isListed(only)) return named(text, only)
    return { text, program: all.find((word) => !isAssignment(word)), tails: [], covers: literally(all, quoted) }
  }
  const start = all.findIndex((word) => !isAssignment(word))
  const assignments = start < 0 ? all : all.slice(0, start)
  const parts = start < 0 ? undefined : headOf(all.slice(start))
  if (parts === undefined) return { text, program: undefined, tails: [], covers: nothing }
  const { head, rest } = parts
  const [program = ""] = head
  const glob = rest.every(isStars) ? everything : Glob.compile(rest.join(separator))
  const own = spelled(text, head, glob, all, rest, quoted)
  return {
    text,
    program,
    tails: own.tails,
    covers: assignments.length === 0 ? own.covers : withAssignments(assignments.map(Glob.compile), own.covers)
  }
}

/** The literal words at the head, and the words behind them; nothing when the program is not literal. */
const headOf = (
  all: ReadonlyArray<string>
): { readonly head: ReadonlyArray<string>; readonly rest: ReadonlyArray<string> } | undefined => {
  const head: Array<string> = []
  let bare = true
  for (const [at, word] of all.entries()) {
    if (!Glob.isWild(word)) {
      head.push(word)
      bare &&= bareWord.test(word)
      continue
    }
    // A bare word is a subcommand only for programs that have some; behind `cat` stands a file.
    const isName = at === 0 || (bare && Harmless.hasSubcommands(head[0] ?? ""))
    const stem = bareWord.exec(word)?.[1]
    if (isName && stem !== undefined) return { head: [...head, stem], rest: ["*", ...all.slice(at + 1)] }
    // A name with a wildcard inside it is not supported.
    if (at === 0 || (isName && partlyNamed.test(word))) return undefined
    return { head, rest: all.slice(at) }
  }
  return { head, rest: [] }
}

/** Compares word by word; where the pattern has quotes, with the quoted source. */
const literally =
  (all: ReadonlyArray<string>, quoted: boolean): CommandPattern["covers"] =>
  (run) =>
    run.known &&
    !takesOrders(run) &&
    (equal(all, [...run.assignments, ...run.words]) || (quoted && run.text !== undefined && run.text === all.join(" ")))
      ? "whole"
      : undefined

/** Its input may tell it what to do: `echo … | bash`. */
const takesOrders = ({ fed, inner, words }: ProgramRun): boolean =>
  fed && (inner === undefined || (Program.alwaysRuns(words[0] ?? "") && !Runner.isWrapper(words[0] ?? "")))

const equal = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a.length === b.length && a.every((word, i) => word === b[i])

const spelled = (
  text: string,
  head: ReadonlyArray<string>,
  rest: Glob.Glob,
  all: ReadonlyArray<string>,
  restWords: ReadonlyArray<string> = ["*"],
  quoted = false
): CommandPattern => {
  // A pattern that bounds a path does not match a path that climbs out with `..`.
  const bounds = restWords.some((word) => word.includes("/"))
  const climbs = restWords.some((word) => hasClimb(word))
  const parts = [...head, ...restWords]
  const [program = ""] = head
  const fits = (words: ReadonlyArray<string>) => {
    if (words.length < head.length || !head.every((word, i) => word === words[i])) return false
    if (rest === everything) return true
    const behind = words.slice(head.length).join(separator)
    return Glob.matches(rest, behind) || (restWords.at(-1) === "*" && Glob.matches(rest, behind + separator))
  }
  return {
    text,
    program: head[0],
    tails: tailsOf(all, (tail) => tailPattern(text, tail)),
    covers: (run) => {
      if (!isPlain(run) || takesOrders(run) || !(fits(run.words) || (quoted && fits(run.sources)))) return undefined
      if (run.open !== undefined && Program.canEscape(program)) return undefined
      if (!Program.escapes(run.own).every((word) => parts.some((part) => spells(part, word)))) return undefined
      if (bounds && !climbs && run.words.some((word, i) => i >= head.length && hasClimb(word))) return undefined
      return "itself"
    }
  }
}

const hasClimb = (word: string): boolean => word.includes("..") && /(?:^|[/=:,])\.\.(?:\/|$)/.test(word)

/** A part of a pattern spells a word when it holds more than wildcards and dashes. */
const spells = (part: string, word: string): boolean => /^[^*?[]*[A-Za-z0-9_]/.test(part) && Glob.test(part, word)

const withAssignments =
  (globs: ReadonlyArray<Glob.Glob>, covers: CommandPattern["covers"]): CommandPattern["covers"] =>
  (run) =>
    run.assignments.length === globs.length && globs.every((glob, i) => Glob.matches(glob, run.assignments[i] ?? ""))
      ? covers({ ...run, assignments: [] })
      : undefined

/**
 * A wrapper's pattern also speaks of the wrapped program. There the program was spelled out, so a single word is more
 * than a name.
 */
const tailsOf = (
  all: ReadonlyArray<string>,
  make: (tail: ReadonlyArray<string>) => CommandPattern
): ReadonlyArray<CommandPattern> => {
  const start = all.findIndex((word) => !isAssignment(word))
  if (start < 0 || !Runner.isWrapper(all[start] ?? "")) return []
  const out: Array<CommandPattern> = []
  let given: ReadonlyArray<string> = []
  for (let at = start + 1; at < all.length && out.length < maxTails; at++) {
    const word = all[at] ?? ""
    if (isAssignment(word)) {
      given = [...given, word]
      continue
    }
    if (/^[^*?[-].*[A-Za-z]|^[A-Za-z]/.test(word)) {
      const tail = make(all.slice(at))
      const globs = given.map(Glob.compile)
      out.push(globs.length === 0 ? tail : { ...tail, covers: withAssignments(globs, tail.covers) })
    }
    given = []
  }
  return out
}

const maxTails = 16

const tailPattern = (text: string, tail: ReadonlyArray<string>): CommandPattern => {
  // The end mark of a program that `find` runs is no word of that program.
  const end = tail.findIndex((word) => /^(?:\\?;|';'|\+)$/.test(word))
  const all = end < 0 ? tail : tail.slice(0, end)
  if (!Glob.isWild(all.join(" "))) return { text, program: all[0], tails: [], covers: literally(all, false) }
  const parts = headOf(all)
  if (parts === undefined) return { text, program: undefined, tails: [], covers: nothing }
  const { head, rest } = parts
  return spelled(text, head, rest.every(isStars) ? everything : Glob.compile(rest.join(separator)), all, rest)
}
