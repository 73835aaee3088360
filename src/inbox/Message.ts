/** What is sent to a session: words with a source, filed by delivery. Content only; nothing here grants authority. */
import * as Schema from "effect/Schema"
import type { Attachment } from "../core/Attachment.js"
import type { MessageId } from "../core/Id.js"

/**
 * Who sent it. A driver's words are the user's; it cannot claim another source.
 *
 * @since 0.1.0
 * @category models
 */
export type Source = "user" | "parent" | "child" | "system"

/**
 * `steer`: read at the next step boundary of the running turn. `queue`: read when the session is idle. `along`: read
 * with the next step of the running turn, or with the words that begin the next turn, before them; it begins neither.
 *
 * @since 0.1.0
 * @category models
 */
export type Delivery = "steer" | "queue" | "along"

/**
 * A part of a message with files. The bytes of a file are there once they were given or read from the store.
 *
 * @since 0.1.0
 * @category models
 */
export type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "file"; readonly file: Attachment; readonly bytes?: Uint8Array | undefined }

/**
 * Words on their way into a session.
 *
 * @since 0.1.0
 * @category models
 */
export interface Message {
  readonly id: MessageId
  readonly source: Source
  readonly delivery: Delivery
  /** All words of it. */
  readonly text: string
  /** Present when it has files: words and files in their order. */
  readonly parts?: ReadonlyArray<Part> | undefined
  /** Milliseconds since the epoch. */
  readonly at: number
  /**
   * Present on a user's message that arrived while the agent worked: the tool call that it is shown under, or `root`.
   */
  readonly interjection?: { readonly parentId: string } | undefined
}

/** Words before they are filed. A message of another inbox is one, too. */
export interface Draft {
  readonly text: string
  readonly parts?: ReadonlyArray<Part> | undefined
  /** Default: `user`. */
  readonly source?: Source | undefined
  /** Unique in the tree. Default: a fresh one. */
  readonly id?: MessageId | undefined
  /** Default: now. */
  readonly at?: number | undefined
}

/** The files of these messages, as events have them; empty when there are none. */
export const attachmentsOf = (
  messages: ReadonlyArray<{ readonly parts?: ReadonlyArray<Part> | undefined }>
): { readonly attachments?: ReadonlyArray<Attachment> } =>
  messages.some(({ parts }) => parts !== undefined)
    ? {
        attachments: messages.flatMap(({ parts = [] }) =>
          parts.flatMap((part) => (part.type === "file" ? [part.file] : []))
        )
      }
    : none

/** What began a turn: the words of these messages, without what was read along with them. */
export const wordsOf = (messages: ReadonlyArray<Pick<Message, "delivery" | "text">>): string =>
  messages.flatMap(({ delivery, text }) => (delivery === "along" ? [] : [text])).join("\n\n")

const none = {}

/** Whether a text has only blanks and invisible characters. Such a text is no message. */
export const isBlank = (text: string): boolean => !/[^\s\p{Cc}\p{Cf}]/u.test(text)

/** A text that is not blank, on a wire or from a model. */
export const Words = Schema.String.pipe(
  Schema.filter((text) => !isBlank(text) || "it is blank", { jsonSchema: { minLength: 1 } })
)

/**
 * The text is blank, and nothing was sent.
 *
 * @since 0.1.0
 * @category errors
 */
export class MessageBlank extends Schema.TaggedError<MessageBlank>("assent/inbox/MessageBlank")("MessageBlank", {}) {
  override get message(): string {
    return "The message is blank; say something."
  }
}
