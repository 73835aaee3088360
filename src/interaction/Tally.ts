/**
 * The votes on a call that a rule reserves, counted. Pure: the same votes always come to the same.
 *
 * A vote belongs to a person and counts once, whichever way it came and however the name is spelt; a later vote of theirs
 * replaces it. Those who allow the
 * call as it is are counted together, and so are those who want exactly the same other arguments. A denial goes before an
 * allowance that the same vote completes.
 */
import * as Either from "effect/Either"
import { canonicalJson } from "../core/CanonicalJson.js"
import { count, isEntitled, isReserved, suffices, type Cast, type Reserved, type Voter } from "./Ballot.js"
import type { Approve, ApproveAnswer, Interaction } from "./Interaction.js"
import type { InteractionRequest } from "./InteractionRequest.js"
import type { Reply } from "./InteractorPort.js"
import type * as Needs from "./Needs.js"
import * as NeedText from "./NeedText.js"
import * as Principal from "./Principal.js"

/** What votes come to. */
export type Standing =
  | { readonly _tag: "Open"; readonly missing: string }
  | { readonly _tag: "Decided"; readonly answer: ApproveAnswer; readonly by: string }

// -----------------------------------------------------------------------------------------------------------------
// predicates
// -----------------------------------------------------------------------------------------------------------------

/** Whether this person is known to have voted. */
export const hasVoted = (interaction: Interaction, by: string): boolean =>
  isReserved(interaction) && interaction.needs.votes.some((vote) => Principal.isSame(vote.by, by))

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** Why a person's vote does not count; nothing when it does for at least one of the rules. */
export const refusal = ({ all }: Needs.Needs, voter: Voter): string | undefined => {
  const name = Principal.of(voter.by)
  if (Either.isLeft(name)) return `${NeedText.describeAll(all)}, and the name of its author ${name.left}`
  return all.some((need) => isEntitled(need, voter))
    ? undefined
    : `${NeedText.describeAll(all)}, and ${voter.by} is none of them`
}

/** Why a person is not asked about an interaction: `voted`, or that they have no say in it; nothing when they are. */
export const refusedOf = (interaction: Interaction, by: string, roles?: ReadonlyArray<string>): string | undefined => {
  if (!isReserved(interaction)) return undefined
  return hasVoted(interaction, by) ? "voted" : refusal(interaction.needs, { by, roles })
}

/** The votes with this one, which replaces an earlier one of the same person; nothing when that one was the same. */
export const having = (reserved: Reserved, votes: ReadonlyArray<Cast>, vote: Cast): ReadonlyArray<Cast> | undefined => {
  const before = votes.find(({ by }) => Principal.isSame(by, vote.by))
  if (before !== undefined && keyOf(reserved, before.answer) === keyOf(reserved, vote.answer)) return undefined
  return [...Principal.others(votes, vote.by), vote]
}

/** What the votes come to. Votes of people whom no rule asks are not counted. */
export const standing = (reserved: Reserved, cast: ReadonlyArray<Cast>): Standing => {
  const { all } = reserved.needs
  const votes = Principal.lastOfEach(cast).filter((vote) => all.some((need) => isEntitled(need, vote)))
  const by = namesOf(votes)
  const denials = votes.filter(({ answer }) => answer.decision === "deny")
  if (all.some((need) => count(need, denials) >= (need.deny === "one" ? 1 : need.quorum))) {
    return { _tag: "Decided", answer: denialOf(denials), by }
  }
  const groups = new Map<string, ReadonlyArray<Cast>>()
  for (const vote of votes) {
    if (vote.answer.decision === "deny") continue
    const key = keyOf(reserved, vote.answer)
    groups.set(key, [...(groups.get(key) ?? []), vote])
  }
  for (const [key, group] of groups) {
    const [first] = group
    if (first !== undefined && suffices(all, group)) {
      return { _tag: "Decided", answer: key === allowed ? allowOnce : first.answer, by }
    }
  }
  const best = (need: Needs.Need) => Math.max(0, ...[...groups.values()].map((group) => count(need, group)))
  const lacking = all.flatMap((need) =>
    best(need) < need.quorum ? [{ ...need, quorum: need.quorum - best(need) }] : []
  )
  const missing = lacking.length === 0 ? "they do not agree on the arguments" : NeedText.describeMissing(lacking)
  return { _tag: "Open", missing }
}

/** The votes that say the same as this answer. */
export const agreeing = (
  reserved: Reserved,
  votes: ReadonlyArray<Cast>,
  answer: ApproveAnswer
): ReadonlyArray<Cast> => {
  const key = keyOf(reserved, answer)
  return Principal.lastOfEach(votes).filter((vote) => keyOf(reserved, vote.answer) === key)
}

/** Names of all who voted. */
const namesOf = (votes: ReadonlyArray<Cast>): string =>
  Principal.lastOfEach(votes)
    .map(({ by }) => by)
    .join(", ")

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The request as it is shown once this person has voted; the very same when that changes nothing. */
export const withVote = <I extends Interaction>(
  request: InteractionRequest<I>,
  { answer, by }: Pick<Reply<I>, "answer" | "by">
): InteractionRequest<I> => {
  const interaction: Interaction = request.interaction
  if (by === undefined || !isReserved(interaction)) return request
  // The answer to an approval; the type of all answers cannot say so.
  const { decision: vote } = answer as ApproveAnswer
  const { votes } = interaction.needs
  if (votes.some((known) => Principal.isSame(known.by, by) && known.vote === vote)) return request
  const voted = [...Principal.others(votes, by), { by, vote }]
  return shownWith(request, interaction, voted)
}

/** The request with these votes. */
export const shownWith = <I extends Interaction>(
  request: InteractionRequest<I>,
  reserved: Approve & Reserved,
  votes: ReadonlyArray<Needs.Voted>
): InteractionRequest<I> => {
  const needs = { ...reserved.needs, votes }
  // The class of the value is kept: a spread alone would lose it.
  const interaction: I = Object.assign(Object.create(Object.getPrototypeOf(reserved)), { ...reserved, needs })
  return { ...request, interaction }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const allowOnce: ApproveAnswer = { decision: "allow", scope: "once" }

/** The group of those who allow the call as it is; edits have JSON as key. */
const allowed = "allow"

/** Arguments that equal the present ones are no edit. */
const keyOf = ({ editable }: Reserved, answer: ApproveAnswer): string => {
  if (answer.decision === "deny") return "deny"
  if (answer.decision === "allow") return allowed
  const current = editable?.current ?? {}
  const wanted = canonicalJson({ ...current, ...answer.editedArguments })
  return wanted === canonicalJson(current) ? allowed : wanted
}

const denialOf = (denials: ReadonlyArray<Cast>): ApproveAnswer => {
  const said = denials.flatMap(({ answer }) => (answer.decision === "deny" ? [answer] : []))
  const comments = said.flatMap(({ comment }) => (comment === undefined ? [] : [comment]))
  const scope = said.every((denial) => denial.scope === "session") ? "session" : "once"
  return comments.length === 0 ? { decision: "deny", scope } : { decision: "deny", scope, comment: comments.join("\n") }
}
