/**
 * The programs that a command line itself runs, for rules that deny: words in command position, also behind wrappers
 * such as `sudo`, `xargs` and `sh -c`.
 *
 * Data is no program: a quoted argument, the body of a here-document, the content of a file. What a program runs by
 * itself is not seen either.
 */
import * as Either from "effect/Either"
import * as FoldedName from "../core/FoldedName.js"
import * as CommandPositions from "./CommandPositions.js"
import * as Harmless from "./Harmless.js"
import * as Program from "./Program.js"
import * as Runner from "./Runner.js"
import { parse, trim, type CommandLine, type Unparseable } from "./ShellGrammar.js"
import * as Variable from "./Variable.js"

export interface StartedProgram {
  /** Unquoted, the program first. */
  readonly words: ReadonlyArray<string>
  /** False if the program is not known before it runs. */
  readonly named: boolean
}

/** `line`: nothing for a text that cannot be parsed. */
export const of = (text: string, line: CommandLine | undefined): ReadonlyArray<StartedProgram> => {
  const out: Array<StartedProgram> = []
  inText(text, line, 0, out)
  return out
}

/** The files of redirections, also in texts for a shell. */
export const targets = (text: string, line: CommandLine | undefined): ReadonlyArray<string> => {
  const out: Array<string> = []
  inText(text, line, 0, [], out)
  return out
}

/** Why it cannot be told which programs the line runs: a sentence. Nothing if it can be told. */
export const unresolved = (
  line: Either.Either<CommandLine, Unparseable>,
  started: ReadonlyArray<StartedProgram>
): string | undefined => {
  if (Either.isLeft(line)) return line.left.message
  for (const { named, words } of started) {
    const [program = ""] = words
    if (!named) return `Assent cannot tell which program ${program} is. Name it.`
    if (Runner.runs(words)._tag === "Unknown") return `Assent cannot tell which programs ${program} runs. Name them.`
  }
  return undefined
}

/**
 * The line starts Git, and beside it only `cd` and harmless programs. Nothing in the line writes into a `.git`, and no
 * variable of it chooses another program.
 */
export const isGit = (text: string, line: CommandLine | undefined, started: ReadonlyArray<StartedProgram>): boolean => {
  if (line === undefined || !line.sets.every(Variable.isPlain)) return false
  const known = new Map(line.commands.map(({ unknown, words }) => [words, unknown.length === 0]))
  return (
    line.commands.every(({ assignments }) => assignments.every(Variable.isPlainAssignment)) &&
    started.some(({ words: [program] }) => program === "git") &&
    started.every(({ named, words }) => named && standsBesideGit(words, known.get(words))) &&
    !targets(text, line).some(mayBeGit)
  )
}

/** Git runs further programs that its words name, such as those of `rebase -x`. */
export const runsOthers = (started: ReadonlyArray<StartedProgram>): boolean =>
  started.some(({ words }) => words[0] === "git" && Program.escapes(words).length > 0)

/** The texts with which a pattern that denies is compared, each whole. */
export const texts = (
  command: string,
  line: CommandLine | undefined,
  started: ReadonlyArray<StartedProgram>
): ReadonlyArray<string> => {
  const trimmed = trim(command)
  const out = new Set([command, trimmed, trimmed.replace(/[ \t]+/g, " ")])
  for (const { text } of line?.commands ?? []) out.add(text)
  for (const { operator, target } of line?.redirects ?? []) out.add(`${operator} ${target}`)
  for (const { named, words } of started) {
    if (!named) continue
    out.add(words.join(" "))
    const [program = "", ...rest] = words
    // A program by its path is the program of that name.
    const own = program.includes("/") ? [Program.basename(program), ...rest] : words
    if (own !== words) out.add(own.join(" "))
    const plain = Program.withoutGitOptions(own)
    if (plain !== undefined) out.add(plain.join(" "))
  }
  return [...out]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxDepth = 4

/** Git itself, or what may stand beside it. `isKnown`: nothing where another program runs it. */
const standsBesideGit = (
  words: ReadonlyArray<string>,
  isKnown = !words.some((word) => expanding.test(word))
): boolean => {
  const [program = "", first = ""] = words
  if (program === "git") return true
  if (program === "cd") return words.length <= 2 && !mayBeGit(first)
  if (program === "[[") return words.every((word, at) => at === 0 || !word.includes("["))
  const runs = Runner.runs(words)
  switch (runs._tag) {
    case "Nothing":
      return isHarmless(words, isKnown)
    case "Programs":
      return (
        // A wrapper without a program runs what it is fed.
        runs.inner.length > 0 &&
        isHarmless(runs.own, isKnown) &&
        runs.inner.every(({ assignments }) => assignments.every(Variable.isPlainAssignment))
      )
    default:
      return false
  }
}

/** A word that is not known yet could be an option. */
const isHarmless = (words: ReadonlyArray<string>, isKnown: boolean): boolean =>
  isKnown || /^(?:test|\[|printf)$/.test(words[0] ?? "")
    ? Harmless.isHarmless(words, { confined: true })
    : Harmless.isHarmless(words, { confined: true, open: "words" })

const expanding = /[$`*?[]/

/** The path leads into a `.git`, or is not known. */
const mayBeGit = (path: string): boolean => expanding.test(path) || FoldedName.of(path).split("/").includes(".git")

const inText = (
  text: string,
  line: CommandLine | undefined,
  depth: number,
  out: Array<StartedProgram>,
  files?: Array<string>
): void => {
  const found = line === undefined ? CommandPositions.find(text) : undefined
  for (const { named, words } of line?.commands ?? found?.programs ?? []) {
    if (words.length > 0) inWords(words, named, depth, out, files)
  }
  files?.push(...(line?.redirects.map(({ target }) => target) ?? found?.targets ?? []))
}

const inWords = (
  words: ReadonlyArray<string>,
  named: boolean,
  depth: number,
  out: Array<StartedProgram>,
  files?: Array<string>
): void => {
  out.push({ words, named })
  if (depth >= maxDepth) return
  const [program = ""] = words
  const name = Program.basename(program)
  if (name === "eval") return inText(words.slice(1).join(" "), undefined, depth + 1, out, files)
  const runs = Runner.runs(name === program ? words : [name, ...words.slice(1)])
  if (runs._tag === "Programs") for (const inner of runs.inner) inWords(inner.words, true, depth + 1, out, files)
  if (runs._tag !== "Text") return
  inText(runs.text, Either.getOrUndefined(parse(runs.text)), depth + 1, out, files)
}
