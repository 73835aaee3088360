/**
 * Whether a pattern over the calls of a tool can match one of them, by the schema of its parameters. A rule that can match
 * no call protects nothing and allows nothing, so it is refused where it is made.
 *
 * Tools that come later and tools that run commands are not checked: their parameters are unknown, or the pattern is one
 * over a command line.
 */
import * as Tool from "@effect/ai/Tool"
import * as Context from "effect/Context"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as Glob from "../core/Glob.js"
import * as Nearest from "../core/Nearest.js"
import * as TextShape from "../core/TextShape.js"
import * as ToolTrait from "../tool/ToolTrait.js"
import * as CallPattern from "./CallPattern.js"
import * as Signature from "./Signature.js"

/** Why no call can be meant: a sentence, with the nearest right spelling. Nothing if a call can be meant. */
export const problem = (pattern: string, verb: "allow" | "deny", tools: Iterable<Tool.Any>): string | undefined => {
  const own = CallPattern.parse(pattern)
  if (own === undefined || comesLater(own.tool, verb)) return undefined
  const problems: Array<string> = []
  for (const tool of tools) {
    if (!Glob.matches(own.tool, tool.name)) continue
    const parameters = runsCommands(tool) && !isBeside(own, tool) ? undefined : parametersOf(tool)
    const found =
      parameters === undefined
        ? elsewhere(own, tool)
        : (misfit(own, tool.name, parameters) ?? unordered(pattern, verb, own, tool.name, parameters))
    if (found === undefined) return undefined
    problems.push(found)
  }
  if (problems.length === 0 && own.tool.wild && verb === "deny") return unnamed(own.tool, tools)
  return problems.find((text) => text.includes("Did you mean")) ?? problems[0]
}

/**
 * Why a pattern that denies by a tool's name alone, as `write_file` or `*_file`, denies no call of the tool. Nothing for
 * a pattern that matches calls or commands.
 */
export const bare = (pattern: string, tools: Iterable<Tool.Any>): string | undefined => {
  const text = pattern.trim()
  const glob = Glob.compile(text)
  if (!/^[\w*?[\]-]+$/.test(text)) return undefined
  const meant = Array.from(tools).filter((tool) => Glob.matches(glob, tool.name))
  // As a pattern over commands, one with wildcards may be meant.
  const lost = meant.filter(
    (tool) =>
      (text === tool.name || !runsCommands(tool)) &&
      !matches(TextShape.row(TextShape.text(`${tool.name}(`), TextShape.any, TextShape.text(")")), glob)
  )
  const [first] = lost
  if (first === undefined || lost.length < meant.length) return undefined
  return glob.wild
    ? `a pattern over tools needs parentheses. Did you mean ${text}(*)?`
    : `${text} is a tool. Write it under "tools". Did you mean ${text}(*)?`
}

