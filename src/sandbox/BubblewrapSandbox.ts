/**
 * The sandbox of Linux, by the system's own `bwrap`.
 *
 * ```
 *  we ──control (stdin)──► first process of the namespace ──► the command's shell
 *     ◄──words (stderr)──                                     (empty stdin; prints to our stdout)
 * ```
 *
 * The first process reports that it has started, and waits for our word before it begins. Until then another process
 * builds the sandbox, which is tied to our life only from some point on. If we are killed before that point, nothing is
 * left running.
 */
import * as Command from "@effect/platform/Command"
import type { PlatformError } from "@effect/platform/Error"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Directory from "../core/Directory.js"
import * as Bubblewrap from "./Bubblewrap.js"
import type * as Layout from "./Layout.js"
import type { Ended, Job, Running } from "./Sandbox.js"
import type { Surroundings } from "./Surroundings.js"
import * as SystemCalls from "./SystemCalls.js"
import * as View from "./View.js"

export interface Options {
  /** The program, absolute. */
  readonly program: string
  /** Where the filter of system calls is kept. Not visible inside. */
  readonly directory: string
}

export interface Ready extends Options {
  /** The file with the filter. */
  readonly filter: string
  /** The shell that closes file descriptors which we inherited, so that no command finds them open. */
  readonly closing: Closing
}

/** A shell, and the words to give it. */
export interface Closing {
  readonly shell: string
  readonly words: string
}

/** Where bubblewrap is looked for. Never on the search path, which may contain a workspace. */
export const places = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"]

/** What a person can do when it is not installed. */
export const missing =
  "bubblewrap is not installed: apt-get install bubblewrap, dnf install bubblewrap, apk add bubblewrap or " +
  "pacman -S bubblewrap."

/** Tries bubblewrap. Yields the reason why it cannot confine commands here; nothing when it can. */
export const obstacle = (
  platform: Layout.Platform,
  options: Options,
  { mounts }: Surroundings
): Effect.Effect<string | undefined> =>
  Effect.scoped(
    Effect.gen(function* () {
      const filter = yield* writeFilter(platform, options)
      const view: View.View = {
        mounts,
        roots: [],
        home: "/home/assent",
        homeFrom: undefined,
        network: false,
        environment: {}
      }
      const command = ["/bin/sh", "-c", "exit 0"]
      const args = Bubblewrap.args({ ...constant, view, directory: "/", environment: {}, command })
      const child = yield* platform.executor.start(commandOf(options.program, filter, args))
      const told = yield* Stream.runFold(Stream.decodeText(child.stderr), "", (all, text) => all + text)
      return (yield* child.exitCode) === 0 ? undefined : explained(told.trim())
    })
  ).pipe(Effect.catchAll((error) => Effect.succeed(`bubblewrap cannot be used here: ${error.message}`)))

/** Writes the filter of system calls, if it is not there yet. */
export const writeFilter = (
  { fileSystem, path }: Layout.Platform,
  { directory }: Options
): Effect.Effect<string, PlatformError> =>
  Effect.gen(function* () {
    const file = path.join(directory, "system-calls.bpf")
    const wanted = SystemCalls.program()
    const there = yield* Effect.option(fileSystem.readFile(file))
    if (
      Option.exists(there, (bytes) => bytes.length === wanted.length && bytes.every((byte, at) => byte === wanted[at]))
    ) {
      return file
    }
    yield* Directory.ensure(fileSystem, path, directory, 0o700)
    // Written under another name first: another process may be starting a command with the file.
    const beside = yield* fileSystem.makeTempFileScoped({ directory, prefix: "filter-" })
    yield* fileSystem.writeFile(beside, wanted)
    yield* fileSystem.rename(beside, file)
    return file
  }).pipe(Effect.scoped)

/**
 * Our parent may have left files open, which every program we start inherits. A plain shell closes descriptors of one
 * digit; for more, another shell does it, which takes a little longer.
 */
