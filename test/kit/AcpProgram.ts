/** The built `assent acp` with an editor at it. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { Readable, Writable } from "node:stream"
import * as AcpEditor from "./AcpEditor.js"
import * as Program from "./Program.js"

export interface Options extends AcpEditor.Options {
  readonly args?: ReadonlyArray<string>
  readonly env?: Record<string, string>
}

export const started = (place: Program.Place, options: Options = {}) =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [Program.binary, "acp", ...(options.args ?? [])], {
          cwd: place.path("tmp"),
          env: { ...place.environment, ...options.env },
          stdio: ["pipe", "pipe", "ignore"]
        })
      ),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    )
    const exit = new Promise<number | null>((resolve) => child.on("exit", resolve))
    const editor = yield* AcpEditor.open(
      // Node declares its own streams of the web beside those of the platform, which they are.
      { input: Writable.toWeb(child.stdin), output: Readable.toWeb(child.stdout) as ReadableStream<Uint8Array> },
      options
    )
    return { ...editor, child, exit: Effect.promise(() => exit) }
  })
