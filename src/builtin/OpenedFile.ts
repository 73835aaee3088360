/**
 * A file that was checked by its path, opened, and checked again: a link that replaces it meanwhile is not followed.
 */
import { SystemError, type PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as ResolvedPath from "../core/ResolvedPath.js"

export interface OpenedFile {
  readonly file: FileSystem.File
  /** A name of the open file that no change of the path affects; the path itself where the system has no such names. */
  readonly handle: string
}

/** `path` is absolute and has no link in it. The file is `decided`, if that is known. */
export const open = (
  fileSystem: FileSystem.FileSystem,
  path: string,
  decided?: ResolvedPath.FileIdentity
): Effect.Effect<OpenedFile, PlatformError, Scope.Scope> =>
  Effect.gen(function* () {
    const file = yield* fileSystem.open(path, { flag: "r" })
    const handle = `/proc/self/fd/${file.fd}`
    const found = yield* Effect.option(fileSystem.readLink(handle))
    const real = Option.isSome(found) ? found.value : yield* fileSystem.realPath(path)
    // The system marks a removed file; it is still the file that was checked.
    const isThere = real === path || real === `${path} (deleted)`
    if (isThere && (decided === undefined || ResolvedPath.isSameFile(yield* identity(file), decided))) {
      return { file, handle: Option.isSome(found) ? handle : path }
    }
    return yield* new SystemError({
      reason: "Unknown",
      module: "FileSystem",
      method: "open",
      pathOrDescriptor: path,
      description: "it was replaced while it was opened"
    })
  })

/** All bytes of such a file. */
export const bytes = (
  fileSystem: FileSystem.FileSystem,
  path: string,
  decided?: ResolvedPath.FileIdentity
): Effect.Effect<Uint8Array, PlatformError> =>
  Effect.scoped(Effect.flatMap(open(fileSystem, path, decided), ({ handle }) => fileSystem.readFile(handle)))

/** The entries of such a directory, and a name for further looks while the scope is open. */
export const entries = (
  fileSystem: FileSystem.FileSystem,
  directory: string,
  decided?: ResolvedPath.FileIdentity
): Effect.Effect<{ readonly names: ReadonlyArray<string>; readonly handle: string }, PlatformError, Scope.Scope> =>
  Effect.flatMap(open(fileSystem, directory, decided), ({ handle }) =>
    Effect.map(fileSystem.readDirectory(handle), (names) => ({ names, handle }))
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const identity = (file: FileSystem.File) => Effect.map(file.stat, ResolvedPath.identityOf)
