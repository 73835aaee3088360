/**
 * Every program that a command line would run, for rules that allow: the programs it names, and those that they would
 * run in turn.
 */
import * as Either from "effect/Either"
import type { Open } from "./Harmless.js"
import * as Location from "./Location.js"
import * as Runner from "./Runner.js"
import { parse, type CommandLine, type Redirect, type SimpleCommand } from "./ShellGrammar.js"
import * as Variable from "./Variable.js"

export interface ProgramRun {
  /** The program first. */
  readonly words: ReadonlyArray<string>
  /** The same words as they were written; equal to `words` for a program that another one would run. */
  readonly sources: ReadonlyArray<string>
  /** The source of the whole command; nothing for a program that another one would run. */
  readonly text: string | undefined
  readonly assignments: ReadonlyArray<string>
  /** All words are known before it runs, and one of them is a program. Nothing around it changes what they mean. */
  readonly known: boolean
  /** At least its program is known. */
  readonly named: boolean
  /** The positions of words that are not known. */
  readonly unknown: ReadonlyArray<number>
  /** A glob stands among its words: it may lead through links. */
  readonly globs: boolean
  /** Which unknown words follow. */
  readonly open: Open | undefined
  /** Something around it may change the variables with which it runs. */
  readonly changed: boolean
  /** It runs in a sandbox, which decides what it can reach. */
  readonly confined: boolean
  /** Where it runs, as {@link Location.Directory} has it. Nothing behind a `cd`: then it runs anywhere inside the workspace. */
  readonly cwd: string | undefined
  /** Its input is the output of another command, or a file. */
  readonly fed: boolean
  /** The words it reads itself, without those of the program it would run. */
  readonly own: ReadonlyArray<string>
  /** The programs it would run; nothing when they cannot be told. */
  readonly inner: ReadonlyArray<ProgramRun> | undefined
}

/** Nothing when the line is more than programs with their words: then only its very text can be allowed. */
export const ofLine = (
  line: CommandLine,
  cwd: Location.Directory,
  confined = false
): ReadonlyArray<ProgramRun> | undefined => inLine(line, { directory: cwd, cwd: cwd.path, confined, changed: false }, 0)

/** Every redirection only reads a file, joins descriptors or goes to `/dev/null`. */
export const writesNothing = (line: CommandLine): boolean => line.redirects.every(isHarmless)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The limit for wrappers around wrappers; deeper programs cannot be told. */
const maxDepth = 8

/** The limit for texts within texts, because each is read from its beginning. */
const maxTexts = 2
const maxText = 20_000

/** Where a line runs. */
interface Around extends Pick<ProgramRun, "changed" | "confined"> {
  readonly directory: Location.Directory
  readonly cwd: string | undefined
}

const inLine = (line: CommandLine, around: Around, depth: number): ReadonlyArray<ProgramRun> | undefined => {
  if (!writesNothing(line) || namesDescriptor(line) || !line.sets.every(Variable.isPlain)) return undefined
  const isSettled = line.redirects.every(({ target }) => !expanding.test(target))
  const places = line.commands.map((command) => enters(command, around.directory))
  const anywhere = { ...around, cwd: undefined }
  const moves = (place: string | undefined) => place !== undefined && place !== around.directory.path
  const out: Array<ProgramRun> = []
  // In a loop a change of directory also counts for what stands before it.
  let here = line.loops && places.some(moves) ? anywhere : around
  for (const [at, command] of line.commands.entries()) {
    const place = places[at]
    if (place === undefined) out.push(inCommand(command, here, isSettled, depth))
    else if (moves(place)) here = anywhere
  }
  // A change of the shell (its directory, its variables, the meaning of a name) holds for the commands behind it.
  if (line.sets.length === 0 && (line.commands.length === 1 || !out.some(changesShell))) return out
  return around.confined ? out.map(loosened) : undefined
}

const inCommand = (command: SimpleCommand, around: Around, isSettled: boolean, depth: number): ProgramRun => {
  const { assignments, dynamic, fed, globs, named, sources, text, unknown, words } = command
  const { changed, confined, cwd } = around
  // Names of files may be taken for options. A sandbox bounds what those can do.
  const isGlobs = confined && isSettled && unknown.length > 0 && unknown.every((at) => names.test(sources[at] ?? ""))
  const open = isGlobs && assignments.length === 0 ? "words" : undefined
  const known = named && (!dynamic || open !== undefined) && words.length > 0
  return made(
    {
      words,
      sources,
      text,
      assignments,
      known,
      named,
      unknown,
      globs: globs.length > 0,
      open,
      changed,
      confined,
      cwd,
      fed
    },
    around,
    depth
  )
}

