/** What the commands are for, as `assent help` tells it. */
import * as Nearest from "../../core/Nearest.js"
import * as CommandTable from "./CommandTable.js"
import * as Flags from "./Flags.js"

/** All commands and all flags. */
export const all = (): string => {
  const rows = Flags.commands.map((name): readonly [string, string] => {
    const { usage, verbs = [], what } = CommandTable.commands[name]
    const words = name === "completion" || verbs.length === 0 ? "" : `: ${verbs.map(CommandTable.nameOf).join(", ")}`
    return [`assent ${name === "chat" ? "[chat]" : name} ${usage}`.trimEnd(), what + words]
  })
  return [
    "assent: agents that ask first.",
    "",
    ...rows.map(([usage, what]) => `  ${usage.padEnd(30)} ${what}`),
    "",
    "Flags, before or after the command:",
    ...Flags.flagLines(),
    "",
    "assent help COMMAND says more about one of them.",
    "Exit: 0 completed, 1 failed, 2 usage or configuration, 3 halted for an answer, 130 cancelled."
  ].join("\n")
}

/** One command: its words, the flags that concern it, and how it is used. */
export const of = (name: Flags.CommandName): string => {
  const { examples, usage, verbs = [], what } = CommandTable.commands[name]
  return [
    `assent ${name} ${usage}`.trimEnd(),
    "",
    `  ${what}`,
    ...(verbs.length === 0 ? [] : ["", ...verbs.map(([verb, does]) => `  ${verb.padEnd(26)} ${does}`)]),
    "",
    "Flags:",
    ...Flags.flagLines(CommandTable.allFlagsOf(name)),
    "",
    "For example:",
    ...examples.map((example) => `  ${example}`)
  ].join("\n")
}

/** A sentence about a word that names no command, with the one that was probably meant. */
export const unknown = (word: string): string => {
  const meant = Nearest.of(word, Flags.commands)
  const hint = meant === undefined ? "" : ` Did you mean ${meant}?`
  return `There is no command ${JSON.stringify(word)}.${hint} Commands: ${Flags.commands.join(", ")}.`
}
