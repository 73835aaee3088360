/**
 * Regular expressions that answer in time proportional to the text, whatever the expression.
 *
 * A backtracking engine can run for years on `(a+)+$` and one line of text, and nothing can interrupt it. Here the
 * expression becomes a nondeterministic automaton whose states are followed in parallel, so each character is read
 * once; sets of states are cached. Lookaround and backreferences need backtracking, and are refused by name.
 *
 * The syntax is JavaScript's (`\d \w \s \b \p{…}`, classes, groups, `* + ? {n,m}`, lazy ones too), and a leading `(?i)` is
 * understood. `^` and `$` are the ends of the line, `.` is any character.
 */
import * as Either from "effect/Either"

export interface LinePattern {
  /** Whether the pattern occurs anywhere in the line. Takes at most (length of line × size of pattern) steps. */
  readonly test: (line: string) => boolean
  /** Texts of which every line with a match holds at least one; one of them may be empty. */
  readonly needles: ReadonlyArray<string>
}

/** Makes a pattern; a left is a sentence that says why it is invalid. */
export const make = (
  pattern: string,
  options?: { readonly ignoreCase?: boolean | undefined }
): Either.Either<LinePattern, string> => {
  const inline = pattern.startsWith("(?i)")
  const source = inline ? pattern.slice(4) : pattern
  const ignoreCase = inline || options?.ignoreCase === true
  if (source.length > maxSource) return Either.left(`The pattern is longer than ${maxSource} characters.`)
  return Either.flatMap(checked(source), () => {
    const parsed = parse(source, ignoreCase)
    if (typeof parsed === "string") return Either.left(parsed)
    if (sizeOf(parsed) > maxProgram) return Either.left("The pattern repeats too much to be searched for.")
    return Either.right({ test: automaton(compile(parsed)), needles: needlesOf(parsed) })
  })
}

/** `text` as a pattern that matches just this text. */
export const escape = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")

// -----------------------------------------------------------------------------------------------------------------
// internal: parsing
// -----------------------------------------------------------------------------------------------------------------

const maxSource = 2_000
const maxProgram = 3_000

/** Lets the platform check the syntax. Compiling an expression, unlike running it, takes bounded time. */
const checked = (source: string): Either.Either<RegExp, string> =>
  Either.try({
    try: () => new RegExp(source, needsUnicode(source) ? "u" : ""),
    catch: (error) =>
      `The pattern is not a regular expression: ${error instanceof Error ? error.message : String(error)}`
  })

const needsUnicode = (source: string): boolean => /\\[pP]\{|\\u\{/.test(source)

type Test = (char: string) => boolean
type Assertion = "start" | "end" | "boundary" | "inside"
type Node =
  | { readonly _tag: "Atom"; readonly test: Test; readonly char?: string }
  | { readonly _tag: "Assert"; readonly assertion: Assertion }
  | { readonly _tag: "Sequence"; readonly nodes: ReadonlyArray<Node> }
  | { readonly _tag: "Either"; readonly nodes: ReadonlyArray<Node> }
  | { readonly _tag: "Repeat"; readonly node: Node; readonly min: number; readonly max: number }

/** Parses what {@link checked} accepted. A string says what is not supported. */
const parse = (source: string, ignoreCase: boolean): Node | string => {
  let at = 0
  let unsupported: string | undefined

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
    while (at < source.length && source[at] !== "|" && source[at] !== ")" && unsupported === undefined) {
      nodes.push(quantified(term()))
    }
    return { _tag: "Sequence", nodes }
  }

  const quantified = (node: Node): Node => {
    const found = /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(source.slice(at, at + 32))
    if (found === null) return node
    at += found[0].length
    const [, sign, least, comma, most] = found
    const min = sign === undefined ? Number(least) : sign === "+" ? 1 : 0
    const max =
      sign === undefined ? (comma === "" ? min : most === "" ? Infinity : Number(most)) : sign === "?" ? 1 : Infinity
    return { _tag: "Repeat", node, min, max }
  }

  const group = (): Node => {
    const head = /^\((?:\?(?::|<[^=!>][^>]*>|(<?[=!])))?/.exec(source.slice(at, at + 256))
    if (head === null || head[1] !== undefined) unsupported = "lookahead and lookbehind"
    at += head === null ? 1 : head[0].length
    const node = alternatives()
    at++
    return node
  }

  const charClass = (): Node => {
    const from = at++
    if (source[at] === "^") at++
    while (at < source.length && source[at] !== "]") at += source[at] === "\\" ? 2 : 1
    at++
    return atom(source.slice(from, at))
  }

  const escaped = (): Node => {
    const rest = source.slice(at, at + 64)
    if (/^\\(?:[1-9]|k<)/.test(rest)) unsupported = "backreferences"
    const text = /^\\(?:[pP]\{[^}]*\}|u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[a-zA-Z]|[^])/.exec(rest)?.[0]
    at += text?.length ?? 1
    if (text === "\\b") return { _tag: "Assert", assertion: "boundary" }
    if (text === "\\B") return { _tag: "Assert", assertion: "inside" }
    return atom(text ?? "\\\\")
  }

  const term = (): Node => {
    const char = String.fromCodePoint(source.codePointAt(at) ?? 0)
    if (char === "(") return group()
    if (char === "[") return charClass()
    if (char === "\\") return escaped()
    at += char.length
    if (char === "^") return { _tag: "Assert", assertion: "start" }
    if (char === "$") return { _tag: "Assert", assertion: "end" }
    if (char === ".") return { _tag: "Atom", test: () => true }
    return ignoreCase
      ? atom(/[\]{}/]/.test(char) ? `\\${char}` : char)
      : { _tag: "Atom", test: (c) => c === char, char }
  }

  const atom = (text: string): Node => {
    const flags = ignoreCase ? "i" : ""
    // As a whole character where the syntax allows: without the `u` flag a character above U+FFFF is two halves.
    const single = Either.getOrElse(
      Either.try(() => new RegExp(`^(?:${text})$`, `${flags}u`)),
      () => new RegExp(`^(?:${text})$`, flags)
    )
    return { _tag: "Atom", test: (char) => single.test(char) }
  }

  const node = alternatives()
  return unsupported === undefined ? node : `The pattern uses ${unsupported}, which this search does not support.`
}

