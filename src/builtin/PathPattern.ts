/**
 * Patterns over paths: globs, and the rules of `.gitignore` files. Both run on {@link LinePattern}, so no pattern that a
 * model or a repository brings along can take more than linear time.
 */
import * as Either from "effect/Either"
import * as LinePattern from "./LinePattern.js"

/** Whether a path matches; paths use `/` and have none in front. */
export type PathPattern = (path: string) => boolean

/**
 * A glob: `*` and `?` stay within one name, `**` crosses directories, `[a-z]`, `[!a]` and `{a,b}` mean what they mean in a
 * shell. Without a `/` it is matched against the last name, else against the whole path. A left says what is wrong.
 */
export const glob = (pattern: string): Either.Either<PathPattern, string> => {
  const trimmed = pattern.replace(/^\.?\//, "")
  const whole = trimmed.includes("/") || trimmed === "**"
  return Either.mapBoth(LinePattern.make(`^${translate(trimmed, true)}$`), {
    onLeft: () => `The glob ${JSON.stringify(pattern)} cannot be understood.`,
    onRight: (matcher) => (path) => matcher.test(whole ? path : path.slice(path.lastIndexOf("/") + 1))
  })
}

/** The rules of one ignore file, in order. */
export interface IgnoreRules {
  /**
   * What the last rule that matches says: true for ignored, false for kept, `undefined` when no rule matches. The path is
   * relative to the directory of the ignore file.
   */
  readonly verdict: (path: string, directory: boolean) => boolean | undefined
}

/** Reads a `.gitignore`: comments, `!`, directory-only and anchored rules, and globs. Rules that make no sense are skipped. */
export const ignoreRules = (text: string): IgnoreRules => {
  const rules = text.split("\n").flatMap((line) => ruleOf(line.replace(/\r$/, "").replace(/(?<!\\) +$/, "")))
  return {
    verdict: (path, directory) => {
      for (let i = rules.length - 1; i >= 0; i--) {
        const rule = rules[i]
        if (rule !== undefined && (directory || !rule.directoryOnly) && rule.matches.test(path)) return rule.ignored
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
  readonly matches: LinePattern.LinePattern
}

const ruleOf = (line: string): ReadonlyArray<Rule> => {
  if (line === "" || line.startsWith("#")) return []
  const ignored = !line.startsWith("!")
  const body = ignored ? line : line.slice(1)
  const directoryOnly = body.endsWith("/")
  const path = directoryOnly ? body.slice(0, -1) : body
  const anchored = path.includes("/")
  const source = `^${anchored ? "" : "(?:.*/)?"}${translate(path.replace(/^\//, ""), false)}$`
  return Either.match(LinePattern.make(source), {
    onLeft: () => [],
    onRight: (matches) => [{ ignored, directoryOnly, matches }]
  })
}

const token = /\*\*\/|\/\*\*$|\*+|\?|\[(?:[!^]?\]?[^\]]*)\]|\\[^]|[{},]|[^]/g

const translate = (pattern: string, braces: boolean): string => {
  let open = 0
  const closable = (pattern.match(/\}/g) ?? []).length
  return (pattern.match(token) ?? []).reduce((source, part) => source + translated(part), "").concat(")".repeat(open))

  function translated(part: string): string {
    if (part === "**/") return "(?:.*/)?"
    if (part === "/**") return "/.*"
    if (part.startsWith("**")) return ".*"
    if (part === "*") return "[^/]*"
    if (part === "?") return "[^/]"
    if (part.length > 1 && part.startsWith("[")) {
      return `[${part
        .slice(1, -1)
        .replace(/^[!^]/, "^")
        .replace(/\\(?=$)|[[\]]/g, "\\$&")}]`
    }
    if (part.length === 2) return LinePattern.escape(part.slice(1))
    if (braces && part === "{" && open < closable) {
      open++
      return "(?:"
    }
    if (open > 0 && part === "}") {
      open--
      return ")"
    }
    if (open > 0 && part === ",") return "|"
    return LinePattern.escape(part)
  }
}
