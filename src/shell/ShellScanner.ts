/**
 * Reads a shell command from left to right, once. Anything it does not know with certainty ends the reading.
 *
 * Use it through `ShellGrammar.parse`, which refuses strange characters first.
 */
import { isBraceList, keywords, maxCommands, Word, type Redirect, type SimpleCommand } from "./ShellSyntax.js"

/** Reads from `at` on. Every method that can fail answers false (or nothing) and leaves the reason in `problem`. */
export class Scanner {
  at = 0
  problem = ""
  compound = false
  readonly commands: Array<SimpleCommand> = []
  readonly redirects: Array<Redirect> = []

  constructor(
    private readonly text: string,
    private depth: number,
    /** The next command gets its input from another command or a file. */
    private fed = false
  ) {}

  /** Commands up to the end of the text, or up to a closing parenthesis, which stays. At least one. */
  list(inParentheses: boolean): boolean {
    const before = this.commands.length
    const fed = this.fed
    let state: "start" | "after" | "required" = "start"
    for (;;) {
      this.blanks()
      const char = this.peek()
      if (char === "" || char === ")") {
        if ((char === ")") !== inParentheses)
          return this.fail(char === "" ? "a parenthesis is not closed" : "a stray )")
        if (state === "required") return this.fail("a command is missing after an operator")
        this.fed = fed
        return this.commands.length > before || this.fail("there is no command")
      }
      if (char === "#") {
        while (this.peek() !== "" && this.peek() !== "\n") this.at++
        continue
      }
      if (char === "\n") {
        this.at++
        if (state === "after") {
          this.compound = true
          state = "start"
          this.fed = fed
        }
        continue
      }
      const operator = this.operator()
      if (operator !== undefined) {
        if (state !== "after") return this.fail(`a command is missing before ${operator}`)
        this.compound = true
        this.at += operator.length
        state = operator === ";" || operator === "&" ? "start" : "required"
        this.fed = fed || operator === "|" || operator === "|&"
        continue
      }
      if (state === "after") return this.fail("words after a closing parenthesis")
      if (!(char === "(" ? this.subshell() : this.simple())) return false
      state = "after"
    }
  }

  private subshell(): boolean {
    if (this.text[this.at + 1] === "(") return this.fail("an arithmetic command")
    const first = this.commands.length
    if (!this.nested(1)) return false
    for (;;) {
      this.blanks()
      const target = this.redirect()
      if (target === false) return false
      if (target === undefined) return true
      if (this.redirects.at(-1)?.operator.includes("<") === true) this.feedFrom(first)
      if (target.dynamic) return this.fail("a redirection to an unknown place")
    }
  }

  /** Commands inside parentheses read the input of the parentheses. */
  private feedFrom(first: number): void {
    for (let i = first; i < this.commands.length; i++) {
      const command = this.commands[i]
      if (command !== undefined) this.commands[i] = { ...command, fed: true }
    }
  }

  /** The list in parentheses that begins `skip` characters from here, and its closing parenthesis. */
  private nested(skip: number): boolean {
    if (++this.depth > maxDepth) return this.fail("it is nested too deeply")
    this.compound = true
    this.at += skip
    if (!this.list(true)) return false
    this.at++
    this.depth--
    return true
  }

