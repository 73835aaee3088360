/**
 * A call that the policy's approvals reserve for several people, a role or a person: what is demanded, and what the votes
 * come to.
 *
 * Nobody is believed. Whatever an interactor answers, the gate counts the votes in it again, against its own rules. So an
 * interactor that answers alone, a parent that mediates, a time limit and `--yolo` allow nothing. An allowance holds for this
 * call only.
 */
import * as Digest from "../core/Digest.js"
import * as Ballot from "../interaction/Ballot.js"
import type * as Interaction from "../interaction/Interaction.js"
import type * as Interactor from "../interaction/Interactor.js"
import * as Needs from "../interaction/Needs.js"
import * as NeedText from "../interaction/NeedText.js"
import * as Tally from "../interaction/Tally.js"
import type { ToolCall } from "../tool/ToolCall.js"
import * as ApprovalText from "./ApprovalText.js"
import type { Resolution } from "./Verdict.js"

/** What the votes come to: nothing yet, a yes or no, or other arguments. */
export type Outcome =
  | { readonly _tag: "Undecided" }
  | { readonly _tag: "Answered"; readonly answer: Answer; readonly given: Given; readonly voters: Voters }
  | {
      readonly _tag: "Edited"
      readonly changes: { readonly [name: string]: unknown }
      readonly given: Given
      /** The people who wanted exactly these arguments allow them. */
      readonly votes: ReadonlyArray<Ballot.Cast>
    }

/** Who decided. */
export type Given = Required<Pick<Resolution, "by" | "how" | "votes">>

type Answer = Exclude<Interaction.ApproveAnswer, { readonly decision: "edit" }>

type Voters = NonNullable<Resolution["voters"]>

type Demanded = readonly [Interaction.Need, ...ReadonlyArray<Interaction.Need>]

/** A vote counts for exactly this tool and these arguments. */
export const needsOf = ({ name, params }: ToolCall, all: Demanded): Needs.Needs => ({
  digest: Digest.digest({ tool: name, params: params ?? null }),
  all,
  votes: []
})

export const count = (reserved: Ballot.Reserved, cast: ReadonlyArray<Ballot.Cast>): Outcome => {
  const standing = Tally.standing(reserved, cast)
  if (standing._tag !== "Decided") return { _tag: "Undecided" }
  const { answer, by } = standing
  const given: Given = { by, how: "answered", votes: Needs.votedOf(cast) }
  const agreeing = Tally.agreeing(reserved, cast, answer)
  if (answer.decision === "edit") {
    const votes = agreeing.map((vote): Ballot.Cast => ({ ...vote, answer: { decision: "allow", scope: "once" } }))
    return { _tag: "Edited", changes: answer.editedArguments, given, votes }
  }
  const voters = agreeing.map(({ by, roles }) => (roles === undefined ? { by } : { by, roles }))
  return { _tag: "Answered", answer, given, voters }
}

/** One person's answer is one vote. An answer that no person gave is no vote. */
export const votesIn = ({
  answer,
  by,
  how,
  roles,
  votes
}: Interactor.Answered<Interaction.Approve>): ReadonlyArray<Ballot.Cast> =>
  how === "answered" ? (votes ?? [{ answer, by, ...(roles && { roles }) }]) : []

/** Why an answer does not suffice. */
export const missing = (
  all: Demanded,
  votes: ReadonlyArray<Ballot.Cast>,
  { how }: Pick<Interactor.Answered<Interaction.Approve>, "how">
): string =>
  [
    ApprovalText.describe(all),
    NeedText.describeVotes(Needs.votedOf(votes)) ?? (how === "answered" ? undefined : `${how} is nobody`)
  ]
    .filter((part) => part !== undefined)
    .join("; ")

/** What is demanded, for people. */
export const describe: (all: Demanded) => string = ApprovalText.describe
