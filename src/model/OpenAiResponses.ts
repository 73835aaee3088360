/**
 * A model behind OpenAI's `/responses`, or a gateway that speaks the same.
 *
 * Items go back under their ids, reasoning included, so that the server finds its earlier reasoning. Thinking is sent
 * as an effort; the server finds cached prefixes itself.
 *
 * @since 0.1.0
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import type * as WebAddress from "../core/WebAddress.js"
import * as Connection from "./Connection.js"
import * as ForeignField from "./ForeignField.js"
import * as FileData from "./FileData.js"
import * as Model from "./Model.js"
import * as OfferedTool from "./OfferedTool.js"
import * as SentJson from "./SentJson.js"
import { ofVendor, type Options } from "./ProviderAddress.js"
import * as OpenAiReply from "./OpenAiReply.js"

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
  const options = ofVendor("openai", given)
  return Connection.make(options, {
    keyHeader: Connection.bearer,
    inputs: FileData.usual,
    outputSchemas: "always",
    read: OpenAiReply.make,
    request: (request) =>
      Either.gen(function* () {
        const { imageDetail, outputSchema, prompt, thinking, tools } = request
        const { own, provided } = yield* OfferedTool.sort(tools, "openai")
        const chosen = yield* OfferedTool.chosen(request)
        const limit = Connection.outputLimit(options, request)
        const offered = [
          // Strict schemas must list every property as required; schemas of custom tools need not.
          ...own.map((definition) => ({ type: "function", ...definition, strict: false })),
          ...provided.map(({ kind, settings }) => ({ type: kind, ...settings }))
        ]
        return {
          path: "/responses",
          body: {
            model: options.model,
            input: yield* inputOf(prompt, options.model, tools, imageDetail),
            ...(offered.length === 0 ? {} : { tools: offered }),
            ...(chosen === undefined ? {} : { tool_choice: toolChoice(chosen, tools) }),
            ...(limit === undefined ? {} : { max_output_tokens: limit }),
            ...(thinking?.effort === undefined ? {} : { reasoning: { effort: thinking.effort } }),
            ...(outputSchema === undefined
              ? {}
              : { text: { format: { type: "json_schema", ...outputSchema, strict: false } } }),
            stream: true
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

type Item = Readonly<Record<string, unknown>>

/** Reasoning models take the system message in the role `developer`. */
const systemRole = (model: string): string => (/^(o\d|gpt-5|codex-|computer-use)/.test(model) ? "developer" : "system")

/** A tool of the server is chosen by its type. */
const toolChoice = (choice: Model.ToolChoice, tools: ReadonlyArray<Tool.Any>): string | Item => {
  if (typeof choice === "string") return choice
  const tool = tools.find(({ name }) => name === choice.tool)
  return tool !== undefined && Tool.isProviderDefined(tool)
    ? { type: tool.id.slice(tool.id.indexOf(".") + 1) }
    : { type: "function", name: choice.tool }
}

const inputOf = (
  prompt: Prompt.Prompt,
  model: string,
  tools: ReadonlyArray<Tool.Any>,
  detail: Model.Request["imageDetail"]
): Either.Either<ReadonlyArray<Item>, string> =>
  Either.gen(function* () {
    const items: Array<Item> = []
    for (const message of prompt.content) {
      switch (message.role) {
        case "system":
          items.push({ role: systemRole(model), content: message.content })
          break
        case "user":
          items.push({
            role: "user",
            content: yield* Either.all(message.content.map((part) => contentPart(part, detail)))
          })
          break
        case "assistant":
          items.push(...assistantItems(message.content, tools))
          break
        case "tool":
          for (const { id, result } of message.content) {
            items.push({ type: "function_call_output", call_id: id, output: SentJson.resultText(result) })
          }
          break
      }
    }
    return items
  })

const contentPart = (
  part: Prompt.UserMessagePart,
  detail: Model.Request["imageDetail"] = "auto"
): Either.Either<Item, string> => {
  if (part.type === "text") return Either.right({ type: "input_text", text: part.text })
  const mediaType = FileData.mediaType(part)
  if (mediaType.startsWith("image/")) {
    const url = part.data instanceof URL ? part.data.href : FileData.dataUrl(part.data, mediaType)
    return Either.right({ type: "input_image", image_url: url, detail })
  }
  if (mediaType === "application/pdf") {
    if (part.data instanceof URL) return Either.right({ type: "input_file", file_url: part.data.href })
    const file_data = FileData.dataUrl(part.data, mediaType)
    return Either.right({ type: "input_file", filename: part.fileName ?? "document.pdf", file_data })
  }
  if (FileData.isText(mediaType)) return Either.map(FileData.text(part), (text) => ({ type: "input_text", text }))
  return Either.left(FileData.unreadable(part))
}

const assistantItems = (
  parts: ReadonlyArray<Prompt.AssistantMessagePart>,
  tools: ReadonlyArray<Tool.Any>
): ReadonlyArray<Item> => {
  const items: Array<Item> = []
  // Parts of the same reasoning item go back as one.
  const reasoning = new Map<string, Array<Item>>()
  for (const part of parts) {
    const { encryptedContent, itemId } = ForeignField.record(part.options.openai) ?? {}
    const id = ForeignField.name(itemId)
    const named = id === undefined ? {} : { id }
    switch (part.type) {
      case "text":
        if (part.text !== "") {
          items.push({ role: "assistant", content: [{ type: "output_text", text: part.text }], ...named })
        }
        break
      case "reasoning": {
        if (id === undefined) break
        const said = part.text === "" ? [] : [{ type: "summary_text", text: part.text }]
        const known = reasoning.get(id)
        if (known === undefined) {
          const summary: Array<Item> = [...said]
          reasoning.set(id, summary)
          items.push({ type: "reasoning", id, summary, ...encrypted(encryptedContent) })
        } else known.push(...said)
        break
      }
      case "tool-call": {
        if (part.providerExecuted) break
        const { name, params } = part
        const args = SentJson.stringify(OfferedTool.sentArguments(params))
        const called = { call_id: part.id, name: OfferedTool.named(tools, name), arguments: args }
        items.push({ ...named, type: "function_call", ...called })
        break
      }
    }
  }
  return items
}

const encrypted = (content: unknown): Item => (content == null ? {} : { encrypted_content: content })
