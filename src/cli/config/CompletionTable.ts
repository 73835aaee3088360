/** What shells complete: which words stand where on the command line, and what its flags take. */
import * as Sandbox from "../../sandbox/Sandbox.js"
import { mediators } from "../../host/local/ConfigFile.js"
import { modes } from "../../permission/PermissionState.js"
import { providers } from "../../model/ProviderName.js"
import * as CommandTable from "./CommandTable.js"
import * as Flags from "./Flags.js"
import { type CommandName, commandNames } from "../../host/CommandName.js"

/** What the file system has, or what the program has: it reads and asks nothing for that. */
export type Source = "files" | "directories" | "sessions" | "profiles" | "servers"

/** What may stand somewhere. */
export interface Values {
  readonly words: ReadonlyArray<string>
  readonly from?: Source
  /** What goes on behind a word that ends with a colon. */
  readonly behind?: readonly [word: string, from: Source]
}

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
  readonly name: CommandName
  readonly what: string
  readonly flags: ReadonlyArray<Flag>
  /** Those that count once a verb is there, where verbs differ in that. */
  readonly flagsOf: ReadonlyArray<readonly [verb: string, flags: ReadonlyArray<Flag>]>
  /** Its first words, each with what it does. */
  readonly verbs: ReadonlyArray<readonly [verb: string, what: string]>
  /** What stands in the place of a verb, where that is no word of ours. */
  readonly first: Values | undefined
  /** What comes behind a verb, once or again and again. */
  readonly behind: ReadonlyArray<{ readonly verb: string; readonly takes: Values; readonly isRepeated: boolean }>
}

const from = (from: Source, ...words: ReadonlyArray<string>): Values => ({ words, from })
const only = (words: ReadonlyArray<string>): Values => ({ words })
const model = (...others: ReadonlyArray<string>): Values => ({
  words: [...others, "offline", "script:", ...providers.map((provider) => `${provider}/`)],
  behind: ["script:", "files"]
})

const known: { readonly [name: string]: Values } = {
  model: model(),
  reviewer: model("none"),
  channel: { words: ["console", "auto", "halt", "file:", "webhook:"], behind: ["file:", "directories"] },
  escalate: only(["none"]),
  mode: only(modes),
  mediator: only(mediators),
  vouch: only(["file", "webhook", "json"]),
  sandbox: only(Sandbox.modes),
  "log-level": only(["debug", "info", "warning", "error", "none"]),
  speed: only(["max"]),
  policy: from("files"),
  image: from("files"),
  file: from("files"),
  store: from("files", ":memory:", "postgres://"),
  key: from("files"),
  "token-file": from("files"),
  workspace: from("directories"),
  "add-dir": from("directories"),
  "model-keys": from("directories"),
  resume: from("sessions"),
  after: from("sessions"),
  profile: from("profiles", "none")
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
  [/^\w+ \[?SESSION\b(?!\|)/, from("sessions")],
  [/^(?:check|login|logout) NAME$/, from("servers")],
  [/^\w+ NAME$/, from("profiles")],
  [/^\w+ \[?FILE…?\]?$/, from("files")],
  [/^\w+ WORKSPACE\|SESSION$/, from("directories")]
]

export const commands: ReadonlyArray<Command> = commandNames.map((name) => {
  const { verbs = [], what } = CommandTable.commands[name]
  const among = (meant: ReadonlyArray<string>) => flags.filter((flag) => meant.includes(flag.name))
  return {
    name,
    what,
    flags: among(CommandTable.allFlagsOf(name)),
    flagsOf: verbs.some(([, , own]) => own !== undefined)
      ? verbs.map(CommandTable.nameOf).map((verb) => [verb, among(CommandTable.flagsOf(name, [verb]))] as const)
      : [],
    verbs:
      name === "help"
        ? [
            ...commandNames.map((command) => [command, CommandTable.commands[command].what] as const),
            ["settings", "the settings of config.json"] as const
          ]
        : verbs.map((verb) => [CommandTable.nameOf(verb), verb[1]] as const),
    first: name === "answer" || name === "serve" ? from("directories") : undefined,
    behind: verbs.flatMap((verb) => {
      const [usage] = verb
      const takes = stands.find(([word]) => word.test(usage))?.[1]
      return takes === undefined ? [] : [{ verb: CommandTable.nameOf(verb), takes, isRepeated: usage.includes("…") }]
    })
  }
})
