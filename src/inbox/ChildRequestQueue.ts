/**
 * The questions of a session's children on their way to its mediator, in order of arrival.
 *
 * Written by any fiber of a child, read by the mediator only. Unbounded, because each child waits for its answer. It is
 * separate from the messages, so that children's questions are answered also while the session is busy or blocked in a
 * delegation.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Interaction from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"
import type { OneShot } from "../internal/OneShot.js"
import type { ReplyPort } from "./PendingReplies.js"

/** A child's question. */
export interface ChildRequest {
  readonly request: InteractionRequest
  /** May yield an answer shortly before somebody is asked. */
  readonly recheck: Interactor.Options<Interaction.Interaction>["recheck"]
  readonly votes?: Interactor.Options<Interaction.Interaction>["votes"]
  readonly upcoming?: Interactor.Options<Interaction.Interaction>["upcoming"]
  /** The port that takes the settlement. */
  readonly reply: ReplyPort
}

export type Entry = Data.TaggedEnum<{
  readonly Ask: { readonly raised: ChildRequest }
  /** The child stopped waiting, and why. `taken` is completed once the question is withdrawn everywhere above. */
  readonly Withdraw: { readonly requestId: string; readonly why: InteractionError; readonly taken: OneShot<void> }
}>
export type Withdrawal = Data.TaggedEnum.Value<Entry, "Withdraw">
export const { Ask, Withdraw, $match: match } = Data.taggedEnum<Entry>()

export interface ChildRequestQueue {
  readonly post: (entry: Entry) => void
  /** Waits for entries and takes all of them. It has one reader. */
  readonly take: Effect.Effect<ReadonlyArray<Entry>>
  /** Its reader is gone: no child waits for it any longer. */
  readonly close: () => void
}

export const make = (): ChildRequestQueue => new Lane()

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Lane implements ChildRequestQueue {
  private entries: Array<Entry> = []
  private isClosed = false
  private reader: ((effect: Effect.Effect<ReadonlyArray<Entry>>) => void) | undefined

  post(entry: Entry): void {
    this.entries.push(entry)
    const resume = this.reader
    this.reader = undefined
    // The reader takes entries when it runs, so an interrupt before that loses none.
    resume?.(this.take)
    if (this.isClosed) this.close()
  }

  close(): void {
    this.isClosed = true
    for (const entry of this.taken()) if (entry._tag === "Withdraw") entry.taken.complete()
  }

  get take(): Effect.Effect<ReadonlyArray<Entry>> {
    return Effect.suspend(() => {
      if (this.entries.length > 0) return Effect.succeed(this.taken())
      return Effect.async<ReadonlyArray<Entry>>((resume) => {
        // Other fibers may have run since the check above.
        if (this.entries.length > 0) return resume(Effect.succeed(this.taken()))
        // Not removed when the reader is interrupted: resuming an ended fiber takes nothing.
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
