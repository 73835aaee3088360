/**
 * A person at a terminal: lines go to the agents, events come back as a transcript.
 *
 * Enter interjects while an agent works; the prompt names the receiver when it is not obvious. Ctrl-C and escape cancel
 * the turn and give back the lines that no agent has read. A second Ctrl-C quits, and so does one more when nothing
 * runs. Commands work where a question is open, too.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ConsoleScreen, Interrupt, type Service as Screen } from "../console/ConsoleScreen.js"
import type * as PathRank from "../../core/PathRank.js"
import * as Display from "../terminal/Display.js"
import * as Glyphs from "../terminal/Glyphs.js"
import type * as Jobs from "../../builtin/Jobs.js"
import type { SessionHandle } from "../../host/SessionHandle.js"
import * as ChatAhead from "./ChatAhead.js"
import * as ChatCommand from "./ChatCommand.js"
import * as ChatFiles from "./ChatFiles.js"
import * as ChatLeaving from "./ChatLeaving.js"
import * as ChatPrompt from "./ChatPrompt.js"
import * as ChatStatus from "./ChatStatus.js"
import type * as ChatJobs from "./ChatJobs.js"
import * as OwnCommand from "./OwnCommand.js"
import type { Resumed } from "./ChatResume.js"
import type * as ChatPast from "./ChatPast.js"
import * as TurnEnd from "../../event/TurnEnd.js"
import type * as SandboxSettings from "../../host/SandboxSettings.js"
import * as ExitCode from "../../host/ExitCode.js"
import type * as AgentOutline from "../view/AgentOutline.js"
import * as Output from "../process/Output.js"
import * as Worded from "../process/Worded.js"
import * as Follow from "../view/Follow.js"
import * as ServerPrompts from "../../mcp/ServerPrompts.js"
import * as JobReport from "../view/JobReport.js"
import * as Transcript from "../view/Transcript.js"

export interface Options {
  readonly agent: SessionHandle
  readonly setModel: ChatCommand.Options["setModel"]
  readonly clear?: ChatCommand.Options["clear"]
  readonly attached?: ChatCommand.Options["attached"]
  /** Whether there is a screen, which keeps what is typed apart from what is printed. */
  readonly interactive: boolean
  /** Waits for a Ctrl-C that no screen hears. Default: a screen hears it. */
  readonly interrupted?: Effect.Effect<void> | undefined
  /** Whether words are drawn as Markdown, on a terminal that can draw. Default: false. */
  readonly drawn?: boolean | undefined
  readonly spent?: ChatCommand.Options["spent"]
  /** The sessions that are kept. Default: none are. */
  readonly sessions?: ChatCommand.Options["sessions"]
  /** What `/rewind` goes back to. Default: nothing is kept. */
  readonly past?: ChatCommand.Options["past"]
  /** What was said last before this time is told at the beginning; in milliseconds since the epoch. Default: nothing. */
  readonly tellsBefore?: number | undefined
  /** The fork that this chat goes on with, after another one. */
  readonly goingOn?: ChatPast.Rewound | undefined
  /** How commands run here. Default: not shown. */
  readonly commands?: Effect.Effect<SandboxSettings.Sign> | undefined
  /** Where the agent works. Default: no other session can be gone on with. */
  readonly workspace?: string | undefined
  /** What allows and denies beside the session's own rules. Default: there is no list to edit. */
  readonly sources?: ChatCommand.Options["sources"]
  /** Who types, for the audit. */
  readonly by?: string | undefined
  /** Keeps a submitted line for later sessions. Default: nothing is kept. */
  readonly remember?: ((line: string) => Effect.Effect<void>) | undefined
  /** Files that go with lines. Default: none do. */
  readonly files?: ChatFiles.ChatFiles | undefined
  /** Runs a command of the person's own. Default: none is. */
  readonly ownCommand?: OwnCommand.Run | undefined
  /** The branch of the workspace's repository, as its files say now. Default: none. */
  readonly branch?: (() => string | undefined) | undefined
  /** Whether there is a line with the model, the context and the money below the prompt. Default: false. */
  readonly statusLine?: boolean | undefined
  /** Why nobody is asked what mode `ask` asks. Default: somebody is. */
  readonly unasked?: string | undefined
  readonly unmet?: ChatCommand.Options["unmet"]
  /** The models that can be used here; and those of them that are known at once, for completion. */
  readonly models?: ChatCommand.Options["models"]
  readonly namedModels?: (() => ReadonlyArray<string>) | undefined
  /** What runs in the background. Default: nothing can. */
  readonly jobs?: ChatJobs.Own | undefined
  /** Waits until the person leaves at a question, which stays open; yields what becomes of it. Default: it never does. */
  readonly leftOpen?: Effect.Effect<string> | undefined
  /** The prompts of tool servers. Default: there are none. */
  readonly prompts?: ServerPrompts.ServerPrompts | undefined
  /** Names of profiles, for completion. */
  readonly profiles?: ReadonlyArray<string> | undefined
}

