/**
 * The directory that the workspace tools may touch, and the one place that decides whether a path is inside it.
 *
 * Paths are checked after symbolic links were resolved, and the resolved path is the one that is opened. This holds for
 * a link itself, for a link in the middle of a path, and for a new file below a link.
 *
 * @since 0.1.0
 */
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as DeniedPaths from "../core/DeniedPaths.js"
import * as FoldedName from "../core/FoldedName.js"
import * as Origin from "../core/Origin.js"
import * as ResolvedPath from "../core/ResolvedPath.js"
import * as RealPath from "../permission/RealPath.js"
import * as Home from "../sandbox/Home.js"
import * as Checkpoints from "./Checkpoints.js"
import * as SyncFiles from "./SyncFiles.js"
import type * as Ripgrep from "./Ripgrep.js"

/**
 * The directory, what in it is protected, and how much output a tool may return, in characters.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The workspace, absolute. */
  readonly root: string
  /** Added directories, absolute: tools and confined commands may use them like the workspace. */
  readonly added?: ReadonlyArray<string> | undefined
  /**
   * Files and directories inside it, absolute or relative to it, that tools neither read, list nor change. `.assent`
   * and `.jaato` are always protected, also in added directories and in other projects inside. So are keys of a home that
   * lies inside, such as `.ssh`; files of it that start programs, such as `.bashrc`, are not changed.
   */
  readonly protectedPaths?: ReadonlyArray<string> | undefined
  /**
   * Files and directories, absolute and without links, that start programs of the person: tools read and do not change them.
   *
   * @internal
   */
  readonly startFiles?: ReadonlyArray<string> | undefined
  /** Globs from the workspace's root, as in `blacklist.paths`. Within a call, those of its policy count beside them. */
  readonly deniedPaths?: ReadonlyArray<string> | undefined
  /** The most characters of one result. Default: 30,000. */
  readonly maxOutput?: number | undefined
}

/**
 * A path that may be used.
 *
 * @since 0.1.0
 * @category models
 */
export interface Target {
  /** Absolute, with no symbolic link in it: the path to open. */
  readonly absolute: string
  /** Relative to the workspace, with `/`, for people and models. `.` is the workspace itself. */
  readonly shown: string
  /** None when there is no such file yet. */
  readonly info: Option.Option<FileSystem.File.Info>
  /**
   * The nearest directory that existed when the call was decided.
   *
   * @internal
   */
  readonly above?: ResolvedPath.ResolvedPath["above"]
}

/**
 * Finds files within the workspace. Failures are sentences for the model.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** Absolute, with no symbolic link in it. */
  readonly root: string
  /** The workspace and the added directories, absolute, with no symbolic link in them. */
  readonly roots: ReadonlyArray<string>
  readonly maxOutput: number
  readonly fileSystem: FileSystem.FileSystem
  readonly path: Path.Path
  /**
   * Where the system offers it.
   *
   * @internal
   */
  readonly direct?: SyncFiles.Service | undefined
  /**
   * Present if programs can be run.
   *
   * @internal
   */
  readonly ripgrep?: Ripgrep.Service | undefined
  /**
   * Where it is kept what files were before tools changed them, if it is.
   *
   * @internal
   */
  readonly checkpoints?: Checkpoints.Service | undefined
  /** Checks a path, absolute or relative to the workspace. A failure is a sentence that says why it cannot be used. */
  readonly locate: (path: string) => Effect.Effect<Target, string>
  /** Like {@link locate}, for a regular file that exists. Files that the runtime saved for the model are allowed too. */
  readonly locateFile: (path: string) => Effect.Effect<Target, string>
  /**
   * Like {@link locate}, for a file that is to be changed or made.
   *
   * @internal
   */
  readonly locateToChange: (path: string) => Effect.Effect<Target, string>
  /** Like {@link locate}, for a directory that exists. */
  readonly locateDirectory: (path: string) => Effect.Effect<Target, string>
  /**
   * A sentence about a path that `blacklist.paths` denies, absolute or relative to the workspace. Nothing for any other.
   *
   * @internal
   */
  readonly denial: (path: string) => Effect.Effect<string | undefined>
  /**
   * What the workspace and the policy of the running call deny.
   *
   * @internal
   */
  readonly denied: Effect.Effect<DeniedPaths.DeniedPaths>
  /** Whether an absolute path without links is protected or denied. Run it anew for each walk: links may have changed. */
  readonly protection: Effect.Effect<(absolute: string) => boolean>
  /**
   * Absolute paths that are protected, with what is in them.
   *
   * @internal
   */
  readonly protectedNames: ReadonlyArray<string>
  /** Allows reading of one file, anywhere: output that was too long to show. */
  readonly allowReading: (absolute: string) => void
  /** The shown form of an absolute path without links. */
  readonly shown: (absolute: string) => string
  /**
   * The files and directories that tools wrote, by their path: a call that was decided before may find them.
   *
   * @internal
   */
  readonly written: Written
  /** Held while a call changes files, one call at a time, so that no edit of a file is lost to a concurrent one. */
  readonly changing: Effect.Semaphore
}

