/**
 * A shell command of a model while it runs, confined or not, and with nothing left behind.
 *
 * An unconfined command gets a process group of its own. When its scope closes, the group is asked to terminate and is
 * killed two seconds later, so background processes end with it. On Linux this holds also for processes that left
 * the group (`setsid`, a daemon), as their environment carries the call's mark. A process that was started with an
 * empty environment (`env -i`), overwrote it, or belongs to another user is not found. Where we are killed ourselves, a
 * process of ours does the same: the leash in the group of a background job, and a watcher beside a command that its call
 * waits for, once that has run for a moment. Standard input is empty.
 * Standard error goes into the same pipe as standard output: only so both keep the order in which they were printed.
 */
import * as Command from "@effect/platform/Command"
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { IdGenerator } from "../core/Id.js"
import type * as Sandbox from "../sandbox/Sandbox.js"
import * as Origin from "../core/Origin.js"
import * as HandlerSession from "../session/HandlerSession.js"
import * as Askpass from "./Askpass.js"
import * as DeniedFiles from "./DeniedFiles.js"
import * as CommandEnvironment from "./CommandEnvironment.js"
import * as StrayProcesses from "./StrayProcesses.js"
import { sentence, WorkspaceRoot } from "./WorkspaceRoot.js"

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

/** What is to run, and where. */
export interface Wanted {
  readonly command: string
  /** Absolute. */
  readonly directory: string
  /** `off`: outside of the sandbox. `network`: in it, with the network. `write`: in it, and it may change files. */
  readonly sandbox?: "off" | "network" | "write" | undefined
  /** Nothing of it outlives us where we are killed. A confined command has that always. Default: no. */
  readonly leashed?: boolean | undefined
}

/** A command that was started. */
export interface ShellProcess {
  readonly process: CommandExecutor.Process
  /** How it ended. Fails with a sentence when it never began. */
  readonly ended: Effect.Effect<Sandbox.Ended, string>
  /** Asks all of it to terminate, and kills what is left after two seconds. */
  readonly stop: Effect.Effect<void>
  /** Run it after the command's end; yields sentences to report. */
  readonly settle: Effect.Effect<ReadonlyArray<string>>
  /** The sandbox that it runs in; nothing where it runs in none. */
  readonly confined: Confined | undefined
  /** It runs in the sandbox, where it can change nothing. */
  readonly reading: boolean
  /** Its way to the person, where it has one. */
  readonly askpass: Askpass.Opened | undefined
}

/** A process that leads a group, and a way to signal the whole group. */
export type Signalled = Pick<CommandExecutor.Process, "kill" | "pid">

type Confined = Sandbox.State & { readonly _tag: "Confined" }

/** The sandbox, where commands can be confined; see {@link Sandbox}. */
export type Sandboxes = Pick<Sandbox.Service, "mode" | "start" | "state">

