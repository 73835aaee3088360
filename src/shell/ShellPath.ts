/**
 * Paths as shell words write them: where they may stand in a word, and what they may become. Pure, and without regard
 * to quotes, which are removed before: a quoted star counts as a star.
 */
import type * as Path from "@effect/platform/Path"
import * as FoldedName from "../core/FoldedName.js"
import * as Glob from "../core/Glob.js"

/** A place that words must not lead to. Its names are folded, because some file systems ignore case. */
export interface Place {
  /** Absolute: as written, and with links followed. */
  readonly paths: ReadonlyArray<string>
  readonly basename: string
}

/** The shell may replace it by other names. */
export const isWild = (text: string): boolean => wild.test(text)

/**
 * The glob as a shell reads it, and rather more than less: `[^a]` and `[[:alpha:]]`, which only shells know, are any
 * character here.
 */
const globOf = (text: string): Glob.Glob => Glob.compile(text.includes("[") ? withoutClasses(text) : text)

/** It holds an expansion, so its value is not known before it runs. */
export const isUnknown = (text: string): boolean => /[$`\uffff]/.test(text)

/** Replaces a leading `~`, `~user`, `$HOME` or `${HOME}`; nothing where there is none. */
export const replaceHome = (text: string, home: string): string | undefined =>
  homeHead.test(text) ? text.replace(homeHead, () => home) : undefined

/** The directory that holds everything a glob may find; the path itself when it is no glob. */
export const fixedPart = (text: string): string => {
  const at = text.search(wild)
  return at < 0 ? text : text.slice(0, text.lastIndexOf("/", at) + 1)
}

/**
 * Wildcards, braces and expansions in a path could make it lead to the place. A part that is only an expansion could be
 * anything, and does not count.
 */
export const couldName = (path: Path.Path, base: string, text: string, place: Place): boolean =>
  alternatives(masked(FoldedName.of(text))).some((guess) => {
    if (guess.includes(unknown) && guess.split("/").some((part) => partMatches(part, place.basename))) return true
    const parts = path.resolve(FoldedName.of(base), guess).split("/")
    return place.paths.some((target) => {
      const names = target.split("/")
      return names.length <= parts.length && names.every((name, i) => partMatches(parts[i] ?? "", name))
    })
  })

/** A shell may find this name for one part of a path with wildcards. Names are compared as lenient file systems do. */
export const couldBe = (part: string, name: string): boolean => partMatches(FoldedName.of(part), FoldedName.of(name))

/** The path passes a hidden directory of the place's name, from any base directory. */
export const passes = (text: string, { basename }: Place): boolean =>
  basename.startsWith(".") && FoldedName.of(text).split("/").includes(basename)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const wild = /[*?[]/
const homeHead = /^(?:~[^/]*|\$HOME|\$\{HOME(?:[:?+=-][^}]*)?\})(?=\/|$)/

// Stands for unknown text.
const unknown = "\uffff"

/**
 * The text with every expansion unknown. A command substitution reaches as far as one can. The ends are looked for so
 * that this is linear: an expression would look through the rest of the text for each `$(` and `${`.
 */
const masked = (text: string): string => {
  const lastParenthesis = text.lastIndexOf(")")
  const lastBrace = text.lastIndexOf("}")
  const endOf = (at: number): number => {
    if (text[at] === "`") return text.indexOf("`", at + 1)
    switch (text[at + 1]) {
      case "(":
        return lastParenthesis > at ? lastParenthesis : -1
      case "{":
        return lastBrace > at ? text.indexOf("}", at) : -1
      default:
        parameter.lastIndex = at + 1
        return parameter.test(text) ? parameter.lastIndex - 1 : -1
    }
  }
  let out = ""
  let from = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] !== "$" && text[at] !== "`") continue
    const end = endOf(at)
    if (end < 0) continue
    out += text.slice(from, at) + unknown
    from = end + 1
    at = end
  }
  return from === 0 ? text : out + text.slice(from)
}

const parameter = /\w+|[@*#?$!-]/y

const partMatches = (pattern: string, name: string): boolean =>
  pattern === name ||
  (/[^\uffff]/.test(pattern) &&
    // A star finds no hidden file.
    !(/^[*?]/.test(pattern) && name.startsWith(".")) &&
    Glob.matches(globOf(pattern.replaceAll(unknown, "*")), name))

/** Brackets that mean something else in a pattern of ours are a question mark. */
const withoutClasses = (text: string): string => {
  let out = ""
  let from = 0
  for (let open = text.indexOf("["); open >= 0; open = text.indexOf("[", from)) {
    const close = classEnd(text, open)
    // Nor is any later bracket closed.
    if (close < 0) break
    const inner = text.slice(open + 1, close)
    out += text.slice(from, open) + (inner.startsWith("^") || inner.includes("[") ? "?" : `[${inner}]`)
    from = close + 1
  }
  return out + text.slice(from)
}

/** The bracket that closes the one that opens here; -1 when none does. */
const classEnd = (text: string, open: number): number => {
  let at = open + (/[!^]/.test(text[open + 1] ?? "") ? 2 : 1)
  if (text[at] === "]") at++
  for (; at < text.length; at++) {
    if (text[at] === "]") return at
    const kind = text[at] === "[" ? (text[at + 1] ?? "") : ""
    const end = /[:.=]/.test(kind) ? text.indexOf(`${kind}]`, at + 2) : -1
    if (end >= 0) at = end + 1
  }
  return -1
}

/**
 * The words that a shell makes of braces, nested ones too. A sequence counts as unknown. Beyond the limit of words, all
 * of them count as unknown.
 */
export const alternatives = (text: string): ReadonlyArray<string> => {
  if (!text.includes("{")) return [text]
  const words = text.split("{").length > maxBraces ? tooMany : unbraced(text)
  return words.length > maxAlternatives ? [`/${unknown}`, unknown] : words
}

const maxAlternatives = 256
const tooMany: ReadonlyArray<string> = new Array<string>(maxAlternatives + 1).fill(unknown)

/** Each brace is a look through the rest of the text, and nobody writes that many in a word. */
const maxBraces = 256

/** May return more than {@link maxAlternatives}, which means too many. */
const unbraced = (text: string): ReadonlyArray<string> => {
  for (let open = text.indexOf("{"); open >= 0; open = text.indexOf("{", open + 1)) {
    const close = closing(text, open)
    if (close < 0) continue
    if (text[open - 1] === "$") {
      open = close
      continue
    }
    const inner = text.slice(open + 1, close)
    const choices = choicesOf(inner)
    if (choices === undefined) continue
    const heads = choices.flatMap((choice) => unbraced(choice))
    const tails = unbraced(text.slice(close + 1))
    if (heads.length * tails.length > maxAlternatives) return tooMany
    const before = text.slice(0, open)
    return heads.flatMap((head) => tails.map((tail) => before + head + tail))
  }
  return [text]
}

/** Nothing where the braces are literal. */
const choicesOf = (inner: string): ReadonlyArray<string> | undefined => {
  const out: Array<string> = []
  let depth = 0
  let from = 0
  for (let at = 0; at < inner.length; at++) {
    if (inner[at] === "{") depth++
    else if (inner[at] === "}") depth--
    else if (inner[at] === "," && depth === 0) {
      out.push(inner.slice(from, at))
      from = at + 1
    }
  }
  if (out.length > 0) return [...out, inner.slice(from)]
  return /^[^{}]+\.\.[^{}]+$/.test(inner) ? [unknown] : undefined
}

const closing = (text: string, open: number): number => {
  let depth = 0
  for (let at = open; at < text.length; at++) {
    if (text[at] === "{") depth++
    else if (text[at] === "}" && --depth === 0) return at
  }
  return -1
}
