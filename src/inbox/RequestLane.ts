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
import type { ReplyPort } from "./Door.js"

/** A child's question. */
export interface Raised {
  readonly request: InteractionRequest
  /** May know the answer by the time somebody is about to be asked. */
  readonly recheck: Interactor.Options<Interaction.Interaction>["recheck"]
  /** Where the end is told. */
  readonly reply: ReplyPort
}

export type Entry = Data.TaggedEnum<{
  readonly Ask: { readonly raised: Raised }
  /** The child does not wait any more, and why. */
  readonly Withdraw: { readonly requestId: string; readonly why: InteractionError }
}>
export const { Ask, Withdraw, $match: match } = Data.taggedEnum<Entry>()

export interface RequestLane {
  readonly post: (entry: Entry) => void
  /** Waits for the next entries and takes them all. One reader. */
  readonly take: Effect.Effect<ReadonlyArray<Entry>>
}

export const make = (): RequestLane => {
  let entries: Array<Entry> = []
  let reader: ((effect: Effect.Effect<void>) => void) | undefined
  const taken = Effect.sync(() => {
    const all = entries
    entries = []
    return all
  })
  const arrival = Effect.async<void>((resume) => {
    // Other fibers may have run since the reader's last look.
    if (entries.length > 0) return resume(Effect.void)
    reader = resume
    return Effect.sync(() => {
      reader = undefined
    })
  })
  return {
    post: (entry) => {
      entries.push(entry)
      const resume = reader
      reader = undefined
      resume?.(Effect.void)
    },
    take: Effect.suspend(() => (entries.length > 0 ? taken : Effect.zipRight(arrival, taken)))
  }
}
