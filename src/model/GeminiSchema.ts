/**
 * Converts JSON Schema to Gemini's form: a subset of OpenAPI's, with types in capitals and without references.
 *
 * Unsupported keywords are left out, so the schema accepts more than its tool; the tool's own decoder still refuses
 * invalid arguments.
 */
import * as ForeignField from "./ForeignField.js"
import * as LenientTool from "./LenientTool.js"

export type GeminiSchema = Readonly<Record<string, unknown>>

export const fromJsonSchema = (schema: object): GeminiSchema => convert(LenientTool.inlineReferences(schema))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const types = new Set(["string", "number", "integer", "boolean", "array", "object", "null"])

const convert = (value: unknown): GeminiSchema => {
  const schema = ForeignField.record(value) ?? {}
  const described = pick(schema, ["title", "description"])
  const options = [...ForeignField.list(schema.anyOf), ...ForeignField.list(schema.oneOf)]
  const named = [schema.type].flat().filter((type) => typeof type === "string" && types.has(type))
  const isNull = (option: unknown) => ForeignField.record(option)?.type === "null"
  if (options.length > 0) {
    const rest = options.filter((option) => !isNull(option)).map(convert)
    const nullable = rest.length < options.length ? { nullable: true } : {}
    const [only] = rest
    return rest.length === 1 ? { ...only, ...described, ...nullable } : { anyOf: rest, ...described, ...nullable }
  }
  const nullable = named.length > 1 && named.includes("null") ? { nullable: true } : {}
  const values = schema.const === undefined ? ForeignField.list(schema.enum) : [schema.const]
  if (values.length > 0) {
    // Gemini accepts enums of texts only.
    const type = values.every((one) => typeof one === "number")
      ? "NUMBER"
      : values.every(isBoolean)
        ? "BOOLEAN"
        : "STRING"
    return { type, ...(type === "STRING" ? { enum: values.map(String) } : {}), ...described, ...nullable }
  }
  const type = named.find((one) => one !== "null") ?? named[0]
  switch (type) {
    case "string":
      return {
        type: "STRING",
        ...described,
        ...lengths(schema, "minLength", "maxLength"),
        ...pick(schema, ["pattern"]),
        ...nullable
      }
    case "number":
    case "integer":
      return { type: type.toUpperCase(), ...described, ...pick(schema, ["minimum", "maximum"]), ...nullable }
    case "boolean":
    case "null":
      return { type: type.toUpperCase(), ...described, ...nullable }
    case "array": {
      // For a tuple the first element's schema stands for all.
      const items = Array.isArray(schema.items)
        ? schema.items[0]
        : (schema.items ?? ForeignField.list(schema.prefixItems)[0])
      const bounds = lengths(schema, "minItems", "maxItems")
      return {
        type: "ARRAY",
        ...described,
        ...bounds,
        items: items === undefined ? { type: "STRING" } : convert(items),
        ...nullable
      }
    }
    default: {
      const properties = Object.entries(ForeignField.record(schema.properties) ?? {})
      const required = ForeignField.list(schema.required)
      return {
        type: "OBJECT",
        ...described,
        ...(properties.length === 0
          ? {}
          : { properties: Object.fromEntries(properties.map(([key, one]) => [key, convert(one)])) }),
        ...(required.length === 0 ? {} : { required }),
        ...nullable
      }
    }
  }
}

const isBoolean = (value: unknown): boolean => typeof value === "boolean"

const pick = (schema: Readonly<Record<string, unknown>>, keys: ReadonlyArray<string>): GeminiSchema =>
  Object.fromEntries(keys.flatMap((key) => (schema[key] == null || schema[key] === "" ? [] : [[key, schema[key]]])))

/** Counts are strings on this wire. */
const lengths = (schema: Readonly<Record<string, unknown>>, ...keys: ReadonlyArray<string>): GeminiSchema =>
  Object.fromEntries(Object.entries(pick(schema, keys)).map(([key, value]) => [key, String(value)]))
