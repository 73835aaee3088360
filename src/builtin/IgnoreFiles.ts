/**
 * What git leaves out of a directory: by the `.gitignore` files from its repository down, and by the exclude file of this
 * clone. Git's exclude file of all repositories does not count. No program is run for it.
 *
 * A repository may hold files that are made to be slow. No file and no path holds the event loop for longer than 50 ms.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as RegularFile from "../core/RegularFile.js"
import * as EventLoop from "../internal/EventLoop.js"
import * as PathPattern from "../core/PathPattern.js"

/** The rules of one file, and how the paths begin that they are about. */
export interface Ignoring {
  readonly prefix: string
  readonly rules: PathPattern.IgnoreRules
}

export interface IgnoreFiles {
  /** The rules of the file in a directory; none where there is no such file. */
  readonly in: (directory: string) => Effect.Effect<ReadonlyArray<Ignoring>>
  /** The rules above a root, from its repository down; none where the root lies in none, or where they leave it out itself. */
  readonly above: (root: string) => Effect.Effect<ReadonlyArray<Ignoring>>
  /** The rules of the clone's own, where a repository begins in this directory: no others count in it. */
  readonly begun: (directory: string) => Effect.Effect<ReadonlyArray<Ignoring> | undefined>
  /** Whether the last rule that matches leaves a path out. Rules count from the last on, as many as take 100,000. */
  readonly leaveOut: (all: ReadonlyArray<Ignoring>, absolute: string, isDirectory: boolean) => boolean
}

/** The name of the file with the rules of a directory. */
export const name = ".gitignore"

export const make = ({
  fileSystem,
  path
}: {
  readonly fileSystem: FileSystem.FileSystem
  readonly path: Path.Path
}): IgnoreFiles => {
  const toSlashes = (text: string) => (path.sep === "/" ? text : text.replaceAll(path.sep, "/"))
  const prefixOf = (directory: string) => (directory.endsWith(path.sep) ? directory : directory + path.sep)
  const isThere = (file: string) => Effect.orElseSucceed(fileSystem.exists(file), () => false)
  const textOf = (file: string) =>
    Effect.orElseSucceed(RegularFile.read(fileSystem, file, longest), (): string | undefined => undefined)
  const rulesOf = (file: string, directory: string): Effect.Effect<ReadonlyArray<Ignoring>> =>
    Effect.flatMap(textOf(file), (text) =>
      Effect.gen(function* () {
        const prefix = prefixOf(directory)
        const found: Array<Ignoring> = []
        for (const part of partsOf(text ?? "")) {
          if (found.length > 0) yield* EventLoop.yieldToEventLoop
          found.push({ prefix, rules: PathPattern.ignoreRules(part) })
        }
        return found
      })
    )
  const rulesIn = (directory: string) => rulesOf(path.join(directory, name), directory)

  const leaveOut: IgnoreFiles["leaveOut"] = (all, absolute, isDirectory) => {
    let cost = 0
    for (let i = all.length - 1; i >= 0; i--) {
      const one = all[i]
      cost += one?.rules.cost ?? 0
      if (cost > mostCost) return false
      const verdict = one?.rules.verdict(toSlashes(absolute.slice(one.prefix.length)), isDirectory)
      if (verdict !== undefined) return verdict
    }
    return false
  }

  /** In a worktree and in a submodule `.git` is a file that names the directory, and the clone has one for all of them. */
  const begun = (repository: string) =>
    Effect.gen(function* () {
      const git = path.join(repository, ".git")
      const [, elsewhere] = /^gitdir: ([^\0\n]+)\n?$/.exec((yield* textOf(git)) ?? "") ?? []
      const own = elsewhere === undefined ? git : path.resolve(repository, elsewhere)
      // To git, a directory of that name is nothing by itself.
      const isOne = elsewhere !== undefined || (yield* isThere(path.join(own, "HEAD")))
      if (!isOne) return undefined
      const [, shared] = /^([^\0\n]+)\n?$/.exec((yield* textOf(path.join(own, "commondir"))) ?? "") ?? []
      const directory = shared === undefined ? own : path.resolve(own, shared)
      return yield* rulesOf(path.join(directory, "info", "exclude"), repository)
    })

  const above = (root: string) =>
    Effect.gen(function* () {
      /** From the repository down to the root, without it. */
      const directories: Array<string> = []
      let repository = root
      let all = yield* begun(repository)
      while (all === undefined) {
        const parent = path.dirname(repository)
        if (parent === repository) return []
        directories.unshift(parent)
        repository = parent
        all = yield* begun(repository)
      }
      for (const [at, directory] of directories.entries()) {
        all = [...all, ...(yield* rulesIn(directory))]
        if (leaveOut(all, directories[at + 1] ?? root, true)) return []
      }
      return all
    })

  return { in: rulesIn, above, begun, leaveOut }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Bytes of a file with rules. Nothing counts of a longer one. */
const longest = 262_144
/** Rules that are tried for a path, as `IgnoreRules.cost` counts them: what takes 20 ms for the longest path. */
const mostCost = 100_000
/** Characters of rules that are read at once. */
const helping = 8_192

/** A text of rules in parts of whole lines. */
const partsOf = (text: string): ReadonlyArray<string> => {
  const parts: Array<string> = []
  for (let from = 0; from < text.length;) {
    const end = text.indexOf("\n", from + helping)
    const to = end < 0 ? text.length : end + 1
    parts.push(text.slice(from, to))
    from = to
  }
  return parts
}
