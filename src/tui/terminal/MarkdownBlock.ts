/**
 * How each block of Markdown looks on a terminal: rows of at most so many columns. All pure.
 *
 * Without colours the marks stay where they say something: `**` around strong words, backticks around code, `#` before
 * a heading.
 */
import type { MarkedToken, Token, Tokens } from "marked"
import type { Colors } from "./CodeColors.js"
import * as CodeLines from "./CodeLines.js"
import * as MarkdownTable from "./MarkdownTable.js"
import * as StyledText from "./StyledText.js"
import { colors, over, weights, type Run } from "./StyledText.js"

export interface Look {
  readonly columns: number
  readonly color: boolean
  /** Absent: code is not coloured. */
  readonly colors?: Colors | undefined
  /** How many blocks this one stands in. Default: none. */
  readonly depth?: number | undefined
}

/** The rows of a block, without empty rows around it. */
export const rows = (token: Token, look: Look): ReadonlyArray<string> => {
  const block = known(token)
  const { columns } = look
  const prose = (tokens: ReadonlyArray<Token> | undefined, raw: string, style = 0) =>
    StyledText.rows(tokens === undefined ? [StyledText.run(raw, style)] : inline(tokens, look, style), columns)
  if ((look.depth ?? 0) > deepest) return StyledText.rows([StyledText.run(block.raw.trimEnd())], columns)
  switch (block.type) {
    case "space":
      return []
    case "heading":
      return look.color
        ? prose(block.tokens, block.text, headings[block.depth - 1] ?? weights.bold)
        : StyledText.rows([StyledText.run(`${"#".repeat(block.depth)} `), ...inline(block.tokens, look)], columns)
    case "paragraph":
    case "text":
      return prose("tokens" in block ? block.tokens : undefined, block.raw)
    case "code":
      return block.text === ""
        ? []
        : CodeLines.rows(look.colors?.(block.text, block.lang ?? "")?.lines ?? CodeLines.plain(block.text), columns)
    case "hr":
      return [StyledText.line([mark("─".repeat(Math.max(1, columns - 1)), look)])]
    case "blockquote":
      return within(quoteMark, quoteMark, look, (inner) => blocks(block.tokens, inner))
    case "list":
      return block.items.flatMap((item, index) => [
        ...listItem(block, item, index, look),
        ...(index < block.items.length - 1 && isSpaced(item.raw) ? [""] : [])
      ])
    case "table":
      return table(block, look).rows
    // What a terminal cannot show stays as it was written.
    default:
      return StyledText.rows([StyledText.run(block.raw.trimEnd(), look.color ? weights.dim : 0)], columns)
  }
}

/** A table with the widths of its columns, so that more rows of it can be shown below. */
export const table = (
  { align, header, rows }: Tokens.Table,
  look: Look,
  above?: ReadonlyArray<number>
): MarkdownTable.Drawn =>
  MarkdownTable.rows({
    header: header.map(({ tokens }) => inline(tokens, look, look.color ? weights.bold : 0)),
    rows: rows.map((cells) => cells.map(({ tokens }) => inline(tokens, look))),
    align,
    columns: look.columns,
    line: look.color ? weights.dim : 0,
    above
  })

/** The ends of the last rows of a paragraph, the last one left out, in its source; the lowest first. Some are in no place of it. */
export const rowEnds = (tokens: ReadonlyArray<Token>, look: Look, most: number): ReadonlyArray<number> => {
  const drawn = StyledText.rows(inline(tokens, look), look.columns)
  const ends: Array<number> = []
  for (let last = drawn.length - 1; last > 0 && ends.length < most; last--) {
    let left = letters(drawn.slice(0, last).join(""))
    let at = 0
    for (const token of tokens) {
      const own = letters(inline([token], look).reduce((text, run) => text + run.text, ""))
      if (left < own) {
        const end = left === 0 ? 0 : token.type === "text" ? behind(token.raw, left) : undefined
        if (end !== undefined) ends.push(at + end)
        break
      }
      left -= own
      at += token.raw.length
    }
  }
  return ends
}