/** Like {@link CallPattern.spelled}, unless a tool that runs commands is meant: there a blank or a quote counts. */
export const spelled = (pattern: string, tools: Iterable<Tool.Any>): string => {
  const name = CallPattern.parse(pattern)?.tool
  const isCommand =
    name !== undefined && Array.from(tools).some((tool) => Glob.matches(name, tool.name) && runsCommands(tool))
  return isCommand ? pattern : CallPattern.spelled(pattern)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Only tools of servers may be meant, and those are unknown. */
const comesLater = (tool: Glob.Glob, verb: "allow" | "deny"): boolean =>
  verb === "allow"
    ? TextShape.fits(later, tool)
    : tool.head !== "" && (tool.head.startsWith("mcp__") || (tool.wild && "mcp__".startsWith(tool.head)))

const later = TextShape.row(TextShape.text("mcp__"), TextShape.any)

/** A pattern over a tool that runs commands speaks of its other parameters alone: a command may not be meant. */
const isBeside = ({ named }: CallPattern.CallPattern, tool: Tool.Any): boolean => {
  const command = traitOf(tool, ToolTrait.ShellCommand)
  const names = Object.keys(tool.parametersSchema.fields)
  return named.length > 0 && named.every(({ name }) => name !== command && names.includes(name))
}

/** A tool whose parameters are not compared: why a pattern for many tools means none of its calls. */
const elsewhere = ({ named, tool }: CallPattern.CallPattern, one: Tool.Any): string | undefined => {
  if (!tool.wild || named.length === 0 || !runsCommands(one)) return undefined
  const names = Object.keys(one.parametersSchema.fields)
  const strange = named.find(({ name }) => !names.includes(name))
  return strange && unknown(one.name, strange.name, strange.value.pattern, names)
}

const unnamed = ({ head, pattern }: Glob.Glob, tools: Iterable<Tool.Any>): string => {
  const names = Array.from(tools, ({ name }) => name)
  const tail = /[^*?]*$/.exec(pattern)?.[0] ?? ""
  const like = (text: string, cut: (name: string, length: number) => string) =>
    Nearest.of(
      text,
      [text.length, text.length + 1, text.length - 1].flatMap((length) => names.map((name) => cut(name, length)))
    )
  const begin = head === "" ? undefined : like(head, (name, length) => name.slice(0, length))
  const end = tail === "" ? undefined : like(tail, (name, length) => name.slice(-length))
  const near = begin === undefined ? end && `*${end}` : `${begin}*`
  return `no tool is named like ${JSON.stringify(pattern)}. ${meant(near, `Tools: ${names.join(", ")}.`)} If you mean tools of servers, begin with mcp__.`
}

/** A parameter, by what its values look like in a rule. */
interface Parameter {
  readonly name: string
  readonly isOptional: boolean
  readonly shape: TextShape.TextShape
  /** Whether a value that a rule spells out fits; a shape knows no refinements. */
  readonly takes: (text: string) => boolean
  readonly ast: SchemaAST.AST
}

/** In the order in which calls are written. Nothing if they are not known. */
const parametersOf = (tool: Tool.Any): ReadonlyArray<Parameter> | undefined => {
  if (Tool.isProviderDefined(tool)) return undefined
  const record = encoded(tool.parametersSchema.ast)
  if (!SchemaAST.isTypeLiteral(record)) return undefined
  // A tool without parameters has none of any name.
  if (!record.indexSignatures.every(({ type }) => SchemaAST.isNeverKeyword(type))) return undefined
  // Paths and addresses are compared in other spellings, too.
  const respelled = new Set([...traitOf(tool, ToolTrait.Paths), traitOf(tool, ToolTrait.WebAddress)])
  return membersOf(record).map(({ isOptional, name, type }) => {
    const free = respelled.has(name)
    const shape = free ? TextShape.any : shapeOf(type, Signature.shown, 0)
    return { name, isOptional, shape, takes: free ? () => true : takes(type), ast: type }
  })
}

/** Tools that a provider defines have no annotations, though their type says so. */
const traitOf = <Id, A>(tool: Tool.Any, trait: Context.Reference<Id, A>): A =>
  Context.get((tool.annotations as Context.Context<never> | undefined) ?? Context.empty(), trait)

const runsCommands = (tool: Tool.Any): boolean => traitOf(tool, ToolTrait.ShellCommand) !== undefined

const misfit = (
  { named, text, whole }: CallPattern.CallPattern,
  tool: string,
  parameters: ReadonlyArray<Parameter>
): string | undefined => {
  const names = parameters.map(({ name }) => name)
  for (const { name, value } of named) {
    const parameter = parameters.find((one) => one.name === name)
    if (parameter === undefined) return unknown(tool, name, value.pattern, names)
    if (/^[=>]/.test(value.pattern)) return respell(tool, name, value.pattern.replace(/^[=>]+ ?/, ""))
    if (!fits(parameter, value)) return unheld(tool, parameter, value.pattern)
  }
  if (named.length > 0) return undefined
  const [, name = "", sign, value = ""] = /^([\w-]+) ?(:(?!\/\/)|\[|!=|~=)[ >]?(.*)$/s.exec(text) ?? []
  const near = names.includes(name) ? name : Nearest.of(name, names)
  if (near !== undefined && sign === "[") {
    const [, inner = "", equal = ""] = /^["']?([^\]"']*)["']?\] ?=? ?(.*)$/s.exec(value) ?? []
    return nested(tool, near, [inner], equal)
  }
  if (near !== undefined && sign !== undefined) return respell(tool, near, value)
  const isAny = parameters.some((one) => fits(one, whole) || matches(TextShape.row(labelOf(one), one.shape), whole))
  if (isAny || matches(signatureOf(tool, parameters), Glob.compile(`${tool}(${text})`))) return undefined
  return `no argument of ${tool} can be ${JSON.stringify(text)}. ${listed(names)}`
}

/** A rule that allows has to spell a whole call. */
const unordered = (
  pattern: string,
  verb: "allow" | "deny",
  { named, text }: CallPattern.CallPattern,
  tool: string,
  parameters: ReadonlyArray<Parameter>
): string | undefined => {
  const shape = signatureOf(tool, parameters)
  if (verb === "deny" || Signature.globs(CallPattern.spelled(pattern)).some((glob) => matches(shape, glob)))
    return undefined
  return `it allows no call of ${tool}, because it does not cover all parameters. Did you mean ${tool}(${covering(named, text, parameters)})?`
}

/** With stars for the parameters that a rule leaves out. */
const covering = (
  named: CallPattern.CallPattern["named"],
  text: string,
  parameters: ReadonlyArray<Parameter>
): string => {
  if (named.length === 0) return `*${text}*`
  const given = [...named].sort(byName)
  const start = given[0]?.name === parameters[0]?.name ? "" : "*"
  const end = given.at(-1)?.name === parameters.at(-1)?.name ? "" : ", *"
  return `${start}${given.map(({ name, value }) => `${name}=${value.pattern}`).join(", *")}${end}`
}

const matches = (shape: TextShape.TextShape, glob: Glob.Glob): boolean => TextShape.fits(shape, glob)

const fits = ({ shape, takes }: Parameter, glob: Glob.Glob): boolean =>
  glob.wild ? matches(shape, glob) : takes(glob.pattern)

const labelOf = ({ name }: Parameter): TextShape.TextShape => TextShape.text(`${name}=`)

const signatureOf = (tool: string, parameters: ReadonlyArray<Parameter>): TextShape.TextShape =>
  TextShape.row(
    TextShape.text(`${tool}(`),
    TextShape.list(
      parameters.map((one) => ({ shape: TextShape.row(labelOf(one), one.shape), optional: one.isOptional })),
      TextShape.text(", ")
    ),
    TextShape.text(")")
  )

// sentences

const listed = (names: ReadonlyArray<string>): string =>
  names.length === 0 ? "The tool has no parameters." : `Parameters: ${names.join(", ")}.`

const meant = (near: string | undefined, otherwise: string): string =>
  near === undefined ? otherwise : `Did you mean ${near}?`

const unknown = (tool: string, name: string, value: string, names: ReadonlyArray<string>): string => {
  const [first = "", ...path] = name.split(".")
  const outer = names.includes(first) ? first : Nearest.of(first, names)
  if (path.length > 0 && outer !== undefined) return nested(tool, outer, path, value)
  return `${tool} has no parameter ${JSON.stringify(name)}. ${meant(Nearest.of(name, names), listed(names))}`
}

const nested = (tool: string, name: string, path: ReadonlyArray<string>, value: string): string =>
  `a rule compares a whole parameter of ${tool}, as JSON. Did you mean ${tool}(${name}=*"${path.at(-1) ?? ""}":"${value}"*)?`

const respell = (tool: string, name: string, value: string): string =>
  `a rule names a parameter with one equals sign. Did you mean ${tool}(${name}=${value.trim()})?`

const unheld = (tool: string, { ast, name }: Parameter, value: string): string => {
  const said = `the parameter ${JSON.stringify(name)} of ${tool} is never ${JSON.stringify(value)}.`
  const texts = textsOf(ast)
  if (texts !== undefined) {
    const near = Nearest.of(value, texts) ?? texts.find((text) => value !== "" && text.startsWith(value))
    return `${said} ${meant(near, `Values: ${texts.join(", ")}.`)}`
  }
  const asNumber = canonicalJson(Number(value))
  const isNumber = value.trim() !== "" && asNumber !== "null" && asNumber !== value
  if (isNumber && takes(ast)(asNumber)) return `${said} Did you mean ${asNumber}?`
  return `${said} It has to be ${kindOf(ast)}.`
}

const kindOf = (ast: SchemaAST.AST): string => {
  const plain = encoded(ast)
  if (SchemaAST.isUnion(plain)) {
    const kinds = plain.types.filter((type) => !SchemaAST.isUndefinedKeyword(type)).map(kindOf)
    return [...new Set(kinds)].join(" or ")
  }
  if (SchemaAST.isNumberKeyword(plain)) return "a number that its schema allows"
  if (SchemaAST.isTypeLiteral(plain) || SchemaAST.isTupleType(plain)) return "JSON without blanks"
  return "a value that its schema allows"
}

/** All values that there are, as rules write them; nothing if they cannot be listed. */
const textsOf = (ast: SchemaAST.AST): ReadonlyArray<string> | undefined => {
  const plain = encoded(ast)
  if (SchemaAST.isLiteral(plain)) return [Signature.shown(plain.literal)]
  if (SchemaAST.isBooleanKeyword(plain)) return ["true", "false"]
  if (SchemaAST.isUndefinedKeyword(plain)) return []
  if (SchemaAST.isEnums(plain)) return plain.enums.map(([, value]) => Signature.shown(value))
  if (!SchemaAST.isUnion(plain)) return undefined
  const members = plain.types.map(textsOf)
  return members.includes(undefined) ? undefined : members.flatMap((texts) => texts ?? [])
}

// schemas

/** What a model sends: the side before transformations, without refinements. */
const encoded = (ast: SchemaAST.AST): SchemaAST.AST =>
  SchemaAST.isTransformation(ast) ? encoded(ast.from) : SchemaAST.isRefinement(ast) ? encoded(ast.from) : ast

/** The text spells a value that the parameter takes. If its schema has to wait or needs a service, every text does. */
const takes = (ast: SchemaAST.AST) => {
  // A member that the schema does not have is a misspelt one.
  const decode = ParseResult.decodeUnknownEither(Schema.make<unknown>(ast), { onExcessProperty: "error" })
  return (text: string): boolean =>
    spelledBy(text).some((value) => {
      try {
        return Either.match(decode(value), { onLeft: ({ _tag }) => _tag === "Forbidden", onRight: () => true })
      } catch {
        return true
      }
    })
}

/** The values that are written like this. */
const spelledBy = (text: string): ReadonlyArray<unknown> => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value !== "string" && canonicalJson(value) === text ? [text, value] : [text]
  } catch {
    return [text]
  }
}

