/**
 * The program of a tool server: started in a process group of its own or in the sandbox, and ended with all that it
 * started.
 *
 * The program gets an allow list of variables and those of its settings. If this process is killed, a leash in the group
 * ends the group. What the program prints as errors is kept for its last words only.
 */
import * as Command from "@effect/platform/Command"
import * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import type { Writable } from "node:stream"
import { IdGenerator } from "../core/Id.js"
import * as ForeignText from "../core/ForeignText.js"
import * as CommandEnvironment from "../builtin/CommandEnvironment.js"
import * as ShellProcess from "../builtin/ShellProcess.js"
import * as StrayProcesses from "../builtin/StrayProcesses.js"
import type * as Sandbox from "../sandbox/Sandbox.js"
import { LineTransport } from "./LineTransport.js"

/** What is to run. */
export interface Wanted {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Absolute. */
  readonly directory: string
  readonly environment: CommandEnvironment.Environment
  /** Absent: nothing confines the program. */
  readonly sandbox: Sandbox.Service | undefined
  readonly network: boolean
}

export interface ServerProcess {
  readonly transport: LineTransport
  /** The last words of the program, cleaned; empty if it printed none. */
  readonly words: () => string
  /** Files that its command line names and that the sandbox hides from it. */
  readonly hidden: () => ReadonlyArray<string>
}

/** How a reason begins when the program never ran. */
export const notStarted = "cannot be started"

export type Platform = CommandExecutor.CommandExecutor | FileSystem.FileSystem

/** Starts the program. The scope ends it. Fails with a sentence. */
export const start = (wanted: Wanted): Effect.Effect<ServerProcess, string, Platform | Scope.Scope> =>
  wanted.sandbox === undefined ? startOpen(wanted) : startConfined(wanted, wanted.sandbox)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The leash waits at the fourth stream, and holds none of the others. */
const launch = [
  "leash=$1; mark=$2; shift 2",
  '(trap "" TERM HUP INT; exec /bin/sh -c "$leash" leash $$ "$mark" <&3 3<&- >/dev/null 2>&1) &',
  'exec "$@" 3<&-'
].join("\n")

const startOpen = ({ args, command, directory, environment }: Wanted) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const executor = yield* CommandExecutor.CommandExecutor
    const clock = yield* Effect.clock
    const now = () => clock.unsafeCurrentTimeMillis()
    const token = (yield* IdGenerator).unsafeNext("call")
    const begin = Effect.try({
      try: () => {
        const child = spawn("/bin/sh", ["-c", launch, "sh", ShellProcess.leash, token, command, ...args], {
          cwd: directory,
          env: CommandEnvironment.ofCall(environment, token),
          detached: true,
          stdio: ["pipe", "pipe", "pipe", "pipe"]
        })
        const words = tail()
        const transport = new LineTransport(now, writer(child.stdin), () => child.stdin.end())
        child.stdout.on("data", (bytes: Buffer) => transport.push(bytes))
        child.stderr.on("data", words.push)
        // A pipe that breaks has its end in `close`.
        for (const stream of child.stdio) stream?.on("error", () => undefined)
        child.on("error", (error) => transport.end(`${notStarted}: ${error.message}`))
        child.on("exit", (code, signal) => setImmediate(() => transport.end(endOf(command, code, signal))))
        return { child, transport, words: words.text }
      },
      catch: (error) => `${notStarted}: ${error instanceof Error ? error.message : String(error)}`
    })
    const { transport, words } = yield* Effect.acquireRelease(begin, ({ child, transport }) => {
      const { pid, stdio } = child
      transport.end("was closed")
      const [, , , leash] = stdio
      if (leash !== null && leash !== undefined && "end" in leash) leash.end("over\n")
      if (pid === undefined) return Effect.void
      return Effect.zipRight(
        ShellProcess.stop({ pid: CommandExecutor.ProcessId(pid), kill: (name) => signal(pid, name) }, fileSystem),
        StrayProcesses.sweep({ token, after: pid, executor, fileSystem })
      )
    })
    return { transport, words, hidden: () => [] }
  })

/** Looks inside the sandbox which of so many files are not there, and then becomes the program. */
const launchConfined = [
  "n=$1; shift",
  'while [ "$n" -gt 0 ]; do [ -e "$1" ] || : >"$ASSENT_SERVER/hidden-$n"; shift; n=$((n - 1)); done',
  'exec "$@" <"$ASSENT_SERVER/in" 2>"$ASSENT_SERVER/log"'
].join("\n")

