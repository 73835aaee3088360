/**
 * Whose agreement a call needs, where a rule reserves it: for several people, for a role, or just for a person. It travels
 * with the request, so that everybody who is asked sees it and nobody answers alone by mistake.
 */
import * as Schema from "effect/Schema"
import * as Principal from "./Principal.js"

/**
 * What one rule demands.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Need = Schema.Struct({
  /** How many different people have to allow it. */
  quorum: Schema.Int.pipe(Schema.positive()),
  /** They have one of these roles; empty: anybody. */
  roles: Schema.Array(Schema.String),
  /** The people whom the policy names for these roles. An interactor may know others to have them. */
  members: Schema.Array(Schema.String),
  /** Whether one of them denies it alone, or as many as have to allow it. */
  deny: Schema.Literal("one", "quorum"),
  /** The rule as it was written. */
  rule: Schema.String
})
export type Need = typeof Need.Type

/**
 * What a person said where several have to agree.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Voted = Schema.Struct({ by: Schema.String, vote: Schema.Literal("allow", "deny", "edit") })
export type Voted = typeof Voted.Type

/**
 * What all rules about one call demand, and who has voted.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Needs = Schema.Struct({
  /** SHA-256 of the tool and its arguments: a vote counts for exactly these. */
  digest: Schema.String,
  /** All of them have to be met. */
  all: Schema.NonEmptyArray(Need),
  votes: Schema.Array(Voted)
})
export type Needs = typeof Needs.Type

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** What each person said, in the order of their votes. */
export const votedOf = (
  votes: ReadonlyArray<{ readonly by: string; readonly answer: { readonly decision: Voted["vote"] } }>
): ReadonlyArray<Voted> => Principal.lastOfEach(votes).map(({ answer, by }) => ({ by, vote: answer.decision }))