/** Rows of plain characters of which one is in every match; of those in a row behind each other the longest. */
const needlesOf = (node: Node): ReadonlyArray<string> => {
  switch (node._tag) {
    case "Atom":
      // Half a character, and the character for what is no UTF-8, stand for other bytes in a file.
      return [node.char === undefined || /[\ud800-\udfff\ufffd]/.test(node.char) ? "" : node.char]
    case "Assert":
      return [""]
    case "Repeat":
      return node.min > 0 ? needlesOf(node.node) : [""]
    case "Either": {
      const all = new Set(node.nodes.flatMap(needlesOf))
      return all.size > maxNeedles || all.has("") ? [""] : [...all]
    }
    case "Sequence": {
      let best: ReadonlyArray<string> = [""]
      let row = ""
      for (const part of node.nodes) {
        const found = needlesOf(part)
        row = part._tag === "Atom" && found[0] !== "" ? row + found.join() : ""
        for (const some of [[row], found]) if (shortest(some) > shortest(best)) best = some
      }
      return best
    }
  }
}

/** A file is searched for each of them. */
const maxNeedles = 16

const shortest = (texts: ReadonlyArray<string>): number => Math.min(...texts.map(({ length }) => length))

const sizeOf = (node: Node): number => {
  switch (node._tag) {
    case "Atom":
    case "Assert":
      return 1
    case "Sequence":
    case "Either":
      return node.nodes.reduce((sum, each) => sum + sizeOf(each) + 1, 0)
    case "Repeat":
      return (sizeOf(node.node) + 1) * Math.max(1, node.max === Infinity ? node.min + 1 : node.max)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal: the automaton
// -----------------------------------------------------------------------------------------------------------------

type Instruction =
  | { readonly _tag: "Char"; readonly test: Test; readonly next: number }
  | { readonly _tag: "Assert"; readonly assertion: Assertion; readonly next: number }
  | { readonly _tag: "Fork"; readonly next: Array<number> }
  | { readonly _tag: "Match" }

interface Program {
  readonly instructions: ReadonlyArray<Instruction>
  readonly start: number
}

/** Built from the end: each node is compiled knowing what follows it. */
const compile = (root: Node): Program => {
  const instructions: Array<Instruction> = [{ _tag: "Match" }]
  const push = (instruction: Instruction): number => instructions.push(instruction) - 1
  const emit = (node: Node, next: number): number => {
    switch (node._tag) {
      case "Atom":
        return push({ _tag: "Char", test: node.test, next })
      case "Assert":
        return push({ _tag: "Assert", assertion: node.assertion, next })
      case "Sequence":
        return node.nodes.reduceRight((after, each) => emit(each, after), next)
      case "Either":
        return push({ _tag: "Fork", next: node.nodes.map((each) => emit(each, next)) })
      case "Repeat": {
        let entry = next
        if (node.max === Infinity) {
          const exits = [next]
          entry = push({ _tag: "Fork", next: exits })
          exits.push(emit(node.node, entry))
        } else {
          for (let i = node.min; i < node.max; i++) entry = push({ _tag: "Fork", next: [next, emit(node.node, entry)] })
        }
        for (let i = 0; i < node.min; i++) entry = emit(node.node, entry)
        return entry
      }
    }
  }
  const start = emit(root, 0)
  return { instructions, start }
}

/** The character on one side of a position: none, a word character, or another one. */
type Side = "edge" | "word" | "other"

interface State {
  /** Instructions reached by the characters so far, before empty steps. */
  readonly at: ReadonlyArray<number>
  readonly before: Side
  /** The next state by code point; `true` means that the pattern has matched. */
  readonly next: Map<number, State | true>
  /** The same for ASCII, which is nearly all there is. */
  readonly plain: Array<State | true | undefined>
  /** Whether the pattern has matched when the line ends here, once that was asked. */
  atEnd: boolean | undefined
}

const maxStates = 2_000
const maxSteps = 512

const sideOf = (char: string): Side => (/^\w$/.test(char) ? "word" : "other")

const holds = (assertion: Assertion, before: Side, after: Side): boolean => {
  switch (assertion) {
    case "start":
      return before === "edge"
    case "end":
      return after === "edge"
    case "boundary":
      return (before === "word") !== (after === "word")
    case "inside":
      return (before === "word") === (after === "word")
  }
}

const automaton = ({ instructions, start }: Program): ((line: string) => boolean) => {
  /** Character instructions reachable by empty steps between two characters; nothing when a match is reachable. */
  const closure = (state: State, after: Side): ReadonlyArray<number> | undefined => {
    const seen = new Set<number>()
    const todo = [start, ...state.at]
    const chars: Array<number> = []
    for (let pc = todo.pop(); pc !== undefined; pc = todo.pop()) {
      if (seen.has(pc)) continue
      seen.add(pc)
      const instruction = instructions[pc]
      if (instruction === undefined || instruction._tag === "Match") return undefined
      if (instruction._tag === "Char") chars.push(pc)
      else if (instruction._tag === "Fork") todo.push(...instruction.next)
      else if (holds(instruction.assertion, state.before, after)) todo.push(instruction.next)
    }
    return chars
  }

  const states = new Map<string, State>()
  /** Where a line begins; from it all states can be reached that were cached. */
  let first: State | undefined
  const stateOf = (at: ReadonlyArray<number>, before: Side): State => {
    const key = `${before}:${at.join()}`
    const known = states.get(key)
    if (known !== undefined) return known
    // The states are a cache: clearing it bounds the memory and changes no result.
    if (states.size >= maxStates) {
      states.clear()
      first = undefined
    }
    const state: State = {
      at,
      before,
      next: new Map(),
      plain: new Array<undefined>(128).fill(undefined),
      atEnd: undefined
    }
    states.set(key, state)
    return state
  }

  const step = (state: State, code: number): State | true => {
    const char = String.fromCodePoint(code)
    const after = sideOf(char)
    const chars = closure(state, after)
    if (chars === undefined) return true
    const at = new Set<number>()
    for (const pc of chars) {
      const instruction = instructions[pc]
      if (instruction?._tag === "Char" && instruction.test(char)) at.add(instruction.next)
    }
    return stateOf([...at].sort(byNumber), after)
  }

  return (line) => {
    let state = (first ??= stateOf([], "edge"))
    for (let i = 0; i < line.length; i++) {
      let code = line.charCodeAt(i)
      if (code >= 0xd800) {
        code = line.codePointAt(i) ?? 0
        if (code > 0xffff) i++
      }
      let next = code < 128 ? state.plain[code] : state.next.get(code)
      if (next === undefined) {
        next = step(state, code)
        if (code < 128) state.plain[code] = next
        else if (state.next.size < maxSteps) state.next.set(code, next)
      }
      if (next === true) return true
      state = next
    }
    return (state.atEnd ??= closure(state, "edge") === undefined)
  }
}

const byNumber = (a: number, b: number): number => a - b
