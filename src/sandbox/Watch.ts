/**
 * Looks for what commands left behind: acting names, and new files in the repositories that were there.
 *
 * A directory that its owner cannot list hides its contents. A program confined like a command opens it for our look. A
 * running command could put a link in its place, but the link then leads only to paths that a command can reach.
 */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Search from "./Search.js"
import type { View } from "./View.js"

/** Runs a program of ours as confined as a command. Whether it exits with 0. */
export type Confined = (view: View, command: readonly [string, ...ReadonlyArray<string>]) => Effect.Effect<boolean>

/** The parts of repositories that must not change. */
export interface Guarded {
  /** Paths that must not exist, or be a link with this target. */
  readonly absent: ReadonlyMap<string, string | undefined>
  /** Directories, with the names in them. */
  readonly nests: ReadonlyMap<string, ReadonlySet<string>>
}

export interface Everything extends Search.Result {
  /** Restores the permissions that were changed for the look. */
  readonly close: Effect.Effect<void>
}

export interface Seen {
  /** All acting names; `closed` are the directories that could not be opened. A sentence where nobody can say. */
  readonly everything: Either.Either<Everything, string>
  /** The guarded paths that have changed. */
  readonly appeared: ReadonlyArray<string>
  /** Directories with guarded paths that could not be looked at. */
  readonly unseen: ReadonlyArray<string>
}

export interface Watch {
  /**
   * Looks at everything. Directories that are closed are opened by a program that sees `view`, and stay open until
   * `close`.
   */
  readonly look: (view: Effect.Effect<View, string>, guarded?: Guarded) => Effect.Effect<Seen>
  /** Opens directories for good. */
  readonly open: (view: View, directories: ReadonlyArray<string>) => Effect.Effect<void>
}

export const make = ({ fileSystem, path }: Search.Platform, search: Search.Search, confined: Confined): Watch => {
  const runIn = (view: Effect.Effect<View, string>, command: Parameters<Confined>[1]) =>
    Effect.ignore(Effect.flatMap(view, (seen) => confined(seen, command)))
  const openAll = (view: Effect.Effect<View, string>, begun: Search.Result) =>
    Effect.gen(function* () {
      let now = begun
      const opened: Array<Search.Closed> = []
      const tried = new Set<string>()
      for (let round = 0; ; round++) {
        const untried = now.closed.filter(({ file }) => !tried.has(file))
        if (untried.length === 0) break
        for (const some of inBatches(untried)) {
          yield* runIn(view, open(some.map(({ file }) => file)))
        }
        // Deeper directories are not searched; now they can be moved.
        if (round === maxRounds) break
        for (const { file } of untried) tried.add(file)
        now = yield* search.find
        const still = new Set(now.closed.map(({ file }) => file))
        opened.push(...untried.filter(({ file }) => !still.has(file)))
      }
      const close = Effect.forEach(
        // Inner directories are closed before the outer ones.
        inBatches(opened.toReversed()),
        (some) => runIn(view, ["/bin/sh", "-c", restore, "sh", ...some.flatMap(({ file, mode }) => [mode, file])]),
        { discard: true }
      )
      return { ...now, close }
    })

  /** The changed ones among the guarded paths, as far as `each` can look at them. */
  const changed = <E>({ absent, nests }: Guarded, each: Each<E>) =>
    Effect.gen(function* () {
      const files = yield* Effect.filter(
        [...absent],
        ([file, link]) => each(isOther(fileSystem, file, link), false, path.dirname(file)),
        atOnce
      )
      const nested = yield* Effect.forEach(nests, ([nest, names]) => each(newIn(nest, names), [], nest), atOnce)
      return [...files.map(([file]) => file), ...nested.flat()]
    })
  /** The new entries of a directory; the path itself where something else is in the directory's place. */
  const newIn = (nest: string, names: ReadonlySet<string>) =>
    Effect.gen(function* () {
      if (yield* Effect.isSuccess(fileSystem.readLink(nest))) return [nest]
      const info = yield* orNothing(fileSystem.stat(nest), undefined)
      if (info === undefined) return []
      if (info.type !== "Directory") return [nest]
      const now = yield* orNothing(fileSystem.readDirectory(nest), [])
      return now.filter((name) => !names.has(name)).map((name) => path.join(nest, name))
    })
  const changedNow = (guarded: Guarded) => changed(guarded, (look) => look)

  const changedAtLast = (view: Effect.Effect<View, string>, guarded: Guarded) =>
    Effect.gen(function* () {
      const directories = new Set([
        ...[...guarded.absent.keys()].map((file) => path.dirname(file)),
        ...guarded.nests.keys()
      ])
      yield* runIn(view, open([...directories].toSorted()))
      const unseen = new Set<string>()
      const appeared = yield* changed(guarded, (look, instead, directory) =>
        Effect.catchAll(look, () => {
          unseen.add(directory)
          return Effect.succeed(instead)
        })
      )
      return { appeared, unseen: [...unseen] }
    })

  return {
    open: (view, directories) =>
      Effect.forEach(inBatches(directories), (some) => runIn(Effect.succeed(view), open(some)), { discard: true }),
    look: (view, guarded = nothing) =>
      Effect.gen(function* () {
        const [begun, glanced] = yield* Effect.all(
          [Effect.either(search.find), Effect.either(changedNow(guarded))],
          atOnce
        )
        const everything = Either.isLeft(begun)
          ? Either.left(begun.left)
          : yield* Effect.either(openAll(view, begun.right))
        // A closed directory may lie above the guarded paths; it is open by now.
        if (Either.isRight(glanced)) return { everything, appeared: glanced.right, unseen: [] }
        return { everything, ...(yield* changedAtLast(view, guarded)) }
      })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Looks at one path, or yields `instead` where it cannot, in this directory. */
type Each<E> = <A>(look: Effect.Effect<A, PlatformError>, instead: A, directory: string) => Effect.Effect<A, E>

const nothing: Guarded = { absent: new Map(), nests: new Map() }
/** Unlistable directories may be nested. */
const maxRounds = 20
const atOnce = { concurrency: "unbounded" } as const

const open = (directories: ReadonlyArray<string>): readonly [string, ...ReadonlyArray<string>] => [
  ...(["/bin/sh", "-c", 'chmod u+rwx -- "$@"', "sh"] as const),
  ...directories
]
const restore = 'while [ $# -gt 1 ]; do chmod "$1" -- "$2"; shift 2; done'

/** Batches that fit in one command line. */
const inBatches = <A>(all: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(all.length / batch) }, (_, index) => all.slice(index * batch, (index + 1) * batch))
const batch = 200

/** A missing path yields `nothing`. Other failures stay: the path may exist. */
const orNothing = <A, B>(effect: Effect.Effect<A, PlatformError>, nothing: B): Effect.Effect<A | B, PlatformError> =>
  Effect.catchIf(
    effect,
    (error) => error._tag === "SystemError" && error.reason === "NotFound",
    () => Effect.succeed(nothing)
  )

/** Whether something other than the expected link is at the path. Fails where it cannot be looked at. */
const isOther = (
  fileSystem: FileSystem.FileSystem,
  file: string,
  link: string | undefined
): Effect.Effect<boolean, PlatformError> =>
  Effect.matchEffect(fileSystem.readLink(file), {
    onSuccess: (target) => Effect.succeed(target !== link),
    onFailure: (error) => {
      if (error._tag === "SystemError" && error.reason === "NotFound") return Effect.succeed(false)
      if (error._tag === "SystemError" && error.reason === "PermissionDenied") return Effect.fail(error)
      // The path is no link.
      return Effect.succeed(true)
    }
  })
