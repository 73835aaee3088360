/**
 * Markdown that arrives in pieces, as rows of a terminal.
 *
 * ```
 *  pieces ──► source ──► lexer ──► all blocks but the last ──► rows, once
 *                                  the last, still open    ──► rows, again and again
 * ```
 *
 * A block is finished when another one begins behind it. What is finished is drawn once and forgotten, so the cost of a
 * piece does not grow with what stands above. An item of a list and a line of code are finished by themselves. Nothing
 * open is longer than {@link longestOpen}: a longer block is cut, and goes on as if it had begun there. What takes the
 * parser or the highlighter too long is shown as it was written.
 */
import { Lexer, type MarkedToken, type Token, type Tokens } from "marked"
import * as Option from "effect/Option"
import * as TimeLimit from "./TimeLimit.js"
import { untilSlow, type Colors } from "./CodeColors.js"
import * as CodeLines from "./CodeLines.js"
import * as MarkdownBlock from "./MarkdownBlock.js"
import * as StyledText from "./StyledText.js"

export interface Options {
  readonly color: boolean
  /** Absent: code is not coloured. */
  readonly colors?: Colors | undefined
}

export interface MarkdownStream {
  /** Takes a piece of text without control characters. The work is done when rows are taken. */
  readonly push: (text: string) => void
  /** The text is complete: what is open is finished by the next {@link take}. */
  readonly end: () => void
  /**
   * The rows of finished blocks that were not taken before. They come in helpings of one turn of the event loop at most;
   * `more` says that another one is ready.
   */
  readonly take: (columns: number) => { readonly rows: ReadonlyArray<string>; readonly more: boolean }
  /** The rows of the open block as it is now, the last `height` of them. */
  readonly open: (columns: number, height: number) => ReadonlyArray<string>
}

