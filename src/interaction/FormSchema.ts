/**
 * The fields of a form as flat JSON Schema, and back. Callers use it under the name `Form`.
 *
 * The schema is the subset that elicitations of the Model Context Protocol and the Agent Client Protocol allow.
 */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Lazy from "../core/Lazy.js"
import * as Field from "./Field.js"

/**
 * A form as data.
 *
 * @since 0.1.0
 * @category models
 */
export interface Form {
  /** What is shown above the fields. */
  readonly message: string
  readonly requestedSchema: ObjectSchema
}

/**
 * The schema of what is filled in.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObjectSchema {
  readonly type: "object"
  /** In the order in which they are shown. */
  readonly properties: { readonly [name: string]: Property }
  readonly required: ReadonlyArray<string>
}

interface Described {
  readonly title?: string
  readonly description?: string
}

/**
 * The schema of one field.
 *
 * @since 0.1.0
 * @category models
 */
export type Property = Described &
  (
    | {
        readonly type: "string"
        readonly minLength?: number
        readonly maxLength?: number
        readonly format?: Field.Format
        readonly default?: string
      }
    | ({ readonly type: "string"; readonly default?: string } & (
        { readonly enum: ReadonlyArray<string> } | { readonly oneOf: ReadonlyArray<TitledChoice> }
      ))
    | {
        readonly type: "array"
        readonly minItems?: number
        readonly maxItems?: number
        readonly items:
          | { readonly type: "string"; readonly enum: ReadonlyArray<string> }
          | { readonly anyOf: ReadonlyArray<TitledChoice> }
        readonly default?: ReadonlyArray<string>
      }
    | {
        readonly type: "number" | "integer"
        readonly minimum?: number
        readonly maximum?: number
        readonly default?: number
      }
    | { readonly type: "boolean"; readonly default?: boolean }
  )

/**
 * A choice with the words that a person is shown for it.
 *
 * @since 0.1.0
 * @category models
 */
export interface TitledChoice {
  readonly const: string
  readonly title: string
}

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

/**
 * A form of these fields.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  message: string,
  fields: ReadonlyArray<Field.Field>,
  /** What was wrong with what was filled in before; it is told where it belongs. */
  problems: ReadonlyArray<Field.Problem> = []
): Form => ({
  message: [message, ...Field.problemsAt(problems, undefined)].join(" "),
  requestedSchema: {
    type: "object",
    properties: Object.fromEntries(
      fields.map((field) => [field.name, propertyOf(field, Field.problemsAt(problems, field))])
    ),
    required: fields.filter((field) => field.required).map((field) => field.name)
  }
})

/**
 * The fields of somebody else's form, such as an elicitation of a server. A left says what of its schema is no flat form.
 *
 * @since 0.1.0
 * @category conversions
 */