/** The session that a chat goes on with after this one. */
export type Next = ChatPast.Rewound | Resumed

/** Runs until the person quits, or goes on with another session; yields the exit code, or that session. */
export const run = (options: Options): Effect.Effect<number | Next, never, ConsoleScreen | Scope.Scope> =>
  Effect.gen(function* () {
    const { agent, files = ChatFiles.none, interactive } = options
    const drawn = yield* ConsoleScreen
    const isRead = Output.isTerminal("stdout")
    const screen = isRead ? Worded.of(drawn) : drawn
    let sign: string | undefined
    let drawing: Transcript.Drawing | undefined
    const { color } = screen
    // Loaded by the first turn or by a command of the person's own before it, and the same for both.
    const loaded = yield* Effect.cached(
      Effect.map(
        Effect.promise(() => Promise.all([import("../view/AgentText.js"), import("../view/Printed.js")])),
        ([AgentText, Printed]) =>
          (drawing = { speech: AgentText.make(screen), printed: Printed.make({ color, opens: true }) })
      )
    )
    // Where nothing is drawn, words are printed as they come.
    const printing = Effect.promise(async () => ({
      printed: (await import("../view/Printed.js")).make({ color, signs: Glyphs.of(screen) })
    }))
    const transcript = Transcript.make({
      color,
      sign: () => sign,
      signs: Glyphs.of(screen),
      isPastTold: options.tellsBefore !== undefined
    })
    const { outline } = transcript
    let next: Next | undefined
    const goTo = (other: Next) => (next = other)
    const status = ChatStatus.make({
      agent,
      screen,
      shown: interactive && options.statusLine === true,
      branch: options.branch ?? (() => undefined),
      unasked: options.unasked,
      jobs: () => options.jobs?.jobs.list(agent.id).filter(({ ended }) => ended === undefined).length ?? 0
    })
    const { facts } = status
    const commands: ChatCommand.Options = { ...options, files, screen, outline, facts, rewound: goTo, resumed: goTo }
    const prompt = Effect.zipRight(yield* ChatPrompt.make(agent, screen, outline), status.show)
    // What comes out of a pipe may be anybody's words.
    const own =
      options.ownCommand === undefined || screen.source !== "person"
        ? undefined
        : OwnCommand.make({
            screen: drawn,
            told: screen,
            files,
            run: options.ownCommand,
            drawing:
              options.drawn === true
                ? Effect.map(loaded, (drawing) => {
                    transcript.draw(drawing)
                    return { printed: drawing.printed, draw: drawn.live(transcript.live) }
                  })
                : undefined,
            afterwards: Effect.zipRight(Effect.sync(status.touched), prompt)
          })
    // Written by the transcript, once a turn; read by the loop only when input is a pipe.
    const turnShown = yield* Queue.sliding<void>(1)
    // Held while words are sent: what is said of them comes before what becomes of them.
    const sending = yield* Effect.makeSemaphore(1)
    // Completed when what comes first on the screen is there; what happens meanwhile waits in the ring.
    const introduced = yield* Deferred.make<void>()
    const shown = yield* Effect.forkScoped(
      Effect.zipRight(
        Deferred.await(introduced),
        Follow.follow(agent.events, behind(sending, interactive ? drawn : screen), transcript, {
          interactive,
          drawing: options.drawn === true ? loaded : isRead ? printing : undefined,
          afterTurn: Queue.offer(turnShown, undefined),
          afterAll: prompt,
          seen: status.seen
        })
      )
    )
    const jobs = () => options.jobs?.jobs.list(agent.id).map(({ id }) => id) ?? []
    const models = options.namedModels ?? (() => [])
    let prompts: ReadonlyArray<ServerPrompts.Command> = []
    if (options.prompts !== undefined) {
      yield* Effect.forkScoped(
        Stream.runForEach(options.prompts.commands, (commands) => Effect.sync(() => (prompts = commands)))
      )
    }
    const completion = ChatCommand.completion(outline, options.profiles ?? [], models, jobs, () => prompts)
    yield* complete(screen, outline, files, completion)
    yield* options.goingOn === undefined ? greet(screen, agent) : welcomeBack(screen, options.goingOn, interactive)
    if (options.tellsBefore !== undefined && options.past !== undefined)
      yield* tellPast(screen, options.past, options.tellsBefore, options)
    yield* Deferred.succeed(introduced, undefined)
    if (interactive && options.commands !== undefined) {
      // Forked, so that a person can type meanwhile.
      yield* Effect.forkScoped(
        Effect.flatMap(options.commands, ({ remark, sentence, words }) => {
          sign = words
          if (options.goingOn !== undefined) return Effect.void
          const style = Display.style(screen.color)
          return screen.printLine(style.dim(remark ?? sentence ?? `${words.charAt(0).toUpperCase()}${words.slice(1)}.`))
        })
      )
    }

    if (options.drawn === true) yield* Effect.forkScoped(Effect.delay(ChatAhead.load, "600 millis"))

    yield* prompt

    let exit: number = ExitCode.completed
    let lastInterrupt = -Infinity
    const quit = Effect.gen(function* () {
      yield* agent.shutdown
      yield* Fiber.await(shown)
      return Option.exists(yield* agent.done, TurnEnd.is("Halted")) ? ExitCode.halted : exit
    })
    /** Yields whether anybody got the words. */
    const tell = ({ plans, text }: ChatCommand.Message): Effect.Effect<boolean> =>
      Effect.flatMap(plans ? ChatCommand.setMode("plan", commands) : Effect.succeed(true), (isSet) =>
        isSet ? send(text, { agent, files, outline, screen, sending }) : Effect.succeed(false)
      )
    /** Sends the prompt of a server that a line calls. Yields whether anybody got it. */
    const tellPrompt = (line: string): Effect.Effect<boolean> =>
      Effect.matchEffect(ChatCommand.promptOf(line, commands), {
        onFailure: (sentence) => Effect.as(screen.printLine(Display.reveal(sentence)), false),
        onSuccess: (text) => tell({ text, plans: false })
      })
    // Completed by a command in a dialog; the loop may be waiting for the turn that asks.
    const quitting = yield* Deferred.make<void>()
    const isPlanning = Effect.map(agent.permissions.status, ({ mode }) => mode === "plan")
    yield* screen.setCommands((line) => {
      if (!ChatCommand.isOne(line)) return undefined
      const text = line.trim()
      return isQuit(text)
        ? Effect.asVoid(Deferred.succeed(quitting, undefined))
        : Effect.gen(function* () {
            if (ServerPrompts.isLine(text)) return yield* Effect.asVoid(tellPrompt(text))
            const message = ChatCommand.messageIn(text)
            if (message === undefined) yield* ChatCommand.run(text.slice(1), { ...commands, asks: false })
            const isPlan = /^\/plan\b/.test(text)
            if (isPlan || message !== undefined) {
              const isDone = message === undefined ? yield* isPlanning : yield* tell(message)
              if (isDone && !(yield* agent.isIdle))
                yield* screen.printLine(Display.style(screen.color).dim(atQuestion(isPlan, message !== undefined)))
            }
            status.touched()
            yield* next === undefined ? prompt : Deferred.succeed(quitting, undefined)
          })
    })
    // The scope ends the agent as it stands, and nothing that happens then is shown.
    const leave = (to: Next) => Effect.as(tellStopped(screen, options.jobs?.jobs.list(agent.id) ?? []), to)
    const stop = Effect.suspend((): Effect.Effect<number | Next> => (next === undefined ? quit : leave(next)))
    const leaving = { agent, screen, outline, left: options.leftOpen ?? Effect.never }
    const left = yield* Effect.forkScoped(ChatLeaving.atRest(leaving))
    // Of what is piped, a line may refer to the turn before it. A person does not wait for turns.
    const waits = screen.source === "pipe"
    // The terminal has dropped what was typed with it.
    const interrupted = Effect.zipRight(options.interrupted ?? Effect.never, screen.setDraft(""))
    const listening = Effect.raceFirst(screen.next, Effect.as(interrupted, Interrupt()))
    const orQuit = <A>(waiting: Effect.Effect<A>) =>
      Effect.raceFirst(Effect.map(waiting, Option.some), Effect.as(Deferred.await(quitting), Option.none<A>()))
    // What a resumed turn asks is answered by the first lines.
    if (waits && Option.isNone(yield* orQuit(agent.awaitIdle))) return yield* stop
    for (;;) {
      const heard = yield* Effect.raceFirst(orQuit(listening), Fiber.join(left))
      if (typeof heard === "string") return yield* ChatLeaving.leave(leaving, heard)
      if (Option.isNone(heard)) return yield* stop
      const submitted = heard.value
      if (submitted._tag !== "Interrupt") lastInterrupt = -Infinity
      switch (submitted._tag) {
        case "EndOfInput":
          if (waits) yield* agent.awaitIdle
          return yield* quit
        case "Interrupt": {
          if (own !== undefined && (yield* own.stop)) break
          const now = yield* Clock.currentTimeMillis
          const again = now - lastInterrupt < 1_500
          lastInterrupt = now
          if (again) return yield* quit
          if (yield* agent.isIdle) {
            yield* screen.printLine("Press Ctrl-C again to quit, or type /quit.")
            yield* prompt
          } else {
            // Forked: a turn that does not stop must not block the second Ctrl-C.
            yield* Effect.forkScoped(cancel(agent, screen, files))
          }
          break
        }
        case "Escape": {
          if (own !== undefined && (yield* own.stop)) break
          if (!(yield* agent.isIdle)) yield* Effect.forkScoped(cancel(agent, screen, files))
          break
        }
        case "Shortcut": {
          if (submitted.key === "shift-tab") {
            yield* ChatCommand.setMode(yield* ChatCommand.otherMode(agent), commands)
            status.touched()
            yield* prompt
          } else yield* open(submitted.key, screen, drawing)
          break
        }
        case "Line": {
          const text = submitted.text.trim()
          if (interactive && options.remember !== undefined) yield* options.remember(submitted.text)
          const command = OwnCommand.commandIn(submitted.text)
          if (own !== undefined && command !== undefined) {
            const running = yield* own.start(command)
            if (running === undefined) yield* prompt
            else if (waits) yield* Fiber.await(running)
            break
          }
          if (options.attached === true && command !== undefined && screen.source === "person") {
            yield* screen.printLine(ChatCommand.notAttached(`!${command}`))
            break
          }
          const isCommand = !/^\s/.test(submitted.text) && ChatCommand.nameIn(text) !== undefined
          if (isCommand && isQuit(text)) return yield* quit
          if (isCommand && !ChatCommand.isOne(text)) yield* giveBack([submitted.text], screen)
          const isPrompt = isCommand && ServerPrompts.isLine(text)
          const message = isCommand ? ChatCommand.messageIn(text) : undefined
          if (isCommand && !isPrompt && message === undefined) {
            const running = ChatCommand.run(text.slice(1), commands)
            // They may take a while, in which somebody may want to type, or to stop.
            yield* !waits && /^\/(?:cancel|compact)\b/.test(text) ? Effect.forkScoped(running) : running
            // Nothing more is written to the old session.
            if (next !== undefined) return yield* leave(next)
            status.touched()
            yield* prompt
            break
          }
          const telling = isPrompt ? tellPrompt(text) : tell(message ?? { text: submitted.text, plans: false })
          // A server may take its time to answer, in which somebody may want to type, or to stop.
          if (isPrompt && !waits) {
            yield* Effect.forkScoped(Effect.zipRight(telling, prompt))
            break
          }
          const sent = yield* telling
          yield* prompt
          if (waits && sent) {
            const ended = yield* orQuit(agent.awaitIdle)
            if (Option.isNone(ended)) return yield* stop
            const end = ended.value
            // The next line may refer to the result of this turn.
            yield* Effect.raceFirst(Queue.take(turnShown), Fiber.await(shown))
            exit = Option.match(end, { onNone: () => exit, onSome: ExitCode.ofTurn })
          }
        }
      }
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What becomes of a question that stays open behind a command, and of the words in it. */
const atQuestion = (isPlan: boolean, hasWords: boolean): string =>
  [
    ...(isPlan
      ? ["Plan mode is on, for this question too. Even after a yes, Assent runs no call that changes something."]
      : []),
    hasWords ? "Answer the question first: then the agent reads your words." : "The question stays open."
  ]
    .map((sentence) => `  ${sentence}`)
    .join("\n")

const greet = (screen: Screen, agent: SessionHandle) =>
  Effect.gen(function* () {
    const style = Display.style(screen.color)
    const model = yield* agent.model
    const facts = [`model ${model.id}`, "/help for commands", "Ctrl-D to quit"].join(Glyphs.of(screen).between)
    yield* screen.printLine(`${style.bold("assent")} ${style.dim(facts)}`)
    if (model.id.startsWith("offline")) {
      const hint =
        "The offline stand-in answers here. Try: read README.md and run ls, or choose a language model with /model."
      yield* screen.printLine(style.dim(hint))
    }
  })

/**
 * Completion by tab, and the list of files and agents behind an `@`: it is made when one is typed, and drawn when it is there.
 * A line says once which files it lacks.
 */
export const complete = (
  screen: Pick<Screen, "printLine" | "setCompletion">,
  outline: Pick<AgentOutline.AgentOutline, "nodes">,
  files: ChatFiles.ChatFiles,
  completion: ReturnType<typeof ChatCommand.completion>
) =>
  Effect.gen(function* () {
    // Written by the keys, read by the fiber that walks the workspace. Of several wishes during a walk one is kept.
    const wanted = yield* Queue.sliding<void>(1)
    const agents = () => {
      const labels = outline.nodes().flatMap(({ label, status }) => (status === "done" ? [] : [label]))
      return labels.length > 1 ? labels : []
    }
    // An open list that is drawn anew is no new wish.
    let isDrawing = false
    const ask = () => {
      if (!isDrawing) wanted.unsafeOffer(undefined)
    }
    const set = (paths: PathRank.Find) =>
      screen.setCompletion(completion, ChatFiles.offers({ agents, files, paths, ask }))
    yield* set(() => [])
    const told = new Set<string>()
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.gen(function* () {
          yield* Queue.take(wanted)
          const { find, remark } = yield* files.paths
          isDrawing = true
          yield* set(find)
          isDrawing = false
          if (remark === undefined || told.has(remark)) return
          told.add(remark)
          yield* screen.printLine(remark)
        })
      )
    )
  })

/** The agent goes on with its work meanwhile: what it has done since is told as it happened. */
const tellPast = (
  screen: Screen,
  past: ChatPast.Past,
  before: number,
  { drawn = false, interactive }: Pick<Options, "drawn" | "interactive">
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const loaded = yield* past.loaded
    if (loaded === undefined) return
    const ChatResume = yield* Effect.promise(() => import("./ChatResume.js"))
    const entries = loaded.entries.filter(({ at }) => at < before)
    yield* ChatResume.tellPast(screen, { ...loaded, entries }, { drawn, interactive })
  }).pipe(Effect.catchAll(({ message }) => screen.printLine(message)))

