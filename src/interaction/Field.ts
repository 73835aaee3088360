/**
 * One field of a form: its type, its limits, and the one parser of what is typed or sent for it.
 *
 * A form is flat. A field holds a text, a number, yes or no, one choice or several, and never a secret: a form is shown,
 * sent and kept.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Question from "./Question.js"

/**
 * The type of a field's value.
 *
 * @since 0.1.0
 * @category schemas
 */
export const FieldType = Schema.Literal("string", "choice", "choices", "number", "integer", "boolean")
export type FieldType = typeof FieldType.Type

/**
 * The format of a text.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Format = Schema.Literal("email", "uri", "date", "date-time")
export type Format = typeof Format.Type

/**
 * The content of a field: a text or one choice, a number, yes or no, several choices.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Value = Schema.Union(Schema.String, Schema.Number, Schema.Boolean, Schema.Array(Schema.String))
export type Value = typeof Value.Type

/**
 * The content of a form by the names of its fields. A field that was left out is absent.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Values = Schema.Record({ key: Schema.String, value: Value })
export type Values = typeof Values.Type

const Shape = Schema.Struct({
  /** The key of its value; unique in its form. */
  name: Schema.String,
  type: FieldType,
  /** The text that a person reads instead of the name. */
  title: Schema.optional(Schema.String),
  description: Schema.optional(Schema.String),
  required: Schema.optionalWith(Schema.Boolean, { default: () => true }),
  /** The value of an empty line, and the first value in a form. */
  default: Schema.optional(Value),
  /** The values of a choice, each of them once. */
  choices: Schema.optional(Schema.Array(Schema.String)),
  /** The texts of the choices: one for each, in their order. */
  labels: Schema.optional(Schema.Array(Schema.String)),
  minimum: Schema.optional(Schema.Finite),
  maximum: Schema.optional(Schema.Finite),
  /** In characters. */
  minLength: Schema.optional(Schema.NonNegativeInt),
  maxLength: Schema.optional(Schema.NonNegativeInt),
  /** How many choices. */
  minItems: Schema.optional(Schema.NonNegativeInt),
  maxItems: Schema.optional(Schema.NonNegativeInt),
  format: Schema.optional(Format)
})

/**
 * One field. Limits belong to the types that they are named for; a default is a value that the field takes.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Field = Shape.pipe(
  Schema.filter((field) => flawOf(field) ?? true),
  Schema.annotations({ identifier: "Field" })
)
/**
 * One field of a form, decoded. A default that the field does not take is refused by the schema alone.
 *
 * @since 0.1.0
 * @category models
 */
export type Field = typeof Shape.Type

/**
 * The fields of a form: from one to {@link maxFields}, under names of their own.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Fields = Schema.NonEmptyArray(Field).pipe(
  Schema.filter((fields) => {
    if (fields.length > maxFields) return `a form has at most ${maxFields} fields`
    const names = new Set<string>()
    for (const { name } of fields) {
      if (names.has(name)) return `two fields are named ${JSON.stringify(name)}`
      names.add(name)
    }
    return true
  })
)
export type Fields = typeof Fields.Type

/**
 * The most fields of a form.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxFields = 200

/**
 * Why a field refuses a value, as a sentence. Without a field, the problem is about the whole form.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Problem = Schema.Struct({ field: Schema.optional(Schema.String), message: Schema.String })
export type Problem = typeof Problem.Type

// -----------------------------------------------------------------------------------------------------------------
// checking
// -----------------------------------------------------------------------------------------------------------------

/**
 * Why the fields cannot take these values; empty when they do.
 *
 * @since 0.1.0
 * @category getters
 */
export const problems = (
  fields: ReadonlyArray<Field>,
  values: { readonly [name: string]: unknown }
): ReadonlyArray<Problem> => {
  const found: Array<Problem> = []
  const names = new Set(fields.map(({ name }) => name))
  for (const name of Object.keys(values)) {
    if (!names.has(name)) found.push({ field: name, message: "There is no such field." })
  }
  for (const field of fields) {
    const message = problemOf(field, Object.hasOwn(values, field.name) ? values[field.name] : undefined)
    if (message !== undefined) found.push({ field: field.name, message })
  }
  return found
}

