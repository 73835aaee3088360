/** One person after the other. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Interaction from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as Panel from "./Panel.js"

/**
 * Who is asked, one after the other, and after how long the next one.
 *
 * @since 0.1.0
 * @category models
 */
export interface EscalateOptions {
  readonly to: ReadonlyArray<Interactor.Service>
  /** How long one has before the next one is asked too. Without it only somebody who cannot answer, or passes, is followed. */
  readonly after?: Duration.DurationInput | undefined
  /** Default: `escalation`. */
  readonly id?: string | undefined
}

/** See `Interactors.escalate`. */
export const make = ({ after, id = "escalation", to }: EscalateOptions): Interactor.Service => {
  const nextOf = (at: number): Interactor.Next | undefined => {
    const next = to[at + 1]
    if (next === undefined) return undefined
    return after === undefined ? { by: next.id } : { by: next.id, after: Duration.toMillis(after) }
  }
  return {
    id,
    relay: false,
    request: <I extends Interaction.Interaction>(request: InteractionRequest<I>, asked?: Interactor.Options<I>) =>
      Interactor.rechecked(
        asked,
        Effect.suspend(() => {
          let reached = 0
          let open = 0
          let last: InteractionError | undefined
          return Panel.run(
            request,
            asked,
            (answered) => Effect.succeed(Option.some(answered)),
            (panel) => {
              /** Asks the one at this place, unless they were asked before. */
              const reach = (at: number): Effect.Effect<void> =>
                Effect.suspend(() => {
                  const service = to[at]
                  if (at !== reached || service === undefined) return Effect.void
                  reached++
                  open++
                  const left = (error: InteractionError | undefined) =>
                    Effect.suspend(() => {
                      last = error ?? last
                      open--
                      if (at + 1 === reached || open === 0) return Effect.zipRight(reach(reached), endIfNobody)
                      return Effect.void
                    })
                  const asking = panel.ask(service, left, nextOf(at))
                  return after === undefined || at + 1 === to.length
                    ? asking
                    : Effect.zipRight(asking, panel.meanwhile(Effect.delay(reach(at + 1), after)))
                })
              const endIfNobody = Effect.suspend(() =>
                open > 0 ? Effect.void : panel.fail(Panel.nobodyLeft(request, id, "there was nobody left to ask", last))
              )
              return Effect.zipRight(reach(0), endIfNobody)
            }
          )
        })
      )
  }
}
