/**
 * Paths that nobody touches: globs from the root of a workspace, such as `.env`, `*.pem` and `secrets/**`.
 *
 * A glob that matches a path denies the path and everything below it. A glob without a slash names a place at the root.
 * Names are compared as written and as the most lenient file systems compare them.
 */
import * as Either from "effect/Either"
import * as FoldedName from "./FoldedName.js"
import * as PathPattern from "./PathPattern.js"

export interface DeniedPaths {
  readonly entries: ReadonlyArray<Entry>
}

/** One glob. */
export interface Entry {
  /** As written. */
  readonly text: string
  /** The names before the first wildcard, folded. */
  readonly head: string
  /** The path without wildcards; nothing for a glob with some. */
  readonly place: string | undefined
  readonly matches: (path: string, folded: string) => boolean
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const none: DeniedPaths = { entries: [] }

/** Globs that have a {@link problem} deny everything: no agent may begin with one. */
export const make = (globs: ReadonlyArray<string> = []): DeniedPaths =>
  globs.length === 0 ? none : { entries: [...new Set(globs)].map(known) }

/** Why a glob can deny no path that is meant: a sentence, with the nearest right spelling. */
export const problem = (glob: string): string | undefined => {
  const text = glob.trim()
  const meant = (near: string) => (near === "" ? "" : ` Did you mean ${near}?`)
  if (/^~|^[A-Za-z]:[\\/]|^[a-z]+:\/\//.test(text) || text.startsWith("/"))
    return `a path begins at the workspace's root, without a slash.${meant(normal(text.replace(/^(?:~[^/]*|[A-Za-z]:|[a-z]+:\/\/)/, "")))}`
  if (text.startsWith("!")) return `a denied path has no exceptions.${meant(normal(text.slice(1)))}`
  if (/\\(?![*?[\]{},\\!-])/.test(text))
    return `the names in a path stand between slashes.${meant(normal(text.replace(/\\+/g, "/")))}`
  if (text.split("/").includes("..")) return `a denied path does not leave the workspace.${meant(climbed(text))}`
  if (text.includes("\0")) return "a path has no zero character."
  if (normal(text) === "")
    return 'it names the whole workspace. Name files and directories in it, such as "secrets/**".'
  return Either.match(PathPattern.glob(rooted(normal(text))), { onLeft: (why) => why, onRight: () => undefined })
}

// -----------------------------------------------------------------------------------------------------------------
// operations
// -----------------------------------------------------------------------------------------------------------------

/** The glob that denies a path, or a directory above it. The path is relative to the workspace, with slashes. */
export const find = ({ entries }: DeniedPaths, path: string): string | undefined => {
  if (entries.length === 0 || path === "" || path === ".") return undefined
  const folded = FoldedName.of(path)
  const names = path.split("/")
  const foldedNames = folded.split("/")
  let [at, foldedAt] = ["", ""]
  for (const [i, name] of names.entries()) {
    at = i === 0 ? name : `${at}/${name}`
    foldedAt = i === 0 ? (foldedNames[0] ?? "") : `${foldedAt}/${foldedNames[i] ?? ""}`
    for (const entry of entries) if (entry.matches(at, foldedAt)) return entry.text
  }
  return undefined
}

/** Something below a directory that is not denied itself may be denied. */
export const mayHold = ({ entries }: DeniedPaths, directory: string): boolean => {
  if (directory === "" || directory === ".") return entries.length > 0
  const folded = `${FoldedName.of(directory)}/`
  return entries.some(
    ({ head, place }) =>
      `${head}/`.startsWith(folded) || (place === undefined && (head === "" || folded.startsWith(`${head}/`)))
  )
}

/** A path that a glob writes out leads through this place: a link there counts. */
export const leadsOn = ({ entries }: DeniedPaths, path: string): boolean => {
  const folded = `${FoldedName.of(path)}/`
  return entries.some(({ head }) => `${head}/`.startsWith(folded))
}

/** What is said of a denied path, to a model and to a person. */
export const sentence = (text: string, glob: string): string =>
  `${text} is denied by blacklist.paths (${glob}): no tool reads, lists, changes or mentions it.`

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Globs are few, and every call of a tool asks about them. */
const entries = new Map<string, Entry>()
const mostKnown = 1_000

const known = (text: string): Entry => {
  const found = entries.get(text)
  if (found !== undefined) return found
  if (entries.size >= mostKnown) entries.clear()
  const made = entryOf(text)
  entries.set(text, made)
  return made
}

const entryOf = (text: string): Entry => {
  const path = normal(text)
  // A path that the file system folds to another one has wildcards only where the glob has some.
  const folded = FoldedName.of(path).replace(/\[:(?:upper|lower):\]/g, "[:alpha:]")
  const isWild = /[*?[\]{}\\]/.test(path)
  if (problem(text) !== undefined) return { text, head: "", place: undefined, matches: () => true }
  const [plain, lenient] = [matcherOf(path), matcherOf(folded)]
  return {
    text,
    head: isWild ? folded.slice(0, Math.max(0, folded.lastIndexOf("/", folded.search(/[*?[\]{}\\]/)))) : folded,
    place: isWild ? undefined : path,
    matches: isWild ? (at, foldedAt) => plain(at) || lenient(foldedAt) : (_, foldedAt) => foldedAt === folded
  }
}

const matcherOf = (path: string): PathPattern.PathPattern =>
  Either.getOrElse(PathPattern.glob(rooted(path)), () => () => true)

/** With a slash, so that a glob over one name is no glob over names anywhere. */
const rooted = (path: string): string => `./${path}`

/** Without what means nothing. `secrets/**` is the directory with all that is in it. */
const normal = (text: string): string => {
  const names = text
    .trim()
    .split("/")
    .filter((name) => name !== "" && name !== ".")
  while (names.length > 1 && names.at(-1) === "**") names.pop()
  return names.join("/")
}

const climbed = (text: string): string => {
  const names: Array<string> = []
  for (const name of normal(text).split("/")) {
    if (name === "..") names.pop()
    else names.push(name)
  }
  return names.join("/")
}
