/**
 * Finds the programs of a text that `ShellGrammar` refuses: loops, functions, here-documents, and what else is shell.
 *
 * It looks for words in command position and takes quoted text as data, so it neither allows nor refuses anything with
 * certainty. Rules that deny compare what it finds; what it misses is asked about, because the text cannot be parsed.
 */

/** A program that the text runs. */
export interface Found {
  /** Unquoted, the program first. Expansions stand as they were written. */
  readonly words: ReadonlyArray<string>
  /** False if the program is an expansion. */
  readonly named: boolean
}

/** Takes time proportional to the text. */
export const find = (
  text: string
): { readonly programs: ReadonlyArray<Found>; readonly targets: ReadonlyArray<string> } => {
  const finder = new Finder(text)
  finder.list("")
  return finder
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxDepth = 16

/** Nobody writes longer ones, and each is looked through. */
const maxArithmetic = 4_096

/** A command begins behind them. */
const openers: ReadonlySet<string> = new Set("if then elif else while until do { ! time coproc".split(" "))

/** They end a structure; what follows is an operator or a redirection. */
const closers: ReadonlySet<string> = new Set("fi done esac }".split(" "))

interface Here {
  readonly end: string
  /** Tabs in front of the end do not count. */
  readonly isIndented: boolean
  /** The body is expanded. */
  readonly isOpen: boolean
}

interface Word {
  value: string
  /** Some part of it is quoted, so it is no keyword. */
  quoted: boolean
  /** Some part of it is an expansion. */
  dynamic: boolean
}

class Finder {
  at = 0
  readonly programs: Array<Found> = []
  /** The files of redirections. */
  readonly targets: Array<string> = []
  private depth = 0
  private words: Array<Word> = []
  private heres: Array<Here> = []

  constructor(private readonly text: string) {}

  /** Commands up to `end` or the end of the text. `)` or a backquote is consumed. */
  list(end: "" | ")" | "`"): void {
    const { text } = this
    const outer = this.words
    this.words = []
    let cases = 0
    // Words behind `for NAME in` and `case` are data.
    let skips = false
    while (this.at < text.length) {
      const char = text[this.at] ?? ""
      if (end !== "" && char === end && (char !== ")" || cases === 0)) break
      if (char !== "\n" && /\s/.test(char)) this.at++
      else if (char === "\\" && text[this.at + 1] === "\n") this.at += 2
      else if (char === "#") this.comment()
      else if (char === "\n") {
        this.close()
        skips = false
        this.at++
        this.bodies()
      } else if (char === "(") {
        this.at++
        // `name ()` begins a function, `((…))` computes.
        if (this.words.length === 1 && /^[ \t]*\)/.test(text.slice(this.at, this.at + 8))) {
          this.words = []
          this.at = text.indexOf(")", this.at) + 1
        } else if (!this.computed()) this.nested(")")
      } else if (char === ")") {
        // The pattern of a case, else the end of something that began in a text.
        if (cases > 0) this.words = []
        else this.close()
        this.at++
      } else if (char === ";" || char === "&" || char === "|") {
        if (char === "&" && text[this.at + 1] === ">") {
          this.at++
          this.redirect()
          continue
        }
        this.close()
        skips = false
        this.at++
      } else if (char === "<" || char === ">") this.redirect()
      else {
        const from = this.at
        const word = this.word()
        if (word === undefined) break
        // The backquote around what is read.
        if (this.at === from) break
        if (/^\d$/.test(word.value) && /[<>]/.test(text[this.at] ?? "")) continue
        if (skips) {
          skips = word.value !== "in" && word.value !== "do"
          continue
        }
        if (this.words.length === 0 && !word.quoted) {
          if (openers.has(word.value) || closers.has(word.value)) {
            if (word.value === "esac") cases = Math.max(0, cases - 1)
            continue
          }
          if (word.value === "for" || word.value === "select" || word.value === "case") {
            if (word.value === "case") cases++
            skips = true
            continue
          }
          if (word.value === "function") {
            this.blank()
            this.word()
            continue
          }
          if (word.value === "[[") {
            this.test()
            continue
          }
        }
        this.words.push(word)
      }
    }
    this.close()
    this.at++
    this.words = outer
  }

  private nested(end: ")" | "`"): void {
    if (++this.depth <= maxDepth) this.list(end)
    else this.at = this.text.length
    this.depth--
  }

  /** The words that were read are a command. */
  private close(): void {
    const { words } = this
    this.words = []
    const start = words.findIndex(({ quoted, value }) => quoted || !/^[A-Za-z_]\w*\+?=/.test(value))
    const [program] = start < 0 ? [] : words.slice(start)
    if (program === undefined) return
    this.programs.push({ words: words.slice(start).map(({ value }) => value), named: !program.dynamic })
  }

  private comment(): void {
    const end = this.text.indexOf("\n", this.at)
    this.at = end < 0 ? this.text.length : end
  }

  private blank(): void {
    while (this.text[this.at] === " " || this.text[this.at] === "\t") this.at++
  }

  /** Up to `]]`, whose substitutions run. */
  private test(): void {
    while (this.at < this.text.length) {
      const before = this.at
      this.blank()
      const word = this.word()
      if (word === undefined || word.value === "]]") return
      if (this.at === before) this.at++
    }
  }

  /** Arithmetic behind one parenthesis: the rest of `((…))`. Its substitutions run. False for parentheses in parentheses. */
  private computed(): boolean {
    const { at, text } = this
    if (text[at] !== "(") return false
    let depth = 1
    let end = at + 1
    for (const last = Math.min(text.length, at + maxArithmetic); end < last && depth > 0; end++) {
      if (text[end] === "(") depth++
      else if (text[end] === ")") depth--
    }
    if (depth > 0 || text[end] !== ")") return false
    this.at = end + 1
    this.expandedIn(text.slice(at, end))
    return true
  }

  private redirect(): void {
    const { text } = this
    const operator = /^(?:<<<|<<-?|<&|>&|<>|>>|>\||[<>])/.exec(text.slice(this.at, this.at + 3))?.[0] ?? ""
    this.at += operator.length
    if ((operator === "<" || operator === ">") && text[this.at] === "(") {
      this.at++
      this.nested(")")
      return
    }
    this.blank()
    const word = this.word()
    if (word === undefined) return
    if (operator === "<<" || operator === "<<-")
      this.heres.push({ end: word.value, isIndented: operator === "<<-", isOpen: !word.quoted })
    else if (operator !== "<<<") this.targets.push(word.value)
  }

  /** The here-documents of the line that ended. */
  private bodies(): void {
    const { heres } = this
    this.heres = []
    for (const { end, isIndented, isOpen } of heres) {
      const from = this.at
      let to = from
      for (;;) {
        const next = this.text.indexOf("\n", to)
        const line = this.text.slice(to, next < 0 ? undefined : next)
        this.at = next < 0 ? this.text.length : next + 1
        if ((isIndented ? line.replace(/^\t+/, "") : line) === end) break
        to = this.at
        if (next < 0) break
      }
      if (isOpen) this.expanded(this.text.slice(from, to))
    }
  }

  /** The substitutions in a text between double quotes. */
  private expanded(body: string): void {
    const finder = new Finder(`"${body.replaceAll('"', " ")}"`)
    finder.depth = this.depth
    finder.word()
    this.programs.push(...finder.programs)
    this.targets.push(...finder.targets)
  }

  /** Nothing if a quote is not closed. */
  word(): Word | undefined {
    const { text } = this
    const word: Word = { value: "", quoted: false, dynamic: false }
    while (this.at < text.length) {
      const char = text[this.at] ?? ""
      if (/[\s;&|<>()]/.test(char)) return word
      if (char === "\\") {
        word.quoted = true
        if (text[this.at + 1] !== "\n") word.value += text[this.at + 1] ?? ""
        this.at += 2
      } else if (char === "'") {
        if (!this.quoted(word)) return undefined
      } else if (char === '"') {
        if (!this.doubleQuoted(word)) return undefined
      } else if (char === "$") this.dollar(word)
      else if (char === "`") {
        if (this.depth > 0 && this.isBackquoted) return word
        this.backquoted(word)
      } else {
        word.value += char
        this.at++
      }
    }
    return word
  }

  private isBackquoted = false

  private backquoted(word: Word): void {
    const from = this.at++
    const before = this.isBackquoted
    this.isBackquoted = true
    this.nested("`")
    this.isBackquoted = before
    word.value += this.text.slice(from, this.at)
    word.dynamic = true
  }

  private quoted(word: Word): boolean {
    const end = this.text.indexOf("'", this.at + 1)
    if (end < 0) return false
    word.quoted = true
    word.value += this.text.slice(this.at + 1, end)
    this.at = end + 1
    return true
  }

  private doubleQuoted(word: Word): boolean {
    const { text } = this
    word.quoted = true
    this.at++
    while (this.at < text.length) {
      const char = text[this.at] ?? ""
      if (char === '"') {
        this.at++
        return true
      }
      if (char === "$") this.dollar(word)
      else if (char === "`") this.backquoted(word)
      else {
        const next = text[this.at + 1] ?? ""
        const isEscape = char === "\\" && '$`"\\\n'.includes(next)
        word.value += isEscape ? next : char
        this.at += isEscape ? 2 : 1
      }
    }
    return false
  }

  private dollar(word: Word): void {
    const { text } = this
    const from = this.at
    const next = text[from + 1] ?? ""
    word.dynamic = true
    if (next === "(") {
      this.at += 2
      if (!this.computed()) this.nested(")")
    } else if (next === "{") {
      const end = text.indexOf("}", from)
      this.at = end < 0 ? text.length : end + 1
      this.expandedIn(text.slice(from + 2, this.at))
    } else if (next === "'") {
      this.at++
      const end = /'(?:[^'\\]|\\[^])*'/y
      end.lastIndex = this.at
      this.at = end.test(text) ? end.lastIndex : text.length
    } else this.at += 1 + (/^(?:\w+|[@*#?$!-])/.exec(text.slice(from + 1, from + 257))?.[0].length ?? 0)
    word.value += text.slice(from, this.at)
  }

  /** What stands in the braces of an expansion may run programs. */
  private expandedIn(text: string): void {
    if (/\$\(|`/.test(text) && this.depth < maxDepth) this.expanded(text)
  }
}
