/**
 * The guards that every runtime has: the sanitizer, and the question about what git would run. And what rules know of its
 * files.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as LazyModule from "../core/LazyModule.js"
import * as SyncLinks from "../internal/SyncLinks.js"
import type * as CompiledPolicy from "./CompiledPolicy.js"
import type * as Guard from "./Guard.js"
import * as SanitizerOptions from "./SanitizerOptions.js"

export interface Surroundings {
  /** Absolute. Relative paths start here. */
  readonly workspace: string
  /** Absolute paths that no tool may touch. */
  readonly protectedPaths?: ReadonlyArray<string> | undefined
  /** The directory of `~`, when known. */
  readonly home?: string | undefined
  /** The system's temp directories. Default: `/tmp`. */
  readonly temporary?: ReadonlyArray<string> | undefined
  readonly platform: Context.Context<FileSystem.FileSystem | Path.Path>
}

export const sanitizer =
  ({ home, platform, protectedPaths = [], temporary, workspace }: Surroundings) =>
  (options: SanitizerOptions.Options): Guard.Guard =>
    late(({ Guard, Sanitizer }) => ({ entry, subject }) => {
      const surroundings = { workspace, protectedPaths, pathFields: entry.paths, home, temporary, options }
      return Effect.flatMap(Effect.provide(Sanitizer.violations(subject, surroundings), platform), (found) => {
        if (found.length === 0) return Effect.void
        const asks = SanitizerOptions.scopeOf(options.pathScope)?.outside !== "deny"
        const isDoubt = (rule: string) => rule === "denied_path_perhaps"
        if (!found.every(({ rule }) => isDoubt(rule) || (asks && rule === "path_scope")))
          return Effect.fail(Sanitizer.reason(found.filter(({ rule }) => !isDoubt(rule))))
        const doubts = found.some(({ rule }) => isDoubt(rule))
        return Effect.succeed(new Guard.Ask([Sanitizer.reason(found)], doubts ? "nothing" : "all"))
      })
    })

export const git = ({ platform, workspace }: Surroundings): Guard.Guard =>
  late(({ GitGuard }) =>
    GitGuard.make({
      fileSystem: Context.get(platform, FileSystem.FileSystem),
      path: Context.get(platform, Path.Path),
      workspace
    })
  )

/** The policy of a program that knows the files of this workspace. */
export const placed = (
  policy: CompiledPolicy.Policy,
  surroundings: Pick<Surroundings, "platform" | "workspace">
): CompiledPolicy.Policy => {
  let made: CompiledPolicy.Destinations | undefined
  const destinations: CompiledPolicy.Destinations = (subject, policy, state) =>
    made === undefined
      ? Effect.flatMap(loaded, ({ Destination }) => {
          made = Destination.make(surroundings)
          return made(subject, policy, state) ?? Effect.succeed(subject)
        })
      : made(subject, policy, state)
  const { platform, workspace } = surroundings
  const fileSystem = Context.get(platform, FileSystem.FileSystem)
  const path = Context.get(platform, Path.Path)
  const repositories: CompiledPolicy.Repositories = (directory) =>
    Effect.gen(function* () {
      const { RepositoryConfig } = yield* loaded
      // The owner of a process is that of its entry. A system without these entries does not compare owners.
      const own = yield* Effect.option(fileSystem.stat("/proc/self"))
      const uid = Option.getOrUndefined(Option.flatMap(own, (info) => info.uid))
      const place = path.resolve(workspace, directory)
      const reason = yield* RepositoryConfig.judge(fileSystem, path, place, { roots: [workspace], uid })
      return reason === undefined ? "harmless" : { reason }
    })
  const isBesideGuarded = besideGuarded(fileSystem, path, workspace)
  // New members behind a spread take V8 ten times as long, a fortieth of a runtime.
  return Object.assign({}, policy, { workspace, destinations, repositories, isBesideGuarded })
}

/** Loads what looks at paths and commands, where one of the tools has some: later no call waits for that. */
export const load = (entries: Iterable<Guard.Guarded["entry"]>): Effect.Effect<unknown> => {
  for (const { paths, shellCommand } of entries) if (paths.length > 0 || shellCommand !== undefined) return loaded
  return Effect.void
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What git or we would run is in the workspace, or above it: `.git` and `.assent`, be they links that lead nowhere. */
const besideGuarded = (fileSystem: FileSystem.FileSystem, path: Path.Path, workspace: string) => {
  const places = () => {
    const found = [path.join(workspace, ".assent")]
    for (let at = workspace; ; at = path.dirname(at)) {
      found.push(path.join(at, ".git"))
      if (at === path.dirname(at)) return found
    }
  }
  const look = SyncLinks.of(fileSystem.readLink)
  if (look !== undefined)
    return () => look(workspace) === "missing" || places().some((place) => look(place) !== "missing")
  const isThere = (place: string) =>
    Effect.matchEffect(fileSystem.readLink(place), {
      onSuccess: () => Effect.succeed(true),
      onFailure: () => Effect.orElseSucceed(fileSystem.exists(place), () => true)
    })
  // A file system without the workspace knows nothing of the files that a command finds there.
  return Effect.flatMap(
    Effect.orElseSucceed(fileSystem.exists(workspace), () => false),
    (isKnown) => (isKnown ? Effect.exists(places(), isThere) : Effect.succeed(true))
  )
}

const loaded = LazyModule.make(() =>
  Promise.all([
    import("./Sanitizer.js"),
    import("./GitGuard.js"),
    import("./Destination.js"),
    import("./Guard.js"),
    import("../sandbox/RepositoryConfig.js")
  ]).then(([Sanitizer, GitGuard, Destination, Guard, RepositoryConfig]) => ({
    Destination,
    GitGuard,
    Guard,
    RepositoryConfig,
    Sanitizer
  }))
)

/** What names neither a path nor a command is none of its business. Any other call waits for the guard. */
const late = (make: (modules: Effect.Effect.Success<typeof loaded>) => Guard.Guard): Guard.Guard => {
  let made: Guard.Guard | undefined
  return (call) => {
    if (!SanitizerOptions.concerns(call.subject, call.entry.paths)) return Effect.void
    if (made !== undefined) return made(call)
    return Effect.flatMap(loaded, (modules) => (made ??= make(modules))(call))
  }
}
