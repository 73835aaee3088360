/**
 * Places that a pattern writes out, as in `write_file(*path=link/*)`: what stands there before the first star. One place has
 * many such texts: with `..`, absolute, through a link. To deny, all of them mean it.
 */
import * as Glob from "../core/Glob.js"

/** A path in a pattern. `behind`: what stands between it and what follows in the pattern. */
interface Written {
  readonly start: number
  readonly end: number
  readonly path: string
  readonly behind: "" | "/"
}

/** The paths that a pattern writes out for these parameters. */
export const paths = (pattern: string, fields: ReadonlyArray<string>): ReadonlyArray<string> =>
  writtenIn(pattern, fields).flatMap((one) => one.map(({ path }) => path))

/**
 * The pattern with other texts for its paths, in every combination. An empty text is the workspace. Undefined when they are more
 * than {@link most}.
 */
export const spellings = (
  pattern: string,
  fields: ReadonlyArray<string>,
  textsOf: (path: string) => ReadonlyArray<string>
): ReadonlyArray<string> | undefined => {
  let found: ReadonlyArray<{ readonly text: string; readonly at: number }> = [{ text: "", at: 0 }]
  for (const one of writtenIn(pattern, fields)) {
    const next = found.map(({ at, text }) => {
      const end = one[0]?.end ?? at
      return { at: end, text: text + pattern.slice(at, end) }
    })
    for (const { at, text } of found) {
      for (const { behind, end, path, start } of one) {
        for (const other of textsOf(path)) {
          const place = other === "" && behind === "/" ? "" : `${Glob.escape(other) || "."}${behind}`
          next.push({ at: end, text: text + pattern.slice(at, start) + place })
        }
      }
    }
    if (next.length > most) return undefined
    found = next
  }
  const all = new Set(found.map(({ at, text }) => text + pattern.slice(at)))
  all.delete(pattern)
  return [...all]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Texts of one rule. Five paths in one, each with a name and a link of it, come to 243. */
const most = 256

/** For each value of such a parameter, the ways to read a path there. */
const writtenIn = (pattern: string, fields: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<Written>> => {
  const out: Array<ReadonlyArray<Written>> = []
  for (const { 0: name, index } of pattern.matchAll(/(?<!\w)\w+=(?:(?:\[\[\])?")?/g)) {
    if (!fields.includes(name.slice(0, name.indexOf("=")))) continue
    const start = index + name.length
    const rest = pattern.slice(start)
    const run = rest.search(name.endsWith('"') ? /[*?["]/ : /[*?[]|,\s*\w+=|\)$|$/)
    const text = run < 0 ? rest : rest.slice(0, run)
    const goesOn = /^[*?[]/.test(rest.slice(text.length))
    if (!goesOn) out.push(text === "" ? [] : [{ start, end: start + text.length, path: text, behind: "" }])
    else out.push(partsOf(text, start, rest[text.length] === "*"))
  }
  return out.filter((one) => one.length > 0)
}

/** `a/li*`: what is in `a`, and what is in `a/li`. */
const partsOf = (text: string, start: number, anything: boolean): ReadonlyArray<Written> => {
  const slash = text.lastIndexOf("/")
  const parts: Array<Written> = []
  if (slash >= 0) parts.push({ start, end: start + slash + 1, path: text.slice(0, slash) || "/", behind: "/" })
  if (anything && slash < text.length - 1) parts.push({ start, end: start + text.length, path: text, behind: "/" })
  return parts
}