/**
 * Why the field cannot take this value: a sentence; `undefined` when it does. An absent value is `undefined`.
 *
 * @since 0.1.0
 * @category getters
 */
export const problemOf = (field: Field, value: unknown): string | undefined => {
  if (value === undefined) return field.required ? "An answer is required." : undefined
  switch (field.type) {
    case "string":
      return typeof value === "string" ? ofText(field, value) : "A text is expected."
    case "number":
      return typeof value === "number" && Number.isFinite(value) ? ofNumber(field, value) : "A number is expected."
    case "integer":
      if (!Number.isInteger(value)) return "A whole number is expected."
      // Beyond it, a number that was written in JSON has become another one.
      return Number.isSafeInteger(value) ? ofNumber(field, Number(value)) : "That is too large to be a whole number."
    case "boolean":
      return typeof value === "boolean" ? undefined : "Yes or no is expected."
    case "choice":
      return typeof value === "string" && choicesOf(field).includes(value) ? undefined : oneOf(field)
    case "choices":
      return Array.isArray(value) ? ofChoices(field, value) : "A list of choices is expected."
  }
}

/**
 * Problems on one line, each behind the title of its field.
 *
 * @since 0.1.0
 * @category conversions
 */
export const told = (fields: ReadonlyArray<Field>, found: ReadonlyArray<Problem>): string =>
  found
    .map(({ field: name, message }) => {
      const field = fields.find((one) => one.name === name)
      return name === undefined ? message : `${field === undefined ? name : titleOf(field)}: ${message}`
    })
    .join(" ")

/**
 * The problems of this field; without a field, those of the whole form.
 *
 * @since 0.1.0
 * @category getters
 */
export const problemsAt = (found: ReadonlyArray<Problem>, field: Field | undefined): ReadonlyArray<string> =>
  found.flatMap(({ field: name, message }) => (name === field?.name ? [message] : []))

/**
 * Whether a field asks for a secret, as far as its name says. A secret has no place in a form.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isSecret = ({ name, title, type }: Field): boolean =>
  type === "string" &&
  [name, title ?? ""].some((words) =>
    secretWords.test(words.replace(/([a-z])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, "$1$3_$2"))
  )

// -----------------------------------------------------------------------------------------------------------------
// typed lines and defaults
// -----------------------------------------------------------------------------------------------------------------

/**
 * Parses the typed value of one field; `undefined` for an empty line. A left is a sentence that says what to type
 * instead. `cancel` is not a value; check `Question.isCancel` first.
 *
 * @since 0.1.0
 * @category conversions
 */
export const parse = (field: Field, line: string): Either.Either<Value | undefined, string> => {
  const text = line.trim()
  if (text === "") {
    return field.default === undefined && field.required
      ? Either.left(`Please type ${expected(field)}.`)
      : Either.right(field.default)
  }
  return Either.flatMap(valueOf(field, text), (value) => {
    const problem = problemOf(field, value)
    return problem === undefined ? Either.right(value) : Either.left(problem)
  })
}

/**
 * The default values. `undefined` if a required field has no default.
 *
 * @since 0.1.0
 * @category getters
 */
export const defaults = (fields: ReadonlyArray<Field>): Values | undefined => {
  const values: Record<string, Value> = {}
  for (const { default: preset, name, required } of fields) {
    if (preset !== undefined) values[name] = preset
    else if (required) return undefined
  }
  return values
}

/**
 * The name of the field that a person reads.
 *
 * @since 0.1.0
 * @category getters
 */
export const titleOf = ({ name, title }: Field): string => title ?? name

/**
 * A value as a person is shown it: a choice by its label, yes or no in words.
 *
 * @since 0.1.0
 * @category conversions
 */
export const shown = (field: Field, value: Value): string => {
  if (typeof value === "boolean") return value ? "yes" : "no"
  const label = (choice: string) => field.labels?.[choicesOf(field).indexOf(choice)] ?? choice
  if (typeof value === "object") return value.map(label).join(", ")
  return field.type === "choice" ? label(String(value)) : String(value)
}

