/** `assent chat`: a person at a terminal. */
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Checkpoints from "../../builtin/Checkpoints.js"
import * as ConsoleChannel from "../../tui/console/ConsoleChannel.js"
import { ConsoleScreen } from "../../tui/console/ConsoleScreen.js"
import * as InteractorCall from "../../interaction/InteractorCall.js"
import * as Interaction from "../../interaction/Interaction.js"
import * as InteractionRequest from "../../interaction/InteractionRequest.js"
import * as Interactor from "../../interaction/Interactor.js"
import type { Loaded } from "../../journal/SessionStore.js"
import type * as Arguments from "../config/Arguments.js"
import * as Channels from "../config/Channels.js"
import * as ChatCommand from "../../tui/chat/ChatCommand.js"
import * as ChatExecutor from "../../tui/chat/ChatExecutor.js"
import * as ChatFiles from "../../tui/chat/ChatFiles.js"
import * as OwnCommand from "../../tui/chat/OwnCommand.js"
import * as GitBranch from "../../host/local/GitBranch.js"
import * as GivenFiles from "../config/GivenFiles.js"
import * as ModelList from "../../host/ModelList.js"
import * as Person from "../../host/local/Person.js"
import * as Display from "../../tui/terminal/Display.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as SessionSelection from "../../host/SessionSelection.js"
import * as Environment from "../../host/Environment.js"
import * as Host from "../../host/Host.js"
import * as Launch from "../../host/Launch.js"
import * as Interrupts from "../../tui/process/Interrupts.js"
import * as Output from "../../tui/process/Output.js"
import * as ProgramStatus from "../../tui/process/ProgramStatus.js"
import * as Screen from "../../tui/process/Screen.js"
import * as Worded from "../../tui/process/Worded.js"
import * as UndoReport from "../../tui/view/UndoReport.js"
import * as Settings from "../../host/Settings.js"
import * as StoreLocation from "../../host/StoreLocation.js"
import * as Trust from "../../host/local/Trust.js"

