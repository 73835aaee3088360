/** Commands of the chat prompt, such as `/help`. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { existsSync } from "node:fs"
import * as Nearest from "../../core/Nearest.js"
import type { Service as Screen } from "../console/ConsoleScreen.js"
import * as Display from "../terminal/Display.js"
import type { Origin } from "../../core/Origin.js"
import { modeSaid } from "../../permission/PermissionCommand.js"
import { modes, type Mode } from "../../permission/PermissionState.js"
import type { Refusal, SessionHandle } from "../../host/SessionHandle.js"
import type { Listed } from "../../host/ModelList.js"
import type { Sessions } from "../../host/SessionName.js"
import type { Resumed } from "./ChatResume.js"
import type { Sources } from "./PermissionEditor.js"
import type { Page } from "../../journal/SessionStore.js"
import * as ServerPrompts from "../../mcp/ServerPrompts.js"
import * as CallEnd from "../view/CallEnd.js"
import * as JobReport from "../view/JobReport.js"
import * as StatusLine from "../view/StatusLine.js"
import type * as AgentOutline from "../view/AgentOutline.js"
import * as SessionReport from "../view/SessionReport.js"
import type * as ChatFiles from "./ChatFiles.js"
import type * as ChatJobs from "./ChatJobs.js"
import * as ChatPast from "./ChatPast.js"
import * as TodoLines from "../view/TodoLines.js"
import * as TreeReport from "../view/TreeReport.js"

export interface Options {
  readonly agent: SessionHandle
  readonly screen: Screen
  readonly outline: AgentOutline.AgentOutline
  /** What the status line says. */
  readonly facts: Effect.Effect<StatusLine.Facts>
  /** Who types, for the audit. Default: `console`. */
  readonly by?: string | undefined
  /** Files that go with the next line. */
  readonly files: ChatFiles.ChatFiles
  /** What allows and denies beside the session's own rules. Default: there is no list to edit. */
  readonly sources?: Sources | undefined
  /** Where the agent works: only sessions of that workspace can be gone on with. */
  readonly workspace?: string | undefined
  /** Is told the session that the chat is to go on with. */
  readonly resumed?: ((to: Resumed) => void) | undefined
  /** False where a question is open: then a command asks none of its own. Default: true. */
  readonly asks?: boolean | undefined
  /** What runs in the background. Default: nothing can. */
  readonly jobs?: ChatJobs.Own | undefined
  /** Whether the screen has a width. */
  readonly interactive: boolean
  /** Takes a model by `PROVIDER/MODEL` from the next model call on; yields its name. */
  readonly setModel: (ref: string) => Effect.Effect<string, Refusal>
  /** Clears the conversation. Default: it cannot be cleared here. */
  readonly clear?: (() => void) | undefined
  /** Another process runs the session. Default: this one does. */
  readonly attached?: boolean | undefined
  /** What is said in the settings about a model and cannot come true, as a sentence. Default: nothing. */
  readonly unmet?: ((ref: string) => string | undefined) | undefined
  /** The models that can be used here. Default: nobody knows. */
  readonly models?: Effect.Effect<ReadonlyArray<Listed>> | undefined
  /** What the session cost in all, if another process counts it. */
  readonly spent?: Effect.Effect<StatusLine.Facts["cost"]> | undefined
  /** The sessions that are kept. Default: none are. */
  readonly sessions?: Sessions | undefined
  /** What `/rewind` goes back to. Default: nothing is kept. */
  readonly past?: ChatPast.Past | undefined
  /** The prompts of tool servers. Default: there are none. */
  readonly prompts?: ServerPrompts.ServerPrompts | undefined
  /** Told of the fork that the chat is to go on with. */
  readonly rewound?: ((rewound: ChatPast.Rewound) => void) | undefined
}

/**
 * The command that a line is, without its slash. A line that begins with a path, such as `/etc/hosts is wrong` or
 * `/tmp is full`, is none.
 */
export const nameIn = (line: string): string | undefined => {
  if (ServerPrompts.isLine(line)) return "mcp"
  const [, name] = /^\/([a-z][a-z-]*)(?:\s|$)/.exec(line.trimEnd()) ?? []
  return name === undefined || (!isKnown(name) && existsSync(`/${name}`)) ? undefined : name
}

