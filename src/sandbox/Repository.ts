/**
 * What git keeps for a visible directory, and which part of it acts later, when somebody runs git outside.
 *
 * Git may write a `.git`, so that commits can be made. Its configuration, hooks and `info` are read-only, also those
 * of submodules and other worktrees. Each such directory is a mount of its own, because a mount cannot be renamed away.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as RegularFile from "../core/RegularFile.js"
import { isShared } from "./Surroundings.js"
import { isWithin, type Mount } from "./View.js"

export interface Repository {
  readonly mounts: ReadonlyArray<Mount>
  /** The git directory, if it does not lie where the repository was found. */
  readonly elsewhere: ReadonlyArray<string>
  /** Paths that do not exist inside, or are links with this target. They must be the same when a command has ended. */
  readonly absent: ReadonlyMap<string, string | undefined>
  /** Directories whose entries are repositories, with the entries that exist. */
  readonly nests: ReadonlyMap<string, ReadonlySet<string>>
}

/** Collects what makes paths stay as they are. Commands write in `roots`. */
export const guarding = (fileSystem: FileSystem.FileSystem, path: Path.Path, roots: ReadonlyArray<string>) => {
  const mounts: Array<Mount> = []
  const absent = new Map<string, string | undefined>()
  const typeOf = (file: string) => Effect.map(itself(fileSystem, file), (info) => info?.type)
  /** Makes a path read-only, and the target of a link too where commands could write there. */
  const guard = (file: string): Effect.Effect<void> =>
    Effect.gen(function* () {
      if ((yield* typeOf(file)) !== undefined) return void mounts.push({ _tag: "ReadOnly", path: file })
      const link = Option.getOrUndefined(yield* Effect.option(fileSystem.readLink(file)))
      absent.set(file, link)
      const target = Option.getOrUndefined(yield* Effect.option(fileSystem.realPath(file)))
      if (link === undefined || target === undefined) return
      const isReached = roots.some((root) => isWithin(root, target))
      if (isReached && !isAround(target, [...roots, path.dirname(file)])) {
        mounts.push({ _tag: "ReadOnly", path: target })
      }
    })
  return { mounts, absent, guard, typeOf }
}

/**
 * Reads what a `.git` leads to: a directory, or the file of a worktree or submodule. A directory of another name is a git
 * directory by its shape. Commands write in `roots`.
 */
export const read = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  git: string,
  roots: ReadonlyArray<string>
): Effect.Effect<Repository | undefined> =>
  Effect.gen(function* () {
    const { absent, guard, mounts, typeOf } = guarding(fileSystem, path, roots)
    const nests = new Map<string, ReadonlySet<string>>()

    /** Something that is no directory, such as a link. */
    const isInPlace = (file: string) =>
      Effect.flatMap(typeOf(file), (type) =>
        type === undefined ? Effect.isSuccess(fileSystem.readLink(file)) : Effect.succeed(type !== "Directory")
      )

    const protect = (directory: string): Effect.Effect<void> =>
      Effect.gen(function* () {
        mounts.push({ _tag: "Writable", path: directory })
        for (const name of directories) {
          const file = path.join(directory, name)
          yield* Effect.ignore(fileSystem.makeDirectory(file))
          yield* guard(file)
        }
        for (const name of files) yield* guard(path.join(directory, name))
        yield* modules(path.join(directory, "modules"))
        const worktrees = path.join(directory, "worktrees")
        if (yield* isInPlace(worktrees)) return yield* guard(worktrees)
        const known = new Set<string>()
        nests.set(worktrees, known)
        if ((yield* typeOf(worktrees)) !== "Directory") return
        mounts.push({ _tag: "Writable", path: worktrees })
        for (const name of yield* names(worktrees)) {
          known.add(name)
          const file = path.join(worktrees, name)
          yield* (yield* typeOf(file)) === "Directory" ? worktree(file) : guard(file)
        }
      })
    const names = (directory: string) => Effect.orElseSucceed(fileSystem.readDirectory(directory), () => [])

    /** Submodules are nested by their names, which may have slashes. */
    const modules = (directory: string, level = 0): Effect.Effect<void> =>
      Effect.gen(function* () {
        if (level === 0 && (yield* isInPlace(directory))) return yield* guard(directory)
        if (level === 0) nests.set(directory, new Set())
        if (level > maxLevels || (yield* typeOf(directory)) !== "Directory") return
        mounts.push({ _tag: "Writable", path: directory })
        const found = yield* names(directory)
        nests.set(directory, new Set(found))
        for (const name of found) {
          const module = path.join(directory, name)
          if ((yield* typeOf(module)) !== "Directory") yield* guard(module)
          else if (yield* fileSystem.exists(path.join(module, "HEAD")).pipe(Effect.orElseSucceed(() => false))) {
            yield* protect(module)
          } else yield* modules(module, level + 1)
        }
      })

    /** The directory git keeps for one worktree; the files that lead to its repository are fixed. */
    const worktree = (directory: string): Effect.Effect<void> =>
      Effect.gen(function* () {
        mounts.push({ _tag: "Writable", path: directory })
        for (const name of pointers) yield* guard(path.join(directory, name))
      })

    const type = yield* typeOf(git)
    if (type === "Directory") {
      yield* protect(git)
      return { mounts, absent, nests, elsewhere: [] }
    }
    if (type !== "File") return undefined
    mounts.push({ _tag: "ReadOnly", path: git })
    const led = yield* ledTo(fileSystem, path, git)
    if (led !== undefined) yield* protect(led)
    return { mounts, absent, nests, elsewhere: led === undefined ? [] : [led] }
  })

