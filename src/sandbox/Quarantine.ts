/**
 * Moves what appeared in a workspace and would act later to a directory of ours, and puts links back that are gone.
 *
 * A running command may exchange directories for links meanwhile. So nothing here copies or removes a tree by its path
 * with our own rights: a program that is confined like a command does that, and reaches what a command reaches.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Directory from "../core/Directory.js"

export interface Options {
  readonly file: string
  readonly root: string
  /** Where the files set aside are kept. */
  readonly directory: string
  readonly stamp: string
  /** Runs a shell script confined like a command, where `copies` is visible at `within`. Whether it exits with 0. */
  readonly run: (script: string, words: ReadonlyArray<string>, copies: string) => Effect.Effect<boolean>
  readonly within: string
}

/** `isLeft`: it could be copied, but not removed. */
export interface Moved {
  readonly to: string
  readonly isLeft: boolean
}

/**
 * Moves a file or directory below `root` into `directory`. The new name shows its former place. Nothing when it is
 * gone, or when a link below the root leads to it: then it lies elsewhere, and is not ours to move.
 */
export const move = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  options: Options
): Effect.Effect<Moved | undefined> =>
  Effect.gen(function* () {
    const { directory, file, root, run, stamp, within } = options
    const parent = path.dirname(file)
    const from = yield* hold(fileSystem, path, file)
    if (from === undefined) return undefined
    yield* Directory.ensure(fileSystem, path, directory, 0o700)
    const shown = path
      .relative(root, file)
      .replace(/[^\w.-]+/g, "_")
      .slice(-80)
    const { name, to } = yield* firstFree(fileSystem, path, directory, (attempt) => `${stamp}-${attempt}-${shown}`)
    /** A rename fails across file systems, and in a directory that its owner may not write. */
    const carry = Effect.gen(function* () {
      const { mode } = yield* fileSystem.stat(path.dirname(from))
      const copies = path.join(directory, `${name}.part`)
      yield* fileSystem.makeDirectory(copies, { mode: 0o700 })
      const words = [parent, file, path.join(within, "item"), path.join(within, "copied"), (mode & 0o7777).toString(8)]
      const isRemoved = yield* run(carried, words, copies)
      const isCopied = yield* fileSystem.exists(path.join(copies, "copied"))
      if (isCopied) yield* fileSystem.rename(path.join(copies, "item"), to)
      yield* Effect.ignore(fileSystem.remove(copies, { recursive: true }))
      return isCopied ? { to, isLeft: !isRemoved } : undefined
    })
    return yield* Effect.orElse(Effect.as(fileSystem.rename(from, to), { to, isLeft: false }), () => carry)
  }).pipe(
    Effect.scoped,
    Effect.orElseSucceed(() => undefined)
  )

/** Makes a link that was there before. Whether it could: not where its directory is gone, or where something is. */
export const putBack = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  link: { readonly file: string; readonly target: string }
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const at = yield* hold(fileSystem, path, link.file)
    if (at === undefined) return false
    yield* fileSystem.symlink(link.target, at)
    return true
  }).pipe(
    Effect.scoped,
    Effect.orElseSucceed(() => false)
  )

/** The first name in our directory that is not taken. Many files are set aside at one time. */
export const firstFree = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  directory: string,
  nameOf: (attempt: number) => string
) =>
  Effect.gen(function* () {
    for (let attempt = 0; ; attempt++) {
      const name = nameOf(attempt)
      const to = path.join(directory, name)
      if (!(yield* fileSystem.exists(to))) return { name, to }
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Words: the parent, the file, its copy, a file that says that the copy is whole, and the parent's permissions. */
const carried = [
  'chmod u+rwx -- "$1"',
  '[ -h "$2" ] || chmod -R u+rwX -- "$2"',
  'cp -RP -- "$2" "$3" && : >"$4" && rm -rf -- "$2"',
  "code=$?",
  'chmod "$5" -- "$1"',
  "exit $code"
].join("\n")

/**
 * The path of a file in its directory, which is held open: a running command could put a link in its place. Nothing
 * where that has happened already. The dot makes sure that a pipe in its place is not opened, which would wait for ever.
 */
const hold = (fileSystem: FileSystem.FileSystem, path: Path.Path, file: string) =>
  Effect.gen(function* () {
    const parent = path.dirname(file)
    const { fd } = yield* fileSystem.open(`${parent}/.`)
    const at = `/proc/self/fd/${fd}`
    return (yield* fileSystem.readLink(at)) === parent ? path.join(at, path.basename(file)) : undefined
  })
