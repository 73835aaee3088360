/**
 * The directories that a command changes to, or names as a program's working directory: its later words may start
 * there.
 */
import type { Reading } from "../shell/CommandLine.js"
import * as ShellVariables from "../shell/ShellVariables.js"

/** As written, with known variables put in. */
export const targets = ({ deep, words }: Reading, variables: ShellVariables.Variables): ReadonlySet<string> => {
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