/** Says which jobs end with a session that is left. */
const tellStopped = (screen: Screen, jobs: ReadonlyArray<Jobs.Listed>): Effect.Effect<void> => {
  const lines = JobReport.stopped(jobs)
  return lines.length === 0 ? Effect.void : screen.printLine(lines.join("\n"))
}

/** After a rewind. What was said next before is there to be changed. */
const welcomeBack = (screen: Screen, { forked, words }: ChatPast.Rewound, interactive: boolean) =>
  Effect.gen(function* () {
    const where = forked.turn === 0 ? "the beginning" : `the end of turn ${forked.turn}`
    yield* screen.printLine(
      `Back at ${where}. The session is ${forked.rootSessionId} now; ${forked.parent} stays as it is.`
    )
    const typed = ChatFiles.typedOf(words)
    if (interactive && typed !== "") yield* screen.setDraft(typed)
  })

const isQuit = (text: string): boolean => /^\/(?:quit|exit)(?:\s|$)/.test(text)

/** What was shown in brief: thoughts with `t`, what the last command printed with `o`. */
const open = (key: string, screen: Screen, drawing: Transcript.Drawing | undefined): Effect.Effect<void> => {
  const { printed, speech } = drawing ?? {}
  if (key === "t")
    return speech === undefined
      ? Effect.void
      : Effect.flatMap(screen.columns, (columns) => screen.printLine(speech.unfold(columns).join("\n")))
  const whole = printed?.whole()
  return whole === undefined ? screen.printLine("No command has printed anything yet.") : screen.page(whole)
}

