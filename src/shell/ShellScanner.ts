/**
 * Reads a shell command from left to right, once. Anything it does not know with certainty ends the reading.
 *
 * Use it through `ShellGrammar.parse`, which refuses strange characters first.
 */
import { isBraceList, keywords, maxCommands, Word, type Redirect, type SimpleCommand } from "./ShellSyntax.js"

/** Where a list ends: with the text, at a parenthesis, with a branch of a case, or at one of these words. */
type End = "text" | ")" | "branch" | ReadonlySet<string>

/** A here-document whose text is still to come. */
interface Here {
  readonly end: string
  /** Tabs in front of its lines do not count. */
  readonly isIndented: boolean
  /** Its text is expanded. */
  readonly isOpen: boolean
}

/** Reads from `at` on. Every method that can fail answers false (or nothing) and leaves the reason in `problem`. */
export class Scanner {
  at = 0
  problem = ""
  compound = false
  loops = false
  readonly commands: Array<SimpleCommand> = []
  readonly redirects: Array<Redirect> = []
  readonly sets: Array<string> = []
  private heres: Array<Here> = []
  /** How many `$(…)` and `<(…)` are around. */
  private inside = 0
  /** `!` or `||` stands in front: if the next command fails, what stands behind its `&&` may still run. */
  private unsure = false

  constructor(
    private readonly text: string,
    private depth: number,
    /** The next command gets its input from another command or a file. */
    private fed = false
  ) {}

