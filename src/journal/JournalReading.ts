/**
 * The one reading of a journal that all its projections share.
 *
 * ```
 *  entries ──► JournalReading ──► facts ──┬──► SessionSnapshot   the state to resume from
 *                                         ├──► EventProjection   the events, told again
 *                                         ├──► RecordedScript    a script to play
 *                                         ├──► SessionFork       the turns to go back to
 *                                         └──► SessionReport     a transcript
 * ```
 *
 * What an entry means depends on those before it: a message is taken that was received, a turn goes on or another one
 * begins, a call is decided that was proposed, a request is raised again by the process that resumes it. This is worked
 * out here, once. A projection gets each entry together with it, and says what it makes of it.
 */
import type { CorrelationId, MessageId, RequestId, SessionId, ToolCallId } from "../core/Id.js"
import type { Message } from "../inbox/Message.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type { EntryOf, JournalEntry, SessionOpened, Written } from "./JournalEntry.js"

/**
 * A turn that had not ended.
 *
 * @since 0.1.0
 * @category models
 */
export interface TurnSnapshot {
  readonly correlationId: CorrelationId
  /** The messages that began it. */
  readonly input: ReadonlyArray<MessageId>
  /** Step of the last recorded model call. */
  readonly step: number
}

/**
 * The calls that a model proposed in one step.
 *
 * @since 0.1.0
 * @category models
 */
export interface Batch {
  readonly correlationId: CorrelationId
  readonly step: number
  /** The reply, with the calls. */
  readonly content: EntryOf<"CallsProposed">["content"]
  /** In proposal order. */
  readonly calls: ReadonlyArray<CallSnapshot>
}

/**
 * A call of the last step, and its progress.
 *
 * @since 0.1.0
 * @category models
 */
export interface CallSnapshot {
  readonly call: ToolCall
  readonly decided: EntryOf<"CallDecided"> | undefined
  readonly started: EntryOf<"ToolStarted"> | undefined
  readonly ended: EntryOf<"ToolEnded"> | undefined
  /** Present while a question of the call is open with which another process can go on. */
  readonly continuation?: Pick<EntryOf<"InteractionRaised">, "continuation" | "request"> | undefined
}

/** What a session has before the entries that are read: nothing, or what a snapshot says. */
export interface Before {
  readonly waiting: ReadonlyArray<Message>
  readonly turn: TurnSnapshot | undefined
  readonly batch: Batch | undefined
  readonly open: ReadonlyArray<InteractionRequest.InteractionRequest>
}

/** What the entries before one of this kind say about it. */
interface Known {
  readonly MessageTaken: {
    /** Those that waited, in this order. */
    readonly messages: ReadonlyArray<Message>
    /** False: the running turn read them. */
    readonly begins: boolean
    /** The turn that another one follows without an end: its process died. */
    readonly abandoned: TurnSnapshot | undefined
    readonly finished: Batch | undefined
  }
  readonly TurnEnded: {
    /** The turn that ran. */
    readonly turn: TurnSnapshot | undefined
    readonly finished: Batch | undefined
  }
  readonly CallsProposed: { readonly finished: Batch | undefined }
  readonly CallDecided: OnCall
  readonly ToolStarted: OnCall
  readonly ToolEnded: OnCall
  /** The calls whose results entered the history with it. */
  readonly ResultsAppended: { readonly finished: Batch | undefined }
  readonly InteractionRaised: {
    /** As it is asked, with its call. */
    readonly request: InteractionRequest.InteractionRequest
    readonly isAgain: boolean
  }
  /** The request, if it was open. */
  readonly InteractionSettled: {
    readonly request: InteractionRequest.InteractionRequest | undefined
    /** Milliseconds since the epoch. */
    readonly at: number
  }
}

interface OnCall {
  /** The call before this entry; undefined when its results are in the history, or nothing proposed it. */
  readonly call: CallSnapshot | undefined
  /** A process that resumed recorded once more what had happened. */
  readonly isAgain: boolean
}

/** An entry, and what those before it say about it. */
export type Fact = {
  readonly [Tag in JournalEntry["_tag"]]: {
    readonly _tag: Tag
    readonly entry: EntryOf<Tag>
  } & (Tag extends keyof Known ? Known[Tag] : unknown)
}[JournalEntry["_tag"]]

/** The fact of one kind of entry. */
export type FactOf<Tag extends Fact["_tag"]> = Extract<Fact, { readonly _tag: Tag }>

/** Whether messages begin a turn: none runs, or another one, which was never ended. */
export const begins = (running: CorrelationId | undefined, { correlationId }: EntryOf<"MessageTaken">): boolean =>
  running !== correlationId

/** The entries of one session, read in order. */
export class SessionReading {
  /** Messages that were received, and neither taken nor withdrawn. */
  readonly waiting = new Map<MessageId, Message>()
  /** Requests that were raised, and not settled. */
  readonly open = new Map<RequestId, InteractionRequest.InteractionRequest>()
  turn: TurnSnapshot | undefined
  /** The calls whose results are not in the history yet. */
  batch: Batch | undefined
  private readonly raised = new Set<RequestId>()

  constructor(before?: Before) {
    if (before === undefined) return
    for (const message of before.waiting) this.waiting.set(message.id, message)
    for (const request of before.open) this.raise(request)
    this.turn = before.turn
    this.batch = before.batch
  }

