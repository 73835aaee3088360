/** Leaves the terminal to others for a while: to the shell that started the program, or to the person's editor. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { Outside } from "../../channel/ConsoleScreen.js"
import * as OwnFile from "../../local/OwnFile.js"
import * as NodeTerminal from "./NodeTerminal.js"

/** Undefined where shells have no jobs. */
export const make = (): Outside | undefined =>
  process.platform === "win32" ? undefined : { suspend: apart(suspended), edit: (text) => apart(edited(text)) }

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const apart = <A, E>(use: Effect.Effect<A, E>): Effect.Effect<A, E> => NodeTerminal.withoutInput(process.stdin, use)

/** Where no shell has started us as a job, the system does not stop us, and nothing will continue us. */
const notStopped = "100 millis"

/** The whole job stops, such as the npm that started us. Commands of agents are jobs of their own and go on. */
const suspended: Effect.Effect<void> = Effect.async<void>((resume) => {
  const continued = () => resume(Effect.void)
  process.once("SIGCONT", continued)
  process.kill(0, "SIGTSTP")
  return Effect.sync(() => process.off("SIGCONT", continued))
}).pipe(Effect.timeoutTo({ duration: notStopped, onSuccess: () => undefined, onTimeout: () => undefined }))

/** A longer text is not taken back. Bytes. */
const longest = 10_000_000

/** `$VISUAL`, else `$EDITOR`, else vi. They are commands with arguments, such as `code --wait`. */
const editor = (): string => [process.env["VISUAL"], process.env["EDITOR"], "vi"].find((name) => name?.trim()) ?? "vi"

const edited = (text: string): Effect.Effect<string, string> =>
  Effect.acquireUseRelease(
    Effect.try({
      try: () => {
        const directory = fs.mkdtempSync(path.join(os.tmpdir(), "assent-edit-"))
        const file = path.join(directory, "text.md")
        fs.writeFileSync(file, text === "" ? "" : `${text}\n`, { mode: 0o600 })
        return { directory, file }
      },
      catch: (error) => `There is no place for the editor's file: ${messageOf(error)}.`
    }),
    ({ file }) => Effect.zipRight(run(file), readBack(file)),
    ({ directory }) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
  )

const run = (file: string): Effect.Effect<void, string> =>
  Effect.async<void, string>((resume) => {
    // Loaded when it is wanted; the pieces of the built program cannot `import()` what is not one of them.
    const { spawn } = process.getBuiltinModule("node:child_process")
    const command = editor()
    const child = spawn("/bin/sh", ["-c", `${command} "$1"`, "sh", file], { stdio: "inherit" })
    child.once("error", (error) => resume(Effect.fail(`The editor ${command} cannot be started: ${error.message}.`)))
    child.once("exit", (code, signal) =>
      resume(
        code === 0
          ? Effect.void
          : Effect.fail(`The editor ${command} ended with ${signal ?? `exit code ${code}`}; the text is as it was.`)
      )
    )
    return Effect.sync(() => child.kill())
  })

const readBack = (file: string): Effect.Effect<string, string> =>
  Effect.suspend(() => {
    const content = OwnFile.read(file, longest)
    if (content._tag === "Text") return Effect.succeed(content.text.replace(/\r?\n$/, ""))
    const reason = content._tag === "Absent" ? "is gone" : content.reason
    return Effect.fail(`What the editor wrote cannot be taken: its file ${reason}.`)
  })

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
