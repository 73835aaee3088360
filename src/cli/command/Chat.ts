/** `assent chat`: a person at a terminal. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as ConsoleChannel from "../../channel/ConsoleChannel.js"
import { ConsoleScreen } from "../../channel/ConsoleScreen.js"
import * as Interaction from "../../interaction/Interaction.js"
import * as InteractionRequest from "../../interaction/InteractionRequest.js"
import * as Interactor from "../../interaction/Interactor.js"
import type * as Arguments from "../Arguments.js"
import * as Channels from "../Channels.js"
import * as ChatExecutor from "../ChatExecutor.js"
import * as Keeping from "../Keeping.js"
import * as Launch from "../Launch.js"
import * as Screen from "../Screen.js"
import * as Settings from "../Settings.js"
import * as Trust from "../Trust.js"

export const run = (invocation: Arguments.Invocation) =>
  Effect.gen(function* () {
    const { flags } = invocation
    const loaded = yield* Settings.load(flags)
    const plans = yield* Channels.plan(flags, loaded, [{ _tag: "Console" }])
    const interactive = Screen.isInteractive("stdout")
    const { files, persistence, sessions, settings } = yield* Keeping.open(flags, loaded)
    // The model is resolved before the terminal is taken over, so that a mistake is told on a plain line.
    yield* Launch.resolveModel(settings, settings.model)
    const known = yield* Launch.profiles(settings)
    return yield* Effect.gen(function* () {
      const screen = yield* ConsoleScreen
      const console = yield* ConsoleChannel.make()
      const wantsTrust = settings.wantsTrust || known.wantTrust
      const trusted = wantsTrust && interactive ? yield* askForTrust(settings, console) : false
      const { model, profile } = settings
      const current = trusted ? { ...(yield* Settings.load(flags)), model, profile } : settings
      const profiles = trusted ? yield* Launch.profiles(current) : known
      for (const warning of [...current.warnings, ...profiles.remarks]) yield* screen.printLine(warning)
      if (current.wantsTrust) yield* screen.printLine(Settings.untrustedNotice(current))
      const opened = yield* Channels.open(plans, current, Effect.succeed(console))
      const agent = yield* Launch.startAgent(current, profiles, Launch.outOfReach(opened, files), {
        persistence,
        events: { capacity: 4_096 },
        outputStreamed: true
      })
      const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
      return yield* ChatExecutor.run({
        agent,
        interactive,
        sessions,
        profiles: [...profiles.all.keys()],
        resolveModel: (ref) => Effect.provide(Launch.resolveModel(current, ref), platform)
      })
    }).pipe(Effect.provide(Screen.layer({ output: "stdout" })))
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Asked once; a yes is remembered outside the workspace, anything else is asked again next time. */
const askForTrust = (settings: Settings.Settings, console: Interactor.Service) =>
  Effect.gen(function* () {
    const request = yield* InteractionRequest.make(
      new Interaction.Confirm({
        prompt: `${settings.workspace} brings settings that allow things without asking. Trust this directory?`,
        default: false
      })
    )
    const answered = yield* Effect.option(console.request(request))
    if (Option.isNone(answered)) return false
    const { answer: trusted, by, how } = answered.value
    const { issuedAt: askedAt, requestId } = request
    yield* Trust.decide(settings, { trusted, by, how, requestId, askedAt })
    return trusted
  })
