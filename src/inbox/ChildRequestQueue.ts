/**
 * The questions of a session's children on their way to its mediator, in order of arrival.
 *
 * Written by any fiber of a child, read by the mediator only. Unbounded, because each child waits for its answer. It is
 * separate from the messages, so that children's questions are answered also while the session is busy or blocked in a
 * delegation.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Interaction from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"
import { OneShot } from "../internal/OneShot.js"

/** How a question of a child ends. */
export type Settlement = Exit.Exit<Interactor.Answered<Interaction.Interaction>, InteractionError>

/** A reply to a question that had ended. */
export interface Late {
  readonly requestId: string
  readonly by: string
  /** Who settled it. */
  readonly winner: string
}

/** What the child's asker says about its question beside the request. */
export type Asked = Pick<Interactor.Options<Interaction.Interaction>, "recheck" | "votes" | "upcoming">

/**
 * A child's question, handed over to the parent's mediator. The child waits for its end, which the first of the two writes:
 * the mediator with a reply, or the child when it stops waiting.
 *
 * Only who was handed the question can settle it. Text that looks like a reply is only text, from any source.
 */
export class ChildRequest {
  private readonly end = new OneShot<Settlement>()
  private settledBy: string | undefined

  constructor(
    readonly request: InteractionRequest,
    readonly asked: Asked,
    /** Called with every reply that comes too late. */
    private readonly late: (reply: Late) => void
  ) {}

  get isOpen(): boolean {
    return this.settledBy === undefined
  }

  /** An interrupt of this wait ends nothing. */
  get await(): Effect.Effect<Interactor.Answered<Interaction.Interaction>, InteractionError> {
    return Effect.async((resume) => this.end.observe(resume))
  }

  /** Replies. False: it had ended, and nothing changed. */
  reply(end: Settlement, by: string): boolean {
    if (this.settle(end, by)) return true
    this.late({ requestId: this.request.requestId, by, winner: this.settledBy ?? by })
    return false
  }

  /** The child stops waiting. False: it had ended before. */
  close(end: Settlement): boolean {
    return this.settle(end, "the asker")
  }

  private settle(end: Settlement, by: string): boolean {
    if (this.settledBy !== undefined) return false
    this.settledBy = by
    this.end.complete(end)
    return true
  }
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