/** @internal */
export interface Written {
  readonly note: (absolute: string, file: ResolvedPath.FileIdentity) => void
  /** Whether this file is what a tool wrote there last. */
  readonly has: (absolute: string, file: ResolvedPath.FileIdentity) => boolean
}

/**
 * The workspace of the running tool set.
 *
 * @since 0.1.0
 * @category services
 */
export class WorkspaceRoot extends Context.Tag("assent/builtin/WorkspaceRoot")<WorkspaceRoot, Service>() {}

/**
 * A workspace at a directory. If the directory is missing, every use of it says so.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<Service, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const direct = Option.getOrUndefined(yield* Effect.serviceOption(SyncFiles.SyncFiles))
    const checkpoints = Option.getOrUndefined(yield* Effect.serviceOption(Checkpoints.Checkpoints))
    // A workspace that does not exist yet stays as it was given; every use of it then says so.
    const given = path.resolve(options.root)
    const realOf = (directory: string) => Effect.orElseSucceed(fileSystem.realPath(directory), () => directory)
    const root = yield* realOf(given)
    const roots = [
      root,
      ...(yield* Effect.forEach(options.added ?? [], (directory) => realOf(path.resolve(directory))))
    ]
    const home = yield* Home.find(fileSystem, path, roots)
    const startFiles = [...home.startFiles, ...(options.startFiles ?? [])]
    const isInside = (absolute: string) => roots.some((directory) => within(path, directory, absolute))
    const readable = new Set<string>()
    const written = makeWritten()

    const shown = (absolute: string): string => {
      if (!within(path, root, absolute)) return absolute
      const relative = path.relative(root, absolute)
      return relative === "" ? "." : path.sep === "/" ? relative : relative.replaceAll(path.sep, "/")
    }

    /** Resolves the links of the longest part that exists; the rest is appended. */
    const real = (absolute: string): Effect.Effect<string, string> => {
      const climb = (current: string, rest: ReadonlyArray<string>, steps: number): Effect.Effect<string, string> =>
        Effect.matchEffect(fileSystem.realPath(current), {
          onSuccess: (found) => Effect.succeed(path.join(found, ...rest)),
          onFailure: (error) => {
            const above = path.dirname(current)
            if (!isNotFound(error) || above === current) return Effect.fail(sentence(error, absolute))
            // A broken link is not a missing file: creating it would create its target.
            return Effect.matchEffect(fileSystem.readLink(current), {
              onSuccess: () => Effect.fail(`${absolute} goes through a symbolic link that leads nowhere.`),
              onFailure: () => {
                if (steps < 2) return climb(above, [path.basename(current), ...rest], steps + 1)
                return Effect.flatMap(firstMissing(above), (missing) =>
                  climb(missing, [...path.relative(missing, current).split(path.sep), ...rest], 0)
                )
              }
            })
          }
        })
      return climb(absolute, [], 0)
    }

    /**
     * The uppermost missing path among a directory and those above it, or the directory. It spares looking at each of
     * hundreds of missing ones; what it finds is looked at again.
     */
    const firstMissing = (directory: string): Effect.Effect<string> => {
      const parts = directory.split(path.sep)
      const at = (length: number) => parts.slice(0, length).join(path.sep)
      const between = (there: number, missing: number): Effect.Effect<string> => {
        if (missing - there <= 1) return Effect.succeed(at(missing))
        const middle = (there + missing) >> 1
        return Effect.matchEffect(fileSystem.realPath(at(middle)), {
          onSuccess: () => between(middle, missing),
          onFailure: () => between(there, middle)
        })
      }
      return between(1, parts.length)
    }

    const names = [
      ...roots.flatMap((directory) => own.map((name) => path.join(directory, name))),
      ...(options.protectedPaths ?? []).map((name) => path.resolve(root, name)),
      ...home.keys
    ]
    /** Whether an absolute path is in one of these places, by whatever links. Links may have changed since the last look. */
    const inOneOf = (places: ReadonlyArray<string>) =>
      Effect.suspend(() =>
        // One lookup for each parent directory, shared: most protected files lie in one directory.
        Effect.map(Effect.forEach(new Set(places), RealPath.make(fileSystem, path).real), (found) => {
          // On some file systems `.ASSENT` is `.assent`.
          const every = [...new Set([...places, ...found])].map(FoldedName.of)
          const all = every.filter((name) => !every.some((other) => name.startsWith(`${other}${path.sep}`)))
          // Nearly every path is told apart by its beginning.
          return (wanted: string) => all.some((name) => wanted.startsWith(name) && within(path, name, wanted))
        })
      )
    const denied = Effect.map(Origin.current, (now) =>
      DeniedPaths.make([...(options.deniedPaths ?? []), ...(now.denied ?? [])])
    )
    const relativeTo = (base: string, absolute: string): string =>
      path.sep === "/" ? path.relative(base, absolute) : path.relative(base, absolute).replaceAll(path.sep, "/")
    /** The glob that denies an absolute path, or the place that a denied path leads to. */
    const denying: Effect.Effect<(absolute: string) => string | undefined> = Effect.gen(function* () {
      const now = yield* denied
      if (now.entries.length === 0) return () => undefined
      const { real } = RealPath.make(fileSystem, path)
      const written = now.entries.flatMap(({ place, text }) => (place === undefined ? [] : [[place, text] as const]))
      const places = yield* Effect.forEach(written, ([place, text]) =>
        Effect.map(real(path.resolve(root, place)), (found) => [FoldedName.of(found), text] as const)
      )
      return (absolute: string) => {
        for (const base of new Set([root, given])) {
          if (!within(path, base, absolute)) continue
          const glob = DeniedPaths.find(now, relativeTo(base, absolute))
          if (glob !== undefined) return glob
        }
        const folded = FoldedName.of(absolute)
        return places.find(([place]) => within(path, place, folded))?.[1]
      }
    })

    const protection = Effect.zipWith(
      inOneOf(names),
      Effect.suspend(() => denying),
      (isNamed, globFor) => {
        return (absolute: string) => {
          const wanted = FoldedName.of(absolute)
          return (
            isNamed(wanted) ||
            own.some((name) => wanted.includes(name) && roots.some((root) => passes(path, root, absolute, name))) ||
            globFor(absolute) !== undefined
          )
        }
      }
    )

    /** Fails where the given directory that a path is in is not there: nothing is made in its place. */
    const isThere = (text: string): Effect.Effect<void, string> => {
      const wanted = path.resolve(root, text)
      const top = roots.find((one) => within(path, one, wanted) && isOutermost({ path, roots }, one)) ?? root
      return Effect.matchEffect(fileSystem.stat(top), {
        onFailure: (error) => (isNotFound(error) ? Effect.fail(gone(root, top)) : Effect.void),
        onSuccess: ({ type }) => (type === "Directory" ? Effect.void : Effect.fail(gone(root, top)))
      })
    }

    const locate = (text: string): Effect.Effect<Target, string> => Effect.flatMap(found(text), asDecided(text))

    /** Fails if the current call was decided about another place or another file. */
    const asDecided =
      (text: string) =>
      (target: Target): Effect.Effect<Target, string> =>
        Effect.flatMap(Origin.current, ({ paths }) => {
          const decided = paths?.get(text)
          if (decided === undefined) return Effect.succeed(target)
          const { absolute, info } = target
          if (absolute !== decided.absolute) return Effect.fail(moved(text))
          const now = Option.getOrUndefined(Option.map(info, ResolvedPath.identityOf))
          const isSame = ResolvedPath.isSameFile(now, decided.file)
          if (!isSame && (now === undefined || !written.has(absolute, now))) return Effect.fail(replaced(text))
          return Effect.succeed({ ...target, above: decided.above })
        })

    const found = (text: string): Effect.Effect<Target, string> =>
      Effect.matchEffect(inside(text), {
        onFailure: (reason) => Effect.zipRight(isThere(text), Effect.fail(reason)),
        onSuccess: (target) => {
          const { absolute, info } = target
          const isFine = Option.isSome(info) && (info.value.type === "Directory" || !roots.includes(absolute))
          return isFine ? Effect.succeed(target) : Effect.as(isThere(absolute), target)
        }
      })

    const inside = (text: string): Effect.Effect<Target, string> =>
      Effect.gen(function* () {
        if (text.includes("\0")) return yield* Effect.fail("A path cannot contain a zero character.")
        const wanted = path.resolve(root, text)
        const globFor = yield* denying
        const deny = (glob: string | undefined) =>
          glob === undefined ? Effect.void : Effect.fail(DeniedPaths.sentence(text, glob))
        yield* deny(globFor(wanted))
        const absolute = yield* Effect.mapError(real(wanted), (reason) => reason.replace(wanted, text))
        yield* deny(globFor(absolute))
        if (!isInside(absolute)) {
          return yield* Effect.fail(`${text} is outside the workspace; use a path inside ${roots.join(" or ")}.`)
        }
        const isProtected = yield* protection
        if (isProtected(absolute) || isProtected(wanted)) {
          return yield* Effect.fail(
            `${text} holds keys or belongs to the runtime. Tools neither read, list nor change it.`
          )
        }
        const info = yield* stat(absolute, text)
        return { absolute, shown: shown(absolute), info }
      })

    const stat = (absolute: string, text: string): Effect.Effect<Option.Option<FileSystem.File.Info>, string> =>
      Effect.matchEffect(fileSystem.stat(absolute), {
        onSuccess: (info) => Effect.succeedSome(info),
        onFailure: (error) => (isNotFound(error) ? Effect.succeedNone : Effect.fail(sentence(error, text)))
      })

    const reachable = (text: string) => Effect.orElseSucceed(fileSystem.realPath(text), () => text)

    const locateFile = (text: string): Effect.Effect<Target, string> =>
      Effect.gen(function* () {
        const target = readable.has(text)
          ? yield* asDecided(text)({ absolute: yield* reachable(text), shown: text, info: yield* stat(text, text) })
          : yield* locate(text)
        if (Option.isNone(target.info)) return yield* Effect.fail(`${text} does not exist.`)
        const type = target.info.value.type
        if (type === "Directory") return yield* Effect.fail(`${text} is a directory; list_files shows what is in it.`)
        // Opening a pipe or a device may wait for ever.
        if (type !== "File") return yield* Effect.fail(`${text} is not a regular file.`)
        return target
      })

    const locateToChange = (text: string): Effect.Effect<Target, string> =>
      startFiles.length === 0
        ? locate(text)
        : Effect.tap(locate(text), ({ absolute }) =>
            Effect.flatMap(inOneOf(startFiles), (isStartFile) =>
              isStartFile(FoldedName.of(absolute))
                ? Effect.fail(
                    `${text} starts programs of the person, so tools do not change it. Nothing was written. Show the person what to write there.`
                  )
                : Effect.void
            )
          )

    const locateDirectory = (text: string): Effect.Effect<Target, string> =>
      Effect.flatMap(locate(text), (target) => {
        if (Option.isNone(target.info)) return Effect.fail(`${text} does not exist.`)
        return target.info.value.type === "Directory"
          ? Effect.succeed(target)
          : Effect.fail(`${text} is not a directory.`)
      })

    return {
      root,
      roots,
      maxOutput: Math.max(minOutput, options.maxOutput ?? 30_000),
      fileSystem,
      path,
      direct,
      checkpoints,
      locate,
      locateFile,
      locateToChange,
      locateDirectory,
      denied,
      denial: (text) =>
        Effect.gen(function* () {
          const globFor = yield* denying
          const wanted = path.resolve(root, text)
          const glob = globFor(wanted) ?? globFor(yield* RealPath.make(fileSystem, path).real(wanted))
          return glob === undefined ? undefined : DeniedPaths.sentence(text, glob)
        }),
      protection,
      protectedNames: names,
      allowReading: (absolute) => void readable.add(absolute),
      shown,
      written,
      changing: Effect.unsafeMakeSemaphore(1)
    }
  })