/** The git directory of a work tree if it lies elsewhere: behind the file of a worktree or submodule, or behind a link. */
export const apart = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  git: string
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const type = (yield* itself(fileSystem, git))?.type
    const real = Option.getOrUndefined(yield* Effect.option(fileSystem.realPath(git)))
    if (type === "Directory" || real === undefined) return []
    const led = type === "File" ? yield* ledTo(fileSystem, path, git) : real
    if (led === undefined) return []
    return type === "File" || (yield* isSeparate(fileSystem, path, led, git)) ? [led] : []
  })

/** The file leads to a worktree of one of these git directories, which leads back. */
export const isWorktreeOf = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  git: string,
  gitDirectories: ReadonlyArray<string>
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    if ((yield* itself(fileSystem, git))?.type !== "File") return false
    const led = yield* ledTo(fileSystem, path, git)
    return led !== undefined && path.basename(git) === ".git" && gitDirectories.includes(led)
  })

/** The directory is what one of these git directories keeps of a worktree, and the worktree leads back. */
export const isOfWorktree = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  directory: string,
  gitDirectories: ReadonlyArray<string>
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    if (!gitDirectories.includes(path.dirname(path.dirname(directory)))) return false
    if (path.basename(path.dirname(directory)) !== "worktrees") return false
    const text = yield* Effect.option(RegularFile.read(fileSystem, path.join(directory, "gitdir"), maxPointer))
    const git = Option.getOrUndefined(text)?.trim()
    return git !== undefined && (yield* isWorktreeOf(fileSystem, path, path.resolve(directory, git), gitDirectories))
  })

/** The repository that a directory lies below. */
export interface Above {
  /** The root of its work tree, without links. */
  readonly root: string
  /** What git reads of it: the root, and the git directory if that lies elsewhere. */
  readonly readable: ReadonlyArray<string>
}

/**
 * Finds the repository that a directory lies below, as git finds it. The result is nothing in these cases:
 *
 * - The directory is a root itself.
 * - Git ignores the repository: it belongs to another user or lies on another file system.
 * - The `.git` is a link, which may lead anywhere.
 * - Its root holds more than a project: a home, one of the `secret` places, or a directory that people share.
 */
export const above = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  directory: string,
  secret: ReadonlyArray<string>
): Effect.Effect<Above | undefined> =>
  Effect.gen(function* () {
    const own = yield* itself(fileSystem, directory)
    if (own === undefined) return undefined
    const uid = Option.getOrUndefined(own.uid)
    const isOwn = (file: string) =>
      Effect.map(itself(fileSystem, file), (info) => info !== undefined && Option.getOrUndefined(info.uid) === uid)
    let root = directory
    while (!isShared(root) && !secret.some((place) => isWithin(root, place))) {
      const git = path.join(root, ".git")
      const type = (yield* itself(fileSystem, git))?.type
      const led = type === "File" ? yield* ledTo(fileSystem, path, git) : type === "Directory" ? git : undefined
      const isOne = led !== undefined && (yield* isGitDirectory(fileSystem, path, led))
      const isLink = yield* Effect.isSuccess(fileSystem.readLink(git))
      // Git looks no further up, also if it cannot use what it found.
      if (isOne || type === "File" || isLink || (yield* isGitDirectory(fileSystem, path, root))) {
        if (!isOne || root === directory || !(yield* Effect.every([root, git, led], isOwn))) return undefined
        const isNear = (yield* itself(fileSystem, root))?.dev === own.dev
        return isNear ? { root, readable: isWithin(root, led) ? [root] : [root, led] } : undefined
      }
      if (root === path.dirname(root)) return undefined
      root = path.dirname(root)
    }
    return undefined
  })

