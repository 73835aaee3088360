/**
 * A model behind Anthropic's `/v1/messages`, or a gateway that speaks the same.
 *
 * Thinking goes back unchanged, with its signature, or the server would refuse the next turn. Of the optional fields of
 * a request, an output schema is refused, and the image detail is not sent.
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
import type * as WebAddress from "../core/WebAddress.js"
import * as AnthropicReply from "./AnthropicReply.js"
import * as Connection from "./Connection.js"
import * as KnownModel from "./KnownModel.js"
import * as ForeignField from "./ForeignField.js"
import * as FileData from "./FileData.js"
import * as Model from "./Model.js"
import * as OfferedTool from "./OfferedTool.js"
import * as SentJson from "./SentJson.js"
import { ofVendor, type Options } from "./ProviderAddress.js"

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
  const options = ofVendor("anthropic", given)
  return Connection.make(options, {
    keyHeader: (key) => ["x-api-key", key],
    inputs: FileData.usual,
    read: AnthropicReply.make,
    request: (request) =>
      Either.gen(function* () {
        const { prompt, thinking, tools } = request
        if (request.outputSchema !== undefined) return yield* Either.left(OfferedTool.noSchema)
        const { own, provided } = yield* OfferedTool.sort(tools, "anthropic")
        const chosen = yield* OfferedTool.chosen(request)
        const marks = marksOf(request)
        const known = knownOf(options)
        const offered = [
          ...own.map(({ parameters, ...rest }) => ({ ...rest, input_schema: parameters })),
          ...provided.map(({ kind, name, settings }) => ({
            type: kind.replace(/^computer_use_/, "computer_"),
            name,
            ...settings
          }))
        ]
        const system = prompt.content.flatMap((message, index) =>
          message.role === "system" ? marked([systemBlock(message)], marks.has(index)) : []
        )
        const betas = new Set(provided.flatMap(({ kind }) => betaOf(kind)))
        return {
          path: "/v1/messages",
          headers: {
            "anthropic-version": "2023-06-01",
            ...(betas.size === 0 ? {} : { "anthropic-beta": [...betas].join(",") })
          },
          body: {
            model: options.model,
            max_tokens: yield* maxTokens(options, request),
            ...(thinking === undefined ? {} : yield* thinkingOf(thinking, known?.thinking === "effort")),
            ...(system.length === 0 ? {} : { system }),
            messages: yield* messagesOf(prompt, tools, marks),
            ...(offered.length === 0 ? {} : { tools: offered }),
            ...(chosen === undefined ? {} : { tool_choice: toolChoice(chosen, tools) }),
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

const knownOf = ({ model }: Connection.Options): KnownModel.KnownModel | undefined =>
  KnownModel.of(`anthropic/${model}`)

/** Tokens of a reply that nobody limits: enough for a long file, and no bill that surprises. */
const usualOutput = 32_000

// The first generation of Claude 3 refuses more than 4096; all later models accept at least this.
const maxOutput = (options: Connection.Options): number => {
  const known = knownOf(options)?.output
  if (known !== undefined) return Math.min(known, usualOutput)
  return /^claude-3-(haiku|sonnet|opus)/.test(options.model) ? 4096 : 8192
}

/** The server counts thinking as output: without an explicit limit the thinking budget is added on top. */
const maxTokens = (options: Connection.Options, request: Model.Request): Either.Either<number, string> => {
  const budget = request.thinking?.budget ?? 0
  const given = Connection.outputLimit(options, request)
  const limit = given ?? Math.min(knownOf(options)?.output ?? Infinity, maxOutput(options) + budget)
  return budget < limit
    ? Either.right(limit)
    : Either.left(`it is to think ${budget} tokens long in a reply of at most ${limit}`)
}

/** Newer models take a word, and refuse a number of tokens. */
const thinkingOf = ({ budget, effort }: Model.Thinking, takesEffort: boolean): Either.Either<Block, string> => {
  if (budget === 0) return Either.right({ thinking: { type: "disabled" } })
  if (!takesEffort)
    return Either.right(budget === undefined ? {} : { thinking: { type: "enabled", budget_tokens: budget } })
  if (budget !== undefined)
    return Either.left("how much it thinks is said by an effort, such as low, medium or high, and not in tokens")
  return Either.right(effort === undefined ? {} : { output_config: { effort: effort === "minimal" ? "low" : effort } })
}

const toolChoice = (choice: Model.ToolChoice, tools: ReadonlyArray<Tool.Any>): Block =>
  typeof choice === "object"
    ? { type: "tool", name: OfferedTool.named(tools, choice.tool) }
    : { type: choice === "required" ? "any" : choice }

/** The server refuses more marks. The last ones are sent, because their prefixes contain the earlier ones. */
const mostMarks = 4

const marksOf = ({ cacheMarks, prompt }: Model.Request): ReadonlySet<number> => {
  const wanted = cacheMarks ?? usualMarks(prompt.content)
  return new Set(prompt.content.flatMap((_, index) => (wanted.includes(index) ? [index] : [])).slice(-mostMarks))
}

/**
 * The end of the system message; that of the whole prompt, which the next request reads; and that of the request before,
 * because the server looks back from a mark at so few blocks only that one step with many calls is out of its sight.
 * None where somebody has set marks of their own: there would be too many.
 */
