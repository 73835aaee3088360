/**
 * Tools on the wire: the definition that all formats share, and provider-defined tools.
 *
 * A provider-defined tool is sent to its own provider, with the provider's name and settings for it. For any other
 * provider the request is refused with a sentence.
 */
import * as Tool from "@effect/ai/Tool"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import type { Request, ToolChoice } from "./ModelPort.js"

/** The definition of a tool for a model. */
export interface Definition {
  readonly name: string
  readonly description?: string
  /** JSON Schema. */
  readonly parameters: object
}

/** A provider-defined tool. */
export interface Provided {
  /** The part of the tool's id after the provider's name, such as `web_search_20250305`. */
  readonly kind: string
  /** The provider's name of the tool. */
  readonly name: string
  /** The settings from its registration. */
  readonly settings: object
}

/** The vendors that define tools: prefixes of those tools' ids. */
export type Vendor = "anthropic" | "openai" | "google"

/** Sorts the offered tools by kind. The left is a sentence naming a tool that only another provider can run. */
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

/** The tool choice to send, if any. The left is a sentence about a choice that the tools do not allow. */
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

/** Reason for refusing an output schema in a format without schemas. */
export const noSchema = "it cannot be held to an output schema"

/** The registered name of a tool, by its provider's name. */
export const registered = (tools: ReadonlyArray<Tool.Any>, providerName: string): string | undefined =>
  tools.find((tool) => Tool.isProviderDefined(tool) && tool.providerName === providerName)?.name

/** The provider's name of a tool, by its registered name. */
export const named = (tools: ReadonlyArray<Tool.Any>, name: string): string => {
  const tool = tools.find((one) => one.name === name)
  return tool !== undefined && Tool.isProviderDefined(tool) ? tool.providerName : name
}

/** Arguments of an earlier call: providers expect an object, so text that was not JSON is wrapped in one. */
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
