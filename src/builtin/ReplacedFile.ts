/**
 * Writes a whole file of the workspace, through a handle of its directory.
 *
 * A file that exists is written in place, through one handle: hard links, mode, owner, group and ACL stay as they are,
 * and no other file can take its name in between. A new file appears complete, or not at all.
 */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { IdGenerator } from "../core/Id.js"
import * as ResolvedPath from "../core/ResolvedPath.js"
import { gone, isNotFound, isOutermost, replaced, sentence, type Service, type Target } from "./WorkspaceRoot.js"

/**
 * Fails if the directory moved, or if another file has the name by now. If the disk is full, the file stays as it was.
 * A reader, or a crash of the system, may see a half of what is written in place.
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
        const name = `${directory}/${path.basename(absolute)}`
        const isMoved = Effect.map(
          Effect.orElse(fileSystem.readLink(directory), () => fileSystem.realPath(directory)),
          (real) => real !== parent
        )
        if (Option.isNone(info)) {
          const temporary = yield* prepared(workspace, directory, content, Option.none())
          const identity = ResolvedPath.identityOf(yield* fileSystem.stat(temporary))
          if (yield* isMoved) return yield* Effect.fail(directoryReplaced(shown))
          yield* appear(workspace, temporary, name, shown)
          return written.note(absolute, identity)
        }
        const file = yield* Effect.mapError(fileSystem.open(name, { flag: "r+" }), (error) =>
          isNotFound(error) ? replaced(shown) : error
        )
        const identity = ResolvedPath.identityOf(yield* file.stat)
        if (!ResolvedPath.isSameFile(identity, ResolvedPath.identityOf(info.value))) {
          return yield* Effect.fail(replaced(shown))
        }
        if (yield* isMoved) return yield* Effect.fail(directoryReplaced(shown))
        yield* overwrite(file, content)
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

/** Gives a temporary file its name, unless another file has the name by now. */
const appear = (
  { fileSystem }: Service,
  temporary: string,
  name: string,
  shown: string
): Effect.Effect<void, PlatformError | string> =>
  Effect.catchAll(fileSystem.link(temporary, name), (error) =>
    Effect.flatMap(fileSystem.exists(name), (isThere): Effect.Effect<void, PlatformError | string> => {
      if (isThere) return Effect.fail(replaced(shown))
      // Some file systems have no hard links.
      return isNotFound(error) ? Effect.fail(error) : fileSystem.rename(temporary, name)
    })
  )

/** What is behind the old end is written first: a full disk shows there, before anything is lost. */
const overwrite = (file: FileSystem.File, content: Uint8Array): Effect.Effect<void, PlatformError> =>
  Effect.gen(function* () {
    const size = Number((yield* file.stat).size)
    const before = yield* file.readAlloc(Math.min(size, content.length))
    const put = (at: number, bytes: Uint8Array) =>
      // Writing nothing counts as a failure.
      bytes.length === 0 ? Effect.void : Effect.zipRight(file.seek(at, "start"), file.writeAll(bytes))
    const putBack = Effect.zipRight(
      Effect.ignore(
        put(
          0,
          Option.getOrElse(before, () => new Uint8Array())
        )
      ),
      Effect.ignore(file.truncate(size))
    )
    yield* Effect.onError(
      put(size, content.subarray(size)).pipe(
        Effect.zipRight(put(0, content.subarray(0, size))),
        Effect.zipRight(content.length < size ? file.truncate(content.length) : Effect.void),
        Effect.zipRight(file.sync)
      ),
      () => putBack
    )
  }).pipe(Effect.uninterruptible)

const directoryReplaced = (shown: string): string =>
  `${shown} was not written: a directory on its way was replaced meanwhile. Look at it, and try again.`
