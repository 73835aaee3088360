/**
 * Everything sent to one session, and the only way in.
 *
 * Two lanes, each in order of arrival: `steer` is read at the next step boundary of the running turn, `queue` when the
 * session is idle. Written by any fiber through a port, read by the session's one fiber; unbounded, because senders are
 * bounded on their side. A message is either delivered once or still visible here.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Id from "../core/Id.js"
import type { MessageId } from "../core/Id.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import * as PendingReplies from "./PendingReplies.js"
import type { Delivery, Message, Source } from "./Message.js"
import * as ChildRequestQueue from "./ChildRequestQueue.js"

/** A sender's end of an inbox, bound to one source. */
export interface Port {
  readonly source: Source
  readonly send: (text: string, options?: SendOptions) => Effect.Effect<Message>
  /** Files synchronously, for a caller that must decide and file in one step. */
  readonly unsafeSend: (text: string, options?: SendOptions) => Message
}

export interface SendOptions {
  /** Default: {@link defaultDelivery} of the source. */
  readonly delivery?: Delivery | undefined
  readonly interjection?: Message["interjection"]
  /** Unique in the tree. Default: a fresh one. */
  readonly id?: MessageId | undefined
}

/** A child's end of its parent's inbox. */
export interface ChildPort {
  /** Sends the child's completion or error. The parent reads it when idle. */
  readonly tell: (text: string) => Message
  readonly ask: (raised: ChildRequestQueue.ChildRequest) => void
  readonly withdraw: (requestId: string, why: InteractionError) => void
}

export interface Service {
  readonly port: (source: Source) => Port
  readonly childPort: ChildPort
  /** Questions of this session's children; read by its mediator. */
  readonly requests: ChildRequestQueue.ChildRequestQueue
  /** Where this session's own questions to its parent wait; unused in a root. */
  readonly door: PendingReplies.PendingReplies
  /** Waits until a message is there. */
  readonly awaitWork: Effect.Effect<void>
  /** Takes the messages that steer the running turn, oldest first. */
  readonly takeSteering: () => ReadonlyArray<Message>
  /**
   * Takes the messages that start a turn: all steering ones, else the oldest queued one. A queued `lead` that is still
   * here comes first, with all steering messages. Steering messages in `later` stay.
   */
  readonly takeTurn: (lead?: MessageId, later?: ReadonlySet<MessageId>) => ReadonlyArray<Message>
  /** Files a message of another inbox under its own id, after that inbox gave it up. */
  readonly unsafeRefile: (message: Message, options?: SendOptions) => Message
  /** Withdraws an unread message. False when it was read, or was never here. */
  readonly withdraw: (id: MessageId) => boolean
  readonly hasSteering: () => boolean
  readonly isEmpty: () => boolean
  /** All messages, steering first; none is taken. */
  readonly peek: () => ReadonlyArray<Message>
}

/** Messages of a user, a parent or the system are read at the next step; those of a child when the session is idle. */
export const defaultDelivery = (source: Source): Delivery => (source === "child" ? "queue" : "steer")

export interface Options {
  /** Called with replies that name no open question. Default: they are dropped silently. */
  readonly late?: ((reply: PendingReplies.Late) => void) | undefined
  /** Called synchronously with every filed message. */
  readonly filed?: ((message: Message) => void) | undefined
  /** Called with every message that is withdrawn. */
  readonly withdrawn?: ((id: MessageId) => void) | undefined
  /** The initial messages. */
  readonly messages?: ReadonlyArray<Message> | undefined
}

export const make = (options: Options = {}): Effect.Effect<Service> =>
  Effect.flatMap(Id.IdGenerator, (ids) => Effect.clockWith((clock) => Effect.succeed(unsafeMake(ids, clock, options))))

/** As {@link make}, synchronously. */
export const unsafeMake = (ids: Id.Generator, clock: Clock.Clock, options: Options = {}): Service =>
  new SessionInbox(ids, clock, options)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// A class with lazy fields: thousands of sessions may wait with an empty inbox.
class SessionInbox implements Service {
  private steer: Array<Message> = []
  private queue: Array<Message> = []
  private reader: ((effect: Effect.Effect<void>) => void) | undefined
  // Most sessions have neither children nor a parent.
  private lane: ChildRequestQueue.ChildRequestQueue | undefined
  private ownDoor: PendingReplies.PendingReplies | undefined
  private ownChildPort: ChildPort | undefined

