/**
 * Moves what appeared in a workspace and would act later to a directory of ours, and puts links back that are gone.
 *
 * A running command may exchange directories for links meanwhile. So nothing here copies or removes a tree by its path
 * with our own rights: a program that is confined like a command does that, and reaches what a command reaches.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Directory from "../core/Directory.js"

export interface Options {
  /** Each with the root that it lies in. */
  readonly files: ReadonlyArray<{ readonly file: string; readonly root: string }>
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
 * Moves files or directories into `directory`. The new names show the former places. Nothing for a file that is gone, or if a
 * link below the root leads to it: then it lies elsewhere, and is not ours to move.
 */
export const move = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  { directory, files, run, stamp, within }: Options
): Effect.Effect<ReadonlyArray<Moved | undefined>> =>
  Effect.gen(function* () {
    yield* Directory.ensure(fileSystem, path, directory, 0o700)
    const taken = new Set(yield* fileSystem.readDirectory(directory))
    const moved = files.map((): Moved | undefined => undefined)
    /** A rename fails across file systems, in a directory that its owner may not write, and for a name that is no text. */
    const left: Array<Carried> = []
    for (const [index, { file, root }] of files.entries()) {
      const shown = path
        .relative(root, file)
        .replace(/[^\w.-]+/g, "_")
        .slice(-80)
      const to = path.join(
        directory,
        freeName(taken, (attempt) => `${stamp}-${attempt}-${shown}`)
      )
      const renamed = Effect.gen(function* () {
        const from = yield* hold(fileSystem, path, file)
        if (from === undefined) return undefined
        if (yield* Effect.isSuccess(fileSystem.rename(from, to))) return "renamed"
        return yield* fileSystem.stat(path.dirname(from))
      }).pipe(Effect.scoped)
      const done = isText(file) ? yield* Effect.orElseSucceed(renamed, () => undefined) : unnamed
      if (done === "renamed") moved[index] = { to, isLeft: false }
      else if (done !== undefined) left.push({ index, file, to, mode: (done.mode & 0o7777).toString(8) })
    }
    for (const some of Arr.chunksOf(left, mostAtOnce)) {
      const name = freeName(taken, (attempt) => `${stamp}-${attempt}.part`)
      const copies = path.join(directory, name)
      yield* fileSystem.makeDirectory(copies, { mode: 0o700 })
      const words = some.flatMap(({ file, index, mode }) => [
        escaped(path.dirname(file)),
        escaped(file),
        mode,
        path.join(within, `${index}`)
      ])
      yield* run(carried, words, copies)
      for (const { index, to } of some) {
        const has = (mark: string) => fileSystem.exists(path.join(copies, `${index}.${mark}`))
        if (!(yield* has("copied"))) continue
        yield* fileSystem.rename(path.join(copies, `${index}`), to)
        moved[index] = { to, isLeft: !(yield* has("removed")) }
      }
      yield* Effect.ignore(fileSystem.remove(copies, { recursive: true }))
    }
    return moved
  }).pipe(Effect.orElseSucceed(() => files.map(() => undefined)))

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

/** The first name that is not taken, which then is. */
export const freeName = (taken: Set<string>, nameOf: (attempt: number) => string): string => {
  for (let attempt = 0; ; attempt++) {
    const name = nameOf(attempt)
    if (taken.has(name)) continue
    taken.add(name)
    return name
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Carried {
  readonly index: number
  readonly file: string
  readonly to: string
  /** The permissions of the parent, in octal digits. */
  readonly mode: string
}

/** A system takes only so many bytes as the words of a program. */
const mostAtOnce = 200

/** The parent of a file whose name is no text: its permissions cannot be read. */
const unnamed = { mode: 0o755 }

/** Words, four of each file: the parent, the file, the parent's permissions, and the place of the copy. */
const carried = [
  "text() { word=$(printf '%b.' \"$1\"); word=${word%.}; }",
  "while [ $# -gt 3 ]; do",
  'text "$1"; parent=$word; text "$2"; file=$word',
  'chmod u+rwx -- "$parent"',
  '[ -h "$file" ] || chmod -R u+rwX -- "$file"',
  'cp -RP -- "$file" "$4" && : >"$4.copied" && rm -rf -- "$file" && : >"$4.removed"',
  'chmod "$3" -- "$parent"',
  "shift 4",
  "done"
].join("\n")

/** The name can be given to programs of the system. See `Search` for names that are no text. */
const isText = (file: string): boolean => !/\p{Surrogate}/u.test(file)

/** For `printf %b`, which makes a byte of `\0` and three octal digits. */
const escaped = (file: string): string =>
  file.replace(/[\\\udc80-\udcff]/g, (sign) =>
    sign === "\\" ? "\\\\" : `\\0${(sign.charCodeAt(0) - 0xdc00).toString(8)}`
  )

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
