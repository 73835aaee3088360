/** Which interactor a question goes to. */
import * as Glob from "../core/Glob.js"
import * as InteractorCall from "../interaction/InteractorCall.js"
import type * as Interaction from "../interaction/Interaction.js"
import { InteractorUnavailable } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"
import * as Panel from "./Panel.js"

/**
 * What a question is about. All that is given has to hold, and of each list one entry.
 *
 * @since 0.1.0
 * @category models
 */
export interface About {
  readonly kinds?: ReadonlyArray<Interaction.Kind> | undefined
  /** Exact names. */
  readonly tools?: ReadonlyArray<string> | undefined
  /** Globs over the path of the agent that asks, such as `main/*`. */
  readonly agents?: ReadonlyArray<string> | undefined
  /** Globs over what is shown of a call: its arguments as one line, or its details. A long call may be shown in part. */
  readonly arguments?: ReadonlyArray<string> | undefined
}

/**
 * Questions that go to one interactor.
 *
 * @since 0.1.0
 * @category models
 */
export interface RouteCase {
  readonly when: About | ((request: InteractionRequest) => boolean)
  readonly to: Interactor.Service
}

/**
 * The cases in order; the first that fits counts.
 *
 * @since 0.1.0
 * @category models
 */
export interface RouteOptions {
  readonly cases: ReadonlyArray<RouteCase>
  readonly otherwise: Interactor.Service
  /** Default: `route`. */
  readonly id?: string | undefined
}

/** See `Interactors.route`. */
export const make = ({ cases, id = "route", otherwise }: RouteOptions): Interactor.Service => {
  const compiled = cases.map(({ to, when }) => ({ to, fits: typeof when === "function" ? when : about(when) }))
  return {
    id,
    relay: false,
    request: (request, options) => {
      const to = compiled.find(({ fits }) => fits(request))?.to ?? otherwise
      const refused = Panel.refusedBy(to, request)
      if (refused !== undefined) {
        const reason = `${to.principal} has voted`
        return refused === "voted"
          ? new InteractorUnavailable({ requestId: request.requestId, by: to.id, reason })
          : refused
      }
      // An answer is that of the one who was asked, and not the route's. Others may be asked about the upcoming calls.
      return InteractorCall.ask(to, request, { ...options, upcoming: undefined })
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const about = ({ agents, arguments: shown, kinds, tools }: About): ((request: InteractionRequest) => boolean) => {
  const paths = agents?.map(Glob.compile)
  const texts = shown?.map(Glob.compile)
  return ({ agentPath, interaction }) =>
    (kinds === undefined || kinds.includes(interaction._tag)) &&
    (tools === undefined || tools.includes(toolOf(interaction) ?? "")) &&
    (paths === undefined || paths.some((glob) => Glob.matches(glob, agentPath))) &&
    (texts === undefined || shownOf(interaction).some((text) => texts.some((glob) => Glob.matches(glob, text))))
}

const toolOf = (interaction: Interaction.Interaction): string | undefined =>
  interaction._tag === "Approve" || interaction._tag === "grantStageTool" ? interaction.tool : undefined

const shownOf = (interaction: Interaction.Interaction): ReadonlyArray<string> => {
  if (interaction._tag === "grantStageTool") return [interaction.argsSummary]
  if (interaction._tag !== "Approve") return []
  const { argumentsSummary, display } = interaction
  return [argumentsSummary, ...[display?.summary, display?.details].filter((text) => text !== undefined)]
}
