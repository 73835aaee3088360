/**
 * A model behind Google's `streamGenerateContent`, or a gateway that speaks the same.
 *
 * Signatures of thoughts go back with their parts. Thinking is sent as a budget; the server finds cached prefixes
 * itself. A tool choice can force a function, but not a tool of the server.
 *
 * @since 0.1.0
 */
import type * as Prompt from "@effect/ai/Prompt"
import type * as HttpClient from "@effect/platform/HttpClient"
import type * as Tool from "@effect/ai/Tool"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as WebAddress from "../core/WebAddress.js"
import * as Connection from "./Connection.js"
import * as ForeignField from "./ForeignField.js"
import * as FileData from "./FileData.js"
import * as GeminiReply from "./GeminiReply.js"
import * as GeminiSchema from "./GeminiSchema.js"
import * as Model from "./Model.js"
import * as OfferedTool from "./OfferedTool.js"
import { ofVendor, type Options } from "./ProviderAddress.js"
import * as ThinkingSetting from "./ThinkingSetting.js"

export { WebAddressRefused } from "../core/WebAddress.js"
export type { Options } from "./ProviderAddress.js"

/**
 * A model that asks the server through the client of the context. Nothing is sent before the first generation.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  given: Options
): Effect.Effect<Model.Service, WebAddress.WebAddressRefused, HttpClient.HttpClient> => {
  const options = ofVendor("google", given)
  return Connection.make(options, {
    keyHeader: (key) => ["x-goog-api-key", key],
    // The API refuses a schema beside tools for most of its models.
    outputSchemas: "withoutTools",
    inputs: [...FileData.usual, "image/*", "audio/*", "video/*"],
    read: GeminiReply.make,
    request: (request) =>
      Either.gen(function* () {
        const { prompt, tools } = request
        const { own, provided } = yield* OfferedTool.sort(tools, "google")
        const chosen = yield* toolChoice(yield* OfferedTool.chosen(request), own)
        const functions = own.map(functionOf)
        const offered = [
          ...(functions.length === 0 ? [] : [{ functionDeclarations: functions }]),
          ...provided.map(({ kind, settings }) => ({ [camelCase(kind)]: settings }))
        ]
        const { contents, system } = yield* contentsOf(prompt, tools)
        // Gemma has no system instructions.
        const isGemma = options.model.toLowerCase().startsWith("gemma-")
        const instructed = system.length > 0 && !isGemma ? { systemInstruction: { parts: system } } : {}
        return {
          path: `/v1beta/models/${options.model.replace(/^models\//, "")}:streamGenerateContent?alt=sse`,
          body: {
            ...instructed,
            contents: isGemma && system.length > 0 ? [{ role: "user", parts: system }, ...contents] : contents,
            ...(offered.length === 0 ? {} : { tools: offered }),
            ...chosen,
            ...configOf(request, options.model, Connection.outputLimit(options, request))
          }
        }
      })
  })
}

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * The model of this server is the one that agents use; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<Model.Model, WebAddress.WebAddressRefused, HttpClient.HttpClient> =>
  Layer.effect(Model.Model, make(options))

/**
 * Like {@link layer}, with settings from `Config`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  options: Config.Config.Wrap<Options>
): Layer.Layer<Model.Model, WebAddress.WebAddressRefused | ConfigError.ConfigError, HttpClient.HttpClient> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(options), layer))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Part = Readonly<Record<string, unknown>>

interface Content {
  readonly role: "user" | "model"
  readonly parts: ReadonlyArray<Part>
}

const toolChoice = (
  choice: Model.ToolChoice | undefined,
  own: ReadonlyArray<OfferedTool.Definition>
): Either.Either<Part, string> => {
  if (choice === undefined) return Either.right({})
  const isOne = typeof choice === "object"
  if (isOne && !own.some(({ name }) => name === choice.tool))
    return Either.left(`it cannot be made to call ${choice.tool}`)
  const allowed = isOne ? { allowedFunctionNames: [choice.tool] } : {}
  const mode = isOne || choice === "required" ? "ANY" : choice.toUpperCase()
  return Either.right({ toolConfig: { functionCallingConfig: { mode, ...allowed } } })
}

const thinkingOf = ({ budget, effort }: Model.Thinking, model: string): Part => {
  if (budget !== undefined) return { thinkingConfig: { thinkingBudget: budget } }
  return effort !== undefined && ThinkingSetting.isByWord(model) ? { thinkingConfig: { thinkingLevel: effort } } : {}
}

const configOf = (
  { imageDetail, outputSchema, thinking }: Model.Request,
  model: string,
  limit: number | undefined
): Part => {
  const config = {
    ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    ...(thinking === undefined ? {} : thinkingOf(thinking, model)),
    ...(imageDetail === undefined || imageDetail === "auto"
      ? {}
      : { mediaResolution: `MEDIA_RESOLUTION_${imageDetail.toUpperCase()}` }),
    ...(outputSchema === undefined ? {} : { responseMimeType: "application/json", ...shapeOf(outputSchema.schema) })
  }
  return Object.keys(config).length === 0 ? {} : { generationConfig: config }
}

const shapeOf = (schema: object): Part => {
  const json = GeminiSchema.asJsonSchema(schema)
  return json === undefined ? { responseSchema: GeminiSchema.fromJsonSchema(schema) } : { responseJsonSchema: json }
}

const camelCase = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/** The API refuses an object schema without properties. */
const functionOf = ({ parameters, ...rest }: OfferedTool.Definition): Part => {
  const json = GeminiSchema.asJsonSchema(parameters)
  if (json !== undefined) return { ...rest, parametersJsonSchema: json }
  const schema = GeminiSchema.fromJsonSchema(parameters)
  return Object.keys(ForeignField.record(schema.properties) ?? {}).length === 0 ? rest : { ...rest, parameters: schema }
}