const usualMarks = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<number> => {
  const isMarked = ({ options }: { readonly options: Prompt.ProviderOptions }) =>
    options.anthropic?.cacheControl != null
  if (messages.some((message) => isMarked(message) || (message.role !== "system" && message.content.some(isMarked))))
    return []
  const asked = messages.findLastIndex(({ role }) => role === "assistant") - 1
  return [messages.findLastIndex(({ role }) => role === "system"), asked, messages.length - 1]
}

/** Sets a cache mark on the last block. Thinking blocks cannot be marked. */
const marked = (blocks: ReadonlyArray<Block>, isMarked: boolean): ReadonlyArray<Block> => {
  const at = isMarked ? blocks.findLastIndex(({ type }) => type !== "thinking" && type !== "redacted_thinking") : -1
  return at < 0
    ? blocks
    : blocks.map((block, index) => (index === at ? { cache_control: { type: "ephemeral" }, ...block } : block))
}

/** The beta header of a tool that needs one. */
const betaOf = (kind: string): ReadonlyArray<string> => {
  const [, name = "", date = ""] = /^(computer_use|bash|text_editor|code_execution)_(\d{8})$/.exec(kind) ?? []
  const day = date.replace(/^(\d{4})(\d\d)(\d\d)$/, "$1-$2-$3")
  if (name === "code_execution") return [`code-execution-${day}`]
  return name === "" || date > "20250728"
    ? []
    : [date < "20250101" ? "computer-use-2024-10-22" : "computer-use-2025-01-24"]
}

type Block = Readonly<Record<string, unknown>>

const systemBlock = ({ content, options }: Prompt.SystemMessage): Block => ({
  type: "text",
  text: content,
  ...cacheOf({ options })
})

const cacheOf = ({ options }: { readonly options: Prompt.ProviderOptions }): Block => {
  const control = options.anthropic?.cacheControl
  return control == null ? {} : { cache_control: control }
}

/** Successive messages of one role are merged into one. */
const messagesOf = (
  prompt: Prompt.Prompt,
  tools: ReadonlyArray<Tool.Any>,
  marks: ReadonlySet<number>
): Either.Either<ReadonlyArray<Block>, string> =>
  Either.gen(function* () {
    const messages: Array<{ readonly role: "user" | "assistant"; readonly content: Array<Block> }> = []
    for (const [index, message] of prompt.content.entries()) {
      if (message.role === "system") continue
      const role = message.role === "assistant" ? "assistant" : "user"
      const blocks =
        message.role === "assistant"
          ? message.content.flatMap((part) => assistantBlock(part, tools))
          : message.role === "tool"
            ? message.content.map(resultBlock)
            : (yield* Either.all(message.content.map(userBlock))).flat()
      const content = marked(blocks, marks.has(index))
      const last = messages.at(-1)
      if (last?.role === role) last.content.push(...content)
      else if (content.length > 0) messages.push({ role, content: [...content] })
    }
    const last = messages.at(-1)
    const end = last?.content.at(-1)
    // The server refuses trailing blanks in text that the model must continue.
    if (last?.role === "assistant" && end?.type === "text" && typeof end.text === "string") {
      last.content[last.content.length - 1] = { ...end, text: end.text.trimEnd() }
    }
    return messages
  })

/** The server refuses text of blanks only. */
const textBlock = (text: string, part: { readonly options: Prompt.ProviderOptions }): ReadonlyArray<Block> =>
  text.trim() === "" ? [] : [{ type: "text", text, ...cacheOf(part) }]

const userBlock = (part: Prompt.UserMessagePart): Either.Either<ReadonlyArray<Block>, string> => {
  if (part.type === "text") return Either.right(textBlock(part.text, part))
  const mediaType = FileData.mediaType(part)
  const isImage = mediaType.startsWith("image/")
  if (isImage || mediaType === "application/pdf") {
    const source =
      part.data instanceof URL
        ? { type: "url", url: part.data.href }
        : { type: "base64", media_type: mediaType, data: FileData.base64(part.data) }
    const title = isImage || part.fileName === undefined ? {} : { title: part.fileName }
    return Either.right([{ type: isImage ? "image" : "document", source, ...title, ...cacheOf(part) }])
  }
  if (FileData.isText(mediaType)) return Either.map(FileData.text(part), (text) => textBlock(text, part))
  return Either.left(FileData.unreadable(part))
}

const assistantBlock = (part: Prompt.AssistantMessagePart, tools: ReadonlyArray<Tool.Any>): ReadonlyArray<Block> => {
  const kept = ForeignField.record(part.options.anthropic) ?? {}
  switch (part.type) {
    case "text":
      return textBlock(part.text, part)
    case "reasoning":
      if (kept.type === "thinking") return [{ type: "thinking", thinking: part.text, signature: kept.signature }]
      return kept.type === "redacted_thinking" ? [{ type: "redacted_thinking", data: kept.redactedData }] : []
    case "tool-call": {
      const { id, name, params, providerExecuted } = part
      // Calls that another provider ran are left out.
      if (providerExecuted && kept.type !== "server_tool_use") return []
      const type = providerExecuted ? "server_tool_use" : "tool_use"
      return [
        { type, id, name: OfferedTool.named(tools, name), input: OfferedTool.sentArguments(params), ...cacheOf(part) }
      ]
    }
    case "tool-result":
      return typeof kept.type === "string" ? [{ type: kept.type, tool_use_id: part.id, content: part.result }] : []
    default:
      return []
  }
}

const resultBlock = (part: Prompt.ToolResultPart): Block => ({
  type: "tool_result",
  tool_use_id: part.id,
  content: SentJson.resultText(part.result),
  is_error: part.isFailure,
  ...cacheOf(part)
})