/** Starts a command in a scope, whose end it does not outlive. Fails with a sentence. */
export type Start = (wanted: Wanted) => Effect.Effect<ShellProcess, string, WorkspaceRoot | Scope.Scope>

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** What starts the commands of one set of tools. With `port` their requests for a password reach the person. */
export const starter = (
  executor: CommandExecutor.CommandExecutor,
  options: Options,
  sandbox: Sandboxes,
  port?: Askpass.Service
): Start => {
  let isTold = false
  /** The sandbox state for a call. Fails when a sandbox is required and there is none. */
  const stateFor = (wanted: Wanted) =>
    Effect.gen(function* () {
      const state = yield* sandbox.state
      if (state._tag === "Confined") {
        if (wanted.sandbox === "off") return undefined
        return wanted.sandbox === "network" ? { ...state, network: true } : state
      }
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
  return (wanted) =>
    Effect.gen(function* () {
      const workspace = yield* WorkspaceRoot
      const { fileSystem, path, roots } = workspace
      const ids = yield* IdGenerator
      const token = ids.unsafeNext("call")
      const variables = CommandEnvironment.ofCall(yield* environment, token)
      const confined = yield* stateFor(wanted)
      const { privileges, toolCallId } = yield* Origin.current
      const reading = confined !== undefined && privileges?.readOnly === true
      const { spillDirectory: parent } = options
      const writable = [...roots, ...(confined?.writable ?? [])]
      const askpass =
        port === undefined || parent === undefined || privileges?.askpass !== true
          ? undefined
          : yield* Askpass.open(port, { command: wanted.command, fileSystem, parent, path, writable })
      if (confined !== undefined) {
        const aside = yield* Effect.serviceOption(HandlerSession.Aside)
        /** What was set aside is said to the person, too, and recorded. */
        const tell = (notices: ReadonlyArray<string>) =>
          Option.isNone(aside) || notices.length === 0 ? Effect.void : aside.value(notices, toolCallId)
        const hidden = yield* DeniedFiles.find(workspace, yield* workspace.denied)
        const started = Effect.map(
          sandbox.start({
            command: [options.shell ?? "/bin/sh", "-c", wanted.command],
            directory: wanted.directory,
            environment: variables,
            hidden,
            ...(reading ? { reads: [] } : { network: confined.network, git: privileges?.git === true, shared: askpass })
          }),
          (running): ShellProcess => ({
            ...running,
            stop: running.stop ?? stop(running.process, fileSystem),
            settle: Effect.tap(running.settle, tell),
            confined,
            reading,
            askpass
          })
        )
        // It is stopped before the executor's own finalizer runs, as that waits without limit.
        const running = yield* Effect.acquireRelease(started, ({ settle, stop }) => Effect.zipRight(stop, settle))
        yield* askpass?.serve ?? Effect.void
        return running
      }
      const all = askpass === undefined ? variables : { ...askpass.variables(askpass.directory), ...variables }
      const begun = Effect.mapError(executor.start(commandOf(wanted, all, token, options)), (error) =>
        sentence(error, "The command")
      )
      const running = yield* Effect.acquireRelease(
        Effect.map(begun, unconfined(fileSystem, wanted, askpass)),
        ({ process: { pid }, stop }) =>
          Effect.zipRight(stop, StrayProcesses.sweep({ token, after: pid, executor, fileSystem }))
      )
      const { process: child } = running
      if (wanted.leashed !== true)
        yield* Effect.forkScoped(Effect.delay(watching(executor, child.pid, token), watchedAfter))
      yield* askpass?.serve ?? Effect.void
      return running
    })
}

// -----------------------------------------------------------------------------------------------------------------
// operations
// -----------------------------------------------------------------------------------------------------------------

/**
 * Hands on what it prints, until the pipe is closed and the shell has ended, or until the shell has ended and no more
 * comes. Yields how it ended.
 */
export const read = <R>(
  { ended, process: child }: ShellProcess,
  take: (bytes: Uint8Array) => Effect.Effect<void, never, R>
): Effect.Effect<Sandbox.Ended, string, R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const pull = yield* Stream.toPull(child.stdout)
      const silence = Effect.zipRight(Effect.exit(child.exitCode), Effect.delay(Effect.succeedNone, quiet))
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
          yield* take(bytes)
        }
      }
      return yield* ended
    })
  )

