/**
 * The one door for words into a session. It decides what becomes of a draft, and files it.
 *
 * ```
 *              a turn works, or waits to begin      it was cancelled, or decided to end      nothing works
 *  Interject   cuts the generation, is read next    the next turn                            begins a turn
 *  Note        is read at the next step             the next turn                            begins a turn
 *  OwnTurn     a turn of its own, after those that were queued before
 *  Along       is read with the next step, or with the words that begin the next turn, and begins neither
 * ```
 *
 * Deciding and filing are one synchronous step, so words are never filed into a turn that reads no more.
 */
import * as Data from "effect/Data"
import type { MessageId } from "../core/Id.js"
import { attachmentsOf, type Draft, type Message } from "../inbox/Message.js"
import * as PlanMode from "../permission/PlanMode.js"
import { emit, type TurnContext } from "../turn/TurnContext.js"
import type { StopSignal } from "../turn/Turn.js"

/** What is to become of words. */
export type Policy = Data.TaggedEnum<{
  /** For the turn that works. `parentId`: the tool call that they are shown under, or `root`. */
  readonly Interject: { readonly parentId: string }
  /** For the turn that works, which they do not cut. */
  readonly Note: {}
  /** For a turn that they begin alone. */
  readonly OwnTurn: {}
  /** For the next step, or the next turn, whoever begins it. */
  readonly Along: {}
}>
export const { Along, Interject, Note, OwnTurn } = Data.taggedEnum<Policy>()

/** The part of a session that this needs. */
export interface Host {
  readonly session: TurnContext
  /** True from the first filed message until no work is left, or the session has ended. */
  readonly isBusy: () => boolean
  /** Called before words are filed while no turn reads them. */
  readonly wake: () => void
  /** The signal of the running turn, else of the next. */
  readonly stopSignal: () => StopSignal
  /** Whether a compaction runs between two turns. */
  readonly isCompacting: () => boolean
}

export class Admission {
  /** A queued message that begins the next turn: later interjections must not come before it. */
  private lead: MessageId | undefined
  /** Messages that came after the next turn was cancelled: that turn must not consume them. */
  private later: Set<MessageId> | undefined

  constructor(private readonly host: Host) {}

  submit(draft: Draft, policy: Policy): Message {
    switch (policy._tag) {
      case "Interject":
        return this.isReceiving() ? this.interject(draft, policy.parentId) : this.beginNext(draft, true)
      case "Note":
        if (!this.isReceiving()) return this.beginNext(draft, false)
        this.leadTheNext()
        return this.host.session.inbox.file(draft, "steer")
      case "OwnTurn":
        return this.filedNext(draft, "queue")
      case "Along":
        return this.host.session.inbox.file(draft, "along")
    }
  }

  /** Whether a turn reads words that are filed now. */
  isReceiving(): boolean {
    const { host } = this
    const { end, reason } = host.stopSignal()
    if (!host.isBusy() || end !== undefined || reason !== undefined) return false
    return this.isBegun() || !host.session.inbox.isEmpty()
  }

  /** Takes back the user's unread words, oldest first. Words for a turn of their own stay. */
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
    this.tellMode()
    return this.host.session.inbox.takeTurn(lead, later)
  }

  /** Here, and not when the mode changes: it may change often between two turns, and before the first words of a session. */
  private tellMode(): void {
    const { session } = this.host
    const { inbox, origin, state } = session
    const now = session.isPlanning()
    if (now === state.isToldToPlan) return
    state.isToldToPlan = now
    inbox.file({ text: PlanMode.note(now, origin.depth), source: "system" }, "along")
  }

  private interject(draft: Draft, parentId: string): Message {
    const { session } = this.host
    this.leadTheNext()
    const message = session.inbox.file(draft, "steer", { parentId })
    emit(session, {
      _tag: "UserInterjected",
      messageId: message.id,
      message: session.redactor.text(message.text),
      targetAgent: session.origin.agent,
      parentId,
      ...attachmentsOf([message])
    })
    session.state.cut?.()
    return message
  }

  private beginNext(draft: Draft, cuts: boolean): Message {
    const { host } = this
    const message = this.filedNext(draft, "steer")
    if (cuts && host.isCompacting()) host.session.state.cut?.()
    return message
  }

  /** Files a message that no running turn reads. */
  private filedNext(draft: Draft, delivery: Message["delivery"]): Message {
    const { host } = this
    const isLate = host.isBusy() && host.stopSignal().reason !== undefined && !this.isBegun()
    host.wake()
    const message = host.session.inbox.file(draft, delivery)
    if (isLate) (this.later ??= new Set()).add(message.id)
    return message
  }

  /** The message that waits to begin a turn stays its first one, whatever is filed before that. */
  private leadTheNext(): void {
    const { inbox } = this.host.session
    if (!this.isBegun() && !inbox.hasSteering()) this.lead = inbox.peek()[0]?.id
  }

  private isBegun(): boolean {
    return this.host.session.state.correlationId !== undefined
  }
}