interface Member {
  readonly name: string
  readonly isOptional: boolean
  readonly type: SchemaAST.AST
}

const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1)

const membersOf = ({ propertySignatures }: SchemaAST.TypeLiteral): ReadonlyArray<Member> =>
  propertySignatures
    .map(({ isOptional, name, type }) => ({ name: String(name), isOptional: isOptional || mayLack(type), type }))
    .sort(byName)

const mayLack = (ast: SchemaAST.AST): boolean => {
  const plain = encoded(ast)
  return SchemaAST.isUndefinedKeyword(plain) || (SchemaAST.isUnion(plain) && plain.types.some(mayLack))
}

const { list, many, oneOf, row, text } = TextShape

/** A schema may hold itself; deeper values have any shape. */
const deepest = 6

/** `write`: how a text is written at this place, bare as an argument and quoted in JSON. */
const shapeOf = (given: SchemaAST.AST, write: (value: unknown) => string, depth: number): TextShape.TextShape => {
  const ast = encoded(given)
  const inner = (ast: SchemaAST.AST) => shapeOf(ast, canonicalJson, depth + 1)
  if (depth > deepest) return TextShape.any
  switch (ast._tag) {
    case "Literal":
      return text(typeof ast.literal === "bigint" ? String(ast.literal) : write(ast.literal))
    case "Enums":
      return oneOf(ast.enums.map(([, value]) => text(write(value))))
    case "BooleanKeyword":
      return oneOf([text("true"), text("false")])
    case "NumberKeyword":
      return TextShape.number
    case "Union":
      return oneOf(ast.types.map((type) => shapeOf(type, write, depth)))
    case "Suspend":
      return shapeOf(ast.f(), write, depth + 1)
    case "StringKeyword":
    case "TemplateLiteral":
      return write === canonicalJson ? TextShape.quoted : TextShape.any
    case "UndefinedKeyword":
    case "NeverKeyword":
      return oneOf([])
    case "TupleType": {
      const items = [
        ...ast.elements.map(({ isOptional, type }) => ({ shape: inner(type), optional: isOptional })),
        ...ast.rest.slice(0, 1).map(({ type }) => {
          const item = inner(type)
          return { shape: oneOf([item, row(item, many(row(text(","), item)))]), optional: true }
        }),
        ...ast.rest.slice(1).map(({ type }) => ({ shape: inner(type), optional: false }))
      ]
      return row(text("["), list(items, text(",")), text("]"))
    }
    case "TypeLiteral": {
      if (ast.indexSignatures.length > 0) return row(text("{"), TextShape.any, text("}"))
      const members = membersOf(ast).map(({ isOptional, name, type }) => ({
        shape: row(text(`${JSON.stringify(name)}:`), inner(type)),
        optional: isOptional
      }))
      return row(text("{"), list(members, text(",")), text("}"))
    }
    default:
      return TextShape.any
  }
}
