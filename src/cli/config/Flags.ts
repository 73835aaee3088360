/** The flags that there are, with what each means. Which command takes which is in the table of commands. */
import { providers } from "../../model/ProviderName.js"

export interface Flags {
  readonly model?: string | undefined
  readonly "base-url"?: string | undefined
  readonly profile?: string | undefined
  readonly mode?: string | undefined
  readonly mediator?: string | undefined
  readonly channel?: ReadonlyArray<string> | undefined
  readonly "piped-answers"?: boolean | undefined
  readonly policy?: string | undefined
  readonly store?: string | undefined
  readonly resume?: string | undefined
  readonly continue?: boolean | undefined
  readonly image?: ReadonlyArray<string> | undefined
  readonly file?: ReadonlyArray<string> | undefined
  readonly workspace?: string | undefined
  readonly sandbox?: string | undefined
  readonly "allow-home"?: boolean | undefined
  readonly "add-dir"?: ReadonlyArray<string> | undefined
  readonly trust?: boolean | undefined
  readonly yolo?: boolean | undefined
  readonly vouch?: ReadonlyArray<string> | undefined
  readonly reviewer?: string | undefined
  readonly escalate?: string | undefined
  readonly timeout?: string | undefined
  readonly plain?: boolean | undefined
  readonly "log-level"?: string | undefined
  readonly at?: string | undefined
  readonly unused?: string | undefined
  readonly keep?: string | undefined
  readonly limit?: string | undefined
  readonly after?: string | undefined
  readonly all?: boolean | undefined
  readonly json?: boolean | undefined
  readonly jsonl?: boolean | undefined
  readonly key?: string | undefined
  readonly speed?: string | undefined
  readonly pause?: string | undefined
  readonly help?: boolean | undefined
  readonly version?: boolean | undefined
}

export const commands = [
  "chat",
  "run",
  "permissions",
  "profiles",
  "sessions",
  "audit",
  "answer",
  "doctor",
  "completion",
  "help"
] as const
export type CommandName = (typeof commands)[number]

export interface FlagRow {
  readonly type: "string" | "boolean"
  readonly multiple?: boolean
  readonly short?: string
  readonly value?: string
  readonly help: string
}

export const table: { readonly [Name in keyof Required<Flags>]: FlagRow } = {
  model: {
    type: "string",
    short: "m",
    value: "MODEL",
    help: `PROVIDER/MODEL (${providers.join(", ")}), script:FILE, or offline (the default)`
  },
  "base-url": {
    type: "string",
    value: "URL",
    help: "the provider's address, for a proxy or an OpenAI-compatible server"
  },
  profile: { type: "string", value: "NAME", help: "the agent's own profile, or none; assent profiles lists them" },
  mode: {
    type: "string",
    value: "MODE",
    help: "how calls are decided: ask (the default), plan (it only reads until you approve a plan), deny, allow"
  },
  mediator: {
    type: "string",
    value: "WHO",
    help: "who is asked first when a subagent asks: forward (you, the default) or agent (its parent)"
  },
  channel: {
    type: "string",
    multiple: true,
    value: "CHANNEL",
    help: "who is asked: console, auto, halt, file:DIR, webhook:URL; several race, the first answer wins"
  },
  "piped-answers": {
    type: "boolean",
    help: "lines of a pipe on standard input answer questions, as a script does; else only the terminal answers"
  },
  policy: { type: "string", value: "FILE", help: "this permissions file instead of the user's and the workspace's" },
  store: {
    type: "string",
    value: "FILE",
    help: "where sessions are kept: with the person's own state by default; postgres://…; :memory: keeps none"
  },
  resume: {
    type: "string",
    value: "SESSION",
    help: "go on with this session, named by id or its beginning; without a name, pick one from a list"
  },
  continue: { type: "boolean", help: "go on with the session that was used last" },
  image: {
    type: "string",
    multiple: true,
    short: "i",
    value: "FILE",
    help: "an image (PNG, JPEG, GIF, WebP) that goes with the task or the first words; may be given again"
  },
  file: {
    type: "string",
    multiple: true,
    value: "FILE",
    help: "a PDF, a text or another file that goes with them; may be given again"
  },
  workspace: { type: "string", value: "DIR", help: "where the agent works; the current directory by default" },
  sandbox: {
    type: "string",
    value: "MODE",
    help: "how commands are confined: auto (where it can be, the default), require, off"
  },
  "allow-home": {
    type: "boolean",
    help: "let confined commands work in your home: keys are hidden, start files are not written"
  },
  "add-dir": {
    type: "string",
    multiple: true,
    value: "DIR",
    help: "the agent works in this directory as well: its file tools, and commands"
  },
  trust: {
    type: "boolean",
    help: "let this workspace's own files allow things, from now on; doctor shows what that would be"
  },
  yolo: { type: "boolean", help: "ask nobody and say yes; guards still deny" },
  vouch: {
    type: "string",
    multiple: true,
    value: "CHANNEL",
    help: "the program behind file, webhook or json vouches for the names in its answers"
  },
  reviewer: {
    type: "string",
    value: "MODEL",
    help: "a model decides about calls that the policy delegates, before anybody is asked; none for no model"
  },
  escalate: {
    type: "string",
    value: "DURATION",
    help: "ask one channel after the other, the next one after this long: the terminal, then those of --channel"
  },
  timeout: { type: "string", value: "DURATION", help: "cancel the work after this long, such as 90s or 5m" },
  plain: { type: "boolean", help: "lines without a screen, marks and colours, as for a screen reader" },
  "log-level": {
    type: "string",
    value: "LEVEL",
    help: "debug, info, warning, error or none; debug shows stack traces"
  },
  at: { type: "string", value: "TURN", help: "sessions fork: at the end of this turn; 0 is the beginning" },
  unused: {
    type: "string",
    value: "DURATION",
    help: "sessions prune: those that were not used for so long, such as 30d"
  },
  keep: { type: "string", value: "NUMBER", help: "sessions prune: all but so many that were used last" },
  limit: {
    type: "string",
    value: "NUMBER",
    help: "sessions list: so many; 100 by default, and with --json all"
  },
  after: { type: "string", value: "SESSION", help: "sessions list: those that were used before this one" },
  all: { type: "boolean", help: "sessions list: those of all workspaces" },
  json: { type: "boolean", help: "JSON lines on standard output: the events of a run, what sessions tells" },
  jsonl: { type: "boolean", help: "as --json, and commands as JSON lines on standard input" },
  key: { type: "string", value: "FILE", help: "write and verify the audit with the key in this file" },
  speed: {
    type: "string",
    value: "SPEED",
    help: "sessions replay: so many times as fast, or max; 1 at a terminal, else max"
  },
  pause: { type: "string", value: "DURATION", help: "sessions replay: no pause is longer; 2s by default" },
  help: { type: "boolean", short: "h", help: "this text" },
  version: { type: "boolean", short: "v", help: "the version" }
}

// The keys of a record lose their names.
export const names = Object.keys(table) as ReadonlyArray<keyof Flags>

/** Flags with what they mean, one a line. Default: all. */
export const flagLines = (wanted: ReadonlyArray<keyof Flags> = names): ReadonlyArray<string> =>
  names
    .filter((name) => wanted.includes(name))
    .map((name) => {
      const { help, short, value } = table[name]
      const flag = `${short === undefined ? "    " : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`
      return `  ${flag.padEnd(26)} ${help}`
    })
