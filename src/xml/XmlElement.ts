/**
 * XML as far as the wire between agents needs it: elements with attributes that hold either text or other elements.
 *
 * Writing escapes everything, so that no value can end its element early or start another. Reading is strict: one element,
 * nothing around it but white space, no document type, no comments, no processing instructions, no entities but the five
 * that XML defines and numbers of characters.
 */
import * as Either from "effect/Either"
import { SaxesParser } from "saxes"

export interface XmlElement {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
  readonly children: ReadonlyArray<XmlElement>
  /** The text between the element's own tags, without that of its children; indentation included. */
  readonly text: string
}

/** Why a text is not an element. */
export interface Unparsed {
  /** A few words in XML's terms. */
  readonly reason: string
  /** The outermost element, as far as it was read; absent when the error lies outside of it. */
  readonly root?: XmlElement
}

/** The longest text that is read at all, in characters: the longest answer with every character escaped. */
export const maxLength = 6_100_000

/** Elements deeper than this are refused. */
const maxDepth = 8

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Attributes that are `undefined` are left out. */
export const make = (
  name: string,
  attributes: { readonly [name: string]: string | number | undefined },
  content: string | ReadonlyArray<XmlElement> = ""
): XmlElement => ({
  name,
  attributes: new Map(
    Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)] as const]))
  ),
  children: typeof content === "string" ? [] : content,
  text: typeof content === "string" ? content : ""
})

/** Reads a text that is exactly one element. Never throws. */
export const parse = (text: string): Either.Either<XmlElement, Unparsed> => {
  if (text.length > maxLength) return Either.left({ reason: `it is longer than ${maxLength} characters` })
  const reader = new Reader()
  const read = Either.try(() => reader.read(text))
  const root = reader.root
  if (Either.isRight(read) && root !== undefined) return Either.right(root)
  const reason =
    Either.isLeft(read) && read.left instanceof Error ? read.left.message.replace(/\.$/, "") : "there is no element"
  return Either.left(root === undefined || reader.ended ? { reason } : { reason, root })
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The element as text for a reader: every element on a line of its own, indented by its depth. */
export const render = (element: XmlElement): string => write(element, "\n")

/** Removes the characters that XML 1.0 cannot hold in any way: most control characters and halves of surrogate pairs. */
export const clean = (text: string): string => text.replace(forbidden, "")

/** True when the element holds other elements, or nothing: no text of its own. */
export const isBlank = (element: XmlElement): boolean => /^[ \t\r\n]*$/.test(element.text)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const forbidden = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu

/** `line` stands before an element: a line end and the indentation. */
const write = (element: XmlElement, line: string): string => {
  const attributes = [...element.attributes].map(([name, value]) => ` ${name}="${escapeAttribute(value)}"`).join("")
  const open = `<${element.name}${attributes}`
  const close = `</${element.name}>`
  if (element.children.length === 0) {
    const text = escapeText(element.text)
    return text === "" ? `${open}/>` : `${open}>${text}${close}`
  }
  const deeper = `${line}  `
  return `${open}>${element.children.map((child) => `${deeper}${write(child, deeper)}`).join("")}${line}${close}`
}

const references: { readonly [character: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
  "\t": "&#9;",
  "\n": "&#10;",
  "\r": "&#13;"
}

const refer = (character: string): string => references[character] ?? character

/** Line ends stay readable in a text; a bare carriage return would be read as a line end. */
const escapeText = (text: string): string => clean(text).replace(/[&<>"'\r]/g, refer)

/** White space other than blanks would be read as blanks in an attribute. */
const escapeAttribute = (value: string): string => clean(value).replace(/[&<>"'\t\n\r]/g, refer)

interface Open extends XmlElement {
  readonly children: Array<XmlElement>
  text: string
}

/** Builds the tree. The parser throws its first error; {@link parse} catches it. */
class Reader {
  root: XmlElement | undefined = undefined
  /** True once the outermost element is complete: a later error lies behind it. */
  ended = false
  private readonly open: Array<Open> = []
  private readonly parser = new SaxesParser({ position: false })

  constructor() {
    const { parser } = this
    parser.on("xmldecl", () => this.fail("an XML declaration is not allowed here"))
    parser.on("doctype", () => this.fail("a document type is not allowed"))
    parser.on("processinginstruction", () => this.fail("processing instructions are not allowed"))
    parser.on("comment", () => this.fail("comments are not allowed"))
    parser.on("opentag", (tag) => {
      if (this.open.length >= maxDepth) this.fail("its elements are nested too deep")
      this.check(tag.name)
      for (const part of Object.entries(tag.attributes).flat()) this.check(part)
      const element: Open = {
        name: tag.name,
        attributes: new Map(Object.entries(tag.attributes)),
        children: [],
        text: ""
      }
      const parent = this.open.at(-1)
      if (parent === undefined) this.root = element
      else parent.children.push(element)
      this.open.push(element)
    })
    parser.on("closetag", () => {
      this.open.pop()
      this.ended = this.open.length === 0
    })
    parser.on("text", (text) => this.append(text))
    parser.on("cdata", (text) => this.append(text))
  }

  read(text: string): void {
    this.parser.write(text).close()
  }

  /** The parser accepts lone surrogates. */
  private check(text: string): void {
    if (text.search(forbidden) >= 0) this.fail("it contains characters that XML does not allow")
  }

  private fail(reason: string): void {
    // Without an error listener the parser throws its errors.
    this.parser.fail(reason)
  }

  private append(text: string): void {
    this.check(text)
    const element = this.open.at(-1)
    if (element !== undefined) element.text += text
  }
}
