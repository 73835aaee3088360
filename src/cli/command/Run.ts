/** `assent run`: one task, or with `--jsonl` a process that drives the agent. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Service as Screen } from "../../tui/console/ConsoleScreen.js"
import * as Redaction from "../../core/Redaction.js"
import type * as Interactor from "../../interaction/Interactor.js"
import type { Principal } from "../../interaction/Principal.js"
import * as Arguments from "../config/Arguments.js"
import * as ProgramStatus from "../../tui/process/ProgramStatus.js"
import * as Piped from "../../tui/process/Piped.js"
import { isForeground, isInteractive } from "../../tui/process/Tty.js"
import * as Channels from "../config/Channels.js"
import * as SessionSelection from "../../host/SessionSelection.js"
import * as GivenFiles from "../config/GivenFiles.js"
import * as Environment from "../../host/Environment.js"
import * as Host from "../../host/Host.js"
import * as HostOfOne from "../../host/HostOfOne.js"
import * as Launch from "../../host/Launch.js"
import * as Output from "../../tui/process/Output.js"
import * as RunExecutor from "../executor/RunExecutor.js"
import * as Person from "../../host/local/Person.js"
import * as Settings from "../../host/Settings.js"
import * as StoreLocation from "../../host/StoreLocation.js"

export const run = (invocation: Arguments.Invocation) =>
  Effect.gen(function* () {
    const { flags, words } = invocation
    const loaded = yield* Settings.load(flags)
    const limit = flags.timeout === undefined ? undefined : yield* Arguments.parseLimit(flags.timeout)
    const jsonl = flags.jsonl === true
    const json = jsonl || flags.json === true
    const isWatched = !json && Output.isTerminal("stderr")
    const attended = isWatched && isInteractive("stderr")
    const isAnswered = attended || flags["piped-answers"] === true
    // Others answer over HTTP.
    const isServed = flags.serve === true
    const lone = (["host", "port", "allow-host", "token-file"] as const).find((name) => flags[name] !== undefined)
    if (!isServed && lone !== undefined)
      return yield* new Arguments.UsageError({ message: `--${lone} goes with --serve.` })
    const fallback: ReadonlyArray<Channels.Plan> = isAnswered
      ? [{ _tag: "Console" }]
      : jsonl || isServed
        ? []
        : [{ _tag: "Halt" }]
    const plans = yield* Effect.flatMap(Channels.plan(flags, loaded, fallback), (plans) =>
      Channels.reachable(plans, flags)
    )
    const asks = plans.some((plan) => plan._tag === "Console")
    // Standard input has the words, or what goes with them, unless answers are read there.
    const wantsConsole = asks && Channels.answersFrom(flags) === "standard input"
    const mayLack = jsonl || SessionSelection.isResuming(flags)
    const hasFiles = flags.image !== undefined || flags.file !== undefined
    const isPiped = !jsonl && !wantsConsole && Piped.kind() !== undefined
    const isBeside = words.length > 0 && isPiped
    // Read while the session is opened.
    const beside = yield* Effect.fork(isBeside ? GivenFiles.piped(Output.notice) : Effect.succeed([]))
    const said = yield* taskOf(words, { mayLack, hasFiles, isPiped, wantsConsole })
    const { atEnd, checkpoints, files, keepGiven, left, resumeCommand, persistence, settings, store } =
      yield* SessionSelection.open(flags, loaded)
    const tellOfTrust = Effect.flatMap(loadTrustQuestion, (TrustQuestion) => TrustQuestion.tell(settings))
    // What is missing may stand in settings that nobody has trusted.
    const model = yield* Effect.tapError(Launch.resolveModel(settings, settings.model), () =>
      settings.wantsTrust ? tellOfTrust : Effect.void
    )
    const profiles = yield* Launch.profiles(settings)
    yield* keepGiven
    // Piped text is a document, not words of the person: it names no files.
    const named = words.length > 0 && said !== undefined ? said : ""
    const place = yield* Launch.filesFor(settings)
    const mentioned = yield* GivenFiles.mentioned(named, place, Output.notice)
    const given = yield* GivenFiles.read(flags, model, place, [...mentioned, ...(yield* Fiber.join(beside))])
    const task = GivenFiles.withWords(said, given)
    const old = yield* StoreLocation.oldNotice(flags, settings)
    const unmet = Launch.unmet(settings, profiles)
    for (const warning of [...settings.warnings, ...unmet, ...profiles.remarks, ...(old === undefined ? [] : [old])])
      yield* Output.notice(warning)
    if (settings.wantsTrust || profiles.wantTrust) yield* tellOfTrust

    const host = yield* Host.make({ environment: yield* Environment.current, notify: Output.logOnce })
    // A job in the background that takes the keys is stopped by the system, so it takes them only for questions.
    const listens = attended && (wantsConsole || isForeground())
    const body = (console: Effect.Effect<Interactor.Service, never, Scope.Scope>, screen?: Screen) =>
      Effect.gen(function* () {
        const opened = yield* Channels.open(plans, settings, console)
        const { halted } = opened
        const lines = json ? yield* loadLines : undefined
        const person = yield* Person.name
        const vouching = yield* Channels.vouched(flags)
        const channel =
          jsonl && lines !== undefined
            ? Option.some(yield* lines.JsonExecutor.makePeer(settings.timeouts))
            : Option.none()
        const writer = yield* lines === undefined ? Effect.succeed(undefined) : lines.JsonExecutor.makeWriter
        const reported = isWatched ? yield* ProgramStatus.follow("stderr") : () => Effect.void
        const started = yield* host.start({
          sharing: {
            settings,
            profiles,
            ...Channels.placed(isServed ? { ...opened, attended: true } : opened, files),
            checkpoints,
            outputStreamed: false
          },
          interactors: opened.interactors,
          options: {
            persistence,
            // With a peer, requests wait until it is connected.
            whenNobody: jsonl || isServed ? "wait" : "fail",
            // A program that reads our lines gets every event; a screen may miss some.
            events: json ? { capacity: 64, whenFull: "wait" } : { capacity: 4_096 }
          }
        })
        const { agent, jobs, review } = started
        if (isServed) yield* serve(HostOfOne.make(host, started, settings.workspace, store), flags)
        yield* reported(agent)
        if (limit !== undefined) yield* Effect.forkScoped(Effect.delay(agent.cancel("timeout"), limit))
        if (lines === undefined || writer === undefined) {
          return yield* RunExecutor.run({
            agent,
            jobs,
            task,
            screen,
            listens,
            halted,
            resumeCommand
          })
        }
        const { InputLines, JsonExecutor, Wire } = lines
        const peer = Option.map(channel, (channel) => ({
          channel,
          interactor: review(channel.interactor),
          lines: InputLines.linesUpTo(Wire.maxLine),
          alone: opened.interactors.length === 0,
          masking: Redaction.make(Settings.secretsOf(settings)).declared,
          authorOf: (said: Principal | undefined) => (vouching.has("json") ? (said ?? "json") : person)
        }))
        return Effect.succeed(
          yield* JsonExecutor.run({ agent, writer, task, halted, peer: Option.getOrUndefined(peer) })
        )
      })

    /** The agent ends before the screen does, which shows its end. */
    const shown = (console: Effect.Effect<Interactor.Service, never, Scope.Scope>, screen: Screen) =>
      Effect.scoped(body(console, screen))
    const options = Effect.map(Person.name, (principal) => ({
      ...Channels.consoleOptions(settings),
      ...(plans.length === 1 ? { atEnd: Effect.succeed(atEnd) } : {}),
      left: (screen: Screen) => Effect.flatMap(loadWorded, (Worded) => Worded.say(screen, left)),
      principal
    }))
    const atTerminal = asks
      ? Effect.flatMap(Effect.all([loadScreen, options]), ([Screen, console]) => Screen.atTerminal(console))
      : noConsole
    const finish =
      wantsConsole || listens
        ? Effect.flatMap(Effect.all([loadScreen, options]), ([Screen, console]) =>
            Screen.withConsole({ output: "stderr", console }, (screen, console) =>
              shown(Effect.succeed(console), screen)
            )
          )
        : isWatched
          ? Effect.flatMap(loadScreen, (Screen) =>
              Screen.withLines("stderr", (screen) => shown(atTerminal, screen), { asks })
            )
          : body(atTerminal)
    const working = Effect.flatten(Effect.scoped(finish))
    return yield* Effect.onInterrupt(working, () => RunExecutor.hint(resumeCommand("run")))
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Shows the run to others. They hear when it ends. */
const serve = (host: Host.Service, flags: Arguments.Flags) =>
  Effect.gen(function* () {
    const Serve = yield* Effect.promise(() => import("./Serve.js"))
    const { line, server } = yield* Serve.listening(host, { ...flags, port: flags.port ?? "0" }, [])
    yield* Effect.addFinalizer(() => server.farewell)
    yield* Output.notice(`others see this run at ${line}`)
  })

