/** Starts the mediator of a session's children, with the strategy of the tree. */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Mediator from "../bridge/Mediator.js"
import * as MediatorAgent from "../bridge/MediatorAgent.js"
import type * as Interactor from "../interaction/Interactor.js"
import * as History from "../conversation/History.js"
import type * as Session from "../session/Session.js"
import type { AgentTree } from "./AgentTree.js"

export interface Options {
  readonly tree: AgentTree
  /** The parent. */
  readonly session: Session.Service
  /** The parent's own interactor. */
  readonly interactor: Interactor.Service
  /** The parent's scope. */
  readonly scope: Scope.Scope
}

/** Starts the mediator on the first run; later runs do nothing. */
export const once = (options: Options): Effect.Effect<void> => {
  let started = false
  return Effect.suspend(() => {
    if (started) return Effect.void
    started = true
    const { interactor, scope, session, tree } = options
    const { audit, bus, redactor } = tree.shared
    const { origin } = session
    return Effect.flatMap(strategyOf(options), (strategy) =>
      Mediator.start({ lane: session.inbox.requests, interactor, strategy, origin, bus, redactor, audit }).pipe(
        Scope.extend(scope)
      )
    )
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const strategyOf = ({ session, tree }: Options): Effect.Effect<Mediator.Strategy> => {
  const {
    settings: { mediation },
    shared
  } = tree
  if (mediation === "forward") return Effect.succeed(Mediator.forward)
  if (mediation !== "agent") return Effect.succeed(mediation)
  const { agent, sessionId } = session.origin
  return MediatorAgent.make({
    model: session.model,
    origin: session.origin,
    redactor: shared.redactor,
    conversation: () => spokenIn(session.history),
    usage: (model, usage) => shared.ledger.record({ sessionId, agent, model, usage, kind: "call" })
  })
}

/** The words of the parent's conversation with their speakers. */
const spokenIn = ({ messages }: History.History): ReadonlyArray<MediatorAgent.Spoken> =>
  messages.flatMap((message) => {
    const text = message.role === "user" || message.role === "assistant" ? History.textOf(message) : ""
    return text === "" ? [] : [{ from: speakerOf(message), text }]
  })

const speakerOf = (message: Parameters<typeof History.metadata>[0]): MediatorAgent.Spoken["from"] => {
  if (message?.role === "assistant") return "you"
  const { source, summary } = History.metadata(message)
  if (summary === true) return "summary"
  return source === "child" ? "subagent" : (source ?? "user")
}