  /** `at`: when it was written, in milliseconds since the epoch. */
  read(entry: JournalEntry, at: number): Fact {
    switch (entry._tag) {
      case "MessageReceived":
        this.waiting.set(entry.message.id, entry.message)
        return { _tag: entry._tag, entry }
      case "MessageWithdrawn":
        this.waiting.delete(entry.messageId)
        return { _tag: entry._tag, entry }
      case "MessageTaken":
        return this.take(entry)
      case "UsageRecorded":
        this.reach(entry.step)
        return { _tag: entry._tag, entry }
      case "CallsProposed":
        return this.propose(entry)
      case "CallDecided": {
        const call = this.onCall(entry.toolCallId, { decided: entry })
        return { _tag: entry._tag, entry, call, isAgain: call?.decided !== undefined || call?.ended !== undefined }
      }
      case "ToolStarted": {
        const call = this.onCall(entry.toolCallId, { started: entry })
        return { _tag: entry._tag, entry, call, isAgain: call?.started !== undefined || call?.ended !== undefined }
      }
      case "ToolEnded": {
        const call = this.onCall(entry.toolCallId, { ended: entry })
        return { _tag: entry._tag, entry, call, isAgain: call?.ended !== undefined }
      }
      case "ResultsAppended":
        return { _tag: entry._tag, entry, finished: this.finish() }
      case "TurnEnded": {
        const { turn } = this
        this.turn = undefined
        return { _tag: entry._tag, entry, turn, finished: this.finish() }
      }
      case "InteractionRaised": {
        const { continuation, toolCallId } = entry
        const request = InteractionRequest.askedBy(entry.request, toolCallId)
        if (continuation !== undefined && toolCallId !== undefined) this.onCall(toolCallId, { continuation: entry })
        return { _tag: entry._tag, entry, request, isAgain: this.raise(request) }
      }
      case "InteractionSettled": {
        const request = this.open.get(entry.requestId)
        this.open.delete(entry.requestId)
        // Behind the answer the call went on: nobody knows how far.
        const isOver = ({ continuation }: CallSnapshot) => continuation?.request.requestId === entry.requestId
        const answered = this.batch?.calls.find(isOver)
        if (answered !== undefined) this.onCall(answered.call.id, { continuation: undefined })
        return { _tag: entry._tag, entry, request, at }
      }
      default:
        return { _tag: entry._tag, entry } as Fact
    }
  }

  private take(entry: EntryOf<"MessageTaken">): Fact {
    const { correlationId, messageIds, step } = entry
    const messages = messageIds.flatMap((id) => this.waiting.get(id) ?? [])
    for (const id of messageIds) this.waiting.delete(id)
    if (!begins(this.turn?.correlationId, entry)) {
      // The model call that sees them is still to come.
      this.reach(step - 1)
      return { _tag: "MessageTaken", entry, messages, begins: false, abandoned: undefined, finished: undefined }
    }
    const abandoned = this.turn
    const beside = new Set(messages.flatMap(({ delivery, id }) => (delivery === "along" ? [id] : [])))
    this.turn = { correlationId, input: messageIds.filter((id) => !beside.has(id)), step: step - 1 }
    return { _tag: "MessageTaken", entry, messages, begins: true, abandoned, finished: this.finish() }
  }

  private propose(entry: EntryOf<"CallsProposed">): Fact {
    const { calls, content, correlationId, step } = entry
    const finished = this.finish()
    const untouched = { decided: undefined, started: undefined, ended: undefined }
    this.batch = { correlationId, step, content, calls: calls.map((call) => ({ call, ...untouched })) }
    this.reach(step)
    return { _tag: "CallsProposed", entry, finished }
  }

  private onCall(id: ToolCallId, change: Partial<CallSnapshot>): CallSnapshot | undefined {
    const known = this.batch?.calls.find(({ call }) => call.id === id)
    if (this.batch === undefined || known === undefined) return undefined
    const calls = this.batch.calls.map((call) => (call.call.id === id ? { ...call, ...change } : call))
    this.batch = { ...this.batch, calls }
    return known
  }

  private finish(): Batch | undefined {
    const { batch } = this
    this.batch = undefined
    return batch
  }

  private raise(request: InteractionRequest.InteractionRequest): boolean {
    const isAgain = this.raised.has(request.requestId)
    this.raised.add(request.requestId)
    this.open.set(request.requestId, request)
    return isAgain
  }

  private reach(step: number): void {
    if (this.turn !== undefined && step > this.turn.step) this.turn = { ...this.turn, step }
  }
}

/** What a projection keeps of each session of a tree, beside the reading of its entries. */
export class TreeReading<State> {
  readonly states = new Map<SessionId, State>()
  private readonly readings = new Map<SessionId, SessionReading>()

  constructor(private readonly begin: (opened: SessionOpened, reading: SessionReading) => State) {}

  /** Goes on with a session that a snapshot tells of. */
  restore(opened: SessionOpened, before: Before): void {
    this.open(opened, before)
  }

  /**
   * The next entry as a fact, and the state of its session. As in a resume, entries of a session that was never opened
   * are ignored, and so is a second opening.
   */
  read({ at, entry, sessionId }: Written): { readonly fact: Fact; readonly state: State } | undefined {
    if (entry._tag === "SessionOpened") {
      return this.states.has(sessionId)
        ? undefined
        : { fact: { _tag: "SessionOpened", entry }, state: this.open({ ...entry, sessionId }) }
    }
    const state = this.states.get(sessionId)
    const reading = this.readings.get(sessionId)
    return state === undefined || reading === undefined ? undefined : { fact: reading.read(entry, at), state }
  }

  private open(opened: SessionOpened, before?: Before): State {
    const reading = new SessionReading(before)
    const state = this.begin(opened, reading)
    this.states.set(opened.sessionId, state)
    this.readings.set(opened.sessionId, reading)
    return state
  }
}