  private simple(): boolean {
    let start = -1
    let end = -1
    let dynamic = false
    let ended = false
    let { fed } = this
    let first: Word | undefined
    const words: Array<string> = []
    const sources: Array<string> = []
    const assignments: Array<string> = []
    const unknown: Array<number> = []
    for (;;) {
      this.blanks()
      const target = this.redirect()
      if (target === false) return false
      if (target !== undefined) {
        dynamic ||= target.dynamic
        const operator = this.redirects.at(-1)?.operator ?? ""
        ended ||= operator.startsWith("&")
        fed ||= operator.includes("<") && target.value !== "/dev/null"
        continue
      }
      const char = this.peek()
      if (char === "(") return this.fail("a function, an array or a pattern in parentheses")
      if (char === "" || char === "#" || "\n;&|)".includes(char)) break
      // To some shells `a &> b c` is `a &` and then `c > b`.
      if (ended) return this.fail("words after &>")
      const begin = this.at
      if (start < 0) start = begin
      if (first !== undefined) {
        const plain = this.plainWord()
        if (plain !== undefined) {
          end = this.at
          words.push(plain)
          sources.push(plain)
          continue
        }
        const parameter = this.plainParameter()
        if (parameter !== undefined) {
          end = this.at
          dynamic = true
          unknown.push(words.length)
          words.push(parameter)
          sources.push(parameter)
          continue
        }
      }
      const word = this.word()
      if (word === undefined) return false
      end = this.at
      dynamic ||= word.dynamic
      if (first === undefined) {
        const name = assignment.exec(word.value)
        if (name !== null && (word.isPlain || name[0].length <= word.plain)) {
          assignments.push(word.value)
          continue
        }
        if ((word.isPlain && keywords.has(word.value)) || word.value === "[[")
          return this.fail(`a control structure (${word.value})`)
        if (word.glob) dynamic = word.dynamic = true
        first = word
      }
      if (word.dynamic) unknown.push(words.length)
      words.push(word.value)
      sources.push(this.text.slice(begin, end))
    }
    if (this.commands.length >= maxCommands) return this.fail(`it holds more than ${maxCommands} commands`)
    this.commands.push({
      program: words[0] ?? "",
      words,
      sources,
      text: start < 0 ? "" : this.text.slice(start, end),
      dynamic,
      unknown,
      named: first === undefined || first.named,
      fed,
      assignments
    })
    return true
  }

  /** Nothing where no redirection begins here. */
  private redirect(): Word | undefined | false {
    if (!mayRedirect(this.text.charCodeAt(this.at))) return undefined
    redirectAt.lastIndex = this.at
    const match = redirectAt.exec(this.text)
    if (match === null) return undefined
    const [, digits = "", operator = ""] = match
    // `&>` takes no descriptor: what stands before it is a word.
    if (digits !== "" && operator.startsWith("&")) return undefined
    if (digits.length > 1) return this.fail("a descriptor of several digits, which is a word to some shells")
    if (operator === "<<") return this.fail("a here-document or here-string")
    this.at += match[0].length
    if (this.peek() === "(") return this.fail("a process substitution")
    this.blanks()
    const start = this.at
    const word = this.word()
    if (word === undefined) return false
    if (this.at === start) return this.fail("a redirection without a target")
    if (word.glob) word.dynamic = true
    this.compound = true
    if (this.redirects.length >= maxCommands) return this.fail(`it holds more than ${maxCommands} redirections`)
    this.redirects.push({ operator: match[0], target: word.value })
    return word
  }

  /** A word of letters and signs that mean nothing to a shell; most words are. Nothing for any other word. */
  private plainWord(): string | undefined {
    const { at, text } = this
    // A tilde in front is expanded.
    if (text.charCodeAt(at) === 0x7e) return undefined
    let end = at
    let brace = -1
    for (; ; end++) {
      const code = text.charCodeAt(end)
      if (isPlainCode(code)) continue
      if (code !== 0x7b) break
      if (brace < 0) brace = end
    }
    if (end === at || (end < text.length && !isWordEnd(text.charCodeAt(end)))) return undefined
    // Braces without a list in them are letters too.
    if (brace >= 0 && isBraceList(text.slice(brace, end))) return undefined
    this.at = end
    return text.slice(at, end)
  }

  /** A word that is a parameter and nothing else: its value is the only thing not known about it. */
  private plainParameter(): string | undefined {
    const { at, text } = this
    if (text.charCodeAt(at) !== 0x24) return undefined
    parameterAt.lastIndex = at
    if (!parameterAt.test(text)) return undefined
    const end = parameterAt.lastIndex
    if (end < text.length && !isWordEnd(text.charCodeAt(end))) return undefined
    this.at = end
    return text.slice(at, end)
  }

  private plainPart(): string {
    const { at, text } = this
    let end = at
    while (isPlainCode(text.charCodeAt(end))) end++
    this.at = end
    return text.slice(at, end)
  }

