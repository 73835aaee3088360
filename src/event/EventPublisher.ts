/**
 * The one way onto the bus for what happens now: an event gets its agent and its time here and nowhere else.
 *
 * A function and no object or closure for each agent: thousands of agents may wait side by side, and one event is a plain
 * call that makes one object.
 */
import type * as Clock from "effect/Clock"
import type { CorrelationId, SessionId } from "../core/Id.js"
import * as AgentEvent from "./AgentEvent.js"
import type * as EventBus from "./EventBus.js"

/** The agent that an event is about; an `Origin` is one. */
export interface Actor {
  readonly sessionId: SessionId
  readonly agent: string
  readonly correlationId?: CorrelationId | undefined
}

/**
 * Publishes at once. False: the bus is full, and the caller should wait for `EventBus.awaitRoom`. The `turn` counts before
 * the actor's own, for an actor that outlives its turns.
 */
export const publish = (
  bus: EventBus.Service,
  clock: Clock.Clock,
  { agent, correlationId, sessionId }: Actor,
  body: AgentEvent.Body,
  turn: CorrelationId | undefined = correlationId
): boolean => {
  const stamp = { at: clock.unsafeCurrentTimeMillis(), sessionId, agent, correlationId: turn }
  return bus.unsafePublish(AgentEvent.make(stamp, body))
}
