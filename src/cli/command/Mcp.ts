/** `assent mcp`: the tool servers of the settings. */
import * as Effect from "effect/Effect"
import * as Mailbox from "effect/Mailbox"
import * as Interactor from "../../interaction/Interactor.js"
import * as McpServer from "../../mcp/McpServer.js"
import * as Display from "../../tui/terminal/Display.js"
import * as ServerSettings from "../../tool/ServerSettings.js"
import * as Arguments from "../config/Arguments.js"
import * as CommandTable from "../config/CommandTable.js"
import * as Servers from "../../host/Servers.js"
import * as Settings from "../../host/Settings.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Launch from "../../host/Launch.js"
import * as InputLines from "../../tui/process/InputLines.js"
import * as Output from "../../tui/process/Output.js"
import * as Screen from "../../tui/process/Screen.js"
import { serverWords } from "../../mcp/ServerWords.js"

/** Exit code 1 when a checked server cannot be used or a sign-in fails, 2 when there is no such server. */
export const run = ({ flags, words }: Pick<Arguments.Invocation, "flags" | "words">) =>
  Effect.gen(function* () {
    const [verb = "list", name, ...rest] = words
    const act = Object.hasOwn(named, verb) ? named[verb] : undefined
    const isKnown = verb === "list" ? name === undefined : act !== undefined && name !== undefined && rest.length === 0
    if (!isKnown) return yield* new Arguments.UsageError({ message: CommandTable.takes("mcp", words) })
    const settings = yield* Settings.load(flags)
    const style = Display.style(yield* Screen.wantsColor("stdout"))
    if (settings.wantsTrust) yield* Output.notice(untrusted)
    if (name === undefined || act === undefined) return yield* list(settings, style)
    const settingsOf = Object.hasOwn(settings.servers, name) ? settings.servers[name] : undefined
    if (settingsOf === undefined) {
      const known = Object.keys(settings.servers).join(", ")
      return yield* new Arguments.UsageError({
        message: `There is no tool server ${JSON.stringify(name)}. ${known === "" ? 'Add it to config.json, under "mcp_servers".' : `There are: ${known}.`}`
      })
    }
    const files = yield* Launch.filesFor(settings)
    if (settings.isTrustGiven) yield* Launch.profiles(settings)
    const options = Servers.optionsOf(settings, [name, settingsOf], files, undefined, Output.logOnce)
    return yield* act({ name, ...settingsOf }, options, style)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const untrusted = "The servers of this workspace count when you trust it: start with --trust."

const list = ({ servers }: Settings.Settings, style: Display.Style) =>
  Effect.gen(function* () {
    const all = Object.entries(servers)
    if (all.length === 0) {
      yield* Output.notice('There is no tool server. Add one to config.json, under "mcp_servers".')
      return ExitCode.completed
    }
    const lines = all.map(
      ([name, server]) =>
        `${style.bold(Display.oneLine(name))}  ${Display.oneLine(ServerSettings.describe(server), 400)}`
    )
    yield* say(lines)
    return ExitCode.completed
  })

type Options = ReturnType<typeof Servers.optionsOf>

const check = (settings: McpServer.Settings, options: Options, style: Display.Style) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* McpServer.make(settings, options)
      const state = yield* server.settled
      const about = server.about()
      const words = serverWords(state) ?? ""
      if (state.state !== "ready" || about === undefined) {
        yield* Output.notice(Display.oneLine(words, 1_000))
        return ExitCode.failed
      }
      yield* say([
        `${style.bold(settings.name)}  ${Display.oneLine(about.title)}, protocol ${Display.oneLine(about.version)}`,
        Display.oneLine(words, 1_000),
        ...server
          .entries()
          .map((entry) => `  ${entry.name}  ${style.dim(Display.oneLine(entry.definition?.description ?? "", 200))}`)
      ])
      return ExitCode.completed
    })
  )

const login = (settings: McpServer.Settings, options: Options) =>
  Mailbox.fromStream(InputLines.linesUpTo(maxAddress)).pipe(
    Effect.flatMap((lines) =>
      Effect.provideService(McpServer.signIn(settings, options), Interactor.Interactor, person(lines))
    ),
    Effect.scoped,
    Effect.flatMap((isWanted) =>
      Output.notice(
        isWanted ? `You are signed in to ${settings.name}.` : `The server ${settings.name} wants no sign-in.`
      )
    ),
    Effect.as(ExitCode.completed),
    Effect.catchAll((reason) => Effect.as(Output.notice(Display.oneLine(reason, 1_000)), ExitCode.failed))
  )

const logout = ({ name }: McpServer.Settings, { credentials }: Options) =>
  Effect.gen(function* () {
    const isStored = credentials.read() !== undefined
    if (isStored) yield* Effect.sync(() => credentials.write(undefined))
    yield* Output.notice(isStored ? `You are signed out of ${name}.` : `You are not signed in to ${name}.`)
    return ExitCode.completed
  })

/** What is done with one server. */
const named: Readonly<Record<string, Act>> = { check, login, logout }

type Act = (
  settings: McpServer.Settings,
  options: Options,
  style: Display.Style
) => Effect.Effect<number, never, Effect.Effect.Context<ReturnType<typeof check>>>

const { declines } = Interactor

/** Prints the address as it is, so that it can be copied, and reads lines. */
const person = (lines: Mailbox.ReadonlyMailbox<string>) =>
  Interactor.make({
    id: "terminal",
    handlers: {
      Approve: declines,
      grantStageTool: declines,
      approveSubagentEnvelope: declines,
      Clarify: declines,
      Ask: ({ interaction }) =>
        // Without a line only the browser can answer.
        Effect.zipRight(
          Output.write("stderr", `${interaction.prompt}\n`),
          Effect.catchAll(lines.take, () => Effect.never)
        ),
      Select: declines,
      Confirm: declines,
      Elicit: declines,
      "Auth.DeviceCode": declines,
      "Auth.Password": declines
    }
  })

/** Characters. */
const maxAddress = 20_000

/** Foreign text is spelled out: what colours the lines have are ours. */
const say = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Output.write("stdout", lines.map((line) => `${line}\n`).join(""), true)
