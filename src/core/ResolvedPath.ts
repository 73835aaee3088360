/**
 * Where a path of a tool call led when the call was decided, and which file was there.
 *
 * A confined job may rename directories and plant links between a decision and its effect. So a decision keeps what it
 * saw, and the effect opens the path and compares: it acts on the same file in the same directory, or it fails.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/** Two names with one identity are one file. */
export interface FileIdentity {
  readonly dev: number
  readonly ino: number
}

export interface ResolvedPath {
  /** Absolute. Symbolic links are resolved as far as the path exists. */
  readonly absolute: string
  /** What was there; undefined: nothing. */
  readonly file: FileIdentity | undefined
  /** The nearest directory above that existed; undefined where the path itself is one, or none could be looked at. */
  readonly above: { readonly directory: string; readonly identity: FileIdentity } | undefined
}

/** By the text of the parameter. */
export type ResolvedPaths = ReadonlyMap<string, ResolvedPath>

export const identityOf = ({ dev, ino }: Pick<FileSystem.File.Info, "dev" | "ino">): FileIdentity => ({
  dev,
  ino: Option.getOrElse(ino, () => 0)
})

export const isSameFile = (one: FileIdentity | undefined, other: FileIdentity | undefined): boolean =>
  one === undefined || other === undefined ? one === other : one.dev === other.dev && one.ino === other.ino

/** Both looks found the same places, whatever files are there. */
export const areSamePlaces = (one: ResolvedPaths | undefined, other: ResolvedPaths | undefined): boolean =>
  one === other ||
  (one?.size === other?.size &&
    [...(one ?? [])].every(([text, { absolute }]) => other?.get(text)?.absolute === absolute))

/** Looks at an absolute path without links. It never fails: what cannot be looked at counts as nothing. */
export const look = (
  fileSystem: Pick<FileSystem.FileSystem, "stat">,
  dirname: (path: string) => string,
  absolute: string
): Effect.Effect<ResolvedPath> => {
  const identity = (path: string) => Effect.option(Effect.map(fileSystem.stat(path), identityOf))
  const nearest = (directory: string): Effect.Effect<ResolvedPath["above"]> =>
    Effect.flatMap(identity(directory), (found) => {
      if (Option.isSome(found)) return Effect.succeed({ directory, identity: found.value })
      const next = dirname(directory)
      return next === directory ? Effect.succeed(undefined) : nearest(next)
    })
  return Effect.zipWith(identity(absolute), nearest(dirname(absolute)), (file, above) => ({
    absolute,
    file: Option.getOrUndefined(file),
    above
  }))
}
