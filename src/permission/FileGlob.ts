/** The paths that a shell makes of a glob: those that exist and match it. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Glob from "../core/Glob.js"

export interface Found {
  /** As the shell would write them: the pattern with its wildcards replaced. */
  readonly hits: ReadonlyArray<string>
  /** False: there are more names than {@link maxLooks}. */
  readonly complete: boolean
}

/** The limit of names that are looked at for one glob. */
export const maxLooks = 5_000

/**
 * Never fails: a directory that cannot be read has no names. `**` matches any number of directories, as in shells that
 * support it, and follows no links, like them.
 */
export const expand = (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  base: string,
  pattern: string
): Effect.Effect<Found> => {
  const parts = pattern.split("/")
  const hits: Array<string> = []
  let looks = 0

  const namesIn = (prefix: string): Effect.Effect<ReadonlyArray<string>> =>
    Effect.orElseSucceed(fs.readDirectory(path.resolve(base, prefix)), () => [])

  const isThere = (text: string): Effect.Effect<boolean> => {
    const absolute = path.resolve(base, text)
    return Effect.orElse(
      Effect.filterOrFail(fs.exists(absolute), (there) => there),
      () => Effect.as(fs.readLink(absolute), true)
    ).pipe(Effect.orElseSucceed(() => false))
  }

  const isLink = (text: string): Effect.Effect<boolean> => Effect.isSuccess(fs.readLink(path.resolve(base, text)))

  // `prefix` ends with a slash, or is empty.
  const from = (prefix: string, index: number): Effect.Effect<void> =>
    Effect.gen(function* () {
      if (looks > maxLooks) return
      const part = parts[index]
      if (part === undefined) {
        hits.push(prefix.length > 1 ? prefix.slice(0, -1) : prefix)
        return
      }
      const last = index === parts.length - 1
      if (!isWild(part)) {
        const text = prefix + part
        if (!last) return yield* from(`${text}/`, index + 1)
        if (part === "" || (yield* isThere(text))) hits.push(text === "" ? "." : text)
        looks++
        return
      }
      if (part === "**") {
        yield* from(prefix, index + 1)
        for (const name of yield* namesIn(prefix)) {
          if (++looks > maxLooks) return
          if (name.startsWith(".") || (yield* isLink(prefix + name))) continue
          yield* from(`${prefix}${name}/`, index)
        }
      }
      const glob = Glob.compile(part)
      // Some shells match `.` and `..`, too.
      const names = part.startsWith(".") ? [".", "..", ...(yield* namesIn(prefix))] : yield* namesIn(prefix)
      for (const name of names) {
        if (++looks > maxLooks) return
        // A leading wildcard matches no hidden file.
        if ((name.startsWith(".") && !part.startsWith(".")) || !Glob.matches(glob, name)) continue
        if (last) hits.push(prefix + name)
        else yield* from(`${prefix}${name}/`, index + 1)
      }
    })

  return Effect.map(from("", 0), () => ({ hits, complete: looks <= maxLooks }))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isWild = (text: string): boolean => /[*?[]/.test(text)
