/**
 * Converts JSON Schema to Gemini's forms. All models take a subset of OpenAPI's, with types in capitals and without
 * references; newer ones take a subset of JSON Schema as well, in fields of other names. What only that can say, members of
 * any name, tuples and recursion, is said in it.
 *
 * Unsupported keywords are left out, so the schema accepts more than its tool; the tool's own decoder still refuses
 * invalid arguments.
 */
import * as ForeignField from "./ForeignField.js"
import * as LenientTool from "./LenientTool.js"

export type GeminiSchema = Readonly<Record<string, unknown>>

export const fromJsonSchema = (schema: object): GeminiSchema => convert(LenientTool.inlineReferences(schema))

/** The schema in the subset of JSON Schema, where the other form would lose what it is about. */
export const asJsonSchema = (schema: object): GeminiSchema | undefined => {
  const subset = new Subset(ForeignField.record(ForeignField.record(schema)?.$defs) ?? {})
  const root = subset.of(schema, [])
  return subset.isNeeded ? { ...root, ...subset.definitions() } : undefined
}

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

/** A schema on its way into the subset. */
class Subset {
  /** It has something that the other form has not. */
  isNeeded = false
  private readonly referred = new Map<string, GeminiSchema>()

  constructor(private readonly named: Readonly<Record<string, unknown>>) {}

  definitions(): GeminiSchema {
    return this.referred.size === 0 ? {} : { $defs: Object.fromEntries(this.referred) }
  }

  /** `within` are the definitions around it: only a reference to one of those stays one. */
  of(value: unknown, within: ReadonlyArray<string>): GeminiSchema {
    const schema = ForeignField.record(value) ?? {}
    if (typeof schema.$ref === "string") return this.referenceTo(schema.$ref, within)
    const each = (one: unknown) => this.of(one, within)
    const options = [...ForeignField.list(schema.anyOf), ...ForeignField.list(schema.oneOf)]
    return {
      ...pick(schema, ["type", "format", "title", "description", "minItems", "maxItems", "minimum", "maximum"]),
      ...literals(schema),
      ...(options.length === 0 ? {} : { anyOf: options.map(each) }),
      ...this.elements(schema, each),
      ...this.members(schema, each)
    }
  }

  /** Nothing may stand beside a reference. */
  private referenceTo(ref: string, within: ReadonlyArray<string>): GeminiSchema {
    const name = decodeURIComponent(ref.slice(ref.lastIndexOf("/") + 1))
    const definition = this.named[name]
    if (definition === undefined) return { type: "object" }
    if (!within.includes(name)) return this.of(definition, [...within, name])
    this.isNeeded = true
    if (!this.referred.has(name)) {
      this.referred.set(name, {})
      this.referred.set(name, this.of(definition, [name]))
    }
    return { $ref: `#/$defs/${name.replaceAll("~", "~0").replaceAll("/", "~1")}` }
  }

  private elements(schema: Readonly<Record<string, unknown>>, each: (one: unknown) => GeminiSchema): GeminiSchema {
    const { additionalItems, items, prefixItems } = schema
    const first = ForeignField.list(Array.isArray(items) ? items : prefixItems)
    const others = Array.isArray(items) ? additionalItems : items
    if (first.length > 0) this.isNeeded = true
    return {
      ...(first.length === 0 ? {} : { prefixItems: first.map(each) }),
      ...(ForeignField.record(others) === undefined ? {} : { items: each(others) }),
      ...(first.length > 0 && others === false ? { maxItems: first.length } : {})
    }
  }

  private members(schema: Readonly<Record<string, unknown>>, each: (one: unknown) => GeminiSchema): GeminiSchema {
    const properties = Object.entries(ForeignField.record(schema.properties) ?? {})
    const read = Object.fromEntries(properties.map(([key, one]) => [key, each(one)]))
    // A reference to what is around it is followed only so far, and may not stand in what is required.
    const required = ForeignField.list(schema.required).filter(
      (key) => typeof key === "string" && !isEndless(read[key])
    )
    const [pattern] = Object.values(ForeignField.record(schema.patternProperties) ?? {})
    const others = pattern ?? schema.additionalProperties
    const open = others === true || ForeignField.record(others) !== undefined
    if (open) this.isNeeded = true
    return {
      ...(properties.length === 0 ? {} : { properties: read }),
      ...(required.length === 0 ? {} : { required }),
      ...(open ? { additionalProperties: others === true ? true : each(others) } : {})
    }
  }
}

/** Whether it leads to a reference by what has to be there. */
const isEndless = (value: unknown): boolean => {
  const schema = ForeignField.record(value)
  if (schema === undefined) return false
  const properties = ForeignField.record(schema.properties) ?? {}
  const there = ForeignField.list(schema.required).map((key) => properties[String(key)])
  const options = [...ForeignField.list(schema.anyOf), ...ForeignField.list(schema.prefixItems)]
  return (
    schema.$ref !== undefined ||
    [schema.items, schema.additionalProperties, ...options, ...there].some((one) => isEndless(one))
  )
}

/** Texts and numbers may be listed; what else is literal is just of its type. */
const literals = (schema: Readonly<Record<string, unknown>>): GeminiSchema => {
  const values = schema.const === undefined ? ForeignField.list(schema.enum) : [schema.const]
  if (values.length === 0) return {}
  if (values.every((one) => typeof one === "string")) return { type: "string", enum: values }
  if (values.every((one) => typeof one === "number")) return { type: "number", enum: values }
  return values.every(isBoolean) ? { type: "boolean" } : {}
}
