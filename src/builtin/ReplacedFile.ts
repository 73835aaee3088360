/**
 * A file of the workspace that is replaced as a whole, through a handle of its directory.
 *
 * ```
 *  prepared: a temporary file beside it ──put──► the file     readers see the old one or the new one
 *                                      └─drop─► nothing
 * ```
 */
import type { PlatformError } from "@effect/platform/Error"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { IdGenerator } from "../core/Id.js"
import * as ResolvedPath from "../core/ResolvedPath.js"
import { gone, isNotFound, isOutermost, replaced, sentence, type Service, type Target } from "./WorkspaceRoot.js"

/**
 * Writes a temporary file and renames it: readers see the old file or the new one, and a full disk leaves the old one.
 * It works through a handle of the directory. It fails if the directory moved, or if another file has the name by then.
 */
export const write = (
  workspace: Service,
  { above, absolute, info, shown }: Target,
  content: Uint8Array
): Effect.Effect<void, string> =>
  Effect.mapError(
    Effect.scoped(
      Effect.gen(function* () {
        const { fileSystem, path, written } = workspace
        const parent = path.dirname(absolute)
        const directory = yield* held(workspace, parent, shown, above)
        const mode = Option.map(info, ({ mode }) => mode & 0o7777)
        const temporary = yield* prepared(workspace, directory, content, mode)
        const identity = ResolvedPath.identityOf(yield* fileSystem.stat(temporary))
        const name = `${directory}/${path.basename(absolute)}`
        const now = yield* Effect.option(Effect.map(fileSystem.stat(name), ResolvedPath.identityOf))
        const before = Option.map(info, ResolvedPath.identityOf)
        if (!ResolvedPath.isSameFile(Option.getOrUndefined(now), Option.getOrUndefined(before))) {
          return yield* Effect.fail(replaced(shown))
        }
        const real = yield* Effect.orElse(fileSystem.readLink(directory), () => fileSystem.realPath(directory))
        if (real !== parent) return yield* Effect.fail(directoryReplaced(shown))
        yield* fileSystem.rename(temporary, name)
        written.note(absolute, identity)
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
 * except the workspace itself. `above` is the directory that existed when the call was decided: it has to be the same,
 * and those below it were made by tools since.
 * Where the system has no such names it is the path, checked once more.
 */
export const held = (
  workspace: Service,
  directory: string,
  shown: string,
  above?: ResolvedPath.ResolvedPath["above"]
): Effect.Effect<string, PlatformError | string, Scope.Scope> => {
  const { fileSystem, path, written } = workspace
  const open = (name: string, isOurs: boolean) =>
    Effect.gen(function* () {
      // The dot makes sure that a pipe in its place is not opened, which would wait for ever.
      const opened = yield* fileSystem.open(`${name}/.`, { flag: "r" })
      const handle = `/proc/self/fd/${opened.fd}`
      const found = yield* Effect.option(fileSystem.readLink(handle))
      const real = Option.isSome(found) ? found.value : yield* fileSystem.realPath(name)
      const identity = ResolvedPath.identityOf(yield* opened.stat)
      if (isOurs && real === directory) written.note(directory, identity)
      const isDecided =
        above === undefined ||
        (directory === above.directory && ResolvedPath.isSameFile(identity, above.identity)) ||
        written.has(directory, identity)
      if (real !== directory || !isDecided) return yield* Effect.fail(directoryReplaced(shown))
      return Option.isSome(found) ? handle : name
    })
  return Effect.catchIf(
    open(directory, false),
    (error) => typeof error !== "string" && isNotFound(error) && path.dirname(directory) !== directory,
    () => {
      // It went after the path was looked at.
      if (isOutermost(workspace, directory)) return Effect.fail(gone(workspace.root, directory))
      return Effect.flatMap(held(workspace, path.dirname(directory), shown, above), (parent) => {
        const name = `${parent}/${path.basename(directory)}`
        return Effect.flatMap(Effect.isSuccess(fileSystem.makeDirectory(name)), (isOurs) => open(name, isOurs))
      })
    }
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const directoryReplaced = (shown: string): string =>
  `${shown} was not written: a directory on its way was replaced meanwhile. Look at it, and try again.`
