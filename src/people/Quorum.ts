/** Several people have to agree. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Tally from "../interaction/Tally.js"
import * as Interaction from "../interaction/Interaction.js"
import { VoteRefused, type InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as NeedText from "../interaction/NeedText.js"
import * as Principal from "../interaction/Principal.js"
import * as Panel from "./Panel.js"

/**
 * Who is asked, and how many have to agree.
 *
 * @since 0.1.0
 * @category models
 */
export interface QuorumOptions {
  /** All of them are asked at once. Several people may answer through one of them. */
  readonly of: ReadonlyArray<Interactor.Service>
  /** How many different people have to give the same answer. */
  readonly need: number
  /** Only people in one of these roles count. Default: everybody. */
  readonly roles?: ReadonlyArray<string> | undefined
  /** Whether one person denies alone, or as many as have to allow. Default: one. */
  readonly deny?: "one" | "quorum" | undefined
  /** Default: `quorum`. */
  readonly id?: string | undefined
}

/** See `Interactors.quorum`. */
export const make = (options: QuorumOptions): Interactor.Service => {
  const { id = "quorum", of, roles = [] } = options
  const need: Interaction.Need = {
    quorum: Math.max(1, Math.ceil(options.need)),
    roles,
    members: [],
    deny: options.deny ?? "one",
    rule: id
  }
  return {
    id,
    relay: false,
    request: <I extends Interaction.Interaction>(request: InteractionRequest<I>, asked?: Interactor.Options<I>) => {
      // What is secret is one person's.
      if (Interaction.isSecret(request.interaction._tag)) return Effect.fail(Interactor.declined(id, request))
      return Interactor.rechecked(
        asked,
        Effect.suspend(() => collect(request, asked, of, need, id))
      )
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const collect = <I extends Interaction.Interaction>(
  request: InteractionRequest<I>,
  asked: Interactor.Options<I> | undefined,
  of: ReadonlyArray<Interactor.Service>,
  need: Interaction.Need,
  id: string
): Effect.Effect<Interactor.Answered<I>, InteractionError> => {
  const { interaction, requestId } = request
  let votes: ReadonlyArray<Interactor.Vote<I>> = asked?.votes ?? []
  let left = of.length
  const take: Panel.Take<I> = ({ answer, by, how, roles, votes: several }) =>
    Effect.suspend(() => {
      const refused = (by: string, reason: string) => new VoteRefused({ requestId, by, reason })
      if (how !== "answered") return refused(by, `${NeedText.describe(need)}, and it came from nobody (${how})`)
      const given: ReadonlyArray<Interactor.Vote<I>> = several ?? [{ answer, by, ...(roles && { roles }) }]
      for (const vote of given) {
        const reason = refusal(need, vote)
        if (reason !== undefined) return refused(vote.by, reason)
      }
      for (const vote of given) votes = [...Principal.others(votes, vote.by), vote]
      return Effect.succeed(decided(interaction, need, votes))
    })
  const nobody = (last: InteractionError | undefined) => {
    const said = votes.length === 0 ? "nobody has answered" : `${votes.map(({ by }) => by).join(", ")} answered`
    return Panel.nobodyLeft(request, id, `${NeedText.describe(need)}, and ${said}`, last)
  }
  return Panel.run(request, asked, take, (panel) => {
    if (left === 0) return panel.fail(nobody(undefined))
    let last: InteractionError | undefined
    return Effect.forEach(
      of,
      (service) =>
        panel.ask(service, (error) => {
          last = error ?? last
          return --left === 0 ? panel.fail(nobody(last)) : Effect.void
        }),
      { discard: true }
    )
  })
}

const refusal = (need: Interaction.Need, vote: Pick<Ballot.Cast, "by" | "roles">): string | undefined =>
  Tally.refusal({ digest: "", all: [need], votes: [] }, vote)

/** The answer on which as many agree as have to; none while they do not. */
const decided = <I extends Interaction.Interaction>(
  interaction: I,
  need: Interaction.Need,
  votes: ReadonlyArray<Interactor.Vote<I>>
): Option.Option<Interactor.Answered<I>> => {
  const by = votes.map((vote) => vote.by).join(", ")
  const answered = (answer: Interaction.Answer<I>): Option.Option<Interactor.Answered<I>> =>
    Option.some({ answer, by, how: "answered", votes })
  if (interaction._tag === "Approve") {
    const needs = { digest: "", all: [need] as const, votes: [] }
    // The votes on an approval, and the answer to one; the type of all votes cannot say so.
    const standing = Tally.standing(
      { needs, editable: interaction.editable },
      votes as unknown as ReadonlyArray<Ballot.Cast>
    )
    return standing._tag === "Open" ? Option.none() : answered(standing.answer as Interaction.Answer<I>)
  }
  const groups = new Map<string, ReadonlyArray<Interactor.Vote<I>>>()
  for (const vote of votes) {
    const key = canonicalJson(Interaction.encodeAnswer(interaction, vote.answer))
    groups.set(key, [...(groups.get(key) ?? []), vote])
  }
  // A denial goes before an allowance that the same vote completes.
  const denials = votes.filter(({ answer }) => isDenial(interaction, answer))
  const [denial] = denials
  if (denial !== undefined && denials.length >= (need.deny === "one" ? 1 : need.quorum)) return answered(denial.answer)
  for (const group of groups.values()) {
    const [first] = group
    if (first !== undefined && group.length >= need.quorum) return answered(first.answer)
  }
  return Option.none()
}

/** "No" where yes or no was asked; other questions have no denial. */
const isDenial = (interaction: Interaction.Interaction, answer: unknown): boolean => {
  switch (interaction._tag) {
    case "Confirm":
      return answer === false
    case "grantStageTool":
    case "approveSubagentEnvelope":
      return typeof answer === "object" && answer !== null && "outcome" in answer && answer.outcome !== "approve"
    default:
      return false
  }
}
