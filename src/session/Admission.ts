/**
 * Admits a user's words to a session: into the running turn, into the turn that is about to begin, or as the next turn.
 *
 * ```
 *  filed ── a turn runs, or waits to begin ──► interjection: stops the generation, is read before the next
 *        ├─ it was cancelled, or decided to end ──► the next turn
 *        └─ nothing runs ──► begins a turn
 * ```
 *
 * Deciding and filing are one synchronous step, so words are never filed into a turn that reads no more.
 */
import * as Option from "effect/Option"
import type { MessageId } from "../core/Id.js"
import type * as Inbox from "../inbox/Inbox.js"
import type { Message } from "../inbox/Message.js"
import { emit, type TurnContext } from "../turn/TurnContext.js"
import type { StopSignal } from "../turn/Turn.js"

/** The part of a session that this needs. */
export interface Host {
  readonly session: TurnContext
  /** True from the first filed message until no work is left, or the session has ended. */
  readonly isBusy: () => boolean
  /** Called before words are filed while no turn runs. */
  readonly wake: () => void
  /** The signal of the running turn, else of the next. */
  readonly stopSignal: () => StopSignal
  /** Whether a compaction runs between two turns. */
  readonly isTidying: () => boolean
}

export class Admission {
  /** A queued message that begins the next turn: later interjections must not come before it. */
  private lead: MessageId | undefined
  /** Messages that came after the next turn was cancelled: that turn must not consume them. */
  private later: Set<MessageId> | undefined

  constructor(private readonly host: Host) {}

  /** Whether words would be an interjection now. */
  isReceiving(): boolean {
    const { host } = this
    const { end, reason } = host.stopSignal()
    if (!host.isBusy() || end !== undefined || reason !== undefined) return false
    return this.isBegun() || !host.session.inbox.isEmpty()
  }

  /** Files a user's words. */
  send(text: string, parentId: string, id?: MessageId): Message {
    return this.admit((options) => {
      const named = id === undefined ? options : { ...options, id }
      return this.host.session.inbox.port("user").unsafeSend(text, named)
    }, parentId)
  }

  /** Files words of the parent that are no task: read at the next step. An earlier task begins first. */
  note(text: string): Message {
    const { inbox } = this.host.session
    if (this.isReceiving()) this.leadTheNext()
    this.host.wake()
    return inbox.port("parent").unsafeSend(text)
  }

  /** Files words for a turn of their own. */
  enqueue(text: string, id?: MessageId): Message {
    this.host.wake()
    return this.host.session.inbox.port("user").unsafeSend(text, { delivery: "queue", id })
  }

  interject(text: string, parentId: string, id?: MessageId): Option.Option<Message> {
    return this.isReceiving() ? Option.some(this.send(text, parentId, id)) : Option.none()
  }

  /** Files a message that another session has not read. */
  forward(message: Message): void {
    this.admit((options) => this.host.session.inbox.unsafeRefile(message, options), "root")
  }

  takeBack(): ReadonlyArray<Message> {
    const { inbox } = this.host.session
    return inbox
      .peek()
      .filter(({ delivery, id, source }) => source === "user" && delivery === "steer" && inbox.withdraw(id))
  }

  /**
   * Takes the messages that begin the next turn; none when all cancelled messages are gone and only later ones are
   * left.
   */
  takeTurn(): ReadonlyArray<Message> {
    const { later, lead } = this
    this.lead = undefined
    this.later = undefined
    return this.host.session.inbox.takeTurn(lead, later)
  }

  /** The message that waits to begin a turn stays its first one, whatever is filed before that. */
  private leadTheNext(): void {
    const { inbox } = this.host.session
    if (!this.isBegun() && !inbox.hasSteering()) this.lead = inbox.peek()[0]?.id
  }

  private isBegun(): boolean {
    return this.host.session.state.correlationId !== undefined
  }

  private admit(send: (options: Inbox.SendOptions) => Message, parentId: string): Message {
    const { host } = this
    const { session } = host
    const { origin, redactor, state } = session
    if (!this.isReceiving()) {
      const isLate = host.isBusy() && host.stopSignal().reason !== undefined && !this.isBegun()
      host.wake()
      const message = send({})
      if (isLate) (this.later ??= new Set()).add(message.id)
      if (host.isTidying()) state.cut?.()
      return message
    }
    this.leadTheNext()
    const message = send({ interjection: { parentId } })
    emit(session, {
      _tag: "UserInterjected",
      messageId: message.id,
      message: redactor.text(message.text),
      targetAgent: origin.agent,
      parentId
    })
    state.cut?.()
    return message
  }
}
