/**
 * A shell command as permission sees it: parsed into its commands, never globbed as a whole; and what `always` and
 * `never` remember of it.
 *
 * Allowing is strict. A remembered program covers a command only when every program that would run is that program, by
 * its plain name; when all words are known before it runs and are listed in the harmless table; when it runs in the
 * directory in which it was allowed; and when no redirection writes. Refusing is generous: a remembered program is also
 * found behind `sudo` or `bash -c`, by its full path, and in text that cannot be parsed.
 *
 * ```
 * const git = CommandLine.remembered("git status")             // { _tag: "Program", program: "git", cwd: "" }
 * CommandLine.covers(git, "git log && git diff")               // true
 * CommandLine.covers(git, "git push")                          // false
 * CommandLine.covers(git, "git status; rm -rf x")              // false
 * CommandLine.remembered("npm test", "web")                    // { _tag: "Exact", command: "npm test", cwd: "web" }
 * ```
 */
import * as Either from "effect/Either"
import * as CommandPattern from "./CommandPattern.js"
import * as Doubt from "./Doubt.js"
import * as Location from "./Location.js"
import * as Program from "./Program.js"
import * as ProgramRun from "./ProgramRun.js"
import * as Reading from "./Reading.js"
import { coversText, Exact, Program as Program_, type Remembered } from "./Remembered.js"
import { parse, trim } from "./ShellGrammar.js"

export {
  maxLength,
  parse,
  trim,
  Unparseable,
  type CommandLine,
  type Redirect,
  type SimpleCommand
} from "./ShellGrammar.js"
export { writesNothing } from "./ProgramRun.js"
export { of as readings, type Reading } from "./Reading.js"
export {
  coversText,
  format as formatRemembered,
  is as isRemembered,
  parse as parseRemembered,
  type Remembered
} from "./Remembered.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The program for a simple command that the harmless table lists; the exact command for everything else. `cwd` is the
 * directory it runs in, by its shortest text; the workspace's is empty. Redirections to nowhere (`2>&1`, `>/dev/null`),
 * parentheses and `&` around it do not matter.
 */
export const remembered = (
  text: string,
  cwd = "",
  line = Either.getOrUndefined(parse(text)),
  confined = false
): Remembered => {
  const exact = Exact({ command: trim(text), cwd })
  const command = line?.commands[0]
  if (line === undefined || command === undefined || line.commands.length > 1) return exact
  const run = ProgramRun.ofLine(line, Location.directory(cwd), confined)?.[0]
  // A program that runs others is remembered with what it runs.
  if (run === undefined || run.inner?.length !== 0 || !programName.test(command.program)) return exact
  const isHarmless = CommandPattern.harmless("").covers(run) !== undefined
  return isHarmless ? Program_({ program: command.program, cwd }) : exact
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** For allowing: the whole text, run in `cwd`, is covered. A text that cannot be parsed is covered only by itself. */
export const covers = (entry: Remembered, text: string, cwd = ""): boolean => {
  if (coversText(entry, text, cwd)) return true
  const line = Either.getOrUndefined(parse(text))
  const runs = line === undefined ? undefined : ProgramRun.ofLine(line, Location.directory(cwd))
  return runs !== undefined && allowing(runs, [asPattern(entry, "", cwd)]) !== undefined
}

/** What a remembered entry allows among the programs of a line that runs in `cwd`. */
export const asPattern = (entry: Remembered, name: string, cwd: string): CommandPattern.CommandPattern => {
  if (entry.cwd !== cwd) return CommandPattern.none(name)
  return entry._tag === "Exact"
    ? CommandPattern.exactly(name, entry.command)
    : CommandPattern.reading(name, entry.program)
}

/** The patterns that together allow every program of a line; nothing when some program is not allowed. */
export const allowing = (
  runs: ReadonlyArray<ProgramRun.ProgramRun>,
  patterns: ReadonlyArray<CommandPattern.CommandPattern>
): ReadonlyArray<string> | undefined => {
  if (runs.length === 0) return undefined
  const byProgram = new Map<string, Array<CommandPattern.CommandPattern>>()
  const any: Array<CommandPattern.CommandPattern> = []
  for (const pattern of patterns) {
    if (pattern.program === undefined) any.push(pattern)
    else {
      const known = byProgram.get(pattern.program)
      if (known === undefined) byProgram.set(pattern.program, [pattern])
      else known.push(pattern)
    }
  }
  const used = new Set<string>()
  const seen = new Map<string, boolean>()
  const isAllowed = (run: ProgramRun.ProgramRun, tails: ReadonlyArray<CommandPattern.CommandPattern>): boolean => {
    const byTail = tails.find((tail) => fits(tail, run))
    if (byTail !== undefined) return true
    const found =
      byProgram.get(run.words[0] ?? "")?.find((pattern) => fits(pattern, run)) ??
      any.find((pattern) => fits(pattern, run))
    if (found !== undefined) used.add(found.text)
    return found !== undefined
  }
  const fits = (pattern: CommandPattern.CommandPattern, run: ProgramRun.ProgramRun): boolean => {
    const how = pattern.covers(run)
    if (how !== "itself") return how === "whole"
    return run.inner !== undefined && run.inner.every((inner) => isAllowed(inner, pattern.tails))
  }
  for (const run of runs) {
    // Long lines repeat the same command, so each is judged once.
    const key = run.inner?.length === 0 && !run.fed ? run.text : undefined
    if (key !== undefined && seen.has(key)) continue
    if (!isAllowed(run, [])) return undefined
    if (key !== undefined) seen.set(key, true)
  }
  return [...used]
}

/** For refusing: some reading of the text may be what is remembered, in any directory. */
export const touches = (entry: Remembered, text: string): boolean => touchesAny(entry, text, Reading.of(text))

/** As {@link touches}, with the readings of the text computed before. */
export const touchesAny = (entry: Remembered, text: string, all: ReadonlyArray<Reading.Reading>): boolean => {
  if (entry._tag === "Exact") {
    if (trim(text) === entry.command) return true
    const command = CommandPattern.normal(entry.command)
    const line = Either.getOrUndefined(parse(entry.command))
    const [only] = line?.commands ?? []
    const words = only?.assignments.length === 0 && line?.commands.length === 1 ? only.words.join(" ") : command
    return words !== "" && all.some((reading) => reading.text === words)
  }
  const program = entry.program.toLowerCase()
  const isIt = (word: string) => word.length >= program.length && Program.basename(word).toLowerCase() === program
  return all.some(({ deep, named, words }) => words.some((word, at) => (at === 0 ? named : deep) && isIt(word)))
}

/** Why it cannot be told what the text runs; nothing when it can be told. */
export const doubt = (text: string, line = parse(text)): string | undefined =>
  Either.isLeft(line) ? line.left.message : Doubt.of(line.right)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const programName = /^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/
