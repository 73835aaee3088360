/**
 * What one session said and heard: an append-only list of `@effect/ai` prompt messages that is a valid prompt at any time.
 *
 * Every tool call has its result in the message after it; a partial answer is marked. Our own metadata of a message lives
 * in its `options.assent`, which providers ignore.
 */
import * as Prompt from "@effect/ai/Prompt"
import type { MessageId } from "../core/Id.js"
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
  /** Forgets everything but the system message. */
  readonly clear: () => void
}

export const make = (initial: ReadonlyArray<Prompt.Message> = []): History => {
  const messages: Array<Prompt.Message> = [...initial]
  const prompt = Prompt.fromMessages(messages)
  const hasSystem = () => messages[0]?.role === "system"
  return {
    messages,
    prompt,
    setSystem: (text) => {
      if (text === "") return
      messages.splice(0, hasSystem() ? 1 : 0, Prompt.systemMessage({ content: text }))
    },
    appendInput: (inputs) => {
      for (const input of inputs) messages.push(userMessage(input))
    },
    appendAssistant: (content, options) => {
      if (content.length === 0) return
      messages.push(
        Prompt.assistantMessage({ content, ...(options?.partial === true ? { options: partialOptions } : {}) })
      )
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
              result: result.result
            })
          )
        })
      )
    },
    clear: () => {
      messages.splice(hasSystem() ? 1 : 0)
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

const userMessage = (message: Message): Prompt.Message =>
  Prompt.userMessage({
    content: [Prompt.textPart({ text: message.text })],
    options: {
      assent: {
        messageId: message.id,
        source: message.source,
        ...(message.interjection === undefined ? {} : { isInterjection: true, parentId: message.interjection.parentId })
      }
    }
  })
