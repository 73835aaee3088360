/**
 * What a program's words tell it to run: other programs, texts for a shell, or something that cannot be told.
 *
 * Only rules that deny use this. They look into the programs and texts, and where the order cannot be told a person has
 * to be asked. So the tables that use this name the understood options; any other option, of a program that can be told
 * to run something, counts as an unknown order.
 */
import * as Program from "./Program.js"
import type { SimpleCommand } from "./ShellSyntax.js"

/** A program that runs, or would be run. */
export interface Ran {
  /** The program first. */
  readonly words: ReadonlyArray<string>
  /** The positions of words whose value is not known, in order. */
  readonly unknown: ReadonlyArray<number>
  /** Its input is the output of another command, or a file. */
  readonly fed: boolean
  /** The `NAME=value` assignments it is given. */
  readonly assignments: ReadonlyArray<string>
}

export interface Order {
  /** The texts it hands to a shell. */
  readonly texts: ReadonlyArray<string>
  readonly programs: ReadonlyArray<Ran>
  /** It may also run something that cannot be told. */
  readonly dark: boolean
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const nothing: Order = { texts: [], programs: [], dark: false }

export const dark: Order = { texts: [], programs: [], dark: true }

/** A command this large is not written by anybody, and checking it would take too long. */
export const tooMany: Order = { texts: [], programs: [], dark: true }

export const text = (...texts: ReadonlyArray<string>): Order =>
  texts.length > maxOrders ? tooMany : { texts, programs: [], dark: false }

export const program = (ran: Ran): Order => ({ texts: [], programs: [ran], dark: false })

export const both = (one: Order, other: Order): Order => {
  if (one === tooMany || other === nothing) return one
  if (other === tooMany || one === nothing) return other
  if (one.texts.length + one.programs.length + other.texts.length + other.programs.length > maxOrders) return tooMany
  return {
    texts: [...one.texts, ...other.texts],
    programs: [...one.programs, ...other.programs],
    dark: one.dark || other.dark
  }
}

export const ranBy = ({ assignments, fed, unknown, words }: SimpleCommand): Ran => ({
  words,
  unknown,
  fed,
  assignments
})

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

export const isUnknown = ({ unknown }: Ran, at: number): boolean => {
  if (unknown.length === 0) return false
  // The positions are sorted, so a binary search finds one.
  let low = 0
  let high = unknown.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if ((unknown[middle] ?? 0) < at) low = middle + 1
    else high = middle
  }
  return unknown[low] === at
}

/** The positions of the words that are so. */
export const places = ({ words }: Ran, isSo: (word: string, at: number) => boolean): ReadonlyArray<number> => {
  const out: Array<number> = []
  for (const [at, word] of words.entries()) if (isSo(word, at)) out.push(at)
  return out
}

export const isKnown = (ran: Ran, at: number): boolean => !isUnknown(ran, at)

/** `NAME=value` with a visible value. */
export const isAssignment = (ran: Ran, at: number): boolean => assignment.test(ran.words[at] ?? "") && isKnown(ran, at)

/** The word begins with an expansion and nothing before it, so it may become an option. */
export const mayBeOption = (ran: Ran, at: number): boolean =>
  isUnknown(ran, at) && /^(?:-|[$`*?[{])/.test(ran.words[at] ?? "")

/** The words from one position to another as a program of their own. Leading assignments become its assignments. */
export const part = (ran: Ran, from: number, to = ran.words.length): Ran | undefined => {
  let start = from
  while (start < to && isAssignment(ran, start)) start++
  if (start >= to) return undefined
  return {
    words: ran.words.slice(start, to),
    unknown: ran.unknown.filter((at) => at >= start && at < to).map((at) => at - start),
    fed: ran.fed,
    assignments: ran.words.slice(from, start)
  }
}

/** The understood options of a program. */
export interface Shape {
  /** Without a value, or with the value in the same word. */
  readonly flags?: RegExp
  /** With a value in the next word. */
  readonly values?: RegExp
  /** With a text for a shell in the next word. */
  readonly texts?: RegExp
  /** With such a text in the same word: the first group that matched. */
  readonly joined?: RegExp
}

export interface Scanned {
  readonly texts: ReadonlyArray<string>
  /** The positions of the words that are no options. In mode `first`, at most one behind the first operand. */
  readonly operands: ReadonlyArray<number>
}

/**
 * Reads options, up to the first operand or, for a program that takes them anywhere, to the end. Nothing when some
 * option is not understood.
 */
export const scan = (ran: Ran, shape: Shape, where: "first" | "anywhere"): Scanned | undefined => {
  const { flags = never, joined = never, texts: orders = never, values = never } = shape
  const { words } = ran
  const texts: Array<string> = []
  const operands: Array<number> = []
  let ended = false
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? ""
    if (!ended && mayBeOption(ran, at)) return undefined
    if (ended || word === "-" || !word.startsWith("-")) {
      operands.push(at)
      if (where === "first") {
        ended = true
        // The words behind the first operand belong to the program.
        if (operands.length === 2) break
      }
    } else if (word === "--") ended = true
    else {
      const found = joined.exec(word)
      if (found !== null) {
        if (isUnknown(ran, at)) return undefined
        if (texts.length === maxOrders) return undefined
        texts.push(found.slice(1).find((group) => group !== undefined) ?? "")
      } else if (orders.test(word)) {
        const next = words[++at]
        if (next === undefined || isUnknown(ran, at) || texts.length === maxOrders) return undefined
        texts.push(next)
      } else if (values.test(word)) at++
      else if (!flags.test(word)) return undefined
    }
  }
  return { texts, operands }
}

/** Looks up a program by its name, and by its name without a version. */
export const known = <A>(table: ReadonlyMap<string, A>, program: string): A | undefined =>
  Program.isPlainName(program)
    ? table.get(program)
    : (table.get(Program.basename(program).toLowerCase()) ?? table.get(Program.nameOf(program)))

/** It may name the program's own input: any path below `/dev` or `/proc`. */
export const isInput = (word: string): boolean => word === "-" || /(?:^|\/)(?:dev|proc)\//.test(word)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxOrders = 64

const assignment = /^[A-Za-z_][A-Za-z0-9_]*\+?=/
const never = /^(?!)/
