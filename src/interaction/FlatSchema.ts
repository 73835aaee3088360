/**
 * An Effect schema as the fields of a form.
 *
 * What a person fills in is the encoded side: a `NumberFromString` is a text. Limits that a form can show become limits of
 * the field; every other refinement speaks when the values are decoded.
 */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Lazy from "../core/Lazy.js"
import * as Field from "./Field.js"

/**
 * The encoded side of a schema whose values are the fields of one form.
 *
 * @since 0.1.0
 * @category models
 */
export interface Flat {
  readonly [name: string]: string | number | boolean | ReadonlyArray<string> | undefined
}

/**
 * A type none of whose members is a secret.
 *
 * @since 0.1.0
 * @category models
 */
export type Open<A> = { readonly [K in keyof A]: A[K] extends Redacted.Redacted<unknown> ? never : A[K] }

/**
 * A schema is no form: it is nested, holds a secret, or a default that its own limits refuse.
 *
 * @since 0.1.0
 * @category errors
 */
export class SchemaNotFlat extends Schema.TaggedError<SchemaNotFlat>("assent/interaction/SchemaNotFlat")(
  "SchemaNotFlat",
  {
    /** Absent: it is the schema as a whole. */
    field: Schema.optional(Schema.String),
    reason: Schema.String
  }
) {
  override get message(): string {
    const what = this.field === undefined ? "The schema" : `Field ${JSON.stringify(this.field)}`
    return `${what} cannot be asked for with a form: ${this.reason}. Fields are texts, choices, numbers, yes or no.`
  }
}

/** The fields of a schema, in its order. */
export const fields = <A, I, R>(schema: Schema.Schema<A, I, R>): Either.Either<Field.Fields, SchemaNotFlat> => {
  const presets = new Map<PropertyKey, unknown>()
  const literal = typeLiteralOf(schema.ast, presets)
  if (literal === undefined || literal.indexSignatures.length > 0) {
    return Either.left(new SchemaNotFlat({ reason: "it is not a struct of named fields" }))
  }
  if (literal.propertySignatures.length === 0) return Either.left(new SchemaNotFlat({ reason: "it has no fields" }))
  const found: Array<Field.Field> = []
  for (const signature of literal.propertySignatures) {
    const field = fieldOf(signature, presets)
    if (Either.isLeft(field)) return Either.left(field.left)
    found.push(field.right)
  }
  return Either.mapLeft(
    decodeFields(found),
    (issue) =>
      new SchemaNotFlat({ reason: ParseResult.ArrayFormatter.formatIssueSync(issue)[0]?.message ?? "it has no fields" })
  )
}

/** The title that the schema gives itself. */
export const titleOf = <A, I, R>({ ast }: Schema.Schema<A, I, R>): string | undefined =>
  Option.getOrUndefined(AST.getTitleAnnotation(ast))