/**
 * The workspace of the tools; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<WorkspaceRoot, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(WorkspaceRoot, make(options))

/**
 * A file system error as a sentence about the path as it was given.
 *
 * @internal
 */
export const sentence = (error: PlatformError, shown: string): string => {
  if (error._tag === "BadArgument") return `${shown} cannot be used: ${error.description ?? error.message}`
  switch (error.reason) {
    case "NotFound":
      return `${shown} does not exist.`
    case "PermissionDenied":
      return `The system does not permit access to ${shown}.`
    default:
      // The system's message without its path, which may be a temporary one.
      return `${shown} cannot be used: ${(error.description ?? error.reason).replace(/, \w+( '.*)?$/s, "")}.`
  }
}

/**
 * What is said where a given directory is not there, to a model and to the person.
 *
 * @internal
 */
export const gone = (root: string, directory: string): string =>
  `The ${directory === root ? "workspace" : "added directory"} is gone: there is no directory ${directory}. ` +
  "Assent creates no other one. Restore the directory, and call again."

/**
 * Whether a directory is one that was given, and in no other one: tools never make it.
 *
 * @internal
 */
export const isOutermost = ({ path, roots }: Pick<Service, "path" | "roots">, directory: string): boolean =>
  roots.includes(directory) && !roots.some((other) => other !== directory && within(path, other, directory))

