/**
 * Everything sent to one session, and the only way in.
 *
 * Two lanes, each in order of arrival: `steer` is read at the next step boundary of the running turn, `queue` when the
 * session is idle. Written by any fiber through a port, read by the session's one fiber; unbounded, because whoever sends
 * is bounded where it sends. A message is either delivered once or still visible here.
 */
import * as Effect from "effect/Effect"
import { IdGenerator, type MessageId } from "../core/Id.js"
import type { Delivery, Message, Source } from "./Message.js"

/** A sender's end of an inbox, bound to one source. */
export interface Port {
  readonly source: Source
  readonly send: (text: string, options?: SendOptions) => Effect.Effect<Message>
  /** Files at once, for whoever has to decide and file in one step. */
  readonly unsafeSend: (text: string, options?: SendOptions) => Message
}

export interface SendOptions {
  /** Default: {@link defaultDelivery} of the source. */
  readonly delivery?: Delivery | undefined
  readonly interjection?: Message["interjection"]
}

export interface Service {
  readonly port: (source: Source) => Port
  /** Waits until a message is there. */
  readonly awaitWork: Effect.Effect<void>
  /** Takes what steers the running turn, oldest first. */
  readonly takeSteering: () => ReadonlyArray<Message>
  /** Takes what starts a turn: all steering messages, else the oldest queued one. */
  readonly takeTurn: () => ReadonlyArray<Message>
  /** Takes back a message that was not taken yet. False when it was, or never was here. */
  readonly withdraw: (id: MessageId) => boolean
  readonly hasSteering: () => boolean
  readonly isEmpty: () => boolean
  /** What is there, steering first; nothing is taken. */
  readonly peek: () => ReadonlyArray<Message>
}

/** A user, a parent or the system is heard at the next step; a child waits until the session is idle. */
export const defaultDelivery = (source: Source): Delivery => (source === "child" ? "queue" : "steer")

export const make: Effect.Effect<Service> = Effect.zipWith(IdGenerator, Effect.clock, (ids, clock) => {
  const lanes: { readonly [D in Delivery]: Array<Message> } = { steer: [], queue: [] }
  let reader: ((effect: Effect.Effect<void>) => void) | undefined
  const file = (message: Message): Message => {
    lanes[message.delivery].push(message)
    const resume = reader
    reader = undefined
    resume?.(Effect.void)
    return message
  }
  const isEmpty = () => lanes.steer.length === 0 && lanes.queue.length === 0
  const takeSteering = () => lanes.steer.splice(0)
  return {
    port: (source) => {
      const unsafeSend: Port["unsafeSend"] = (text, options) =>
        file({
          id: ids.unsafeNext("msg") as MessageId,
          source,
          delivery: options?.delivery ?? defaultDelivery(source),
          text,
          at: clock.unsafeCurrentTimeMillis(),
          ...(options?.interjection === undefined ? {} : { interjection: options.interjection })
        })
      return { source, unsafeSend, send: (text, options) => Effect.sync(() => unsafeSend(text, options)) }
    },
    awaitWork: Effect.suspend(() =>
      isEmpty()
        ? Effect.async<void>((resume) => {
            // Other fibers may have run since the look above.
            if (!isEmpty()) return resume(Effect.void)
            reader = resume
            return Effect.sync(() => {
              if (reader === resume) reader = undefined
            })
          })
        : Effect.void
    ),
    takeSteering,
    takeTurn: () => (lanes.steer.length > 0 ? takeSteering() : lanes.queue.splice(0, 1)),
    withdraw: (id) => {
      for (const lane of [lanes.steer, lanes.queue]) {
        const at = lane.findIndex((message) => message.id === id)
        if (at >= 0) return lane.splice(at, 1).length > 0
      }
      return false
    },
    hasSteering: () => lanes.steer.length > 0,
    isEmpty,
    peek: () => [...lanes.steer, ...lanes.queue]
  }
})
