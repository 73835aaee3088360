/**
 * The commands, their first words, and the flags that each of them takes: what parsing refuses, what help tells, and what
 * shells complete are all read here.
 */
import * as Nearest from "../../core/Nearest.js"
import * as Flags from "./Flags.js"
import type { CommandName } from "../../host/CommandName.js"

type FlagName = keyof Flags.Flags

/** Its words, what they do, and the flags that it takes beside those of its command. */
export type Verb = readonly [usage: string, what: string, flags?: ReadonlyArray<FlagName>]

export interface Command {
  /** Behind the command's name. */
  readonly usage: string
  readonly what: string
  /** Its first words; the first of them is meant where none is given. */
  readonly verbs?: ReadonlyArray<Verb>
  /** The flags of all its verbs, beside {@link always}. */
  readonly flags: ReadonlyArray<FlagName>
  readonly examples: ReadonlyArray<string>
}

/** These are about what is printed, and every command prints. */
export const always = ["plain", "log-level", "help", "version"] as const satisfies ReadonlyArray<FlagName>

const session = ["model", "base-url", "profile", "resume", "continue", "workspace", "add-dir", "store"] as const
const authority = [
  "channel",
  "piped-answers",
  "escalate",
  "vouch",
  "reviewer",
  "policy",
  "mode",
  "mediator",
  "sandbox",
  "allow-home",
  "trust",
  "yolo",
  "key"
] as const
const judged = [
  "policy",
  "mode",
  "channel",
  "escalate",
  "reviewer",
  "yolo",
  "sandbox",
  "allow-home",
  "add-dir"
] as const