/** @internal */
export const isNotFound = (error: PlatformError): boolean => error._tag === "SystemError" && error.reason === "NotFound"

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const minOutput = 200

/** Files and directories of tools that are remembered. */
const maxWritten = 1_000

const makeWritten = (): Written => {
  const files = new Map<string, ResolvedPath.FileIdentity>()
  return {
    note: (absolute, file) => {
      files.delete(absolute)
      files.set(absolute, file)
      for (const oldest of files.keys()) if (files.size > maxWritten) files.delete(oldest)
    },
    has: (absolute, file) => ResolvedPath.isSameFile(files.get(absolute), file)
  }
}

const moved = (text: string): string =>
  `${text} led to another place when the call was decided, so the call did not run. Propose it again.`

/**
 * What a call says that finds another file than the one that was decided.
 *
 * @internal
 */
export const replaced = (text: string): string =>
  `${text} is another file than when the call was decided. Nothing was done. Read it, and propose the call again.`

/** What a project shares with its team, whichever project in a workspace it is. */
const own = [".assent", ".jaato"]

/** Below the root it goes through a directory of this name, or is one. */
const passes = (path: Path.Path, root: string, absolute: string, name: string): boolean =>
  within(path, root, absolute) && FoldedName.of(path.relative(root, absolute)).split(path.sep).includes(name)

const within = (path: Path.Path, directory: string, absolute: string): boolean => {
  const relative = path.relative(directory, absolute)
  return relative === "" || (relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative))
}
