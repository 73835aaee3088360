/**
 * The conversation of one session: a list of `@effect/ai` prompt messages that is a valid prompt at any time. It grows
 * by appending; only a compaction replaces it with a shorter one.
 *
 * Every tool call has its result in the message after it; a partial answer is marked. Secrets are masked on the way in,
 * because a history is sent, stored and shown. Our own metadata of a message lives in its `options.assent`, which
 * providers ignore.
 *
 * @since 0.1.0
 */
import * as Prompt from "@effect/ai/Prompt"
import type { MessageId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import type { Message, Source } from "../inbox/Message.js"
import type { ToolResult } from "../tool/ToolCall.js"
import * as AttachedFile from "./AttachedFile.js"
import * as PromptMessage from "./PromptMessage.js"

/**
 * Our own metadata of a message.
 *
 * @since 0.1.0
 * @category models
 */
export interface Metadata {
  /** Present on messages from the inbox. */
  readonly messageId?: MessageId
  readonly source?: Source
  readonly isInterjection?: true
  readonly parentId?: string
  /** The generation was stopped before its end. */
  readonly partial?: true
  /** The number of the turn that these words began; the first turn of a session is 0. */
  readonly turn?: number
  /** This message replaces removed turns. */
  readonly summary?: true
  /** This message reminds the model of what removed turns said. It is a summary too. */
  readonly reminder?: true
  /** This message replaces what was done in turns whose words stay. It is a summary too, and a part of the turn it stands in. */
  readonly steps?: true
  /** How many replies of the model it replaces. */
  readonly replies?: number
}

/**
 * The messages of one session, as its model is given them.
 *
 * @since 0.1.0
 * @category models
 */
export interface History {
  /** Oldest first. A live view: it grows, until {@link revision} changes. No message changes. */
  readonly messages: ReadonlyArray<Prompt.Message>
  /** The same as a prompt; also a live view. */
  readonly prompt: Prompt.Prompt
  /** Sets or replaces the system message. */
  readonly setSystem: (text: string) => void
  /** Appends messages from the inbox, in order; the first of them may begin a turn. */
  readonly appendInput: (messages: ReadonlyArray<Message>, options?: { readonly beginsTurn?: boolean }) => void
  readonly appendAssistant: (
    content: ReadonlyArray<Prompt.AssistantMessagePart>,
    options?: { readonly partial?: boolean }
  ) => void
  /** Appends the results of the last assistant message's calls, in proposal order. */
  readonly appendResults: (results: ReadonlyArray<ToolResult>) => void
  /** Whether the history has a call with this id. An id is unique in a history. */
  readonly hasCall: (id: string) => boolean
  /** Replaces all messages in one step. Ids of removed calls stay taken. */
  readonly replace: (messages: ReadonlyArray<Prompt.Message>) => void
  /** Removes everything but the system message. */
  readonly clear: () => void
  /** Whether the history has had a message with a file since its last replacement. */
  readonly hasFiles: () => boolean
  /** Changes whenever messages are replaced or removed, not when they are appended. */
  readonly revision: () => number
}

/**
 * A history that begins with these messages. The redactor masks what is added; `cleared` is called synchronously when the
 * history is cleared.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  initial: ReadonlyArray<Prompt.Message> = [],
  redactor: Redaction.Redactor = Redaction.shapesOnly,
  cleared: () => void = () => {}
): History => new SessionHistory(numbered(initial), redactor, cleared)

/**
 * A message with secrets masked. A part that cannot be changed is left out when it holds a secret.
 *
 * @since 0.1.0
 * @category combinators
 */
export const masked = (
  content: ReadonlyArray<Prompt.AssistantMessagePart>,
  redactor: Redaction.Redactor
): ReadonlyArray<Prompt.AssistantMessagePart> =>
  // Mostly nothing is masked: then a copy of exact length, as it is kept as long as the history.
  content.every((part) => maskedPart(part, redactor) === part)
    ? content.slice()
    : content.flatMap((part) => maskedPart(part, redactor) ?? [])

/**
 * A message that replaces removed turns, with so many replies of the model. The caller masks secrets first.
 *
 * @since 0.1.0
 * @category constructors
 */
export const summaryMessage = (text: string, replies = 0): Prompt.Message =>
  PromptMessage.user([PromptMessage.text(text)], { assent: { summary: true, ...(replies > 0 && { replies }) } })

/**
 * A message with what a model has to know although the turns that said it were removed. The caller masks secrets first.
 *
 * @internal
 */
export const reminderMessage = (text: string): Prompt.Message =>
  PromptMessage.user([PromptMessage.text(text)], { assent: { summary: true, reminder: true } })

/**
 * Reads our metadata of a message.
 *
 * @since 0.1.0
 * @category getters
 */
export const metadata = (message: Prompt.Message | undefined): Metadata =>
  (message?.options["assent"] ?? {}) as Metadata

/**
 * The same message, with another id where it has one.
 *
 * @internal
 */
export const withMessageId = (message: Prompt.Message, idOf: (before: MessageId) => MessageId): Prompt.Message => {
  const { messageId, ...rest } = metadata(message)
  return message.role !== "user" || messageId === undefined
    ? message
    : PromptMessage.user(message.content, { ...message.options, assent: { ...rest, messageId: idOf(messageId) } })
}

/**
 * Whether a turn begins with this message.
 *
 * @since 0.1.0
 * @category predicates
 */
export const beginsTurn = (message: Prompt.Message): boolean => metadata(message).turn !== undefined

/**
 * The text parts of a message, joined; those of a person's message with a line break between them.
 *
 * @since 0.1.0
 * @category getters
 */
export const textOf = (message: Prompt.Message | undefined): string => {
  if (message === undefined) return ""
  if (typeof message.content === "string") return message.content
  if (message.role === "user" && message.content.length > 1) {
    return message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
  }
  return PromptMessage.textIn(message.content)
}

/**
 * Whether tools ended last, and no person has spoken since.
 *
 * @internal
 */
export const endsInResults = ({ messages }: Pick<History, "messages">): boolean => {
  const last = messages.findLast((message) => {
    const { source, steps } = metadata(message)
    return message.role !== "user" || steps === true || source === "user" || beginsTurn(message)
  })
  return last?.role === "tool" || metadata(last).steps === true
}

/**
 * All answers of the turn that began with this message; empty when it never began.
 *
 * @since 0.1.0
 * @category getters
 */
export const saidIn = ({ messages }: Pick<History, "messages">, id: MessageId): string => {
  const beginning = messages.findLastIndex((message) => metadata(message).messageId === id && beginsTurn(message))
  if (beginning < 0) return ""
  const said: Array<string> = []
  for (const message of messages.slice(beginning + 1)) {
    if (beginsTurn(message)) break
    const text = message.role === "assistant" ? textOf(message) : ""
    if (text !== "") said.push(text)
  }
  return said.join("\n\n")
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class SessionHistory implements History {
  readonly prompt: Prompt.Prompt
  /** Ids that are taken; made with the first call. */
  private calls: Set<string> | undefined
  private turns: number
  private changes = 0
  private files = false

  constructor(
    readonly messages: Array<Prompt.Message>,
    private readonly redactor: Redaction.Redactor,
    private readonly cleared: () => void
  ) {
    this.prompt = Prompt.fromMessages(messages)
    this.turns = (metadata(messages.findLast(beginsTurn)).turn ?? -1) + 1
    for (const message of messages) this.take(message)
  }

  setSystem(text: string): void {
    if (text === "") return
    this.messages.splice(0, this.hasSystem() ? 1 : 0, PromptMessage.system(this.redactor.text(text)))
    this.changes++
  }

  appendInput(inputs: ReadonlyArray<Message>, options?: { readonly beginsTurn?: boolean }): void {
    let turn = options?.beginsTurn === true && inputs.length > 0 ? this.turns++ : undefined
    for (const input of inputs) {
      this.messages.push(userMessage(input, this.redactor, turn))
      if (input.parts !== undefined) this.files = true
      turn = undefined
    }
  }

  appendAssistant(parts: ReadonlyArray<Prompt.AssistantMessagePart>, options?: { readonly partial?: boolean }): void {
    const content = masked(parts, this.redactor)
    if (content.length === 0) return
    const message = PromptMessage.assistant(content, options?.partial === true ? partialOptions : undefined)
    this.messages.push(message)
    this.take(message)
  }

  appendResults(results: ReadonlyArray<ToolResult>): void {
    if (results.length === 0) return
    const content = results.map(({ id, name, outcome, result }) =>
      PromptMessage.toolResult({
        id,
        name,
        isFailure: outcome !== "succeeded",
        result: this.redactor.value(result),
        providerExecuted: false
      })
    )
    this.messages.push(PromptMessage.tool(content))
  }

  hasCall(id: string): boolean {
    return this.calls?.has(id) === true
  }

  replace(next: ReadonlyArray<Prompt.Message>): void {
    const replacement = [...next]
    this.messages.length = 0
    this.files = false
    for (const message of replacement) {
      this.messages.push(message)
      this.take(message)
    }
    this.changes++
  }

  clear(): void {
    this.messages.splice(this.hasSystem() ? 1 : 0)
    this.calls = undefined
    this.turns = 0
    this.changes++
    this.cleared()
  }

  hasFiles(): boolean {
    return this.files
  }

  revision(): number {
    return this.changes
  }

  private hasSystem(): boolean {
    return this.messages[0]?.role === "system"
  }

  /** Notes the ids of the message's calls, and that it has a file. */
  private take(message: Prompt.Message): void {
    if (message.role === "user" && AttachedFile.isIn(message)) this.files = true
    if (message.role !== "assistant") return
    for (const part of message.content) {
      if (part.type !== "tool-call") continue
      this.calls ??= new Set()
      this.calls.add(part.id)
    }
  }
}

const partialOptions = { assent: { partial: true } }

/** Initial messages of a program have no id; each user message of these begins a turn. */
const numbered = (initial: ReadonlyArray<Prompt.Message>): Array<Prompt.Message> => {
  let next = 0
  return initial.map((message) => {
    const { messageId, summary, turn } = metadata(message)
    if (turn !== undefined) next = turn + 1
    if (message.role !== "user" || turn !== undefined || messageId !== undefined || summary === true) return message
    const { content, options } = message
    return PromptMessage.user(content, { ...options, assent: { ...metadata(message), turn: next++ } })
  })
}

/** A masked part, or undefined. Reasoning is signed by its provider, so it is kept unchanged or not at all. */
const maskedPart = (
  part: Prompt.AssistantMessagePart,
  redactor: Redaction.Redactor
): Prompt.AssistantMessagePart | undefined => {
  switch (part.type) {
    case "text": {
      const text = redactor.text(part.text)
      return text === part.text ? part : PromptMessage.text(text, part.options)
    }
    case "reasoning":
      return redactor.text(part.text) === part.text ? part : undefined
    case "tool-call": {
      const params = redactor.value(part.params)
      if (params === part.params) return part
      const { id, name, providerExecuted, options } = part
      return PromptMessage.toolCall({ id, name, params, providerExecuted }, options)
    }
    default:
      return part
  }
}

const userMessage = (message: Message, redactor: Redaction.Redactor, turn: number | undefined): Prompt.Message =>
  PromptMessage.user(contentOf(message, redactor), {
    assent: {
      messageId: message.id,
      source: message.source,
      ...(turn === undefined ? {} : { turn }),
      ...(message.interjection === undefined ? {} : { isInterjection: true, parentId: message.interjection.parentId })
    }
  })

const contentOf = ({ parts, text }: Message, redactor: Redaction.Redactor): Prompt.UserMessage["content"] =>
  parts === undefined
    ? [PromptMessage.text(redactor.text(text))]
    : AttachedFile.parts(parts, (text) => redactor.text(text))
