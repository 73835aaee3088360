/**
 * The questions of a session's children on their way to its mediator, in order of arrival.
 *
 * Written by any fiber of a child, read by one: the mediator. Unbounded, because each child waits for what it asks. Apart
 * from the messages, so that a session that is busy, or blocked in a delegation, still has its children's questions
 * answered.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Interaction from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"
import type { ReplyPort } from "./PendingReplies.js"

/** A child's question. */
export interface ChildRequest {
  readonly request: InteractionRequest
  /** May know the answer by the time somebody is about to be asked. */
  readonly recheck: Interactor.Options<Interaction.Interaction>["recheck"]
  /** Where the end is told. */
  readonly reply: ReplyPort
}

export type Entry = Data.TaggedEnum<{
  readonly Ask: { readonly raised: ChildRequest }
  /** The child does not wait any more, and why. */
  readonly Withdraw: { readonly requestId: string; readonly why: InteractionError }
}>
export const { Ask, Withdraw, $match: match } = Data.taggedEnum<Entry>()

export interface ChildRequestQueue {
  readonly post: (entry: Entry) => void
  /** Waits for the next entries and takes them all. One reader. */
  readonly take: Effect.Effect<ReadonlyArray<Entry>>
}

export const make = (): ChildRequestQueue => new Lane()

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Lane implements ChildRequestQueue {
  private entries: Array<Entry> = []
  private reader: ((effect: Effect.Effect<ReadonlyArray<Entry>>) => void) | undefined

  post(entry: Entry): void {
    this.entries.push(entry)
    const resume = this.reader
    this.reader = undefined
    // The reader takes when it runs: one that is interrupted before that loses nothing.
    resume?.(this.take)
  }

  get take(): Effect.Effect<ReadonlyArray<Entry>> {
    return Effect.suspend(() => {
      if (this.entries.length > 0) return Effect.succeed(this.taken())
      return Effect.async<ReadonlyArray<Entry>>((resume) => {
        // Other fibers may have run since the look above.
        if (this.entries.length > 0) return resume(Effect.succeed(this.taken()))
        // Not taken back when the reader is interrupted: waking who is gone takes nothing.
        this.reader = resume
      })
    })
  }

  private taken(): ReadonlyArray<Entry> {
    const { entries } = this
    this.entries = []
    return entries
  }
}