/** `@explore WORDS` is for that agent alone; any other `@` may name a file. Yields whether anybody got the words. */
const send = (
  line: string,
  {
    agent,
    files,
    outline,
    screen,
    sending
  }: Pick<Options, "agent"> & {
    readonly files: ChatFiles.ChatFiles
    readonly screen: Screen
    readonly sending: Effect.Semaphore
    readonly outline: AgentOutline.AgentOutline
  }
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const [, name = "", rest = ""] = /^@(\S+)\s*([^]*)$/.exec(line) ?? []
    const target = Option.getOrUndefined(ChatCommand.sessionOf(outline, name))
    if (target !== undefined && rest === "") return yield* refuse(`What is ${name} to hear?`, line, screen)
    // A mistyped name must not send the words to another agent. `@types/node is missing` is no name.
    if (target === undefined && /^[\w-]+$/.test(name)) {
      const isFile = yield* Effect.either(files.isFile(name))
      if (Either.isLeft(isFile)) return yield* refuse(isFile.left, line, screen)
      if (!isFile.right)
        return yield* refuse(`There is no agent and no file ${name}. /agents lists the agents.`, line, screen)
    }
    const gathered = yield* Effect.either(files.gather(target === undefined ? line : rest))
    if (Either.isLeft(gathered)) return yield* refuse(gathered.left, line, screen)
    const { files: given, input, words } = gathered.right
    const { dim } = Display.style(screen.color)
    const said = given.length > 0 ? [`  with ${ChatFiles.told(given)}`] : []
    if (words.length > 0) said.push(`  ${ChatFiles.toldWords(words)}`)
    return yield* agent.send(input, target === undefined ? {} : { target }).pipe(
      Effect.tap(({ id }) => {
        files.sent(id, line)
        return Effect.forEach(said, (sentence) => screen.printLine(dim(sentence)), { discard: true })
      }),
      sending.withPermits(1),
      Effect.matchEffect({
        onFailure: (error) =>
          error._tag === "StoreUnwritable" || error._tag === "SessionTakenOver"
            ? turnDown(`${error.message} The agent may have begun with your words. They are not stored.`, line, screen)
            : refuse(error.message, line, screen),
        onSuccess: () => Effect.succeed(true)
      })
    )
  })

