/**
 * What a text may run, for rules that deny: lists of words, the program first.
 *
 * This is generous, and still no proof: a program can always build a command that its text does not show.
 */
import * as Either from "effect/Either"
import * as Doubt from "./Doubt.js"
import * as Harmless from "./Harmless.js"
import * as Interpreter from "./Interpreter.js"
import * as Program from "./Program.js"
import { parse } from "./ShellGrammar.js"

/** One list of words that the text may run, the program first. */
export interface Reading {
  readonly words: ReadonlyArray<string>
  /** False when the first program is not known before it runs. */
  readonly named: boolean
  /** The words, joined by single spaces. */
  readonly text: string
  /** Each later word may be a program too, with the words behind it. */
  readonly deep: boolean
  /** No word holds a space: the text tells where each one ends. */
  readonly loose: boolean
}

/**
 * Every list of words that the text may end up running. These are the simple commands; for programs that run others, or
 * are not known not to, also the words behind their name, and their words read as commands; git without the options in front of its
 * subcommand; for text that cannot be parsed, its pieces without quotes. A redirection reads as its operator and its
 * target.
 */
export const of = (text: string, line = parse(text)): ReadonlyArray<Reading> => {
  const reader = new Reader()
  reader.read(text, line, 0, true)
  reader.finish()
  return reader.out
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxNesting = 3

/** More texts within a text are not parsed one by one, but read as pieces, all at once. */
const maxTexts = 256

/** Shell keywords after which a command begins, numbers, and assignments in front of a command. */
const leads = (word: string): boolean => (word.includes("=") ? assignment.test(word) : leading.test(word))
const leading = /^(?:if|then|elif|else|while|until|do|time|coproc|!|\d+)$/
const assignment = /^[A-Za-z_]\w*\+?=.*$/

class Reader {
  readonly out: Array<Reading> = []
  /** The texts read at each depth, because long texts repeat themselves. */
  private readonly seen: Array<Set<string>> = []
  private parsed = 0
  private readonly late: Array<string> = []

  /** `runs`: it certainly is a command, and no guess what a word may be. */
  read(text: string, line: ReturnType<typeof parse>, depth: number, runs: boolean): void {
    if (Either.isLeft(line)) return this.pieces(text, depth)
    const seen = this.seenAt(depth)
    for (const command of line.right.commands) {
      const { named, text, words } = command
      if (seen.has(text)) continue
      seen.add(text)
      if (words.length > 0) this.unfold({ words, named, text: words.join(" "), loose: false }, depth, runs)
      if (depth < maxNesting) for (const told of Doubt.texts(command)) this.inner(told, depth + 1, runs)
    }
    for (const { operator, target } of line.right.redirects) this.redirection(operator, target, seen)
  }

  finish(): void {
    if (this.late.length > 0) this.pieces(this.late.join("\n"), maxNesting)
  }

  private inner(text: string, depth: number, runs: boolean): void {
    if (this.parsed++ < maxTexts) this.read(text, parse(text), depth, runs)
    else this.late.push(text)
  }

  /**
   * Quotes may hide a name, so they are removed first. Then the text is split at every character that can end a
   * command. A line that ends in a backslash continues without a blank.
   */
  private pieces(text: string, depth: number): void {
    const seen = this.seenAt(depth)
    const bare = text.replace(/\\\n/g, "").replace(/["'\\]/g, "")
    const hasSingleSpaces = !/[^\S \r\n]| {2}/.test(bare)
    for (const piece of bare.split(/[;&|<>(){}`$\r\n]+/)) {
      const before = seen.size
      if (seen.add(piece).size === before) continue
      const trimmed = piece.trim()
      if (trimmed === "") continue
      const words = /\s/.test(trimmed) ? trimmed.split(/\s+/) : [trimmed]
      const start = words.findIndex((word) => !leads(word))
      if (start < 0) continue
      const own = start === 0 ? words : words.slice(start)
      const whole = start === 0 && hasSingleSpaces ? trimmed : own.join(" ")
      this.unfold({ words: own, named: true, text: whole, loose: true }, depth, false)
    }
    if (!/[<>]/.test(bare)) return
    for (const [, operator = "", target = ""] of bare.matchAll(/([<>]{1,3}[&|]?)[ \t]*([^\s;&|<>(){}`]+)/g)) {
      this.redirection(operator, target, seen)
    }
  }

  private unfold(told: Omit<Reading, "deep">, depth: number, runs: boolean): void {
    const { loose, named, text, words } = told
    const deep = !named || (runs && !Harmless.isKnown(words[0] ?? "")) || Program.runner(words) !== undefined
    this.out.push({ words, named, text, deep, loose })
    const plain = Program.withoutGitOptions(words)
    if (plain !== undefined) this.out.push({ words: plain, named, text: plain.join(" "), deep, loose })
    if (!deep || depth >= maxNesting) return
    // Most words hold no code, so what is needed for code is made with the first one.
    let codes: Set<string> | undefined
    let interprets: boolean | undefined
    for (let at = 1; at < words.length; at++) {
      const code = codeIn(words[at] ?? "")
      if (code === undefined || codes?.has(code) === true) continue
      codes = (codes ?? new Set()).add(code)
      interprets ??= Interpreter.speaksAnother(words[0] ?? "")
      if (interprets) this.spell(code)
      this.inner(code, depth + 1, false)
    }
  }

  /** In code of another language a program's name stands between quotes, commas, brackets; each word may be a name. */
  private spell(code: string): void {
    const words = code.split(/[^\w./@%+-]+/).filter((word) => word !== "")
    if (words.length > 0) this.out.push({ words, named: true, text: words.join(" "), deep: true, loose: true })
  }

  private redirection(operator: string, target: string, seen: Set<string>): void {
    const text = `${operator} ${target}`
    const before = seen.size
    if (seen.add(text).size === before) return
    this.out.push({ words: [operator, target], named: true, text, deep: false, loose: !target.includes(" ") })
  }

  private seenAt(depth: number): Set<string> {
    return (this.seen[depth] ??= new Set())
  }
}

/** The text in a word that a program may run: the whole word, or the part behind an option's name. */
const codeIn = (word: string): string | undefined => {
  const behind = word.startsWith("-") ? /^(?:--?[A-Za-z][\w-]*=|-[A-Za-z])(.+)$/s.exec(word)?.[1] : undefined
  return behind ?? (/[\s;&|()`$<>'"]/.test(word) ? word : undefined)
}
