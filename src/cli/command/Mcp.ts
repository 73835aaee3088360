/** `assent mcp`: the tool servers of the settings. */
import * as Effect from "effect/Effect"
import * as McpServer from "../../mcp/McpServer.js"
import * as Display from "../../terminal/Display.js"
import * as ServerSettings from "../../tool/ServerSettings.js"
import * as Arguments from "../config/Arguments.js"
import * as CommandTable from "../config/CommandTable.js"
import * as Servers from "../../host/Servers.js"
import * as Settings from "../../host/Settings.js"
import * as ExitCode from "../ExitCode.js"
import * as Launch from "../../host/Launch.js"
import * as Output from "../terminal/Output.js"
import * as Screen from "../terminal/Screen.js"
import { serverWords } from "../view/ServerWords.js"

/** Exit code 1 when a checked server cannot be used, 2 when there is no such server. */
export const run = ({ flags, words }: Pick<Arguments.Invocation, "flags" | "words">) =>
  Effect.gen(function* () {
    const [verb = "list", name, ...rest] = words
    const isKnown = verb === "list" ? name === undefined : verb === "check" && name !== undefined && rest.length === 0
    if (!isKnown) return yield* new Arguments.UsageError({ message: CommandTable.takes("mcp", words) })
    const settings = yield* Settings.load(flags)
    const style = Display.style(yield* Screen.wantsColor("stdout"))
    if (settings.wantsTrust) yield* Output.notice(untrusted)
    return name === undefined ? yield* list(settings, style) : yield* check(name, settings, style)
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

const check = (name: string, settings: Settings.Settings, style: Display.Style) =>
  Effect.scoped(
    Effect.gen(function* () {
      const settingsOf = Object.hasOwn(settings.servers, name) ? settings.servers[name] : undefined
      if (settingsOf === undefined) {
        const known = Object.keys(settings.servers).join(", ")
        return yield* new Arguments.UsageError({
          message: `There is no tool server ${JSON.stringify(name)}. ${known === "" ? 'Add it to config.json, under "mcp_servers".' : `There are: ${known}.`}`
        })
      }
      const files = yield* Launch.filesFor(settings)
      const server = yield* McpServer.make({ name, ...settingsOf }, Servers.optionsOf(settings, files, undefined))
      const state = yield* server.settled
      const about = server.about()
      const words = serverWords(state) ?? ""
      if (state.state !== "ready" || about === undefined) {
        yield* Output.notice(Display.oneLine(words, 1_000))
        return ExitCode.failed
      }
      yield* say([
        `${style.bold(name)}  ${Display.oneLine(about.title)}, protocol ${Display.oneLine(about.version)}`,
        Display.oneLine(words, 1_000),
        ...server
          .entries()
          .map((entry) => `  ${entry.name}  ${style.dim(Display.oneLine(entry.definition?.description ?? "", 200))}`)
      ])
      return ExitCode.completed
    })
  )

/** Foreign text is spelled out: what colours the lines have are ours. */
const say = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Output.write("stdout", lines.map((line) => `${line}\n`).join(""), true)
