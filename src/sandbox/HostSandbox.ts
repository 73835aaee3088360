/**
 * The sandbox that this machine has: bubblewrap on Linux, Seatbelt on macOS, else none, with the reason.
 *
 * Which sandbox there is is found out once, when the first command is to run; nothing is started or made before.
 */
import * as Command from "@effect/platform/Command"
import * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Directory from "../core/Directory.js"
import * as BubblewrapSandbox from "./BubblewrapSandbox.js"
import * as Home from "./Home.js"
import * as Layout from "./Layout.js"
import * as Repository from "./Repository.js"
import * as Sandbox from "./Sandbox.js"
import * as SeatbeltProfile from "./SeatbeltProfile.js"
import * as Surroundings from "./Surroundings.js"
import * as View from "./View.js"
import type * as Watch from "./Watch.js"

/**
 * What commands may see, write and reach.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The workspace, absolute. */
  readonly root: string
  /** Default: `auto`. */
  readonly mode?: Sandbox.Mode | undefined
  /** Further directories in which commands may write, absolute. */
  readonly writable?: ReadonlyArray<string> | undefined
  /** Files and directories that commands may read beside the system and its tool chains, absolute. */
  readonly readable?: ReadonlyArray<string> | undefined
  /** Paths that commands never see, even inside a visible directory. */
  readonly hidden?: ReadonlyArray<string> | undefined
  /**
   * Files and directories that commands may read and never change, also where they may write, absolute. A link among them is
   * put back when a command has replaced it.
   */
  readonly readOnly?: ReadonlyArray<string> | undefined
  /**
   * Directories that decide, absolute: those of settings and state. No sandbox is made inside of one. None is made around
   * one, unless `allowHome` is set.
   */
  readonly own?: ReadonlyArray<string> | undefined
  /** Commands may write in a home. Its keys are hidden, and the files that start programs stay as they are. */
  readonly allowHome?: boolean | undefined
  /** Commands reach the network and the services of this machine. Default: no. */
  readonly network?: boolean | undefined
  /**
   * Where the workspace's private home and the files set aside are kept; a directory of ours alone. Default: a
   * temporary directory that is removed with the scope; files set aside stay.
   */
  readonly directory?: string | undefined
  /** Where to look for bubblewrap. Default: where systems install it. */
  readonly programs?: ReadonlyArray<string> | undefined
}

/** Sharing one of these would confine nothing. */
export const tooBroad = ["/", "/etc", "/usr", "/var", "/home", "/Users", "/proc", "/sys", "/dev"]

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (
  options: Options
): Effect.Effect<
  Sandbox.Service,
  never,
  FileSystem.FileSystem | Path.Path | CommandExecutor.CommandExecutor | Scope.Scope
