/**
 * The vocabulary of a `/chat/completions` request: a prompt as messages, tools as functions.
 *
 * Reasoning is not sent back: servers that follow this protocol either ignore it or refuse it.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Predicate from "effect/Predicate"

export type ChatMessage =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: string | ReadonlyArray<ContentPart> }
  | { readonly role: "assistant"; readonly content: string | null; readonly tool_calls?: ReadonlyArray<FunctionCall> }
  | { readonly role: "tool"; readonly tool_call_id: string; readonly content: string }

export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } }
  | { readonly type: "file"; readonly file: { readonly filename: string; readonly file_data: string } }

export interface FunctionCall {
  readonly id: string
  readonly type: "function"
  readonly function: { readonly name: string; readonly arguments: string }
}

export interface FunctionDefinition {
  readonly type: "function"
  readonly function: { readonly name: string; readonly description?: string; readonly parameters: object }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** A prompt as messages, in order; the left is a sentence naming a file that the protocol cannot carry. */
export const fromPrompt = (prompt: Prompt.Prompt): Either.Either<ReadonlyArray<ChatMessage>, string> =>
  Either.gen(function* () {
    const messages: Array<ChatMessage> = []
    for (const message of prompt.content) {
      switch (message.role) {
        case "system":
          messages.push({ role: "system", content: message.content })
          break
        case "user":
          messages.push({ role: "user", content: yield* userContent(message.content) })
          break
        case "assistant":
          messages.push(...assistantMessages(message.content))
          break
        case "tool":
          for (const part of message.content) messages.push(toolMessage(part))
          break
      }
    }
    return messages
  })

/** A tool as a function; computed once per tool. The left is a sentence naming a tool only its own provider can run. */
export const fromTool = (tool: Tool.Any): Either.Either<FunctionDefinition, string> => {
  const known = definitions.get(tool)
  if (known !== undefined) return Either.right(known)
  if (!Tool.isUserDefined(tool)) return Either.left(`it cannot run the provider-defined tool ${tool.name}`)
  // The utilities of `Tool` ask for a tool with all its type parameters and read only its schema.
  const open = tool as unknown as Tool.Tool<string, ToolConfig>
  const description = Tool.getDescription(open)
  const definition: FunctionDefinition = {
    type: "function",
    function: {
      name: tool.name,
      ...(description === undefined ? {} : { description }),
      parameters: Tool.getJsonSchema(open)
    }
  }
  definitions.set(tool, definition)
  return Either.right(definition)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type ToolConfig = Tool.Any extends Tool.Tool<infer _Name, infer Config, infer _Requirements> ? Config : never

const definitions = new WeakMap<Tool.Any, FunctionDefinition>()

const userContent = (
  parts: ReadonlyArray<Prompt.UserMessagePart>
): Either.Either<string | ReadonlyArray<ContentPart>, string> => {
  // Small servers know text messages only, so lists are kept for messages that need one.
  const texts = parts.filter((part) => part.type === "text").map((part) => part.text)
  return texts.length === parts.length ? Either.right(texts.join("\n")) : Either.all(parts.map(contentPart))
}

const contentPart = (part: Prompt.UserMessagePart): Either.Either<ContentPart, string> => {
  if (part.type === "text") return Either.right({ type: "text", text: part.text })
  const mediaType = part.mediaType === "image/*" ? "image/jpeg" : part.mediaType
  if (mediaType.startsWith("image/")) {
    const url = part.data instanceof URL ? part.data.href : dataUrl(mediaType, part.data)
    return Either.right({ type: "image_url", image_url: { url } })
  }
  const name = part.fileName ?? mediaType
  if (part.data instanceof URL) return Either.left(`it cannot read ${name} from a URL`)
  if (mediaType.startsWith("text/") || mediaType === "application/json") {
    const text =
      part.data instanceof Uint8Array ? Either.right(new TextDecoder().decode(part.data)) : decoded(part.data)
    return Either.mapBoth(text, {
      onLeft: () => `the data of ${name} is not base64`,
      onRight: (text) => ({ type: "text", text: part.fileName === undefined ? text : `${part.fileName}:\n${text}` })
    })
  }
  return mediaType === "application/pdf"
    ? Either.right({ type: "file", file: { filename: name, file_data: dataUrl(mediaType, part.data) } })
    : Either.left(`it cannot read files of the type ${mediaType} (${name})`)
}

const decoded = (base64: string): Either.Either<string, unknown> => Encoding.decodeBase64String(base64)

const dataUrl = (mediaType: string, data: string | Uint8Array): string =>
  `data:${mediaType};base64,${typeof data === "string" ? data : Encoding.encodeBase64(data)}`

const assistantMessages = (parts: ReadonlyArray<Prompt.AssistantMessagePart>): ReadonlyArray<ChatMessage> => {
  const text = parts.flatMap((part) => (part.type === "text" && part.text !== "" ? [part.text] : [])).join("\n")
  const calls = parts.flatMap((part) =>
    part.type === "tool-call" && !part.providerExecuted ? [functionCall(part)] : []
  )
  if (calls.length > 0) return [{ role: "assistant", content: text === "" ? null : text, tool_calls: calls }]
  return text === "" ? [] : [{ role: "assistant", content: text }]
}

// Servers parse the arguments of earlier calls, and expect an object: text that was not JSON goes back in one.
const functionCall = (part: Prompt.ToolCallPart): FunctionCall => ({
  id: part.id,
  type: "function",
  function: {
    name: part.name,
    arguments: JSON.stringify(Predicate.isRecord(part.params) ? part.params : { arguments: part.params })
  }
})

const toolMessage = (part: Prompt.ToolResultPart): ChatMessage => ({
  role: "tool",
  tool_call_id: part.id,
  content: JSON.stringify(part.result) ?? "null"
})
