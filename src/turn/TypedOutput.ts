/**
 * The result that a turn is to yield, by a schema.
 *
 * ```
 *  asked for ─┬─ by the provider's structured output, where the model has it ─┐
 *             └─ by a tool of ours, whose arguments are the result ───────────┴─► a text ─► decoded ─┬─► the value
 *                             the model is told what does not fit, and answers again ◄───────────────┘
 * ```
 *
 * Both ways end in a text of JSON, and so does a model that just writes it. The tool is never shown, decided or run: its
 * call becomes that text, so the history of a typed turn looks like any other and needs nothing to be resumed.
 *
 * @since 0.1.0
 */
import * as Tool from "@effect/ai/Tool"
import * as Either from "effect/Either"
import * as JSONSchema from "effect/JSONSchema"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type { TurnEnd } from "../event/TurnEnd.js"
import type * as Model from "../model/Model.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * What the model said does not fit the schema, also not after it was told so. `issues` are sentences without their full
 * stop; `text` is its last answer.
 *
 * @since 0.1.0
 * @category errors
 */
export class OutputInvalid extends Schema.TaggedError<OutputInvalid>("assent/turn/OutputInvalid")("OutputInvalid", {
  issues: Schema.Array(Schema.String),
  text: Schema.String
}) {
  override get message(): string {
    return `The answer does not fit the schema that was asked for: ${this.issues.join("; ")}.`
  }
}

/**
 * How a turn with a typed result ended: a completed one has the decoded `value`, a failed one may say what did not fit.
 *
 * @since 0.1.0
 * @category models
 */
export type TypedEnd<A> =
  | Exclude<TurnEnd, { readonly _tag: "Completed" | "Failed" }>
  | (Extract<TurnEnd, { readonly _tag: "Completed" }> & { readonly value: A })
  | (Extract<TurnEnd, { readonly _tag: "Failed" }> & { readonly invalid?: OutputInvalid })

/** How one model call asks for the result. */
export interface Asked {
  readonly tools: ReadonlyArray<Tool.Any>
  readonly outputSchema: Model.OutputSchema | undefined
  /** The name of our tool among them, if it is there. */
  readonly tool: string | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The result of one turn. Throws when the schema has no JSON form: no model could answer it. */
export const make = <A, I>(schema: Schema.Schema<A, I>): TypedOutput<A> => {
  // What was compiled for a schema decodes to its type; a map of all schemas cannot say so.
  const known = compiled.get(schema) as Reader<A> | undefined
  if (known !== undefined) return new TypedOutput(known)
  const made: Reader<A> = new Compiled(schema)
  compiled.set(schema, made)
  return new TypedOutput(made)
}

/** The result of one turn, and what has become of it. */
export class TypedOutput<out A = unknown> {
  private value: Option.Option<A> = Option.none()
  private invalid: OutputInvalid | undefined
  private count = 0

  constructor(private readonly reader: Reader<A>) {}

  /** Answers that did not fit; infinite where none could. */
  get failures(): number {
    return this.count
  }

  asked(model: Model.Service, tools: ReadonlyArray<Tool.Any>): Asked {
    return this.reader.asked(model, tools)
  }

  /** Takes an answer as the result; says what does not fit. */
  read(text: string): OutputInvalid | undefined {
    const read = this.reader.read(text)
    this.value = Either.getRight(read)
    this.invalid = Option.getOrUndefined(Either.getLeft(read))
    if (this.invalid !== undefined) this.count += this.invalid.issues.includes(waiting) ? Infinity : 1
    return this.invalid
  }

