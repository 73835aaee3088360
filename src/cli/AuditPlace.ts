/** Where the command line keeps its audit, and the key that it is written and verified with. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as AuditArchive from "../event/AuditArchive.js"
import type * as AuditChain from "../event/AuditChain.js"
import * as Arguments from "./Arguments.js"

/** Trails in the workspace, heads beside the user's own settings, where the agent's tools do not reach. */
export const archive = (settings: {
  readonly workspace: string
  readonly configDirectory: string
}): Effect.Effect<AuditArchive.Archive, never, Path.Path> =>
  Effect.map(Path.Path, (path) => ({
    directory: path.join(settings.workspace, ".assent", "audit"),
    headDirectory: path.join(settings.configDirectory, "audit-heads")
  }))

/** The key in a file, without the white space around it; none when no file is named. */
export const readKey = (
  file: string | undefined
): Effect.Effect<AuditChain.Key | undefined, Arguments.UsageError, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    if (file === undefined) return undefined
    const fileSystem = yield* FileSystem.FileSystem
    const text = yield* Effect.mapError(
      fileSystem.readFileString(file),
      (error) => new Arguments.UsageError({ message: `The key ${file} cannot be read: ${error.message}` })
    )
    const key = text.trim()
    return key.length >= shortest
      ? Redacted.make(key)
      : yield* new Arguments.UsageError({
          message: `The key in ${file} is too short. Make one of at least ${shortest} characters: openssl rand -hex 32 > ${file}`
        })
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Whoever has a trail can try out shorter keys at leisure. */
const shortest = 16
