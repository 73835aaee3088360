/** How turns end, and how an end is reported. */
import * as Data from "effect/Data"
import * as Option from "effect/Option"
import type { CancelReason } from "../core/Interruption.js"
import type * as AgentEvent from "./AgentEvent.js"

/** How a turn ended: a value, never an exception. */
export type TurnEnd = Data.TaggedEnum<{
  /** The model had nothing more to do; `text` is its last answer. */
  readonly Completed: { readonly text: string; readonly steps: number }
  readonly Cancelled: { readonly reason: CancelReason; readonly steps: number }
  /** The limit of model calls was reached; `text` is what there is so far. */
  readonly TurnLimit: { readonly text: string; readonly steps: number }
  /** Nobody was there to answer a question. */
  readonly Halted: { readonly detail: string; readonly steps: number }
  /** The model repeated a call that somebody had refused, again and again. */
  readonly Denied: { readonly detail: string; readonly steps: number }
  /** The model or the loop failed; the session stays usable. */
  readonly Failed: { readonly error: string; readonly steps: number }
}>
/** Constructors and tests of a {@link TurnEnd}. */
export const {
  Completed,
  Cancelled,
  TurnLimit,
  Halted,
  Denied,
  Failed,
  $is: is,
  $match: match
} = Data.taggedEnum<TurnEnd>()

/** The end of submitted words that never began a turn. */
export const neverBegun: TurnEnd = Cancelled({ reason: "shutdown", steps: 0 })

/** The end of a session that has words no turn read, given the end of its last turn. A halt stays the end. */
export const unread = (last: Option.Option<TurnEnd>): Option.Option<TurnEnd> =>
  Option.orElseSome(Option.filter(last, is("Halted")), () => neverBegun)

/**
 * An end that could not be recorded. It is reported as failed: an end that no later run can find is not told as done.
 */
export const unsaved = (end: TurnEnd, error: string): TurnEnd =>
  is("Completed")(end) ? Failed({ error, steps: end.steps }) : end

/** How a turn ended, as it is reported. */
export interface Report {
  readonly reason: AgentEvent.EndReason
  readonly steps: number
  /** Why it was cancelled, halted, denied or failed; not masked. */
  readonly detail?: string
}

/** How a turn ended, in the words of events. */
export const report: (end: TurnEnd) => Report = match({
  Completed: ({ steps }): Report => ({ reason: "completed", steps }),
  Cancelled: ({ reason, steps }): Report => ({ reason: "cancelled", steps, detail: reason }),
  TurnLimit: ({ steps }): Report => ({
    reason: "turn_limit",
    steps,
    detail: `the limit of ${steps} model calls was reached`
  }),
  Halted: ({ detail, steps }): Report => ({ reason: "halted", steps, detail }),
  Denied: ({ detail, steps }): Report => ({ reason: "denied", steps, detail }),
  Failed: ({ error, steps }): Report => ({ reason: "failed", steps, detail: error })
})
