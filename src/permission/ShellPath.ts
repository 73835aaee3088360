/**
 * Paths as shell words write them: where they may stand in a word, and what they may become. Pure, and without regard to
 * quotes, which are gone by then: a quoted star counts as a star.
 */
import type * as Path from "@effect/platform/Path"
import * as Glob from "./Glob.js"

/** A place to keep words away from. Lower case, because some file systems ignore it. */
export interface Place {
  /** Absolute: as written, and with links followed. */
  readonly paths: ReadonlyArray<string>
  readonly basename: string
}

/** The shell may find other names for it. */
export const isWild = (text: string): boolean => wild.test(text)

/** Its value is not known before it is expanded. */
export const isUnknown = (text: string): boolean => /[$`]/.test(text)

/** Replaces a leading `~`, `~user`, `$HOME` or `${HOME}`; nothing where there is none. */
export const replaceHome = (text: string, home: string): string | undefined =>
  homeHead.test(text) ? text.replace(homeHead, () => home) : undefined

/** The directory that holds whatever a glob may find; the path itself when it is no glob. */
export const fixedPart = (text: string): string => {
  const at = text.search(wild)
  return at < 0 ? text : text.slice(0, text.lastIndexOf("/", at) + 1)
}

/** What a program may take for a path in a word: the word, the value of an option or assignment, the file behind `@`. */
export const pathsIn = (word: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  if (!word.startsWith("-")) out.push(word)
  const value = /^-[A-Za-z](.+)$/s.exec(word)?.[1]
  if (value !== undefined && /[./~]/.test(value)) out.push(value)
  if (/[=@,{}]/.test(word)) out.push(...word.split(/[=@,{}]/).filter((part) => /^(?:\/|~|\.\.|\$)/.test(part)))
  return [...new Set(out)]
}

/** The same more generously: every piece that could be a path to somebody. */
export const piecesIn = (word: string): ReadonlyArray<string> =>
  [...new Set([word, ...word.split(/[=:,@{}]/), word.replace(/^-[A-Za-z]/, "")])].filter(
    (piece) => piece !== "" && piece !== "-"
  )

/**
 * Wildcards, braces and expansions in a path could make it lead to the place. A part of it that is nothing but an
 * expansion could be anything, and is not held against it.
 */
export const couldName = (path: Path.Path, base: string, text: string, place: Place): boolean =>
  alternatives(text.toLowerCase().replace(expansions, unknown)).some((guess) => {
    if (guess.includes(unknown) && guess.split("/").some((part) => partMatches(part, place.basename))) return true
    const parts = path.resolve(base.toLowerCase(), guess).split("/")
    return place.paths.some((target) => {
      const names = target.split("/")
      return names.length <= parts.length && names.every((name, i) => partMatches(parts[i] ?? "", name))
    })
  })

/** Written out, or by wildcards, braces or an expansion, a part of the path may be this name; one of nothing else may not. */
export const couldHavePart = (text: string, name: string): boolean =>
  /[*?[$`{]/.test(text) &&
  !/:\/\//.test(text) &&
  alternatives(text.toLowerCase().replace(expansions, unknown)).some((guess) =>
    guess.split("/").some((part) => partMatches(part, name))
  )

/** The place's name stands in a text that only a shell or another program could read with certainty. */
export const mentions = (text: string, { basename }: Place): boolean => {
  const bare = text
    .replace(/\\\n/g, "")
    .replace(/["'\\]/g, "")
    .toLowerCase()
  for (let at = bare.indexOf(basename); at >= 0; at = bare.indexOf(basename, at + 1)) {
    const around = (bare[at - 1] ?? " ") + (bare[at + basename.length] ?? " ")
    if (!/[a-z0-9_]/.test(around)) return true
  }
  return false
}

/** The path goes through a hidden directory of the place's name, whichever directory it starts from. */
export const passes = (text: string, { basename }: Place): boolean =>
  basename.startsWith(".") && text.toLowerCase().split("/").includes(basename)

/** The text spells characters as codes, so that what it names cannot be seen. */
export const spellsInCodes = (text: string): boolean => /\$'(?:[^'\\]|\\[^'])*\\[^abefnrtv'"\\?]/.test(text)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const wild = /[*?[]/
const expansions = /\$\(.*\)|`[^`]*`|\$\{[^}]*\}|\$\w+|\$[@*#?$!-]/gs
const homeHead = /^(?:~[^/]*|\$HOME|\$\{HOME\})(?=\/|$)/

// Stands for text that is not known.
const unknown = "\uffff"

const partMatches = (pattern: string, name: string): boolean =>
  pattern === name ||
  (/[^\uffff]/.test(pattern) &&
    // A star finds no hidden file.
    !(/^[*?]/.test(pattern) && name.startsWith(".")) &&
    Glob.test(pattern.replaceAll(unknown, "*"), name))

/** The words a shell makes of braces. A sequence, braces in braces and very many words count as unknown. */
const alternatives = (text: string): ReadonlyArray<string> => {
  let out: ReadonlyArray<string> = [""]
  for (const part of text.split(/(\{[^{}]*\})/)) {
    const heads = out
    const tails = inBraces(part)
    out =
      heads.length * tails.length > 64
        ? heads.map((head) => head + unknown)
        : heads.flatMap((head) => tails.map((tail) => head + tail))
  }
  return out
}

const inBraces = (part: string): ReadonlyArray<string> => {
  if (part === "{}") return [part]
  const inner = /^\{(.*)\}$/s.exec(part)?.[1]
  if (inner === undefined) return [part.replace(/[{}]/g, unknown)]
  if (inner.includes(",")) return inner.split(",")
  return [inner.includes("..") ? unknown : part]
}