> =>
  Effect.gen(function* () {
    const mode = options.mode ?? "auto"
    if (mode === "off") return Sandbox.none(Sandbox.turnedOff)
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const executor = yield* CommandExecutor.CommandExecutor
    const scope = yield* Effect.scope
    const platform: Layout.Platform = { fileSystem, path, executor }
    const real = (file: string) =>
      Effect.orElseSucceed(fileSystem.realPath(path.resolve(file)), () => path.resolve(file))
    const reals = (files: ReadonlyArray<string> = []) => Effect.forEach(files, real)

    // A call that is cancelled while it looks must not leave its interruption as the answer for all later calls.
    const found = yield* Effect.cached(
      Effect.uninterruptible(
        Effect.gen(function* (): Effect.fn.Return<Host, string> {
          const program = yield* firstThere(fileSystem, options.programs ?? BubblewrapSandbox.places)
          const seatbelt = program === undefined && (yield* isThere(fileSystem, seatbeltProgram))
          if (program === undefined && !seatbelt) return yield* Effect.fail(BubblewrapSandbox.missing)
          // A path that does not exist cannot be mounted, and no command would start.
          const writable = yield* Effect.filter(options.writable ?? [], (file) => isThere(fileSystem, file))
          const roots = [...new Set(yield* reals([options.root, ...writable]))]
          const broad = roots.find((root) => tooBroad.includes(root))
          if (broad !== undefined) return yield* Effect.fail(`${broad} cannot be given to a sandbox as a whole.`)
          const named = yield* Effect.option(Config.nonEmptyString("HOME"))
          const home = Option.isNone(named) ? undefined : yield* real(named.value)
          const own = yield* reals(options.own)
          const inside = roots.find((root) => own.some((place) => View.isWithin(place, root)))
          if (inside !== undefined) return yield* Effect.fail(inOwn(inside))
          const holdsHome = home !== undefined && roots.some((root) => View.isWithin(root, home))
          if (options.allowHome !== true) {
            const around = roots.find((root) =>
              [...own, ...(home === undefined ? [] : [home])].some((place) => View.isWithin(root, place))
            )
            if (around !== undefined) return yield* Effect.fail(holdsHome ? aroundHome(around) : aroundOwn(around))
          }
          const directory = yield* options.directory === undefined
            ? Scope.extend(fileSystem.makeTempDirectoryScoped({ prefix: "assent-sandbox-" }), scope).pipe(
                Effect.mapError(({ message }) => `No directory can be made for the sandbox: ${message}`)
              )
            : Effect.succeed(options.directory)
          const [workspace = options.root] = roots
          const secret = [...own, directory, ...(home === undefined ? [] : [home])]
          const found = yield* Repository.above(fileSystem, path, workspace, secret)
          // A repository in a writable directory is visible already.
          const above = found !== undefined && roots.some((root) => View.isWithin(root, found.root)) ? undefined : found
          const layoutOptions: Layout.Options = {
            roots,
            directory,
            readable: [...(yield* reals(options.readable)), ...(above?.readable ?? [])],
            hidden: yield* reals(options.hidden),
            readOnly: (options.readOnly ?? []).map((file) => path.resolve(file)),
            home: yield* Home.find(fileSystem, path, roots),
            network: options.network ?? false
          }
          const shared = { roots, repository: above?.root }
          if (program === undefined)
            return { ...shared, by: "sandbox-exec", start: startSeatbelt(platform, layoutOptions) }
          const bubblewrap = { program, directory }
          const surroundings = yield* Surroundings.look(fileSystem, path)
          const obstacle = yield* BubblewrapSandbox.obstacle(platform, bubblewrap, surroundings)
          if (obstacle !== undefined) return yield* Effect.fail(obstacle)
          const filter = yield* Effect.mapError(
            BubblewrapSandbox.writeFilter(platform, bubblewrap),
            ({ message }) => message
          )
          const closing = yield* BubblewrapSandbox.closing(platform)
          const ready: BubblewrapSandbox.Ready = { ...bubblewrap, filter, closing }
          const layout = yield* Scope.extend(
            Layout.make(platform, layoutOptions, surroundings, confined(platform, ready)),
            scope
          )
          return { ...shared, by: "bubblewrap", start: startBubblewrap(platform, ready, layout) }
        })
      )
    )

    let known: Sandbox.State | undefined
    const state = Effect.match(found, {
      onFailure: (reason): Sandbox.State => ({ _tag: "Unconfined", reason }),
      onSuccess: ({ by, repository, roots }): Sandbox.State => ({
        _tag: "Confined",
        by,
        writable: roots,
        ...(repository === undefined ? {} : { repository }),
        network: options.network ?? false
      })
    })
    return {
      mode,
      state: Effect.tap(state, (found) => {
        known = found
      }),
      known: () => known,
      start: (job) => Effect.flatMap(found, (host) => host.start(job))
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

export const layer = (
  options: Options
): Layer.Layer<Sandbox.Sandbox, never, FileSystem.FileSystem | Path.Path | CommandExecutor.CommandExecutor> =>
  Layer.scoped(Sandbox.Sandbox, make(options))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Host {
  readonly by: string
  readonly roots: ReadonlyArray<string>
  readonly repository: string | undefined
  readonly start: Sandbox.Service["start"]
}

const aroundHome = (root: string): string =>
  `${root} holds your home, and confined commands would read its keys and write its start files. Start in a project's directory, or say --allow-home.`
const aroundOwn = (root: string): string =>
  `${root} holds the settings or the state of Assent. Start in a project's directory, or say --allow-home.`
const inOwn = (root: string): string =>
  `${root} belongs to the settings or the state of Assent, and nothing there is given to commands.`

const seatbeltProgram = "/usr/bin/sandbox-exec"

const isThere = (fileSystem: FileSystem.FileSystem, file: string): Effect.Effect<boolean> =>
  Effect.orElseSucceed(fileSystem.exists(file), () => false)

const firstThere = (fileSystem: FileSystem.FileSystem, files: ReadonlyArray<string>) =>
  Effect.map(
    Effect.findFirst(files, (file) => isThere(fileSystem, file)),
    Option.getOrUndefined
  )

const systemPath = "/usr/bin:/bin:/run/current-system/sw/bin"

/** Runs a program of ours, confined like a command. */
const confined =
  (platform: Layout.Platform, options: BubblewrapSandbox.Ready): Watch.Confined =>
  (view, command) =>
    BubblewrapSandbox.start(platform, options, view, {
      command,
      directory: "/",
      environment: { PATH: systemPath }
    }).pipe(
      Effect.flatMap(({ ended, process: child }) =>
        Effect.zipRight(Effect.ignore(Stream.runDrain(child.stdout)), ended)
      ),
      Effect.map(({ exitCode }) => exitCode === 0),
      Effect.scoped,
      Effect.interruptible,
      Effect.timeoutTo({ duration: patience, onSuccess: (isDone) => isDone, onTimeout: () => false }),
      Effect.orElseSucceed(() => false)
    )

/** A command that still runs can make its files grow while ours copies them. */
const patience = "1 minute"

const startBubblewrap =
  (platform: Layout.Platform, options: BubblewrapSandbox.Ready, layout: Layout.Layout): Sandbox.Service["start"] =>
  (job) =>
    Effect.gen(function* () {
      if (job.reads !== undefined) {
        const view = yield* hiding(platform.fileSystem, yield* layout.reader(job.reads), job.hidden)
        const environment = { ...job.environment, GIT_OPTIONAL_LOCKS: "0" }
        const running = yield* BubblewrapSandbox.start(platform, options, view, { ...job, environment })
        return { ...running, settle: Effect.succeed([]) }
      }
      // Left when the process has ended: the process's finalizer is added later, so it runs earlier.
      const { isShared, leave, viewOf } = yield* Effect.acquireRelease(layout.enter(job), ({ leave }) =>
        Effect.ignore(leave)
      )
      const view = yield* hiding(platform.fileSystem, viewOf(job), job.hidden)
      if (!view.roots.some((root) => View.isWithin(root, job.directory))) {
        return yield* Effect.fail(`${job.directory} is not in the sandbox.`)
      }
      const running = yield* BubblewrapSandbox.start(platform, options, view, job)
      const ended = Effect.mapError(
        Effect.tapError(running.ended, () => layout.forget),
        (told) => (isShared() ? `${told} ${othersRun}` : told)
      )
      return { ...running, ended, settle: leave }
    })

/**
 * The view without these places. What is gone by now has nothing to hide. Other commands may run: nothing else is mounted, so
 * that a directory which one of them replaces by a link leads nowhere.
 */
const hiding = (fileSystem: FileSystem.FileSystem, view: View.View, hidden: Sandbox.Job["hidden"] = []) =>
  Effect.map(
    Effect.forEach(hidden, (file) => Effect.option(fileSystem.stat(file))),
    (infos): View.View => ({
      ...view,
      mounts: [
        ...view.mounts,
        ...hidden.flatMap((path, at): ReadonlyArray<View.Mount> =>
          Option.match(infos[at] ?? Option.none(), {
            onNone: () => [],
            onSome: ({ type }) => [{ _tag: "Hidden", path, kind: type === "Directory" ? "directory" : "file" }]
          })
        )
      ]
    })
  )

const othersRun =
  "Other commands still use the former sandbox. Assent makes a new one after they end. Stop background jobs, and call again."

/** Not yet tried on a Mac. Nothing has to be set aside, because the profile forbids making such files. */
const startSeatbelt =
  ({ executor, fileSystem, path }: Layout.Platform, options: Layout.Options): Sandbox.Service["start"] =>
  (job) =>
    Effect.gen(function* () {
      const home = path.join(options.directory, "home")
      yield* Directory.ensure(fileSystem, path, home, 0o700)
      const temp = yield* Effect.flatMap(
        fileSystem.makeTempDirectoryScoped({ prefix: "assent-temp-" }),
        fileSystem.realPath
      )
      const { keys, startFiles } = options.home
      const hidden = [...options.hidden, ...keys, ...(job.hidden ?? [])]
      const readOnly = [...options.readOnly, ...startFiles]
      const profile = SeatbeltProfile.make({
        ...options,
        ...(job.reads === undefined
          ? {}
          : { roots: [], readable: [...options.readable, ...options.roots, ...job.reads] }),
        hidden,
        readOnly,
        network: job.reads === undefined && (job.network ?? options.network),
        git: job.git ?? false,
        home,
        temp,
        shared: job.shared?.directory
      })
      const named = job.shared?.variables(job.shared.directory)
      const environment = { ...named, ...job.environment, HOME: home, TMPDIR: temp }
      const redirected = 'exec "$@" 2>&1 </dev/null'
      const child = yield* executor.start(
        Command.make(seatbeltProgram, "-p", profile, "/bin/sh", "-c", redirected, "sh", ...job.command).pipe(
          Command.workingDirectory(job.directory),
          Command.env(environment, { extendEnv: false })
        )
      )
      const ended = Effect.match(child.exitCode, {
        onSuccess: (exitCode): Sandbox.Ended => ({ exitCode }),
        onFailure: (error) => ({ exitCode: null, signal: /SIG[A-Z0-9]+/.exec(error.message)?.[0] ?? "unknown" })
      })
      return { process: child, ended, stop: undefined, settle: Effect.succeed([]) }
    }).pipe(Effect.mapError(({ message }) => `sandbox-exec: ${message}`))
