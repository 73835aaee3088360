/**
 * The programs that a command line itself runs, for rules that deny: words in command position, also behind wrappers
 * such as `sudo`, `xargs` and `sh -c`.
 *
 * Data is no program: a quoted argument, the body of a here-document, the content of a file. What a program runs by
 * itself is not seen either.
 */
import * as Either from "effect/Either"
import * as CommandPositions from "./CommandPositions.js"
import * as Harmless from "./Harmless.js"
import * as Program from "./Program.js"
import * as Runner from "./Runner.js"
import { parse, trim, type CommandLine, type Unparseable } from "./ShellGrammar.js"

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
 * The line starts git, and beside it only programs that read. `isNamed`: somebody allowed what git runs in turn, too. No
 * redirection names a place in a git directory.
 */
export const isGit = (
  text: string,
  line: CommandLine | undefined,
  started: ReadonlyArray<StartedProgram>,
  isNamed: boolean
): boolean =>
  started.some(({ words: [program] }) => program === "git") &&
  started.every(
    ({ named, words }) =>
      named &&
      (words[0] === "git"
        ? isNamed || Program.escapes(words).length === 0
        : words[0] === "cd" || Harmless.isHarmless(words, { confined: true }))
  ) &&
  targets(text, line).every((target) => !/\.git/i.test(target))

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
