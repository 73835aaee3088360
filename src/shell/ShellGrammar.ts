/**
 * Parses a shell command, or refuses to.
 *
 * Understood are simple commands with quotes, assignments and redirections, joined by `;` `&` `|` `&&` `||` and
 * newlines, inside parentheses and substitutions. Everything else is refused as {@link Unparseable}, although it may be
 * perfectly good shell: control structures, functions, arrays, here-documents, `$'…'`. A refusal costs a question; a
 * misreading would let a program run that nobody allowed. Where shells differ, the reading is the one that runs more.
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { Scanner } from "./ShellScanner.js"
import type { CommandLine } from "./ShellSyntax.js"

export type { CommandLine, Redirect, SimpleCommand } from "./ShellSyntax.js"

/** The text cannot be parsed with certainty. */
export class Unparseable extends Schema.TaggedError<Unparseable>("assent/shell/Unparseable")("Unparseable", {
  reason: Schema.String,
  /** Where in the trimmed text, counted in UTF-16 units. */
  at: Schema.Number
}) {
  override get message(): string {
    return `The command cannot be taken apart: ${this.reason} (at character ${this.at + 1}). Write it as simple commands.`
  }
}

/** In bytes, which are never fewer than UTF-16 units. Longer texts are refused. */
export const maxLength = 100_000

/** Takes time proportional to the text. */
export const parse = (text: string): Either.Either<CommandLine, Unparseable> => {
  const source = trim(text)
  if (source.length > maxLength) return Either.left(new Unparseable({ reason: "it is too long", at: maxLength }))
  const strange = strangeCharacter.exec(source)
  if (strange !== null) {
    return Either.left(new Unparseable({ reason: "it contains a control character", at: strange.index }))
  }
  const scanner = new Scanner(source, 0)
  if (!scanner.list(false)) return Either.left(new Unparseable({ reason: scanner.problem, at: scanner.at }))
  const { commands, compound, redirects } = scanner
  return Either.right({ text: source, commands, compound, redirects })
}

/** Trims only what a shell takes for white space; a blank after a backslash stays. */
export const trim = (text: string): string => {
  let start = 0
  let end = text.length
  while (start < end && isSpace(text.charCodeAt(start))) start++
  while (end > start && isSpace(text.charCodeAt(end - 1)) && text[end - 2] !== "\\") end--
  return text.slice(start, end)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// Of the control characters, shells agree on tab and newline only; a lone surrogate is no text.
const strangeCharacter = /[^\P{Cc}\t\n]|\p{Surrogate}/u

const isSpace = (code: number): boolean => code === 0x20 || code === 0x09 || code === 0x0a