  private word(): Word | undefined {
    const word = new Word()
    for (;;) {
      const char = this.peek()
      if (char === "" || isWordEnd(char.charCodeAt(0))) return word.end()
      switch (char) {
        case "\\": {
          const next = this.text[this.at + 1]
          if (next === undefined || next === "\n") return this.no("a backslash at the end of a line")
          word.quote()
          word.value += next
          this.at += 2
          continue
        }
        case "'": {
          const close = this.text.indexOf("'", this.at + 1)
          if (close < 0) return this.no("a quote is not closed")
          word.quote()
          word.value += this.text.slice(this.at + 1, close)
          this.at = close + 1
          continue
        }
        case '"':
          if (!this.doubleQuoted(word)) return undefined
          continue
        case "$":
          if (!this.dollar(word, false)) return undefined
          continue
        case "`":
          if (!this.backquoted(word, false)) return undefined
          continue
        case "*":
        case "?":
        case "[":
          // At the beginning of a word it may expand to a file that is named like an option.
          if (word.value === "") word.dynamic = true
          word.quote()
          word.glob = true
          word.value += char
          word.unknownTo = word.value.length
          break
        case "{":
          if (word.brace < 0) word.brace = word.value.length
          word.value += char
          break
        default: {
          const plain = this.plainPart()
          if (plain === "" && /\s/.test(char)) return this.no("white space that not every shell knows")
          word.value += plain === "" ? char : plain
          if (plain !== "") continue
        }
      }
      this.at++
    }
  }

  private doubleQuoted(word: Word): boolean {
    word.quote()
    this.at++
    for (;;) {
      const char = this.peek()
      if (char === "") return this.fail("a quote is not closed")
      if (char === '"') {
        this.at++
        return true
      }
      if (char === "$") {
        if (!this.dollar(word, true)) return false
      } else if (char === "`") {
        if (!this.backquoted(word, true)) return false
      } else if (char === "\\") {
        const next = this.text[this.at + 1] ?? ""
        if (next === "\n") return this.fail("a backslash at the end of a line")
        word.value += next !== "" && '$`"\\'.includes(next) ? next : char + next
        this.at += 2
      } else word.value += this.skip(quotedCharacters)
    }
  }

  private dollar(word: Word, quoted: boolean): boolean {
    const start = this.at
    const next = this.text[start + 1] ?? ""
    if (next === "(") {
      const read = this.text[start + 2] === "(" ? this.arithmetic() : this.nested(2)
      if (!read) return false
      word.expansion(this.text.slice(start, this.at), quoted)
      return true
    }
    if (next === "[" || (!quoted && (next === "'" || next === '"'))) return this.fail(`a $${next} expansion`)
    const shape = next === "{" ? bracedParameterAt : parameterAt
    shape.lastIndex = start
    const match = shape.exec(this.text)
    if (match !== null) {
      this.at += match[0].length
      word.expansion(match[0], quoted)
      return true
    }
    if (next === "{") return this.fail("an expansion in braces")
    word.quote()
    word.value += "$"
    this.at++
    // Some shells expand these too.
    if (next !== "" && "+^=~".includes(next)) word.dynamic = true
    return true
  }

