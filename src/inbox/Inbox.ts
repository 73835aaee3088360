/**
 * Everything sent to one session, and the only way in.
 *
 * Two lanes, each in order of arrival: `steer` is read at the next step boundary of the running turn, `queue` when the
 * session is idle. What is to go along with the next words, or with the results of the next step, waits beside them, and wakes
 * nobody. Written by any fiber through `Session.send`, read by the session's one fiber; unbounded, because senders
 * are bounded on their side. A message is either delivered once or still visible here.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Id from "../core/Id.js"
import type { MessageId } from "../core/Id.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import { OneShot } from "../internal/OneShot.js"
import type { Delivery, Draft, Message } from "./Message.js"
import * as ChildRequestQueue from "./ChildRequestQueue.js"

/** A child's end of its parent's inbox, for its questions. */
export interface ChildPort {
  readonly ask: (raised: ChildRequestQueue.ChildRequest) => void
  /** Completed once the question is withdrawn everywhere above. */
  readonly withdraw: (requestId: string, why: InteractionError) => OneShot<void>
}

export interface Service {
  /** Files words in a lane. Synchronous, for a caller that must decide and file in one step. */
  readonly file: (draft: Draft, delivery: Delivery, interjection?: Message["interjection"]) => Message
  readonly childPort: ChildPort
  /** Questions of this session's children; read by its mediator. */
  readonly requests: ChildRequestQueue.ChildRequestQueue
  /** Takes the messages that steer the running turn, oldest first; what goes along comes before them. */
  readonly takeSteering: () => ReadonlyArray<Message>
  /**
   * Takes the messages that start a turn: all steering ones, else the oldest queued one. A queued `lead` that is still
   * here comes first, with all steering messages. Messages in `later` stay. What goes along comes before all.
   */
  readonly takeTurn: (lead?: MessageId, later?: ReadonlySet<MessageId>) => ReadonlyArray<Message>
  /** Withdraws an unread message. False when it was read, or was never here. */
  readonly withdraw: (id: MessageId) => boolean
  readonly hasSteering: () => boolean
  /** Whether the next step has something to read: steering, or only what goes along, for which no step is made. */
  readonly hasForStep: () => boolean
  readonly isEmpty: () => boolean
  /** All messages, steering first, what goes along last; none is taken. */
  readonly peek: () => ReadonlyArray<Message>
}

export interface Options {
  /** Called synchronously with every filed message. */
  readonly filed?: ((message: Message) => void) | undefined
  /** Called with every message that is withdrawn. */
  readonly withdrawn?: ((id: MessageId) => void) | undefined
  /** The initial messages. */
  readonly messages?: ReadonlyArray<Message> | undefined
}

export const make = (options: Options = {}): Effect.Effect<Service> =>
  Effect.flatMap(Id.IdGenerator, (ids) => Effect.clockWith((clock) => Effect.succeed(unsafeMake(ids, clock, options))))

/** Like {@link make}, synchronously. */
export const unsafeMake = (ids: Id.Generator, clock: Clock.Clock, options: Options = {}): Service =>
  new SessionInbox(ids, clock, options)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// A class with lazy fields: thousands of sessions may wait with an empty inbox.
class SessionInbox implements Service {
  private steer: Array<Message> = []
  private queue: Array<Message> = []
  private along: Array<Message> | undefined
  // Most sessions have no children.
  private childRequests: ChildRequestQueue.ChildRequestQueue | undefined
  private ownChildPort: ChildPort | undefined

  constructor(
    private readonly ids: Id.Generator,
    private readonly clock: Clock.Clock,
    private readonly options: Options
  ) {
    for (const message of options.messages ?? []) this.laneOf(message.delivery).push(message)
  }

  get childPort(): ChildPort {
    return (this.ownChildPort ??= new InboxChildPort(this))
  }

  get requests(): ChildRequestQueue.ChildRequestQueue {
    return (this.childRequests ??= ChildRequestQueue.make())
  }

  takeSteering(): ReadonlyArray<Message> {
    return this.withAlong(this.takeSteer())
  }

  takeTurn(lead?: MessageId, later?: ReadonlySet<MessageId>): ReadonlyArray<Message> {
    const words = this.takeWords(lead, later)
    return words.length === 0 ? words : this.withAlong(words)
  }

  private takeSteer(): ReadonlyArray<Message> {
    // Its exact length: a turn holds it to its end, and an array that is pushed to reserves room for sixteen more.
    const taken = this.steer.slice()
    this.steer = []
    return taken
  }

  private withAlong(words: ReadonlyArray<Message>): ReadonlyArray<Message> {
    const { along } = this
    if (along === undefined) return words
    this.along = undefined
    return [...along, ...words]
  }

  private takeWords(lead?: MessageId, later?: ReadonlySet<MessageId>): ReadonlyArray<Message> {
    const isLater = ({ id }: Message): boolean => later?.has(id) === true
    const steering = this.takeSteer()
    const now = later === undefined ? steering : steering.filter((message) => !isLater(message))
    if (now.length < steering.length) this.steer.push(...steering.filter(isLater))
    const led = lead === undefined ? -1 : this.queue.findIndex(({ id }) => id === lead)
    if (led >= 0) return [...this.queue.splice(led, 1), ...now]
    if (now.length > 0) return now
    const oldest = later === undefined ? 0 : this.queue.findIndex((message) => !isLater(message))
    return oldest < 0 ? [] : this.queue.splice(oldest, 1)
  }

  file(draft: Draft, delivery: Delivery, interjection?: Message["interjection"]): Message {
    const { at, id, parts, source = "user", text } = draft
    const words: Message = {
      id: id ?? Id.message(this.ids),
      source,
      delivery,
      text,
      at: at ?? this.clock.unsafeCurrentTimeMillis()
    }
    const plain = parts === undefined ? words : { ...words, parts }
    const message = interjection === undefined ? plain : { ...plain, interjection }
    this.laneOf(delivery).push(message)
    this.options.filed?.(message)
    return message
  }

  withdraw(id: MessageId): boolean {
    for (const lane of [this.steer, this.queue, this.along ?? []]) {
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

  hasForStep(): boolean {
    return this.steer.length > 0 || (this.along !== undefined && this.along.length > 0)
  }

  isEmpty(): boolean {
    return this.steer.length === 0 && this.queue.length === 0
  }

  peek(): ReadonlyArray<Message> {
    return [...this.steer, ...this.queue, ...(this.along ?? [])]
  }

  private laneOf(delivery: Delivery): Array<Message> {
    return delivery === "along" ? (this.along ??= []) : this[delivery]
  }
}

class InboxChildPort implements ChildPort {
  constructor(private readonly inbox: SessionInbox) {}

  ask(raised: ChildRequestQueue.ChildRequest): void {
    this.inbox.requests.post(ChildRequestQueue.Ask({ raised }))
  }

  withdraw(requestId: string, why: InteractionError): OneShot<void> {
    const taken = new OneShot<void>()
    this.inbox.requests.post(ChildRequestQueue.Withdraw({ requestId, why, taken }))
    return taken
  }
}
