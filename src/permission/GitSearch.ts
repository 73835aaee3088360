/**
 * Commands that search for files and hand the results to a program that writes: `find . -exec sed -i …`, `grep -rl x .
 * | xargs sed -i …`. A search that starts above a `.git` also finds the files in it, unless it excludes them.
 */
import type { CommandLine, SimpleCommand } from "../shell/CommandLine.js"
import * as Glob from "../core/Glob.js"
import * as Order from "../shell/Order.js"
import * as Program from "../shell/Program.js"
import * as ShellVariables from "../shell/ShellVariables.js"
import * as Wrapper from "../shell/Wrapper.js"

/**
 * The starting directories of such searches. `isReader`: a program that only prints. `loose`: the text, where it cannot be
 * taken apart; a loop may hand on what was found.
 */
export const starts = (
  line: Pick<CommandLine, "commands">,
  isReader: (program: string) => boolean,
  loose?: string
): ReadonlyArray<string> => {
  const { commands } = line
  const out: Array<string> = []
  let handsOn: boolean | undefined
  for (const command of commands) {
    const places = placesOf(command)
    if (places.length === 0) continue
    const writes =
      ((isFind(command) || isFd(command)) && actsItself(command, isReader)) ||
      (handsOn ??=
        commands.some((other) => takes(other, isReader)) || (loose !== undefined && handsOnIn(loose, isReader)))
    if (writes) out.push(...places)
  }
  return out
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const nameOf = ({ program }: SimpleCommand): string => Program.nameOf(program)

const isFind = (command: SimpleCommand): boolean => /^g?find$/.test(nameOf(command))

const isFd = (command: SimpleCommand): boolean => /^fd(?:find)?$/.test(nameOf(command))

const placesOf = (command: SimpleCommand): ReadonlyArray<string> => {
  const words = command.words.slice(1)
  const name = nameOf(command)
  if (isFind(command)) {
    if (!findsGit(words)) return []
    const end = words.findIndex((word) => /^[-(!]/.test(word) && !/^-(?:[HLP]|O\d?)$/.test(word))
    const places = (end < 0 ? words : words.slice(0, end)).filter((word) => !word.startsWith("-"))
    return places.length === 0 ? ["."] : places
  }
  const end = isFd(command) ? words.findIndex((word) => fdRuns.test(word)) : -1
  const operands = (end < 0 ? words : words.slice(0, end)).filter((word) => !word.startsWith("-"))
  const searches =
    (/^[ef]?grep$/.test(name) && words.some((word) => /^(?:-[A-Za-z]*[rR]|--(?:dereference-)?recursive)/.test(word))) ||
    (name === "rg" && words.some((word) => /^(?:-[A-Za-z]*(?:\.|uu)|--hidden)/.test(word))) ||
    (isFd(command) && words.some((word) => /^(?:-[A-Za-z]*[Hu]|--hidden|--unrestricted)/.test(word))) ||
    (name === "ls" && words.some((word) => /^(?:-[A-Za-z]*[RaAf]|--(?:almost-)?all|--recursive)/.test(word))) ||
    (name === "tree" && words.some((word) => /^-[A-Za-z]*a/.test(word))) ||
    (name === "du" && words.some((word) => /^(?:-[A-Za-z]*a|--all)/.test(word)))
  if (!searches || excludes(words)) return []
  if (isListing(name)) return operands.length === 0 ? ["."] : operands
  // The first operand is the pattern.
  return operands.length <= 1 ? [...operands, "."] : operands
}

const isListing = (name: string): boolean => /^(?:ls|tree|du)$/.test(name)

/** The search is limited to file names that git does not look for. */
const excludes = (words: ReadonlyArray<string>): boolean => {
  const included = words.flatMap((word) => /^--include=(.*)$/s.exec(word)?.[1] ?? [])
  return included.length > 0 && !included.some(meansGit)
}

const findsGit = (words: ReadonlyArray<string>): boolean => {
  if (words.some((word) => /^(?:-o|-or|,|!|-not)$/.test(word))) return true
  const names = words.flatMap((word, at) => (/^-i?name$/.test(word) ? [words[at + 1] ?? "*"] : []))
  return names.every(meansGit)
}

const meansGit = (glob: string): boolean => {
  const known = glob.toLowerCase()
  return heeded.some((name) => Glob.test(known, name))
}

/** File names that git looks for in its directory, and the directories in it. */
const heeded: ReadonlyArray<string> = [
  ".git config config.worktree attributes exclude sparse-checkout commondir gitdir head alternates hooks info modules worktrees",
  "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit",
  "pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update reference-transaction",
  "push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman post-index-change"
].flatMap((line) => line.split(" ").flatMap((name) => [name, `${name}.sample`]))

/** The search itself runs something that may write, or deletes. */
const actsItself = (command: SimpleCommand, isReader: (program: string) => boolean): boolean =>
  command.words.some((word) => /^-(?:delete|fprint|fls)/.test(word)) ||
  (isFd(command) && !isReader(executed(command.words))) ||
  (Wrapper.orderOf(Order.ranBy(command))?.programs.some(
    ({ words }) => words.some((word) => word.includes("{}")) && !isReader(words[0] ?? "")
  ) ??
    false)

const fdRuns = /^(?:-[A-Za-z]*[xX]|--exec(?:-batch)?(?:=|$))/

/** The program that `fd` runs, if any; `echo` stands for none. */
const executed = (words: ReadonlyArray<string>): string => {
  const at = words.findIndex((word) => fdRuns.test(word))
  if (at < 0) return "echo"
  return /^(?:-[A-Za-z]*[xX](.+)|--exec(?:-batch)?=(.+))$/s.exec(words[at] ?? "") === null
    ? (words[at + 1] ?? "echo")
    : ""
}

/** A program that may write gets a word that is not known before, or so is the place of what is printed. */
const handsOnIn = (text: string, isReader: (program: string) => boolean): boolean =>
  />\s*["']?[$`]/.test(text) ||
  ShellVariables.looseWords(text).some(
    ({ program, word }) =>
      /[$`]/.test(word) && !isReader(program) && !/^(?:for|select|case|read|printf|cd|\[\[)$/.test(program)
  )

/** The command makes the printed results its words. */
const takes = (command: SimpleCommand, isReader: (program: string) => boolean): boolean => {
  if (command.fed && /^(?:xargs|parallel)$/.test(nameOf(command))) {
    const order = Wrapper.orderOf(Order.ranBy(command))
    return order?.programs.some(({ words }) => !isReader(words[0] ?? "")) !== false || order.dark
  }
  return (
    !isReader(command.program) &&
    command.unknown.some((at) => at > 0 && /\$\(|`/.test(command.words[at] ?? "")) &&
    !/^(?:for|printf|cd)$/.test(command.program)
  )
}
