/**
 * Patterns over paths: globs, and the rules of `.gitignore` files. Both run on {@link LinePattern}, so no pattern that a
 * model or a repository brings along can take more than linear time.
 */
import * as Either from "effect/Either"
import * as LinePattern from "./LinePattern.js"

/** Whether a path matches. Paths use `/` and do not begin with one. */
export type PathPattern = (path: string) => boolean

/**
 * A glob: `*` and `?` stay within one name, `**` crosses directories, `[a-z]`, `[!a]` and `{a,b}` mean what they mean in a
 * shell. Without a `/` it is matched against the last name, else against the whole path. A left says what is wrong.
 */
export const glob = (pattern: string): Either.Either<PathPattern, string> => {
  const trimmed = pattern.replace(/^\.?\//, "")
  const whole = trimmed.includes("/") || trimmed === "**"
  return Either.mapBoth(matcherOf(trimmed, true), {
    onLeft: () => `The glob ${JSON.stringify(pattern)} cannot be understood.`,
    onRight: (matches) => (whole ? matches : (path) => matches(nameOf(path)))
  })
}

/** The rules of one ignore file, in order. */
export interface IgnoreRules {
  /**
   * The verdict of the last matching rule: true for ignored, false for kept, `undefined` when no rule matches. The path
   * is relative to the directory of the ignore file.
   */
  readonly verdict: (path: string, directory: boolean) => boolean | undefined
}

/** Reads a `.gitignore`: comments, `!`, directory-only and anchored rules, and globs. Invalid rules are skipped. */
export const ignoreRules = (text: string): IgnoreRules => {
  const rules = text.split("\n").flatMap((line) => ruleOf(line.replace(/\r$/, "").replace(/(?<!\\) +$/, "")))
  return {
    verdict: (path, directory) => {
      const name = nameOf(path)
      for (let i = rules.length - 1; i >= 0; i--) {
        const rule = rules[i]
        if (rule === undefined || (rule.directoryOnly && !directory)) continue
        if (rule.matches(rule.anchored ? path : name)) return rule.ignored
      }
      return undefined
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Rule {
  readonly ignored: boolean
  readonly directoryOnly: boolean
  /** Whether it is about the path; otherwise about a name anywhere below. */
  readonly anchored: boolean
  readonly matches: PathPattern
}

const ruleOf = (line: string): ReadonlyArray<Rule> => {
  if (line === "" || line.startsWith("#")) return []
  const ignored = !line.startsWith("!")
  const body = ignored ? line : line.slice(1)
  const directoryOnly = body.endsWith("/")
  const path = directoryOnly ? body.slice(0, -1) : body
  const anchored = path.includes("/")
  const wanted = path.replace(/^\//, "")
  const literal = /^[^*?[\\]*/.exec(wanted)?.[0] ?? ""
  // Git compares the literal beginning by itself. Stars right behind it are a whole name then: `a**/b` crosses directories.
  const parts = wanted.slice(literal.length).split("/")
  return Either.match(matcherOf(literal + parts.map(withinName).join("/"), false), {
    onLeft: () => [],
    onRight: (matches) => [{ ignored, directoryOnly, anchored, matches }]
  })
}

/** Stars cross directories only where they are a whole name. */
const withinName = (part: string): string =>
  /^\*{2,}$/.test(part) ? "**" : part.replace(/\\[^]|\*{2,}/g, (found) => (found.startsWith("*") ? "*" : found))

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** A path, or how a name ends, is nearly all that there is in ignore files: it is compared, which takes no automaton. */
const matcherOf = (pattern: string, braces: boolean): Either.Either<PathPattern, string> => {
  const [, star, plain] = /^(\*?)([^*?[\]{}\\]+)$/.exec(pattern) ?? []
  if (plain === undefined || (star !== "" && plain.includes("/"))) {
    return Either.map(LinePattern.make(`^${translate(pattern, braces)}$`), ({ test }) => test)
  }
  return Either.right(star === "" ? (path) => path === plain : (path) => path.endsWith(plain) && !path.includes("/"))
}

const token = /\*\*\/|\/\*\*$|\*+|\?|\[(?:[!^]?\]?[^\]]*)\]|\\[^]|[{},]|[^]/g

/** A glob as the source of a regular expression; `{a,b}` is understood only where braces are part of the language. */
const translate = (pattern: string, braces: boolean): string => {
  const closable = braces ? (pattern.match(/\}/g) ?? []).length : 0
  let source = ""
  let open = 0
  for (const part of pattern.match(token) ?? []) {
    if (part === "{" && open < closable) {
      open++
      source += "(?:"
    } else if (part === "}" && open > 0) {
      open--
      source += ")"
    } else if (part === "," && open > 0) source += "|"
    else source += translated(part)
  }
  return source + ")".repeat(open)
}

const translated = (part: string): string => {
  if (part === "**/") return "(?:.*/)?"
  if (part === "/**") return "/.*"
  if (part.startsWith("**")) return ".*"
  if (part === "*") return "[^/]*"
  if (part === "?") return "[^/]"
  if (part.length > 1 && part.startsWith("[")) {
    const members = part.slice(1, -1)
    const negated = /^[!^]/.test(members)
    // No class matches `/`, a negated one least of all.
    return `[${negated ? "^/" : ""}${members.slice(negated ? 1 : 0).replace(/\\(?=$)|[[\]]/g, "\\$&")}]`
  }
  return LinePattern.escape(part.length === 2 ? part.slice(1) : part)
}
