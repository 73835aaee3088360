/**
 * Runs one shell command of a model: bounded in memory and in time, and with nothing left behind.
 *
 * The command gets a process group of its own. When the call ends, in any way, the group is asked to terminate and is
 * killed two seconds later, so background processes end with the call. On Linux this holds also for processes that left
 * the group (`setsid`, a daemon), as their environment carries the call's mark. A process that was started with an
 * empty environment (`env -i`), overwrote it, or belongs to another user is not found. Standard input is empty.
 * Standard error goes into the same pipe as standard output: only so both keep the order in which they were printed.
 */
import * as Command from "@effect/platform/Command"
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { IdGenerator } from "../core/Id.js"
import * as Sandbox from "../sandbox/Sandbox.js"
import * as ToolOutput from "../tool/ToolOutput.js"
import * as CommandEnvironment from "./CommandEnvironment.js"
import * as PrintedOutput from "./PrintedOutput.js"
import * as StrayProcesses from "./StrayProcesses.js"
import { sentence, WorkspaceRoot, type Target } from "./WorkspaceRoot.js"

export interface Params {
  readonly command: string
  readonly cwd?: string | undefined
  /** Seconds. */
  readonly timeout?: number | undefined
  /** `off` runs it outside of the sandbox; a person is asked about that. */
  readonly sandbox?: "off" | undefined
  /** Why it has to run outside. */
  readonly reason?: string | undefined
}

/**
 * How commands run: their shell, time limit, environment, and where long output goes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Timeout of a command that names none. Default: 120 s. */
  readonly commandTimeout?: Duration.DurationInput | undefined
  /** Absolute directory for output that is too long to show. Without it nothing is saved. */
  readonly spillDirectory?: string | undefined
  /** A shell that takes `-c`. Default: `/bin/sh`. */
  readonly shell?: string | undefined
  /** Variables added to those that commands get from this process, which are an allow list without keys. */
  readonly environment?: CommandEnvironment.Environment | undefined
  /** Names of further variables that commands get, and of variables that they never get. */
  readonly passedVariables?: ReadonlyArray<string> | undefined
  readonly withheldVariables?: ReadonlyArray<string> | undefined
}

/** The sandbox, where commands can be confined; see {@link Sandbox}. */
type Sandboxes = Pick<Sandbox.Service, "mode" | "start" | "state">

export interface Result {
  /** Null when a signal ended the command. */
  readonly exitCode: number | null
  /** The signal that ended it. */
  readonly signal?: string
  readonly output: string
  /** The file with the whole output, when `output` is only a part. */
  readonly outputFile?: string
  /** Says what was moved away after the command, and why a confined command may have failed. */
  readonly notice?: string
  readonly durationMs: number
}

/** Checks a call without running anything. Yields the directory that it would run in. */
export const check = (params: Params): Effect.Effect<Target, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    if (params.command.trim() === "") return yield* Effect.fail("The command is empty.")
    if (params.command.includes("\0")) return yield* Effect.fail("A command cannot contain a zero character.")
    if (params.timeout !== undefined && !(params.timeout > 0 && params.timeout <= maxTimeout)) {
      return yield* Effect.fail(`timeout must be more than 0 and at most ${maxTimeout} seconds.`)
    }
    if (params.sandbox === "off" && (params.reason ?? "").trim() === "") {
      return yield* Effect.fail(
        "Say in reason why the command has to run outside of the sandbox, or leave sandbox out."
      )
    }
    return yield* workspace.locateDirectory(params.cwd ?? ".")
  })

/**
 * Runs a command to its end. What it prints goes to the call's `ToolOutput` as it arrives, the first million characters of
 * it. Fails with a sentence when it cannot be started, and, with what was printed so far, when its time is up.
 */