const made = (run: Omit<ProgramRun, "own" | "inner">, around: Around, depth: number): ProgramRun => {
  const { confined, cwd, unknown, words } = run
  const runs = depth < maxDepth ? Runner.runs(words) : Runner.isWrapper(words[0] ?? "") ? undefined : Runner.runs(words)
  switch (runs?._tag) {
    case "Nothing":
      return { ...run, own: words, inner: none }
    case "Programs": {
      // The unknown words that follow begin with a program's name.
      if (run.open !== undefined && runs.inner.length === 0) return { ...run, own: words, inner: undefined }
      const changed = run.changed || Runner.changesVariables(runs.own)
      const inner = runs.inner.map(({ words, assignments, at, open }) => {
        const own = unknown.filter((from) => from >= at && from < at + words.length).map((from) => from - at)
        const inner = made(
          {
            words,
            sources: words,
            text: undefined,
            assignments,
            known: words.length > 0,
            named: !own.includes(0),
            unknown: own,
            globs: run.globs,
            open: wider(open, run.open),
            changed,
            confined,
            cwd,
            fed: run.fed
          },
          around,
          depth + 1
        )
        return run.known ? inner : loosened(inner)
      })
      const isShifted = unknown.length > inner.reduce((sum, { unknown }) => sum + unknown.length, 0)
      // An unknown word in front of a program may be one itself. Those of `find` are places and tests.
      const isTold = run.known || !isShifted || finders.has(words[0] ?? "")
      return { ...run, own: runs.own, inner: isTold ? inner : undefined }
    }
    case "Text": {
      // Words behind the text are its parameters.
      const isGiven = confined && !runs.text.includes("{}")
      const isTold = (run.open === undefined || isGiven) && !unknown.some((at) => at < runs.end)
      const line =
        !isTold || depth >= maxTexts || runs.text.length > maxText ? undefined : Either.getOrUndefined(parse(runs.text))
      const changed = run.changed || Runner.changesVariables(runs.own)
      const inner = line === undefined ? undefined : inLine(line, { ...around, changed }, depth + 1)
      const fed = run.fed ? inner?.map(feed) : inner
      return { ...run, own: runs.own, inner: run.known && run.open === undefined ? fed : fed?.map(loosened) }
    }
    default:
      return { ...run, own: words, inner: undefined }
  }
}

/** It may be more than its words say. */
const loosened = (run: ProgramRun): ProgramRun => ({ ...run, known: false, inner: run.inner?.map(loosened) })

const finders: ReadonlySet<string> = new Set(["find", "gfind"])

/** The shell may make something else of it. */
const expanding = /[$`*?[{~]/

/** A glob over the names in the working directory. */
const names = /^[*?][\w.*?]*$/

/** The one that says less. */
const wider = (a: Open | undefined, b: Open | undefined): Open | undefined =>
  openings.find((open) => open === a || open === b)

const openings: ReadonlyArray<Open> = ["words", "paths", "path"]

const feed = (run: ProgramRun): ProgramRun => ({ ...run, fed: true, inner: run.inner?.map(feed) })

const none: ReadonlyArray<ProgramRun> = []

/** The directory inside the workspace that a `cd` enters. Nothing for another command, and for a place that is not plain. */
const enters = (command: SimpleCommand, from: Location.Directory): string | undefined => {
  const { assignments, dynamic, words } = command
  const [program, target = ""] = words
  if (program !== "cd" || words.length !== 2 || dynamic || assignments.length > 0) return undefined
  if (target === "" || /^[-~]|[*?[]/.test(target)) return undefined
  const { path, workspace } = from
  const place = Location.normal(target.startsWith("/") || path === "" ? target : `${path}/${target}`, workspace)
  if (place === path) return place
  // A second `cd` begins where the first one ended, or failed: both are inside if it does not climb.
  const climbs = !target.startsWith("/") && Location.normal(target).startsWith("..")
  return climbs || /^(?:\/|\.\.(?:\/|$))|(?:^|\/)\.(?:git|hg|assent)(?:\/|$)/i.test(place) ? undefined : place
}

/** `{NAME}>file` sets a variable in some shells. */
const namesDescriptor = ({ commands, redirects }: CommandLine): boolean =>
  redirects.length > 0 && commands.some(({ sources }) => sources.some((word) => /^\{[A-Za-z_]/.test(word)))

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
      // Bash opens network connections for these names.
      return !/^\/dev\/(?:tcp|udp)\//.test(target)
    case "<>":
      return false
    default:
      return target === "/dev/null"
  }
}