/** Whether a line is certainly for the program, also where an answer is asked for. */
export const isOne = (line: string): boolean => {
  if (ServerPrompts.isLine(line)) return true
  const name = nameIn(line)
  return name !== undefined && isKnown(name)
}

/** What is said of a line that would be a command, if there were one of that name. Nothing for any other line. */
export const notOne = (line: string): string | undefined => {
  const name = nameIn(line)
  return name === undefined || isKnown(name)
    ? undefined
    : `There is no command /${name}.${meant(name)} /help lists them.`
}

/** Runs a command, without its slash. */
export const run = (line: string, options: Options): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { agent, outline, screen } = options
    const [name = ""] = line.split(/\s+/)
    const argument = line.slice(name.length).trim()
    const columns = options.interactive ? yield* screen.columns : undefined
    if (options.attached === true && unattached.has(name)) return yield* screen.printLine(notAttached(`/${name}`))
    switch (name) {
      case "help":
        return yield* screen.printLine(help(columns).join("\n"))
      case "permissions": {
        const { sources } = options
        if (argument === "" && sources !== undefined && screen.source === "person" && options.asks !== false) {
          const PermissionEditor = yield* Effect.promise(() => import("./PermissionEditor.js"))
          return yield* PermissionEditor.open({ agent, screen, sources })
        }
        const outcome = yield* agent.permissions(argument, { by: options.by })
        return yield* screen.printLine(
          // A rule may hold what a model wrote.
          Display.reveal(
            Either.match(outcome, { onLeft: (reason) => reason, onRight: ({ lines }) => lines.join("\n") })
          )
        )
      }
      case "agents": {
        const agents = yield* agent.agents
        const receiver = agents.length === 1 ? undefined : labelOf(outline, (yield* agent.receiver).agent.origin)
        const lines = TreeReport.agents({ agents, outline, ledger: agent.ledger, columns, receiver })
        return yield* screen.printLine(lines.join("\n"))
      }
      case "select":
        return yield* select(argument, options)
      case "cancel":
        return yield* cancel(argument, options)
      case "attach":
        return yield* attach(argument, options)
      case "model":
        return yield* model(argument, options)
      case "mode":
        return yield* mode(argument, options)
      case "plan":
        yield* setMode("plan", options)
        return
      case "todos":
        return yield* todos(argument, options)
      case "status":
        return yield* screen.printLine(StatusLine.sentences(yield* options.facts).join("\n"))
      case "jobs": {
        const { jobs } = options
        if (jobs === undefined) return yield* screen.printLine("This session has no background commands.")
        const ChatJobs = yield* Effect.promise(() => import("./ChatJobs.js"))
        return yield* ChatJobs.run(argument, { ...jobs, agent, screen, columns })
      }
      case "cost":
        return yield* screen.printLine((yield* cost({ ...options, columns })).join("\n"))
      case "sessions":
        return yield* screen.printLine((yield* recent({ ...options, columns })).join("\n"))
      case "rewind": {
        const { past, rewound } = options
        const gone = yield* ChatPast.rewind(argument, { agent, screen, past, columns, asks: options.asks !== false })
        if (gone !== undefined) rewound?.(gone)
        return
      }
      case "undo":
        return yield* ChatPast.undo({ agent, screen, past: options.past })
      case "resume":
        return yield* resume(argument, options)
      case "compact":
        return yield* Effect.matchEffect(agent.compact, {
          onFailure: ({ message }) => screen.printLine(message),
          // What went is told as an event, as when it happens by itself.
          onSuccess: ({ removed, tokens }) =>
            removed > 0
              ? Effect.void
              : screen.printLine(
                  `There is nothing to shorten: the latest turns stay. The conversation has about ${CallEnd.count(tokens, "token")}.`
                )
        })
      case "clear":
        if (!(yield* agent.isIdle))
          return yield* screen.printLine("Wait until the agent is idle, or cancel with Ctrl-C.")
        options.clear?.()
        return yield* screen.printLine("The conversation is cleared.")
      default:
        return yield* screen.printLine(
          `${notOne(`/${line}`) ?? ""} To begin a message with a slash, put a blank before it.`
        )
    }
  })

