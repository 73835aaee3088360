/**
 * The built command line as a real process, in a directory of its own: no home, no keys and no settings of the person
 * who runs the tests. The processes and the directory end with the scope.
 */
import type { DurationInput } from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { execFile, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Readable } from "node:stream"
import { fileURLToPath } from "node:url"
import * as Cli from "../../src/cli/Cli.js"
import * as ExitCode from "../../src/host/ExitCode.js"
import * as Output from "../../src/tui/process/Output.js"
import * as StaticHelp from "../../src/cli/StaticHelp.js"
import { AgentEvent } from "../../src/event/AgentEvent.js"
import { patience } from "./Wait.js"

/** The built program. */
export const binary = fileURLToPath(new URL("../../dist/bin/assent.js", import.meta.url))

export interface Result {
  /** Nothing when a signal ended it that it did not handle. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Options {
  /** Default: the workspace. */
  readonly cwd?: string
  /** Added to an environment of `PATH`, `HOME`, `TMPDIR`, `ASSENT_CONFIG_DIR`, `ASSENT_STATE_DIR`, `ASSENT_SANDBOX` and `ASSENT_STATUS_LINE`. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Input extends Options {
  /** All of its standard input. Default: none. */
  readonly stdin?: string
}

export interface Place {
  /** The environment of programs that are started here. */
  readonly environment: Readonly<Record<string, string>>
  /** A path in the place: `workspace`, `config`, `state`, `home`, `tmp`, or anything else. */
  readonly path: (...parts: ReadonlyArray<string>) => string
  /** Writes a file and the directories above it; what is no text is written as JSON. Yields its path. */
  readonly write: (file: string, content: unknown) => Effect.Effect<string>
  readonly read: (file: string) => Effect.Effect<string>
  readonly exists: (file: string) => Effect.Effect<boolean>
  /** The entries of a directory, sorted, without the heads of audits. */
  readonly list: (directory: string) => Effect.Effect<ReadonlyArray<string>>
  /** The content of every file in the place, the audit's too. */
  readonly allText: Effect.Effect<string>
  /** Makes a directory and those above it. Yields its path. */
  readonly makeDirectory: (directory: string) => Effect.Effect<string>
  /** Makes a symbolic link, unless something of its name is there. */
  readonly link: (target: string, file: string) => Effect.Effect<void>
  /** Waits until a file is there; write it under another name and move it, or it may be empty. */
  readonly appears: (file: string) => Effect.Effect<string>
  /** The same of any file in a directory, which is there, whose name ends so and does not begin with a dot. */
  readonly appearsIn: (directory: string, ending: string) => Effect.Effect<string>
  /** A model that plays these steps, for `--model`. */
  readonly script: (...steps: ReadonlyArray<unknown>) => Effect.Effect<string>
  /** Runs the program to its end, with this standard input. */
  readonly run: (args: ReadonlyArray<string>, options?: Input) => Effect.Effect<Result>
  /**
   * What the same command line does in this process, for a tenth of what a process takes. It is for what is not about the
   * process: its signals, its death, its own memory. Calls come one after the other.
   */
  readonly call: (args: ReadonlyArray<string>, options?: Input) => Effect.Effect<Result>
  /** Starts the program, to be talked to. */
  readonly start: (args: ReadonlyArray<string>, options?: Options) => Effect.Effect<Program, never, Scope.Scope>
}

export interface Program {
  readonly pid: number
  /** The next line of standard output that matches. Lines before it are passed over, and not looked at again. */
  readonly line: (matches: (line: string) => boolean) => Effect.Effect<string>
  /** The next line that is a JSON object with this tag, and these other fields. */
  readonly json: (tag: string, fields?: Readonly<Record<string, unknown>>) => Effect.Effect<any>
  /** The same on standard error. */
  readonly errorLine: (matches: (line: string) => boolean) => Effect.Effect<string>
  readonly write: (text: string) => Effect.Effect<void>
  /** Writes one JSON value as a line. */
  readonly tell: (command: unknown) => Effect.Effect<void>
  /** Ends its standard input. */
  readonly endInput: Effect.Effect<void>
  /** Goes away as the reader of its standard output. */
  readonly stopReading: Effect.Effect<void>
  readonly signal: (name: NodeJS.Signals) => Effect.Effect<void>
  readonly exit: Effect.Effect<Result>
}

// -----------------------------------------------------------------------------------------------------------------

