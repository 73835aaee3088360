/**
 * What happens when a command has ended: files that appeared in a workspace and would act later are moved to a directory
 * of ours, and links that are gone are put back.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Directory from "../core/Directory.js"

/**
 * Moves a file or directory below `root` into `directory`. The new name shows its former place. Nothing when it is
 * gone, or when a link below the root leads to it: then it lies elsewhere, and is not ours to move.
 */
export const move = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  options: { readonly file: string; readonly root: string; readonly directory: string; readonly stamp: string }
): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const { directory, file, root, stamp } = options
    const from = yield* hold(fileSystem, path, file)
    if (from === undefined) return undefined
    yield* Directory.ensure(fileSystem, path, directory, 0o700)
    const shown = path
      .relative(root, file)
      .replace(/[^\w.-]+/g, "_")
      .slice(-80)
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const to = path.join(directory, `${stamp}-${attempt}-${shown}`)
      if (yield* fileSystem.exists(to)) continue
      yield* Effect.orElse(fileSystem.rename(from, to), () =>
        // A rename fails across file systems, so the file is copied.
        Effect.zipRight(fileSystem.copy(from, to), fileSystem.remove(from, { recursive: true, force: true }))
      )
      return to
    }
    return undefined
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

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxAttempts = 1_000

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