export const closing = ({ executor, fileSystem }: Layout.Platform): Effect.Effect<Closing> =>
  Effect.gen(function* () {
    const listed = yield* Effect.orElseSucceed(executor.string(Command.make("/bin/ls", "/proc/self/fd")), () => "")
    const others = listed.split("\n").filter((name) => Number(name) > filterDescriptor)
    const bash = "/bin/bash"
    const isNeeded = others.length > 0 && (yield* Effect.orElseSucceed(fileSystem.exists(bash), () => false))
    if (!isNeeded) return usual
    return { shell: bash, words: [usual.words, ...others.map((name) => `${name}>&-`)].join(" ") }
  })

/** Starts a command in an entered layout. Fails with a sentence when no process could be started. */
export const start = (
  { executor, fileSystem }: Layout.Platform,
  options: Ready,
  view: View.View,
  job: Job
): Effect.Effect<Omit<Running, "settle">, string, Scope.Scope> =>
  Effect.gen(function* () {
    const args = Bubblewrap.args({
      ...constant,
      ...(job.reads !== undefined && { tempSize: readingTemp }),
      view,
      directory: job.directory,
      environment: { ...job.shared?.variables(Bubblewrap.sharedPlace), ...inside(view, job.environment) },
      shared: job.shared?.directory,
      command: [
        "/bin/sh",
        "-c",
        Bubblewrap.supervisor(job.reads === undefined ? limits : readingLimits),
        "sh",
        ...job.command
      ]
    })
    const child = yield* executor.start(commandOf(options.program, options.filter, args, options.closing))
    const ready = yield* Deferred.make<boolean>()
    let told = ""
    const listening = yield* Effect.forkScoped(
      Stream.runForEach(Stream.decodeText(child.stderr), (text) => {
        if (told.length < maxWords) told += text
        return Bubblewrap.isReady(told) ? Deferred.succeed(ready, true) : Effect.void
      }).pipe(Effect.ignore, Effect.ensuring(Deferred.succeed(ready, false)))
    )
    let mayBegin = true
    const say = (words: ReadonlyArray<Uint8Array>) => Effect.ignore(Stream.run(Stream.fromIterable(words), child.stdin))
    // A bubblewrap that is killed before it tied the first process to itself would leave that process to begin and live
    // on alone.
    const isHeld = Effect.orElseSucceed(
      Effect.map(fileSystem.readFileString(`/proc/${child.pid}/stat`), (stat) => !/^[ZX]/.test(stateOf(stat))),
      () => false
    )
    // Not awaited: the stream of a killed process may never end.
    yield* Effect.forkDaemon(
      Effect.gen(function* () {
        if (!(yield* Deferred.await(ready))) return
        const begins = yield* isHeld
        yield* say(begins && mayBegin ? [go] : [])
      })
    )

    // A bubblewrap killed while it makes the sandbox leaves a process of its group, which waits for it without end and
    // holds our streams.
    yield* Effect.forkDaemon(
      Effect.flatMap(Effect.exit(child.exitCode), (exit) =>
        Exit.isFailure(exit) ? Effect.ignore(child.kill("SIGKILL")) : Effect.void
      )
    )

    const ended = Effect.gen(function* (): Effect.fn.Return<Ended, string> {
      const exit = yield* Effect.exit(child.exitCode)
      yield* Fiber.await(listening)
      if (!Bubblewrap.isReady(told))
        return yield* Effect.fail(`The sandbox could not be made: ${explained(told.trim())}`)
      // No words: the supervisor was killed from outside, and everything in the namespace with it.
      return Bubblewrap.ended(told) ?? { exitCode: null, signal: /SIG[A-Z0-9]+/.exec(String(exit))?.[0] ?? "SIGKILL" }
    })
    // The stopping fiber is uninterruptible. A timeout on an uninterruptible effect would never fire, so the effect is
    // made interruptible.
    const within = <A, E>(effect: Effect.Effect<A, E>) => Effect.timeoutOption(Effect.interruptible(effect), patience)
    const stop = Effect.gen(function* () {
      mayBegin = false
      if (!(yield* Effect.orElseSucceed(child.isRunning, () => false))) return
      // A first process that has not reported yet ends by itself when its input closes.
      if (!(yield* Deferred.isDone(ready))) yield* within(Deferred.await(ready))
      const children = `/proc/${child.pid}/task/${child.pid}/children`
      const first = yield* Effect.orElseSucceed(fileSystem.readFileString(children), () => "")
      // The namespace's first process leads the command's process group. It outlives the signal itself.
      const group = /^(\d+) $/.exec(first)?.[1]
      if (group !== undefined) {
        yield* Effect.ignore(executor.exitCode(Command.make("/bin/sh", "-c", terminate, "sh", group)))
        if (Option.isSome(yield* within(Effect.exit(child.exitCode)))) return
      }
      // With a limit, unlike the executor's own wait.
      yield* Effect.ignore(within(child.kill("SIGKILL")))
    })
    return { process: child, ended, stop: Effect.uninterruptible(stop) }
  }).pipe(Effect.catchAll((error) => Effect.fail(typeof error === "string" ? error : `bubblewrap: ${error.message}`)))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const go = new TextEncoder().encode("go\n")