/** A place with an empty workspace. */
export const place: Effect.Effect<Place, never, Scope.Scope> = Effect.gen(function* () {
  const root = yield* Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(temporary, "assent-program-")))),
    (directory) =>
      Effect.sync(() => {
        // Processes that a broken program left running must not outlive the test.
        killAllBelow(directory)
        fs.rmSync(directory, { recursive: true, force: true })
      })
  )
  const at = (...parts: ReadonlyArray<string>) => path.resolve(root, ...parts)
  for (const name of ["workspace", "config", "home", "tmp"]) fs.mkdirSync(at(name))
  const environment = {
    PATH: process.env["PATH"] ?? "",
    HOME: at("home"),
    TMPDIR: at("tmp"),
    ASSENT_CONFIG_DIR: at("config"),
    ASSENT_STATE_DIR: at("state"),
    // Tests look at processes and files from outside; those of the sandbox say so.
    ASSENT_SANDBOX: "off",
    // What is looked at ends with the prompt, unless a test is about the line below it.
    ASSENT_STATUS_LINE: "off"
  }
  let scripts = 0
  const write = (file: string, content: unknown) =>
    Effect.sync(() => {
      fs.mkdirSync(path.dirname(at(file)), { recursive: true })
      fs.writeFileSync(at(file), typeof content === "string" ? content : JSON.stringify(content, undefined, 2))
      return at(file)
    })
  const start: Place["start"] = (args, { cwd = at("workspace"), env = {} } = {}) =>
    Effect.acquireRelease(
      Effect.sync(() => launch(args, { cwd, env: { ...environment, ...env } })),
      (program) => program.stop
    )
  return {
    environment,
    path: at,
    write,
    read: (file) => Effect.sync(() => fs.readFileSync(at(file), "utf8")),
    exists: (file) => Effect.sync(() => fs.existsSync(at(file))),
    list: (directory) => Effect.sync(() => listed(at(directory))),
    allText: Effect.sync(() => textBelow(root)),
    makeDirectory: (directory) =>
      Effect.sync(() => {
        fs.mkdirSync(at(directory), { recursive: true })
        return at(directory)
      }),
    link: (target, file) =>
      Effect.sync(() => {
        if (!fs.existsSync(at(file))) fs.symlinkSync(target, at(file))
      }),
    appears: (file) =>
      inTime(
        appears(at(path.dirname(file)), (name) => name === path.basename(file)),
        () => `${file} never appeared`
      ),
    appearsIn: (directory, ending) =>
      inTime(
        appears(at(directory), (name) => name.endsWith(ending) && !name.startsWith(".")),
        () => `No ${ending} ever appeared in ${directory}`
      ),
    script: (...steps) =>
      Effect.map(
        Effect.suspend(() => write(`script-${++scripts}.json`, { version: 1, agents: { main: steps } })),
        (file) => `script:${file}`
      ),
    run: (args, { stdin = "", ...options } = {}) =>
      Effect.scoped(
        Effect.gen(function* () {
          const program = yield* start(args, options)
          yield* program.write(stdin)
          yield* program.endInput
          return yield* program.exit
        })
      ),
    call: (args, { cwd = at("workspace"), env = {}, stdin = "" } = {}) =>
      called(args, { cwd, env: { ...environment, ...env }, stdin }),
    start
  } satisfies Place
})

/**
 * Runs some other program to its end. `spawnSync` would keep this process from answering vitest, which gives it up after a
 * minute.
 */
