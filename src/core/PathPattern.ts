/**
 * Patterns over paths: globs, and the rules of `.gitignore` files.
 *
 * A pattern is a row of names, each of them a `core/Glob`, and `**` between them. A name without `**` before it stands at one
 * place, and a row behind a `**` is searched once, so no pattern of a model or a repository takes more than linear time.
 */
import * as Either from "effect/Either"
import * as Glob from "./Glob.js"

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
  if (wanted.length > longest) {
    return Either.left(`The glob is longer than ${longest} characters. Use a shorter one.`)
  }
  const every = alternatives(wanted)
  if (every === undefined) {
    return Either.left(`The glob ${JSON.stringify(pattern)} has more than ${mostAlternatives} alternatives. Use fewer.`)
  }
  const matchers = every.map((one) => matcherOf(tokens(one, true) ?? []))
  const matches = (path: string) => matchers.some((matcher) => matcher(path))
  return Either.right(whole ? matches : (path) => matches(nameOf(path)))
}

/** The rules of one ignore file, in order. */
export interface IgnoreRules {
  /**
   * The verdict of the last matching rule: true for ignored, false for kept, `undefined` when no rule matches. The path
   * is relative to the directory of the ignore file.
   */
  readonly verdict: (path: string, directory: boolean) => boolean | undefined
  /** What a verdict takes: 1 for a rule that is only compared, 16 for another. */
  readonly cost: number
}

/** What a rule with wildcards takes, beside one that is only compared. */
const wildCost = 16