/** What is said of a command that an attached chat does not have. */
export const notAttached = (what: string): string =>
  `${what} is not available in an attached chat. Use it in a chat that runs the session itself.`

/** What a command says to the agents, and whether plan mode begins with it. */
export interface Message {
  readonly text: string
  readonly plans: boolean
}

/** The message that a command is: the words behind `/plan`, and what `/init` asks for. Nothing for another line. */
export const messageIn = (line: string): Message | undefined => {
  const [, command, words = ""] = /^\/(plan|init)(?:\s+(\S[^]*))?$/.exec(line.trimEnd()) ?? []
  if (command === "init") return { text: words === "" ? initiation : `${initiation}\n\n${words}`, plans: false }
  return command === "plan" && words !== "" ? { text: words, plans: true } : undefined
}

/** The words of a prompt of a server, which the person sees first. Fails with a sentence. */
export const promptOf = (line: string, options: Options): Effect.Effect<string, string> => {
  const { attached = false, prompts, screen } = options
  if (attached) return Effect.fail(notAttached("A prompt of a server"))
  if (prompts === undefined)
    return Effect.fail("This session has no tool servers. assent mcp lists those of the settings.")
  return Effect.tap(prompts.words(line), (text) => {
    const rows = text.split("\n")
    const more = rows.length > maxRows ? [`… and ${rows.length - maxRows} more lines`] : []
    const said = [...rows.slice(0, maxRows).map((row) => row.slice(0, 1_000)), ...more].join("\n")
    return screen.printLine(Display.style(screen.color).dim(Display.reveal(said)))
  })
}

/** Changes the mode, and says why where that is not done. Yields whether it was. Plan mode ends no job: they are named. */
export const setMode = (mode: Mode, { agent, by = "console", jobs, screen }: Options): Effect.Effect<boolean> =>
  Effect.matchEffect(agent.permissions.setMode(mode, { by }), {
    onFailure: ({ message }) => Effect.as(screen.printLine(`The mode is unchanged. ${message}`), false),
    onSuccess: () => {
      const going = mode === "plan" ? JobReport.going(jobs?.jobs.list(agent.id) ?? []) : []
      return Effect.as(going.length === 0 ? Effect.void : screen.printLine(going.join("\n")), true)
    }
  })

/** What a key changes the mode to: plan, or back to asking; never to a mode that allows. */
export const otherMode = (agent: SessionHandle): Effect.Effect<Mode> =>
  Effect.map(agent.permissions.status, (status) => (status.mode === "plan" ? "ask" : "plan"))

/** How tab completes: commands, agents after `/select`, `/cancel` and `@`, profiles after `delegate`. */
export const completion =
  (
    outline: AgentOutline.AgentOutline,
    profiles: ReadonlyArray<string>,
    models: () => ReadonlyArray<string>,
    jobs: () => ReadonlyArray<string> = none,
    prompts: () => ReadonlyArray<ServerPrompts.Command> = () => []
  ) =>
  (line: string): ReadonlyArray<string> => {
    const labels = outline.nodes().flatMap(({ label, status }) => (status === "done" ? [] : [label]))
    const tools = new Set(outline.nodes().flatMap(({ calls }) => Array.from(calls.values(), ({ tool }) => tool)))
    const all = [
      ...commands.map(([usage]) => `/${usage.split(" ")[0] ?? ""}${usage.includes(" ") ? " " : ""}`),
      ...permissionVerbs.map((verb) => `/permissions ${verb}`),
      ...(line.startsWith("/model ") ? [...models(), "offline"].map((ref) => `/model ${ref}`) : []),
      ...[...labels, "none"].map((label) => `/select ${label}`),
      ...[...labels, ...tools].map((name) => `/cancel ${name}`),
      ...modes.map((mode) => `/mode ${mode}`),
      ...labels.map((label) => `/todos ${label}`),
      ...jobs().flatMap((id) => [`/jobs ${id}`, `/jobs stop ${id}`]),
      ...prompts().map(({ name, parameters }) => `/${name}${parameters.length === 0 ? "" : " "}`),
      ...labels.map((label) => `@${label} `),
      ...profiles.map((profile) => `delegate ${profile}: `)
    ]
    return /^(?:[/@]|delegate )/.test(line) ? all.filter((candidate) => candidate.startsWith(line)) : []
  }

