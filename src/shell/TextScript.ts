/**
 * Whether a script of `sed` or `awk` runs something. Both checks are allow lists: a script that is not understood
 * counts as running something.
 */

/** The script only edits and prints: no `e`, no `s///e`, and no `w`, which writes to a file of any name. */
export const sedOnlyEdits = (script: string): boolean => new Sed(script).isPlain()

/**
 * The program neither runs nor loads anything. The language has few ways to: `system`, a pipe, and in one dialect `@`
 * for loading and for calling functions by a computed name.
 */
export const awkOnlyPrints = (program: string): boolean => {
  let at = 0
  // A slash begins a regular expression here; behind a value it divides.
  let wantsValue = true
  while (at < program.length) {
    const char = program[at] ?? ""
    const two = program.slice(at, at + 2)
    if (char === "#") at = endOfLine(program, at)
    else if (char === '"') {
      at = endOfQuote(program, at)
      wantsValue = false
    } else if (char === "/" && wantsValue) {
      const end = endOfQuote(program, at)
      // Versions differ about a slash in brackets.
      if (/\[[^\]]*$/.test(program.slice(at + 1, end - 1))) return false
      at = end
      wantsValue = false
    } else if (two === "||" || two === "&&") {
      at += 2
      wantsValue = true
    } else if (char === "|" || char === "@") return false
    else if (/[A-Za-z_]/.test(char)) {
      const [name = char] = /^\w+/.exec(program.slice(at, at + 64)) ?? []
      if (name === "system") return false
      at += name.length
      wantsValue = false
    } else {
      if (!/\s/.test(char) || char === "\n") wantsValue = "(,{};!~\n".includes(char)
      at++
    }
  }
  return true
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const endOfLine = (text: string, at: number): number => {
  const end = text.indexOf("\n", at)
  return end < 0 ? text.length : end
}

/** The position behind the closing quote of the same kind. */
const endOfQuote = (text: string, from: number): number => {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === "\\") at++
    else if (text[at] === text[from]) return at + 1
  }
  return text.length
}

/** What is skipped in a script of `sed`. Made once, because a script has thousands of commands. */
const shape = {
  blankOrBrace: /[\s;{}]*/y,
  lettersAndDigits: /[A-Za-z0-9]*/y,
  insertedText: /[^\\\n]*(?:\\[^][^\\\n]*)*/y,
  label: /[ \t]*[A-Za-z0-9_.-]*[ \t]*/y,
  exitCode: /[ \t]*\d*/y,
  flags: /[IM]*/y,
  lineNumber: /(?:[+~]?\d+(?:~\d+)?|\$)?/y,
  blanks: /[ \t]*/y,
  negation: /[! \t]*/y,
  restOfLine: /[^\n]*/y
}

class Sed {
  private at = 0

  constructor(private readonly text: string) {}

  isPlain(): boolean {
    while (this.at < this.text.length) if (!this.command()) return false
    return true
  }

  private command(): boolean {
    this.skip(shape.blankOrBrace)
    if (this.at >= this.text.length) return true
    if (this.text[this.at] === "#") return this.toLineEnd()
    if (!this.addresses()) return false
    const letter = this.text[this.at++] ?? ""
    switch (letter) {
      case "{":
        return true
      case "s":
        return this.delimited(2) && /^[gpimIM0-9]*$/.test(this.skip(shape.lettersAndDigits)) && this.ends()
      case "y":
        return this.delimited(2) && this.ends()
      case "a":
      case "i":
      case "c":
        this.skip(shape.insertedText)
        return true
      case "b":
      case "t":
      case "T":
      case ":":
        this.skip(shape.label)
        return this.ends()
      case "r":
      case "R":
        return this.toLineEnd()
      case "=":
        return this.ends()
      default:
        if (!"dDpPhHgGnNxlqQzF".includes(letter) || letter === "") return false
        this.skip(shape.exitCode)
        return this.ends()
    }
  }

  private addresses(): boolean {
    for (let i = 0; i < 2; i++) {
      if (this.text[this.at] === "/" || this.text[this.at] === "\\") {
        if (this.text[this.at] === "\\") this.at++
        if (!this.delimited(1)) return false
        this.skip(shape.flags)
      } else this.skip(shape.lineNumber)
      this.skip(shape.blanks)
      if (i === 0) {
        if (this.text[this.at] !== ",") break
        this.at++
        this.skip(shape.blanks)
      }
    }
    this.skip(shape.negation)
    return true
  }

  /** Parts between delimiters; the first character is the delimiter. */
  private delimited(parts: number): boolean {
    const delimiter = this.text[this.at]
    if (delimiter === undefined || delimiter === "\n" || delimiter === "\\") return false
    this.at++
    for (let i = 0; i < parts; i++) {
      let inClass = false
      for (; ; this.at++) {
        const char = this.text[this.at]
        if (char === undefined) return false
        if (char === "\\") this.at++
        // Versions differ about a delimiter in brackets: such a script is not understood.
        else if (char === "[" && i === 0) inClass = true
        else if (char === "]") inClass = false
        else if (char === delimiter) {
          if (inClass) return false
          break
        }
      }
      this.at++
    }
    return true
  }

  private ends(): boolean {
    this.skip(shape.blanks)
    const char = this.text[this.at] ?? "\n"
    return "\n;}#".includes(char)
  }

  private toLineEnd(): boolean {
    this.skip(shape.restOfLine)
    return true
  }

  private skip(expected: RegExp): string {
    expected.lastIndex = this.at
    const found = expected.exec(this.text)?.[0] ?? ""
    this.at += found.length
    return found
  }
}