  /** Commands up to the end, which stays. At least one. */
  list(end: End): boolean {
    const before = this.commands.length
    const fed = this.fed
    let state: "start" | "after" | "required" = "start"
    for (;;) {
      this.blanks()
      const char = this.peek()
      if (this.isEnd(end, char, state === "start")) {
        if (state === "required") return this.fail("a command is missing after an operator")
        if (typeof end === "string" && this.heres.length > 0) return this.fail("a here-document without its text")
        this.fed = fed
        return this.commands.length > before || this.fail("there is no command")
      }
      if (char === "") return this.fail(end === ")" ? "a parenthesis is not closed" : "a structure is not closed")
      if (char === ")") return this.fail("a stray )")
      if (char === "#") {
        this.comment()
        continue
      }
      if (char === "\n") {
        this.at++
        if (!this.bodies()) return false
        if (state === "after") {
          this.compound = true
          state = "start"
          this.unsure = false
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
        const isPiped = operator === "|" || operator === "|&"
        this.unsure = operator === "||" || (isPiped && this.unsure)
        this.fed = fed || isPiped
        continue
      }
      if (state === "after") return this.fail("words after a structure or a closing parenthesis")
      if (char === "!" && isBlank(this.text[this.at + 1])) {
        this.at++
        this.compound = true
        this.unsure = true
        state = "required"
        continue
      }
      if (!this.command(char)) return false
      state = "after"
    }
  }

  private isEnd(end: End, char: string, isStart: boolean): boolean {
    switch (end) {
      case "text":
        return char === ""
      case ")":
        return char === ")"
      case "branch":
        return char === ";" ? this.text[this.at + 1] === ";" : isStart && this.reserved() === "esac"
      default:
        return isStart && end.has(this.reserved() ?? "")
    }
  }

  /** One command, or one structure with its redirections. */
  private command(char: string): boolean {
    const first = this.commands.length
    if (char === "(") {
      if (this.text[this.at + 1] === "(") return this.counted()
      return this.nested(1) && this.redirected(first)
    }
    const word = this.reserved()
    if (word === undefined) return this.simple()
    if (++this.depth > maxDepth) return this.fail("it is nested too deeply")
    this.compound = true
    const { unsure } = this
    if (!this.structure(word)) return false
    this.unsure = unsure
    this.depth--
    return this.redirected(first)
  }

  private structure(word: string): boolean {
    switch (word) {
      case "{":
        return this.take(word) && this.list(closing.brace) && this.take("}")
      case "if":
        return this.condition()
      case "while":
      case "until":
        this.loops = true
        return this.take(word) && this.list(closing.condition) && this.body()
      case "for":
        return this.take(word) && this.loop()
      case "case":
        return this.take(word) && this.branches()
      case "[[":
        return this.test()
      default:
        return this.fail(`a control structure (${word})`)
    }
  }

  /** The word of a structure that begins here. */
  private reserved(): string | undefined {
    reservedAt.lastIndex = this.at
    return reservedAt.exec(this.text)?.[0]
  }

  private take(word: string): boolean {
    if (this.reserved() !== word) return this.fail(`${word} is missing`)
    this.at += word.length
    return true
  }

  private condition(): boolean {
    let word = "if"
    while (word !== "else") {
      if (!(this.take(word) && this.list(closing.test) && this.take("then") && this.list(closing.branch))) return false
      word = this.reserved() ?? ""
      if (word === "fi") return this.take(word)
    }
    return this.take(word) && this.list(closing.end) && this.take("fi")
  }

  private body(): boolean {
    return this.take("do") && this.list(closing.loop) && this.take("done")
  }

  /** `NAME in WORDS` or `((…))`, and the body. */
  private loop(): boolean {
    this.loops = true
    this.blanks()
    if (this.text.startsWith("((", this.at)) {
      this.at += 2
      if (!this.arithmetic(";")) return false
    } else {
      const name = this.skip(nameAt)
      if (name === "" || !isBreak(this.peek())) return this.fail("a loop without a variable")
      this.sets.push(name)
      if (!this.lines()) return false
      if (this.reserved() === "in" && !(this.take("in") && this.words(";\n"))) return false
    }
    this.blanks()
    if (this.peek() === ";") this.at++
    return this.lines() && this.body()
  }

  /** Words up to one of these characters, which stays. */
  private words(ends: string): boolean {
    for (;;) {
      this.blanks()
      const char = this.peek()
      if (char === "" || char === "#" || ends.includes(char)) return true
      if (!this.operand()) return false
    }
  }

  private operand(): boolean {
    const start = this.at
    if (this.word() === undefined) return false
    return this.at > start || this.fail("a word of a structure is missing")
  }

  private branches(): boolean {
    this.blanks()
    if (!this.operand() || !this.lines() || !this.take("in")) return false
    for (;;) {
      if (!this.lines()) return false
      if (this.reserved() === "esac") return this.take("esac")
      if (this.peek() === "(") this.at++
      // Old shells end the substitution at the parenthesis of the pattern.
      else if (this.inside > 0) return this.fail("a pattern of a case in a substitution")
      do {
        this.blanks()
        if (!this.operand()) return false
        this.blanks()
      } while (this.peek() === "|" && ++this.at > 0)
      if (this.peek() !== ")") return this.fail("a case without a pattern")
      this.at++
      if (!this.lines()) return false
      const isEmpty = this.text.startsWith(";;", this.at) || this.reserved() === "esac"
      if (!isEmpty && !this.list("branch")) return false
      if (this.text.startsWith(";;", this.at)) {
        this.at += 2
        if (this.peek() === "&") return this.fail("a branch that goes on in the next one")
      }
    }
  }

  /**
   * `[[ … ]]`. Other shells take it for a program of that name, which they do not find, and its `&&` and `||` for their
   * own. So nothing behind those may be a program, unless it never runs.
   */
  private test(): boolean {
    const start = this.at
    const words = ["[["]
    const unknown: Array<number> = []
    this.at += 2
    for (;;) {
      this.blanks()
      const char = this.peek()
      const joint = this.text.slice(this.at, this.at + 2)
      if (joint === "&&" || joint === "||") {
        this.at += 2
        this.blanks()
        testAt.lastIndex = this.at
        if ((joint === "||" || this.unsure) && !testAt.test(this.text)) return this.fail(`${joint} in a test`)
        words.push(joint)
        continue
      }
      const from = this.at
      const word = this.word()
      if (word === undefined) return false
      if (this.at === from) return this.fail(char === "" ? "a test is not closed" : "an operator in a test")
      if (word.isPlain && word.value === "]]") break
      if (word.dynamic) unknown.push(words.length)
      words.push(word.value)
    }
    if (words.length === 1) return this.fail("an empty test")
    words.push("]]")
    return this.add({ words, sources: words, text: this.text.slice(start, this.at), unknown })
  }

  /** `((x++))`, and no more of it: other shells take it for a program in parentheses. */
  private counted(): boolean {
    const [text, name = ""] = this.match(countAt) ?? []
    if (text === undefined) return this.fail("an arithmetic command")
    this.compound = true
    this.sets.push(name)
    this.at += text.length
    const words = ["((", text.slice(2, -2), "))"]
    return this.add({ words, sources: words, text, unknown: [] })
  }

  private add(
    command: Pick<SimpleCommand, "words" | "sources" | "text" | "unknown"> & Partial<SimpleCommand>
  ): boolean {
    if (this.commands.length >= maxCommands) return this.fail(`it holds more than ${maxCommands} commands`)
    this.commands.push({
      program: command.words[0] ?? "",
      dynamic: command.unknown.length > 0,
      named: true,
      fed: this.fed,
      assignments: [],
      globs: [],
      ...command
    })
    return true
  }

  /** The redirections behind a structure. */
  private redirected(first: number): boolean {
    for (;;) {
      this.blanks()
      const found = this.redirect()
      if (found === false) return false
      if (found === undefined) return true
      const { operator, target } = found
      if (operator.includes("<")) this.feedFrom(first, target.dynamic)
      else if (target.dynamic) return this.fail("a redirection to an unknown place")
    }
  }

  /** Commands inside a structure read the input of the structure. */
  private feedFrom(first: number, dynamic: boolean): void {
    for (let i = first; i < this.commands.length; i++) {
      const command = this.commands[i]
      if (command !== undefined) this.commands[i] = { ...command, fed: true, dynamic: command.dynamic || dynamic }
    }
  }

  /** The list in parentheses that begins `skip` characters from here, and its closing parenthesis. */
  private nested(skip: number): boolean {
    if (++this.depth > maxDepth) return this.fail("it is nested too deeply")
    if (this.heres.length > 0) return this.fail("parentheses behind a here-document")
    const { unsure } = this
    this.unsure = false
    this.compound = true
    this.at += skip
    if (!this.list(")")) return false
    this.at++
    this.depth--
    this.unsure = unsure
    return true
  }

  /** A list in a substitution. */
  private substituted(fed = this.fed): boolean {
    const before = this.fed
    this.fed = fed
    this.inside++
    if (!this.nested(2)) return false
    this.inside--
    this.fed = before
    return true
  }

  private simple(): boolean {
    let start = -1
    let end = -1
    let dynamic = false
    let ended = false
    let isArray = false
    let { fed } = this
    let first: Word | undefined
    const words: Array<string> = []
    const sources: Array<string> = []
    const assignments: Array<string> = []
    const unknown: Array<number> = []
    const globs: Array<number> = []
    for (;;) {
      this.blanks()
      const char = this.peek()
      if ((char === "<" || char === ">") && this.text[this.at + 1] === "(") {
        const begin = this.at
        if (first === undefined || !this.substitutes(char)) return this.fail("a process substitution that is no word")
        end = this.at
        dynamic = true
        unknown.push(words.length)
        words.push(this.text.slice(begin, end))
        sources.push(this.text.slice(begin, end))
        continue
      }
      const found = this.redirect()
      if (found === false) return false
      if (found !== undefined) {
        const { operator, target } = found
        dynamic ||= target.dynamic
        ended ||= operator.startsWith("&")
        fed ||= operator.includes("<") && target.value !== "/dev/null"
        continue
      }
      if (char === "(") {
        const last = assignments.at(-1) ?? ""
        if (first !== undefined || this.at !== end || !/^\w+\+?=$/.test(last))
          return this.fail("a function or a pattern in parentheses")
        if (!this.array()) return false
        assignments[assignments.length - 1] = last + this.text.slice(end, this.at)
        end = this.at
        // Nothing else stands behind an array.
        isArray = true
        continue
      }
      if (char === "" || char === "#" || "\n;&|)".includes(char)) break
      // To some shells `a &> b c` is `a &` and then `c > b`.
      if (ended) return this.fail("words after &>")
      if (isArray) return this.fail("words after an array")
      const begin = this.at
      if (start < 0) start = begin
      if (first !== undefined) {
        const plain = this.plainWord(timing.has(words[0] ?? ""))
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
      // To some shells `time` is a word of the grammar, and a structure follows.
      else if (word.isPlain && keywords.has(word.value) && words.every((before) => timing.has(before)))
        return this.fail(`a control structure (${word.value})`)
      if (word.dynamic) unknown.push(words.length)
      if (word.glob) globs.push(words.length)
      words.push(word.value)
      sources.push(this.text.slice(begin, end))
    }
    return this.add({
      words,
      sources,
      text: start < 0 ? "" : this.text.slice(start, end),
      dynamic,
      unknown,
      globs,
      named: first === undefined || first.named,
      fed,
      assignments
    })
  }

  /** `<(…)` or `>(…)` as a word of its own. */
  private substitutes(char: string): boolean {
    if (!/[ \t\n]/.test(this.text[this.at - 1] ?? "") || !this.substituted(this.fed || char === ">")) return false
    return this.isAtEnd
  }

  /** The words of an array. */
  private array(): boolean {
    this.at++
    do if (!this.words(")\n")) return false
    while (this.peek() !== ")" && this.peek() !== "" && this.lines())
    if (this.peek() !== ")") return this.fail("an array is not closed")
    this.at++
    return this.isAtEnd || this.fail("words after an array")
  }

  private get isAtEnd(): boolean {
    return this.at >= this.text.length || isWordEnd(this.text.charCodeAt(this.at))
  }

  /** Nothing where no redirection begins here. */
  private redirect(): { readonly operator: string; readonly target: Word } | undefined | false {
    if (!mayRedirect(this.text.charCodeAt(this.at))) return undefined
    const match = this.match(redirectAt)
    if (match === undefined) return undefined
    const [, digits = "", operator = ""] = match
    // `&>` takes no descriptor: what stands before it is a word.
    if (digits !== "" && operator.startsWith("&")) return undefined
    if (digits.length > 1) return this.fail("a descriptor of several digits, which is a word to some shells")
    this.at += match[0].length
    if (this.peek() === "(") return this.fail("a process substitution")
    this.blanks()
    this.compound = true
    if (operator === "<<" || operator === "<<-") {
      const target = this.here(operator)
      return target !== undefined && { operator, target }
    }
    const start = this.at
    const target = this.target(operator)
    if (target === undefined) return false
    if (this.at === start) return this.fail("a redirection without a target")
    if (operator === "<<<") return { operator, target }
    if (target.glob) target.dynamic = true
    if (this.redirects.length >= maxCommands) return this.fail(`it holds more than ${maxCommands} redirections`)
    this.redirects.push({ operator: match[0], target: target.value })
    return { operator, target }
  }

  private target(operator: string): Word | undefined {
    const char = this.peek()
    if ((operator !== "<" && operator !== ">") || char !== operator || this.text[this.at + 1] !== "(")
      return this.word()
    const start = this.at
    if (!this.substitutes(char)) return this.no("a process substitution")
    const word = new Word()
    word.expansion(this.text.slice(start, this.at), true)
    return word.end()
  }

  /** The word that ends a here-document; its text is read when the line ends. */
  private here(operator: "<<" | "<<-"): Word | undefined {
    const word = this.word()
    if (word === undefined) return undefined
    if (word.dynamic || !/^[\w.+-]+$/.test(word.value)) return this.no("a here-document with an unusual end")
    if (this.heres.length >= maxCommands) return this.no(`it holds more than ${maxCommands} here-documents`)
    this.heres.push({ end: word.value, isIndented: operator === "<<-", isOpen: word.isPlain })
    return word
  }

  /** The texts of the here-documents of the line that ended. */
  private bodies(): boolean {
    const { heres } = this
    if (heres.length === 0) return true
    this.heres = []
    for (const here of heres) {
      const from = this.at
      const to = this.bodyEnd(here)
      if (to === undefined) return false
      const { at } = this
      if (here.isOpen && !this.expanded(from, to)) return false
      this.at = at
    }
    return true
  }

  /** Where the text ends; the line behind it is passed. */
  private bodyEnd({ end, isIndented, isOpen }: Here): number | undefined {
    for (let to = this.at; to < this.text.length;) {
      const next = this.text.indexOf("\n", to)
      const stop = next < 0 ? this.text.length : next
      let own = to
      if (isIndented) while (this.text[own] === "\t") own++
      if (this.text.startsWith(end, own)) {
        if (own + end.length === stop) {
          this.at = Math.min(stop + 1, this.text.length)
          return to
        }
        // Some shells end the text there.
        if (this.inside > 0) return this.no("a here-document with an unclear end")
      }
      // It joins lines, and may hide the end.
      if (isOpen && this.text[stop - 1] === "\\") return this.no("a backslash at the end of a line")
      to = stop + 1
    }
    return this.no("a here-document is not closed")
  }

  /** The substitutions in the text of a here-document. */
  private expanded(from: number, to: number): boolean {
    for (this.at = from; this.at < to;) {
      const char = this.peek()
      if (char === "\\") this.at += 2
      else if (char === "$" || char === "`") {
        const word = new Word()
        if (!(char === "$" ? this.dollar(word, true) : this.backquoted(word, true))) return false
        if (this.at > to) return this.fail("an expansion that is not closed")
      } else if (this.skip(quotedCharacters) === "") this.at++
    }
    return true
  }

  /** A word of letters and signs that mean nothing to a shell; most words are. Nothing for any other word. */
  private plainWord(isTimed: boolean): string | undefined {
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
    const word = text.slice(at, end)
    if (isTimed && keywords.has(word)) return undefined
    this.at = end
    return word
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
          const quoted = this.text.slice(this.at + 1, close)
          if (this.heres.length > 0 && quoted.includes("\n")) return this.no("a quote behind a here-document")
          word.quote()
          word.value += quoted
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
    const start = this.at++
    for (;;) {
      const char = this.peek()
      if (char === "") return this.fail("a quote is not closed")
      if (char === '"') {
        this.at++
        if (this.heres.length === 0) return true
        return !this.text.slice(start, this.at).includes("\n") || this.fail("a quote behind a here-document")
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
      if (this.text[start + 2] === "(") {
        this.at += 3
        if (!this.arithmetic("")) return false
      } else if (!this.substituted()) return false
      word.expansion(this.text.slice(start, this.at), quoted)
      return true
    }
    if (!quoted && next === "'") {
      const [text] = this.match(escapedAt) ?? []
      // Shells differ about a quote behind a backslash, and about the value.
      if (text === undefined) return this.fail("a $' expansion")
      this.at += text.length
      word.expansion(text, true)
      return true
    }
    if (next === "[" || (!quoted && next === '"')) return this.fail(`a $${next} expansion`)
    if (next === "{") {
      if (!this.braced(quoted)) return false
      word.expansion(this.text.slice(start, this.at), quoted)
      return true
    }
    const [parameter] = this.match(parameterAt) ?? []
    if (parameter !== undefined) {
      this.at += parameter.length
      word.expansion(parameter, quoted)
      return true
    }
    word.quote()
    word.value += "$"
    this.at++
    // Some shells expand these too.
    if (next !== "" && "+^=~".includes(next)) word.dynamic = true
    return true
  }

  /** `${…}`, with whatever expansions are in it. */
  private braced(quoted: boolean): boolean {
    const [head, name = "", operator = ""] = this.match(bracedAt) ?? []
    if (head === undefined) return this.fail("an expansion in braces")
    this.at += head.length
    // It runs what the variable holds.
    if (operator === "@" && this.peek() === "P") return this.fail("an expansion that runs text")
    if (operator === "=" || operator === ":=") this.sets.push(name)
    if (++this.depth > maxDepth) return this.fail("it is nested too deeply")
    const end = this.at
    for (;;) {
      this.skip(bracedCharacters)
      const char = this.peek()
      const inner = new Word()
      if (char === "}" && (operator !== "" || this.at === end)) {
        this.at++
        this.depth--
        return true
      }
      if (operator === "") return this.fail("an expansion in braces")
      if (char === "$") {
        if (!this.dollar(inner, quoted)) return false
      } else if (char === "`") {
        if (!this.backquoted(inner, quoted)) return false
      } else if (char === '"' && !quoted) {
        if (!this.doubleQuoted(inner)) return false
      } else if (char === "\\" && (this.text[this.at + 1] ?? "\n") !== "\n") this.at += 2
      else return this.fail("an expansion in braces")
    }
  }

  /** Up to `))`. `apart` may stand between expressions. */
  private arithmetic(apart: "" | ";"): boolean {
    const start = this.at
    if (++this.depth > maxDepth) return this.fail("it is nested too deeply")
    for (let open = 2; open > 0;) {
      if (open > 1) this.skip(arithmeticCharacters)
      const char = this.peek()
      // `$((a)&&(b))` may be read as two subshells.
      if (char !== ")" && open === 1) return this.fail("an arithmetic expansion")
      if (char === "$") {
        if (!/[A-Za-z_0-9#?{(]/.test(this.text[this.at + 1] ?? "")) return this.fail("an arithmetic expansion")
        if (!this.dollar(new Word(), true)) return false
        continue
      }
      if (char === ")") open--
      else if (char === "(") open++
      else if (char === "" || char !== apart) return this.fail("an arithmetic expansion")
      this.at++
    }
    this.depth--
    const text = this.text.slice(start, this.at)
    if (assigning.test(text)) this.sets.push(...(text.match(/[A-Za-z_]\w*/g) ?? []))
    return true
  }

  private match(shape: RegExp): RegExpExecArray | undefined {
    shape.lastIndex = this.at
    return shape.exec(this.text) ?? undefined
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
    if (this.heres.length > 0) return this.fail("backquotes behind a here-document")
    if (this.depth + 1 > maxDepth) return this.fail("it is nested too deeply")
    if (!inner.list("text")) return this.fail(inner.problem)
    if (this.commands.length + inner.commands.length > maxCommands) {
      return this.fail(`it holds more than ${maxCommands} commands`)
    }
    this.commands.push(...inner.commands)
    this.redirects.push(...inner.redirects)
    this.sets.push(...inner.sets)
    this.loops ||= inner.loops
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

  private comment(): void {
    const end = this.text.indexOf("\n", this.at)
    this.at = end < 0 ? this.text.length : end
  }

  /** Blanks, comments and ends of lines. */
  private lines(): boolean {
    for (;;) {
      this.blanks()
      const char = this.peek()
      if (char === "#") this.comment()
      else if (char !== "\n") return true
      else {
        this.at++
        if (!this.bodies()) return false
      }
    }
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
        this.heres.length === 0 &&
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
const redirectAt = /(\d*)(<<<|<<-?|<&|<>|<|>>|>&|>\||>|&>>|&>)/y
const parameterAt = /\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])/y
// Neighbouring parts share no character, so the expression never backtracks over text it has read.
const bracedAt =
  /\$\{[!#]?([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(?:\[(?:[A-Za-z0-9_@*]+|\$[A-Za-z_][A-Za-z0-9_]*)\])?(:?[=+?-]|:|%%?|##?|\/\/?|\^\^?|,,?|@|\*)?/y
const bracedCharacters = /[^"'`$\\{}()\n]*/y
const escapedAt = /\$'(?:[^'\\]|\\[^'])*'/y
const quotedCharacters = /[^"$`\\]+/y
const arithmeticCharacters = /[A-Za-z0-9_ \t+*/%=!&|^~?:,<>.[\]-]*/y
/** The arithmetic sets a variable. */
const assigning = /(?:^|[^=!<>])=(?!=)|<<=|>>=|\+\+|--/
const nameAt = /[A-Za-z_][A-Za-z0-9_]*/y
const countAt = /\(\(([A-Za-z_][A-Za-z0-9_]*)(?:\+\+|--|[+-]?=[0-9]+)\)\)/y
/** An operator of a test, which is no program's name. */
const testAt = /(?:![ \t]+)?-[A-Za-z][ \t]/y
/** Where a structure begins, goes on or ends. `[[` and `{` need a blank. */
const reservedAt =
  /(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|in|function|select|coproc|\})(?=[ \t\n;&|()<>]|$)|(?:\{|\[\[)(?=[ \t\n])/y

const closing = {
  brace: new Set(["}"]),
  test: new Set(["then"]),
  branch: new Set(["elif", "else", "fi"]),
  end: new Set(["fi"]),
  condition: new Set(["do"]),
  loop: new Set(["done"])
} as const

const timing: ReadonlySet<string> = new Set(["time", "-p", "--"])

const isBlank = (char: string | undefined): boolean => char === " " || char === "\t"
const isBreak = (char: string): boolean => char === ";" || char === "\n" || isBlank(char)

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
