/**
 * The text that people see of an HTML page, with headings, lists, rows of tables and the addresses of links.
 *
 * The page is foreign: it is read in pieces with a pause behind each, to a limited depth and length. `htmlparser2` reads
 * it as browsers do.
 */
import * as Effect from "effect/Effect"
import type { Parser } from "htmlparser2"

/** What there is of a page. */
export interface HtmlText {
  readonly text: string
  /** There was more of it. */
  readonly isCut: boolean
}

/** At most `limit` characters. Addresses of links are resolved against `base`. The parser is loaded with the first page. */
export const read = (html: string, base: URL, limit: number): Effect.Effect<HtmlText> =>
  Effect.gen(function* () {
    const { Parser } = yield* Effect.promise(() => import("htmlparser2"))
    const page = new Page(base, limit)
    const parser: Parser = new Parser(page, { decodeEntities: true })
    for (let at = 0; at < html.length && !page.isFull; at += pieceLength) {
      parser.write(html.slice(at, at + pieceLength))
      yield* Effect.yieldNow()
    }
    if (!page.isFull) parser.end()
    return { text: page.text, isCut: page.isFull }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Characters that are parsed in one go. */
const pieceLength = 65_536

/** Elements within elements. Nobody writes more, and the parser's time grows with it. */
const maxDepth = 500

const unseen = new Set(["head", "script", "style", "template", "noscript", "nav", "svg", "iframe", "object", "select"])
const headings = new Set(["h1", "h2", "h3", "h4", "h5", "h6"])
const paragraphs = new Set(["p", "pre", "blockquote", "ul", "ol", "dl", "table", "figure", "hr", ...headings])
const lines = new Set([
  ...["address", "article", "aside", "body", "dd", "details", "div", "dt", "fieldset", "figcaption", "footer", "form"],
  ...["header", "html", "li", "main", "section", "summary", "tr", "caption"]
])

class Page {
  private readonly parts: Array<string> = []
  private length = 0
  private depth = 0
  /** The depth of the element whose content nobody sees. */
  private unseenAt: number | undefined
  private preformatted = 0
  /** Line breaks that are due before the next text. */
  private breaks = 0
  private isSpaced = false
  private readonly lists: Array<number | undefined> = []
  private link: { readonly href: string; text: string } | undefined

  constructor(
    private readonly base: URL,
    private readonly limit: number
  ) {}

  get isFull(): boolean {
    return this.length >= this.limit || this.depth > maxDepth
  }

  get text(): string {
    return this.parts.join("").slice(0, this.limit).trim()
  }

  onopentag(name: string, attributes: { readonly [name: string]: string }): void {
    this.depth++
    if (unseen.has(name) || "hidden" in attributes) this.unseenAt ??= this.depth
    if (this.unseenAt !== undefined || this.isFull) return
    this.breakFor(name)
    switch (name) {
      case "br":
        this.breaks++
        return
      case "pre":
        this.preformatted++
        return
      case "ul":
        this.lists.push(undefined)
        return
      case "ol":
        this.lists.push(0)
        return
      case "li": {
        const number = this.lists.at(-1)
        if (number !== undefined) this.lists[this.lists.length - 1] = number + 1
        const mark = number === undefined ? "-" : `${number + 1}.`
        return this.write(`${"  ".repeat(Math.max(0, this.lists.length - 1))}${mark} `)
      }
      case "td":
      case "th":
        return this.cell()
      case "a":
        this.link = { href: attributes["href"] ?? "", text: "" }
    }
  }

  onclosetag(name: string): void {
    // Every element that was opened is closed, in order: the parser sees to it.
    const depth = this.depth--
    if (this.unseenAt !== undefined) {
      if (this.unseenAt === depth) this.unseenAt = undefined
      return
    }
    if (name === "pre") this.preformatted = Math.max(0, this.preformatted - 1)
    if (name === "ul" || name === "ol") this.lists.pop()
    if (name === "a") this.closeLink()
    this.breakFor(name)
  }

  ontext(text: string): void {
    if (this.unseenAt !== undefined || this.isFull) return
    if (this.preformatted > 0) return this.write(text)
    const words = text.replace(/\s+/g, " ")
    if (words === "") return
    const isAtStart = this.breaks > 0 || this.length === 0 || this.isSpaced
    this.write(isAtStart ? words.trimStart() : words)
  }

  private breakFor(name: string): void {
    const wanted = paragraphs.has(name) ? 2 : lines.has(name) ? 1 : 0
    // A list within a list is no paragraph of its own.
    const within = (name === "ul" || name === "ol") && this.lists.length > 0
    this.breaks = Math.max(this.breaks, within ? 1 : wanted)
  }

  private cell(): void {
    if (this.breaks === 0 && this.length > 0) this.write(" | ")
  }

  private closeLink(): void {
    const { link } = this
    this.link = undefined
    if (link === undefined || link.href === "" || link.href.startsWith("#")) return
    const href = URL.canParse(link.href, this.base.href) ? new URL(link.href, this.base.href).href : link.href
    if (link.text.trim() === "" || link.text.trim() === href || !/^https?:/i.test(href)) return
    this.write(` [${href}]`)
  }

  private write(text: string): void {
    if (text === "") return
    const before = this.length === 0 ? "" : "\n".repeat(Math.min(2, this.breaks))
    this.breaks = 0
    this.parts.push(before, text)
    this.length += before.length + text.length
    this.isSpaced = /\s$/.test(text)
    if (this.link !== undefined) this.link.text += text
  }
}
