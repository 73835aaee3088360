/**
 * How turns end, and how an end is reported.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import { CancelReason } from "../core/Interruption.js"
import type * as AgentEvent from "./AgentEvent.js"

/**
 * How a turn ended: a value, never an exception. A journal holds it in this form.
 *
 * @since 0.1.0
 * @category schemas
 */
export const TurnEnd = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Union(
    /** The model had nothing more to do; `text` is its last answer. */
    Schema.TaggedStruct("Completed", { text: Schema.String, steps: Schema.Number }),
    Schema.TaggedStruct("Cancelled", { reason: CancelReason, steps: Schema.Number }),
    /** The limit of model calls was reached; `text` is what there is so far. */
    Schema.TaggedStruct("TurnLimit", { text: Schema.String, steps: Schema.Number }),
    /** No person could answer a question. */
    Schema.TaggedStruct("Halted", { detail: Schema.String, steps: Schema.Number }),
    /** The model repeated a call that somebody had refused, again and again. */
    Schema.TaggedStruct("Denied", { detail: Schema.String, steps: Schema.Number }),
    /** The model or the loop failed; the session stays usable. */
    Schema.TaggedStruct("Failed", { error: Schema.String, steps: Schema.Number })
  )
)
export type TurnEnd = typeof TurnEnd.Type
/**
 * Constructors and tests of a {@link TurnEnd}. They check nothing: what is made here is right by its type.
 *
 * @since 0.1.0
 * @category constructors
 */
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

/**
 * The end of submitted words that never began a turn.
 *
 * @since 0.1.0
 * @category constants
 */
export const neverBegun: TurnEnd = Cancelled({ reason: "shutdown", steps: 0 })

/**
 * The end of a session that has words no turn read, given the end of its last turn. A halt stays the end.
 *
 * @since 0.1.0
 * @category getters
 */
export const unread = (last: Option.Option<TurnEnd>): Option.Option<TurnEnd> =>
  Option.orElseSome(Option.filter(last, is("Halted")), () => neverBegun)

/**
 * An end that could not be recorded. It is reported as failed: an end that no later run can find is not told as done.
 *
 * @since 0.1.0
 * @category combinators
 */
export const unsaved = (end: TurnEnd, error: string): TurnEnd =>
  is("Completed")(end) ? Failed({ error, steps: end.steps }) : end

/**
 * The end of a turn that goes on in the next process: its journal was frozen before the end.
 *
 * @internal
 */
export const parked = (end: TurnEnd): TurnEnd =>
  is("Halted")(end) ? end : Cancelled({ reason: "shutdown", steps: end.steps })

/**
 * The report about the end of a turn.
 *
 * @since 0.1.0
 * @category models
 */
export interface Report {
  readonly reason: AgentEvent.EndReason
  readonly steps: number
  /** Why it was cancelled, halted, denied or failed; not masked. */
  readonly detail?: string
}

/**
 * How a turn ended, in the words of events.
 *
 * @since 0.1.0
 * @category conversions
 */
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
