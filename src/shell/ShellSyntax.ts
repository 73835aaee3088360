/**
 * The parts of a shell command: what a scanner finds, and the word it is reading.
 */

export interface SimpleCommand {
  /** The first word, unquoted; empty when there are only assignments or redirections. */
  readonly program: string
  /** All words, the program first, unquoted. Expansions stand as they were written: `$HOME`, `$(date)`. */
  readonly words: ReadonlyArray<string>
  /** The same words as they were written, with their quotes. */
  readonly sources: ReadonlyArray<string>
  /** The source from the first to the last word, assignments included, trailing redirections left out. */
  readonly text: string
  /** Some word's value is unknown before it runs: an expansion, or a glob or braces that could become an option. */
  readonly dynamic: boolean
  /** The positions of those words. */
  readonly unknown: ReadonlyArray<number>
  /** The positions of words with a glob, which may lead through links. */
  readonly globs: ReadonlyArray<number>
  /** The program's base name is known. False for `$CMD`, `$(which x)`, `/bin/r?`. */
  readonly named: boolean
  /** Its input is the output of another command, or a file. */
  readonly fed: boolean
  /** `NAME=value` in front, as written but unquoted. */
  readonly assignments: ReadonlyArray<string>
}

export interface Redirect {
  /** With its file descriptor, such as `2>&`. */
  readonly operator: string
  /** Unquoted. */
  readonly target: string
}

export interface CommandLine {
  /** Without white space at both ends. */
  readonly text: string
  /**
   * Every simple command in it, also those inside substitutions, structures and pipes. `[[ … ]]` and `((…))` are
   * commands of those names. Never empty.
   */
  readonly commands: ReadonlyArray<SimpleCommand>
  /** More than one simple command: operators, newlines, substitutions, redirections, background, subshells. */
  readonly compound: boolean
  /** Here-documents and here-strings are none of them: their text is in the line. */
  readonly redirects: ReadonlyArray<Redirect>
  /** The variables that structures and expansions set: `for x`, `${x:=1}`, `$((x = 1))`. Assignments are with their commands. */
  readonly sets: ReadonlyArray<string>
  /** Some of its commands may run more than once, and behind commands that stand after them. */
  readonly loops: boolean
}

/** A person cannot review more commands than this, and checking them would take too long. */
export const maxCommands = 1_000

// -----------------------------------------------------------------------------------------------------------------
// words
// -----------------------------------------------------------------------------------------------------------------

/** Keywords, which are syntax in the place of a program. */
export const keywords: ReadonlySet<string> = new Set(
  "if then elif else fi for while until do done case esac in function select coproc { } !".split(" ")
)

/** The text from an open brace on may be a list or a sequence, of which a shell makes several words. */
export const isBraceList = (text: string): boolean => text.includes(",") || text.includes("..")

/** A word while it is read. Mutable; it belongs to one scanner. */
export class Word {
  value = ""
  /** Its value is not known, or the shell makes other words of it. */
  dynamic = false
  /** The length of the value before the first quote, escape or expansion. */
  plain = -1
  /** End of the last unknown part of the value; the text behind the next slash is known. */
  unknownTo = 0
  /** An unquoted expansion, which may become several words. */
  splits = false
  glob = false
  brace = -1

  quote(): void {
    if (this.plain < 0) this.plain = this.value.length
  }

  get isPlain(): boolean {
    return this.plain < 0
  }

  expansion(raw: string, quoted: boolean): void {
    this.quote()
    this.value += raw
    this.dynamic = true
    this.unknownTo = this.value.length
    if (!quoted || raw.includes("@") || raw.includes("*")) this.splits = true
  }

  end(): this {
    // A lone bracket is the program `[`.
    if (this.value === "[") {
      this.dynamic = this.glob = false
      this.unknownTo = 0
    }
    if (this.glob && this.value.startsWith("-")) this.dynamic = true
    if (this.brace >= 0 && isBraceList(this.value.slice(this.brace))) {
      this.dynamic = true
      this.splits = true
    }
    if (this.value.startsWith("~") && this.plain !== 0 && /^~[^/]/.test(this.value)) this.dynamic = true
    return this
  }

  get named(): boolean {
    // To some shells `=rm` is the path of `rm`.
    return (
      !this.splits &&
      !this.value.startsWith("=") &&
      this.value.lastIndexOf("/") >= this.unknownTo - (this.unknownTo === 0 ? 1 : 0)
    )
  }
}
