/**
 * Tools as they are offered on the wire: what every format says of one, and the tools that providers define themselves.
 *
 * A provider-defined tool is passed to its own provider, under the name and with the settings that the provider knows it
 * by. To any other it is refused in words.
 */
import * as Tool from "@effect/ai/Tool"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import type { Request, ToolChoice } from "./ModelPort.js"

/** What a model is told of a tool. */
export interface Definition {
  readonly name: string
  readonly description?: string
  /** JSON Schema. */
  readonly parameters: object
}

/** A tool that a provider defines. */
export interface Provided {
  /** Behind the name of the provider in the tool's id, such as `web_search_20250305`. */
  readonly kind: string
  /** As the provider calls it. */
  readonly name: string
  /** How whoever registered it has set it up. */
  readonly settings: object
}

/** The vendors that define tools, as the ids of those begin. */
export type Vendor = "anthropic" | "openai" | "google"

/** Everything that is offered, sorted. The left is a sentence naming a tool that only another provider can run. */
export const sort = (
  tools: ReadonlyArray<Tool.Any>,
  vendor: Vendor | undefined
): Either.Either<{ readonly own: ReadonlyArray<Definition>; readonly provided: ReadonlyArray<Provided> }, string> => {
  const own: Array<Definition> = []
  const provided: Array<Provided> = []
  for (const tool of tools) {
    if (!Tool.isProviderDefined(tool)) own.push(definition(tool))
    else if (vendor !== undefined && tool.id.startsWith(`${vendor}.`)) {
      const settings = Predicate.isRecord(tool.args) ? tool.args : {}
      provided.push({ kind: tool.id.slice(vendor.length + 1), name: tool.providerName, settings })
    } else {
      return Either.left(
        `it cannot run the provider-defined tool ${tool.name}; use a model of ${tool.id.split(".")[0]}`
      )
    }
  }
  return Either.right({ own, provided })
}

/**
 * Which of the tools a reply may call, where there is something to say of it. The left is a sentence, for a choice that
 * the tools do not leave.
 */
export const chosen = ({
  toolChoice,
  tools
}: Pick<Request, "toolChoice" | "tools">): Either.Either<ToolChoice | undefined, string> => {
  if (typeof toolChoice === "object" && !tools.some(({ name }) => name === toolChoice.tool)) {
    return Either.left(`it is to call the tool ${toolChoice.tool}, which it was not given`)
  }
  if (tools.length > 0) return Either.right(toolChoice)
  return toolChoice === "required" ? Either.left("it is to call a tool, and was given none") : Either.right(undefined)
}

/** Why a request is refused that wants another shape than text of a format that knows no schema. */
export const noSchema = "it cannot be held to an output schema"

/** The name under which a tool is registered, by the name that its provider uses. */
export const registered = (tools: ReadonlyArray<Tool.Any>, providerName: string): string | undefined =>
  tools.find((tool) => Tool.isProviderDefined(tool) && tool.providerName === providerName)?.name

/** The name that the provider uses, by the one under which a tool is registered. */
export const named = (tools: ReadonlyArray<Tool.Any>, name: string): string => {
  const tool = tools.find((one) => one.name === name)
  return tool !== undefined && Tool.isProviderDefined(tool) ? tool.providerName : name
}

/** Arguments of an earlier call: providers expect an object, so text that was not JSON goes back in one. */
export const sentArguments = (params: unknown): object => (Predicate.isRecord(params) ? params : { arguments: params })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type ToolConfig = Tool.Any extends Tool.Tool<infer _Name, infer Config, infer _Requirements> ? Config : never

const definitions = new WeakMap<Tool.Any, Definition>()

/** Computed once per tool. */
const definition = (tool: Tool.Any): Definition => {
  const known = definitions.get(tool)
  if (known !== undefined) return known
  // The utilities of `Tool` ask for a tool with all its type parameters and read only its schema.
  const open = tool as unknown as Tool.Tool<string, ToolConfig>
  const description = Tool.getDescription(open)
  const made: Definition = {
    name: tool.name,
    ...(description === undefined ? {} : { description }),
    parameters: Tool.getJsonSchema(open)
  }
  definitions.set(tool, made)
  return made
}
