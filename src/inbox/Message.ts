/** What is sent to a session: words with a source, filed by delivery. Content only; nothing here grants authority. */
import type { MessageId } from "../core/Id.js"

/** Who sent it. A port is bound to one source, so nobody can claim another. */
export type Source = "user" | "parent" | "child" | "system"

/** `steer`: read at the next step boundary of the running turn. `queue`: read when the session is idle. */
export type Delivery = "steer" | "queue"

export interface Message {
  readonly id: MessageId
  readonly source: Source
  readonly delivery: Delivery
  readonly text: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Present on a user's message that arrived while the agent worked: the tool call it went under, or `root`. */
  readonly interjection?: { readonly parentId: string } | undefined
}
