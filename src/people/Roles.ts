/** Who may answer, by role. */
import * as Effect from "effect/Effect"
import * as InteractorCall from "../interaction/InteractorCall.js"
import type * as Interaction from "../interaction/Interaction.js"
import { InteractorUnavailable, VoteRefused, type AnswerRejected } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as Principal from "../interaction/Principal.js"
import * as Option from "effect/Option"
import * as Panel from "./Panel.js"

/**
 * Who has which role, and which of them may answer.
 *
 * @since 0.1.0
 * @category models
 */
export interface RolesOptions {
  readonly of: Interactor.Service
  /** The people in each role, as the interactor names them. */
  readonly members: { readonly [role: string]: ReadonlyArray<string> }
  /** Only people in one of these roles may answer. Default: everybody; their roles only go with their answers. */
  readonly only?: ReadonlyArray<string> | undefined
}

/** See `Interactors.roles`. */
export const make = ({ members, of, only }: RolesOptions): Interactor.Service => {
  const { id, principal, relay } = of
  const rolesOf = (by: string, more: ReadonlyArray<string> = []): ReadonlyArray<string> => [
    ...new Set([...more, ...Object.keys(members).filter((role) => Principal.isAmong(members[role] ?? [], by))])
  ]
  const withRoles = <I extends Interaction.Interaction>(reply: Interactor.Reply<I>): Interactor.Answered<I> => {
    const answered = InteractorCall.answered(id, reply)
    const votes = answered.votes?.map((vote) => ({ ...vote, roles: rolesOf(vote.by, vote.roles) }))
    return InteractorCall.told({ ...answered, roles: rolesOf(answered.by, answered.roles), ...(votes && { votes }) })
  }
  const objection = (answered: Interactor.Answered<Interaction.Interaction>): string | undefined => {
    if (only === undefined || answered.how !== "answered") return undefined
    const authors = answered.votes ?? [answered]
    const other = authors.find(({ roles }) => roles?.some((role) => Principal.isAmong(only, role)) !== true)
    return other === undefined ? undefined : `only ${only.join(" or ")} may answer it, and ${other.by} is not`
  }
  return {
    id,
    relay,
    principal,
    roles: principal === undefined ? of.roles : rolesOf(principal, of.roles),
    request: <I extends Interaction.Interaction>(request: InteractionRequest<I>, asked?: Interactor.Options<I>) => {
      const { requestId } = request
      const own = principal === undefined ? undefined : rolesOf(principal, of.roles)
      if (only !== undefined && own !== undefined && !own.some((role) => Principal.isAmong(only, role))) {
        const reason = `only ${only.join(" or ")} may answer it, and ${principal} is not`
        return Effect.fail(new InteractorUnavailable({ requestId, by: id, reason }))
      }
      return Interactor.rechecked(
        asked,
        Panel.run(
          request,
          asked,
          (answered): Effect.Effect<Option.Option<Interactor.Answered<I>>, AnswerRejected> => {
            const known = withRoles<I>(answered)
            const reason = objection(known as unknown as Interactor.Answered<Interaction.Interaction>)
            return reason === undefined
              ? Effect.succeed(Option.some(known))
              : new VoteRefused({ requestId, by: known.by, reason })
          },
          (panel) =>
            panel.ask(
              of,
              (error) =>
                panel.fail(error ?? new InteractorUnavailable({ requestId, by: id, reason: "it has answered" })),
              asked?.next
            )
        )
      )
    }
  }
}