/** The session id of a living agent that a person means. */
export const sessionOf = (outline: AgentOutline.AgentOutline, name: string): Option.Option<string> =>
  Option.map(outline.find(name), ({ sessionId }) => sessionId)

/** An agent's name on the screen. */
export const labelOf = (outline: AgentOutline.AgentOutline, { agent, sessionId }: Origin): string =>
  Option.match(outline.of(sessionId), { onNone: () => agent, onSome: ({ label }) => label })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none = () => []

/** Of a prompt of a server, on the screen. */
const maxRows = 20

const commands: ReadonlyArray<readonly [usage: string, what: string]> = [
  ["help", "this list"],
  [
    "permissions [COMMAND]",
    "list and edit the rules; or show, status, check, allow, deny, remove, default, suspend, resume, clear"
  ],
  ["agents", "list the agents, their state and their tokens"],
  ["select AGENT|none", "send your words to this agent; @AGENT WORDS does it once"],
  ["cancel [AGENT|TOOL|CALL]", "stop one agent or one running call; the others continue"],
  ["jobs [[stop] ID]", "list background jobs; show the output of one; stop one"],
  ["attach [FILE|none]", "send any file with your next words; @FILE sends one of the workspace"],
  ["model [PROVIDER/MODEL]", "change the main agent's model; without a name, pick one"],
  ["mode [ask|plan|deny|allow]", "set how calls are decided; Shift-Tab switches ask and plan"],
  ["plan [WORDS]", "only read from now on, until you approve a plan"],
  ["init [WORDS]", "let the agent write AGENTS.md; agents read it when a session begins"],
  ["todos [AGENT]", "show the todo list of the main agent or another one"],
  ["status", "show model, branch, mode, context and cost"],
  ["cost", "show model calls, tokens and costs by agent"],
  ["sessions", "list the last sessions"],
  ["resume [SESSION]", "resume another session, by id or its beginning; or pick one"],
  ["rewind [TURN]", "go back to the end of a turn, in a fork; without a number, pick one"],
  ["undo", "restore the files that file tools changed in the last turn"],
  ["compact", "shorten the conversation, now or before the next model call"],
  ["clear", "clear the conversation"],
  ["quit", "quit; Ctrl-D or twice Ctrl-C does the same"]
]

/** They need what is in the process that runs the session: its history, its checkpoints, its jobs, its files. */
const unattached: ReadonlySet<string> = new Set(["undo", "rewind", "clear", "jobs", "attach"])

const initiation =
  "Write AGENTS.md at the root of this workspace, for agents that will work here. Look first at the files that say how: " +
  "manifests, the README, the configuration of checks and of the build server. Say how to build, test and check, each as " +
  "the command that does it, one test alone too; how the code is laid out; what is done here in another way than usual; " +
  "and what must be left alone. Say nothing that you have not seen here, and nothing that is plain from a file's name. " +
  "Keep it under 80 lines. If AGENTS.md or rules for other tools (CLAUDE.md, .cursorrules and the like) are there, keep " +
  "what is true of them."

/** What a line can have besides words. */
const marks = [
  ["@FILE in a message", "sends the file with it"],
  ["/mcp:SERVER:PROMPT", "sends a prompt of a tool server, with the words behind it"],
  ["!COMMAND", "runs it as you; @! in a message sends its output"]
] as const

const names: ReadonlySet<string> = new Set([...commands.map(([usage]) => usage.split(" ")[0] ?? ""), "exit"])

const isKnown = (name: string): boolean => names.has(name)

const meant = (name: string): string => {
  const nearest = Nearest.of(name, [...names])
  return nearest === undefined ? "" : ` Did you mean /${nearest}?`
}

const permissionVerbs = [
  "show",
  "status",
  "check ",
  "why ",
  "allow ",
  "deny ",
  "remove ",
  "default ",
  "suspend ",
  "resume",
  "clear"
]

/** Columns in front of what is said about a command. */
const indent = 28

