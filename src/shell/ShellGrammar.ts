/**
 * Parses a shell command, or refuses to.
 *
 * Understood are simple commands with quotes, assignments, redirections and here-documents, joined by `;` `&` `|` `&&`
 * `||` and newlines, inside substitutions and structures: `for`, `while`, `until`, `if`, `case`, braces and parentheses.
 * Everything else is refused as {@link Unparseable}, although it may be perfectly good shell, such as functions. A
 * refusal costs a question; a misreading would let a program run that nobody allowed. Where shells differ, the reading
 * is the one that runs more.
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { maxLength, trim } from "./CommandText.js"
import { Scanner } from "./ShellScanner.js"
import type { CommandLine } from "./ShellSyntax.js"

export { maxLength, trim } from "./CommandText.js"
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

/** Takes time proportional to the text. */
export const parse = (text: string): Either.Either<CommandLine, Unparseable> => {
  const source = trim(text)
  if (source.length > maxLength) return Either.left(new Unparseable({ reason: "it is too long", at: maxLength }))
  const strange = strangeCharacter.exec(source)
  if (strange !== null) {
    return Either.left(new Unparseable({ reason: "it contains a control character", at: strange.index }))
  }
  const scanner = new Scanner(source, 0)
  if (!scanner.list("text")) return Either.left(new Unparseable({ reason: scanner.problem, at: scanner.at }))
  const { commands, compound, loops, redirects, sets } = scanner
  return Either.right({ text: source, commands, compound, redirects, sets, loops })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// Of the control characters, shells agree on tab and newline only; a lone surrogate is no text.
const strangeCharacter = /[^\P{Cc}\t\n]|\p{Surrogate}/u
