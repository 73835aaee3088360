/**
 * Why work stops: a reason, not a flag.
 *
 * `Cancel` closes a turn's scope, with everything in it. `Interject` stops only the running generation; tools and open
 * dialogs go on, and the turn continues with the new message.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { MessageId } from "./Id.js"

/**
 * The reason why a turn was cancelled: the user, a time limit, the end of the agent or the parent agent. It may also be
 * the limit of model calls, or a question without an answer.
 *
 * @since 0.1.0
 * @category schemas
 */
export const CancelReason = Schema.Literal("user", "timeout", "shutdown", "parent", "turn_limit", "halted")
export type CancelReason = typeof CancelReason.Type

/**
 * Why work stops.
 *
 * @since 0.1.0
 * @category models
 */
export type Interruption = Data.TaggedEnum<{
  readonly Cancel: { readonly reason: CancelReason }
  readonly Interject: { readonly messageId: MessageId }
}>

/**
 * Constructors and tests of an {@link Interruption}.
 *
 * @since 0.1.0
 * @category constructors
 */
export const { Cancel, Interject, $is: is, $match: match } = Data.taggedEnum<Interruption>()

/**
 * Makes part of an uninterruptible region interruptible again: see `Effect.uninterruptibleMask`.
 *
 * @since 0.1.0
 * @category models
 */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * A sentence for a person or a model about a cancelled piece of work.
 *
 * @since 0.1.0
 * @category conversions
 */
export const describe = (reason: CancelReason): string => sentences[reason]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const sentences: { readonly [Reason in CancelReason]: string } = {
  user: "cancelled by the user",
  timeout: "cancelled because its time was up",
  shutdown: "cancelled because the agent was shut down",
  parent: "cancelled by the parent agent",
  turn_limit: "cancelled because the turn limit was reached",
  halted: "halted: no person could answer"
}