const help = (columns: number | undefined): ReadonlyArray<string> => {
  const rows = [...commands.map(([usage, what]) => [`/${usage}`, what] as const), ...marks]
  if (columns !== undefined && columns < 60) {
    return rows.flatMap(([usage, what]) => [usage, ...Display.wrap(what, columns - 2).map((row) => `  ${row}`)])
  }
  return rows.flatMap(([usage, what]) =>
    Display.wrap(what, (columns ?? Infinity) - indent).map(
      (row, line) => (line === 0 ? usage : "").padEnd(indent) + row
    )
  )
}

const cost = ({
  agent,
  columns,
  spent = Effect.succeed(undefined)
}: Pick<Options, "agent" | "spent"> & { readonly columns?: number | undefined }) =>
  Effect.map(spent, (all) => [
    ...TreeReport.cost({ ledger: agent.ledger, columns }),
    ...(all === undefined ? [] : [`In all ${StatusLine.money(all)}, as the server counts it.`])
  ])

const recent = ({
  agent,
  columns,
  sessions
}: Pick<Options, "agent" | "sessions"> & { readonly columns?: number | undefined }) =>
  Effect.matchEffect(sessions?.page({ limit: 10 }) ?? Effect.succeed<Page>({ sessions: [] }), {
    onFailure: ({ message }) => Effect.succeed([message]),
    onSuccess: ({ next, sessions }) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const lines = sessions.map((one) => {
          const isThis = one.rootSessionId === agent.id
          if (columns === undefined) return SessionReport.short(one, { isThis, now })
          return `${isThis ? "●" : " "} ${SessionReport.pickable(one, { columns: columns - 3, now, isThis })}`
        })
        const more = next === undefined ? [] : [`${columns === undefined ? "" : "… "}and more: assent sessions`]
        const hint =
          columns === undefined ? "To resume one: /resume ID, or the beginning of an id" : "To resume one: /resume"
        return lines.length === 0 ? ["This chat stores no sessions."] : [...lines, ...more, hint]
      })
  })

const resume = (argument: string, options: Options) =>
  Effect.gen(function* () {
    const { agent, screen, workspace } = options
    if (options.sessions === undefined || workspace === undefined)
      return yield* screen.printLine("This chat stores no sessions.")
    if (!(yield* agent.isIdle)) return yield* screen.printLine("Wait until the agent is idle, or cancel with Ctrl-C.")
    const { sessions } = options
    const ChatResume = yield* Effect.promise(() => import("./ChatResume.js"))
    const where = { workspace, present: agent.id }
    if (argument === "" && (screen.source === "pipe" || options.asks === false))
      return yield* screen.printLine("Name a session: /resume SESSION. /sessions lists them.")
    if (argument === "") {
      const picked = yield* ChatResume.pick(screen, sessions, where)
      return picked === undefined ? undefined : options.resumed?.({ session: picked })
    }
    const chosen = yield* ChatResume.choose(sessions, argument, where)
    if (Either.isLeft(chosen)) return yield* screen.printLine(`${chosen.left} /sessions lists them.`)
    return options.resumed?.({ session: chosen.right })
  }).pipe(Effect.catchAll(({ message }) => options.screen.printLine(message)))

const mode = (argument: string, options: Options) =>
  Effect.gen(function* () {
    const { agent, screen } = options
    const wanted = modes.find((mode) => mode === argument)
    if (wanted !== undefined) return yield* Effect.asVoid(setMode(wanted, options))
    const { mode } = yield* agent.permissions.status
    return yield* screen.printLine(
      argument === ""
        ? `${modeSaid(mode)} /mode ${modes.join("|")} changes it.`
        : `There is no mode ${Display.oneLine(argument, 40)}: ${modes.join(", ")}.`
    )
  })

const todos = (argument: string, { agent, outline, screen }: Options) =>
  Effect.gen(function* () {
    const target = Option.getOrElse(sessionOf(outline, argument), () => argument)
    const lines = yield* Effect.match(agent.todos(argument === "" ? undefined : target), {
      onFailure: ({ message }) => [message],
      onSuccess: TodoLines.all
    })
    return yield* screen.printLine(lines.join("\n"))
  })

