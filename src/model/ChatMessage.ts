/**
 * The vocabulary of a `/chat/completions` request: a prompt as messages, tools as functions.
 *
 * Reasoning is not sent back: servers that follow this protocol either ignore it or refuse it.
 */
import type * as Prompt from "@effect/ai/Prompt"
import type * as Tool from "@effect/ai/Tool"
import * as Either from "effect/Either"
import * as FileData from "./FileData.js"
import type { Request, ToolChoice } from "./ModelPort.js"
import * as OfferedTool from "./OfferedTool.js"
import * as SentJson from "./SentJson.js"

export type ChatMessage =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: string | ReadonlyArray<ContentPart> }
  | { readonly role: "assistant"; readonly content: string | null; readonly tool_calls?: ReadonlyArray<FunctionCall> }
  | { readonly role: "tool"; readonly tool_call_id: string; readonly content: string }

export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string; readonly detail?: Detail } }
  | { readonly type: "file"; readonly file: { readonly filename: string; readonly file_data: string } }

/** The detail of an image. */
export type Detail = NonNullable<Request["imageDetail"]>

export interface FunctionCall {
  readonly id: string
  readonly type: "function"
  readonly function: { readonly name: string; readonly arguments: string }
}

export interface FunctionDefinition {
  readonly type: "function"
  readonly function: OfferedTool.Definition
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** A prompt as messages, in order; the left is a sentence naming a file that the protocol cannot carry. */
export const fromPrompt = (
  prompt: Prompt.Prompt,
  detail?: Detail | undefined
): Either.Either<ReadonlyArray<ChatMessage>, string> =>
  Either.gen(function* () {
    const messages: Array<ChatMessage> = []
    for (const message of prompt.content) {
      switch (message.role) {
        case "system":
          messages.push({ role: "system", content: message.content })
          break
        case "user":
          messages.push({ role: "user", content: yield* userContent(message.content, detail) })
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

/** Tools as functions; the left is a sentence naming a tool that only its own provider can run. */
export const fromTools = (tools: ReadonlyArray<Tool.Any>): Either.Either<ReadonlyArray<FunctionDefinition>, string> =>
  Either.map(OfferedTool.sort(tools, undefined), ({ own }) =>
    own.map((definition) => ({ type: "function", function: definition }))
  )

/** A choice among the functions. */
export const toolChoice = (choice: ToolChoice): string | object =>
  typeof choice === "string" ? choice : { type: "function", function: { name: choice.tool } }

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const userContent = (
  parts: ReadonlyArray<Prompt.UserMessagePart>,
  detail: Detail | undefined
): Either.Either<string | ReadonlyArray<ContentPart>, string> => {
  // Small servers accept plain text only, so lists are used only for messages that need one.
  const texts = parts.filter((part) => part.type === "text").map((part) => part.text)
  return texts.length === parts.length
    ? Either.right(texts.join("\n"))
    : Either.all(parts.map((part) => contentPart(part, detail)))
}

const contentPart = (part: Prompt.UserMessagePart, detail: Detail | undefined): Either.Either<ContentPart, string> => {
  if (part.type === "text") return Either.right({ type: "text", text: part.text })
  const mediaType = FileData.mediaType(part)
  if (mediaType.startsWith("image/")) {
    const url = part.data instanceof URL ? part.data.href : FileData.dataUrl(part.data, mediaType)
    return Either.right({ type: "image_url", image_url: detail === undefined ? { url } : { url, detail } })
  }
  const name = FileData.name(part)
  if (part.data instanceof URL) return Either.left(`it cannot read ${name} from a URL`)
  if (FileData.isText(mediaType)) return Either.map(FileData.text(part), (text) => ({ type: "text", text }))
  return mediaType === "application/pdf"
    ? Either.right({ type: "file", file: { filename: name, file_data: FileData.dataUrl(part.data, mediaType) } })
    : Either.left(FileData.unreadable(part))
}

const assistantMessages = (parts: ReadonlyArray<Prompt.AssistantMessagePart>): ReadonlyArray<ChatMessage> => {
  const text = parts.flatMap((part) => (part.type === "text" && part.text !== "" ? [part.text] : [])).join("\n")
  const calls = parts.flatMap((part) =>
    part.type === "tool-call" && !part.providerExecuted ? [functionCall(part)] : []
  )
  if (calls.length > 0) return [{ role: "assistant", content: text === "" ? null : text, tool_calls: calls }]
  return text === "" ? [] : [{ role: "assistant", content: text }]
}

const functionCall = (part: Prompt.ToolCallPart): FunctionCall => ({
  id: part.id,
  type: "function",
  function: {
    name: part.name,
    arguments: SentJson.stringify(OfferedTool.sentArguments(part.params))
  }
})

const toolMessage = (part: Prompt.ToolResultPart): ChatMessage => ({
  role: "tool",
  tool_call_id: part.id,
  content: SentJson.resultText(part.result)
})
