/**
 * Every program that a command line would run, as allowing sees them: those it names, and those that they would run in turn.
 */
import * as Either from "effect/Either"
import * as Location from "./Location.js"
import * as Runner from "./Runner.js"
import { parse, type CommandLine, type Redirect, type SimpleCommand } from "./ShellGrammar.js"

export interface ProgramRun {
  /** The program first. */
  readonly words: ReadonlyArray<string>
  /** The same words as they were written; as they are, for a program that another one would run. */
  readonly sources: ReadonlyArray<string>
  /** The source of the whole command; nothing for a program that another one would run. */
  readonly text: string | undefined
  readonly assignments: ReadonlyArray<string>
  /** All of its words are known before it runs, and there is a program among them. */
  readonly known: boolean
  /** More words may follow that nobody knows. */
  readonly open: boolean
  /** Its input is what another command prints, or a file. */
  readonly fed: boolean
  /** What it reads itself, without what it would run. */
  readonly own: ReadonlyArray<string>
  /** What it would run; nothing when that cannot be told. */
  readonly inner: ReadonlyArray<ProgramRun> | undefined
}

/** Nothing when there is more to the line than programs with their words: whoever allows it must allow its very text. */
export const ofLine = (line: CommandLine, cwd: Location.Directory): ReadonlyArray<ProgramRun> | undefined =>
  inLine(line, cwd, 0)

/** Every redirection only reads a file, joins descriptors or goes to `/dev/null`. */
export const writesNothing = (line: CommandLine): boolean => line.redirects.every(isHarmless)

/** Of one simple command, whatever stands around it. */
export const ofCommand = (command: SimpleCommand, cwd: Location.Directory): ProgramRun => inCommand(command, cwd, 0)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Wrappers around wrappers; what is further inside cannot be told. */
const maxDepth = 8

/** Texts within texts, each of which is read from its beginning. */
const maxTexts = 2
const maxText = 20_000

const inLine = (line: CommandLine, cwd: Location.Directory, depth: number): ReadonlyArray<ProgramRun> | undefined => {
  if (!writesNothing(line)) return undefined
  const commands = line.commands.filter((command) => !staysIn(command, cwd))
  const out = commands.map((command) => inCommand(command, cwd, depth))
  // What one command changes for the shell, the next one runs with: its directory, its path, what a name means.
  return line.commands.length > 1 && out.some(changesShell) ? undefined : out
}

const inCommand = (command: SimpleCommand, cwd: Location.Directory, depth: number): ProgramRun => {
  const { assignments, dynamic, fed, named, sources, text, words } = command
  const known = named && !dynamic && words.length > 0
  return made({ words, sources, text, assignments, known, open: false, fed }, cwd, depth)
}

const made = (run: Omit<ProgramRun, "own" | "inner">, cwd: Location.Directory, depth: number): ProgramRun => {
  const { words } = run
  const runs = depth < maxDepth ? Runner.runs(words) : Runner.isWrapper(words[0] ?? "") ? undefined : Runner.runs(words)
  switch (runs?._tag) {
    case "Nothing":
      return { ...run, own: words, inner: none }
    case "Programs": {
      const inner = runs.inner.map(({ words, assignments, open }) =>
        made(
          { words, sources: words, text: undefined, assignments, known: words.length > 0, open, fed: run.fed },
          cwd,
          depth + 1
        )
      )
      return { ...run, own: runs.own, inner }
    }
    case "Text": {
      const line =
        run.open || depth >= maxTexts || runs.text.length > maxText
          ? undefined
          : Either.getOrUndefined(parse(runs.text))
      const inner = line === undefined ? undefined : inLine(line, cwd, depth + 1)
      return { ...run, own: runs.own, inner: run.fed ? inner?.map(feed) : inner }
    }
    default:
      return { ...run, own: words, inner: undefined }
  }
}

const feed = (run: ProgramRun): ProgramRun => ({ ...run, fed: true, inner: run.inner?.map(feed) })

const none: ReadonlyArray<ProgramRun> = []

/** `cd .`, or the same directory by its full path: models like to begin with it. */
const staysIn = ({ assignments, dynamic, words }: SimpleCommand, cwd: Location.Directory): boolean =>
  words.length === 2 &&
  words[0] === "cd" &&
  !dynamic &&
  assignments.length === 0 &&
  /^(?:\.|\/)/.test(words[1] ?? "") &&
  !/[*?[]/.test(words[1] ?? "") &&
  Location.same(Location.from(cwd, words[1] ?? ""), cwd)

const changers: ReadonlySet<string> = new Set(
  [
    "cd pushd popd alias unalias eval source . export declare typeset local readonly unset set shopt setopt enable hash builtin",
    "trap read mapfile readarray getopts let umask ulimit bind complete noglob emulate unfunction autoload zmodload"
  ].flatMap((line) => line.split(" "))
)

const changesShell = ({ inner, words }: ProgramRun): boolean =>
  words.length === 0 ||
  changers.has(words[0] ?? "") ||
  (words[0] === "printf" && words[1]?.startsWith("-v") === true) ||
  inner?.some(changesShell) === true

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
