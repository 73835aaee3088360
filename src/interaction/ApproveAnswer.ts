/** What is offered to those who decide about a call, and what they can decide. */
import * as Schema from "effect/Schema"

/**
 * How long an approval lasts; see `PermissionOption`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const AllowScope = Schema.Literal("once", "turn", "idle", "session", "all")
export type AllowScope = typeof AllowScope.Type

/**
 * One of the options a person may choose, as shown.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ApproveOption = Schema.Struct({
  /** What to type for short; absent for options that have a full form only. */
  short: Schema.optional(Schema.String),
  full: Schema.String,
  description: Schema.String
})
export type ApproveOption = typeof ApproveOption.Type

/**
 * The call runs; `scope` says how far beyond this call that holds.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Allow = Schema.Struct({ decision: Schema.Literal("allow"), scope: AllowScope })
/**
 * The call does not run; `scope` says whether that is remembered.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Deny = Schema.Struct({
  decision: Schema.Literal("deny"),
  scope: Schema.Literal("once", "session"),
  /** Words for the model; present only when somebody wrote some. */
  comment: Schema.optional(Schema.String)
})
/**
 * The call is to run with other arguments; they are checked from the top.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Edit = Schema.Struct({
  decision: Schema.Literal("edit"),
  editedArguments: Schema.Record({ key: Schema.String, value: Schema.Unknown })
})
/**
 * What somebody decided about a call.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ApproveAnswer = Schema.Union(Allow, Deny, Edit)
export type ApproveAnswer = typeof ApproveAnswer.Type
