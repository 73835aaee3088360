/**
 * The messages and parts of an `@effect/ai` prompt, field by field.
 *
 * The types are the package's; only the constructors are ours. Those of the package add fields after a spread, so the
 * engine gives every object a hidden class of its own: that took 200 times as long as a literal, and the garbage
 * survived many collections. A history makes several objects for each tool call.
 */
import * as Prompt from "@effect/ai/Prompt"

export const text = (text: string, options: Prompt.ProviderOptions = none): Prompt.TextPart => ({
  type: "text",
  text,
  options,
  [Prompt.PartTypeId]: Prompt.PartTypeId
})

/** The text of all parts that are text. */
export const textIn = (parts: Iterable<Prompt.Part>): string => {
  let all = ""
  for (const part of parts) if (part.type === "text") all += part.text
  return all
}

export const reasoning = (text: string, options: Prompt.ProviderOptions = none): Prompt.ReasoningPart => ({
  type: "reasoning",
  text,
  options,
  [Prompt.PartTypeId]: Prompt.PartTypeId
})

export const file = (
  { data, fileName, mediaType }: Pick<Prompt.FilePart, "data" | "fileName" | "mediaType">,
  options: Prompt.ProviderOptions = none
): Prompt.FilePart => ({ type: "file", mediaType, fileName, data, options, [Prompt.PartTypeId]: Prompt.PartTypeId })

export const prompt = (messages: ReadonlyArray<Prompt.Message>): Prompt.Prompt => Prompt.fromMessages(messages)

export const toolCall = (
  { id, name, params, providerExecuted }: Pick<Prompt.ToolCallPart, "id" | "name" | "params" | "providerExecuted">,
  options: Prompt.ProviderOptions = none
): Prompt.ToolCallPart => ({
  type: "tool-call",
  id,
  name,
  params,
  providerExecuted,
  options,
  [Prompt.PartTypeId]: Prompt.PartTypeId
})

export const toolResult = (
  {
    id,
    isFailure,
    name,
    providerExecuted,
    result
  }: Pick<Prompt.ToolResultPart, "id" | "name" | "isFailure" | "result" | "providerExecuted">,
  options: Prompt.ProviderOptions = none
): Prompt.ToolResultPart => ({
  type: "tool-result",
  id,
  name,
  isFailure,
  result,
  providerExecuted,
  options,
  [Prompt.PartTypeId]: Prompt.PartTypeId
})

export const system = (content: string, options: Prompt.ProviderOptions = none): Prompt.SystemMessage => ({
  role: "system",
  content,
  options,
  [Prompt.MessageTypeId]: Prompt.MessageTypeId
})

export const user = (
  content: Prompt.UserMessage["content"],
  options: Prompt.ProviderOptions = none
): Prompt.UserMessage => ({
  role: "user",
  content,
  options,
  [Prompt.MessageTypeId]: Prompt.MessageTypeId
})

export const assistant = (
  content: Prompt.AssistantMessage["content"],
  options: Prompt.ProviderOptions = none
): Prompt.AssistantMessage => ({
  role: "assistant",
  content,
  options,
  [Prompt.MessageTypeId]: Prompt.MessageTypeId
})

export const tool = (
  content: Prompt.ToolMessage["content"],
  options: Prompt.ProviderOptions = none
): Prompt.ToolMessage => ({
  role: "tool",
  content,
  options,
  [Prompt.MessageTypeId]: Prompt.MessageTypeId
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Shared: nothing changes the options of a message. */
const none: Prompt.ProviderOptions = {}
