/**
 * Regular expressions that answer in time proportional to the text, whatever the expression.
 *
 * A backtracking engine can run for years on `(a+)+$` and one line of text, and nothing can interrupt it. Here the
 * expression becomes a nondeterministic automaton whose states are followed in parallel, so each character is read
 * once; sets of states are cached. Lookaround and backreferences need backtracking, and are refused by name.
 *
 * Proportional is not quick: a character takes as many steps as the expression has parts, where no set comes twice.
 * Steps are counted, and a {@link Reader} stops after as many as it is given; it goes on where it stopped.
 *
 * The syntax is that of `PatternSyntax`. `^` and `$` are the ends of the line, `.` is any character.
 */
import * as Either from "effect/Either"
import * as CharacterSet from "./CharacterSet.js"
import * as PatternProgram from "./PatternProgram.js"
import { edge, other, word } from "./PatternProgram.js"
import * as PatternSyntax from "./PatternSyntax.js"

export interface LinePattern {
  /** Whether the pattern occurs anywhere in the line. Takes at most (length of line × size of pattern) steps. */
  readonly test: (line: string) => boolean
  /** What reads lines in parts. */
  readonly reader: () => Reader
  /** Texts of which every line with a match holds at least one; one of them may be empty. */
  readonly needles: ReadonlyArray<string>
  /** Whether it asks for the carriage return, which ends a line together with the newline else. */
  readonly namesReturn: boolean
}

/** Steps that may still be taken. The last character or line end may take more than are left. */
export interface Budget {
  left: number
}

/** Reads one line after the other, each in as many parts as it comes in. */
export interface Reader {
  /** A line begins. */
  readonly begin: () => void
  /**
   * Reads on from `from`, until the line is known to match, `to` is reached or the budget is used up, but at least one
   * character. Where it stopped; a character of two halves is in one part.
   */
  readonly read: (text: string, from: number, to: number, budget: Budget) => number
  /** The line is over. */
  readonly end: (budget: Budget) => void
  /** Whether the line matches, by what was read of it. */
  readonly found: () => boolean
}

/** Makes a pattern; a left is a sentence that says why it is invalid. */
export const make = (
  pattern: string,
  options?: {
    readonly ignoreCase?: boolean | undefined
    /** Whether it is about texts that may hold newlines. */
    readonly newlines?: boolean | undefined
  }
): Either.Either<LinePattern, string> =>
  Either.gen(function* () {
    if (pattern.length > maxSource) {
      return yield* Either.left(`The pattern is longer than ${maxSource} characters. Search for a part of it.`)
    }
    const newlines = options?.newlines === true
    const { node, namesReturn } = yield* PatternSyntax.parse(pattern, {
      ignoreCase: options?.ignoreCase === true,
      newlines
    })
    if (PatternProgram.sizeOf(node) > maxProgram) return yield* Either.left(tooLarge)
    const program = PatternProgram.compile(node)
    if (!newlines && !PatternProgram.canMatch(program)) return yield* Either.left(neverMatches)
    const reader = automaton(program)
    const whole = reader()
    const test = (line: string): boolean => {
      const budget = { left: Infinity }
      whole.begin()
      whole.read(line, 0, line.length, budget)
      if (!whole.found()) whole.end(budget)
      return whole.found()
    }
    return { test, reader, needles: needlesOf(node), namesReturn }
  })

/** `text` as a pattern that matches just this text. */
export const escape = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxSource = 2_000
const maxProgram = 3_000

const tooLarge =
  `The pattern repeats too much: with its counts written out it has more than ${maxProgram} parts. ` +
  "Use smaller counts, or * and +, which are one part each."

const neverMatches =
  "The pattern, or an alternative in it, can match no line: ^ is the beginning of the line, $ its end, and \\b or \\B " +
  "does not fit to what is beside it. Write \\$ or \\^ for the sign itself."