/** Ends when the command has run for so long. The time of questions to the person does not count. */
export const timeUp = ({ askpass }: ShellProcess, limit: Duration.DurationInput): Effect.Effect<void> =>
  Effect.gen(function* () {
    const waited = askpass?.waited ?? (() => 0)
    let counted = waited()
    yield* Effect.sleep(limit)
    for (let more = waited() - counted; more > 0; more = waited() - counted) {
      counted += more
      yield* Effect.sleep(Math.max(more, shortestWait))
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Milliseconds from SIGTERM to SIGKILL. */
const patience = 2_000
const pollEvery = 20
/** Milliseconds: while a question is open, the end of the time moves on. */
const shortestWait = 200
/**
 * How long, and for how many characters, to read on after the shell has ended: a background child may print for ever.
 */
const quiet = "150 millis"
const maxAfterExit = 1_000_000

/**
 * The outer shell leaves the leash behind, redirects, and execs the wanted shell, which gets the command unchanged. A
 * command that its call waits for has a watcher instead, which is no process of its group: a leash would leave a dead
 * process for init at each call, which in a container may never be collected, and the look whether the group is gone takes
 * longer then.
 */
const launch = [
  "exec 3<&0",
  '(trap "" TERM HUP INT; exec /bin/sh -c "$3" leash $$ "$2" <&3 3<&- >/dev/null 2>&1) &',
  'exec "$0" -c "$1" 3<&- 2>&1 </dev/null'
].join("\n")

/** Asks the group to terminate, and kills that and all that carries the call's mark. */
const ending = [
  "PATH=/usr/bin:/bin",
  'kill -s TERM -- "-$1"; sleep 1',
  'for round in 1 2 3; do for pid in $(cd /proc && grep -lsF ":$2:" [0-9]*/environ); do',
  'pid=${pid%/environ}; [ "$pid" = $$ ] || kill -s KILL "$pid"; done; done',
  'kill -s KILL -- "-$1"'
]

/**
 * The leash reads our end of the pipe. A line is our word that all is over. Without one the pipe ends because we are no
 * more: then it ends the group. It is one of the group, so the group's number stays its own.
 */
export const leash = ["IFS= read -r word && exit", ...ending].join("\n")

/** Most commands have ended by then, and cost nothing more. */
const watchedAfter = "250 millis"

/** Nothing is ever written to a watcher. It is ended with the command, before that; or its pipe ends as we are no more. */
const watch = ["IFS= read -r word", ...ending].join("\n")

const watching = (executor: CommandExecutor.CommandExecutor, group: number, token: string) =>
  Effect.ignore(
    executor.start(
      Command.make("/bin/sh", "-c", `exec >/dev/null 2>&1; ${watch}`, "watcher", String(group), token).pipe(
        Command.workingDirectory("/"),
        Command.env({}, { extendEnv: false })
      )
    )
  )

const commandOf = (
  { command, directory, leashed }: Wanted,
  environment: CommandEnvironment.Environment,
  token: string,
  { shell = "/bin/sh" }: Options
): Command.Command =>
  (leashed === true
    ? Command.make("/bin/sh", "-c", launch, shell, command, token, leash)
    : Command.make("/bin/sh", "-c", 'exec "$0" -c "$1" 2>&1 </dev/null', shell, command)
  ).pipe(Command.workingDirectory(directory), Command.env(environment, { extendEnv: false }))

const unconfined =
  (fileSystem: FileSystem.FileSystem, { leashed }: Wanted, askpass: Askpass.Opened | undefined) =>
  (child: CommandExecutor.Process): ShellProcess => ({
    process: child,
    ended: Effect.map(Effect.exit(child.exitCode), ended),
    stop: leashed === true ? Effect.zipRight(unleash(child), stop(child, fileSystem)) : stop(child, fileSystem),
    settle: Effect.succeed([]),
    confined: undefined,
    reading: false,
    askpass
  })

const over = new TextEncoder().encode("over\n")

/** Ends the leash. The wait is bounded, as nobody may read any more. */
const unleash = (child: CommandExecutor.Process): Effect.Effect<void> =>
  Effect.ignore(Effect.timeoutOption(Effect.interruptible(Stream.run(Stream.make(over), child.stdin)), pollEvery))

const ended = (exit: Exit.Exit<CommandExecutor.ExitCode, PlatformError>): Sandbox.Ended =>
  Exit.match(exit, {
    onSuccess: (code) => ({ exitCode: code }),
    // The executor reports a signal as an error that names it.
    onFailure: (cause) => ({ exitCode: null, signal: /SIG[A-Z0-9]+/.exec(String(cause))?.[0] ?? "unknown" })
  })

/** Ends the group: SIGTERM, two seconds of grace, SIGKILL. Returns when none of its processes runs any more. */
export const stop = (child: Signalled, fileSystem: FileSystem.FileSystem): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (!(yield* signal(child, "SIGTERM"))) return
    if (yield* isGone(child, fileSystem)) return
    yield* signal(child, "SIGKILL")
    yield* isGone(child, fileSystem)
  })

const isGone = (child: Signalled, fileSystem: FileSystem.FileSystem): Effect.Effect<boolean> =>
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
const onlyDead = (child: Signalled, fileSystem: FileSystem.FileSystem): Effect.Effect<boolean> =>
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
const signal = (child: Signalled, name: CommandExecutor.Signal): Effect.Effect<boolean> =>
  Effect.isSuccess(Effect.timeoutOption(Effect.interruptible(child.kill(name)), pollEvery))
