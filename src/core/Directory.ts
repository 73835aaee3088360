/** Our own directories, made when they are missing. */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"

/**
 * Makes a directory and its missing parents one by one. Where the system allows no directory at all, such as in
 * `/proc`, Node's own recursive call tries for ever.
 */
export const ensure = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  directory: string,
  mode: number
): Effect.Effect<void, PlatformError> =>
  Effect.flatMap(fileSystem.exists(directory), (isThere) => {
    if (isThere) return Effect.void
    const above = path.dirname(directory)
    const make = fileSystem.makeDirectory(directory, { mode }).pipe(
      // Another process may have made it first.
      Effect.catchIf(
        (error) => error._tag === "SystemError" && error.reason === "AlreadyExists",
        () => Effect.void
      )
    )
    return above === directory ? make : Effect.zipRight(ensure(fileSystem, path, above, mode), make)
  })