/** Rows of plain characters of which one is in every match; of those in a row behind each other the longest. */
const needlesOf = (node: PatternSyntax.Node): ReadonlyArray<string> => {
  switch (node._tag) {
    case "Atom":
      // Half a character, and the character for what is no UTF-8, stand for other bytes in a file.
      return [node.set.only === undefined || /[\ud800-\udfff\ufffd]/.test(node.set.only) ? "" : node.set.only]
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

// -----------------------------------------------------------------------------------------------------------------
// internal: the automaton
// -----------------------------------------------------------------------------------------------------------------

interface State {
  /** The first `count` are the instructions reached by the characters so far, before empty steps. */
  readonly at: Int32Array
  count: number
  before: PatternProgram.Side
  /** Where its row begins in the table of that generation; below zero where it has none. */
  row: number
  generation: number
  /** Whether the pattern has matched when the line ends here, once that was asked. */
  atEnd: boolean | undefined
}

const stateOf = (at: Int32Array, before: PatternProgram.Side): State => ({
  at,
  count: at.length,
  before,
  row: -1,
  generation: -1,
  atEnd: undefined
})

/** The pattern has matched: as a state, and as an entry of the table. */
const matched = stateOf(new Int32Array(0), edge)
const match = -1
/** The line cannot match any more: only its beginning could have. */
const missed = stateOf(new Int32Array(0), edge)
const miss = -2

const maxStates = 2_000
/** Instructions in all states that are cached. */
const maxWeight = 1_000_000
/** Entries of the table. */
const maxTable = 1 << 20
const maxHigh = 65_536
/** Where states are read fewer times than this on average, caching them takes longer than it saves. */
const worthwhile = 8
/** How many steps it takes as long as to order an instruction of a set and find the set, and to ask a set for a character. */
const ordering = 16
const asking = 8
/** Characters that are read without a cache then, before the next try. */
const pause = 20_000

/**
 * ```
 *  character ─► its kind ─┐
 *                         ├─► table: where the next row begins ─► 0: nobody knows yet ─► follow, and remember
 *  state ─► its row ──────┘                                   └─► match, miss
 * ```
 */
const automaton = ({ instructions, sets, start }: PatternProgram.Program): (() => Reader) => {
  /** Characters are of one kind when they are in the same sets and of the same side; 0 is for what was not asked. */
  const kinds = new Map<string, number>()
  const sidesOf: Array<PatternProgram.Side> = [other]
  const membersOf: Array<Uint8Array> = [new Uint8Array(0)]
  const kindOfLow = new Uint16Array(256)
  const kindOfHigh = new Map<number, number>()
  const newKind = (code: number): number => {
    const side = CharacterSet.isWord(code) ? word : other
    const members = Uint8Array.from(sets, (set) => (set.has(code) ? 1 : 0))
    const key = side + members.join("")
    const known = kinds.get(key)
    const kind = known ?? sidesOf.length
    if (known === undefined) {
      kinds.set(key, kind)
      sidesOf.push(side)
      membersOf.push(members)
      if (kind >= width) {
        width *= 2
        clear()
      }
    }
    if (code < 256) kindOfLow[code] = kind
    else {
      if (kindOfHigh.size >= maxHigh) kindOfHigh.clear()
      kindOfHigh.set(code, kind)
    }
    spent += asking * sets.length
    return kind
  }

  const todo: Array<number> = []
  const seen = new Uint32Array(instructions.length)
  const isReached = new Uint32Array(instructions.length)
  let mark = 0
  const reached = new Int32Array(instructions.length)
  let count = 0
  /** Instructions that were looked at, and sets that were asked. */
  let spent = 0

  /**
   * Takes the empty steps between two characters, and from there those over a character that is a member of these sets:
   * what that leads to is `reached`. True when the pattern has matched before it.
   */
  const follow = (state: State, after: PatternProgram.Side, members: Uint8Array | undefined): boolean => {
    mark++
    count = 0
    todo.length = 0
    todo.push(start)
    for (let i = 0; i < state.count; i++) todo.push(state.at[i] ?? 0)
    spent += todo.length
    for (let pc = todo.pop(); pc !== undefined; pc = todo.pop()) {
      if (seen[pc] === mark) continue
      seen[pc] = mark
      spent++
      const instruction = instructions[pc]
      if (instruction === undefined || instruction._tag === "Match") return true
      if (instruction._tag === "Char") {
        const next = instruction.next
        if (members?.[instruction.set] === 1 && isReached[next] !== mark) {
          isReached[next] = mark
          reached[count++] = next
        }
      } else if (instruction._tag === "Fork") {
        spent += instruction.next.length
        for (const next of instruction.next) todo.push(next)
      } else if (PatternProgram.holds(instruction.assertion, state.before, after)) todo.push(instruction.next)
    }
    return false
  }

  // The states with a row are a cache: clearing it bounds the memory and changes no result.
  const states = new Map<string, State>()
  /** By their rows; nobody has the first one. */
  let inRows: Array<State> = [matched]
  let width = 8
  let table = new Int32Array(64)
  let generation = 0
  let weight = 0
  /** Where a line begins; from it all states can be reached that were cached. */
  let first: State | undefined
  /** Characters that were read since the cache was empty. */
  let uses = 0
  /** Characters that are still read without the cache. */
  let paused = 0

  const clear = (): void => {
    generation++
    states.clear()
    inRows = [matched]
    table.fill(0)
    weight = 0
    uses = 0
    first = undefined
  }

  const keep = (at: Int32Array, before: PatternProgram.Side): State => {
    const key = `${before}:${at.join()}`
    const known = states.get(key)
    if (known !== undefined) return known
    if (states.size >= maxStates || weight >= maxWeight || (states.size + 2) * width > maxTable) {
      if (uses < worthwhile * states.size) paused = pause
      clear()
    }
    const state = stateOf(at, before)
    state.row = inRows.push(state) * width - width
    state.generation = generation
    states.set(key, state)
    weight += at.length
    if (state.row + width > table.length) {
      const larger = new Int32Array(Math.max(2 * table.length, state.row + width))
      larger.set(table)
      table = larger
    }
    return state
  }

  /** Where the state's row begins; below zero where it is worth none. */
  const rowOf = (state: State): number => {
    if (state.generation !== generation) state.row = -1
    return state.row
  }

  /** Whether a match can begin only where the line begins, once that was asked. */
  let anchored: boolean | undefined
  const isAnchored = (): boolean => {
    const everything = new Uint8Array(sets.length).fill(1)
    return PatternProgram.sides.every((before) =>
      PatternProgram.sides.every(
        (after) => before === edge || (!follow(stateOf(new Int32Array(0), before), after, everything) && count === 0)
      )
    )
  }

  /** `spare` is another state than this, which nobody needs any more: it becomes what is not cached. */
  const step = (state: State, code: number, spare: () => State): State => {
    const known = code < 256 ? kindOfLow[code] : kindOfHigh.get(code)
    const kind = known === undefined || known === 0 ? newKind(code) : known
    const after = sidesOf[kind] ?? other
    const row = rowOf(state)
    const entry = row < 0 ? 0 : table[row + kind]
    if (entry !== undefined && entry > 0) return inRows[entry / width] ?? matched
    if (entry === miss) return missed
    anchored ??= isAnchored()
    const isMatch = entry === match || follow(state, after, membersOf[kind])
    let next = matched
    if (!isMatch && count === 0 && anchored) {
      if (row >= 0) table[row + kind] = miss
      return missed
    }
    if (!isMatch && paused > 0) {
      paused--
      const loose = spare()
      loose.at.set(reached.subarray(0, count))
      loose.count = count
      loose.before = after
      loose.atEnd = undefined
      return loose
    }
    if (!isMatch) {
      next = keep(reached.slice(0, count).sort(), after)
      spent += ordering * count
    }
    if (rowOf(state) >= 0) table[row + kind] = isMatch ? match : next.row
    return next
  }

  return () => {
    let state = matched
    // Two take turns, because to make a state for each character keeps the collector of garbage busy.
    let loose: readonly [State, State] | undefined
    const spare = (): State => {
      const [one, another] = (loose ??= [
        stateOf(new Int32Array(instructions.length), edge),
        stateOf(new Int32Array(instructions.length), edge)
      ])
      return state === one ? another : one
    }
    return {
      begin: () => {
        state = first ??= keep(new Int32Array(0), edge)
      },
      read: (text, from, to, budget) => {
        let at = from
        let left = budget.left
        while (at < to && state !== matched && state !== missed) {
          const counted = at
          const until = Math.min(to, at + Math.max(1, left))
          const rows = table
          let row = rowOf(state)
          let code = 0
          let size = 1
          while (at < until) {
            code = text.charCodeAt(at)
            size = 1
            let kind: number | undefined
            if (code < 256) kind = kindOfLow[code]
            else {
              if (code >= 0xd800) code = text.codePointAt(at) ?? 0
              if (code > 0xffff) size = 2
              kind = kindOfHigh.get(code)
            }
            // No row, a kind that nobody knows, and a step that nobody took.
            const next = rows[row + (kind ?? 0)] ?? 0
            if (next <= 0) break
            row = next
            at += size
          }
          uses += at - counted
          left -= at - counted
          if (row >= 0) state = inRows[row / width] ?? matched
          if (at >= until) break
          spent = 0
          state = step(state, code, spare)
          left -= spent + 1
          // Else the match was there before this character.
          if (state !== matched) at += size
          if (left <= 0) break
        }
        budget.left = left
        return state === missed ? to : at
      },
      end: (budget) => {
        if (state === missed) return
        if (state.atEnd === undefined) {
          spent = 0
          state.atEnd = follow(state, edge, undefined)
          budget.left -= spent
        }
        if (state.atEnd) state = matched
      },
      found: () => state === matched
    }
  }
}
