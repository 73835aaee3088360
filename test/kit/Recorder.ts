/** A bus that also keeps all events in a list, when they are published. */
import * as Effect from "effect/Effect"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as EventBus from "../../src/event/EventBus.js"

export interface Recorder {
  readonly bus: EventBus.Service
  readonly events: ReadonlyArray<AgentEvent>
  readonly tags: () => ReadonlyArray<AgentEvent["_tag"]>
  /** The tags of the events about one request, in order. */
  readonly about: (requestId: string) => ReadonlyArray<AgentEvent["_tag"]>
}

export const make = (onPublish: (event: AgentEvent) => void = () => {}): Effect.Effect<Recorder> =>
  Effect.map(EventBus.make, (bus) => {
    const events: Array<AgentEvent> = []
    const unsafePublish = (event: AgentEvent) => {
      events.push(event)
      onPublish(event)
      return bus.unsafePublish(event)
    }
    return {
      bus: {
        unsafePublish,
        publish: (event) => Effect.suspend(() => (unsafePublish(event) ? Effect.void : bus.awaitRoom)),
        awaitRoom: bus.awaitRoom,
        subscribe: bus.subscribe,
        close: bus.close
      },
      events,
      tags: () => events.map((event) => event._tag),
      about: (requestId) =>
        events.filter((event) => "requestId" in event && event.requestId === requestId).map((event) => event._tag)
    }
  })

export const settling: ReadonlySet<string> = new Set([
  "InteractionAnswered",
  "InteractionCancelled",
  "InteractionTimedOut",
  "InteractionUnavailable"
])

/** Lets every fiber that can run come to rest. */
export const settle = Effect.repeatN(Effect.yieldNow(), 50)
