/** Moves files that appeared in a workspace while a command ran, and would act later, to a directory of ours. */
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
    const parent = path.dirname(file)
    // The directory is held open: a running command could put a link in its place.
    const held = yield* fileSystem.open(parent)
    const at = `/proc/self/fd/${held.fd}`
    const opened = yield* fileSystem.readLink(at)
    if (opened !== parent) return undefined
    const from = path.join(at, path.basename(file))
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

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxAttempts = 1_000