  /** The turn's end with the result. */
  endOf(end: TurnEnd): TypedEnd<A> {
    if (end._tag === "Failed") return this.invalid === undefined ? end : { ...end, invalid: this.invalid }
    if (end._tag !== "Completed") return end
    // The turn of another process, or one for which another caller waits, has read it with a schema of its own.
    const invalid = Option.isNone(this.value) && this.invalid === undefined ? this.read(end.text) : this.invalid
    const { value } = this
    // Not a spread with one member more: V8 makes a shape for each of those, which takes longer than to decode a short answer.
    if (Option.isSome(value)) return Object.assign({}, end, { value: value.value })
    const unread = invalid ?? new OutputInvalid({ issues: ["it was not read"], text: end.text })
    return { _tag: "Failed", error: unread.message, steps: end.steps, invalid: unread }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Reader<out A> {
  readonly asked: (model: Model.Service, tools: ReadonlyArray<Tool.Any>) => Asked
  readonly read: (text: string) => Either.Either<A, OutputInvalid>
}

const compiled = new WeakMap<object, Reader<unknown>>()

const mostIssues = 10

/** Said of a schema whose decoding waits. No answer could be another, so the model is not asked again. */
const waiting =
  "its schema waits for something while it decodes, and a result is decoded at once; give a schema that does not wait, and do the rest with the value"

/** A schema, made ready once for all turns. */
class Compiled<A, I> implements Reader<A> {
  /** Its root says that it is an object: providers take no other, and no reference there, as a class would be. */
  private readonly jsonSchema: object
  /** Models answer with objects: what is none is the one field of one. */
  private readonly isWrapped: boolean
  private readonly decode: (value: unknown) => Either.Either<A, ParseResult.ParseError>
  private readonly offered = new WeakMap<ReadonlyArray<Tool.Any>, Asked>()

  constructor(private readonly schema: Schema.Schema<A, I>) {
    const itself = jsonSchemaOf(schema)
    this.isWrapped = !("type" in itself) || itself.type !== "object"
    this.jsonSchema = this.isWrapped ? jsonSchemaOf(Schema.Struct({ value: schema })) : itself
    this.decode = Schema.decodeUnknownEither(schema, { errors: "all" })
  }

  asked(model: Model.Service, tools: ReadonlyArray<Tool.Any>): Asked {
    const { outputSchemas } = model
    if (outputSchemas === "always" || (outputSchemas === "withoutTools" && tools.length === 0)) {
      return { tools, outputSchema: { name: "result", schema: this.jsonSchema }, tool: undefined }
    }
    const known = this.offered.get(tools)
    if (known !== undefined) return known
    const tool = this.toolAmong(tools)
    const asked: Asked = { tools: [...tools, tool], outputSchema: undefined, tool: tool.name }
    this.offered.set(tools, asked)
    return asked
  }

  read(text: string): Either.Either<A, OutputInvalid> {
    const invalid = (issues: ReadonlyArray<string>) => new OutputInvalid({ issues, text })
    if (text.trim() === "") return Either.left(invalid(["it is empty"]))
    return Either.flatMap(
      Either.mapLeft(parsed(text), (reason) => invalid([reason])),
      (value) => Either.mapLeft(this.decoded(value), (error) => invalid(issuesOf(error)))
    )
  }

  private decoded(value: unknown): Either.Either<A, ParseResult.ParseError> {
    if (!this.isWrapped || !isWrapping(value)) return this.decode(value)
    // A member of a union may have such a field of its own.
    return Either.orElse(this.decode(value.value), (error) => Either.mapLeft(this.decode(value), () => error))
  }

  private toolAmong(tools: ReadonlyArray<Tool.Any>): Tool.Any {
    let name = "final_result"
    for (let i = 2; tools.some((tool) => tool.name === name); i++) name = `final_result_${i}`
    const description =
      "Takes the result of this task. Call it alone and last, when everything else is done; its arguments are the result."
    const { isWrapped, schema } = this
    const parameters = isWrapped ? Schema.Struct({ value: schema }) : schema
    // A tool's type asks for a struct; of its schema only the JSON form is used.
    return Tool.make(name, { description }).setParameters(parameters as unknown as Schema.Struct<{}>)
  }
}

const jsonSchemaOf = ({ ast }: Schema.Schema.Any): object => {
  const $defs = {}
  const root = JSONSchema.fromAST(ast, { definitions: $defs, topLevelReferenceStrategy: "skip" })
  return Object.keys($defs).length === 0 ? root : { ...root, $defs }
}

const isWrapping = (value: unknown): value is { readonly value: unknown } =>
  typeof value === "object" && value !== null && "value" in value && Object.keys(value).length === 1

/** A text that is JSON, or has one block of it. The left is a sentence without its subject. */
const parsed = (text: string): Either.Either<unknown, string> =>
  Either.mapLeft(UntrustedJson.parse(onlyBlock(text) ?? text), ({ message }) => `it ${message}`)

const onlyBlock = (text: string): string | undefined => {
  // Most answers have none, and to look for one this way costs as much as to parse a short answer.
  if (!text.includes("```")) return undefined
  const [block, second] = text.matchAll(/^```(?:json)?[^\S\n]*\n([\s\S]*?)^```/gm)
  return second === undefined ? block?.[1] : undefined
}

/** Effect's own words for what cannot be decoded without waiting. */
const waits = "cannot be be resolved synchronously"

const issuesOf = (error: ParseResult.ParseError): ReadonlyArray<string> => {
  const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
  if (issues.some(({ _tag, message }) => _tag === "Forbidden" && message.includes(waits))) return [waiting]
  const told = issues.slice(0, mostIssues).map(({ message, path }) => {
    const where = path.length === 0 ? "" : `${path.map(String).join(".")}: `
    return UntrustedJson.echo(`${where}${message}`)
  })
  return issues.length > mostIssues ? [...told, `and ${issues.length - mostIssues} more`] : told
}
