/** A file that was judged by its path, opened, and looked at again: a link put in its place meanwhile leads nowhere. */
import { SystemError, type PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"

export interface OpenedFile {
  readonly file: FileSystem.File
  /** A name that stays this file's whatever becomes of the path; the path where the system gives no such names. */
  readonly handle: string
}

/** `path` is absolute and has no link in it. */
export const open = (
  fileSystem: FileSystem.FileSystem,
  path: string
): Effect.Effect<OpenedFile, PlatformError, Scope.Scope> =>
  Effect.gen(function* () {
    const file = yield* fileSystem.open(path, { flag: "r" })
    const handle = `/proc/self/fd/${file.fd}`
    const found = yield* Effect.option(fileSystem.readLink(handle))
    const real = Option.isSome(found) ? found.value : yield* fileSystem.realPath(path)
    // The system says of a file that is gone meanwhile that it is; it is the one that was there.
    if (real === path || real === `${path} (deleted)`) return { file, handle: Option.isSome(found) ? handle : path }
    return yield* new SystemError({
      reason: "Unknown",
      module: "FileSystem",
      method: "open",
      pathOrDescriptor: path,
      description: "it was replaced while it was opened"
    })
  })
