/** Why a value is no answer, as a sentence for the person who gave it. It quotes nothing of the value. */
import * as Option from "effect/Option"
import type * as ParseResult from "effect/ParseResult"
import * as SchemaAST from "effect/SchemaAST"

/** What the first fault is, and what has to be there. */
export const of = (kind: string, issue: ParseResult.ParseIssue): string => said(kind, issue, [])

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const said = (kind: string, issue: ParseResult.ParseIssue, path: ReadonlyArray<PropertyKey>): string => {
  switch (issue._tag) {
    case "Pointer":
      return said(kind, issue.issue, [...path, ...[issue.path].flat()])
    case "Composite":
      return literalsOf(issue.ast) === undefined
        ? said(kind, nearest([issue.issues].flat()), path)
        : needed(kind, issue.ast, path)
    case "Refinement":
    case "Transformation":
      return issue.kind === "Predicate" ? needed(kind, issue.ast, path) : said(kind, issue.issue, path)
    case "Unexpected":
      return `there is no field ${name(path)} in an answer to ${kind}`
    case "Type":
    case "Forbidden":
      return needed(kind, issue.ast, path)
    case "Missing":
      return needed(kind, issue.ast.type, path)
  }
}

/** Of the members of a union the one that was followed furthest is meant. */
const nearest = (issues: ReadonlyArray<ParseResult.ParseIssue>): ParseResult.ParseIssue =>
  issues.reduce((best, issue) => (depth(issue) > depth(best) ? issue : best))

const depth = (issue: ParseResult.ParseIssue): number =>
  issue._tag === "Pointer" || issue._tag === "Refinement" || issue._tag === "Transformation"
    ? 1 + depth(issue.issue)
    : issue._tag === "Composite"
      ? 1 + Math.max(...[issue.issues].flat().map(depth))
      : 0

const needed = (kind: string, ast: SchemaAST.AST, path: ReadonlyArray<PropertyKey>): string =>
  `${path.length === 0 ? `an answer to ${kind}` : name(path)} has to be ${inWords(ast)}`

const name = (path: ReadonlyArray<PropertyKey>): string => JSON.stringify(path.map(String).join("."))

const inWords = (ast: SchemaAST.AST): string => {
  const literals = literalsOf(ast)
  if (literals !== undefined) return literals.length === 1 ? literals.join() : `one of ${literals.join(", ")}`
  switch (ast._tag) {
    case "StringKeyword":
      return "a text"
    case "NumberKeyword":
      return "a number"
    case "BooleanKeyword":
      return "true or false"
    case "TupleType":
      return "a list"
    case "TypeLiteral": {
      const names = ast.propertySignatures.filter(({ isOptional }) => !isOptional).map((one) => String(one.name))
      return names.length === 0 ? "an object" : `an object with ${names.join(" and ")}`
    }
    case "Union":
      return [...new Set(ast.types.filter((type) => !SchemaAST.isUndefinedKeyword(type)).map(inWords))].join(", or ")
    case "Refinement":
      return Option.getOrElse(SchemaAST.getDescriptionAnnotation(ast), () => inWords(ast.from))
    case "Transformation":
      return inWords(ast.from)
    case "Suspend":
      return inWords(ast.f())
    default:
      return "something else"
  }
}

const literalsOf = (ast: SchemaAST.AST): ReadonlyArray<string> | undefined => {
  if (SchemaAST.isLiteral(ast)) return [String(ast.literal)]
  if (SchemaAST.isUndefinedKeyword(ast)) return []
  if (!SchemaAST.isUnion(ast)) return undefined
  const members = ast.types.map(literalsOf)
  return members.includes(undefined) ? undefined : members.flatMap((texts) => texts ?? [])
}