const patience = "2 seconds"
const terminate = 'kill -s TERM -- "-$1"; kill -s CONT -- "-$1"'
/** The first process prints little; a shell that complains without end is not read further. */
const maxWords = 16_384

/** The state in `pid (name) state …`; the name may hold any characters. */
const stateOf = (stat: string): string => stat.slice(stat.lastIndexOf(")") + 2)

const filterDescriptor = 9
const usual: Closing = { shell: "/bin/sh", words: "3>&- 4>&- 5>&- 6>&- 7>&- 8>&-" }
const constant = { tempSize: 1_073_741_824, filter: filterDescriptor }

/**
 * No core dumps: the kernel would hand them to a program outside. The limit of processes is enough for a build and ends
 * a fork bomb. The kernel counts processes by user and namespace, and does not count those of root.
 */
const limits = "ulimit -c 0\nulimit -u 8192 2>/dev/null || ulimit -p 8192 2>/dev/null"

/** A program that reads needs few processes, and not more than 1 GB of memory in each. In kilobytes. */
const readingLimits = `${limits}\nulimit -d 1048576`
const readingTemp = 268_435_456

/** The shell opens the filter and becomes the program. Its own environment is empty, so that nobody can read one. */
const commandOf = (
  program: string,
  filter: string,
  args: ReadonlyArray<string>,
  { shell, words }: Closing = usual
): Command.Command =>
  Command.make(shell, "-c", `exec "$@" ${words} ${filterDescriptor}<"$0"`, filter, program, ...args).pipe(
    Command.workingDirectory("/"),
    Command.env({}, { extendEnv: false })
  )

/**
 * The part of a command's environment that has a meaning inside. A variable that names a file which is not there is
 * left out, so that the program finds its own place in the private home.
 */
const inside = (view: View.View, environment: Job["environment"]): Job["environment"] => {
  const isThere = (file: string) =>
    view.mounts.some(({ path }) => View.isWithin(path, file)) ||
    View.isWithin("/dev", file) ||
    View.isWithin("/tmp", file)
  const kept = Object.entries(environment).filter(([name, value]) => {
    if (temporary.includes(name)) return false
    return !/^\/[^:]*$/.test(value) || isThere(value)
  })
  return { ...Object.fromEntries(kept), ...view.environment, HOME: view.home, TMPDIR: "/tmp" }
}

const temporary = ["HOME", "TMPDIR", "TMP", "TEMP"]

/** bubblewrap's message, as something a person can act on. */
const explained = (words: string): string => {
  const line = words.split("\n").at(-1) ?? ""
  const [, file, why] =
    /Can't (?:chdir to|find source path|open file|get type of source) (\/.*): ([^:]+)$/.exec(line) ?? []
  if (file !== undefined)
    return `${file} cannot be used by the sandbox (${why?.toLowerCase()}): look at its permissions.`
  if (/unknown option/i.test(words)) return `bubblewrap is too old here (${line}): 0.8 or later is wanted.`
  if (/namespace|uid map|gid map|operation not permitted|permission denied|no space left/i.test(words)) {
    return (
      `the kernel does not let programs make namespaces here (${line}). In a container: start it with ` +
      "--security-opt seccomp=unconfined; on Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0; elsewhere: " +
      "sysctl kernel.unprivileged_userns_clone=1 and user.max_user_namespaces above 0."
    )
  }
  return `bubblewrap does not work here: ${line || "it fails without a message"}.`
}
