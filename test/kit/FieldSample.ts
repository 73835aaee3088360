/** Random fields of forms, and a second opinion on what their JSON Schema takes. */
import * as FastCheck from "effect/FastCheck"
import type * as Field from "../../src/interaction/Field.js"
import type * as Form from "../../src/interaction/Form.js"

const name = FastCheck.string({ minLength: 1, maxLength: 8 }).filter(
  (text) => text.trim() !== "" && text !== "__proto__" && !/^\d+$/.test(text)
)
const choice = FastCheck.constantFrom("a", "b", "c", "d", "1", "2", "yes")
const maybe = <A>(of: FastCheck.Arbitrary<A>) => FastCheck.option(of, { nil: undefined })

/** A value of any field, or of none. */
export const value: FastCheck.Arbitrary<unknown> = FastCheck.oneof(
  FastCheck.constantFrom("a", "b", "1", "abc", "", "x".repeat(9), "2026-01-31", "ada@example.com", undefined),
  FastCheck.integer({ min: -3, max: 12 }),
  FastCheck.constantFrom(0.5, 1e9),
  FastCheck.boolean(),
  FastCheck.array(choice, { maxLength: 4 }),
  FastCheck.constant({ nested: true })
)

const limits = FastCheck.tuple(
  maybe(FastCheck.integer({ min: 2, max: 4 })),
  maybe(FastCheck.integer({ min: 4, max: 8 }))
)

/** One field without its name, as `Field` decodes it. Defaults are added where they fit. */
const draft: FastCheck.Arbitrary<Omit<Field.Field, "name">> = FastCheck.record({
  type: FastCheck.constantFrom<Array<Field.FieldType>>("string", "choice", "choices", "number", "integer", "boolean"),
  title: maybe(FastCheck.string({ maxLength: 8 })),
  description: maybe(FastCheck.string({ maxLength: 8 })),
  required: FastCheck.boolean(),
  choices: FastCheck.uniqueArray(choice, { minLength: 4, maxLength: 5 }),
  isLabelled: FastCheck.boolean(),
  limits,
  preset: FastCheck.boolean()
}).map(({ choices, description, isLabelled, limits: [least, most], preset, required, title, type }) => {
  const common = defined({ type, title, description, required })
  const labels = isLabelled ? choices.map((one) => `The ${one}`) : undefined
  switch (type) {
    case "string":
      return { ...common, ...defined({ minLength: least, maxLength: most, default: preset ? "text" : undefined }) }
    case "choice":
      return { ...common, ...defined({ choices, labels, default: preset ? choices[0] : undefined }) }
    case "choices":
      return {
        ...common,
        ...defined({ choices, labels, minItems: least, maxItems: most }),
        ...(preset ? { default: choices.slice(0, 4) } : {})
      }
    case "number":
    case "integer":
      return { ...common, ...defined({ minimum: least, maximum: most, default: preset ? 4 : undefined }) }
    case "boolean":
      return { ...common, ...defined({ default: preset ? true : undefined }) }
  }
})

const defined = <A extends object>(members: A): { [K in keyof A]: Exclude<A[K], undefined> } =>
  // `Object.fromEntries` forgets the keys it was given.
  Object.fromEntries(Object.entries(members).filter(([, member]) => member !== undefined)) as {
    [K in keyof A]: Exclude<A[K], undefined>
  }

/** Fields under names of their own. */
export const fields: FastCheck.Arbitrary<ReadonlyArray<Field.Field>> = FastCheck.uniqueArray(
  FastCheck.tuple(name, draft),
  { minLength: 1, maxLength: 6, selector: ([name]) => name }
).map((entries) => entries.map(([name, draft]) => ({ name, ...draft })))

/** The fields at which the values break the schema, by the words of JSON Schema alone. */
export const refusals = (
  form: Form.Form | undefined,
  values: { readonly [name: string]: unknown }
): ReadonlyArray<string> => {
  if (form === undefined) return ["(no form)"]
  const { properties, required } = form.requestedSchema
  return [
    ...required.filter((name) => values[name] === undefined),
    ...Object.entries(values).flatMap(([name, value]) => {
      const property = properties[name]
      return value === undefined || (property !== undefined && takes(property, value, required.includes(name)))
        ? []
        : [name]
    })
  ]
}

const takes = (property: Form.Property, value: unknown, required: boolean): boolean => {
  switch (property.type) {
    case "boolean":
      return typeof value === "boolean"
    case "number":
    case "integer":
      return (
        typeof value === "number" &&
        (property.type === "number" || Number.isInteger(value)) &&
        value >= (property.minimum ?? -Infinity) &&
        value <= (property.maximum ?? Infinity)
      )
    case "array": {
      const { items } = property
      const all = "anyOf" in items ? items.anyOf.map((one) => one.const) : items.enum
      // A client that cannot leave a field out sends it empty.
      if (!required && Array.isArray(value) && value.length === 0) return true
      return (
        Array.isArray(value) &&
        new Set(value).size === value.length &&
        value.every((one: unknown) => typeof one === "string" && all.includes(one)) &&
        value.length >= (property.minItems ?? 0) &&
        value.length <= (property.maxItems ?? Infinity)
      )
    }
    case "string": {
      if (typeof value !== "string") return false
      if ("enum" in property) return property.enum.includes(value)
      if ("oneOf" in property) return property.oneOf.some((one) => one.const === value)
      if (!required && value === "") return true
      return value.length >= (property.minLength ?? 0) && value.length <= (property.maxLength ?? Infinity)
    }
  }
}
