/**
 * The tools of a server as tools of an agent.
 *
 * Names, descriptions, schemas and annotations are claims of the server. No annotation makes a tool read-only, idempotent
 * or approved. The model gets the schema as the server wrote it.
 */
import * as Tool from "@effect/ai/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as Digest from "../core/Digest.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as ForeignText from "../core/ForeignText.js"
import type { ResultFile } from "../subagent/ResultFiles.js"
import * as ToolDefinition from "../tool/ToolDefinition.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ToolTrait from "../tool/ToolTrait.js"
import type { ListedTool } from "./McpClient.js"

/** What a list of tools comes to. */
export interface Listing {
  readonly entries: ReadonlyArray<ToolRegistry.Entry>
  /** Sentences about tools that are left out. */
  readonly remarks: ReadonlyArray<string>
}

/** Runs one call; both ends are text for the model. */
export type Call = (
  listed: ListedTool,
  definition: ToolDefinition.ToolDefinition,
  params: Readonly<Record<string, unknown>>
) => Effect.Effect<string, string>

/** The beginning of the names of a server's tools. */
export const prefix = (server: string): string => `mcp__${server}__`

/** The group of a server's tools. */
export const group = (server: string): string => `mcp:${server}`

/** The source of foreign text of a server. */
export const source = (server: string): string => `mcp:${server}`

/**
 * The entries of a server. The left is a sentence without its subject: the server is refused as a whole. `wanted` are the
 * only tools that count, by the server's names.
 */
export const entries = (
  server: string,
  listed: ReadonlyArray<ListedTool>,
  wanted: ReadonlyArray<string> | undefined,
  call: Call
): Either.Either<Listing, string> => {
  if (listed.length > maxTools) return Either.left(`lists ${listed.length} tools, and at most ${maxTools} are taken`)
  const remarks: Array<string> = []
  const byName = new Map<string, ToolRegistry.Entry>()
  for (const tool of listed) {
    if (wanted !== undefined && !wanted.includes(tool.name)) continue
    const problem = flawOf(tool)
    if (problem !== undefined) {
      remarks.push(`Its tool ${shown(tool.name)} ${problem}.`)
      continue
    }
    const name = nameOf(server, tool.name)
    if (byName.has(name)) return Either.left(`has two tools of the name ${name}`)
    byName.set(name, entryOf(server, name, tool, call))
  }
  for (const name of wanted ?? []) {
    if (!listed.some((tool) => tool.name === name)) remarks.push(`It has no tool ${shown(name)}, which "tools" names.`)
  }
  return Either.right({ entries: [...byName.values()], remarks })
}

/** The name of a tool of a server, for models. A long name ends in a digest of the whole. */
export const nameOf = (server: string, tool: string): string => {
  const name = `${prefix(server)}${tool.replace(/[^A-Za-z0-9_-]/g, "_")}`
  return name.length <= maxName ? name : `${name.slice(0, maxName - 9)}_${Digest.sha256(tool).slice(0, 8)}`
}

/** A tool without any trait that would spare a question. */
export const plainEntry = (options: {
  readonly name: string
  readonly group: string
  readonly description: string
  readonly schema: object
  readonly definition: ToolDefinition.ToolDefinition | undefined
  readonly warnings: ReadonlyArray<string>
  readonly handler: (params: Readonly<Record<string, unknown>>) => Effect.Effect<string, string>
}): ToolRegistry.Entry => {
  const { definition, description, group, handler, name, schema, warnings } = options
  const parameters = Schema.Struct({}, Schema.Record({ key: Schema.String, value: Schema.Unknown })).annotations({
    jsonSchema: schema
  })
  const tool = Tool.make(name, { description, success: Schema.String, failure: Schema.String })
    .setParameters(parameters)
    .annotate(ToolTrait.Groups, [group])
  return {
    name,
    tool,
    handler: (params) => handler(Predicate.isRecord(params) ? params : {}),
    context: Context.empty(),
    decode,
    encode: same,
    encodeFailure: same,
    kind: "other",
    readonly: false,
    idempotent: false,
    essential: false,
    autoApproved: false,
    groups: [group],
    editable: undefined,
    shellCommand: undefined,
    sandboxed: false,
    outlives: undefined,
    paths: [],
    webAddress: undefined,
    timeout: undefined,
    injectable: undefined,
    resumable: false,
    continues: true,
    validate: undefined,
    preview:
      warnings.length === 0
        ? undefined
        : (params) =>
            Effect.succeed({ details: JSON.stringify(params, undefined, 2), format: "json" as const, warnings }),
    definition
  }
}

// -----------------------------------------------------------------------------------------------------------------
// results
// -----------------------------------------------------------------------------------------------------------------

