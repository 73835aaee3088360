/**
 * The syntax of {@link LinePattern}: what ripgrep's default engine understands, in the same meaning. What other engines
 * have beyond that is refused by a sentence, also where it would be taken for something else without a word: `\h`, `[:alpha:]`.
 *
 * A brace that begins no count is itself, as in JavaScript; ripgrep refuses it.
 */
import * as Either from "effect/Either"
import * as CharacterSet from "./CharacterSet.js"

/** `start` and `end` are those of the line; the others look at the characters on both sides. */
export type Assertion =
  "start" | "end" | "boundary" | "inside" | "wordStart" | "wordEnd" | "noWordBefore" | "noWordAfter"

export type Node =
  /** Atoms of one key have the same characters. */
  | { readonly _tag: "Atom"; readonly set: CharacterSet.CharacterSet; readonly key: string }
  | { readonly _tag: "Assert"; readonly assertion: Assertion }
  | { readonly _tag: "Sequence"; readonly nodes: ReadonlyArray<Node> }
  | { readonly _tag: "Either"; readonly nodes: ReadonlyArray<Node> }
  | { readonly _tag: "Repeat"; readonly node: Node; readonly min: number; readonly max: number }

export interface Options {
  readonly ignoreCase: boolean
  /** Whether the texts may hold newlines, as paths may and lines may not. */
  readonly newlines: boolean
}

export interface Parsed {
  readonly node: Node
  /** Whether it asks for the carriage return, which ends a line together with the newline else. */
  readonly namesReturn: boolean
}

