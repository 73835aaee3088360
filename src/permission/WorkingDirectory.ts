/**
 * The directories that a command changes to, or names as a program's working directory: its later words may start
 * there.
 */
import * as Effect from "effect/Effect"
import type { Reading } from "../shell/CommandLine.js"
import * as ShellPath from "../shell/ShellPath.js"
import * as ShellVariables from "../shell/ShellVariables.js"

/** How the file system is looked at. */
export interface Looks {
  /** What a glob matches from a directory. */
  readonly glob: (from: string, pattern: string) => Effect.Effect<ReadonlyArray<string>>
  /** Where a path leads, links followed. */
  readonly walk: (from: string, path: string) => Effect.Effect<string>
}

/**
 * All directories from which words of a command may be read: its own, those that it changes to, from any of the others,
 * and those that it names as working directory. Undefined: they are more than can be followed.
 */
export const visited = (
  readings: ReadonlyArray<Reading>,
  variables: ShellVariables.Variables,
  base: string,
  { glob, walk }: Looks
): Effect.Effect<ReadonlyArray<string> | undefined> =>
  Effect.gen(function* () {
    const bases = [base]
    const seen = new Set<string>()
    for (const reading of readings) {
      for (const target of targets(reading, variables)) {
        if (ShellPath.isUnknown(target)) continue
        for (const from of bases.slice()) {
          const key = `${from}\0${target}`
          if (seen.has(key)) continue
          seen.add(key)
          for (const hit of ShellPath.isWild(target) ? yield* glob(from, target) : [target]) {
            const at = yield* walk(from, hit)
            if (bases.includes(at)) continue
            if (bases.length === maxBases) return undefined
            bases.push(at)
          }
        }
      }
    }
    return bases
  })

const maxBases = 16

/** As written, with known variables put in. */
const targets = ({ deep, words }: Reading, variables: ShellVariables.Variables): ReadonlySet<string> => {
  const out = new Set<string>()
  for (const [at, word] of words.entries()) {
    if ((deep || at === 0) && changes.test(word)) {
      const operand = operandOf(words, at)
      for (const target of operand === undefined ? [] : (ShellVariables.resolve(operand, variables) ?? []))
        out.add(target)
    }
    if (!word.startsWith("-") || changes.test(words[0] ?? "")) continue
    const named = option.test(word) ? words[at + 1] : attached.exec(word)?.[1]
    if (named !== undefined) out.add(named)
  }
  return out
}

/** A change to a directory that no text names: home without an operand, or the previous directory. */
export const leaves = (
  { deep, words }: Reading,
  variables: ShellVariables.Variables
): { readonly to: "home" | "unknown"; readonly text: string } | undefined => {
  const at = deep && /^(?:builtin|command)$/.test(words[0] ?? "") ? 1 : 0
  if (words[at] !== "cd") return undefined
  const operand = operandOf(words, at)
  if (operand === undefined) return { to: "home", text: "cd" }
  const text = `cd ${operand}`
  if (operand === "-") return { to: "unknown", text }
  const name = ShellVariables.leading(operand)
  // A variable that the command does not set is empty, and so is the operand.
  return name === undefined || name === "PWD" || variables.has(name) ? undefined : { to: "home", text }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const option = /^(?:-C|-d|--(?:chdir|cwd|dir|directory|prefix|project|root|work-tree))$/
const attached = /^(?:-C|--(?:chdir|cwd|dir|directory|prefix|project|root|work-tree)=)(.+)$/s

const changes = /^(?:cd|pushd)$/

const operandOf = (words: ReadonlyArray<string>, start: number): string | undefined => {
  let at = start + 1
  while (/^-[A-Za-z@-]+$/.test(words[at] ?? "")) at++
  return words[at]
}
