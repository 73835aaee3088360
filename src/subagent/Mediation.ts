/** Has the questions of a session's children answered, in the way that the tree says. */
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
  /** Whom the parent itself asks. */
  readonly interactor: Interactor.Service
  /** The parent's. */
  readonly scope: Scope.Scope
}

/** Starts the mediator when it is run first, and does nothing after that. */
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

/** What was said in the parent's conversation, each by whom. */
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