/**
 * Whether the word is one of the field's choices, in any case.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isChoice = ({ choices = [], labels = [] }: Field, word: string): boolean =>
  [...choices, ...labels].some((choice) => choice.trim().toLowerCase() === word.trim().toLowerCase())

/**
 * The expected value in words, such as `a whole number from 1 to 65535`.
 *
 * @since 0.1.0
 * @category getters
 */
export const expected = (field: Field): string => {
  const { format, maximum, minimum } = field
  const range =
    minimum === undefined
      ? maximum === undefined
        ? ""
        : ` of at most ${maximum}`
      : maximum === undefined
        ? ` of at least ${minimum}`
        : ` from ${minimum} to ${maximum}`
  switch (field.type) {
    case "string":
      return format === undefined ? "a text" : formats[format].noun
    case "number":
      return `a number${range}`
    case "integer":
      return `a whole number${range}`
    case "boolean":
      return "yes or no"
    case "choice":
      return `a number from 1 to ${choicesOf(field).length}, or a choice`
    case "choices":
      return "numbers or choices, separated by commas"
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const secretWords =
  /(?:^|[^a-z])(?:pin[ _-]?code|[a-z]*pass(?:word|phrase|code|wd)|secret|token|credentials?|api[ _-]?key|private[ _-]?key)s?(?:$|[^a-z])/i

const choicesOf = ({ choices }: Pick<Field, "choices">): ReadonlyArray<string> => choices ?? []

/** Why this is no field, or nothing. */
const flawOf = (field: Field): string | undefined => {
  const { choices, labels, maxItems, maxLength, maximum, minItems, minLength, minimum, name, type } = field
  const isChoice = type === "choice" || type === "choices"
  if (name.trim() === "" || name === "__proto__") return `${JSON.stringify(name)} cannot be the name of a field`
  const flaw = (reason: string) => `field ${JSON.stringify(name)}: ${reason}`
  if (isChoice !== (choices !== undefined && choices.length > 0)) {
    return flaw(isChoice ? `a ${type} field needs choices` : `a ${type} field has no choices`)
  }
  if (new Set(choices).size !== (choices?.length ?? 0)) return flaw("a choice is there twice")
  if (labels !== undefined && labels.length !== choices?.length) return flaw("there is not one label for each choice")
  for (const [limit, types] of limits) {
    if (field[limit] !== undefined && !types.includes(type)) return flaw(`a ${type} field has no ${limit}`)
  }
  for (const [least, most] of [
    [minimum, maximum],
    [minLength, maxLength],
    [minItems, maxItems ?? choices?.length]
  ]) {
    if (least !== undefined && most !== undefined && least > most) return flaw(`${least} to ${most} is not a range`)
  }
  const problem = field.default === undefined ? undefined : problemOf(field, field.default)
  return problem === undefined ? undefined : flaw(`its default does not fit: ${problem}`)
}

const limits: ReadonlyArray<readonly [limit: keyof Field, types: ReadonlyArray<FieldType>]> = [
  ["minimum", ["number", "integer"]],
  ["maximum", ["number", "integer"]],
  ["minLength", ["string"]],
  ["maxLength", ["string"]],
  ["format", ["string"]],
  ["minItems", ["choices"]],
  ["maxItems", ["choices"]]
]

const ofText = (field: Field, text: string): string | undefined => {
  const { format, maxLength, minLength = 0, required } = field
  if (text.trim() === "") {
    if (required) return "An answer is required."
    if (text === "") return undefined
  }
  // JSON Schema counts characters, where a string counts halves of some.
  const length = text.length >= minLength && text.length <= (maxLength ?? Infinity) ? undefined : [...text].length
  if (length !== undefined && length < minLength) return `At least ${minLength} characters are needed.`
  if (length !== undefined && maxLength !== undefined && length > maxLength) {
    return `At most ${maxLength} characters are allowed.`
  }
  if (format === undefined || formats[format].fits(text)) return undefined
  return `Please give ${formats[format].noun}.`
}

const ofNumber = ({ maximum = Infinity, minimum = -Infinity }: Field, value: number): string | undefined => {
  if (value >= minimum && value <= maximum) return undefined
  if (minimum === -Infinity) return `It must be at most ${maximum}.`
  return maximum === Infinity ? `It must be at least ${minimum}.` : `It must be from ${minimum} to ${maximum}.`
}

const ofChoices = (field: Field, values: ReadonlyArray<unknown>): string | undefined => {
  const { maxItems, minItems = 0, required } = field
  const choices = choicesOf(field)
  if (!values.every((value) => typeof value === "string" && choices.includes(value))) {
    return `Each must be one of ${listed(field)}.`
  }
  if (new Set(values).size !== values.length) return "A choice is repeated."
  if (values.length === 0) return required ? "An answer is required." : undefined
  if (values.length < minItems) return `At least ${minItems} choices are needed.`
  return maxItems !== undefined && values.length > maxItems ? `At most ${maxItems} choices are allowed.` : undefined
}

const oneOf = (field: Field): string => `It must be one of ${listed(field)}.`

const listed = (field: Field): string => {
  const choices = choicesOf(field)
  const first = choices.slice(0, 12).map((choice) => JSON.stringify(choice))
  return choices.length > first.length
    ? `${first.join(", ")} and ${choices.length - first.length} more`
    : first.join(", ")
}

const valueOf = (field: Field, text: string): Either.Either<Value, string> => {
  switch (field.type) {
    case "string":
      return Either.right(text)
    case "number":
    case "integer":
      return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text)
        ? Either.right(Number(text))
        : Either.left(`Please type ${expected(field)}.`)
    case "boolean": {
      const answer = booleans.get(text.toLowerCase())
      return answer === undefined ? Either.left("Please type yes or no.") : Either.right(answer)
    }
    case "choice":
      return Either.map(chosen(field, "single_choice", text), (values) => values[0] ?? "")
    case "choices":
      return chosen(field, "multiple_choice", text)
  }
}

/** The choices that the text names: by number, by label or by value. */
const chosen = (
  field: Field,
  type: "single_choice" | "multiple_choice",
  text: string
): Either.Either<ReadonlyArray<string>, string> => {
  const values = choicesOf(field)
  const byTexts = (choices: ReadonlyArray<string>) =>
    Either.map(Question.parse({ text: "", question_type: type, choices, required: true }, text), (answer) => {
      const numbers = !("selected" in answer)
        ? []
        : typeof answer.selected === "number"
          ? [answer.selected]
          : answer.selected
      return numbers.map((number) => values[number - 1] ?? "")
    })
  return field.labels === undefined ? byTexts(values) : Either.orElse(byTexts(field.labels), () => byTexts(values))
}

/**
 * The words for yes and no, in lower case.
 *
 * @internal
 */
export const booleans: ReadonlyMap<string, boolean> = new Map([
  ["y", true],
  ["yes", true],
  ["true", true],
  ["n", false],
  ["no", false],
  ["false", false]
])

const formats: { readonly [F in Format]: { readonly noun: string; readonly fits: (text: string) => boolean } } = {
  email: { noun: "an e-mail address, such as ada@example.com", fits: (text) => /^[^\s@]+@[^\s@]+$/.test(text) },
  uri: {
    noun: "a whole address, such as https://example.com/",
    fits: (text) => !/\s/.test(text) && Either.isRight(Either.try(() => new URL(text)))
  },
  date: { noun: "a date, such as 2026-01-31", fits: (text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && isDay(text) },
  "date-time": {
    noun: "a date with a time, such as 2026-01-31T09:00:00Z",
    fits: (text) =>
      /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/i.test(text) &&
      isDay(text.slice(0, 10)) &&
      !Number.isNaN(Date.parse(text))
  }
}

/** A date that the calendar does not have, such as the 30th of February, is read as another one. */
const isDay = (text: string): boolean => {
  const time = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}
