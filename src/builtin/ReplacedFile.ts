/**
 * A file of the workspace that is replaced as a whole, through a handle of its directory.
 *
 * ```
 *  prepared: a temporary file beside it ──put──► the file     readers see the old one or the new one
 *                                      └─drop─► nothing
 * ```
 */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { IdGenerator } from "../core/Id.js"
import { gone, isNotFound, isOutermost, sentence, type Service, type Target } from "./WorkspaceRoot.js"

/**
 * Writes a temporary file and renames it: readers see the old file or the new one, and a full disk leaves the old one.
 * It works through a handle of the directory, so that a link that replaces the directory meanwhile is not followed.
 */
export const write = (
  workspace: Service,
  { absolute, shown }: Pick<Target, "absolute" | "shown">,
  content: Uint8Array,
  like: Option.Option<Pick<FileSystem.File.Info, "mode">>
): Effect.Effect<void, string> =>
  Effect.mapError(
    Effect.scoped(
      Effect.gen(function* () {
        const { fileSystem, path } = workspace
        const directory = yield* held(workspace, path.dirname(absolute), shown)
        const mode = Option.map(like, ({ mode }) => mode & 0o7777)
        const temporary = yield* prepared(workspace, directory, content, mode)
        yield* fileSystem.rename(temporary, `${directory}/${path.basename(absolute)}`)
      })
    ),
    (error) => (typeof error === "string" ? error : sentence(error, shown))
  )

/** A temporary file in the directory, durable; it goes with the scope unless it was renamed. */
export const prepared = (
  { fileSystem }: Service,
  directory: string,
  content: Uint8Array,
  mode: Option.Option<number>
): Effect.Effect<string, PlatformError, Scope.Scope> =>
  Effect.gen(function* () {
    const temporary = `${directory}/.${(yield* IdGenerator).unsafeNext("call")}.tmp`
    // After the rename there is nothing left to remove.
    yield* Effect.addFinalizer(() => Effect.ignore(fileSystem.remove(temporary, { force: true })))
    yield* Effect.scoped(
      Effect.gen(function* () {
        const file = yield* fileSystem.open(temporary, { flag: "wx" })
        // Writing nothing counts as a failure.
        if (content.length > 0) yield* file.writeAll(content)
        if (Option.isSome(mode)) yield* fileSystem.chmod(temporary, mode.value)
        yield* file.sync
      })
    )
    return temporary
  })

/**
 * A name of the directory that no change of the path affects, until the scope closes. Missing directories are made,
 * except the workspace itself.
 * Where the system has no such names it is the path, checked once more.
 */
export const held = (
  workspace: Service,
  directory: string,
  shown: string
): Effect.Effect<string, PlatformError | string, Scope.Scope> => {
  const { fileSystem, path } = workspace
  const replaced = `${shown} was not written: a directory on its way was replaced meanwhile. Look at it, and try again.`
  const open = (name: string) =>
    Effect.gen(function* () {
      const { fd } = yield* fileSystem.open(name, { flag: "r" })
      const handle = `/proc/self/fd/${fd}`
      const found = yield* Effect.option(fileSystem.readLink(handle))
      const real = Option.isSome(found) ? found.value : yield* fileSystem.realPath(name)
      if (real !== directory) return yield* Effect.fail(replaced)
      return Option.isSome(found) ? handle : name
    })
  return Effect.catchIf(
    open(directory),
    (error) => typeof error !== "string" && isNotFound(error) && path.dirname(directory) !== directory,
    () => {
      // It went after the path was looked at.
      if (isOutermost(workspace, directory)) return Effect.fail(gone(workspace.root, directory))
      return Effect.flatMap(held(workspace, path.dirname(directory), shown), (above) => {
        const name = `${above}/${path.basename(directory)}`
        return Effect.zipRight(Effect.ignore(fileSystem.makeDirectory(name)), open(name))
      })
    }
  )
}