const model = (argument: string, options: Options) =>
  Effect.gen(function* () {
    const { agent, asks, models = Effect.succeed([]), screen } = options
    const ChatModel = yield* Effect.promise(() => import("./ChatModel.js"))
    const listed = yield* models
    const present = (yield* agent.model).id
    let ref: string | undefined = argument
    if (argument === "") {
      if (screen.source === "pipe" || asks === false || !options.interactive)
        return yield* screen.printLine(ChatModel.rows(screen, listed, present).join("\n"))
      ref = yield* ChatModel.pick(screen, listed, present)
    }
    if (ref === undefined) return
    const meant = ChatModel.meant(
      ref,
      listed.map(({ ref }) => ref)
    )
    const hint = meant === undefined ? "" : ` ${meant}`
    const set = yield* Effect.either(options.setModel(ref))
    if (Either.isLeft(set)) return yield* screen.printLine(`${set.left.message}${hint}`)
    yield* screen.printLine(`The model is now ${set.right}.`)
    const unmet = options.unmet?.(ref)
    if (unmet !== undefined) yield* screen.printLine(unmet)
    // Nobody has asked its provider yet, and there are more models than anybody can list.
    if (hint !== "") yield* screen.printLine(Display.style(screen.color).dim(`Assent does not know it.${hint}`))
  })

const attach = (argument: string, { files, screen }: Options) =>
  Effect.gen(function* () {
    if (argument === "none") files.drop()
    if (argument !== "" && argument !== "none") {
      const given = yield* Effect.either(files.attach(argument))
      if (Either.isLeft(given)) return yield* screen.printLine(given.left)
    }
    const waiting = files.waiting()
    const lines = waiting.map(({ said }) => `  ${said}`)
    return yield* screen.printLine(
      (lines.length === 0
        ? ["No file goes with your next words. /attach FILE adds one."]
        : ["With your next words:", ...lines]
      ).join("\n")
    )
  })

const select = (argument: string, { agent, outline, screen }: Options) =>
  Effect.gen(function* () {
    if (argument === "") {
      const selected = yield* agent.selected
      const label = labelOf(outline, (yield* agent.receiver).agent.origin)
      const how = Option.isSome(selected) ? "selected" : "nobody is selected"
      return yield* screen.printLine(`What you type goes to ${label} (${how}).`)
    }
    const none = argument === "none"
    const target = Option.getOrElse(sessionOf(outline, argument), () => argument)
    const chosen = yield* Effect.either(agent.select(none ? undefined : target))
    if (Either.isLeft(chosen)) return yield* screen.printLine(chosen.left.message)
    return yield* screen.printLine(
      none
        ? "No agent is selected. Words go to the agent that works on a task, else to main."
        : `What you type goes to ${argument}.`
    )
  })

/** An agent's turn, or one call that runs: by its id, or by its tool where only one runs. */
const cancel = (argument: string, { agent, outline, screen }: Options) =>
  Effect.gen(function* () {
    const target = argument === "" ? Option.some<string>(agent.id) : sessionOf(outline, argument)
    const calls = outline
      .nodes()
      .flatMap((node) => [...node.calls.values()])
      .filter(({ id, tool }) => id === argument || tool === argument)
    const [call, ...others] = calls
    if (Option.isNone(target) && call === undefined)
      return yield* screen.printLine(`No agent and no running call is called ${argument}. /agents lists the agents.`)
    if (Option.isNone(target) && others.length > 0) {
      const lines = calls.map(({ id, summary }) => `${id}  ${Display.oneLine(summary, 60)}`)
      return yield* screen.printLine([`Several calls of ${argument} run. Cancel one by its id:`, ...lines].join("\n"))
    }
    const whom = Option.match(target, { onNone: () => ({ toolCallId: call?.id }), onSome: (target) => ({ target }) })
    return yield* Effect.matchEffect(agent.interrupt(whom), {
      onFailure: ({ message }) => screen.printLine(message),
      onSuccess: (end) =>
        Option.isNone(target) || Option.isSome(end)
          ? Effect.void
          : screen.printLine(`${argument === "" ? "main" : argument} does nothing.`)
    })
  })
