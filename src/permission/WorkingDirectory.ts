/**
 * The directories that a command changes to, or names as a program's working directory: its later words may start
 * there.
 */
import type { Reading } from "../shell/CommandLine.js"
import * as ShellVariables from "../shell/ShellVariables.js"

/** As written, with known variables put in. */
export const targets = (reading: Reading, variables: ShellVariables.Variables): ReadonlyArray<string> => {
  const { start, words } = reading
  if (changes(reading)) {
    const operand = operandOf(reading)
    return operand === undefined ? [] : (ShellVariables.resolve(operand, variables) ?? [])
  }
  if (start > 0) return []
  return words.flatMap((word, index) => {
    if (option.test(word)) return words[index + 1] ?? []
    return attached.exec(word)?.[1] ?? []
  })
}

/** A change to a directory that no text names: home without an operand, or the previous directory. */
export const leaves = (
  reading: Reading,
  variables: ShellVariables.Variables
): { readonly to: "home" | "unknown"; readonly text: string } | undefined => {
  const { program, start, words } = reading
  const isRun = start === 0 || (start === 1 && /^(?:builtin|command)$/.test(words[0] ?? ""))
  if (program !== "cd" || !isRun) return undefined
  const operand = operandOf(reading)
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

const changes = ({ program }: Reading): boolean => program === "cd" || program === "pushd"

const operandOf = ({ start, words }: Reading): string | undefined =>
  words.slice(start + 1).find((word) => !/^-[A-Za-z@-]+$/.test(word))