/** Whether an empty line follows what was written so. */
export const isSpaced = (raw: string): boolean => /\n[^\S\n]*\n[^\S\n]*$/.test(raw)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What is no blank: breaks of rows take and give blanks only. */
const letters = (text: string): number => text.replace(/\x1b\[[\d;]*m|\s/g, "").length

/** The place behind so many letters of a text. */
const behind = (text: string, count: number): number | undefined => {
  let left = count
  for (let at = 0; at < text.length; at++) if (!/\s/.test(text.charAt(at)) && --left === 0) return at + 1
  return undefined
}

/** The lexer makes these only: others come from extensions, and there are none. The type knows both. */
const known = (token: Token): MarkedToken => token as MarkedToken

const headings = [weights.bold | weights.underline, weights.bold | colors.cyan, weights.bold]

/** Another bar than that of a dialog and of a subagent: what a model quotes must not pass for either. */
const quoteMark = "▎ "

const mark = (text: string, { color }: Look): Run => StyledText.run(text, color && text.trim() !== "" ? weights.dim : 0)

/** Blocks in a container, with an empty row where one stood between them. */
const blocks = (tokens: ReadonlyArray<Token>, look: Look): ReadonlyArray<string> => {
  const out: Array<string> = []
  let spaced = false
  for (const token of tokens) {
    const drawn = rows(token, look)
    if (drawn.length > 0 && spaced && out.length > 0) out.push("")
    if (drawn.length > 0) spaced = false
    if (token.type === "space" || isSpaced(token.raw)) spaced = true
    out.push(...drawn)
  }
  return out
}

/** What stands in a container, behind its mark. Where there is no room for it, below the mark. */
const within = (
  first: string,
  rest: string,
  look: Look,
  inner: (look: Look) => ReadonlyArray<string>
): ReadonlyArray<string> => {
  const columns = look.columns - StyledText.widthOf(first)
  const depth = (look.depth ?? 0) + 1
  if (columns < narrowest) return [StyledText.line([mark(first.trimEnd(), look)]), ...inner({ ...look, depth })]
  const [head, tail] = [first, rest].map((text) => StyledText.line([mark(text, look)]))
  const drawn = inner({ ...look, columns, depth })
  return drawn.length === 0
    ? [StyledText.line([mark(first.trimEnd(), look)])]
    : drawn.map(
        (row, index) => (row === "" ? (rest.trim() === "" ? "" : tail) : (index === 0 ? head : tail) + row) ?? ""
      )
}
const narrowest = 8
/** What stands deeper in other blocks is shown as it was written. */
const deepest = 16

const listItem = (list: Tokens.List, item: Tokens.ListItem, index: number, look: Look): ReadonlyArray<string> => {
  // Numbers are not aligned: an item is drawn when the last number is not known yet.
  const marker = list.ordered ? `${Number(list.start) + index}. ` : item.task ? "" : "• "
  const box = item.task ? (item.checked === true ? "[x] " : "[ ] ") : ""
  const first = marker + box
  const tokens = item.tokens.filter(({ type }) => type !== "checkbox")
  return within(first, " ".repeat(StyledText.widthOf(first)), look, (inner) => blocks(tokens, inner))
}

const inline = (tokens: ReadonlyArray<Token>, look: Look, style = 0): ReadonlyArray<Run> => {
  const out: Array<Run> = []
  for (const token of tokens) addInline(known(token), look, style, out)
  return out
}

const addInline = (token: MarkedToken, look: Look, style: number, out: Array<Run>): void => {
  const nested = (tokens: ReadonlyArray<Token>, above: number, around: string): void => {
    if (!look.color && around !== "") out.push(StyledText.run(around))
    for (const one of tokens) addInline(known(one), look, look.color ? over(style, above) : 0, out)
    if (!look.color && around !== "") out.push(StyledText.run(around))
  }
  switch (token.type) {
    case "strong":
      return nested(token.tokens, weights.bold, "**")
    case "em":
      return nested(token.tokens, weights.italic, "*")
    case "del":
      return nested(token.tokens, weights.struck, "~~")
    case "codespan":
      return void out.push(
        look.color ? StyledText.run(token.text, over(style, colors.cyan)) : StyledText.run(`\`${token.text}\``)
      )
    case "br":
      return void out.push(StyledText.run("\n"))
    case "link":
    case "image": {
      const shown = decoded(token.text)
      const image = token.type === "image" ? [StyledText.run("image: ", style)] : []
      out.push(...image)
      const target = token.href.replace(/^mailto:/, "")
      if (shown === "" || shown === token.href || shown === target)
        return void out.push(StyledText.run(target, look.color ? over(style, weights.underline) : 0))
      nested(token.tokens, weights.underline, "")
      return void out.push(mark(` (${token.href})`, look))
    }
    case "escape":
      return void out.push(StyledText.run(token.text, style))
    case "html":
      return void out.push(StyledText.run(/^<br\s*\/?>$/i.test(token.raw) ? "\n" : token.raw, style))
    case "text":
      if (token.tokens !== undefined) return nested(token.tokens, 0, "")
      // A line break inside a paragraph is a blank.
      return void out.push(StyledText.run(decoded(token.raw).replaceAll("\n", " "), style))
    default:
      return void out.push(StyledText.run(token.raw, style))
  }
}

/** The five references that models write for characters that mean something in HTML. Others stay: they hide what they are. */
const decoded = (text: string): string =>
  text.includes("&") ? text.replace(/&(?:lt|gt|amp|quot|#39|nbsp);/g, (name) => references[name] ?? name) : text

const references: { readonly [name: string]: string | undefined } = {
  "&lt;": "<",
  "&gt;": ">",
  "&amp;": "&",
  "&quot;": '"',
  "&#39;": "'",
  "&nbsp;": " "
}
