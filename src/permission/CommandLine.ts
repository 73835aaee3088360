/**
 * A shell command as permission sees it: taken apart, never globbed as a whole, and what `always` and `never` remember
 * of it.
 *
 * Allowing is strict: a remembered program covers a command only when every simple command in it is that program, by
 * its plain name, with words that are known before it runs, and nothing is written by redirection. Refusing is generous:
 * a remembered program is also found behind `sudo` or `bash -c`, by its full path, and in text nobody can take apart.
 *
 * ```ts
 * const git = CommandLine.remembered("git status")             // { _tag: "Program", program: "git" }
 * CommandLine.covers(git, "git push && git log")               // true
 * CommandLine.covers(git, "git status; rm -rf x")              // false
 * CommandLine.remembered("bash deploy.sh")                     // { _tag: "Exact", command: "bash deploy.sh" }
 * ```
 */
import * as Data from "effect/Data"
import * as Either from "effect/Either"
import * as Program from "./Program.js"
import { parse, trim, type CommandLine, type Redirect, type SimpleCommand } from "./ShellGrammar.js"

export { parse, trim, Unparseable, type CommandLine, type Redirect, type SimpleCommand } from "./ShellGrammar.js"

/** What answering `always` or `never` to a command remembers. */
export type Remembered = Data.TaggedEnum<{
  /** Every simple command of a program, given by its plain name. */
  readonly Program: { readonly program: string }
  /** This text and no other. */
  readonly Exact: { readonly command: string }
}>