/** Reads a `.gitignore`: comments, `!`, directory-only and anchored rules, and globs. Invalid rules are skipped. */
export const ignoreRules = (text: string): IgnoreRules => {
  const rules = text.split("\n").flatMap((line) => ruleOf(trimmed(line)))
  return {
    cost: rules.reduce((sum, { cost }) => sum + cost, 0),
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
  readonly cost: number
}

const ruleOf = (line: string): ReadonlyArray<Rule> => {
  if (line === "" || line.startsWith("#")) return []
  const ignored = !line.startsWith("!")
  const body = bytesOf(ignored ? line : line.slice(1))
  const directoryOnly = body.endsWith("/")
  const path = directoryOnly ? body.slice(0, -1) : body
  const anchored = path.includes("/")
  const wanted = path.replace(/^\//, "")
  const compared = quick(wanted)
  const matches = compared ?? slow(wanted)
  const cost = compared === undefined ? wildCost : 1
  return matches === undefined ? [] : [{ ignored, directoryOnly, anchored, matches, cost }]
}

const slow = (wanted: string): PathPattern | undefined => {
  const found = wanted.length > longest ? undefined : tokens(wanted, false)
  return found === undefined ? undefined : matcherOf(found)
}

/** A path, or how a name ends, is nearly all that there is in ignore files: it is compared. */
const quick = (wanted: string): PathPattern | undefined => {
  const [, star, plain] = /^(\*?)([^*?[\\]+)$/.exec(wanted) ?? []
  if (plain === undefined || (star !== "" && plain.includes("/"))) return undefined
  return star === "" ? (path) => path === plain : (path) => path.endsWith(plain) && !path.includes("/")
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

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** Characters of a pattern. */
const longest = 1_000

// -----------------------------------------------------------------------------------------------------------------
// internal: braces
// -----------------------------------------------------------------------------------------------------------------

const mostAlternatives = 64

/** What `{a,b}` comes to; nothing when there are too many. A brace that is not closed means itself. */
const alternatives = (pattern: string): ReadonlyArray<string> | undefined => {
  const done: Array<string> = []
  const open = [pattern]
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const brace = braceIn(one)
    if (brace === undefined) done.push(one)
    else for (const part of brace.parts) open.push(one.slice(0, brace.from) + part + one.slice(brace.to))
    if (done.length + open.length > mostAlternatives) return undefined
  }
  return done
}

/** The first brace that is closed, and its parts. As in a shell, a class does not protect one. */
const braceIn = (pattern: string) => {
  const open: Array<{ readonly from: number; readonly commas: Array<number> }> = []
  let first: { readonly from: number; readonly to: number; readonly parts: ReadonlyArray<string> } | undefined
  for (const { 0: sign, index: at } of pattern.matchAll(/\\[^]|[{,}]/g)) {
    if (sign === "{") open.push({ from: at, commas: [] })
    if (sign === ",") open.at(-1)?.commas.push(at)
    const closed = sign === "}" ? open.pop() : undefined
    if (closed === undefined || (first !== undefined && first.from < closed.from)) continue
    const edges = [closed.from, ...closed.commas, at]
    const parts = edges.slice(1).map((edge, i) => pattern.slice((edges[i] ?? 0) + 1, edge))
    first = { from: closed.from, to: at + 1, parts }
  }
  return first
}

// -----------------------------------------------------------------------------------------------------------------
// internal: names
// -----------------------------------------------------------------------------------------------------------------

/** `star`: of a name; `any`: any text; `deep`: any directories, none too, with the slash behind them. */
type Token = Glob.Step | "star" | "slash" | "any" | "deep"

/** The parts of a pattern; nothing where git takes a class without an end, which matches nothing. */
const tokens = (pattern: string, isShell: boolean): ReadonlyArray<Token> | undefined => {
  const found: Array<Token> = []
  // Git compares the literal beginning by itself. Stars right behind it are a whole name then: `a**/b` crosses directories.
  const literal = /^[^*?[\\]*/.exec(pattern)?.[0].length ?? 0
  // A class without an end means itself, and so do all behind it: nothing is looked for twice.
  let isClosed = true
  for (let at = 0; at < pattern.length;) {
    const sign = pattern[at]
    const stars = /^\*+/.exec(pattern.slice(at))?.[0].length ?? 0
    if (stars > 0) {
      const behind = pattern[at + stars]
      const isName = (at === literal || pattern[at - 1] === "/") && (behind === undefined || behind === "/")
      const isAny = stars > 1 && (isShell || isName)
      const isDeep = isAny && behind === "/" && (stars === 2 || !isShell)
      found.push(isDeep ? "deep" : isAny ? "any" : "star")
      at += stars + (isDeep ? 1 : 0)
      continue
    }
    const set = sign === "[" && isClosed ? classAt(pattern, at) : undefined
    if (sign === "[" && set === undefined) {
      if (!isShell) return undefined
      isClosed = false
    }
    if (set !== undefined) found.push(set.step)
    else if (sign === "/") found.push("slash")
    else if (sign === "?") found.push({ _tag: "AnyOne" })
    else {
      if (sign === "\\" && at + 1 < pattern.length) at++
      const code = pattern.codePointAt(at) ?? 0
      found.push({ _tag: "One", code })
      at += code > 0xffff ? 1 : 0
    }
    at = set?.end ?? at + 1
  }
  return found
}

/** A row of names behind each `**`. */
type Rows = ReadonlyArray<ReadonlyArray<Glob.Glob>>

const matcherOf = (found: ReadonlyArray<Token>): PathPattern => {
  const every = rowsOf(found)
  return (path) => {
    const names = path.split("/")
    return every.some((rows) => fits(rows, names))
  }
}

/** `**` in the middle of a name is a part of the name, or its end, directories, and the beginning of another. */
const rowsOf = (found: ReadonlyArray<Token>): ReadonlyArray<Rows> => {
  const drafts: Array<Draft> = [[[[]]]]
  for (const [at, token] of found.entries()) {
    const isBegin = at === 0 || found[at - 1] === "slash" || found[at - 1] === "deep"
    for (const draft of [...drafts]) {
      const row = draft.at(-1)
      const name = row?.at(-1)
      if (token === "slash") row?.push([])
      else if (token !== "any" && token !== "deep") name?.push(token === "star" ? undefined : token)
      else if (isBegin) {
        row?.pop()
        draft.push([token === "any" ? [undefined] : []])
      } else {
        if (drafts.length < mostDrafts) {
          const crossing = draft.map((names) => names.map((parts) => [...parts]))
          crossing.at(-1)?.at(-1)?.push(undefined)
          drafts.push([...crossing, [token === "any" ? [undefined] : []]])
        }
        if (token === "any") name?.push(undefined)
      }
    }
  }
  return drafts.map((rows) => rows.map((row) => row.map((parts) => Glob.of("", parts))))
}

type Draft = Array<Array<Array<Glob.Part>>>

const mostDrafts = 16

/** The first row stands at the beginning, the last at the end, and each other one as soon as it can. */
const fits = (rows: Rows, names: ReadonlyArray<string>): boolean => {
  const stands = (row: ReadonlyArray<Glob.Glob>, at: number) =>
    row.every((name, i) => Glob.matches(name, names[at + i] ?? ""))
  const [first = [], ...rest] = rows
  const last = rest.pop()
  if (last === undefined) return names.length === first.length && stands(first, 0)
  const end = names.length - last.length
  if (first.length > end || !stands(first, 0)) return false
  let at = first.length
  for (const row of rest) {
    while (at + row.length <= end && !stands(row, at)) at++
    at += row.length
    if (at > end) return false
  }
  return at <= end && stands(last, end)
}

// -----------------------------------------------------------------------------------------------------------------
// internal: classes
// -----------------------------------------------------------------------------------------------------------------

type Range = readonly [first: number, last: number]

/** The class that begins there and where it ends; undefined when it has no end. */
const classAt = (pattern: string, from: number): { readonly step: Glob.Step; readonly end: number } | undefined => {
  const negated = /[!^]/.test(pattern.charAt(from + 1))
  const begin = from + (negated ? 2 : 1)
  const ranges: Array<Range> = []
  let at = begin
  /** What a range can begin with. */
  let before: number | undefined
  while (at === begin || pattern[at] !== "]") {
    const name = /^\[:([^\]]*):\]/.exec(pattern.slice(at, at + 16))
    if (name !== null) {
      const members = posix.get(name[1] ?? "")
      if (members === undefined) return undefined
      ranges.push(...members)
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
  return { step: { _tag: "Class", negated, ranges }, end: at + 1 }
}

const ascii = (...members: ReadonlyArray<string>): ReadonlyArray<Range> =>
  members.map((member) => [member.charCodeAt(0), member.charCodeAt(member.length - 1)])

const posix: ReadonlyMap<string, ReadonlyArray<Range>> = new Map([
  ["alnum", ascii("09", "AZ", "az")],
  ["alpha", ascii("AZ", "az")],
  ["blank", ascii(" ", "\t")],
  ["cntrl", ascii("\0\x1f", "\x7f")],
  ["digit", ascii("09")],
  ["graph", ascii("!~")],
  ["lower", ascii("az")],
  ["print", ascii(" ~")],
  ["punct", ascii("!/", ":@", "[`", "{~")],
  ["space", ascii("\t\r", " ")],
  ["upper", ascii("AZ")],
  ["xdigit", ascii("09", "AF", "af")]
])
