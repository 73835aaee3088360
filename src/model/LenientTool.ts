/**
 * Tools as a language model is offered them through `@effect/ai`: with the declared schema on the wire, and with any
 * arguments accepted on the way back, so that a malformed call reaches the turn instead of failing the reply.
 */
import * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** A lenient tool: neither its arguments nor its results are decoded. */
export type LenientTool = Tool.Tool<
  string,
  {
    readonly parameters: Schema.Struct<{}>
    readonly success: typeof Schema.Unknown
    readonly failure: typeof Schema.Unknown
    readonly failureMode: "error"
  }
>

export type Tools = Record<string, LenientTool>

/** A tool set ready to be offered. Its handler is never called. */
export interface Kit {
  readonly names: ReadonlySet<string>
  readonly toolkit: Toolkit.WithHandler<Tools>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A function from tool sets to kits that remembers both: a session passes the same array turn after turn, so the work
 * on schemas is done once per set, and once per tool when sets share tools. `inline` writes `$ref`s out.
 */
export const makeKits = (inline: boolean): ((tools: ReadonlyArray<Tool.Any>) => Kit) => {
  const kits = new WeakMap<ReadonlyArray<Tool.Any>, Kit>()
  const lenient = new WeakMap<Tool.Any, LenientTool>()
  const lenientOf = (tool: Tool.Any): LenientTool => {
    const known = lenient.get(tool)
    if (known !== undefined) return known
    const made = make(tool, inline)
    lenient.set(tool, made)
    return made
  }
  return (tools) => {
    const known = kits.get(tools)
    // An array that has grown is a new set.
    if (known !== undefined && known.names.size === tools.length) return known
    const record = Object.fromEntries(tools.map((tool) => [tool.name, lenientOf(tool)]))
    const handle = () => Effect.dieMessage("tools are not run inside the stream")
    const kit: Kit = { names: new Set(Object.keys(record)), toolkit: { tools: record, handle } }
    kits.set(tools, kit)
    return kit
  }
}

/** Provider-defined tools are not changed: their schemas are part of the provider's own protocol. */
export const make = (tool: Tool.Any, inline: boolean): LenientTool => {
  // Nothing reads the declared types of a lenient tool: parameters are `Unknown` at run time, which only the type of
  // tools rules out (it admits struct-like schemas), and provider-defined tools are passed through under the same type.
  const open = tool as unknown as LenientTool
  if (!Tool.isUserDefined(tool)) return open
  const declared = Tool.getJsonSchema(open)
  const description = Tool.getDescription(open)
  const parameters: Schema.Schema.Any = Schema.Unknown.annotations({
    jsonSchema: inline ? inlineReferences(declared) : declared,
    ...(description === undefined ? {} : { description })
  })
  return open
    .setParameters(parameters as LenientTool["parametersSchema"])
    .setSuccess(Schema.Unknown)
    .setFailure(Schema.Unknown)
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** A JSON Schema without `$ref`s. A recursive schema cannot be inlined: at the recursion any object is accepted. */
export const inlineReferences = (schema: object): object => {
  const definitions: Record<string, unknown> = "$defs" in schema && Predicate.isRecord(schema.$defs) ? schema.$defs : {}
  const walk = (value: unknown, within: ReadonlyArray<string>): unknown => {
    if (Array.isArray(value)) return value.map((item) => walk(item, within))
    return Predicate.isRecord(value) ? walkObject(value, within) : value
  }
  const walkObject = (value: Record<string, unknown>, within: ReadonlyArray<string>): object => {
    if (typeof value.$ref === "string") {
      const name = decodeURIComponent(value.$ref.slice(value.$ref.lastIndexOf("/") + 1))
      const definition = definitions[name]
      return within.includes(name) || !Predicate.isRecord(definition)
        ? { type: "object" }
        : walkObject(definition, [...within, name])
    }
    const members = Object.entries(value).filter(([key]) => key !== "$defs")
    return Object.fromEntries(members.map(([key, member]) => [key, walk(member, within)]))
  }
  return walkObject({ ...schema }, [])
}
