/** `assent chat --attach`: a person at a terminal, in a session that `assent serve` runs. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Effect from "effect/Effect"
import { ConsoleScreen } from "../../tui/console/ConsoleScreen.js"
import * as ConsoleChannel from "../../tui/console/ConsoleChannel.js"
import * as OwnFile from "../../host/local/OwnFile.js"
import * as Person from "../../host/local/Person.js"
import * as ApiClient from "../../http/ApiClient.js"
import type { SessionSummary } from "../../http/Api.js"
import * as RemoteSession from "../../http/RemoteSession.js"
import * as RemoteSessions from "../../http/RemoteSessions.js"
import * as Display from "../../tui/terminal/Display.js"
import * as Arguments from "../config/Arguments.js"
import * as Channels from "../config/Channels.js"
import type * as Flags from "../config/Flags.js"
import * as ServerAddress from "../config/ServerAddress.js"
import * as ChatCommand from "../../tui/chat/ChatCommand.js"
import * as ChatExecutor from "../../tui/chat/ChatExecutor.js"
import * as Interrupts from "../../tui/process/Interrupts.js"
import * as Screen from "../../tui/process/Screen.js"
import * as Worded from "../../tui/process/Worded.js"

export const run = ({ flags }: Arguments.Invocation) =>
  Effect.gen(function* () {
    yield* ServerAddress.alone(flags, taken)
    yield* refuseForOld(flags)
    const server = yield* ServerAddress.of(flags)
    const client = yield* Effect.provide(ApiClient.make(server), FetchHttpClient.layer)
    const chosen = yield* Effect.mapError(select(client, flags), ({ message }) => misuse(message))
    const attended = Screen.isInteractive("stdout")
    const interactive = Screen.canDraw("stdout")
    return yield* Effect.gen(function* () {
      const drawn = yield* ConsoleScreen
      const screen = attended ? Worded.of(drawn) : drawn
      const style = Display.style(screen.color)
      const say = (sentence: string) => screen.printLine(style.dim(`  ${Display.reveal(sentence)}`))
      const heard = (words: string) => screen.printLine(style.dim(Display.reveal(`> ${words}`)))
      const principal = yield* Person.name
      const pressed = attended && !interactive ? yield* Interrupts.listen : undefined
      const chat = (id: string) =>
        Effect.gen(function* () {
          const attaching = RemoteSession.attach({ client, id, say, heard })
          const session = yield* Effect.mapError(attaching, ({ message }) => misuse(message))
          if (session.snapshot.wantsTrust)
            yield* say(
              "What the .assent of this workspace allows does not count: nobody has trusted it. The web console shows it, and trusts it."
            )
          const options = { principal, meant: ChatCommand.notOne }
          yield* session.attach(
            yield* Channels.answersFrom(flags) === "terminal"
              ? Screen.atTerminal(options)
              : ConsoleChannel.make(options)
          )
          return yield* ChatExecutor.run({
            agent: session,
            attached: true,
            interactive,
            drawn: interactive,
            interrupted: pressed && Effect.zipRight(pressed, screen.print("\n")),
            by: principal,
            statusLine: true,
            workspace: session.snapshot.workspace ?? "",
            spent: session.spent,
            sessions: RemoteSessions.list(client),
            models: Effect.match(ApiClient.failing(client, client.control.models({ path: { sessionId: id } })), {
              onFailure: () => [],
              onSuccess: ({ models }) => models.map((ref) => ({ ref }))
            }),
            setModel: (model) => Effect.as(session.setModel(model), model)
          })
        }).pipe(Effect.scoped)
      let id = chosen
      for (;;) {
        const end = yield* chat(id)
        if (typeof end === "object" && "session" in end) {
          id = end.session.rootSessionId
          continue
        }
        if (attended)
          yield* screen.printLine(style.dim(`The session stays at the server. To attach again: ${again(flags, id)}`))
        return typeof end === "number" ? end : 0
      }
    }).pipe(Effect.provide(Screen.layer({ output: "stdout" })))
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const misuse = (message: string) => new Arguments.UsageError({ message })

/** What is said at the start of a session; the rest is up to the server. */
const taken: ReadonlyArray<keyof Flags.Flags> = [
  "attach",
  "token-file",
  "resume",
  "continue",
  "model",
  "profile",
  "workspace",
  "piped-answers",
  "plain",
  "log-level"
]

const refuseForOld = (flags: Arguments.Flags) => {
  const isNew = flags.resume === undefined && flags.continue !== true
  const ofNew = (["model", "profile", "workspace"] as const).find((name) => flags[name] !== undefined)
  return isNew || ofNew === undefined
    ? Effect.void
    : misuse(`--${ofNew} is for a new session. Leave out --${ofNew}, or --resume and --continue.`)
}

/** The id of the session: a new one, the last used one, or the one that is named. */
const select = (client: ApiClient.ApiClient, flags: Arguments.Flags) =>
  Effect.gen(function* () {
    const { continue: last, model, profile, resume: name, workspace } = flags
    if (name === undefined && last !== true) {
      const directory = workspace ?? "."
      const real = OwnFile.realDirectory(directory)
      if (real === undefined) return yield* misuse(`There is no directory ${JSON.stringify(directory)}.`)
      const payload = { workspace: real, model, profile }
      return (yield* ApiClient.failing(client, client.sessions.create({ payload }))).sessionId
    }
    const { sessions } = yield* ApiClient.failing(client, client.sessions.list({ urlParams: { limit: 1_000 } }))
    return (yield* named(sessions, name ?? "")).sessionId
  })

const named = (sessions: ReadonlyArray<SessionSummary>, name: string) => {
  const begins = ({ sessionId }: SessionSummary) => sessionId.startsWith(name) || sessionId.startsWith(`ses_${name}`)
  const [found, other] =
    name === ""
      ? sessions.slice(0, 1)
      : [sessions.find((one) => one.sessionId === name) ?? sessions.filter(begins)].flat()
  if (found === undefined)
    return misuse(name === "" ? "The server has no session yet." : `The server has no session ${JSON.stringify(name)}.`)
  return other === undefined ? Effect.succeed(found) : misuse(`Several sessions begin with ${JSON.stringify(name)}.`)
}

const again = ({ attach = "", "token-file": file }: Arguments.Flags, id: string): string =>
  [
    "assent chat --attach",
    ...(attach === "" ? [] : [attach.replace(/#.*$/, "")]),
    ...(file === undefined ? [] : ["--token-file", file]),
    "--resume",
    id
  ].join(" ")
