/**
 * What git keeps of a directory that is seen inside, and which of it acts later, when somebody runs git outside.
 *
 * A `.git` stays writable, so that commits can be made; in it the configuration, the hooks and `info` are read-only, of
 * submodules and other worktrees too. Each such directory is a mount of its own, because a mount cannot be renamed away.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as RegularFile from "../core/RegularFile.js"
import { isWithin, type Mount } from "./View.js"

export interface Repository {
  readonly mounts: ReadonlyArray<Mount>
  /** What is not there inside, or is a link with this target, and must be so when a command has ended. */
  readonly absent: ReadonlyMap<string, string | undefined>
  /** Directories in which each entry is a repository of its own, with those that are there. */
  readonly nests: ReadonlyMap<string, ReadonlySet<string>>
}

/** Reads what a `.git`, a directory or the file of a worktree or submodule, leads to. In `roots` commands write. */
export const read = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  git: string,
  roots: ReadonlyArray<string>
): Effect.Effect<Repository | undefined> =>
  Effect.gen(function* () {
    /** Itself and no link on the way: what a link leads to was chosen by whoever could write here. */
    const isReal = (file: string) =>
      Effect.map(Effect.option(fileSystem.realPath(file)), (found) => Option.contains(found, file))
    const typeOf = (file: string) =>
      Effect.flatMap(isReal(file), (real) =>
        real
          ? Effect.orElseSucceed(
              Effect.map(fileSystem.stat(file), ({ type }) => type),
              () => undefined
            )
          : Effect.succeed(undefined)
      )
    const line = (file: string) =>
      Effect.gen(function* () {
        if ((yield* typeOf(file)) !== "File") return undefined
        return yield* Effect.orElseSucceed(
          Effect.map(RegularFile.read(fileSystem, file, maxPointer), (text) => text.trim()),
          () => undefined
        )
      })
    const mounts: Array<Mount> = []
    const absent = new Map<string, string | undefined>()
    const nests = new Map<string, ReadonlySet<string>>()

    /** Read-only, what a link leads to as well where commands could write there. */
    const guard = (file: string, type: FileSystem.File.Type): Effect.Effect<void> =>
      Effect.gen(function* () {
        if ((yield* typeOf(file)) === type) return void mounts.push({ _tag: "ReadOnly", path: file })
        const link = Option.getOrUndefined(yield* Effect.option(fileSystem.readLink(file)))
        absent.set(file, link)
        const target = Option.getOrUndefined(yield* Effect.option(fileSystem.realPath(file)))
        if (link === undefined || target === undefined || (yield* typeOf(target)) !== type) return
        const isWritable = roots.some((root) => isWithin(root, target)) && !isWithin(target, git)
        if (isWritable) mounts.push({ _tag: "ReadOnly", path: target })
      })

    const protect = (directory: string): Effect.Effect<void> =>
      Effect.gen(function* () {
        mounts.push({ _tag: "Writable", path: directory })
        for (const name of directories) {
          const file = path.join(directory, name)
          yield* Effect.ignore(fileSystem.makeDirectory(file))
          yield* guard(file, "Directory")
        }
        for (const name of files) yield* guard(path.join(directory, name), "File")
        yield* modules(path.join(directory, "modules"))
        const worktrees = path.join(directory, "worktrees")
        const known = new Set<string>()
        nests.set(worktrees, known)
        if ((yield* typeOf(worktrees)) !== "Directory") return
        mounts.push({ _tag: "Writable", path: worktrees })
        for (const name of yield* names(worktrees)) {
          known.add(name)
          if ((yield* typeOf(path.join(worktrees, name))) === "Directory") yield* worktree(path.join(worktrees, name))
        }
      })
    const names = (directory: string) => Effect.orElseSucceed(fileSystem.readDirectory(directory), () => [])

    /** Submodules lie below each other by their names, which may have slashes. */
    const modules = (directory: string, level = 0): Effect.Effect<void> =>
      Effect.gen(function* () {
        if (level === 0) nests.set(directory, new Set())
        if (level > maxLevels || (yield* typeOf(directory)) !== "Directory") return
        mounts.push({ _tag: "Writable", path: directory })
        const found = yield* names(directory)
        nests.set(directory, new Set(found))
        for (const name of found) {
          const module = path.join(directory, name)
          if ((yield* typeOf(module)) !== "Directory") continue
          if (yield* fileSystem.exists(path.join(module, "HEAD")).pipe(Effect.orElseSucceed(() => false))) {
            yield* protect(module)
          } else yield* modules(module, level + 1)
        }
      })

    /** What git keeps of one worktree: what says where its repository is does not change. */
    const worktree = (directory: string): Effect.Effect<void> =>
      Effect.gen(function* () {
        mounts.push({ _tag: "Writable", path: directory })
        for (const name of pointers) yield* guard(path.join(directory, name), "File")
      })

    const type = yield* typeOf(git)
    if (type === "Directory") {
      yield* protect(git)
      return { mounts, absent, nests }
    }
    if (type !== "File") return undefined
    const pointer = /^gitdir: (.+)$/.exec((yield* line(git)) ?? "")?.[1]
    mounts.push({ _tag: "ReadOnly", path: git })
    if (pointer === undefined) return { mounts, absent, nests }
    const directory = path.resolve(path.dirname(git), pointer)
    if ((yield* typeOf(directory)) !== "Directory") return { mounts, absent, nests }
    // Anybody can write a file that points to a repository. Only one that points back is this directory's.
    const common = yield* line(path.join(directory, "commondir"))
    if (common !== undefined) {
      const back = yield* line(path.join(directory, "gitdir"))
      const shared = path.resolve(directory, common)
      if (back === undefined || path.resolve(directory, back) !== git) return { mounts, absent, nests }
      if (!isWithin(path.join(shared, "worktrees"), directory)) return { mounts, absent, nests }
      if ((yield* typeOf(shared)) === "Directory") yield* protect(shared)
      return { mounts, absent, nests }
    }
    const configured = yield* Effect.orElseSucceed(
      RegularFile.read(fileSystem, path.join(directory, "config"), maxConfig),
      () => ""
    )
    const root = /^\s*worktree\s*=\s*(.+?)\s*$/m.exec(configured)?.[1]
    if (root !== undefined && path.resolve(directory, root) === path.dirname(git)) yield* protect(directory)
    return { mounts, absent, nests }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Whole directories: attributes choose filters, hooks run. Made where they are missing, to have something to mount. */
const directories = ["hooks", "info"]
/** `commondir` would make git read another directory's configuration. */
const files = ["config", "config.worktree", "commondir"]
const pointers = ["commondir", "gitdir", "config.worktree"]

/** Bytes. */
const maxPointer = 4_096
const maxConfig = 1_000_000
const maxLevels = 16