export const run = (
  executor: CommandExecutor.CommandExecutor,
  options: Options,
  sandbox: Sandboxes = Sandbox.none(Sandbox.turnedOff)
) => {
  let isTold = false
  /** The sandbox state for a call. Fails when a sandbox is required and there is none. */
  const stateFor = (params: Params) =>
    Effect.gen(function* () {
      const state = yield* sandbox.state
      if (state._tag === "Confined") return params.sandbox === "off" ? undefined : state
      if (sandbox.mode === "require")
        return yield* Effect.fail(`No command runs without a sandbox here. ${state.reason}`)
      if (sandbox.mode === "auto" && !isTold) {
        isTold = true
        yield* Effect.logWarning(`Commands run without a sandbox: ${state.reason}`)
      }
      return undefined
    })
  let known: CommandEnvironment.Environment | undefined
  // Made once, by the first command.
  const environment = Effect.gen(function* () {
    if (known !== undefined) return known
    const { environment: added, passedVariables: passed, withheldVariables: withheld } = options
    return (known = yield* CommandEnvironment.outside(
      yield* CommandEnvironment.make({ added, passed, withheld }),
      yield* WorkspaceRoot
    ))
  })
  return (params: Params): Effect.Effect<Result, string, WorkspaceRoot> =>
    Effect.scoped(
      Effect.gen(function* () {
        const workspace = yield* WorkspaceRoot
        const directory = yield* check(params)
        const limit =
          params.timeout === undefined
            ? Duration.decode(options.commandTimeout ?? defaultTimeout)
            : Duration.seconds(params.timeout)
        const ids = yield* IdGenerator
        const token = ids.unsafeNext("call")
        const variables = CommandEnvironment.ofCall(yield* environment, token)
        const startedAt = yield* Clock.currentTimeMillis
        const printed = PrintedOutput.make({
          fileSystem: workspace.fileSystem,
          path: workspace.path,
          maxLength: workspace.maxOutput,
          file: Option.getOrUndefined(
            Option.map(Option.fromNullable(options.spillDirectory), (spill) => ({
              directory: spill,
              path: workspace.path.join(spill, `${ids.unsafeNext("call")}.txt`)
            }))
          )
        })
        const begin = Effect.mapError(
          executor.start(commandOf(params.command, directory.absolute, variables, options)),
          (error) => sentence(error, "The command")
        )
        const confined = yield* stateFor(params)
        // The command is stopped before the executor's own finalizer runs, as that waits without limit.
        const child = yield* confined === undefined
          ? Effect.acquireRelease(Effect.map(begin, unconfined(workspace.fileSystem)), ({ process: { pid }, stop }) =>
              Effect.zipRight(
                stop,
                StrayProcesses.sweep({ token, after: pid, executor, fileSystem: workspace.fileSystem })
              )
            )
          : Effect.acquireRelease(
              Effect.map(
                sandbox.start({
                  command: [options.shell ?? "/bin/sh", "-c", params.command],
                  directory: directory.absolute,
                  environment: variables
                }),
                (running): Child => ({
                  ...running,
                  settle: Effect.map(running.settle, (notices) => [...notices]),
                  stop: running.stop ?? stop(running.process, workspace.fileSystem)
                })
              ),
              ({ stop }) => stop
            )
        const collecting = yield* Effect.forkScoped(collect(child, printed))
        const inTime = yield* Effect.timeoutOption(Fiber.join(collecting), limit)
        if (Option.isNone(inTime)) {
          yield* child.stop
          // The last output is already in the pipe. The wait is bounded, as a consumer of live output may never return.
          yield* Effect.timeoutOption(Fiber.await(collecting), lastWords)
          yield* Fiber.interrupt(collecting)
        }
        const notices = yield* child.settle
        const { text, file } = yield* printed.finish
        if (file !== undefined) workspace.allowReading(file)
        if (Option.isNone(inTime)) {
          const words = text === "" ? "It printed nothing." : `It printed:\n${text}`
          const details = [words, ...notices].join("\n")
          return yield* Effect.fail(
            `The command was stopped: it ran for more than ${Duration.format(limit)}. ${details}`
          )
        }
        if (confined !== undefined && inTime.value.exitCode !== 0) notices.push(Sandbox.explain(confined))
        const durationMs = (yield* Clock.currentTimeMillis) - startedAt
        const output = file === undefined ? { output: text } : { output: text, outputFile: file }
        const notice = notices.length === 0 ? {} : { notice: notices.join("\n") }
        return { ...inTime.value, ...output, ...notice, durationMs }
      })
    )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const defaultTimeout = "120 seconds"
const maxTimeout = 86_400
/** Milliseconds from SIGTERM to SIGKILL. */
const patience = 2_000
const pollEvery = 20
const lastWords = "500 millis"
/**
 * How long, and for how many characters, to read on after the shell has ended: a background child may print for ever.
 */
const quiet = "150 millis"
const maxAfterExit = 1_000_000
/** Characters that are shown while they arrive. */
const maxLive = 1_000_000

/** The outer shell only redirects and then execs the wanted shell, which gets the command unchanged. */
const commandOf = (
  command: string,
  directory: string,
  environment: CommandEnvironment.Environment,
  options: Options
): Command.Command =>
  Command.make("/bin/sh", "-c", 'exec "$0" -c "$1" 2>&1 </dev/null', options.shell ?? "/bin/sh", command).pipe(
    Command.workingDirectory(directory),
    Command.env(environment, { extendEnv: false })
  )

/** A command that was started, confined or not. */
interface Child {
  readonly process: CommandExecutor.Process
  readonly ended: Effect.Effect<Sandbox.Ended, string>
  readonly stop: Effect.Effect<void>
  /** Run after its end; yields sentences to report. */
  readonly settle: Effect.Effect<Array<string>>
}

const unconfined =
  (fileSystem: FileSystem.FileSystem) =>
  (child: CommandExecutor.Process): Child => ({
    process: child,
    ended: Effect.map(Effect.exit(child.exitCode), ended),
    stop: stop(child, fileSystem),
    settle: Effect.sync(() => [])
  })

/** Reads until the pipe is closed and the shell has ended, or until the shell has ended and no more comes. */
const collect = ({ ended, process: child }: Child, printed: PrintedOutput.PrintedOutput) =>
  Effect.gen(function* () {
    const pull = yield* Stream.toPull(child.stdout)
    const silence = Effect.zipRight(Effect.exit(child.exitCode), Effect.delay(Effect.succeedNone, quiet))
    let live = 0
    let afterExit = 0
    while (afterExit <= maxAfterExit) {
      const next = yield* Effect.raceFirst(
        Effect.catchAll(Effect.asSome(pull), () => Effect.succeedNone),
        silence
      )
      if (Option.isNone(next)) break
      const running = yield* Effect.orElseSucceed(child.isRunning, () => false)
      for (const bytes of Chunk.toReadonlyArray(next.value)) {
        if (!running) afterExit += bytes.length
        const text = yield* printed.push(bytes)
        if (text === "" || live >= maxLive) continue
        live += text.length
        const notice = live >= maxLive ? "\n[more output follows and is not shown while it arrives]\n" : ""
        yield* ToolOutput.emit({ stream: "stdout", text: text + notice })
      }
    }
    return yield* ended
  })

const ended = (exit: Exit.Exit<CommandExecutor.ExitCode, PlatformError>): Sandbox.Ended =>
  Exit.match(exit, {
    onSuccess: (code) => ({ exitCode: code }),
    // The executor reports a signal as an error that names it.
    onFailure: (cause) => ({ exitCode: null, signal: /SIG[A-Z0-9]+/.exec(String(cause))?.[0] ?? "unknown" })
  })

/** Ends the group: SIGTERM, two seconds of grace, SIGKILL. Returns when none of its processes runs any more. */
const stop = (child: CommandExecutor.Process, fileSystem: FileSystem.FileSystem): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (!(yield* signal(child, "SIGTERM"))) return
    if (yield* isGone(child, fileSystem)) return
    yield* signal(child, "SIGKILL")
    yield* isGone(child, fileSystem)
  })