export const run = (invocation: Arguments.Invocation) =>
  Effect.gen(function* () {
    const loaded = yield* Settings.load(invocation.flags)
    const planned = yield* Channels.plan(invocation.flags, loaded, [{ _tag: "Console" }])
    const plans = yield* Channels.reachable(planned, invocation.flags)
    const attended = Screen.isInteractive("stdout")
    const interactive = Screen.canDraw("stdout")
    const flags =
      invocation.flags.resume === "" && attended ? yield* picked(invocation.flags, loaded) : invocation.flags
    if (flags === undefined) return ExitCode.cancelled
    const first = yield* SessionSelection.open(flags, loaded)
    const { settings } = first
    // The model is resolved before the terminal is taken over, so that a mistake is told on a plain line.
    const resolved = yield* Effect.either(Launch.resolveModel(settings, settings.model))
    // What is missing may stand in settings that the person has yet to trust.
    if (Either.isLeft(resolved) && !(settings.wantsTrust && attended)) {
      if (settings.wantsTrust) yield* Effect.flatMap(loadTrustQuestion, (TrustQuestion) => TrustQuestion.tell(settings))
      return yield* resolved.left
    }
    const known = yield* Launch.profiles(settings)
    yield* Launch.review(settings)
    const given = Either.isRight(resolved)
      ? yield* GivenFiles.read(flags, resolved.right, yield* Launch.filesFor(settings))
      : undefined
    const history = interactive ? yield* openHistory(settings) : undefined
    return yield* Effect.gen(function* () {
      const drawn = yield* ConsoleScreen
      const screen = attended ? Worded.of(drawn) : drawn
      const principal = yield* Person.name
      const console = yield* ConsoleChannel.make({ principal })
      const wantsTrust = settings.wantsTrust || known.wantTrust
      const trusted = wantsTrust && attended ? yield* askForTrust(settings, screen, console) : false
      const base = trusted ? yield* Settings.load(flags) : loaded
      const current = first.asBefore(base)
      const profiles = trusted ? yield* Launch.profiles(current) : known
      const model = trusted ? yield* Launch.resolveModel(current, current.model) : yield* resolved
      const attached = given ?? (yield* GivenFiles.read(flags, model, yield* Launch.filesFor(current)))
      yield* first.keepGiven
      const old = yield* StoreLocation.oldNotice(flags, current)
      const told = new Set<string>()
      const tellUnmet = (settings: Settings.Settings, profiles: Launch.Profiles) =>
        Effect.forEach(Launch.unmet(settings, profiles), (sentence) =>
          told.has(sentence)
            ? Effect.void
            : Effect.zipRight(
                Effect.sync(() => told.add(sentence)),
                screen.printLine(sentence)
              )
        )
      for (const warning of [...current.warnings, ...profiles.remarks, ...(old === undefined ? [] : [old])]) {
        yield* screen.printLine(warning)
      }
      if (current.wantsTrust && !attended) {
        const TrustQuestion = yield* loadTrustQuestion
        for (const line of yield* TrustQuestion.notice(current)) yield* screen.printLine(line)
      }
      let kept = first
      const leftOpen = yield* Deferred.make<string>()
      const atEnd = Effect.tap(
        Effect.sync(() => kept.atEnd),
        (detail) => Deferred.succeed(leftOpen, detail)
      )
      const consoleOptions: ConsoleChannel.Options = {
        ...Channels.consoleOptions(current),
        ...(plans.length === 1 ? { atEnd } : {}),
        left: (screen) => Worded.say(screen, kept.left),
        principal,
        meant: ChatCommand.notOne
      }
      const person: Effect.Effect<Interactor.Service, never, ConsoleScreen | Scope.Scope> =
        Channels.answersFrom(flags) === "terminal"
          ? Screen.atTerminal(consoleOptions)
          : ConsoleChannel.make(consoleOptions)
      const opened = yield* Channels.open(plans, current, person)
      const host = yield* Host.make({ environment: yield* Environment.current, notify: Output.logOnce })
      const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path | CommandExecutor.CommandExecutor>()
      const withModel = (settings: Settings.Settings) =>
        Effect.provide(Launch.resolveModel(settings, settings.model), platform)
      /** One session, until the person quits or goes back to another turn. */
      const chat = (
        kept: SessionSelection.Kept,
        settings: Settings.Settings,
        profiles: Launch.Profiles,
        goingOn: ChatExecutor.Next | undefined
      ) =>
        Effect.gen(function* () {
          const { checkpoints, files, fork, loaded, persistence, sessions } = kept
          yield* tellUnmet(settings, profiles)
          const began = yield* Clock.currentTimeMillis
          const reported = yield* ProgramStatus.follow("stdout")
          const started = yield* host.start({
            sharing: { settings, profiles, ...Channels.placed(opened, files), checkpoints, outputStreamed: true },
            interactors: opened.interactors,
            options: { persistence, events: { capacity: 4_096 } }
          })
          const { agent } = started
          yield* reported(agent)
          const chatFiles = yield* Effect.provide(ChatFiles.make(started.files), platform)
          if (goingOn === undefined) attached.flatMap(ChatFiles.ofPart).forEach(chatFiles.add)
          const undoing = (loaded: Loaded) => Effect.provide(undo({ ...started, checkpoints }, loaded), platform)
          if (persistence.restored !== undefined && (yield* Checkpoints.isUnfinished(checkpoints, agent.id))) {
            const cutOff = yield* Effect.orElseSucceed(loaded, () => undefined)
            const outcome = cutOff === undefined ? undefined : yield* Effect.either(undoing(cutOff))
            if (outcome !== undefined) yield* screen.printLine(UndoReport.finished(outcome).join("\n"))
          }
          // A screen reads the key itself.
          const pressed = attended && !interactive ? yield* Interrupts.listen : undefined
          const ended = yield* ChatExecutor.run({
            agent,
            files: chatFiles,
            interrupted: pressed && Effect.zipRight(pressed, screen.print("\n")),
            interactive,
            leftOpen: Deferred.await(leftOpen),
            drawn: interactive,
            sessions,
            remember: history?.add,
            by: principal,
            ownCommand: OwnCommand.runOf({ agent, trail: started.trail, by: principal }),
            jobs: { jobs: started.jobs, trail: started.trail, by: principal },
            sources: { project: current.project, files: current.policy.files },
            past: {
              loaded,
              fork: (turn) => Effect.provide(fork(turn), platform),
              undo: undoing
            },
            goingOn: goingOn !== undefined && "forked" in goingOn ? goingOn : undefined,
            tellsBefore:
              attended && (goingOn === undefined ? SessionSelection.isResuming(flags) : "session" in goingOn)
                ? began
                : undefined,
            workspace: current.workspace,
            commands: Effect.flatMap(
              Effect.promise(() => import("../../host/SandboxSettings.js")),
              ({ sign }) => {
                const foreign = Launch.foreignSign(settings, profiles)
                return foreign === undefined ? sign(current.workspace, current.sandbox) : Effect.succeed(foreign)
              }
            ).pipe(
              Effect.tap(({ remark }) =>
                remark === undefined ? Effect.void : Effect.sync(() => Output.wasSaid(remark))
              ),
              Effect.provide(platform)
            ),
            models: ModelList.all(settings),
            namedModels: () => ModelList.named(settings),
            branch: () => GitBranch.of(current.workspace),
            statusLine: current.statusLine,
            ...(flags.yolo === true ? { unasked: "--yolo" } : {}),
            prompts: started.prompts,
            profiles: [...profiles.all.keys()],
            setModel: (ref) =>
              withModel({ ...settings, model: ref }).pipe(
                Effect.tap((model) => agent.setModel(model)),
                Effect.map(({ id }) => id)
              ),
            clear: () => agent.history.clear(),
            unmet: (ref) => Launch.unmetOf(settings, ref)
          })
          return { ended, last: { baseUrls: settings.baseUrls, model: (yield* agent.model).id } }
        }).pipe(Effect.scoped)
      const going = Effect.gen(function* () {
        let done = yield* chat(kept, current, profiles, undefined)
        while (typeof done.ended !== "number") {
          const { ended: next, last } = done
          kept = yield* kept.follow("forked" in next ? next.forked.rootSessionId : next.session.rootSessionId)
          const its = kept.asBefore(base)
          // The model of that turn may not be there any more.
          const settings = (yield* Effect.isSuccess(withModel(its))) ? its : { ...its, ...last }
          done = yield* chat(kept, settings, yield* Launch.profiles(settings), next)
        }
        return done.ended
      })
      const tellHowToGoOn = (lead: string) =>
        Effect.gen(function* () {
          const resumeCommand = attended ? yield* kept.resumeCommand("chat") : undefined
          if (resumeCommand !== undefined)
            yield* screen.printLine(`${lead}${Display.style(screen.color).dim(`To resume: ${resumeCommand}`)}`)
        })
      // Without a screen Ctrl-C is a signal, whose mark stands in the row.
      const ended = yield* Effect.onError(going, (cause) => tellHowToGoOn(Cause.isInterruptedOnly(cause) ? "\n" : ""))
      yield* tellHowToGoOn("")
      return ended
    }).pipe(Effect.provide(Screen.layer({ output: "stdout", history: history?.entries })))
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The flags with the session that a person picks; nothing when they pick none. */
const picked = (flags: Arguments.Flags, settings: Settings.Settings) =>
  Effect.gen(function* () {
    const sessions = yield* SessionSelection.look(flags, settings)
    const ChatResume = yield* Effect.promise(() => import("../../tui/chat/ChatResume.js"))
    const { workspace } = settings
    const one = yield* Effect.provide(
      Effect.flatMap(ConsoleScreen, (screen) => ChatResume.pick(screen, sessions, { workspace })),
      Screen.layer({ output: "stdout" })
    )
    return one === undefined ? undefined : { ...flags, resume: one.rootSessionId }
  }).pipe(Effect.scoped, Effect.catchTag("StoreUnusable", StoreLocation.refuse))

/** Loaded for a person at a terminal only. */
const openHistory = (settings: Settings.Settings) =>
  Effect.map(
    Effect.promise(() => Promise.all([import("../../host/local/PromptHistory.js"), import("../../core/Redaction.js")])),
    ([PromptHistory, Redaction]) => PromptHistory.open(settings, Redaction.make(Settings.secretsOf(settings)))
  )

/** Loaded when somebody wants it. */
const undo = (
  { agent, checkpoints, files, trail }: Launch.Started & Pick<SessionSelection.Kept, "checkpoints">,
  loaded: Loaded
) =>
  Effect.gen(function* () {
    const [Undo, WorkspaceRoot, NodeFiles] = yield* Effect.promise(() =>
      Promise.all([
        import("../../builtin/Undo.js"),
        import("../../builtin/WorkspaceRoot.js"),
        import("../../host/NodeFiles.js")
      ])
    )
    const by = yield* Person.name
    const outcome = yield* Undo.run({
      loaded,
      tools: agent.tools,
      workspace: yield* Effect.provide(WorkspaceRoot.make(files), NodeFiles.layer),
      checkpoints,
      record: (outcome) =>
        Effect.flatMap(Clock.currentTimeMillis, (answeredAt) =>
          trail.record({
            class: "session",
            kind: "undo",
            outcome: "done",
            rootSessionId: agent.id,
            sessionId: agent.id,
            agent: agent.origin.agent,
            correlationId: outcome.correlationId,
            reason: Undo.summary(outcome),
            by,
            answeredAt
          })
        )
    })
    const note = Undo.noteOf(outcome)
    if (note !== undefined) yield* agent.leaveNote(note)
    return outcome
  })

const loadTrustQuestion = Effect.promise(() => import("../config/TrustQuestion.js"))

/**
 * The question shows everything that trust would enable. A yes is remembered outside the workspace; after any other
 * answer it is asked again next time.
 */
const askForTrust = (settings: Settings.Settings, screen: ConsoleScreen["Type"], console: Interactor.Service) =>
  Effect.gen(function* () {
    const TrustQuestion = yield* loadTrustQuestion
    const preface = yield* TrustQuestion.preface(settings)
    if (Either.isLeft(preface)) {
      yield* screen.printLine(preface.left)
      return false
    }
    // Printed above the dialog, because the dialog may have fewer rows than there are rules.
    for (const line of preface.right.lines) yield* screen.printLine(line)
    const request = yield* InteractionRequest.make(
      new Interaction.Confirm({
        prompt: `The files of ${settings.workspace} allow what is listed above without asking. Trust this directory?`,
        default: false
      })
    )
    const answered = yield* Effect.option(InteractorCall.ask(console, request))
    if (Option.isNone(answered)) return false
    const { answer: trusted, by, how } = answered.value
    const { issuedAt: askedAt, requestId } = request
    yield* Trust.decide(settings, settings.brought, { trusted, by, how, requestId, askedAt }, preface.right.programs)
    return trusted
  })