/**
 * A link's target that holds one of these directories: the whole workspace, or what the link lies in. Nobody could work
 * where that is read-only.
 */
export const isAround = (target: string, directories: ReadonlyArray<string>): boolean =>
  directories.some((directory) => isWithin(target, directory))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What is at a path. Nothing if a link is on the way: a command may have chosen its target. */
const itself = (fileSystem: FileSystem.FileSystem, file: string) =>
  Effect.flatMap(Effect.option(fileSystem.realPath(file)), (real) =>
    Option.contains(real, file)
      ? Effect.orElseSucceed(fileSystem.stat(file), () => undefined)
      : Effect.succeed(undefined)
  )

/**
 * The git directory that the file of a worktree or submodule leads to. Any command can write a file that points to a
 * repository. Only a repository that points back belongs to this directory.
 */
const ledTo = (fileSystem: FileSystem.FileSystem, path: Path.Path, git: string): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const isOf = (type: FileSystem.File.Type, file: string) =>
      Effect.map(itself(fileSystem, file), (info) => info?.type === type)
    const textOf = (file: string, size: number) =>
      Effect.orElseSucceed(RegularFile.read(fileSystem, file, size), () => undefined)
    const line = (file: string) =>
      Effect.flatMap(isOf("File", file), (isThere) =>
        isThere ? Effect.map(textOf(file, maxPointer), (text) => text?.trim()) : Effect.succeed(undefined)
      )
    const pointer = /^gitdir: (.+)$/.exec((yield* line(git)) ?? "")?.[1]
    if (pointer === undefined) return undefined
    const directory = path.resolve(path.dirname(git), pointer)
    if (!(yield* isOf("Directory", directory))) return undefined
    const common = yield* line(path.join(directory, "commondir"))
    if (common !== undefined) {
      const back = yield* line(path.join(directory, "gitdir"))
      const shared = path.resolve(directory, common)
      if (back === undefined || path.resolve(directory, back) !== git) return undefined
      if (!isWithin(path.join(shared, "worktrees"), directory)) return undefined
      return (yield* isOf("Directory", shared)) ? shared : undefined
    }
    const configured = (yield* textOf(path.join(directory, "config"), maxConfig)) ?? ""
    const root = /^\s*worktree\s*=\s*(.+?)\s*$/m.exec(configured)?.[1]
    if (root === undefined) return (yield* isSeparate(fileSystem, path, directory, git)) ? directory : undefined
    return path.resolve(directory, root) === path.dirname(git) ? directory : undefined
  })

/**
 * A git directory that belongs to no other work tree, as `git init --separate-git-dir` makes it: its name is not `.git`, its
 * settings name no work tree, and it has the owner of what leads to it.
 */
const isSeparate = (fileSystem: FileSystem.FileSystem, path: Path.Path, directory: string, git: string) =>
  Effect.gen(function* () {
    if (path.basename(directory).toLowerCase() === ".git") return false
    if (!(yield* isGitDirectory(fileSystem, path, directory))) return false
    const text = Effect.orElseSucceed(
      RegularFile.read(fileSystem, path.join(directory, "config"), maxConfig),
      () => undefined
    )
    const settings = yield* text
    if (settings === undefined || /^\s*(?:worktree|bare\s*=\s*(?:true|yes|on|1))\b/im.test(settings)) return false
    const [own, other] = yield* Effect.all([itself(fileSystem, path.dirname(git)), itself(fileSystem, directory)])
    return (
      own !== undefined && other !== undefined && Option.getOrUndefined(own.uid) === Option.getOrUndefined(other.uid)
    )
  })

const isGitDirectory = (fileSystem: FileSystem.FileSystem, path: Path.Path, directory: string) =>
  Effect.every(["HEAD", "objects", "refs"], (name) =>
    Effect.orElseSucceed(fileSystem.exists(path.join(directory, name)), () => false)
  )

/**
 * Whole directories: attributes choose filters, hooks run. They are made when missing, so that there is something to
 * mount.
 */
const directories = ["hooks", "info"]
/** `commondir` would make git read another directory's configuration. */
const files = ["config", "config.worktree", "commondir"]
const pointers = ["commondir", "gitdir", "config.worktree"]

/** Size limit, in bytes. */
const maxPointer = 4_096
const maxConfig = 1_000_000
const maxLevels = 16
