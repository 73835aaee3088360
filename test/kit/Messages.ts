/** Sentences in the code: string literals and templates with a blank between words, as the program may show them. */
import { readdirSync, readFileSync } from "node:fs"
import ts from "typescript"

export interface Message {
  readonly file: string
  readonly line: number
  /** An expression in a template is `CODE`. */
  readonly text: string
}

/** The sentences below `src` in these rooms. */
export const read = (rooms: ReadonlyArray<string>): ReadonlyArray<Message> =>
  rooms.flatMap((room) =>
    readdirSync(`src/${room}`, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .sort()
      .flatMap((name) => of(`src/${room}/${name}`))
  )

const of = (file: string): ReadonlyArray<Message> => {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true)
  const found: Array<Message> = []
  const visit = (node: ts.Node): void => {
    const text = textOf(node)
    if (text === undefined) return ts.forEachChild(node, visit)
    if (/[a-z,] [a-z]+ [a-z]/.test(text))
      found.push({ file, line: source.getLineAndCharacterOfPosition(node.getStart()).line + 1, text })
    if (ts.isTemplateExpression(node)) for (const span of node.templateSpans) visit(span.expression)
  }
  visit(source)
  return found
}

/** Nothing for what is no text. Texts that are joined by `+` are one. */
const textOf = (node: ts.Node): string | undefined => {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map((span) => `CODE${span.literal.text}`).join("")
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return undefined
  const [left, right] = [textOf(node.left), textOf(node.right)]
  return left === undefined || right === undefined ? undefined : left + right
}
