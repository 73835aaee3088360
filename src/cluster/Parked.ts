/** Whether an agent only waits for people, so that it can leave memory: its questions keep their ids when it is resumed. */
import * as Effect from "effect/Effect"
import * as ParentBridgedChannel from "../bridge/ParentBridgedChannel.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import type * as Agent from "../runtime/Agent.js"

/** An agent that only waits. */
export interface Parked {
  /** Milliseconds since the epoch at which its first question times out; undefined when none does. */
  readonly dueAt: number | undefined
}

/**
 * In each of its agents that work, every tool that runs asks, or waits for a subagent that does. A question that no other
 * process asks again counts as work. Undefined while anything works.
 */
export const of = ({
  agents,
  broker,
  subagentTimeouts
}: Pick<Agent.Agent, "agents" | "broker" | "subagentTimeouts">): Effect.Effect<Parked | undefined> =>
  Effect.zipWith(broker.open, agents, (open, nodes) => {
    const asking = new Set(open.map((request) => InteractionRequest.callOf(request)))
    const askers = new Set(open.map(({ sessionId }) => sessionId))
    const working = new Set(nodes.flatMap(({ origin, session }) => (session.isIdle() ? [] : [origin.sessionId])))
    const isWaiting = ({ origin, session }: (typeof nodes)[number]) => {
      const delegated = session.delegations.running.filter((one) => working.has(one.session.origin.sessionId))
      const waiting = new Set([...asking, ...delegated.map(({ toolCallId }) => toolCallId)])
      return (
        (delegated.length > 0 || askers.has(origin.sessionId)) &&
        session.calls.atWork.every(({ call, over }) => over || waiting.has(call.id))
      )
    }
    if (open.length === 0 || open.some(InteractionRequest.isAskedOnce)) return undefined
    if (!nodes.every((node) => node.session.isIdle() || isWaiting(node))) return undefined
    const timeouts = Interactor.timeoutsOf(subagentTimeouts, ParentBridgedChannel.defaultTimeouts)
    // Parents limit the time of questions by themselves, and tools may.
    const due = open.flatMap(({ dueAt = Infinity, interaction, issuedAt, parentSessionId }) => {
      const limit = parentSessionId === undefined ? undefined : Interactor.millisOf(interaction, timeouts)
      const first = Math.min(dueAt, issuedAt + (limit ?? Infinity))
      return first === Infinity ? [] : [first]
    })
    return { dueAt: due.length === 0 ? undefined : Math.min(...due) }
  })