export const execute = (
  file: string,
  args: ReadonlyArray<string>,
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {}
): Effect.Effect<Result> =>
  Effect.async((resume) => {
    const child = execFile(file, args, { ...options, maxBuffer: 100_000_000 }, (_, stdout, stderr) =>
      resume(Effect.succeed({ code: child.exitCode, stdout, stderr }))
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Every line as an event, but for those with one of these other tags; a line that is neither is an error that shows it. */
export const events = (stdout: string, others: ReadonlyArray<string> = []): ReadonlyArray<AgentEvent> =>
  linesOf(stdout).flatMap((line) => {
    const value = JSON.parse(line)
    if (others.includes(value._tag)) return []
    return [Either.getOrThrowWith(decodeEvent(value), () => new Error(`This is no event: ${line}`))]
  })

/** What a peer is told beside events. */
export const protocol = ["InteractionRequest", "InteractionClosed", "AnswerRejected", "Permissions", "SendTaken"]

/** The lines of a text that ends with a line break, or is empty. */
export const linesOf = (text: string): ReadonlyArray<string> => {
  const lines = text.split("\n")
  const rest = lines.pop()
  return rest === "" ? lines : [...lines, `no line break after: ${rest}`]
}

/** The most memory that a process had at once; nothing where there is no `/proc`. */
export const peakMegabytes = (pid: number): number | undefined => {
  if (!fs.existsSync("/proc/self/status")) return undefined
  return Number(/VmHWM:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_000
}

/** Whether there is such a process that still does something; one that merely was not collected does not. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2))
  } catch {
    return false
  }
}

/** The living processes with this in their command line, whose words end with `\0`. None where there is no `/proc`. */
export const processesWith = (text: string): ReadonlyArray<number> =>
  !fs.existsSync("/proc/self")
    ? []
    : fs.readdirSync("/proc").flatMap((name) => {
        if (!/^\d+$/.test(name)) return []
        try {
          return fs.readFileSync(`/proc/${name}/cmdline`, "utf8").includes(text) && isAlive(Number(name))
            ? [Number(name)]
            : []
        } catch {
          return []
        }
      })

/** Waits for something that nothing tells of. */
export const until = (holds: () => boolean, what: string): Effect.Effect<void> =>
  inTime(
    Effect.repeat(Effect.delay(Effect.sync(holds), "20 millis"), { until: (now) => now }),
    () => `not in time: ${what}`
  ).pipe(Effect.asVoid)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decodeEvent = Schema.decodeUnknownEither(AgentEvent, { onExcessProperty: "error" })

/** The first call in a process loads the program, module by module. */
const loadingPatience = "90 seconds"

const inTime = <A>(
  effect: Effect.Effect<A>,
  problem: () => string,
  duration: DurationInput = patience
): Effect.Effect<A> =>
  Effect.timeoutTo(effect, {
    duration,
    onSuccess: Effect.succeed<A>,
    onTimeout: () => Effect.dieMessage(problem())
  }).pipe(Effect.flatten)

interface Text {
  readonly all: () => string
  /** The next line that is chosen. Fails, with nothing, when the text has ended without one. */
  readonly next: <A>(choose: (line: string) => A | undefined) => Effect.Effect<A, void>
}

const textOf = (stream: Readable): Text => {
  let text = ""
  let from = 0
  let ended = false
  const waiting = new Set<() => void>()
  const wake = () => {
    for (const look of waiting) look()
  }
  stream.setEncoding("utf8")
  stream.on("data", (chunk: string) => {
    text += chunk
    wake()
  })
  stream.on("close", () => {
    ended = true
    wake()
  })
  return {
    all: () => text,
    next: (choose) =>
      Effect.async((resume) => {
        const look = () => {
          for (let end = text.indexOf("\n", from); end >= 0; end = text.indexOf("\n", from)) {
            const chosen = choose(text.slice(from, end))
            from = end + 1
            if (chosen !== undefined) {
              waiting.delete(look)
              return resume(Effect.succeed(chosen))
            }
          }
          if (ended) resume(Effect.fail(undefined))
        }
        waiting.add(look)
        look()
        return Effect.sync(() => waiting.delete(look))
      })
  }
}

const recordOf = (
  problem: string,
  args: ReadonlyArray<string>,
  { stderr, stdout }: Pick<Result, "stdout" | "stderr">
): string => `${problem}: assent ${args.join(" ")}\n--- stdout\n${stdout}\n--- stderr\n${stderr}`

const launch = (
  args: ReadonlyArray<string>,
  { cwd, env }: { readonly cwd: string; readonly env: Record<string, string> }
): Program & { readonly stop: Effect.Effect<void> } => {
  const child = spawn(process.execPath, [binary, ...args], { cwd, env, stdio: "pipe" })
  const stdout = textOf(child.stdout)
  const stderr = textOf(child.stderr)
  let code: number | null | undefined
  child.on("close", (status) => {
    code = status
  })
  // A program that is gone does not read, and that is found out by its exit.
  child.stdin.on("error", () => {})
  const ended = Effect.async<Result>((resume) => {
    const tell = () => resume(Effect.succeed({ code: code ?? null, stdout: stdout.all(), stderr: stderr.all() }))
    if (code !== undefined) return tell()
    child.on("close", tell)
    return Effect.sync(() => child.off("close", tell))
  })
  const record = (problem: string) => recordOf(problem, args, { stdout: stdout.all(), stderr: stderr.all() })
  const next = <A>(text: Text, choose: (line: string) => A | undefined): Effect.Effect<A> =>
    inTime(
      Effect.catchAll(text.next(choose), () => Effect.dieMessage(record("The line did not come before the end"))),
      () => record("The line did not come in time")
    )
  const write = (text: string) =>
    Effect.async<void>((resume) => {
      child.stdin.write(text, () => resume(Effect.void))
    })
  const endInput = Effect.sync(() => void child.stdin.end())
  return {
    pid: child.pid ?? -1,
    line: (matches) => next(stdout, (line) => (matches(line) ? line : undefined)),
    errorLine: (matches) => next(stderr, (line) => (matches(line) ? line : undefined)),
    json: (tag, fields = {}) =>
      next(stdout, (line) => {
        const value = JSON.parse(line)
        const wanted = Object.entries({ _tag: tag, ...fields })
        return wanted.every(([name, expected]) => value[name] === expected) ? value : undefined
      }),
    write,
    tell: (command) => write(`${JSON.stringify(command)}\n`),
    endInput,
    stopReading: Effect.sync(() => void child.stdout.destroy()),
    signal: (name) => Effect.sync(() => void child.kill(name)),
    exit: inTime(ended, () => record("The program did not end in time")),
    // First as a person would, so that it ends what it started itself.
    stop: Effect.suspend(() => {
      if (code !== undefined) return Effect.void
      child.kill("SIGTERM")
      return Effect.asVoid(
        Effect.timeoutTo(ended, {
          duration: "4 seconds",
          onSuccess: () => true,
          onTimeout: () => child.kill("SIGKILL")
        })
      )
    })
  }
}

/** Told once: a call has an environment of its own for a while. */
const temporary = os.tmpdir()

/** A process has one environment, one current directory, one standard input and one standard output. */
const turn = Effect.unsafeMakeSemaphore(1)

const called = (
  args: ReadonlyArray<string>,
  { cwd, env, stdin }: { readonly cwd: string; readonly env: Record<string, string>; readonly stdin: string }
): Effect.Effect<Result> =>
  Effect.suspend(() => {
    const printed = { stdout: "", stderr: "" }
    const before = { cwd: process.cwd(), env: process.env, stdin: Object.getOwnPropertyDescriptor(process, "stdin") }
    const input = Readable.from(stdin === "" ? [] : [Buffer.from(stdin)], { objectMode: false })
    Object.defineProperty(process, "stdin", { configurable: true, get: () => input })
    const writers = (["stdout", "stderr"] as const).map((name) => {
      const stream = process[name]
      const { write } = stream
      stream.write = (text, ...rest: ReadonlyArray<unknown>) => {
        printed[name] += String(text)
        for (const callback of rest) if (typeof callback === "function") callback()
        return true
      }
      return () => {
        stream.write = write
      }
    })
    process.env = { ...env }
    process.chdir(cwd)
    const told = StaticHelp.of(args)
    return inTime(
      Effect.map(
        told === undefined ? Cli.main(args) : Effect.as(Output.write("stdout", `${told}\n`), ExitCode.completed),
        (code) => ({ code, ...printed })
      ),
      () => recordOf("The call did not end in time", args, printed),
      loadingPatience
    ).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          for (const restore of writers) restore()
          if (before.stdin !== undefined) Object.defineProperty(process, "stdin", before.stdin)
          process.env = before.env
          process.chdir(before.cwd)
        })
      )
    )
  }).pipe(turn.withPermits(1))

