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
  readonly subject?: string | undefined
  readonly role?: ReadonlyArray<string> | undefined
  readonly may?: string | undefined
  readonly speed?: string | undefined
  readonly pause?: string | undefined
  readonly host?: string | undefined
  readonly port?: string | undefined
  readonly "allow-host"?: ReadonlyArray<string> | undefined
  readonly "token-file"?: string | undefined
  readonly cluster?: boolean | undefined
  readonly "insecure-runner"?: boolean | undefined
  readonly "model-keys"?: string | undefined
  readonly "own-model-keys"?: boolean | undefined
  readonly attach?: string | undefined
  readonly serve?: boolean | undefined
  readonly help?: boolean | undefined
  readonly version?: boolean | undefined
}

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
    help: "the provider's address, for an OpenAI-compatible server"
  },
  profile: { type: "string", value: "NAME", help: "the agent's profile, or none; assent profiles lists them" },
  mode: {
    type: "string",
    value: "MODE",
    help: "ask (the default), plan (only read until you approve a plan), deny or allow"
  },
  mediator: {
    type: "string",
    value: "WHO",
    help: "who answers a subagent first: forward (you, the default) or agent (its parent)"
  },
  channel: {
    type: "string",
    multiple: true,
    value: "CHANNEL",
    help: "who is asked: console, auto, halt, file:DIR or webhook:URL; repeat it, and the first answer wins"
  },
  "piped-answers": {
    type: "boolean",
    help: "piped lines on standard input answer questions"
  },
  policy: { type: "string", value: "FILE", help: "use this permissions file instead of yours and the workspace's" },
  store: {
    type: "string",
    value: "FILE",
    help: "where sessions are stored: a file, postgres://… or :memory: (nowhere)"
  },
  resume: {
    type: "string",
    value: "SESSION",
    help: "resume this session, by id or its beginning; without a name, pick one from a list"
  },
  continue: { type: "boolean", help: "resume the last session" },
  image: {
    type: "string",
    multiple: true,
    short: "i",
    value: "FILE",
    help: "send an image (PNG, JPEG, GIF, WebP) with the first words; repeatable"
  },
  file: {
    type: "string",
    multiple: true,
    value: "FILE",
    help: "send a PDF, a text or another file with the first words; repeatable"
  },
  workspace: {
    type: "string",
    value: "DIR",
    help: "where the agent works; the current directory by default; repeatable for serve"
  },
  sandbox: {
    type: "string",
    value: "MODE",
    help: "confine commands: auto (if possible, the default), require or off"
  },
  "allow-home": {
    type: "boolean",
    help: "let confined commands work in your home; keys are hidden, start files protected"
  },
  "add-dir": {
    type: "string",
    multiple: true,
    value: "DIR",
    help: "let the agent work in this directory, too; repeatable"
  },
  trust: {
    type: "boolean",
    help: "trust this workspace's files from now on; doctor shows what they allow"
  },
  yolo: { type: "boolean", help: "ask nobody and say yes; guards still deny" },
  vouch: {
    type: "string",
    multiple: true,
    value: "CHANNEL",
    help: "trust the names in answers through file, webhook or json"
  },
  reviewer: {
    type: "string",
    value: "MODEL",
    help: "a model that decides delegated calls before you are asked; none turns it off"
  },
  escalate: {
    type: "string",
    value: "DURATION",
    help: "ask the channels in a row, the next one after this time: the terminal, then each --channel"
  },
  timeout: { type: "string", value: "DURATION", help: "cancel the work after this long, such as 90s or 5m" },
  plain: { type: "boolean", help: "plain lines without marks and colours, for a screen reader" },
  "log-level": {
    type: "string",
    value: "LEVEL",
    help: "debug, info, warning, error or none; debug shows stack traces"
  },
  at: { type: "string", value: "TURN", help: "sessions fork: at the end of this turn; 0 is the beginning" },
  unused: {
    type: "string",
    value: "DURATION",
    help: "sessions prune: delete sessions that were unused for this time, such as 30d"
  },
  keep: { type: "string", value: "NUMBER", help: "sessions prune: keep this number of last used sessions" },
  limit: {
    type: "string",
    value: "NUMBER",
    help: "sessions list: this number of sessions; default 100, with --json all"
  },
  after: { type: "string", value: "SESSION", help: "sessions list: sessions that were used before this one" },
  all: { type: "boolean", help: "sessions list: sessions of all workspaces" },
  json: { type: "boolean", help: "JSON lines on standard output" },
  jsonl: { type: "boolean", help: "like --json, and JSON commands on standard input" },
  key: { type: "string", value: "FILE", help: "write and verify the audit with the key in this file" },
  subject: { type: "string", value: "NAME", help: "keys add: who answers with the key, as the audit names them" },
  role: {
    type: "string",
    multiple: true,
    value: "ROLE",
    help: "keys add: a role of theirs, for calls that several people have to allow; repeatable"
  },
  may: {
    type: "string",
    value: "VERBS",
    help: "keys add: send,answer,cancel,read,permissions,operate or some of them; answer:Approve is to answer one kind of request; all by default"
  },
  speed: {
    type: "string",
    value: "SPEED",
    help: "sessions replay: times as fast, or max; default 1 at a terminal, else max"
  },
  pause: { type: "string", value: "DURATION", help: "sessions replay: the longest pause; default 2s" },
  host: { type: "string", value: "ADDRESS", help: "serve: listen on this address; 127.0.0.1 by default" },
  port: { type: "string", value: "PORT", help: "serve: listen on this port; 4096 by default, 0 takes a free one" },
  "allow-host": {
    type: "string",
    multiple: true,
    value: "NAME",
    help: "serve: answer under this name, with its port, as a proxy in front has it; may be given again"
  },
  "token-file": { type: "string", value: "FILE", help: "the file with the token of a server; serve makes it" },
  serve: { type: "boolean", help: "show the run to others, as assent serve does; they can answer, too" },
  attach: {
    type: "string",
    value: "URL",
    help: "use a session that assent serve runs at this address; without an address, at your own server"
  },
  cluster: {
    type: "boolean",
    help: "serve: be a node of a cluster over the PostgreSQL database in ASSENT_DATABASE_URL; ASSENT_NODE_ADDRESS says where the other nodes reach it"
  },
  "insecure-runner": {
    type: "boolean",
    help: "serve --cluster: let nodes reach each other over a public address, where others can read what they say"
  },
  "model-keys": {
    type: "string",
    value: "DIR",
    help: "serve --cluster: a directory with the tenants' own model keys, such as DIR/acme/ANTHROPIC_API_KEY"
  },
  "own-model-keys": {
    type: "boolean",
    help: "serve --cluster: a tenant without its own model key has none, and not that of the server"
  },
  help: { type: "boolean", short: "h", help: "this text" },
  version: { type: "boolean", short: "v", help: "the version" }
}

/** The flags of the help about the whole program. Each command lists all of its own. */
export const common: ReadonlyArray<keyof Flags> = [
  "model",
  "mode",
  "resume",
  "continue",
  "image",
  "workspace",
  "add-dir",
  "yolo",
  "json",
  "help",
  "version"
]

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
