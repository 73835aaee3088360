/** `assent acp`: an agent for an editor, which speaks the Agent Client Protocol over standard input and output. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { Readable, Writable } from "node:stream"
import * as Environment from "../../host/Environment.js"
import * as Host from "../../host/Host.js"
import * as HostSessions from "../../host/HostSessions.js"
import * as Person from "../../host/local/Person.js"
import * as Arguments from "../config/Arguments.js"
import type * as Flags from "../config/Flags.js"
import * as ServerAddress from "../config/ServerAddress.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Output from "../../tui/process/Output.js"

/** Ends when the editor closes standard input. Its sessions stay in their stores. */
export const run = ({ flags }: Arguments.Invocation) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const serving = Effect.gen(function* () {
      const host = yield* sessionsOf(flags)
      const AcpAgent = yield* Effect.promise(() => import("../../acp/AcpAgent.js"))
      const pipes = {
        // Node declares its own streams of the web beside those of the platform, which they are.
        input: Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
        output: Writable.toWeb(process.stdout)
      }
      yield* AcpAgent.serve(pipes, { host, principal: yield* Person.name })
      return ExitCode.completed
    })
    // An editor that has left waits for nothing; what does not end in time ends with the process.
    const close = Effect.timeoutOption(Effect.disconnect(Scope.close(scope, Exit.void)), "4500 millis")
    return yield* Effect.ensuring(Scope.extend(serving, scope), close)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Those of this process, or of the server that `--attach` names. */
const sessionsOf = (flags: Arguments.Flags) =>
  Effect.gen(function* () {
    if (flags.attach === undefined) {
      const environment = yield* Environment.current
      return HostSessions.make(yield* Host.make({ environment, overrides: flags, notify: Output.logOnce }))
    }
    const taken: ReadonlyArray<keyof Flags.Flags> = ["attach", "token-file", "plain", "log-level"]
    yield* ServerAddress.alone(flags, taken)
    const { client, sessions } = yield* Effect.promise(async () => ({
      client: await import("../../http/ApiClient.js"),
      sessions: await import("../../http/RemoteSessions.js")
    }))
    const server = yield* Effect.provide(client.make(yield* ServerAddress.of(flags)), FetchHttpClient.layer)
    // A server that is not there, or does not know the token, is said before the editor asks for something.
    yield* Effect.mapError(
      client.failing(server, server.sessions.list({ urlParams: { limit: 1 } })),
      ({ message }) => new Arguments.UsageError({ message })
    )
    return yield* sessions.make(server)
  })
