/**
 * The guards that every runtime has: the sanitizer, and the question about what git would run. And what rules know of its
 * files.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
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
  const look = SyncLinks.of(Context.get(platform, FileSystem.FileSystem).readLink)
  const path = Context.get(platform, Path.Path)
  const isBesideGuarded = (): boolean => {
    if (look === undefined) return false
    if (look(path.join(workspace, ".assent")) !== "missing") return true
    for (let at = workspace; ; at = path.dirname(at)) {
      if (look(path.join(at, ".git")) !== "missing") return true
      if (at === path.dirname(at)) return false
    }
  }
  // New members behind a spread take V8 ten times as long, a fortieth of a runtime.
  return Object.assign({}, policy, { workspace, destinations, isBesideGuarded })
}

/** Loads what looks at paths and commands, where one of the tools has some: later no call waits for that. */
export const load = (entries: Iterable<Guard.Guarded["entry"]>): Effect.Effect<unknown> => {
  for (const { paths, shellCommand } of entries) if (paths.length > 0 || shellCommand !== undefined) return loaded
  return Effect.void
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const loaded = LazyModule.make(() =>
  Promise.all([
    import("./Sanitizer.js"),
    import("./GitGuard.js"),
    import("./Destination.js"),
    import("./Guard.js")
  ]).then(([Sanitizer, GitGuard, Destination, Guard]) => ({ Destination, GitGuard, Guard, Sanitizer }))
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