  constructor(
    private readonly ids: Id.Generator,
    private readonly clock: Clock.Clock,
    private readonly options: Options
  ) {
    for (const message of options.messages ?? []) this[message.delivery].push(message)
  }

  port(source: Source): Port {
    return new SourcePort(source, this)
  }

  get childPort(): ChildPort {
    return (this.ownChildPort ??= new InboxChildPort(this))
  }

  get requests(): ChildRequestQueue.ChildRequestQueue {
    return (this.lane ??= ChildRequestQueue.make())
  }

  get door(): PendingReplies.PendingReplies {
    return (this.ownDoor ??= PendingReplies.make(this.options.late ?? unheard))
  }

  get awaitWork(): Effect.Effect<void> {
    return Effect.suspend(() => (this.isEmpty() ? this.arrival() : Effect.void))
  }

  takeSteering(): ReadonlyArray<Message> {
    const taken = this.steer
    this.steer = []
    return taken
  }

  takeTurn(lead?: MessageId, later?: ReadonlySet<MessageId>): ReadonlyArray<Message> {
    const steering = this.takeSteering()
    if (later !== undefined) this.steer.push(...steering.filter(({ id }) => later.has(id)))
    const now = later === undefined ? steering : steering.filter(({ id }) => !later.has(id))
    const at = lead === undefined ? -1 : this.queue.findIndex(({ id }) => id === lead)
    if (at >= 0) return [...this.queue.splice(at, 1), ...now]
    return now.length > 0 ? now : this.queue.splice(0, 1)
  }

  /** Files a new message. */
  say(source: Source, text: string, { delivery, id, interjection }: SendOptions = {}): Message {
    const message: Message = {
      id: id ?? Id.message(this.ids),
      source,
      delivery: delivery ?? defaultDelivery(source),
      text,
      at: this.clock.unsafeCurrentTimeMillis()
    }
    return this.file(interjection === undefined ? message : { ...message, interjection })
  }

  unsafeRefile(
    { id, source, text, at }: Message,
    { delivery = defaultDelivery(source), interjection }: SendOptions = {}
  ): Message {
    return this.file({ id, source, delivery, text, at, ...(interjection === undefined ? {} : { interjection }) })
  }

  withdraw(id: MessageId): boolean {
    for (const lane of [this.steer, this.queue]) {
      const at = lane.findIndex((message) => message.id === id)
      if (at < 0) continue
      lane.splice(at, 1)
      this.options.withdrawn?.(id)
      return true
    }
    return false
  }

  hasSteering(): boolean {
    return this.steer.length > 0
  }

  isEmpty(): boolean {
    return this.steer.length === 0 && this.queue.length === 0
  }

  peek(): ReadonlyArray<Message> {
    return [...this.steer, ...this.queue]
  }

  private file(message: Message): Message {
    this[message.delivery].push(message)
    this.options.filed?.(message)
    const resume = this.reader
    this.reader = undefined
    resume?.(Effect.void)
    return message
  }

  private arrival(): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      // Other fibers may have run since the check before.
      if (!this.isEmpty()) return resume(Effect.void)
      // Not removed when the reader is interrupted: resuming an ended fiber loses nothing, because messages are taken
      // by calls. A finalizer would cost every idle session a kilobyte.
      this.reader = resume
    })
  }
}

const unheard = () => undefined

class SourcePort implements Port {
  constructor(
    readonly source: Source,
    private readonly inbox: SessionInbox
  ) {}

  unsafeSend(text: string, options?: SendOptions): Message {
    return this.inbox.say(this.source, text, options)
  }

  send(text: string, options?: SendOptions): Effect.Effect<Message> {
    return Effect.sync(() => this.inbox.say(this.source, text, options))
  }
}

class InboxChildPort implements ChildPort {
  constructor(private readonly inbox: SessionInbox) {}

  tell(text: string): Message {
    return this.inbox.say("child", text)
  }

  ask(raised: ChildRequestQueue.ChildRequest): void {
    this.inbox.requests.post(ChildRequestQueue.Ask({ raised }))
  }

  withdraw(requestId: string, why: InteractionError): void {
    this.inbox.requests.post(ChildRequestQueue.Withdraw({ requestId, why }))
  }
}