export const commands: { readonly [Name in CommandName]: Command } = {
  chat: {
    usage: "",
    what: "chat at a terminal; the default",
    flags: [...session, ...authority, "image", "file", "attach", "token-file"],
    examples: [
      "assent",
      "assent chat --model anthropic/claude-sonnet-5-5",
      "assent chat --continue",
      "assent --resume",
      "assent chat --attach --continue"
    ]
  },
  run: {
    usage: "[TASK]",
    what: "do one task from words and standard input; print the answer",
    flags: [
      ...session,
      ...authority,
      "image",
      "file",
      "timeout",
      "json",
      "jsonl",
      "serve",
      "host",
      "port",
      "allow-host",
      "token-file"
    ],
    examples: [
      'assent run "say what this project is"',
      'assent run -i shot.png "what is wrong here?"',
      "assent run --json < task.txt",
      "git diff | assent run",
      'git diff | assent run "is this right?"'
    ]
  },
  permissions: {
    usage: "[COMMAND]",
    what: "show and check permissions",
    verbs: [
      ["show", "the rules in force, and their files", judged],
      ["status", "the mode and suspensions", judged],
      ["check TOOL [ARGUMENTS]", "how Assent would decide a call; all words behind TOOL belong to it", judged],
      ["why TOOL [ARGUMENTS]", "the same as a sentence", judged],
      ["try FILE", "past calls that another policy would have decided differently", ["mode", "sandbox", "store"]],
      ["remove RULE", "remove a rule that a p at a question added"]
    ],
    flags: ["workspace", "trust", "key"],
    examples: [
      "assent permissions",
      "assent permissions check run_command git push",
      "assent permissions try stricter.json"
    ]
  },
  profiles: {
    usage: "[COMMAND]",
    what: "list and check the recipes of subagents",
    verbs: [
      ["list", "all profiles"],
      ["show NAME", "one profile, as Assent understands it"],
      ["check [FILE…]", "the problems of files"]
    ],
    flags: ["model", "workspace", "trust", "key"],
    examples: ["assent profiles", "assent profiles show explore"]
  },
  mcp: {
    usage: "[COMMAND]",
    what: "tool servers of the Model Context Protocol",
    verbs: [
      ["list", "the servers of config.json"],
      ["check NAME", "start one of them, and show what it offers"],
      ["login NAME", "sign in to it, with your browser"],
      ["logout NAME", "delete what that stored"]
    ],
    flags: ["workspace", "sandbox", "allow-home", "trust", "key"],
    examples: ["assent mcp", "assent mcp check github"]
  },
  sessions: {
    usage: "[COMMAND]",
    what: "list, resume, answer, fork and delete sessions",
    verbs: [
      ["list", "the last sessions first", ["limit", "after", "all", "json"]],
      ["waiting", "open questions of all workspaces", ["json"]],
      ["show SESSION", "the conversation"],
      ["answer SESSION [REQUEST [ANSWER]]", "answer its open questions", ["json"]],
      ["replay SESSION", "play it again as you saw it", ["speed", "pause", "json"]],
      ["turns SESSION", "its turns by number, for --at", ["json"]],
      ["fork SESSION", "a new session from its end, or from the end of a turn (--at)", ["at", "json"]],
      ["script SESSION", "a script that plays it without a model"],
      ["export SESSION", "everything as JSON"],
      ["delete SESSION", "delete it; its audit stays"],
      ["prune", "delete unused sessions (--unused), or all but the last (--keep)", ["unused", "keep"]],
      ["adopt WORKSPACE|SESSION", "take over the sessions of a moved workspace"],
      ["import FILE", "import sessions of another store or an export", ["model"]]
    ],
    flags: ["workspace", "store", "trust", "key"],
    examples: ["assent sessions", "assent sessions replay SESSION --speed 4", "assent sessions fork SESSION --at 3"]
  },
  audit: {
    usage: "[COMMAND]",
    what: "show and verify the decisions",
    verbs: [
      ["list", "the sessions with a trail"],
      ["show [SESSION]", "the decisions of a session", ["key"]],
      ["verify [SESSION]", "find changes of a trail", ["key"]]
    ],
    flags: ["workspace", "store"],
    examples: ["assent audit", "assent audit verify"]
  },
  answer: {
    usage: "DIR",
    what: "answer the questions of a file channel",
    flags: [],
    examples: ["assent answer /tmp/questions"]
  },
  serve: {
    usage: "[DIR…]",
    what: "sessions over HTTP, in the workspace and these directories; assent serve token rotate makes a new token",
    flags: [
      "host",
      "port",
      "allow-host",
      "token-file",
      "cluster",
      "insecure-runner",
      "model-keys",
      "own-model-keys",
      "model",
      "base-url",
      "profile",
      "mode",
      "workspace",
      "store",
      "sandbox",
      "allow-home",
      "policy",
      "reviewer",
      "mediator",
      "key"
    ],
    examples: [
      "assent serve",
      "assent serve --port 0 ~/one ~/two",
      "assent serve token rotate",
      "assent serve --cluster"
    ]
  },
  keys: {
    usage: "[COMMAND]",
    what: "who may use a cluster, for which tenant, and how much",
    verbs: [
      ["list", "the keys, without their texts"],
      ["add TENANT", "a new key, which is shown once", ["subject", "role", "may"]],
      ["revoke KEY", "the key counts no more"],
      ["limit TENANT [LIMIT=NUMBER…]", "show or set limits: sessions, turns at work, tokens a day, requests a second"],
      ["rotate-node-secret", "a new secret between the nodes; the former one counts for 30 seconds more"]
    ],
    flags: ["store"],
    examples: [
      "assent keys add acme --subject ann --role ops",
      "assent keys add acme --subject reviewer --may read,answer:Approve",
      "assent keys limit acme sessions=100 turns=4 tokens=5000000"
    ]
  },
  acp: {
    usage: "",
    what: "an agent for editors, over the Agent Client Protocol on standard input and output",
    flags: [
      "model",
      "base-url",
      "profile",
      "add-dir",
      "store",
      "reviewer",
      "policy",
      "mode",
      "mediator",
      "sandbox",
      "allow-home",
      "trust",
      "key",
      "attach",
      "token-file"
    ],
    examples: ["assent acp", "assent acp --model anthropic/claude-sonnet-5-5", "assent acp --attach"]
  },
  adopt: {
    usage: "-- COMMAND…",
    what: "a chat with another agent over the Agent Client Protocol; Assent decides what it asks for",
    flags: ["profile", "resume", "continue", "workspace", "add-dir", "store", ...authority],
    examples: ["assent adopt -- opencode acp", "assent adopt --policy strict.json -- npx some-agent-acp"]
  },
  doctor: {
    usage: "",
    what: "check models, keys, sandbox, terminal and store",
    flags: ["model", "base-url", "workspace", "add-dir", "store", "sandbox", "allow-home", "policy", "trust"],
    examples: ["assent doctor"]
  },
  completion: {
    usage: "SHELL",
    what: "print the completion script of a shell",
    verbs: [
      ["bash", 'eval "$(assent completion bash)" in ~/.bashrc'],
      ["zsh", 'eval "$(assent completion zsh)" in ~/.zshrc, behind compinit'],
      ["fish", "assent completion fish > ~/.config/fish/completions/assent.fish"]
    ],
    flags: [],
    examples: ['eval "$(assent completion bash)"']
  },
  help: {
    usage: "[COMMAND|settings]",
    what: "help, about a command, or about the settings",
    flags: [],
    examples: ["assent help run", "assent help settings"]
  }
}