/** Why decoding failed: a sentence for each field, and for the form where it is about several. */
export const problems = (error: ParseResult.ParseError, fields: Field.Fields): ReadonlyArray<Field.Problem> =>
  ParseResult.ArrayFormatter.formatErrorSync(error).map(({ message, path: [name] }) => {
    const sentence = UntrustedJson.echo(/[.!?]$/.test(message) ? message : `${message}.`)
    return fields.some((field) => field.name === name)
      ? { field: String(name), message: sentence }
      : { message: sentence }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decodeFields = Lazy.make(() => ParseResult.decodeUnknownEither(Field.Fields))

/** The struct that is filled in. On the way to it, what stands for members that are left out is collected. */
const typeLiteralOf = (ast: AST.AST, presets: Map<PropertyKey, unknown>): AST.TypeLiteral | undefined => {
  if (AST.isTypeLiteral(ast)) return ast
  if (AST.isRefinement(ast)) return typeLiteralOf(ast.from, presets)
  if (!AST.isTransformation(ast)) return undefined
  if (AST.isTypeLiteralTransformation(ast.transformation)) {
    for (const { decode, from } of ast.transformation.propertySignatureTransformations) {
      const preset = Either.getOrElse(
        Either.try(() => decode(Option.none())),
        () => Option.none()
      )
      // What becomes an `Option` has nothing in its place.
      if (Option.isSome(preset) && preset.value !== undefined && !Option.isOption(preset.value)) {
        presets.set(from, preset.value)
      }
    }
  }
  return typeLiteralOf(ast.from, presets)
}

const fieldOf = (
  signature: AST.PropertySignature,
  presets: ReadonlyMap<PropertyKey, unknown>
): Either.Either<Field.Field, SchemaNotFlat> => {
  const name = String(signature.name)
  const refused = (reason: string) => Either.left(new SchemaNotFlat({ field: name, reason }))
  if (typeof signature.name !== "string") return refused("its name is a symbol")
  const look = lookAt(signature.type, signature.isOptional)
  if (look.isSecret) return refused("it is a secret, and forms are shown, sent and stored")
  if (look.shape === undefined) return refused(look.reason)
  const own = (id: symbol): string | undefined => {
    const words = signature.annotations[id]
    return typeof words === "string" ? words : undefined
  }
  const title = own(AST.TitleAnnotationId) ?? look.title
  const description = own(AST.DescriptionAnnotationId) ?? look.description
  const given = presets.has(name) ? Option.some(presets.get(name)) : AST.getDefaultAnnotation(signature.type)
  const preset = Option.flatMap(given, (value) => encoded(signature.type, value))
  if (Option.isSome(given) && Option.isNone(preset)) return refused("its default is not one of its values")
  return Either.right({
    name,
    ...look.shape,
    ...look.limits,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(Option.isNone(preset) ? {} : { default: preset.value }),
    required: !signature.isOptional && !look.isOptional
  })
}

/** A default as it is filled in; nothing where it has no such form. */
const encoded = (ast: AST.AST, value: unknown): Option.Option<Field.Value> =>
  Option.filter(
    Either.getRight(
      Either.flatMap(
        Either.try(() => ParseResult.encodeUnknownEither(Schema.make<unknown, unknown, never>(ast))(value)),
        (result) => result
      )
    ),
    Schema.is(Field.Value)
  )

type Shape = Pick<Field.Field, "type" | "choices" | "labels">
type Limits = Pick<Field.Field, "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" | "format">

interface Look {
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly shape?: Shape | undefined
  readonly limits?: Limits | undefined
  readonly isOptional?: boolean
  readonly isSecret?: boolean
  /** Why there is no shape. */
  readonly reason: string
}

const none: Look = { reason: "it is nested, or its type has no field in a form" }

const lookAt = (ast: AST.AST, isOptional: boolean): Look => {
  const inner = within(ast, isOptional)
  return { ...inner, title: titleAt(ast) ?? inner.title, description: descriptionAt(ast) ?? inner.description }
}

const within = (ast: AST.AST, isOptional: boolean): Look => {
  switch (ast._tag) {
    case "StringKeyword":
    case "TemplateLiteral":
      return { ...none, shape: { type: "string" } }
    case "NumberKeyword":
      return { ...none, shape: { type: "number" } }
    case "BooleanKeyword":
      return { ...none, shape: { type: "boolean" } }
    case "Literal":
      return ofChoices([ast])
    case "Enums":
      return ast.enums.every(([, value]) => typeof value === "string")
        ? {
            ...none,
            shape: {
              type: "choice",
              choices: ast.enums.map(([, value]) => String(value)),
              labels: ast.enums.map(([label]) => label)
            }
          }
        : numbersAsChoices
    case "Union": {
      const rest = ast.types.filter((type) => !isNothing(type, isOptional))
      const [only] = rest
      if (only !== undefined && rest.length === 1) {
        const inner = lookAt(only, isOptional)
        return rest.length < ast.types.length ? { ...inner, isOptional: true } : inner
      }
      const choices = ofChoices(rest)
      return rest.length < ast.types.length ? { ...choices, isOptional: true } : choices
    }
    case "TupleType": {
      const [item] = ast.rest
      if (ast.elements.length > 0 || ast.rest.length !== 1 || item === undefined) return none
      const { shape } = lookAt(item.type, false)
      return shape?.type === "choice"
        ? { ...none, shape: { ...shape, type: "choices" } }
        : { reason: "a list is a choice among several literals" }
    }
    case "Refinement": {
      const inner = lookAt(ast.from, isOptional)
      return inner.shape === undefined ? inner : limited(inner, inner.shape, AST.getJSONSchemaAnnotation(ast))
    }
    case "Transformation":
      // Limits outside of it are about what it makes of the value that is filled in.
      return { ...lookAt(ast.from, isOptional), isSecret: isRedacted(ast.to) }
    case "Declaration":
      return { ...none, isSecret: isRedacted(ast) }
    default:
      return none
  }
}

/** A member that may be absent may be `undefined`, and `null` where it is optional. */
const isNothing = (type: AST.AST, isOptional: boolean): boolean =>
  AST.isUndefinedKeyword(type) || (isOptional && AST.isLiteral(type) && type.literal === null)

const numbersAsChoices: Look = { reason: "choices are texts" }

const ofChoices = (types: ReadonlyArray<AST.AST>): Look => {
  const literals = types.flatMap((type) => (AST.isLiteral(type) ? [type.literal] : []))
  if (literals.length !== types.length || types.length === 0) return none
  return literals.every(Predicate.isString)
    ? { ...none, shape: { type: "choice", choices: literals } }
    : numbersAsChoices
}

/** The field with what a refinement says of itself in JSON Schema, as far as it is a limit of its type. */
const limited = (inner: Look, shape: Shape, annotation: Option.Option<object>): Look => {
  const said = Option.getOrElse(annotation, () => ({}))
  const number = (name: string): number | undefined => {
    const value: unknown = Predicate.hasProperty(said, name) ? said[name] : undefined
    return typeof value === "number" && Number.isFinite(value) ? value : undefined
  }
  const isWhole = shape.type === "integer" || (Predicate.hasProperty(said, "type") && said.type === "integer")
  const format: unknown = Predicate.hasProperty(said, "format") ? said.format : undefined
  const before = inner.limits ?? {}
  const beyond = (limit: number | undefined, step: number) =>
    limit === undefined || !isWhole ? undefined : limit + step
  const tightest = (
    pick: (...limits: ReadonlyArray<number>) => number,
    ...limits: ReadonlyArray<number | undefined>
  ) => {
    const there = limits.filter((limit) => limit !== undefined)
    return there.length === 0 ? undefined : pick(...there)
  }
  const limits: { readonly [L in keyof Limits]: Limits[L] | undefined } =
    shape.type === "number" || shape.type === "integer"
      ? {
          minimum: tightest(Math.max, before.minimum, number("minimum"), beyond(number("exclusiveMinimum"), 1)),
          maximum: tightest(Math.min, before.maximum, number("maximum"), beyond(number("exclusiveMaximum"), -1))
        }
      : shape.type === "string"
        ? {
            minLength: tightest(Math.max, before.minLength, number("minLength")),
            maxLength: tightest(Math.min, before.maxLength, number("maxLength")),
            format: Schema.is(Field.Format)(format) ? format : before.format
          }
        : shape.type === "choices"
          ? {
              minItems: tightest(Math.max, before.minItems, number("minItems")),
              maxItems: tightest(Math.min, before.maxItems, number("maxItems"))
            }
          : {}
  return {
    ...inner,
    shape: isWhole && shape.type === "number" ? { ...shape, type: "integer" } : shape,
    limits: Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined))
  }
}