const noConsole = Effect.dieMessage("a console was opened without a screen")

// Loaded on demand: most runs have no screen, and the table of character widths takes long to load.
const loadScreen = Effect.promise(() => import("../../tui/process/Screen.js"))
const loadWorded = Effect.promise(() => import("../../tui/process/Worded.js"))
const loadTrustQuestion = Effect.promise(() => import("../config/TrustQuestion.js"))
const loadInput = Effect.promise(() => import("../../tui/process/InputLines.js"))
const loadLines = Effect.promise(async () => ({
  InputLines: await import("../../tui/process/InputLines.js"),
  Wire: await import("../../host/Wire.js"),
  JsonExecutor: await import("../executor/JsonExecutor.js")
}))

/** The words, else standard input. A peer may send its task later, and a resumed session may have one. */
const taskOf = (
  words: ReadonlyArray<string>,
  {
    hasFiles,
    isPiped,
    mayLack,
    wantsConsole
  }: Readonly<Record<"hasFiles" | "isPiped" | "mayLack" | "wantsConsole", boolean>>
) =>
  Effect.gen(function* () {
    const task = words.join(" ").trim()
    if (task !== "") return task
    if (mayLack) return isPiped ? yield* GivenFiles.pipedWords(Output.notice) : undefined
    const isTyped = process.stdin.isTTY === true || wantsConsole
    // Files may say enough.
    if (isTyped && hasFiles) return undefined
    if (isTyped) {
      return yield* new Arguments.UsageError({
        message: 'assent run needs a task: assent run "summarise README.md", or pipe one in.'
      })
    }
    const InputLines = yield* loadInput
    const text = (yield* Stream.mkString(Stream.intersperse(InputLines.lines, "\n"))).trim()
    if (text === "" && hasFiles) return undefined
    return text === "" ? yield* new Arguments.UsageError({ message: "The task on standard input is empty." }) : text
  })