const contentsOf = (
  prompt: Prompt.Prompt,
  tools: ReadonlyArray<Tool.Any>
): Either.Either<{ readonly system: ReadonlyArray<Part>; readonly contents: ReadonlyArray<Content> }, string> =>
  Either.gen(function* () {
    const system: Array<Part> = []
    const contents: Array<Content> = []
    for (const message of prompt.content) {
      switch (message.role) {
        case "system":
          system.push({ text: message.content })
          break
        case "user":
          contents.push({ role: "user", parts: yield* Either.all(message.content.map(userPart)) })
          break
        case "assistant":
          contents.push({ role: "model", parts: message.content.flatMap((part) => modelPart(part, tools)) })
          break
        case "tool":
          contents.push({ role: "user", parts: message.content.map((part) => responsePart(part, tools)) })
          break
      }
    }
    return { system, contents: contents.filter(({ parts }) => parts.length > 0) }
  })

const userPart = (part: Prompt.UserMessagePart): Either.Either<Part, string> => {
  if (part.type === "text") return Either.right({ text: part.text })
  const mimeType = FileData.mediaType(part)
  if (part.data instanceof URL) return Either.right({ fileData: { mimeType, fileUri: part.data.href } })
  if (FileData.isText(mimeType)) return Either.map(FileData.text(part), (text) => ({ text }))
  return Either.right({ inlineData: { mimeType, data: FileData.base64(part.data) } })
}

const modelPart = (part: Prompt.AssistantMessagePart, tools: ReadonlyArray<Tool.Any>): ReadonlyArray<Part> => {
  const kept = ForeignField.record(part.options.google) ?? {}
  const signature = kept.thoughtSignature == null ? {} : { thoughtSignature: kept.thoughtSignature }
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ text: part.text, ...signature }]
    case "reasoning":
      return part.text === "" ? [] : [{ text: part.text, thought: true, ...signature }]
    case "tool-call": {
      const { id, params, providerExecuted } = part
      if (providerExecuted) return kept.part === "executableCode" ? [{ executableCode: params }] : []
      const name = OfferedTool.named(tools, part.name)
      const called = { ...(kept.hasId === true ? { id } : {}), name, args: OfferedTool.sentArguments(params) }
      return [{ functionCall: called, ...signature }]
    }
    case "tool-result":
      return kept.part === "codeExecutionResult" ? [{ codeExecutionResult: part.result }] : []
    default:
      return []
  }
}

/** The API accepts only objects as results. */
const responsePart = ({ id, name, result }: Prompt.ToolResultPart, tools: ReadonlyArray<Tool.Any>): Part => ({
  functionResponse: {
    id,
    name: OfferedTool.named(tools, name),
    response: Predicate.isRecord(result) ? result : { result: result ?? null }
  }
})
