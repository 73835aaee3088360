/** `assent acp`: an agent for an editor, which speaks the Agent Client Protocol over standard input and output. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { Readable, Writable } from "node:stream"
import * as Environment from "../../host/Environment.js"
import * as Host from "../../host/Host.js"
import * as Person from "../../host/local/Person.js"
import type * as Arguments from "../config/Arguments.js"
import * as ExitCode from "../ExitCode.js"
import * as Output from "../terminal/Output.js"

/** Ends when the editor closes standard input. Its sessions stay in their stores. */
export const run = ({ flags }: Arguments.Invocation) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const serving = Effect.gen(function* () {
      const host = yield* Host.make({
        environment: yield* Environment.current,
        overrides: flags,
        notify: Output.logOnce
      })
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
