/** What shells complete: which words stand where on the command line, and what its flags take. */
import * as Sandbox from "../../sandbox/Sandbox.js"
import { modes } from "../../permission/PermissionState.js"
import { providers } from "../../model/ProviderName.js"
import * as CommandTable from "./CommandTable.js"
import * as Flags from "./Flags.js"

/** Words, what the file system has, or what the program has: it reads and asks nothing for that. */
export type Values = ReadonlyArray<string> | "files" | "directories" | "sessions" | "profiles"

export interface Flag {
  readonly name: string
  readonly short: string | undefined
  readonly help: string
  /** What its value is called. */
  readonly value: string
  readonly isRepeated: boolean
  /** `any` takes a value that nobody can tell, and undefined none. */
  readonly takes: Values | "any" | undefined
}

export interface Command {
  readonly name: Flags.CommandName
  readonly what: string
  readonly flags: ReadonlyArray<Flag>
  /** Its first words, each with what it does. */
  readonly verbs: ReadonlyArray<readonly [verb: string, what: string]>
  /** What stands in the place of a verb, where that is no word of ours. */
  readonly first: Values | undefined
  /** What comes behind a verb, once or again and again. */
  readonly behind: ReadonlyArray<{ readonly verb: string; readonly takes: Values; readonly isRepeated: boolean }>
}

const model = ["script:", ...providers.map((provider) => `${provider}/`)]

const known: { readonly [name: string]: Values } = {
  model: ["offline", ...model],
  reviewer: ["none", "offline", ...model],
  channel: ["console", "auto", "halt", "file:", "webhook:"],
  mode: [...modes],
  mediator: ["forward", "agent"],
  vouch: ["file", "webhook", "json"],
  sandbox: [...Sandbox.modes],
  "log-level": ["debug", "info", "warning", "error", "none"],
  policy: "files",
  image: "files",
  file: "files",
  store: "files",
  key: "files",
  workspace: "directories",
  "add-dir": "directories",
  resume: "sessions",
  after: "sessions",
  profile: "profiles"
} satisfies { readonly [Name in keyof Flags.Flags]?: Values }

export const flags: ReadonlyArray<Flag> = Object.entries(Flags.table).map(([name, row]) => ({
  name,
  short: row.short,
  help: row.help,
  value: row.value ?? "VALUE",
  isRepeated: row.multiple === true,
  takes: known[name] ?? (row.type === "string" ? "any" : undefined)
}))

/** What the words of a verb's usage stand for. */
const stands: ReadonlyArray<readonly [word: RegExp, takes: Values]> = [
  [/^\w+ \[?SESSION\]?$/, "sessions"],
  [/^\w+ NAME$/, "profiles"],
  [/^\w+ \[?FILE…?\]?$/, "files"],
  [/^\w+ \[?WORKSPACE\]?$/, "directories"]
]

export const commands: ReadonlyArray<Command> = Flags.commands.map((name) => {
  const { verbs = [], what } = CommandTable.commands[name]
  const meant = new Set<string>(CommandTable.allFlagsOf(name))
  return {
    name,
    what,
    flags: flags.filter((flag) => meant.has(flag.name)),
    verbs:
      name === "help"
        ? Flags.commands.map((command) => [command, CommandTable.commands[command].what] as const)
        : verbs.map((verb) => [CommandTable.nameOf(verb), verb[1]] as const),
    first: name === "answer" ? "directories" : undefined,
    behind: verbs.flatMap((verb) => {
      const [usage] = verb
      const takes = stands.find(([word]) => word.test(usage))?.[1]
      return takes === undefined ? [] : [{ verb: CommandTable.nameOf(verb), takes, isRepeated: usage.includes("…") }]
    })
  }
})

/** As the shell patterns of `case` have them: every way to write the flags that take a value in a word of its own. */
export const valued: ReadonlyArray<string> = flags.flatMap(({ name, short, takes }) =>
  takes === undefined ? [] : [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]
)
