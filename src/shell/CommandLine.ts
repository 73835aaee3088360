/**
 * A shell command as permission sees it: parsed into its commands, never globbed as a whole; and what `always` and
 * `never` remember of it.
 *
 * Allowing is strict. Every program that would run needs an entry that allows it, with words that are known before it
 * runs, and no redirection writes. Refusing is plain: a remembered program is also found behind `sudo` or `bash -c`, and
 * by its full path.
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
import * as Location from "./Location.js"
import * as Program from "./Program.js"
import * as ProgramRun from "./ProgramRun.js"
import * as StartedProgram from "./StartedProgram.js"
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
export { of as startedBy, type StartedProgram } from "./StartedProgram.js"
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
  return runs !== undefined && isWhole(allowing(runs, [asPattern(entry, "")]))
}

/** What a remembered entry allows among the programs of a line. */
export const asPattern = (entry: Remembered, name: string): CommandPattern.CommandPattern =>
  CommandPattern.inDirectory(
    entry._tag === "Exact" ? CommandPattern.exactly(name, entry.command) : CommandPattern.reading(name, entry.program),
    entry.cwd
  )

/** How far patterns allow a line. */
export interface Allowing {
  /** The patterns that allow some of its programs. */
  readonly rules: ReadonlyArray<string>
  /** The programs that they allow, as written. */
  readonly allowed: ReadonlyArray<string>
  /** The programs that no pattern allows, as written; none if the patterns allow the whole line. */
  readonly missing: ReadonlyArray<string>
}

/** The patterns allow every program of the line. */
export const isWhole = ({ missing }: Allowing): boolean => missing.length === 0

/** How far the patterns together allow the programs of a line. A `cd` within the workspace needs none. */
export const allowing = (
  runs: ReadonlyArray<ProgramRun.ProgramRun>,
  patterns: ReadonlyArray<CommandPattern.CommandPattern>
): Allowing => {
  for (const { alone } of patterns) {
    const known = alone && adding(runs, [alone])
    if (known !== undefined && isWhole(known)) return known
  }
  return adding(runs, patterns)
}

/** For refusing: the text is what is remembered, or runs it, in any directory. */
export const touches = (
  entry: Remembered,
  text: string,
  started: ReadonlyArray<StartedProgram.StartedProgram> = StartedProgram.of(text, Either.getOrUndefined(parse(text)))
): boolean => {
  if (entry._tag === "Exact") {
    if (trim(text) === entry.command) return true
    const line = Either.getOrUndefined(parse(entry.command))
    const [only] = line?.commands ?? []
    const words = only?.assignments.length === 0 && line?.commands.length === 1 ? only.words.join(" ") : ""
    return words !== "" && started.some((one) => one.words.join(" ") === words)
  }
  const program = entry.program.toLowerCase()
  return started.some(({ named, words: [first = ""] }) => named && Program.basename(first).toLowerCase() === program)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What each pattern allows, added up. */
const adding = (
  runs: ReadonlyArray<ProgramRun.ProgramRun>,
  patterns: ReadonlyArray<CommandPattern.CommandPattern>
): Allowing => {
  if (runs.length === 0) return { rules: ["a change of directory within the workspace"], allowed: [], missing: [] }
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
  const parts = { allowed: new Set<string>(), missing: new Set<string>() }
  for (const run of runs) {
    const text = run.text ?? run.words.join(" ")
    // Long lines repeat the same command, so each is judged once.
    const key = run.inner?.length === 0 && !run.fed && run.cwd !== undefined ? run.text : undefined
    const is = (key === undefined ? undefined : seen.get(key)) ?? isAllowed(run, [])
    if (key !== undefined) seen.set(key, is)
    parts[is ? "allowed" : "missing"].add(text)
  }
  return { rules: [...used], allowed: [...parts.allowed], missing: [...parts.missing] }
}

const programName = /^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/
