/**
 * The words behind the program's name as they are read: which command, which flags, what else. Flags may stand before or
 * after the command. One that the command has no use for is refused: whoever gave it expects something of it. All that
 * stands behind the tool of `permissions check` belongs to the call.
 *
 * It needs no package: what only tells help or the version has it without the rest of the program.
 */
import { parseArgs } from "node:util"
import * as Nearest from "../../core/Nearest.js"
import * as CommandTable from "./CommandTable.js"
import * as Flags from "./Flags.js"
import { type CommandName, commandNames } from "../../host/CommandName.js"

export interface Invocation {
  readonly command: CommandName
  /** Whether it was named, and is not merely the default. Default: false. */
  readonly isNamed?: boolean
  readonly flags: Flags.Flags
  /** All arguments that are neither flag nor command, in order. */
  readonly words: ReadonlyArray<string>
}

/** Reads the words behind the program's name; a sentence where they cannot be understood. */
export const read = (argv: ReadonlyArray<string>): Invocation | string => {
  const end = callAt(argv) ?? argv.length
  const parsed = parsedBy(argv.slice(0, end))
  if (typeof parsed === "string") return parsed
  const { workspace: workspaces = [], ...values } = parsed.values
  const positionals = [...parsed.positionals, ...argv.slice(argv[end] === "--" ? end + 1 : end)]
  const [first = "chat", ...words] = positionals
  const command = commandOf(first)
  if (command === undefined) {
    return `There is no command ${JSON.stringify(first)}.${meant(first, commandNames)} Commands: ${commandNames.join(", ")}. To run a task: assent run ${JSON.stringify(first)}`
  }
  // The option table and `Flags` name the same flags.
  const flags = values as Flags.Flags
  const read = placed({ command, isNamed: positionals.length > 0, flags, words }, [workspaces].flat().map(String))
  // Whoever asks for help has it, whatever else is there.
  return flags.help === true || flags.version === true ? read : (unused(read) ?? surplus(read) ?? read)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** `serve` works in each `--workspace`. Elsewhere the last one counts. */
const placed = (read: Invocation, workspaces: ReadonlyArray<string>): Invocation => {
  const [first, ...others] = read.command === "serve" ? workspaces : workspaces.slice(-1)
  return first === undefined
    ? read
    : { ...read, flags: { ...read.flags, workspace: first }, words: [...read.words, ...others] }
}

const commandOf = (word: string): CommandName | undefined => commandNames.find((name) => name === word)

/** Where the arguments of a call begin, when the words ask how that call would be decided. */
const callAt = (argv: ReadonlyArray<string>): number | undefined => {
  const { tokens } = parseArgs({
    args: withNames(argv),
    options: parserOptions,
    allowPositionals: true,
    strict: false,
    tokens: true
  })
  const [command, verb, tool] = tokens.filter((token) => token.kind === "positional")
  const isAsked = command?.value === "permissions" && (verb?.value === "check" || verb?.value === "why")
  return isAsked && tool !== undefined ? tool.index + 1 : undefined
}

const parsedBy = (argv: ReadonlyArray<string>) => {
  try {
    return parseArgs({ args: withNames(argv), options: parserOptions, allowPositionals: true, strict: true })
  } catch (error) {
    return explain(
      error,
      argv.map(commandOf).find((name) => name !== undefined)
    )
  }
}

/** A sentence about the first flag that the command does not take, if there is one. */
const unused = ({ command, flags, words }: Invocation): string | undefined => {
  const taken: ReadonlyArray<string> = CommandTable.flagsOf(command, words)
  const name = Flags.names.find((flag) => flags[flag] !== undefined && !taken.includes(flag))
  if (name === undefined) return undefined
  const takers = CommandTable.takersOf(name).map((taker) => `assent ${taker}`)
  const verb = CommandTable.verbOf(command, words)
  const who = `assent ${command}${verb === undefined ? "" : ` ${verb}`}`
  return `${who} takes no --${name}; that is for ${takers.join(", ")}.${meant(name, taken, "--")}\n${lists(command)}`
}

/** A sentence about the first word that the command has no use for, if there is one. */
const surplus = ({ command, words }: Invocation): string | undefined => {
  const { usage } = CommandTable.commands[command]
  const most = usage === "" ? 0 : /^\w+$/.test(usage) ? 1 : Infinity
  const word = words[most]
  if (word === undefined) return undefined
  const other = commandOf(word)
  const instead =
    other !== undefined
      ? `Did you mean assent ${other}?`
      : command === "chat"
        ? `To run a task: assent run ${JSON.stringify(words.join(" "))}; in a chat, type it.`
        : lists(command)
  const takes = most === 0 ? "no words" : "one word"
  return `assent ${command} takes ${takes}, and ${JSON.stringify(word)} is ${most === 0 ? "one" : "another one"}. ${instead}`
}

const lists = (command: CommandName | undefined): string =>
  command === undefined
    ? "assent help lists the commands, and assent help COMMAND lists its flags."
    : `assent help ${command} shows how to use it.`

/** `--resume` may stand without a name: then there is a list to pick from. `--attach` alone means the person's own server. */
const withNames = (argv: ReadonlyArray<string>): Array<string> => {
  const end = argv.indexOf("--")
  return argv.map((word, index) => {
    const next = argv[index + 1]
    const isAlone = next === undefined || next.startsWith("-") || commandOf(next) !== undefined
    const mayBeAlone = word === "--resume" || word === "--attach"
    return mayBeAlone && isAlone && (end < 0 || index < end) ? `${word}=` : word
  })
}

const parserOptions = Object.fromEntries(
  Object.entries(Flags.table).map(([name, { type, multiple = name === "workspace", short }]) => [
    name,
    { type, multiple, ...(short === undefined ? {} : { short }) }
  ])
)

/** A question whether another name was meant, where one is near. */
const meant = (name: string, known: ReadonlyArray<string>, prefix = ""): string => {
  const nearest = Nearest.of(name, known)
  return nearest === undefined ? "" : ` Did you mean ${prefix}${nearest}?`
}

/** Node's own message is for those who write programs; it names the flag. */
const explain = (error: unknown, command: CommandName | undefined): string => {
  const message = error instanceof Error ? error.message : String(error)
  const [, name = ""] = /^Option '(?:-\w, )?--([\w-]+)/.exec(message) ?? []
  const flag = Flags.names.find((one) => one === name)
  const [, unknown] = /^Unknown option '(--?[^'=]+)/.exec(message) ?? []
  if (flag !== undefined) {
    const { type, value } = Flags.table[flag]
    return type === "boolean"
      ? `--${flag} takes no value.\n${lists(command)}`
      : `--${flag} needs a value: --${flag} ${value}.\n${lists(command)}`
  }
  if (unknown === undefined) return `${message}\n${lists(command)}`
  const long = unknown.startsWith("--") ? unknown.slice(2) : undefined
  const own = long === undefined || command === undefined ? "" : meant(long, CommandTable.allFlagsOf(command), "--")
  const hint = own === "" && long !== undefined ? meant(long, Flags.names, "--") : own
  return `There is no flag ${JSON.stringify(unknown)}.${hint}\n${lists(command)}`
}