/** Recognized by what it says of itself, as every wrapper of Effect's does. */
const isRedacted = (ast: AST.AST): boolean => {
  const constructor = ast.annotations[AST.TypeConstructorAnnotationId]
  return Predicate.hasProperty(constructor, "_tag") && constructor._tag === "effect/Redacted"
}

// Effect's own refinements and keywords describe themselves for programmers; a person is shown what the author wrote.
const titleAt = (ast: AST.AST): string | undefined =>
  Option.getOrUndefined(Option.filter(AST.getTitleAnnotation(ast), (title) => !ownTitle.test(title)))

const descriptionAt = (ast: AST.AST): string | undefined =>
  Option.getOrUndefined(
    Option.filter(AST.getDescriptionAnnotation(ast), (text) => !(isDescribed(ast) && ownDescription.test(text)))
  )

const isDescribed = (ast: AST.AST): boolean =>
  AST.isStringKeyword(ast) ||
  AST.isNumberKeyword(ast) ||
  AST.isBooleanKeyword(ast) ||
  Option.isSome(AST.getSchemaIdAnnotation(ast)) ||
  AST.isTransformation(ast)

const ownTitle =
  /^(?:[a-z][A-Za-z]*\(.*\)|string|number|boolean|int|finite|nonNaN|nonEmptyString|nonEmptyTrimmedString|trimmed|lowercased|uppercased|capitalized|uncapitalized|positive|negative|nonNegative|nonPositive)$/s

const ownDescription = /^an? [a-z -]*(?:string|number|integer|array|boolean|character)\b/
