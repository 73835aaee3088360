/**
 * The directories that a command changes to, or names as a program's working directory: its later words may start
 * there.
 */
import type { Reading } from "../shell/CommandLine.js"
import type { Found } from "./FileGlob.js"
import type { FileSurvey, Steps } from "./FileSurvey.js"
import * as ShellPath from "../shell/ShellPath.js"
import * as ShellVariables from "../shell/ShellVariables.js"

/**
 * All directories from which words of a command may be read: its own, those that it changes to, from any of the others,
 * and those that it names as working directory. `glob`: the paths that a shell makes of a pattern from a directory.
 * Undefined: they are more than can be followed.
 */
export function* visited(
  readings: ReadonlyArray<Reading>,
  variables: ShellVariables.Variables,
  base: string,
  survey: FileSurvey,
  glob: (from: string, pattern: string) => Steps<Found>
): Steps<ReadonlyArray<string> | undefined> {
  const bases = [base]
  const all = new Set<string>()
  const seen = new Set<string>()
  function* follow(target: string, missing: boolean): Steps<boolean> {
    for (const from of bases.slice()) {
      const key = `${from}\0${target}`
      if (seen.has(key)) continue
      seen.add(key)
      const { complete, hits } = ShellPath.isWild(target) ? yield* glob(from, target) : itself(target)
      if (!complete) return false
      for (const hit of hits) {
        const at = yield* survey.walk(from, hit)
        if (bases.includes(at) || (!missing && !(yield* survey.isThere(at)))) continue
        if (bases.length === maxBases) return false
        bases.push(at)
      }
    }
    return true
  }
  for (const reading of readings) {
    yield* survey.goOn()
    for (const target of targets(reading, variables)) {
      if (ShellPath.isUnknown(target)) continue
      all.add(target)
      if (!(yield* follow(target, true))) return undefined
    }
  }
  // Readings do not repeat: a target may be gone to once more, from wherever a later one leads.
  for (let known = 0; known < bases.length;) {
    known = bases.length
    for (const target of all) if (!(yield* follow(target, false))) return undefined
  }
  return bases
}

const maxBases = 16

const itself = (path: string): Found => ({ hits: [path], complete: true })

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