/** Characters of an open block. */
const longestOpen = 4_096
/** Characters of list items that are drawn together: code in them may take long to colour. */
const itemsAtOnce = 1_024

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = ({ color, colors }: Options): MarkdownStream => {
  const options = { color, colors: colors && untilSlow(colors) }
  /** When the helping began, in milliseconds. */
  let began = 0
  /** How many times the parser was cut off. */
  let cuts = 0
  /** Not yet drawn for good. It begins with a block or, in a fence, with a line of code. */
  let source = ""
  let ended = false
  let fence: Fence | undefined
  /** The head of a table whose first rows are drawn for good, and the widths of its columns. */
  let table: { readonly head: string; readonly widths: ReadonlyArray<number> } | undefined
  /** The number of the next item, of a list whose first items are drawn for good. */
  let number: number | undefined
  /** Whether an empty row comes before the next block. */
  let gap = false
  /** References that links may name. */
  const links: Lexer["tokens"]["links"] = {}
  let picture: { readonly columns: number; readonly rows: ReadonlyArray<string> } | undefined

  /** The last one, which all blocks share until the width is another. */
  let looked: MarkdownBlock.Look = { ...options, columns: 1 }
  const look = (columns: number): MarkdownBlock.Look => {
    if (looked.columns !== columns) looked = { ...options, columns: Math.max(1, columns) }
    return looked
  }
  const draw = (token: Token, look: MarkdownBlock.Look): ReadonlyArray<string> => {
    const block = known(token)
    try {
      return table !== undefined && block.type === "table"
        ? MarkdownBlock.table(block, look, table.widths).rows
        : MarkdownBlock.rows(block.type === "list" && number !== undefined ? { ...block, start: number } : block, look)
    } catch {
      // Words in thousands of emphases exhaust the stack.
      return asWritten(token.raw, look.columns)
    }
  }
  const put = (drawn: ReadonlyArray<string>, rows: Array<string>): void => {
    if (drawn.length === 0) return
    if (gap) rows.push("")
    rows.push(...drawn)
    gap = false
  }

  // ---- code

  /** Takes whole lines out of the open fence, and closes it behind its closing line. */
  const takeCode = ({ closes, code, indent }: Fence, columns: number, rows: Array<string>): void => {
    const part = linesOf(source.slice(0, helping))
    const isLast = ended && part.length === source.length
    const found = closes.exec(part)
    // Whether an unfinished line closes it is not known yet.
    const closing = found === null || found[0].endsWith("\n") || isLast ? found : null
    const end =
      closing !== null
        ? closing.index
        : isLast
          ? part.length
          : part.lastIndexOf("\n") + 1 || (part.length === helping ? whole(part) : 0)
    const inside = part.slice(0, end).replace(/\n$/, "")
    if (end > 0) {
      const lines = inside.split("\n").map((line) => (indent === undefined ? line : line.replace(indent, "")))
      put(CodeLines.rows(code.take(lines), columns), rows)
    }
    source = source.slice(closing === null ? end : end + closing[0].length)
    if (closing !== null || isLast) fence = undefined
  }
  const openFence = ([, indent = "", marks = "", language = ""]: RegExpExecArray): void => {
    fence = {
      code: CodeLines.make(language, options.colors),
      indent: indent === "" ? undefined : new RegExp(`^ {0,${indent.length}}`),
      // Inside of a list the closing line is indented as the opening one.
      closes: new RegExp(`^ {0,${indent.length + 3}}\\${marks.charAt(0)}{${marks.length},} *(?:\\n|$(?![^]))`, "m")
    }
  }

  // ---- blocks

  const lex = (text: string): ReadonlyArray<Token> => {
    const tokens = [{ type: "text", raw: text, text, escaped: false }]
    const literal: ReadonlyArray<Token> = [{ type: "paragraph", raw: text, text, tokens }]
    if (cuts >= mostCuts || isThicket(text)) return literal
    // The lexer drops blanks at the end of a list, which there are whenever a piece ends behind a word.
    const end = beforeBlanks(text)
    try {
      if (isBusy) restart()
      isBusy = true
      const lexer = new Lexer()
      Object.assign(lexer.tokens.links, links)
      const lexed = limited(text, () => lexer.lex(text.slice(0, end)))
      if (Option.isNone(lexed)) {
        cuts++
        return literal
      }
      isBusy = false
      const tokens = lexed.value
      if (Object.keys(lexer.tokens.links).length <= mostLinks) Object.assign(links, lexer.tokens.links)
      const last = tokens.at(-1)
      if (last === undefined) return end === text.length ? tokens : [{ type: "space", raw: text }]
      last.raw += text.slice(end)
      // The places of cuts are counted in these; what the lexer has changed is shown as it came.
      return tokens.map(({ raw }) => raw).join("") === text ? tokens : literal
    } catch {
      // Thousands of quotes in each other exhaust the stack.
      return literal
    }
  }
  /** Whether what comes next is better left to the next turn. */
  const isTired = () => performance.now() - began > TimeLimit.turn / 4
  /** Draws everything but the open block, and of that what is finished in it. */
  const takeBlocks = (columns: number, rows: Array<string>): void => {
    const head = table?.head ?? ""
    const before = partOf(source)
    const fenced = fenceAt.exec(before)
    if (fenced?.index === 0) {
      openFence(fenced)
      source = source.slice(fenced[0].length)
      if (gap) rows.push("")
      gap = false
      return
    }
    // A fence ends all blocks that are open.
    const part = fenced !== null ? before.slice(0, fenced.index) : ended ? before : before.replace(halfMarker, "")
    const isLast = fenced !== null || (ended && part.length === source.length)
    const tokens = lex(head + part)
    const open = isLast ? tokens.length : tokens.findLastIndex(({ type }) => type !== "space")
    let used = 0
    for (const [index, token] of tokens.entries()) {
      if (index > 0 && isTired()) break
      // A long block that came at once is finished by pieces too, as if it had come slowly.
      if (index >= open || token.raw.length > longestOpen) {
        used += takeOpen(token, columns, rows)
        break
      }
      put(draw(token, look(columns)), rows)
      if (token.type === "space" || MarkdownBlock.isSpaced(token.raw)) gap = true
      if (token.type !== "space") table = number = undefined
      used += token.raw.length
    }
    source = source.slice(Math.max(0, used - head.length))
  }
  /** Draws the finished part of a block that is open or long; yields its length. */
  const takeOpen = (token: Token, columns: number, rows: Array<string>): number => {
    const block = known(token)
    const { raw } = block
    if (block.type === "list" && block.items.length > 1) {
      // As many items as take little time. The next ones follow when the event loop had its turn.
      let count = 0
      let length = 0
      for (const { raw } of block.items.slice(0, -1)) {
        if (count > 0 && length + raw.length > itemsAtOnce) break
        count++
        length += raw.length
      }
      const items = block.items.slice(0, count)
      put(draw({ ...block, items }, look(columns)), rows)
      gap = MarkdownBlock.isSpaced(raw.slice(0, length))
      number = block.ordered ? (number ?? Number(block.start)) + items.length : undefined
      return length
    }
    if (raw.length <= longestOpen) return 0
    const cut = cutOf(raw)
    if (block.type === "table") {
      const [head = ""] = /^[^\n]*\n[^\n]*\n/.exec(raw) ?? []
      const [first] = lex(raw.slice(0, cut))
      if (first?.type === "table" && cut > head.length) {
        const drawn = MarkdownBlock.table(tableOf(first), look(columns), table?.widths)
        put(drawn.rows, rows)
        table = { head, widths: drawn.widths }
        return cut
      }
    }
    const length = block.type === "paragraph" ? (rowEnd(raw.slice(0, cut), columns) ?? cut) : cut
    const above = raw.slice(0, length)
    const tokens = lex(above)
    for (const token of tokens) {
      put(draw(token, look(columns)), rows)
      if (token.type === "space") gap = true
    }
    const opening = block.type === "list" ? unclosedIn(tokens, above) : undefined
    if (opening !== undefined) openFence(opening)
    return length
  }
  /** Where the beginning of a paragraph can be cut so that nobody sees it: at the end of a row, and not in the midst of marks. */
  const rowEnd = (text: string, columns: number) => Option.getOrUndefined(limited(text, () => rowEndIn(text, columns)))
  const rowEndIn = (text: string, columns: number): number | undefined => {
    const [whole, ...others] = lex(text)
    if (whole?.type !== "paragraph" || others.length > 0) return undefined
    const { tokens } = known(whole) as Tokens.Paragraph
    const drawn = draw(whole, look(columns))
    const ends = MarkdownBlock.rowEnds(tokens, look(columns), mostTried)
    return ends
      .map((end) => text.length - text.slice(end).trimStart().length)
      .find((end) => {
        const [first, ...rest] = lex(text.slice(0, end))
        const [next] = lex(text.slice(end))
        if (first === undefined || rest.length > 0 || next?.type !== "paragraph") return false
        return [first, next].flatMap((token) => draw(token, look(columns))).join("\n") === drawn.join("\n")
      })
  }

  return {
    push: (text) => {
      source += text
      picture = undefined
    },
    end: () => {
      ended = true
    },
    take: (columns) => {
      const rows: Array<string> = []
      const before = source.length
      let moved = true
      began = performance.now()
      // A fence and what is in it are taken together: what was seen of them must not go away for a moment.
      while (moved && source !== "" && before - source.length < helping && !isTired()) {
        const [length, inside] = [source.length, fence]
        const drawn: Array<string> = []
        try {
          if (inside !== undefined) takeCode(inside, columns, drawn)
          else takeBlocks(columns, drawn)
          rows.push(...drawn)
        } catch {
          // Thousands of things in each other exhaust the stack.
          const part = partOf(source)
          rows.push(...asWritten(part, columns))
          source = source.slice(part.length)
        }
        moved = source.length < length || fence !== inside
        if (moved) picture = undefined
      }
      return { rows, more: moved && source !== "" }
    },
    open: (columns, height) => {
      if (picture?.columns !== columns) {
        const rows: Array<string> = []
        const had = gap
        if (fence !== undefined) {
          const line = source.replace(fence.indent ?? "", "").slice(-longestPeek)
          // Whole lines are there when not all helpings were taken; those come first.
          const isCode = line !== "" && !source.includes("\n") && !/^ *(?:`+|~+)$/.test(line)
          if (isCode) put(CodeLines.rows(fence.code.peek(line), columns), rows)
        } else if (source !== "" && source.length <= helping) {
          // What is drawn many times a second is not coloured when it is long.
          const colors = source.length <= longestPeek ? options.colors : undefined
          for (const token of lex((table?.head ?? "") + source)) {
            put(draw(token, { ...look(columns), colors }), rows)
            if (token.type === "space" || MarkdownBlock.isSpaced(token.raw)) gap = true
          }
        }
        gap = had
        picture = { columns, rows }
      }
      return picture.rows.slice(Math.max(0, picture.rows.length - height))
    }
  }
}

/** A short text as rows, in one turn of the event loop. */
export const rows = (text: string, columns: number, options: Options): ReadonlyArray<string> => {
  const stream = make(options)
  stream.push(text)
  return drain(stream, columns)
}

/** Ends a text; yields all rows that are left of it. */
const drain = (stream: MarkdownStream, columns: number): ReadonlyArray<string> => {
  stream.end()
  const drawn: Array<string> = []
  for (let more = true; more;) {
    const taken = stream.take(columns)
    drawn.push(...taken.rows)
    more = taken.more
  }
  return drawn
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const asWritten = (text: string, columns: number): ReadonlyArray<string> =>
  StyledText.rows([StyledText.run(text.trimEnd())], columns)

/** Code between a fence that was opened and one that was not seen yet. */
interface Fence {
  readonly code: CodeLines.CodeLines
  readonly indent: RegExp | undefined
  readonly closes: RegExp
}

/** Characters that are drawn in one go; keys are read in between. */
const helping = 2 * longestOpen

const longestPeek = 2_048

/** Milliseconds of the processor for the parser. A long paragraph takes more than a turn while the parser is cold. */
const longestLexed = 250

/** To watch the time takes as long as the work itself, and a text of few marks is bounded without. */
const limited = <A>(text: string, work: () => A): Option.Option<A> =>
  thickness(text) < 0.2 ? Option.some(work()) : TimeLimit.run(work, longestLexed)

/** Texts that take the parser so long, in one stream, after which it is not asked again. */
const mostCuts = 3

/** References that links may name. */
const mostLinks = 1_000

/** True while the parser works, and after work that was cut off: its expressions are in the middle of a text then. */
let isBusy = false
const restart = (): void => {
  for (const kind of Object.values(Lexer.rules))
    for (const rules of Object.values(kind))
      for (const rule of Object.values(rules)) if (rule instanceof RegExp) rule.lastIndex = 0
}

/** Rows at whose end a paragraph may be cut: where that is within a link or strong words, the one above is tried. */
const mostTried = 8

/** A fence at the beginning of a line, of whatever is open above it: indentation, marks, language. */
const fenceAt = /^()(`{3,}|~{3,})((?<=`)[^`\n]*|(?<=~)[^\n]*)\n/m

/** The beginning of a line that may become an item of the list above it, or a word that ends the list. */
const halfMarker = /(?<=^|\n) *(?:\d{1,9}[.)]?|[-+*])$/

/**
 * Texts of little else than marks, for which a parser takes time that grows with the square of their length. They are
 * shown as they are.
 */
const isThicket = (text: string): boolean => thickness(text) > 0.45
/** The share of marks in a text; a short one has none that count. */
const thickness = (text: string): number =>
  text.length <= 1_024 ? 0 : (text.match(marks)?.reduce((sum, { length }) => sum + length, 0) ?? 0) / text.length
const marks = /[*_~`[\]<>!#\\]+/g

/** The lexer makes these only: others come from extensions, and there are none. The type knows both. */
const known = (token: Token): MarkedToken => token as MarkedToken
const tableOf = (token: Token): Tokens.Table => token as Tokens.Table

/** The first lines of code; one at least, if it has an end. */
const linesOf = (code: string): string => {
  const end = code.lastIndexOf("\n", longestPeek - 1) + 1 || code.indexOf("\n") + 1
  return end > 0 ? code.slice(0, end) : code
}

/** A helping; it ends with a line where that leaves enough of it. */
const partOf = (source: string): string => {
  if (source.length <= helping) return source
  const end = source.lastIndexOf("\n", helping - 1) + 1
  return source.slice(0, end > longestOpen ? end : whole(source.slice(0, helping)))
}

/** Where a block that is too long is cut: behind a line, else behind a blank, else anywhere. */
const cutOf = (text: string): number => {
  const part = text.slice(0, longestOpen)
  return part.lastIndexOf("\n") + 1 || part.lastIndexOf(" ") + 1 || whole(part)
}

/** The length without blanks at the end. */
const beforeBlanks = (text: string): number => {
  let end = text.length
  while (end > 0 && (text[end - 1] === " " || text[end - 1] === "\t")) end--
  return end
}

/** The length without half a character at the end. */
const whole = (text: string): number => (/[\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length)

/** The opening line of a fence in a list that was cut before it closed: indentation, marks, language. */
const unclosedIn = (tokens: ReadonlyArray<Token>, text: string): RegExpExecArray | undefined => {
  let last = tokens.at(-1)
  for (let inner = last; inner !== undefined; inner = childrenOf(inner).at(-1)) last = inner
  if (last?.type !== "code" || /\n *(?:`{3,}|~{3,}) *\n*$/.test(last.raw)) return undefined
  const openings = [...text.matchAll(/^( *)(`{3,}|~{3,})([^\n]*)$/gm)]
  return openings.at(-1)
}

const childrenOf = (token: Token): ReadonlyArray<Token> => {
  const block = known(token)
  return block.type === "list"
    ? block.items
    : block.type === "list_item" || block.type === "blockquote"
      ? block.tokens
      : []
}