  /** `$((…))` with nothing in it that could run a command. */
  private arithmetic(): boolean {
    this.at += 3
    for (let open = 2; open > 0; this.at++) {
      if (open > 1) this.skip(arithmeticCharacters)
      const char = this.peek()
      const variable = char === "$" && /[A-Za-z_0-9#?]/.test(this.text[this.at + 1] ?? "")
      if (char === ")") open--
      // `$((a)&&(b))` may be read as two subshells.
      else if (open === 1 || (char !== "(" && !variable)) return this.fail("an arithmetic expansion")
      else if (char === "(") open++
    }
    return true
  }

  private skip(shape: RegExp): string {
    shape.lastIndex = this.at
    const skipped = shape.exec(this.text)?.[0] ?? ""
    this.at += skipped.length
    return skipped
  }

  private backquoted(word: Word, quoted: boolean): boolean {
    const close = this.text.indexOf("`", this.at + 1)
    if (close < 0) return this.fail("a backquote is not closed")
    const inner = new Scanner(this.text.slice(this.at + 1, close), this.depth + 1, this.fed)
    // Backslashes are unescaped twice here, and shells differ about quotes within quotes.
    if (inner.text.includes("\\")) return this.fail("a backslash in backquotes")
    if (quoted && inner.text.includes('"')) return this.fail("quotes in quoted backquotes")
    if (this.depth + 1 > maxDepth) return this.fail("it is nested too deeply")
    if (!inner.list(false)) return this.fail(inner.problem)
    if (this.commands.length + inner.commands.length > maxCommands) {
      return this.fail(`it holds more than ${maxCommands} commands`)
    }
    this.commands.push(...inner.commands)
    this.redirects.push(...inner.redirects)
    this.compound = true
    word.expansion(this.text.slice(this.at, close + 1), quoted)
    this.at = close + 1
    return true
  }

  /** Nothing where no operator begins here. `;;` and its like fail later, where a command is expected after `;`. */
  private operator(): string | undefined {
    const two = this.text.slice(this.at, this.at + 2)
    if (two === "&&" || two === "||" || two === "|&") return two
    const one = this.peek()
    if (one === "&" && two === "&>") return undefined
    return one === ";" || one === "&" || one === "|" ? one : undefined
  }

  /** A backslash at the end of a line continues it, but only after a blank: elsewhere it could join an operator. */
  private blanks(): void {
    let blank = this.at === 0
    for (;;) {
      const char = this.peek()
      if (char === " " || char === "\t") this.at++
      else if (
        char === "\\" &&
        this.text[this.at + 1] === "\n" &&
        (blank || " \t".includes(this.text[this.at - 1] ?? ""))
      )
        this.at += 2
      else return
      blank = true
    }
  }

  private peek(): string {
    return this.text[this.at] ?? ""
  }

  private fail(reason: string): false {
    this.problem = reason
    return false
  }

  private no(reason: string): undefined {
    this.problem = reason
    return undefined
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const assignment = /^[A-Za-z_][A-Za-z0-9_]*\+?=/
const redirectAt = /(\d*)(<<|<&|<>|<|>>|>&|>\||>|&>>|&>)/y
const parameterAt = /\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])/y
// Neighbouring parts share no character, so the expression never backtracks over text it has read.
const bracedParameterAt =
  /\$\{[!#]?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(?:\[[A-Za-z0-9_@*]+\])?(?:[:%#/^,+=?@*-][^"'`$\\{}()]*)?\}/y
const quotedCharacters = /[^"$`\\]+/y
const arithmeticCharacters = /[A-Za-z0-9_ \t+*/%=!&|^~?:,<>.-]*/y

/** By character code, below 128: what means nothing to a shell, what ends a word, what may begin a redirection. */
const marks = new Uint8Array(128)
const plainMark = 1
const endMark = 2
const redirectMark = 4
for (let code = 0; code < marks.length; code++) {
  const char = String.fromCharCode(code)
  if (/[A-Za-z0-9_./=:,@%+!^~#\]}-]/.test(char)) marks[code] = plainMark
  if (/[ \t\n;&|<>()]/.test(char)) marks[code] = endMark
  if (/[0-9<>&]/.test(char)) marks[code] = (marks[code] ?? 0) | redirectMark
}
/** Behind the end of the text the code is no number. */
const markOf = (code: number): number => (code < 128 ? (marks[code] ?? 0) : 0)
const isPlainCode = (code: number): boolean =>
  code < 128 ? ((marks[code] ?? 0) & plainMark) !== 0 : code >= 128 && !(code >= 0xa0 && isStrangeSpace(code))
const isStrangeSpace = (code: number): boolean =>
  code === 0xa0 || (code >= 0x1680 && (code < 0x3001 || code === 0xfeff) && /\s/.test(String.fromCharCode(code)))
const isWordEnd = (code: number): boolean => (markOf(code) & endMark) !== 0
const mayRedirect = (code: number): boolean => (markOf(code) & redirectMark) !== 0

const maxDepth = 16
