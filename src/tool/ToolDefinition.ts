/**
 * The definition of a tool that a server wrote: name, description and schema, as a model and a person see them.
 *
 * The server may change them at any time. So a permission for the tool holds for one definition, by its digest.
 */
import { canonicalJson } from "../core/CanonicalJson.js"
import * as Digest from "../core/Digest.js"
import * as UntrustedJson from "../core/UntrustedJson.js"

/**
 * A definition, and its difference from another one.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments, as the server wrote it. */
  readonly schema: unknown
  /** Identifies the other three. */
  readonly digest: string
  /** The difference from an earlier definition, in short sentences; empty without an earlier one. */
  readonly since: (before: Written | undefined) => string
}

/**
 * A definition as data.
 *
 * @since 0.1.0
 * @category models
 */
export type Written = Omit<ToolDefinition, "since">

/** The definitions that a person allowed, for longer than one session. */
export interface Known {
  readonly get: (name: string) => Written | undefined
  /** Replaces an earlier definition of the tool. */
  readonly note: (definition: ToolDefinition) => void
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (name: string, description: string, schema: unknown): ToolDefinition => ({
  name,
  description,
  schema,
  digest: Digest.digest([name, description, schema]),
  since: (before) => (before === undefined ? "" : differences(before, description, schema).join(" "))
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const differences = (before: Written, description: string, schema: unknown): ReadonlyArray<string> => {
  const was = parametersOf(before.schema)
  const is = parametersOf(schema)
  const added = [...is.keys()].filter((name) => !was.has(name))
  const removed = [...was.keys()].filter((name) => !is.has(name))
  const changed = [...is].flatMap(([name, text]) => (was.has(name) && was.get(name) !== text ? [name] : []))
  const found = [
    ...(before.description === description
      ? []
      : [`The description was ${quoted(before.description)} and is now ${quoted(description)}.`]),
    ...(added.length === 0 ? [] : [`New parameters: ${listed(added)}.`]),
    ...(removed.length === 0 ? [] : [`Removed parameters: ${listed(removed)}.`]),
    ...(changed.length === 0 ? [] : [`Changed parameters: ${listed(changed)}.`])
  ]
  return found.length === 0 ? ["The schema changed outside of its parameters."] : found
}

const quoted = (text: string): string => JSON.stringify(UntrustedJson.echo(text, 300))

const listed = (names: ReadonlyArray<string>): string =>
  UntrustedJson.few(
    names.map((name) => UntrustedJson.echo(name, 60)),
    10
  ).join(", ")

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

const parametersOf = (schema: unknown): ReadonlyMap<string, string> => {
  const properties = isRecord(schema) ? schema["properties"] : undefined
  return new Map(
    isRecord(properties) ? Object.entries(properties).map(([name, value]) => [name, canonicalJson(value)]) : []
  )
}