const listed = (directory: string): ReadonlyArray<string> =>
  fs
    .readdirSync(directory)
    .filter((name) => name !== "audit-heads")
    .sort()

const textBelow = (directory: string): string =>
  fs
    .readdirSync(directory, { withFileTypes: true })
    .map((entry) => {
      const file = path.join(directory, entry.name)
      return entry.isDirectory() ? textBelow(file) : entry.isFile() ? fs.readFileSync(file, "utf8") : ""
    })
    .join("\n")

/** Ends the processes whose current directory is in this one. Where there is no `/proc`, none. */
const killAllBelow = (directory: string): void => {
  if (!fs.existsSync("/proc/self")) return
  for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const cwd = fs.readlinkSync(`/proc/${pid}/cwd`)
      if (cwd === directory || cwd.startsWith(`${directory}/`)) process.kill(Number(pid), "SIGKILL")
    } catch {
      // It is gone, or somebody else's.
    }
  }
}

/** The content of the first file of a directory that is wanted, now or later. */
const appears = (directory: string, wanted: (name: string) => boolean): Effect.Effect<string> =>
  Effect.async((resume) => {
    const watcher = fs.watch(directory)
    const look = () => {
      const name = fs.readdirSync(directory).find(wanted)
      if (name === undefined) return
      watcher.close()
      resume(Effect.sync(() => fs.readFileSync(path.join(directory, name), "utf8")))
    }
    watcher.on("change", look)
    look()
    return Effect.sync(() => watcher.close())
  })