/** The first word of a verb's usage. */
export const nameOf = ([usage]: Verb): string => usage.split(" ")[0] ?? usage

/** The verb that a command's words begin with, or mean by saying none; nothing where there are none, or not this one. */
export const verbOf = (name: CommandName, [word]: ReadonlyArray<string>): string | undefined => {
  const known = (commands[name].verbs ?? []).map(nameOf)
  return word === undefined ? known[0] : known.find((one) => one === word)
}

/** The flags that count for a command with these words; where its first one is no verb, those of all verbs. */
export const flagsOf = (name: CommandName, words: ReadonlyArray<string>): ReadonlyArray<FlagName> => {
  const { flags, verbs = [] } = commands[name]
  const verb = verbOf(name, words)
  const meant = verb === undefined ? verbs : verbs.filter((one) => nameOf(one) === verb)
  return [...new Set([...flags, ...meant.flatMap(([, , own = []]) => own), ...always])]
}

/** The flags that count for a command with some words. */
export const allFlagsOf = (name: CommandName): ReadonlyArray<FlagName> => {
  const { flags, verbs = [] } = commands[name]
  return [...new Set([...flags, ...verbs.flatMap(([, , own = []]) => own), ...always])]
}

/** What takes a flag: commands, or those of their verbs that do. */
export const takersOf = (flag: FlagName): ReadonlyArray<string> =>
  Object.entries(commands).flatMap(([name, { flags, verbs = [] }]) => {
    if (flags.includes(flag)) return [name]
    const takers = verbs.filter(([, , own = []]) => own.includes(flag))
    return takers.length === 0 ? [] : [`${name} ${takers.map(nameOf).join("|")}`]
  })

/** What a command may be followed by, for a person who gave it something else. */
export const takes = (name: CommandName, [word = ""]: ReadonlyArray<string>): string => {
  const { verbs = [] } = commands[name]
  const known = verbs.map(nameOf)
  const nearest = known.includes(word) ? undefined : Nearest.of(word, known)
  const hint = nearest === undefined ? "" : ` Did you mean ${nearest}?`
  return `assent ${name} takes: ${verbs.map(usageOf).join("; ")}.${hint}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const usageOf = ([usage, , flags = []]: Verb): string =>
  [usage, ...flags.map((flag) => `[${[`--${flag}`, Flags.table[flag].value ?? []].flat().join(" ")}]`)].join(" ")
