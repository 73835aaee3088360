/**
 * YAML from outside. Its parser recurses as deep as the text nests, and a deep text ends the whole process before
 * anything can be caught. So the depth is bounded before the text is parsed.
 */
import type * as Yaml from "yaml"
import * as UntrustedJson from "./UntrustedJson.js"

/**
 * Why a text is refused before parsing; nothing when it may be parsed. Check the parsed value with
 * `UntrustedJson.refusal`.
 */
export const textRefusal = (
  text: string,
  limits?: UntrustedJson.Limits & {
    /** The parser, where it is there: brackets in texts are no nesting then. */
    readonly yaml?: Pick<typeof Yaml, "Lexer"> | undefined
  }
): UntrustedJson.ForeignJsonRefused | undefined => {
  const size = limits?.size ?? UntrustedJson.maxSize
  if (text.length > size) return new UntrustedJson.ForeignJsonRefused({ reason: "size", size })
  const nests = limits?.yaml === undefined ? hasBrackets(text) : hasBrackets(text) && isFlowDeep(limits.yaml, text)
  return nests || isLedDeep(text) ? new UntrustedJson.ForeignJsonRefused({ reason: "depth", size }) : undefined
}

/**
 * Parses a text that was not refused. A key that stands twice in a map is an error of the document. The parser itself
 * compares each key with all others, which takes minutes for a long map.
 */
export const parse = (yaml: Parser, text: string, options?: Yaml.ParseOptions): Yaml.Document.Parsed => {
  const document = yaml.parseDocument(text, { ...options, uniqueKeys: false, logLevel: "error" })
  yaml.visit(document, {
    Map: (_, { items }) => {
      const seen = new Set<unknown>()
      for (const { key } of items) {
        const value = yaml.isScalar(key) ? key.value : key
        if (value !== "<<" && seen.has(value) && yaml.isNode(key) && key.range) {
          const [start, end] = key.range
          const message = `Map keys must be unique (${UntrustedJson.echo(String(value), 60)} stands twice)`
          document.errors.push(new yaml.YAMLParseError([start, end], "DUPLICATE_KEY", message))
        }
        seen.add(value)
      }
    }
  })
  return document
}

type Parser = Pick<typeof Yaml, "parseDocument" | "visit" | "isScalar" | "isNode" | "YAMLParseError">

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Far above the limit for a value, because brackets in prose are counted too, and far below what the parser survives.
 */
const most = 256

/** Counts brackets wherever they stand: it looks at a text once, and mostly there are few. */
const hasBrackets = (text: string): boolean => {
  let open = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x5b || code === 0x7b) {
      if (++open > most) return true
    } else if ((code === 0x5d || code === 0x7d) && open > 0) open--
  }
  return false
}

/** Counts those that the parser opens. Its lexer does not recurse. */
const isFlowDeep = (yaml: Pick<typeof Yaml, "Lexer">, text: string): boolean => {
  let open = 0
  let before = ""
  for (const token of new yaml.Lexer().lex(text)) {
    if (before !== scalar) {
      if (token === "[" || token === "{") {
        if (++open > most) return true
      } else if ((token === "]" || token === "}") && open > 0) open--
    }
    before = token
  }
  return false
}

/** The lexer's mark before a text. */
const scalar = "\x1f"

/** Without brackets, nesting shows in what a line begins with. */
const isLedDeep = (text: string): boolean => {
  let lead = 0
  let isLead = true
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x0a || code === 0x0d) {
      lead = 0
      isLead = true
    } else if (isLead) {
      isLead = isBlank(code) || ((code === 0x2d || code === 0x3f) && isBlank(text.charCodeAt(at + 1)))
      if (isLead && ++lead > 2 * most) return true
    }
  }
  return false
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09
