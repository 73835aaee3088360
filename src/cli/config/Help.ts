/** What the commands are for, as `assent help` tells it and as shells complete it. */
import * as Nearest from "../../core/Nearest.js"
import * as Flags from "./Flags.js"

export interface CommandHelp {
  /** Behind the command's name. */
  readonly usage: string
  readonly what: string
  /** Its first words, and what each does. */
  readonly verbs?: ReadonlyArray<readonly [usage: string, what: string]>
  /** The flags that mean something to it. */
  readonly flags: ReadonlyArray<keyof Flags.Flags>
  readonly examples: ReadonlyArray<string>
}

const place = ["workspace", "store", "log-level"] as const
const session = ["model", "base-url", "profile", "resume", "continue", "workspace", "add-dir", "store"] as const
const authority = [
  "channel",
  "escalate",
  "vouch",
  "reviewer",
  "policy",
  "mode",
  "mediator",
  "sandbox",
  "trust",
  "yolo",
  "key"
] as const

export const commands: { readonly [Name in Flags.CommandName]: CommandHelp } = {
  chat: {
    usage: "",
    what: "a person at a terminal; the default",
    flags: [...session, ...authority, "image", "file", "plain", "log-level"],
    examples: ["assent", "assent chat --model anthropic/claude-sonnet-4-5", "assent chat --continue", "assent --resume"]
  },
  run: {
    usage: "[TASK]",
    what: "one task, from the words or from standard input, or with it; the answer on standard output",
    flags: [...session, ...authority, "image", "file", "timeout", "json", "jsonl", "plain", "log-level"],
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
    what: "what the policy says",
    verbs: [
      ["show", "the rules in force, and where each comes from"],
      ["check TOOL [ARGUMENTS]", "how a call would be decided"],
      ["why TOOL [ARGUMENTS]", "the same in words for a person"],
      ["remove RULE", "take back a rule that was kept for this project at a prompt"],
      ["try FILE", "what a policy would have decided otherwise here"]
    ],
    flags: ["policy", "channel", "escalate", "reviewer", "workspace", "store", "sandbox", "trust", "log-level"],
    examples: [
      "assent permissions",
      "assent permissions check run_command git push",
      "assent permissions try stricter.json"
    ]
  },
  profiles: {
    usage: "[COMMAND]",
    what: "the recipes of subagents",
    verbs: [
      ["list", "all there are"],
      ["show NAME", "one of them, with what it comes to"],
      ["check [FILE…]", "what is wrong with files"]
    ],
    flags: ["workspace", "trust", "log-level"],
    examples: ["assent profiles", "assent profiles show explore"]
  },
  sessions: {
    usage: "[COMMAND]",
    what: "what was said and done here",
    verbs: [
      ["list", "the last ones first"],
      ["waiting", "those that wait for an answer"],
      ["show SESSION", "what was said"],
      ["answer SESSION", "answer what it waits for"],
      ["replay SESSION", "show it again as it happened"],
      ["turns SESSION", "its turns, to go back to one of them"],
      ["fork SESSION", "a new session that goes on from it, or from the end of a turn (--at)"],
      ["script SESSION", "a script that plays it without a model"],
      ["export SESSION", "all of it as JSON"],
      ["delete SESSION", "forget it; its audit stays"],
      ["prune", "delete what was not used for long (--unused), or all but the last (--keep)"],
      ["adopt [WORKSPACE]", "take over the sessions of a workspace that moved"],
      ["import FILE", "take over those of another store"]
    ],
    flags: [...place, "at", "limit", "after", "all", "json", "speed", "pause", "unused", "keep", "key"],
    examples: ["assent sessions", "assent sessions replay SESSION --speed 4", "assent sessions fork SESSION --at 3"]
  },
  audit: {
    usage: "[COMMAND]",
    what: "what was decided here",
    verbs: [
      ["list", "the sessions that have a trail"],
      ["show SESSION", "its decisions"],
      ["verify [SESSION]", "whether a trail was changed"]
    ],
    flags: ["workspace", "key", "json", "log-level"],
    examples: ["assent audit", "assent audit verify"]
  },
  answer: {
    usage: "DIR",
    what: "answer by hand what a file channel asks",
    flags: ["log-level"],
    examples: ["assent answer /tmp/questions"]
  },
  doctor: {
    usage: "",
    what: "what works here: models, keys, sandbox, terminal, store",
    flags: ["model", "base-url", "workspace", "store", "sandbox", "policy"],
    examples: ["assent doctor"]
  },
  completion: {
    usage: "SHELL",
    what: "a script that lets your shell complete these words",
    verbs: [
      ["bash", 'eval "$(assent completion bash)" in ~/.bashrc'],
      ["zsh", 'eval "$(assent completion zsh)" in ~/.zshrc, behind compinit'],
      ["fish", "assent completion fish > ~/.config/fish/completions/assent.fish"]
    ],
    flags: [],
    examples: ['eval "$(assent completion bash)"']
  },
  help: {
    usage: "[COMMAND]",
    what: "this, or more about one command",
    flags: [],
    examples: ["assent help run"]
  }
}

/** All commands and all flags. */
export const all = (): string => {
  const rows = Flags.commands.map((name): readonly [string, string] => {
    const { usage, verbs = [], what } = commands[name]
    const words =
      name === "completion" || verbs.length === 0 ? "" : `: ${verbs.map(([verb]) => verb.split(" ")[0]).join(", ")}`
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
  const { examples, flags, usage, verbs = [], what } = commands[name]
  return [
    `assent ${name} ${usage}`.trimEnd(),
    "",
    `  ${what}`,
    ...(verbs.length === 0 ? [] : ["", ...verbs.map(([verb, does]) => `  ${verb.padEnd(26)} ${does}`)]),
    ...(flags.length === 0 ? [] : ["", "Flags:", ...Flags.flagLines(flags)]),
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
