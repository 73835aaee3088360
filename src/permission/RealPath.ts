/**
 * Where a path leads when links are followed, for paths that need not exist.
 *
 * Links are followed as far as the path exists, dangling ones too: writing through one creates its target. Nothing
 * fails: a path that cannot be resolved counts as written, a loop of links leads {@link nowhere}.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"

/** Caches resolved paths: make one per check, since links may change. */
export interface RealPath {
  /** Resolves an absolute path. */
  readonly real: (path: string) => Effect.Effect<string>
  /** Resolves part by part from a directory: behind a link, `..` is the parent of the link's target. */
  readonly walk: (base: string, path: string) => Effect.Effect<string>
  /**
   * Both readings of a path, which may differ: `link/../x` as a text, as programs simplify it, and as the system walks
   * it.
   */
  readonly targets: (base: string, path: string) => Effect.Effect<ReadonlyArray<string>>
}

/** A place that no directory contains. */
export const nowhere = "\0"

export const make = (fs: FileSystem.FileSystem, path: Path.Path): RealPath => {
  const resolved = new Map<string, string>()
  const missing = new Set<string>()

  // One lookup per part of a path, shared by all paths through it: cheaper than resolving each whole path.
  const follow = (text: string, hops: number): Effect.Effect<string> =>
    Effect.suspend(() => {
      const known = resolved.get(text)
      if (known !== undefined) return Effect.succeed(known)
      const parent = path.dirname(text)
      if (parent === text) return Effect.succeed(text)
      return Effect.flatMap(follow(parent, hops), (directory) => step(text, directory, hops))
    })

  const step = (text: string, directory: string, hops: number): Effect.Effect<string> => {
    const plain = path.join(directory, path.basename(text))
    const settle = (real: string): string => {
      resolved.set(text, real)
      return real
    }
    if (missing.has(directory)) {
      missing.add(plain)
      return Effect.succeed(settle(plain))
    }
    return Effect.matchEffect(fs.readLink(plain), {
      onFailure: (error) =>
        Effect.sync(() => {
          if (error._tag === "SystemError" && error.reason === "NotFound") missing.add(plain)
          return settle(plain)
        }),
      onSuccess: (target) =>
        hops >= maxHops
          ? Effect.succeed(nowhere)
          : Effect.map(follow(path.resolve(directory, target), hops + 1), settle)
    })
  }

  const real = (text: string) => follow(text, 0)

  const walk = (base: string, text: string): Effect.Effect<string> =>
    Effect.gen(function* () {
      let at = path.isAbsolute(text) ? path.parse(text).root : yield* real(base)
      for (const part of text.split("/")) {
        if (part === "" || part === ".") continue
        at = part === ".." ? path.dirname(at) : yield* real(path.join(at, part))
      }
      return at
    })

  return {
    real,
    walk,
    targets: (base, text) => {
      const textual = real(path.resolve(base, text))
      return text.split("/").includes("..")
        ? Effect.zipWith(textual, walk(base, text), (one, other) => [one, other])
        : Effect.map(textual, (one) => [one])
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxHops = 40