/** The images and files that content holds, and why some are left out, by their place in the content. */
export const filesIn = (
  content: ReadonlyArray<unknown>
): { readonly files: ReadonlyMap<number, ResultFile>; readonly problems: ReadonlyMap<number, string> } => {
  const files = new Map<number, ResultFile>()
  const problems = new Map<number, string>()
  for (const [at, part] of content.entries()) {
    if (!Predicate.isRecord(part)) continue
    const { resource, type } = part
    const holder = type === "image" || type === "audio" ? part : type === "resource" ? resource : undefined
    if (!Predicate.isRecord(holder)) continue
    const { mimeType: mediaType } = holder
    const base64 = type === "resource" ? holder["blob"] : holder["data"]
    if (typeof base64 !== "string" || base64 === "") continue
    // Before it is decoded, which takes several times its size.
    if (base64.length > maxFile) problems.set(at, `It has more than ${maxFile / 1_000_000} MB in base64.`)
    else if (typeof mediaType !== "string" || !/^[\w.+-]{1,50}\/[\w.+-]{1,100}$/.test(mediaType)) {
      problems.set(at, "The server does not say of which type it is.")
    } else {
      const bytes = Encoding.decodeBase64(base64)
      if (Either.isLeft(bytes)) problems.set(at, "It is no base64.")
      else files.set(at, { bytes: bytes.right, mediaType, name: `file-${at + 1}` })
    }
  }
  return { files, problems }
}

/**
 * The content of a result as text for the model, marked as foreign. `remarks` are sentences of ours about parts, by their
 * place in the content.
 */
export const textOf = (
  server: string,
  content: ReadonlyArray<unknown>,
  structured: unknown,
  remarks: ReadonlyMap<number, string> = new Map()
): string => {
  const parts = content.map((part, at) => {
    const remark = remarks.get(at)
    return remark === undefined ? partOf(part) : `${partOf(part)} ${remark}`
  })
  const whole = structured === undefined ? undefined : JSON.stringify(structured)
  // A server that has structured content writes the same as text, for older clients.
  if (whole !== undefined && !parts.some((part) => isSameJson(part, structured))) parts.push(whole)
  const text = ForeignText.clean(parts.join("\n"))
  const cut = text.length > maxText
  return ForeignText.mark(
    source(server),
    text === "" ? "(no content)" : cut ? `${UntrustedJson.echo(text, maxText)}\n[The result goes on.]` : text
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Characters of a name; vendors take no more. */
const maxName = 64
const maxTools = 1_000
/** Characters of a schema and of a description. */
const maxSchema = 262_144
const maxDescription = 20_000
/** Characters of a file in base64. */
const maxFile = 5_000_000
/** Characters of a result. */
const maxText = 50_000

const flawOf = ({ description, isTask, name, schema }: ListedTool): string | undefined => {
  if (name === "") return "has no name"
  if (isTask) return "runs as a task only, which is not supported"
  if (description.length > maxDescription) return `has a description of more than ${maxDescription} characters`
  const refusal = UntrustedJson.refusal(schema, { size: maxSchema, isCopied: true })
  return refusal === undefined ? undefined : `has a schema that ${refusal.message}`
}

const shown = (name: string): string => JSON.stringify(UntrustedJson.echo(ForeignText.clean(name), 80))

const entryOf = (server: string, name: string, tool: ListedTool, call: Call): ToolRegistry.Entry => {
  const definition = ToolDefinition.make(name, tool.description, tool.schema)
  return plainEntry({
    name,
    group: group(server),
    description: ForeignText.clean(tool.description),
    schema: tool.schema,
    definition,
    warnings: tool.destructive ? [`The server ${server} says that this tool may destroy data.`] : [],
    handler: (params) => call(tool, definition, params)
  })
}

const decode: ToolRegistry.Entry["decode"] = (params = {}) => {
  if (!Predicate.isRecord(params) || Array.isArray(params)) return Either.left("they are no object")
  return Either.right(params)
}

const same = (value: unknown): unknown => value

const isSameJson = (text: string, value: unknown): boolean =>
  Either.match(UntrustedJson.parse(text), {
    onLeft: () => false,
    onRight: (parsed) => canonicalJson(parsed) === canonicalJson(value)
  })

const partOf = (part: unknown): string => {
  if (!Predicate.isRecord(part)) return ""
  const { data, mimeType, name, resource, text, type, uri } = part
  switch (type) {
    case "text":
      return typeof text === "string" ? text : ""
    case "image":
    case "audio":
      return `[${type} ${worded(mimeType)}, ${sizeOf(data)}]`
    case "resource_link":
      return `[resource ${worded(uri)}${typeof name === "string" ? `: ${worded(name)}` : ""}]`
    case "resource":
      return resourceText(resource)
    default:
      return `[content of the unknown type ${worded(type)}]`
  }
}

/** What a resource holds, as text. */
const resourceText = (resource: unknown): string => {
  if (!Predicate.isRecord(resource)) return ""
  const { blob, mimeType, text, uri } = resource
  if (typeof text === "string") return `[resource ${worded(uri)}]\n${text}`
  return `[resource ${worded(uri)}, ${worded(mimeType)}, ${sizeOf(blob)}]`
}

const worded = (value: unknown): string =>
  typeof value === "string" ? UntrustedJson.echo(ForeignText.clean(value), 200) : "unnamed"

const sizeOf = (base64: unknown): string =>
  typeof base64 === "string" ? `${Math.ceil((base64.length * 3) / 4 / 1_000)} kB` : "empty"