/** One way of reading a text as words that might be run, the program first. */
export interface Reading {
  readonly program: string
  /** False when the program is not known before it runs. */
  readonly named: boolean
  /** The words, joined by single spaces. */
  readonly text: string
  /** Where its words begin in a list of words; readings that begin later in the same list share that list. */
  readonly words: ReadonlyArray<string>
  readonly start: number
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The program for a simple command that does its own work only; the exact command for everything else: programs that
 * run programs, programs given by a path (which may be another file tomorrow), compounds, assignments, expansions.
 * Redirections to nowhere (`2>&1`, `>/dev/null`), parentheses and `&` around it do not matter.
 */
export const remembered = (text: string): Remembered => {
  const exact = Exact({ command: trim(text) })
  const line = Either.getOrUndefined(parse(text))
  const command = line?.commands[0]
  if (line === undefined || command === undefined || line.commands.length > 1) return exact
  const entry = Program_({ program: command.program })
  return coversCommand(entry, command) && writesNothing(line) ? entry : exact
}

/** The text form: `git *` for a program, the text itself for an exact command, marked by `$ ` where it needs a mark. */
export const formatRemembered = (entry: Remembered): string =>
  entry._tag === "Program" ? `${entry.program} *` : isPlain(entry.command) ? entry.command : `$ ${entry.command}`

/** The inverse of {@link formatRemembered}. Any other text is an exact command. */
export const parseRemembered = (text: string): Remembered => {
  if (text.startsWith("$ ")) return Exact({ command: text.slice(2) })
  const program = programEntry.exec(text)?.[1]
  return program === undefined ? Exact({ command: text }) : Program_({ program })
}

/** True for a text that {@link formatRemembered} may have made, and that is not a pattern or a name. */
export const isRemembered = (text: string): boolean => text.startsWith("$ ") || programEntry.test(text) || isPlain(text)

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** For allowing: the whole text is covered. Unparseable texts are covered by the same exact text only. */
export const covers = (entry: Remembered, text: string): boolean => {
  if (entry._tag === "Exact") return trim(text) === entry.command
  const line = Either.getOrUndefined(parse(text))
  return line !== undefined && writesNothing(line) && line.commands.every((command) => coversCommand(entry, command))
}

/** For allowing: one simple command is covered. The line it stands in must also pass {@link writesNothing}. */
export const coversCommand = (entry: Remembered, command: SimpleCommand): boolean => {
  if (entry._tag === "Exact") return !command.dynamic && command.text === entry.command
  return (
    command.program === entry.program &&
    programName.test(command.program) &&
    !command.dynamic &&
    command.assignments.length === 0 &&
    !runsOthers(command)
  )
}

/** For refusing: something in the text may be what is remembered. A program that is not known may be any. */
export const touches = (entry: Remembered, text: string): boolean => {
  if (entry._tag === "Exact") {
    if (trim(text) === entry.command) return true
    const line = Either.getOrUndefined(parse(text))
    return line?.commands.some((command) => command.text === entry.command) === true
  }
  const program = entry.program.toLowerCase()
  return readings(text).some((reading) => !reading.named || Program.basename(reading.program).toLowerCase() === program)
}

/** Runs other programs, or code it is given: `bash -c`, `sudo`, `find -exec`, `git -c`, interpreters, `npx`, … */
export const runsOthers = (command: SimpleCommand): boolean => Program.runner(command.words) !== undefined

/** Every redirection only reads a file, joins descriptors or goes to `/dev/null`. */
export const writesNothing = (line: CommandLine): boolean => line.redirects.every(isHarmless)

/**
 * Every list of words the text may end up running, for refusing: the simple commands; for programs that run others also
 * what follows their name, and their words read as commands; for text that cannot be taken apart, its pieces without
 * quotes. A redirection reads as its operator and its target. Generous, and still no proof: a program can always build a command that its text does not show.
 */
export const readings = (text: string): ReadonlyArray<Reading> => {
  const out: Array<Reading> = []
  collect(text, out, 0)
  return out
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const { Program: Program_, Exact } = Data.taggedEnum<Remembered>()

const programName = /^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/
const programEntry = /^([A-Za-z0-9_][A-Za-z0-9_.+-]*) \*$/

// Has a blank, so it is no tool's name; has no wildcard, so it is no pattern.
const isPlain = (text: string): boolean =>
  /[ \t\n]/.test(text) && !/[*?[]/.test(text) && !text.startsWith("$ ") && trim(text) === text

const isHarmless = ({ operator, target }: Redirect): boolean => {
  switch (operator.replace(/^\d+/, "")) {
    case ">&":
    case "<&":
      return /^(?:\d+-?|-)$/.test(target) || target === "/dev/null"
    case "<":
      // Bash opens connections for these names.
      return !/^\/dev\/(?:tcp|udp)\//.test(target)
    case "<>":
      return false
    default:
      return target === "/dev/null"
  }
}

const maxNesting = 3

const collect = (text: string, out: Array<Reading>, depth: number): void => {
  const line = parse(text)
  if (Either.isRight(line)) {
    for (const { words, named } of line.right.commands) if (words.length > 0) unfold(words, named, out, depth)
    for (const { operator, target } of line.right.redirects) out.push(redirection(operator, target))
    return
  }
  // Quotes may hide a name, so they go first; then any character that can end a command ends a piece.
  const bare = text.replace(/\\\n/g, " ").replace(/["'\\]/g, "")
  for (const piece of bare.split(/[;&|<>(){}`$\r\n]+/)) {
    const words = piece.split(/\s+/).filter((word) => word !== "")
    const start = words.findIndex((word) => !leading.test(word))
    if (start >= 0) unfold(words.slice(start), true, out, depth)
  }
  for (const [, operator = "", target = ""] of bare.matchAll(/([<>][<>&|]*)[ \t]*([^\s;&|<>(){}`]+)/g)) {
    out.push(redirection(operator, target))
  }
}

const redirection = (operator: string, target: string): Reading => {
  const words = [operator, target]
  return { program: operator, named: true, text: words.join(" "), words, start: 0 }
}

// Words of the shell after which a command begins, and assignments in front of one.
const leading = /^(?:if|then|elif|else|while|until|do|time|coproc|!|\d+|[A-Za-z_]\w*\+?=.*)$/

const unfold = (words: ReadonlyArray<string>, named: boolean, out: Array<Reading>, depth: number): void => {
  const joined = words.join(" ")
  out.push({ program: words[0] ?? "", named, text: joined, words, start: 0 })
  if (named && Program.runner(words) === undefined) return
  let offset = 0
  for (let start = 1; start < words.length; start++) {
    offset += (words[start - 1] ?? "").length + 1
    const word = words[start] ?? ""
    out.push({ program: word, named: true, text: joined.slice(offset), words, start })
    if (depth < maxNesting) {
      for (const code of codeIn(word)) collect(code, out, depth + 1)
    }
  }
}

/** The texts in a word that a program may run: the word, and what follows an option's name in it. */
const codeIn = (word: string): ReadonlyArray<string> => {
  const rest = /^(?:--?[A-Za-z][\w-]*=|-[A-Za-z])(.+)$/s.exec(word)?.[1]
  return [word, ...(rest === undefined ? [] : [rest])].filter((text) => /[\s;&|()`$<>'"]/.test(text) || text === rest)
}