export const readSchema = (schema: unknown): Either.Either<Field.Fields, string> => {
  const refusal = UntrustedJson.refusal(schema, { size: maxSize })
  if (refusal !== undefined) return Either.left(`it ${refusal.message}`)
  return Either.mapLeft(
    Either.flatMap(decodeObject(schema), ({ properties, required = [] }) =>
      decodeFields(
        Object.entries(properties).map(([name, property]) => fieldOf(name, property, required.includes(name)))
      )
    ),
    (issue) => {
      const [first] = ParseResult.ArrayFormatter.formatIssueSync(issue)
      const at = first?.path.map(String).join(".") ?? ""
      return UntrustedJson.echo(`${at === "" ? "" : `${at}: `}${first?.message ?? "it is not a flat form"}`)
    }
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The limit of a schema from outside. In characters. */
const maxSize = 1_048_576

const propertyOf = (field: Field.Field, problems: ReadonlyArray<string>): Property => {
  const { choices = [], labels, required, title } = field
  const words = [...problems, ...(field.description === undefined ? [] : [field.description])]
  const described = {
    ...(title === undefined ? {} : { title }),
    ...(words.length === 0 ? {} : { description: words.join(" ") })
  }
  const limits = <L extends "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" | "format">(
    ...names: ReadonlyArray<L>
  ): { readonly [N in L]?: Exclude<Field.Field[N], undefined> } =>
    // `Object.fromEntries` forgets the keys it was given.
    Object.fromEntries(names.flatMap((name) => (field[name] === undefined ? [] : [[name, field[name]]]))) as {
      readonly [N in L]?: Exclude<Field.Field[N], undefined>
    }
  const titled = labels?.map((label, index): TitledChoice => ({ const: choices[index] ?? "", title: label }))
  const preset = field.default
  switch (field.type) {
    case "string":
      return {
        type: "string",
        ...described,
        ...(required ? { minLength: 1 } : {}),
        ...limits("minLength", "maxLength", "format"),
        ...(typeof preset === "string" ? { default: preset } : {})
      }
    case "choice":
      return {
        type: "string",
        ...described,
        ...(titled === undefined ? { enum: choices } : { oneOf: titled }),
        ...(typeof preset === "string" ? { default: preset } : {})
      }
    case "choices":
      return {
        type: "array",
        ...described,
        ...(required ? { minItems: 1 } : {}),
        ...limits("minItems", "maxItems"),
        items: titled === undefined ? { type: "string", enum: choices } : { anyOf: titled },
        ...(typeof preset === "object" ? { default: preset } : {})
      }
    case "number":
    case "integer":
      return {
        type: field.type,
        ...described,
        ...limits("minimum", "maximum"),
        ...(typeof preset === "number" ? { default: preset } : {})
      }
    case "boolean":
      return { type: "boolean", ...described, ...(typeof preset === "boolean" ? { default: preset } : {}) }
  }
}

const Texts = Schema.Array(Schema.String)
const TitledList = Schema.Array(Schema.Struct({ const: Schema.String, title: Schema.optional(Schema.String) }))

/** Every property that a flat form may have, of every revision of the protocols. */
const ForeignProperty = Schema.Struct({
  type: Schema.Literal("string", "number", "integer", "boolean", "array"),
  title: Schema.optional(Schema.String),
  description: Schema.optional(Schema.String),
  default: Schema.optional(Schema.Unknown),
  enum: Schema.optional(Texts),
  enumNames: Schema.optional(Texts),
  oneOf: Schema.optional(TitledList),
  items: Schema.optional(Schema.Struct({ enum: Schema.optional(Texts), anyOf: Schema.optional(TitledList) })),
  minimum: Schema.optional(Schema.Number),
  maximum: Schema.optional(Schema.Number),
  minLength: Schema.optional(Schema.Number),
  maxLength: Schema.optional(Schema.Number),
  minItems: Schema.optional(Schema.Number),
  maxItems: Schema.optional(Schema.Number),
  format: Schema.optional(Schema.String)
})

const decodeObject = Lazy.make(() =>
  ParseResult.decodeUnknownEither(
    Schema.Struct({
      type: Schema.Literal("object"),
      properties: Schema.Record({ key: Schema.String, value: ForeignProperty }),
      required: Schema.optional(Texts)
    })
  )
)

const decodeFields = Lazy.make(() => ParseResult.decodeUnknownEither(Field.Fields))

/** A draft that `Field` decodes, or refuses with a reason. */
const fieldOf = (name: string, property: typeof ForeignProperty.Type, required: boolean): unknown => {
  const { items, type } = property
  const titled = property.oneOf ?? items?.anyOf
  const choices = titled?.map((one) => one.const) ?? property.enum ?? items?.enum
  const labels = titled?.map((one) => one.title ?? one.const) ?? property.enumNames
  const isText = type === "string" && choices === undefined
  const isNumber = type === "number" || type === "integer"
  const given = {
    title: property.title,
    description: property.description,
    default: property.default,
    choices,
    labels,
    minimum: isNumber ? property.minimum : undefined,
    maximum: isNumber ? property.maximum : undefined,
    // A required field is not empty, and needs no limit to say so.
    minLength: isText && !(required && property.minLength === 1) ? property.minLength : undefined,
    maxLength: isText ? property.maxLength : undefined,
    minItems: type === "array" && !(required && property.minItems === 1) ? property.minItems : undefined,
    maxItems: type === "array" ? property.maxItems : undefined,
    format: isText && isFormat(property.format) ? property.format : undefined
  }
  return {
    name,
    type: type === "array" ? "choices" : type === "string" && choices !== undefined ? "choice" : type,
    required,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  }
}

const isFormat = Schema.is(Field.Format)
