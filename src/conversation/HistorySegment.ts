/**
 * A history cut into segments: the system message, earlier summaries, and turns.
 *
 * ```
 *  system │ summary │ user … calls + results … answer │ user … words … answer │ …
 *         └ summary ┘└──────────── turn ──────────────┘└─────── turn ─────────┘
 * ```
 *
 * A turn holds the message that began it, those that steered it, and what was put in the place of its removed steps. A message with tool calls and the message with
 * their results are one piece, because a provider refuses the one without the other.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as History from "./History.js"

type Messages = ReadonlyArray<Prompt.Message>

export type HistorySegment =
  | { readonly _tag: "System"; readonly messages: Messages }
  | { readonly _tag: "Summary"; readonly messages: Messages }
  /** Turns are numbered from 0 at the start of the session; removing earlier ones changes no number. */
  | { readonly _tag: "Turn"; readonly messages: Messages; readonly number: number }

/** A part of a turn that is kept or removed as a whole. */
export interface Piece {
  /** True: calls and their results, or what stands in their place; false: words. */
  readonly isWork: boolean
  readonly messages: Messages
}

/** Cuts a history into segments; together they hold every message, in order. */
export const cut = (messages: Messages): ReadonlyArray<HistorySegment> => {
  const units: Array<HistorySegment> = []
  let turn: { readonly _tag: "Turn"; readonly messages: Array<Prompt.Message>; readonly number: number } | undefined
  let next = 0
  for (const message of messages) {
    const metadata = History.metadata(message)
    if (message.role === "system" || (metadata.summary === true && metadata.steps !== true)) {
      units.push({ _tag: message.role === "system" ? "System" : "Summary", messages: [message] })
      turn = undefined
      continue
    }
    if (turn === undefined || History.beginsTurn(message)) {
      turn = { _tag: "Turn", messages: [], number: metadata.turn ?? next }
      next = turn.number + 1
      units.push(turn)
    }
    turn.messages.push(message)
  }
  return units
}

/** Cuts a turn into its pieces. */
export const pieces = (messages: Messages): ReadonlyArray<Piece> => {
  const found: Array<Piece> = []
  for (const message of messages) {
    const last = found.at(-1)
    if (message.role === "tool" && last !== undefined) {
      found[found.length - 1] = { isWork: true, messages: [...last.messages, message] }
    } else {
      found.push({ isWork: History.metadata(message).steps === true, messages: [message] })
    }
  }
  return found
}