/** A left is a sentence that says what to write instead. */
export const parse = (source: string, options: Options): Either.Either<Parsed, string> => {
  let at = 0
  let namesReturn = false
  let ignoreCase = options.ignoreCase
  let refusal: string | undefined

  /** The first one counts; nothing is left to parse after it. */
  const refuse = (sentence: string): Node => {
    refusal ??= sentence
    at = source.length
    return nothing
  }
  const invalid = (why: string): Node => refuse(`The pattern is not a regular expression: ${why}`)
  const unknown = (what: string, advice: string): Node =>
    refuse(`The pattern has ${what}, which this search does not know. ${advice}`)

  /** What `expression`, a sticky one, finds here; it is read then. */
  const take = (expression: RegExp): RegExpExecArray | undefined => {
    expression.lastIndex = at
    const found = expression.exec(source)
    if (found === null) return undefined
    at += found[0].length
    return found
  }

  const alternatives = (): Node => {
    const nodes = [sequence()]
    while (source[at] === "|") {
      at++
      nodes.push(sequence())
    }
    return nodes.length === 1 && nodes[0] !== undefined ? nodes[0] : { _tag: "Either", nodes }
  }

  const sequence = (): Node => {
    const nodes: Array<Node> = []
    while (at < source.length && source[at] !== "|" && source[at] !== ")") {
      if (flags()) continue
      nodes.push(quantified(term()))
    }
    return { _tag: "Sequence", nodes }
  }

  const quantified = (node: Node): Node => {
    let whole = node
    for (let found = take(quantifier); found !== undefined; found = take(quantifier)) {
      const [text, sign, least = "", comma, most = ""] = found
      const min = sign === "+" ? 1 : sign === undefined ? Number(least) : 0
      const upTo = comma === undefined ? min : most === "" ? Infinity : Number(most)
      const max = sign === undefined ? upTo : sign === "?" ? 1 : Infinity
      if (max < min) return invalid(`${text} counts from more to less.`)
      whole = { _tag: "Repeat", node: whole, min, max }
    }
    return whole
  }

  /** Sets what letters as in `i-s` say. */
  const set = (letters: string): void => {
    const [on = "", off = ""] = letters.split("-")
    if (on.includes("x")) unknown("the flag x", "Write it without blanks and comments.")
    if (off.includes("u")) unknown("the flag -u", "Leave it out; [0-9A-Za-z_] is \\w of ASCII.")
    // Of the others, a line that is searched by itself, and whether it matches at all, shows nothing.
    if (on.includes("i")) ignoreCase = true
    if (off.includes("i")) ignoreCase = false
  }

  /** Flags for the rest of the group. */
  const flags = (): boolean => {
    const found = take(/\(\?([imsRUux]+(?:-[imsRUux]+)?|-[imsRUux]+)\)/y)
    if (found === undefined) return false
    set(found[1] ?? "")
    if (quantifierHere()) invalid("flags cannot be repeated.")
    return true
  }

  const group = (): Node => {
    const outer = ignoreCase
    const begin = at
    if (take(/\((?:\?<?[=!])/y) !== undefined) {
      return unknown("lookahead and lookbehind", "Search without it, and look through what is found.")
    }
    if (take(/\(\?P[=>]/y) !== undefined) return backreference()
    const [text, letters = ""] =
      take(/\((?:\?(?:P?<[\p{L}_][^<>()]*>|((?:[imsRUux]+)?(?:-[imsRUux]+)?):)|(?!\?))/uy) ?? []
    if (text === undefined) {
      return unknown(
        `a group that begins with ${source.slice(at, at + 3)}`,
        "Groups are (…), (?:…), (?<name>…) and (?i:…)."
      )
    }
    set(letters)
    const node = alternatives()
    if (refusal === undefined && source[at] !== ")") return invalid(`the ( at character ${begin + 1} has no ).`)
    at++
    ignoreCase = outer
    return node
  }

  const backreference = (): Node => unknown("backreferences", "Search without them, and look through what is found.")

  const term = (): Node => {
    const begin = at
    const char = source[at]
    if (char === "(") return group()
    if (char === "[") return atom(charClass(), begin)
    if (char === "\\") return escaped()
    if (quantifierHere())
      return invalid(
        `before the ${char} at character ${at + 1} there is nothing to repeat. Write \\${char} for the sign.`
      )
    const code = codeHere()
    if (char === "^") return { _tag: "Assert", assertion: "start" }
    if (char === "$") return { _tag: "Assert", assertion: "end" }
    if (char === ".") return atom(CharacterSet.all, begin)
    return literal(code, begin)
  }

  /** The character here, which is read then. */
  const codeHere = (): number => {
    const code = source.codePointAt(at) ?? 0
    at += code > 0xffff ? 2 : 1
    return code
  }

  const quantifierHere = (): boolean => {
    quantifier.lastIndex = at
    return quantifier.test(source)
  }

  const atom = (set: CharacterSet.CharacterSet, begin: number): Node => ({
    _tag: "Atom",
    set,
    key: `${ignoreCase}${source.slice(begin, at)}`
  })

  const literal = (code: number, begin: number): Node => {
    if (code === newline && !options.newlines) return refuse(noNewline)
    namesReturn ||= code === carriageReturn
    return atom(CharacterSet.range(code, code, ignoreCase), begin)
  }

  const escaped = (): Node => {
    const begin = at
    const special = take(/\\(?:b\{[a-z-]+\}|[bB<>Az])/y)
    if (special !== undefined) {
      const assertion = assertions[special[0]]
      return assertion === undefined
        ? unknown(special[0], "Boundaries are \\b, \\B, \\b{start} and \\b{end}.")
        : { _tag: "Assert", assertion }
    }
    const found = characterEscape()
    return typeof found === "number" ? literal(found, begin) : found === undefined ? nothing : atom(found, begin)
  }

  /** An escape that means one character, given as its code point, or several. */
  const characterEscape = (): number | CharacterSet.CharacterSet | undefined => {
    const [whole, one, four, eight, any] =
      take(/\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|[xuU]\{([\da-fA-F]{1,8})\})/y) ?? []
    if (whole !== undefined) return coded(parseInt(one ?? four ?? eight ?? any ?? "", 16), whole)
    const named = take(/\\([pP])(?:\{(\^?)([^{}]*)\}|([A-Za-z]))/y)
    if (named !== undefined) return property(named)
    const [, letter] = take(/\\([^])/y) ?? []
    if (letter === undefined) return void invalid("it ends with a single \\. Write \\\\ for the sign.")
    const set = CharacterSet.perl(letter)
    if (set !== undefined) return set
    const control = "tnrfva".indexOf(letter)
    if (control >= 0) return "\t\n\r\f\v\x07".charCodeAt(control)
    if (/[1-9kg]/.test(letter)) return void backreference()
    if (/[A-Za-z0-9]/.test(letter)) {
      return void unknown(`\\${letter}`, advice[letter] ?? "Without the \\ it is the character itself.")
    }
    at--
    return codeHere()
  }

  /** Two halves in a row are one character. */
  const coded = (code: number, whole: string): number | undefined => {
    const low = code >= 0xd800 && code <= 0xdbff ? take(/\\u([dD][c-fC-F][\da-fA-F]{2})/y)?.[1] : undefined
    const point = low === undefined ? code : (code - 0xd800) * 0x400 + parseInt(low, 16) - 0xdc00 + 0x10000
    return point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) ? void invalid(`${whole} is no character.`) : point
  }

  const property = ([whole, letter, not, long, short]: RegExpExecArray): CharacterSet.CharacterSet | undefined => {
    const found = CharacterSet.property(long ?? short ?? "", ignoreCase)
    if (found === undefined) {
      return void unknown(
        whole,
        "Categories are written as \\p{Lu}, scripts as \\p{Greek}, properties as \\p{Alphabetic}."
      )
    }
    return (letter === "P") !== (not === "^") ? CharacterSet.not(found) : found
  }

  const charClass = (): CharacterSet.CharacterSet => {
    const begin = at
    const [bare, name = ""] = take(/\[:\^?([a-z]+):\]/y) ?? []
    if (bare !== undefined && posix.has(name)) unknown(`${bare} outside of brackets`, `Write [${bare}].`)
    else at = begin
    const negated = take(/\[(\^?)/y)?.[1] === "^"
    let items: Array<CharacterSet.CharacterSet> = []
    let before: CharacterSet.CharacterSet | undefined
    let sign = ""
    let isEmpty = !options.newlines
    const one = (code: number) => {
      isEmpty &&= code === newline
      namesReturn ||= code === carriageReturn && !negated
      items.push(CharacterSet.range(code, code, ignoreCase))
    }
    const operand = (): CharacterSet.CharacterSet => {
      if (items.length === 0 && refusal === undefined) {
        invalid("&&, -- and ~~ stand between two sets of characters in a class. Write \\& , \\- or \\~ for the sign.")
      }
      const now = CharacterSet.union(items)
      items = []
      return before === undefined ? now : CharacterSet.combined(before, sign, now)
    }
    while (take(/-/y) !== undefined) one(0x2d)
    if (items.length === 0 && take(/\]/y) !== undefined) one(0x5d)
    while (at < source.length && source[at] !== "]") {
      const named = take(/\[:(\^?)([^\]:]*):\]/y)
      const operator = named === undefined ? take(/&&|--|~~/y)?.[0] : undefined
      if (named !== undefined) {
        isEmpty = false
        items.push(posixClass(named))
      } else if (operator !== undefined) {
        before = operand()
        sign = operator
      } else if (source[at] === "[") {
        isEmpty = false
        items.push(charClass())
      } else {
        const first = member()
        const hasLast = typeof first === "number" && take(/-(?![-\]]|\\[dDsSwWpP])/y) !== undefined
        const last = hasLast ? member() : first
        if (typeof first === "number" && typeof last === "number" && first !== last) {
          isEmpty = false
          if (last < first) invalid(`the range ${source.slice(begin, at)} … goes from more to less.`)
          items.push(CharacterSet.range(first, last, ignoreCase))
        } else if (typeof first === "number") one(first)
        else if (first !== undefined) {
          isEmpty = false
          items.push(first)
        }
      }
    }
    if (refusal === undefined && source[at] !== "]") {
      const start = source.slice(begin, begin + 3)
      if (start === "[^]")
        invalid("[^] is not closed, because a ] that comes first is a character. Write . for any character.")
      else invalid(`the [ at character ${begin + 1} has no ]. Write \\[ for the sign, also in a class.`)
    }
    const all = operand()
    at++
    if (isEmpty && !negated && refusal === undefined) refuse(noNewline)
    return negated ? CharacterSet.not(all) : all
  }

  const member = (): number | CharacterSet.CharacterSet | undefined => {
    if (source[at] !== "\\") return codeHere()
    const wrong = take(/\\[bBAz<>]/y)
    return wrong === undefined ? characterEscape() : void unknown(`${wrong[0]} in a class`, "It is no character.")
  }

  const posixClass = ([whole, not, name]: RegExpExecArray): CharacterSet.CharacterSet => {
    const pairs = posix.get(name ?? "")
    if (pairs === undefined) {
      unknown(whole, `The names are ${[...posix.keys()].join(", ")}.`)
      return CharacterSet.all
    }
    const ranges = CharacterSet.rangesOf(pairs).map(([first, last]) => CharacterSet.range(first, last, ignoreCase))
    return not === "^" ? CharacterSet.not(CharacterSet.union(ranges)) : CharacterSet.union(ranges)
  }

  const node = alternatives()
  if (refusal === undefined && at < source.length)
    invalid(`the ) at character ${at + 1} has no (. Write \\) for the sign.`)
  return refusal === undefined ? Either.right({ node, namesReturn }) : Either.left(refusal)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const nothing: Node = { _tag: "Sequence", nodes: [] }