const isGone = (child: CommandExecutor.Process, fileSystem: FileSystem.FileSystem): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const until = (yield* Clock.currentTimeMillis) + patience
    for (let poll = 0; (yield* Clock.currentTimeMillis) < until; poll++) {
      yield* Effect.sleep(pollEvery)
      // Also wakes a stopped child, which could not act on SIGTERM.
      if (!(yield* signal(child, "SIGCONT"))) return true
      if (poll % 5 === 0 && (yield* onlyDead(child, fileSystem))) return true
    }
    return false
  })

/**
 * Whether only zombies are left of the group. Such a process still accepts signals until the init process collects it,
 * which in a container may never happen. False without `/proc`.
 */
const onlyDead = (child: CommandExecutor.Process, fileSystem: FileSystem.FileSystem): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const names = yield* fileSystem.readDirectory("/proc")
    for (const name of names) {
      if (!/^\d+$/.test(name)) continue
      const stat = yield* Effect.orElseSucceed(fileSystem.readFileString(`/proc/${name}/stat`), () => "")
      // `pid (name) state parent group …`; the name may hold anything.
      const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      if (Number(group) === child.pid && state !== "Z" && state !== "X") return false
    }
    return names.includes("self")
  }).pipe(Effect.orElseSucceed(() => false))

/**
 * Signals the whole group; false when there is none any more. The executor waits for the end of the shell after a signal;
 * the time limit does not, and works in a finalizer too because the race runs in fibers of its own.
 */
const signal = (child: CommandExecutor.Process, name: CommandExecutor.Signal): Effect.Effect<boolean> =>
  Effect.isSuccess(Effect.timeoutOption(Effect.interruptible(child.kill(name)), pollEvery))
