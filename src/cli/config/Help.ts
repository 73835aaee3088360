/** The texts of `assent help`. */
import * as Nearest from "../../core/Nearest.js"
import * as CommandTable from "./CommandTable.js"
import * as Flags from "./Flags.js"
import { type CommandName, commandNames } from "../../host/CommandName.js"

/** All commands, and the flags that are used most. */
export const all = (): string => {
  const rows = commandNames.map((name): readonly [string, string] => {
    const { usage, verbs = [], what } = CommandTable.commands[name]
    const words = name === "completion" || verbs.length === 0 ? "" : `: ${verbs.map(CommandTable.nameOf).join(", ")}`
    return [`assent ${name === "chat" ? "[chat]" : name} ${usage}`.trimEnd(), what + words]
  })
  return [
    "assent: agents that ask first.",
    "",
    ...rows.map(([usage, what]) => `  ${usage.padEnd(30)} ${what}`),
    "",
    "Common flags, before or after the command:",
    ...Flags.flagLines(Flags.common),
    "",
    "assent help COMMAND lists all flags of a command. assent help settings lists the settings.",
    "Exit: 0 completed, 1 failed, 2 usage or configuration, 3 halted for an answer, 130 cancelled."
  ].join("\n")
}

/** One command: its words, the flags that concern it, and how it is used. */
export const of = (name: CommandName): string => {
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

/** The settings of `config.json`, one a line. */
export const settings = (rows: ReadonlyArray<readonly [path: string, meaning: string]>): string => {
  const width = Math.max(...rows.map(([path]) => path.length)) + 2
  return [
    "Settings of config.json, in your configuration directory or in .assent of a trusted workspace:",
    "",
    ...rows.map(([path, meaning]) => `  ${path.padEnd(width)}${meaning}`),
    "",
    "A variable such as ASSENT_MODEL replaces the file. A flag replaces the variable."
  ].join("\n")
}

/** A sentence about a word that names no command, with the one that was probably meant. */
export const unknown = (word: string): string => {
  const meant = Nearest.of(word, commandNames)
  const hint = meant === undefined ? "" : ` Did you mean ${meant}?`
  return `There is no command ${JSON.stringify(word)}.${hint} Commands: ${commandNames.join(", ")}.`
}