const newline = 0x0a
const carriageReturn = 0x0d

const noNewline =
  "The pattern has a newline, which no line holds: each line is searched by itself. Search for what stands in " +
  "one line; \\r$ finds those that end with \\r\\n."

const quantifier = /(?:([*+?])|\{(?=,?\d)(\d*)(?:(,)(\d*))?\})\??/y

/** ripgrep knows two more. */
const posix: ReadonlyMap<string, string> = new Map([...CharacterSet.posix, ["ascii", "\0\x7f"], ["word", "azAZ09__"]])

const assertions: { readonly [escape: string]: Assertion } = {
  "\\A": "start",
  "\\z": "end",
  "\\b": "boundary",
  "\\B": "inside",
  "\\<": "wordStart",
  "\\>": "wordEnd",
  "\\b{start}": "wordStart",
  "\\b{end}": "wordEnd",
  "\\b{start-half}": "noWordBefore",
  "\\b{end-half}": "noWordAfter"
}

/** What to write for escapes of other engines. */
const advice: { readonly [letter: string]: string } = {
  "0": "Write \\x00.",
  E: "Write a \\ before each sign that has a meaning.",
  G: "Write ^ for the beginning of the line.",
  H: "Write [^ \\t].",
  K: "Lines are found as a whole, so leave it out.",
  N: "Write . for any character.",
  Q: "Write a \\ before each sign that has a meaning.",
  R: "Each line is searched by itself: write $ for its end.",
  X: "Write . for any character.",
  Z: "Write $ for the end of the line.",
  c: "Write the character as \\x1b.",
  e: "Write \\x1b.",
  h: "Write [ \\t].",
  u: "Write four hexadecimal digits behind \\u, or some in braces.",
  x: "Write two hexadecimal digits behind \\x, or some in braces."
}