/** The files that a command line names, and that are there outside of the sandbox. */
const namedFiles = ({ args, command, directory, environment }: Wanted): ReadonlyArray<string> => {
  const places = command.includes("/") ? [directory] : (environment["PATH"] ?? "").split(":")
  const program = places.map((place) => path.resolve(place, command)).find((file) => fs.existsSync(file))
  const named = args.flatMap((arg) => {
    const word = arg.replace(/^--?[\w-]+=/, "").replace(/^file:\/\//, "")
    return word === "" || word.startsWith("-") ? [] : [path.resolve(directory, word)]
  })
  return [...(program === undefined ? [] : [program]), ...new Set(named.filter((file) => fs.existsSync(file)))]
}

/** The sandbox gives a command no input, so the input comes through a pipe with a name that both sides share. */
const startConfined = (wanted: Wanted, sandbox: Sandbox.Service) =>
  Effect.gen(function* () {
    const { args, command, directory, environment, network } = wanted
    const files = namedFiles(wanted)
    const fileSystem = yield* FileSystem.FileSystem
    const executor = yield* CommandExecutor.CommandExecutor
    const clock = yield* Effect.clock
    const now = () => clock.unsafeCurrentTimeMillis()
    const place = yield* Effect.flatMap(
      fileSystem.makeTempDirectoryScoped({ prefix: "assent-server-" }),
      fileSystem.realPath
    )
    yield* executor.exitCode(Command.make("mkfifo", "-m", "600", `${place}/in`, `${place}/log`))
    const pipe = (name: string, use: { readonly readable: boolean; readonly writable: boolean }) =>
      Effect.acquireRelease(
        Effect.try({
          // Open for both, so that neither side waits for the other.
          try: () => {
            const fd = fs.openSync(`${place}/${name}`, fs.constants.O_RDWR | fs.constants.O_NONBLOCK)
            return new net.Socket({ fd, ...use })
          },
          catch: (error) => `${notStarted}: ${error instanceof Error ? error.message : String(error)}`
        }),
        (socket) => Effect.sync(() => socket.destroy())
      )
    const words = tail()
    const input = yield* pipe("in", { readable: false, writable: true })
    const log = yield* pipe("log", { readable: true, writable: false })
    input.on("error", () => undefined)
    log.on("error", () => undefined)
    log.on("data", words.push)
    const running = yield* Effect.acquireRelease(
      sandbox.start({
        command: ["/bin/sh", "-c", launchConfined, "sh", `${files.length}`, ...files, command, ...args],
        directory,
        environment,
        network,
        shared: { directory: place, variables: (inside) => ({ ASSENT_SERVER: inside }) }
      }),
      ({ settle, stop }) => Effect.zipRight(stop ?? Effect.void, settle)
    )
    const transport = new LineTransport(now, writer(input), () => input.destroy())
    yield* Effect.addFinalizer(() => Effect.sync(() => transport.end("was closed")))
    const { stdout } = running.process
    const read = Stream.runForEach(stdout, (bytes) => Effect.sync(() => transport.push(bytes)))
    yield* Effect.forkScoped(
      Effect.zipRight(Effect.ignore(read), running.ended).pipe(
        Effect.match({
          onFailure: (reason) => transport.end(`cannot be confined: ${reason}`),
          onSuccess: ({ exitCode, signal }) => transport.end(endOf(command, exitCode, signal ?? null))
        })
      )
    )
    const hidden = () => files.filter((_, i) => fs.existsSync(`${place}/hidden-${files.length - i}`))
    return { transport, words: words.text, hidden }
  }).pipe(Effect.mapError((error) => (typeof error === "string" ? error : `${notStarted}: ${error.message}`)))

/** Signals the group. Fails if there is none. */
const signal = (
  pid: number,
  name: CommandExecutor.Signal = "SIGTERM"
): Effect.Effect<void, PlatformError.PlatformError> =>
  Effect.try({
    try: () => void process.kill(-pid, name),
    catch: (cause) =>
      new PlatformError.SystemError({
        reason: "NotFound",
        module: "Command",
        method: "kill",
        description: String(cause)
      })
  })

const writer =
  (stream: Writable) =>
  (text: string): Promise<void> =>
    new Promise((resolve, reject) => stream.write(text, (error) => (error ? reject(error) : resolve())))

/** Words of the program for a person. */
const tail = () => {
  let kept = Buffer.alloc(0)
  return {
    push: (bytes: Buffer) => {
      kept = Buffer.concat([kept, bytes]).subarray(-maxWords)
    },
    text: () => {
      const lines = ForeignText.clean(kept.toString("utf8")).split("\n")
      // A stack trace says nothing to a person; the line that names the error does.
      return (lines.findLast((line) => /\berror\b/i.test(line)) ?? lines.at(-1) ?? "")
        .trim()
        .replace(/\.$/, "")
        .slice(0, 300)
    }
  }
}

const maxWords = 4_096

const endOf = (command: string, code: number | null, signal: string | null): string => {
  if (code === 127) return `${notStarted}: there is no program ${command}`
  if (code === 126) return `${notStarted}: ${command} is not executable`
  return code === null ? `was ended by ${signal ?? "a signal"}` : `ended with exit code ${code}`
}
