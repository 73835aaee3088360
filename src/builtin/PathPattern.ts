/**
 * Patterns over paths: globs, and the rules of `.gitignore` files. Both run on {@link LinePattern}, so no pattern that a
 * model or a repository brings along can take more than linear time.
 */
import * as Either from "effect/Either"
import * as CharacterSet from "./CharacterSet.js"
import * as LinePattern from "./LinePattern.js"

/** Whether a path matches. Paths use `/` and do not begin with one. */
export type PathPattern = (path: string) => boolean

/**
 * A glob: `*` and `?` stay within one name, `**` crosses directories, `[a-z]`, `[!a]` and `{a,b}` mean what they mean in a
 * shell. Without a `/` it is matched against the last name, else against the whole path. A left says what is wrong.
 */
export const glob = (pattern: string): Either.Either<PathPattern, string> => {
  const wanted = pattern.replace(/^\.?\//, "")
  // `./*.md` names a place, as in a shell.
  const whole = pattern.includes("/") || wanted === "**"
  return Either.mapBoth(matcherOf(wanted, true), {
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
  const rules = text.split("\n").flatMap((line) => ruleOf(trimmed(line)))
  return {
    verdict: (whole, directory) => {
      const path = bytesOf(whole)
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
  const body = bytesOf(ignored ? line : line.slice(1))
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

/** Without the end of the line, and without the blanks before it but for one that is escaped. */
const trimmed = (line: string): string => {
  const text = line.replace(/\r$/, "")
  let end = text.length
  while (text[end - 1] === " ") end--
  let signs = end
  while (text[signs - 1] === "\\") signs--
  return text.slice(0, (end - signs) % 2 === 1 ? end + 1 : end)
}

/** Git compares bytes: `?` and a class are one byte of a letter that has several, and so no letter. One character is a byte. */
const bytesOf = (text: string): string =>
  /[^\0-\x7f]/.test(text)
    ? Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("")
    : text

/** Stars cross directories only where they are a whole name. */
const withinName = (part: string): string =>
  /^\*{2,}$/.test(part) ? "**" : part.replace(/\\[^]|\*{2,}/g, (found) => (found.startsWith("*") ? "*" : found))

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** A path, or how a name ends, is nearly all that there is in ignore files: it is compared, which takes no automaton. */
const matcherOf = (pattern: string, isShell: boolean): Either.Either<PathPattern, string> => {
  const [, star, plain] = /^(\*?)([^*?[\]{}\\]+)$/.exec(pattern) ?? []
  if (plain === undefined || (star !== "" && plain.includes("/"))) {
    const source = pattern.length > longest ? undefined : translate(pattern, isShell)
    return source === undefined
      ? Either.left("It is too long, or a class has no end.")
      : Either.map(LinePattern.make(`^${source}$`, { newlines: true }), ({ test }) => test)
  }
  return Either.right(star === "" ? (path) => path === plain : (path) => path.endsWith(plain) && !path.includes("/"))
}

/** Characters. Each `[` may be looked for its end to the end of the pattern. */
const longest = 2_000

const token = /\*\*\/|\/\*\*$|\*+|\?|\\[^]|[{},]|[^]/y

/**
 * A glob as the source of a regular expression. Of a shell there are `{a,b}`, and a `[` without an end means itself; of
 * git there are none, and nothing matches where a `[` has no end.
 */
const translate = (pattern: string, isShell: boolean): string | undefined => {
  const closable = isShell ? (pattern.match(/\}/g) ?? []).length : 0
  let source = ""
  let open = 0
  for (let at = 0; at < pattern.length;) {
    const found = pattern[at] === "[" ? classAt(pattern, at) : undefined
    if (found !== undefined) {
      source += found.source
      at = found.end
      continue
    }
    if (pattern[at] === "[" && !isShell) return undefined
    token.lastIndex = at
    const part = token.exec(pattern)?.[0] ?? ""
    at += part.length
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
  return LinePattern.escape(part.length === 2 ? part.slice(1) : part)
}

/** The class that begins there, as a regular expression has it, and where it ends; undefined when it has no end. */
const classAt = (pattern: string, from: number): { readonly source: string; readonly end: number } | undefined => {
  const negated = /[!^]/.test(pattern.charAt(from + 1))
  const begin = from + (negated ? 2 : 1)
  const ranges: Array<CharacterSet.Range> = []
  let at = begin
  /** What a range can begin with. */
  let before: number | undefined
  while (at === begin || pattern[at] !== "]") {
    const name = /^\[:([^\]]*):\]/.exec(pattern.slice(at, at + 16))
    if (name !== null) {
      const members = CharacterSet.posix.get(name[1] ?? "")
      if (members === undefined) return undefined
      ranges.push(...CharacterSet.rangesOf(members))
      before = undefined
      at += name[0].length
      continue
    }
    const first = pattern[at] === "-" && /^[^\]]/.test(pattern.slice(at + 1)) ? before : undefined
    if (first !== undefined) at++
    if (pattern[at] === "\\") at++
    const code = pattern.codePointAt(at)
    if (code === undefined) return undefined
    ranges.push([first ?? code, code])
    before = first === undefined ? code : undefined
    at += String.fromCodePoint(code).length
  }
  return { source: `[${negated ? "^\\x2f" : ""}${ranges.flatMap(withoutSlash).map(written).join("")}]`, end: at + 1 }
}

/** No class matches `/`. */
const slash = 0x2f
const withoutSlash = ([first, last]: CharacterSet.Range): ReadonlyArray<CharacterSet.Range> =>
  (first <= slash && slash <= last
    ? ([
        [first, slash - 1],
        [slash + 1, last]
      ] as const)
    : [[first, last] as const]
  ).filter(([first, last]) => first <= last)

const written = ([first, last]: CharacterSet.Range): string => {
  const code = (point: number) =>
    point < 0x100 ? `\\x${point.toString(16).padStart(2, "0")}` : `\\u{${point.toString(16)}}`
  return first === last ? code(first) : `${code(first)}-${code(last)}`
}
