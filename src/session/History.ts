/**
 * What one session said and heard: an append-only list of `@effect/ai` prompt messages that is a valid prompt at any time.
 *
 * Every tool call has its result in the message after it; a partial answer is marked. Secrets are masked on the way in,
 * because a history is sent, stored and shown. Our own metadata of a message lives in its `options.assent`, which
 * providers ignore.
 */
import * as Prompt from "@effect/ai/Prompt"
import type { MessageId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import type { Message, Source } from "../inbox/Message.js"
import type { ToolResult } from "../tool/ToolCall.js"

/** What we keep beside a message. */
export interface Metadata {
  /** Present on what was sent to the inbox. */
  readonly messageId?: MessageId
  readonly source?: Source
  readonly isInterjection?: true
  readonly parentId?: string
  /** The generation was stopped before its end. */
  readonly partial?: true
}

export interface History {
  /** Oldest first. A live view: it grows, and nothing in it changes. */
  readonly messages: ReadonlyArray<Prompt.Message>
  /** The same as a prompt; also a live view. */
  readonly prompt: Prompt.Prompt
  /** Sets or replaces the system message. */
  readonly setSystem: (text: string) => void
  /** Appends messages from the inbox, in order. */
  readonly appendInput: (messages: ReadonlyArray<Message>) => void
  readonly appendAssistant: (
    content: ReadonlyArray<Prompt.AssistantMessagePart>,
    options?: { readonly partial?: boolean }
  ) => void
  /** Appends the results of the last assistant message's calls, in proposal order. */
  readonly appendResults: (results: ReadonlyArray<ToolResult>) => void
  /** A call of this id is in here; ids name one call in a whole history. */
  readonly hasCall: (id: string) => boolean
  /** Forgets everything but the system message. */
  readonly clear: () => void
}

export const make = (
  initial: ReadonlyArray<Prompt.Message> = [],
  redactor: Redaction.Redactor = Redaction.shapesOnly
): History => {
  const messages: Array<Prompt.Message> = [...initial]
  const calls = new Set(messages.flatMap(callsIn))
  const prompt = Prompt.fromMessages(messages)
  const hasSystem = () => messages[0]?.role === "system"
  return {
    messages,
    prompt,
    setSystem: (text) => {
      if (text === "") return
      messages.splice(0, hasSystem() ? 1 : 0, Prompt.systemMessage({ content: redactor.text(text) }))
    },
    appendInput: (inputs) => {
      for (const input of inputs) messages.push(userMessage(input, redactor))
    },
    appendAssistant: (parts, options) => {
      const content = parts.flatMap((part) => masked(part, redactor) ?? [])
      if (content.length === 0) return
      const message = Prompt.assistantMessage({
        content,
        ...(options?.partial === true ? { options: partialOptions } : {})
      })
      messages.push(message)
      for (const id of callsIn(message)) calls.add(id)
    },
    appendResults: (results) => {
      if (results.length === 0) return
      messages.push(
        Prompt.toolMessage({
          content: results.map((result) =>
            Prompt.toolResultPart({
              id: result.id,
              name: result.name,
              isFailure: result.outcome !== "succeeded",
              providerExecuted: false,
              result: redactor.value(result.result)
            })
          )
        })
      )
    },
    hasCall: (id) => calls.has(id),
    clear: () => {
      messages.splice(hasSystem() ? 1 : 0)
      calls.clear()
    }
  }
}

/** What we kept beside a message. */
export const metadata = (message: Prompt.Message): Metadata => (message.options["assent"] ?? {}) as Metadata

/** The text a message says, its text parts joined. */
export const textOf = (message: Prompt.Message | undefined): string => {
  if (message === undefined) return ""
  if (typeof message.content === "string") return message.content
  return message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const partialOptions = { assent: { partial: true } }

const callsIn = (message: Prompt.Message): ReadonlyArray<string> =>
  message.role !== "assistant" ? [] : message.content.flatMap((part) => (part.type === "tool-call" ? [part.id] : []))

/** A part as it may be kept. Reasoning is signed by its provider as it is, so it is kept unchanged or not at all. */
const masked = (
  part: Prompt.AssistantMessagePart,
  redactor: Redaction.Redactor
): Prompt.AssistantMessagePart | undefined => {
  switch (part.type) {
    case "text": {
      const text = redactor.text(part.text)
      return text === part.text ? part : Prompt.textPart({ text, options: part.options })
    }
    case "reasoning":
      return redactor.text(part.text) === part.text ? part : undefined
    case "tool-call": {
      const params = redactor.value(part.params)
      const { id, name, providerExecuted, options } = part
      return params === part.params ? part : Prompt.toolCallPart({ id, name, params, providerExecuted, options })
    }
    default:
      return part
  }
}

const userMessage = (message: Message, redactor: Redaction.Redactor): Prompt.Message =>
  Prompt.userMessage({
    content: [Prompt.textPart({ text: redactor.text(message.text) })],
    options: {
      assent: {
        messageId: message.id,
        source: message.source,
        ...(message.interjection === undefined ? {} : { isInterjection: true, parentId: message.interjection.parentId })
      }
    }
  })