/** A screen that prints nothing while somebody else holds this. */
const behind = (held: Effect.Semaphore, screen: Screen): Screen => ({
  ...screen,
  print: (text) => held.withPermits(1)(screen.print(text)),
  printLine: (text) => held.withPermits(1)(screen.printLine(text))
})

/** Says why nothing was sent, and gives the line back. */
const refuse = (why: string, line: string, screen: Screen): Effect.Effect<boolean> =>
  turnDown(`${why} Nothing was sent.`, line, screen)

const turnDown = (why: string, line: string, screen: Screen): Effect.Effect<boolean> =>
  screen.printLine(why).pipe(Effect.zipRight(giveBack([line], screen)), Effect.as(false))

/** Puts lines before what is being typed. */
const giveBack = (lines: ReadonlyArray<string>, screen: Screen): Effect.Effect<void> =>
  lines.length === 0
    ? Effect.void
    : Effect.flatMap(screen.draft, (draft) =>
        screen.setDraft([...lines, draft].filter((text) => text !== "").join("\n"))
      )

/**
 * Cancels the main agent's turn or, without one, the work in the background. Unread words are taken back first: a
 * cancelled turn does not read them, and its end would begin a turn with them.
 */
const cancel = (agent: SessionHandle, screen: Screen, files: ChatFiles.ChatFiles): Effect.Effect<void> =>
  Effect.gen(function* () {
    const agents = yield* agent.agents
    const unread = yield* Effect.orElseSucceed(agent.takeBack(), () => [])
    yield* giveBack(
      [...unread].sort((a, b) => a.at - b.at).map(({ id, text }) => files.takeBack(id) ?? ChatFiles.typedOf(text)),
      screen
    )
    const end = yield* agent.cancel("user")
    if (Option.isSome(end)) return
    yield* Effect.forEach(agents, ({ session }) => session.stop({ cancel: "user" }), { discard: true })
  })
