/** The paths that a shell makes of a glob: those that exist and match it. */
import type * as Path from "@effect/platform/Path"
import * as Glob from "../core/Glob.js"
import type { FileSurvey, Steps } from "./FileSurvey.js"
import * as ShellPath from "../shell/ShellPath.js"

export interface Found {
  /** As the shell would write them: the pattern with its wildcards replaced. */
  readonly hits: ReadonlyArray<string>
  /** False: there are more names than {@link maxLooks}, or some of them are not known, for they are no valid text. */
  readonly complete: boolean
}

/** The limit of names that are looked at for one glob. */
export const maxLooks = 5_000

/**
 * A directory that cannot be read has no names. `**` matches any number of directories, as in shells that support it, and
 * follows no links, like them.
 */
export function* expand(survey: FileSurvey, path: Path.Path, base: string, pattern: string): Steps<Found> {
  const parts = pattern.split("/")
  const hits: Array<string> = []
  let looks = 0
  let known = true

  const isEnough = (): boolean => ++looks > maxLooks || survey.isSpent

  // `start` ends with a slash, or is empty.
  function* from(start: string, index: number): Steps<void> {
    let prefix = start
    let part = parts[index]
    for (; part !== undefined && index < parts.length - 1 && !isWild(part); part = parts[++index]) prefix += `${part}/`
    if (looks > maxLooks) return
    if (part === undefined) {
      hits.push(prefix.length > 1 ? prefix.slice(0, -1) : prefix)
      return
    }
    const last = index === parts.length - 1
    if (!isWild(part)) {
      const text = prefix + part
      if (part === "" || (yield* survey.isThere(path.resolve(base, text)))) hits.push(text === "" ? "." : text)
      looks++
      return
    }
    const found = yield* survey.namesIn(path.resolve(base, prefix))
    yield* survey.goOn(1 + (found.length >> 3))
    if (part === "**") {
      yield* from(prefix, index + 1)
      for (const name of found) {
        if (isEnough()) return
        if (name.startsWith(".") || (yield* survey.isLink(path.resolve(base, prefix + name)))) continue
        yield* from(`${prefix}${name}/`, index)
      }
    }
    const glob = ShellPath.globOf(part)
    // Some shells match `.` and `..`, too.
    const names = part.startsWith(".") ? [".", "..", ...found] : found
    for (const name of names) {
      if (isEnough()) return
      // A leading wildcard matches no hidden file.
      if ((name.startsWith(".") && !part.startsWith(".")) || !Glob.matches(glob, name)) continue
      if (name.includes(lost)) known = false
      if (last) hits.push(prefix + name)
      else yield* from(`${prefix}${name}/`, index + 1)
    }
  }

  yield* from("", 0)
  return { hits, complete: known && looks <= maxLooks && !survey.isSpent }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isWild = (text: string): boolean => /[*?[]/.test(text)

/** Stands for bytes that are no text: what is at such a name cannot be looked at. */
const lost = "\ufffd"
