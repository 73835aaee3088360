/**
 * A call that a rule reserves for votes, and whose votes count. What votes come to is counted by `Tally`, which is loaded
 * where there are some.
 */
import type { Approve, Interaction } from "./Interaction.js"
import type { Vote } from "./InteractorPort.js"
import type * as Needs from "./Needs.js"
import * as Principal from "./Principal.js"

/** One vote on a call. */
export type Cast = Vote<Approve>

/** Whose vote it is, and the roles that their channel knew them to have. */
export type Voter = Pick<Cast, "by" | "roles">

/** A call that a rule reserves. */
export interface Reserved {
  readonly needs: Needs.Needs
  readonly editable?: Approve["editable"]
}

// -----------------------------------------------------------------------------------------------------------------
// predicates
// -----------------------------------------------------------------------------------------------------------------

/** Whether a rule reserves this interaction. */
export const isReserved = (interaction: Interaction): interaction is Approve & Reserved =>
  interaction._tag === "Approve" && interaction.needs !== undefined

/** Whether these people, who all allow it, are enough for all rules. */
export const suffices = (all: ReadonlyArray<Needs.Need>, voters: ReadonlyArray<Voter>): boolean =>
  all.every((need) => count(need, Principal.lastOfEach(voters)) >= need.quorum)

/** Whether a rule asks for this vote. */
export const isEntitled = ({ members, roles }: Needs.Need, voter: Voter): boolean =>
  roles.length === 0 ||
  Principal.isAmong(members, voter.by) ||
  voter.roles?.some((role) => Principal.isAmong(roles, role)) === true

/** How many of these people a rule asks for. */
export const count = (need: Needs.Need, votes: ReadonlyArray<Voter>): number =>
  votes.filter((vote) => isEntitled(need, vote)).length
