/**
 * Everything sent to one session, and the only way in.
 *
 * Two lanes, each in order of arrival: `steer` is read at the next step boundary of the running turn, `queue` when the
 * session is idle. Written by any fiber through a port, read by the session's one fiber; unbounded, because whoever sends
 * is bounded where it sends. A message is either delivered once or still visible here.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { IdGenerator, type Generator, type MessageId } from "../core/Id.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import * as Door from "./Door.js"
import type { Delivery, Message, Source } from "./Message.js"
import * as RequestLane from "./RequestLane.js"

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

/** A child's end of its parent's inbox. */
export interface ChildPort {
  /** What the child has to tell: its completion, an error. Read when the parent is idle. */
  readonly tell: (text: string) => Message
  readonly ask: (raised: RequestLane.Raised) => void
  readonly withdraw: (requestId: string, why: InteractionError) => void
}

export interface Service {
  readonly port: (source: Source) => Port
  readonly childPort: ChildPort
  /** What this session's children ask; read by its mediator. */
  readonly requests: RequestLane.RequestLane
  /** Where this session's own questions to its parent wait; of no use to a root. */
  readonly door: Door.Door
  /** Waits until a message is there. */
  readonly awaitWork: Effect.Effect<void>
  /** Takes what steers the running turn, oldest first. */
  readonly takeSteering: () => ReadonlyArray<Message>
  /**
   * Takes what starts a turn: all steering messages, else the oldest queued one. A queued `lead` that is still here comes
   * first, and what steers with it. Steering messages that are for `later` stay.
   */
  readonly takeTurn: (lead?: MessageId, later?: ReadonlySet<MessageId>) => ReadonlyArray<Message>
  /** Files, under its own id, a message that another inbox has given up. */
  readonly unsafeRefile: (message: Message, options?: SendOptions) => Message
  /** Takes back a message that was not taken yet. False when it was, or never was here. */
  readonly withdraw: (id: MessageId) => boolean
  readonly hasSteering: () => boolean
  readonly isEmpty: () => boolean
  /** What is there, steering first; nothing is taken. */
  readonly peek: () => ReadonlyArray<Message>
}

/** A user, a parent or the system is heard at the next step; a child waits until the session is idle. */
export const defaultDelivery = (source: Source): Delivery => (source === "child" ? "queue" : "steer")

export interface Options {
  /** Told of replies that name no open question. Default: they are dropped without a word. */
  readonly late?: ((reply: Door.Late) => void) | undefined
  /** Told of every message as it is filed, in the same step. */
  readonly filed?: ((message: Message) => void) | undefined
  /** Told of every message that is taken back unread. */
  readonly withdrawn?: ((id: MessageId) => void) | undefined
  /** What is there from the start. */
  readonly messages?: ReadonlyArray<Message> | undefined
}

export const make = (options: Options = {}): Effect.Effect<Service> =>
  Effect.zipWith(IdGenerator, Effect.clock, (ids, clock) => open(ids, clock, options))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const open = (ids: Generator, clock: Clock.Clock, options: Options): Service => {
  const lanes: { readonly [D in Delivery]: Array<Message> } = { steer: [], queue: [] }
  for (const message of options.messages ?? []) lanes[message.delivery].push(message)
  let reader: ((effect: Effect.Effect<void>) => void) | undefined
  const file = (message: Message): Message => {
    lanes[message.delivery].push(message)
    options.filed?.(message)
    const resume = reader
    reader = undefined
    resume?.(Effect.void)
    return message
  }
  const isEmpty = () => lanes.steer.length === 0 && lanes.queue.length === 0
  const takeSteering = () => lanes.steer.splice(0)
  const port = (source: Source): Port => {
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
  }
  // Most sessions have neither children nor a parent, and many may be open.
  let requests: RequestLane.RequestLane | undefined
  let door: Door.Door | undefined
  const lane = () => (requests ??= RequestLane.make())
  return {
    port,
    get childPort(): ChildPort {
      return {
        tell: port("child").unsafeSend,
        ask: (raised) => lane().post(RequestLane.Ask({ raised })),
        withdraw: (requestId, why) => lane().post(RequestLane.Withdraw({ requestId, why }))
      }
    },
    get requests() {
      return lane()
    },
    get door() {
      return (door ??= Door.make(options.late ?? (() => undefined)))
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
    takeTurn: (lead, later) => {
      const steering = takeSteering()
      if (later !== undefined) lanes.steer.push(...steering.filter(({ id }) => later.has(id)))
      const now = later === undefined ? steering : steering.filter(({ id }) => !later.has(id))
      const at = lead === undefined ? -1 : lanes.queue.findIndex(({ id }) => id === lead)
      if (at >= 0) return [...lanes.queue.splice(at, 1), ...now]
      return now.length > 0 ? now : lanes.queue.splice(0, 1)
    },
    unsafeRefile: ({ id, source, text, at }, { delivery = defaultDelivery(source), interjection } = {}) =>
      file({ id, source, delivery, text, at, ...(interjection === undefined ? {} : { interjection }) }),
    withdraw: (id) => {
      for (const lane of [lanes.steer, lanes.queue]) {
        const at = lane.findIndex((message) => message.id === id)
        if (at < 0) continue
        lane.splice(at, 1)
        options.withdrawn?.(id)
        return true
      }
      return false
    },
    hasSteering: () => lanes.steer.length > 0,
    isEmpty,
    peek: () => [...lanes.steer, ...lanes.queue]
  }
}
