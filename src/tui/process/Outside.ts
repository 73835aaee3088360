/** Leaves the terminal to others for a while: to the shell that started the program, or to the person's editor. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { Outside } from "../console/ConsoleScreen.js"
import * as OwnFile from "../../host/local/OwnFile.js"
import * as UserLocation from "../../host/local/UserLocation.js"
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
      catch: (error) => `Assent cannot create a file for the editor: ${UserLocation.reasonOf(error)}.`
    }),
    ({ file }) => Effect.zipRight(run(file), readBack(file)),
    ({ directory }) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
  )

const run = (file: string): Effect.Effect<void, string> =>
  Effect.async<void, string>((resume) => {
    const command = editor()
    const failed = (how: string) =>
      resume(
        Effect.fail(
          `The editor ${command} ${how}. Set VISUAL or EDITOR to another one, such as nano. Your text is still there.`
        )
      )
    // A shell would say it in the middle of the screen.
    if (isMissing(command)) return failed("is not there")
    // Loaded when it is wanted; the pieces of the built program cannot `import()` what is not one of them.
    const { spawn } = process.getBuiltinModule("node:child_process")
    const child = spawn("/bin/sh", ["-c", `${command} "$1"`, "sh", file], { stdio: "inherit" })
    child.once("error", (error) => failed(`cannot be started: ${UserLocation.reasonOf(error)}`))
    child.once("exit", (code, signal) =>
      code === 0
        ? resume(Effect.void)
        : failed(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`)
    )
    return Effect.sync(() => child.kill())
  })

/** Whether the program of a command is certainly nowhere: what only a shell can tell is left to it. */
const isMissing = (command: string): boolean => {
  const [, program] = /^\s*(?:\w+=[\w./:-]*\s+)*([\w./+-]+)(?:\s|$)/.exec(command) ?? []
  if (program === undefined) return false
  const places = program.includes("/") ? [""] : (process.env["PATH"] ?? "").split(path.delimiter)
  return !places.some((place) => isProgram(path.join(place, program)))
}

const isProgram = (file: string): boolean => {
  try {
    fs.accessSync(file, fs.constants.X_OK)
    return fs.statSync(file).isFile()
  } catch {
    return false
  }
}

const readBack = (file: string): Effect.Effect<string, string> =>
  Effect.suspend(() => {
    const content = OwnFile.read(file, longest)
    if (content._tag === "Text") return Effect.succeed(content.text.replace(/\r?\n$/, ""))
    const reason = content._tag === "Absent" ? "is gone" : content.reason
    return Effect.fail(`Assent cannot read the editor's file: it ${reason}. Your text is still there.`)
  })
