/** `assent serve`: sessions over HTTP until a signal ends it. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as path from "node:path"
import * as Host from "../../host/Host.js"
import * as ConfigurationInvalid from "../../host/local/ConfigurationInvalid.js"
import * as OwnFile from "../../host/local/OwnFile.js"
import * as Person from "../../host/local/Person.js"
import * as Server from "../../http/Server.js"
import * as Token from "../../http/Token.js"
import * as Arguments from "../config/Arguments.js"
import * as ExitCode from "../ExitCode.js"
import * as Interrupts from "../terminal/Interrupts.js"
import * as Output from "../terminal/Output.js"

export const run = (invocation: Arguments.Invocation) =>
  invocation.words[0] === "token" ? token(invocation) : serve(invocation)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const misuse = (message: string) => new Arguments.UsageError({ message })

const fileOf = (flags: Arguments.Flags) =>
  flags["token-file"] === undefined ? Token.defaultFile : Effect.sync(() => path.resolve(flags["token-file"] ?? ""))

const token = ({ flags, words }: Arguments.Invocation) =>
  Effect.gen(function* () {
    if (words[1] !== "rotate" || words.length > 2) return yield* misuse("assent serve token takes: rotate.")
    const file = yield* fileOf(flags)
    yield* Token.rotate(file)
    yield* Output.notice(`the new token is in ${file}; the old one does not count any more`)
    return ExitCode.completed
  })

const serve = ({ flags, words }: Arguments.Invocation) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { host = "127.0.0.1", workspace, ...overrides } = flags
      const port = yield* portOf(flags.port)
      const workspaces = yield* Effect.forEach([workspace ?? ".", ...words], directoryOf)
      const token = yield* Token.open(yield* fileOf(flags))
      // Before the host: what ends the program must end it gently from the start.
      const signal = yield* Interrupts.listenForEnd
      const made = yield* Host.make({
        workspaces,
        overrides,
        notify: (sentence) => Output.logOnce(sentence)
      })
      const name = yield* Person.name
      const server = yield* Server.make({ host, port, workspaces, allowHosts: flags["allow-host"] }).pipe(
        Effect.provide(Token.layer(token, { name })),
        Effect.provideService(Host.Host, made),
        Effect.catchTags({
          ServeError: ({ cause }) => notListening(host, port, cause),
          WorkspaceRefused: ({ message }) => misuse(message),
          StoreUnusable: ({ message }) => ConfigurationInvalid.make(message)
        })
      )
      const value = Redacted.value(yield* token.value)
      yield* Output.write("stdout", `${server.url}/#token=${value}\n`)
      yield* signal
      // The second signal ends it at once.
      yield* Effect.raceFirst(server.end, signal)
      return ExitCode.completed
    })
  )

const portOf = (text = "4096"): Either.Either<number, Arguments.UsageError> =>
  /^\d{1,5}$/.test(text) && Number(text) <= 65_535
    ? Either.right(Number(text))
    : Either.left(misuse(`${JSON.stringify(text)} is no port. Give a number from 0 to 65535.`))

const directoryOf = (word: string) => {
  const real = OwnFile.realDirectory(path.resolve(word))
  return real === undefined ? misuse(`There is no directory ${JSON.stringify(word)}.`) : Effect.succeed(real)
}

/** Why it does not listen, and who does, where that is known. */
const notListening = (host: string, port: number, cause: unknown) =>
  Effect.gen(function* () {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined
    if (code !== "EADDRINUSE") {
      const reason = cause instanceof Error ? cause.message : String(cause)
      return yield* misuse(`Cannot listen on ${host}:${port}: ${reason}. Choose another --host or --port.`)
    }
    const other = yield* whoIs(host, port)
    return yield* misuse(`Port ${port} of ${host} is in use${other}. End that program, or choose another --port.`)
  })

const whoIs = (host: string, port: number) =>
  Effect.tryPromise(async (signal) => {
    const answer = await fetch(`http://${host}:${port}/healthz`, { signal })
    const isOurs = answer.ok && (await answer.text()).startsWith('{"ok":')
    return isOurs ? " by another assent serve" : " by a web server"
  }).pipe(
    Effect.timeout("500 millis"),
    Effect.orElseSucceed(() => "")
  )
