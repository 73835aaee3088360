/**
 * The state that a journal amounts to: every session of a tree at the last entry.
 *
 * It is a fold, entry by entry: any prefix of a journal has a state, and continuing from it gives the same as folding
 * all.
 *
 * @since 0.1.0
 */
import type * as Prompt from "@effect/ai/Prompt"
import type { CorrelationId, MessageId, RequestId, SessionId } from "../core/Id.js"
import type * as Redaction from "../core/Redaction.js"
import type { Usage } from "../event/AgentEvent.js"
import type { TurnEnd } from "../event/TurnEnd.js"
import type { Message } from "../inbox/Message.js"
import type { Kept } from "../broker/InteractionJournal.js"
import * as Ballot from "../interaction/Ballot.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import type { EntryOf, JournalEntry, Permissions, SessionOpened, Written } from "./JournalEntry.js"
import * as History from "../conversation/History.js"
import type { Loaded, StoredAnswer } from "./SessionStore.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * A tree of sessions.
 *
 * @since 0.1.0
 * @category models
 */
export interface TreeSnapshot {
  /** Sequence number of the last entry; 0 without entries. */
  readonly seq: number
  /** In the order of opening: parents before their children. */
  readonly sessions: ReadonlyArray<SessionSnapshot>
  /** The last recorded permissions; absent when there are none. */
  readonly permissions: Permissions | undefined
}

/**
 * The state of one session.
 *
 * @since 0.1.0
 * @category models
 */
export interface SessionSnapshot {
  readonly opened: SessionOpened
  /** A valid prompt without its system message. An unfinished batch is not in it yet. */
  readonly history: ReadonlyArray<Prompt.Message>
  /** Received messages that were not taken, in order of arrival. */
  readonly waiting: ReadonlyArray<Message>
  /** All interjections in order of arrival, without the withdrawn ones. */
  readonly interjections: ReadonlyArray<Message>
  /** Number of begun turns. */
  readonly turns: number
  /** The running turn. */
  readonly turn: TurnSnapshot | undefined
  /** The end of the last ended turn. */
  readonly lastEnd: TurnEnd | undefined
  /** Calls whose results are not in the history yet. */
  readonly batch: Batch | undefined
  /** Open requests, oldest first. */
  readonly open: ReadonlyArray<InteractionRequest.InteractionRequest>
  /** Requests settled in the running turn since its last batch: the same question gets the same settlement again. */
  readonly answered: ReadonlyArray<Answered>
  /** Votes on requests that are open, or settled since its last batch, oldest first. */
  readonly votes: ReadonlyArray<EntryOf<"VoteGiven">>
  /** Tasks of its parent whose end was not reported, in order. */
  readonly tasks: ReadonlyArray<Task>
  /** The sum over all model calls. */
  readonly usage: Usage & { readonly calls: number }
  readonly children: ReadonlyArray<SessionId>
  readonly closed: boolean
}

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
 * A settled question, whose settlement may not have been used yet.
 *
 * @since 0.1.0
 * @category models
 */
export interface Answered extends Kept {
  readonly request: InteractionRequest.InteractionRequest
}

/**
 * A task of a subagent.
 *
 * @since 0.1.0
 * @category models
 */
export interface Task {
  readonly messageId: MessageId
  /** The call that waits for its end. */
  readonly toolCallId: ToolCall["id"] | undefined
  readonly end: TurnEnd | undefined
  /** It was requested with an authority that ended with its process. */
  readonly bound?: true
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
}

/**
 * How far a call got. `granted` and `refused`: it was decided, and has not begun. `started`: it may have had its effect,
 * or not. `ended`: its result is known.
 *
 * @since 0.1.0
 * @category models
 */
export type CallState = "proposed" | "granted" | "refused" | "started" | "ended"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The state of an empty journal.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty: TreeSnapshot = { seq: 0, sessions: [], permissions: undefined }

/**
 * A session that was opened just now.
 *
 * @internal
 */
export const begun = (opened: SessionOpened): SessionSnapshot => ({
  opened,
  history: [],
  waiting: [],
  interjections: [],
  turns: 0,
  turn: undefined,
  lastEnd: undefined,
  batch: undefined,
  open: [],
  answered: [],
  votes: [],
  tasks: [],
  usage: { calls: 0 },
  children: [],
  closed: false
})

/**
 * The state after these entries, which continue those of `from`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fold = (written: Iterable<Written>, from: TreeSnapshot = empty): TreeSnapshot => {
  const sessions = new Map(from.sessions.map((session) => [session.opened.sessionId, new Folding(session)]))
  let { seq, permissions } = from
  for (const { entry, sessionId, seq: at } of written) {
    seq = at
    if (entry._tag === "PermissionsChanged") permissions = entry.permissions
    if (entry._tag === "TurnEnded" && permissions?.turn.includes(sessionId) === true)
      permissions = { ...permissions, turn: permissions.turn.filter((id) => id !== sessionId) }
    if (entry._tag === "SessionOpened" && !sessions.has(sessionId)) {
      sessions.set(sessionId, new Folding(begun(entry)))
      if (entry.parentSessionId !== undefined) sessions.get(entry.parentSessionId)?.children.push(sessionId)
    } else sessions.get(sessionId)?.apply(entry)
  }
  return { seq, sessions: Array.from(sessions.values(), (session) => session.state()), permissions }
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * One session of the tree.
 *
 * @since 0.1.0
 * @category getters
 */
export const get = (self: TreeSnapshot, sessionId: SessionId): SessionSnapshot | undefined =>
  self.sessions.find(({ opened }) => opened.sessionId === sessionId)

/**
 * The progress of a call.
 *
 * @since 0.1.0
 * @category getters
 */
export const stateOf = ({ decided, started, ended }: CallSnapshot): CallState => {
  if (ended !== undefined) return "ended"
  if (started !== undefined) return "started"
  if (decided === undefined) return "proposed"
  return decided.granted ? "granted" : "refused"
}

/**
 * The result of a call for the model. A call without an end is `interrupted`, and the model is told that.
 *
 * @since 0.1.0
 * @category getters
 */
export const resultOf = ({ call, ended }: CallSnapshot): ToolResult => ({
  id: call.id,
  name: call.name,
  outcome: ended?.outcome ?? "interrupted",
  result: ended?.result ?? noResult
})

/**
 * Its requests whose settlement was not used yet, settled or open.
 *
 * @since 0.1.0
 * @category getters
 */
export const requestsOf = (
  session: Pick<SessionSnapshot, "answered" | "open"> | undefined
): ReadonlyArray<InteractionRequest.InteractionRequest> =>
  session === undefined ? [] : [...session.answered.map(({ request }) => request), ...session.open]

/**
 * The words that began the running turn, as far as compaction kept them.
 *
 * @since 0.1.0
 * @category getters
 */
export const inputOf = ({ history, turn }: SessionSnapshot): string =>
  history
    .filter((message) => turn?.input.some((id) => id === History.metadata(message).messageId))
    .map(History.textOf)
    .join("\n\n")

/**
 * The permissions from prompts that still hold: without those that were to end with a turn or when idle.
 *
 * @since 0.1.0
 * @category getters
 */
export const permissionsOf = ({ permissions, sessions }: TreeSnapshot): Permissions | undefined => {
  if (permissions === undefined) return undefined
  const isBusy = (id: SessionId): boolean =>
    sessions.some(
      ({ children, closed, opened, turn, waiting }) =>
        opened.sessionId === id &&
        !closed &&
        (turn !== undefined || waiting.some(({ delivery }) => delivery !== "along") || children.some(isBusy))
    )
  return { ...permissions, idle: permissions.idle.filter(isBusy) }
}

/**
 * An open request, and the answer that was stored while the session was not running.
 *
 * @since 0.1.0
 * @category models
 */
export interface OpenRequest {
  readonly request: InteractionRequest.InteractionRequest
  readonly answer: StoredAnswer | undefined
}

/**
 * The open requests of a whole tree, parents' first.
 *
 * @since 0.1.0
 * @category getters
 */
export const openRequests = (self: TreeSnapshot, answers: Loaded["answers"]): ReadonlyArray<OpenRequest> => {
  const byRequest = new Map<RequestId, StoredAnswer>(answers.map((answer) => [answer.requestId, answer]))
  return self.sessions.flatMap(({ open, votes }) =>
    open.map((request) => {
      const given = votes.filter(({ requestId }) => requestId === request.requestId)
      return { request: given.reduce(Ballot.withVote, request), answer: byRequest.get(request.requestId) }
    })
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Entries were masked when they were written. */
const verbatim: Redaction.Redactor = {
  declared: { text: (text) => text, value: (value) => value },
  declare: () => {},
  text: (text) => text,
  value: (value) => value,
  flow: () => ({ push: (piece) => piece, end: () => "" })
}

const noResult = "The program ended while this call was under way. Whether it took effect is not known."

/** One session while it is folded. The snapshot that it is made from is not changed. */
class Folding {
  readonly children: Array<SessionId>
  private opened: SessionOpened
  private history: History.History
  private readonly waiting: Map<MessageId, Message>
  private readonly interjections: Map<MessageId, Message>
  private turns: number
  private turn: TurnSnapshot | undefined
  private lastEnd: TurnEnd | undefined
  private batch: Batch | undefined
  private readonly open: Map<RequestId, InteractionRequest.InteractionRequest>
  private answered: ReadonlyArray<Answered>
  private votes: ReadonlyArray<EntryOf<"VoteGiven">>
  private readonly tasks: Map<MessageId, Task>
  private usage: SessionSnapshot["usage"]
  private closed: boolean

  constructor(session: SessionSnapshot) {
    this.children = [...session.children]
    this.opened = session.opened
    this.history = History.make(session.history, verbatim)
    this.waiting = new Map(session.waiting.map((message) => [message.id, message]))
    this.interjections = new Map(session.interjections.map((message) => [message.id, message]))
    this.turns = session.turns
    this.turn = session.turn
    this.lastEnd = session.lastEnd
    this.batch = session.batch
    this.open = new Map(session.open.map((request) => [request.requestId, request]))
    this.answered = session.answered
    this.votes = session.votes
    this.tasks = new Map(session.tasks.map((task) => [task.messageId, task]))
    this.usage = session.usage
    this.closed = session.closed
  }

  state(): SessionSnapshot {
    return {
      opened: this.opened,
      history: this.history.messages,
      waiting: [...this.waiting.values()],
      interjections: [...this.interjections.values()],
      turns: this.turns,
      turn: this.turn,
      lastEnd: this.lastEnd,
      batch: this.batch,
      open: [...this.open.values()],
      answered: this.answered,
      votes: this.votes,
      tasks: [...this.tasks.values()],
      usage: this.usage,
      children: this.children,
      closed: this.closed
    }
  }

  apply(entry: JournalEntry): void {
    switch (entry._tag) {
      case "MessageReceived":
        this.waiting.set(entry.message.id, entry.message)
        if (entry.message.interjection !== undefined) this.interjections.set(entry.message.id, entry.message)
        return
      case "MessageWithdrawn":
        this.waiting.delete(entry.messageId)
        this.interjections.delete(entry.messageId)
        this.tasks.delete(entry.messageId)
        return
      case "TaskGiven": {
        const { bound, messageId, toolCallId } = entry
        this.tasks.set(messageId, { messageId, toolCallId, end: undefined, ...(bound && { bound }) })
        return
      }
      case "TaskTold":
        this.tasks.delete(entry.messageId)
        return
      case "MessageTaken":
        return this.take(entry)
      case "AssistantAppended":
        return this.history.appendAssistant(entry.content, { partial: entry.partial === true })
      case "UsageRecorded":
        this.usage = added(this.usage, entry.usage)
        return this.reach(entry.step)
      case "CallsProposed": {
        const { correlationId, step, content, calls } = entry
        const untouched = { decided: undefined, started: undefined, ended: undefined }
        this.finishBatch()
        this.batch = { correlationId, step, content, calls: calls.map((call) => ({ call, ...untouched })) }
        return this.reach(step)
      }
      case "CallDecided":
        return this.onCall(entry.toolCallId, { decided: entry })
      case "ToolStarted":
        return this.onCall(entry.toolCallId, { started: entry })
      case "ToolEnded":
        return this.onCall(entry.toolCallId, { ended: entry })
      case "ResultsAppended":
        return this.finishBatch()
      case "TurnEnded":
        this.finishBatch()
        for (const id of this.turn?.input ?? []) {
          const task = this.tasks.get(id)
          if (task !== undefined) this.tasks.set(id, { ...task, end: entry.end })
        }
        this.turn = undefined
        this.used()
        this.lastEnd = entry.end
        return
      case "InteractionRaised":
        this.open.set(entry.request.requestId, InteractionRequest.askedBy(entry.request, entry.toolCallId))
        return
      case "InteractionSettled":
        return this.settle(entry)
      case "VoteGiven":
        this.votes = [...this.votes, entry]
        return
      case "HistoryReplaced":
        this.history = History.make(entry.messages, verbatim)
        return
      case "SessionResumed":
        this.closed = false
        if (entry.workspace !== undefined) this.opened = { ...this.opened, workspace: entry.workspace }
        return
      case "SessionClosed":
        this.closed = true
        return
      case "SessionOpened":
      case "PermissionsChanged":
        return
    }
  }

  private take({ messageIds, correlationId, step }: EntryOf<"MessageTaken">): void {
    const beginsTurn = this.turn?.correlationId !== correlationId
    const messages = messageIds.flatMap((id) => this.waiting.get(id) ?? [])
    this.history.appendInput(messages, { beginsTurn })
    for (const id of messageIds) this.waiting.delete(id)
    // The model call that sees them is still to come.
    if (!beginsTurn) return this.reach(step - 1)
    this.turns++
    const beside = new Set(messages.flatMap(({ delivery, id }) => (delivery === "along" ? [id] : [])))
    const input = beside.size === 0 ? messageIds : messageIds.filter((id) => !beside.has(id))
    this.turn = { correlationId, input, step: step - 1 }
  }

  private settle({ answer, by, how, requestId, status }: EntryOf<"InteractionSettled">): void {
    const request = this.open.get(requestId)
    this.open.delete(requestId)
    // An open request is asked again, and so is a secret, whose answer is never stored.
    const isDecided = status === "cancelled" || (status === "answered" && answer !== undefined)
    if (request === undefined || this.turn === undefined || by === undefined || !isDecided) return
    this.answered = [
      ...this.answered,
      { request, by, ...(answer === undefined ? {} : { answer }), ...(how && { how }) }
    ]
  }

  private reach(step: number): void {
    if (this.turn !== undefined && step > this.turn.step) this.turn = { ...this.turn, step }
  }

  private onCall(id: ToolCall["id"], change: Partial<CallSnapshot>): void {
    if (this.batch === undefined) return
    const calls = this.batch.calls.map((known) => (known.call.id === id ? { ...known, ...change } : known))
    this.batch = { ...this.batch, calls }
  }

  /** A proposal and its results enter the history together; a call without an end gets a result that says so. */
  private finishBatch(): void {
    if (this.batch === undefined) return
    this.history.appendAssistant(this.batch.content)
    this.history.appendResults(this.batch.calls.map(resultOf))
    this.batch = undefined
    this.used()
  }

  /** The settlements were used. */
  private used(): void {
    this.answered = []
    if (this.votes.length > 0) this.votes = this.votes.filter(({ requestId }) => this.open.has(requestId))
  }
}

const added = (total: SessionSnapshot["usage"], usage: Usage): SessionSnapshot["usage"] => {
  const sum: { -readonly [K in keyof Usage]: Usage[K] } & { calls: number } = { calls: total.calls + 1 }
  for (const key of ["inputTokens", "outputTokens", "cachedInputTokens", "reasoningTokens"] as const) {
    const known = total[key] ?? usage[key]
    if (known !== undefined) sum[key] = (total[key] ?? 0) + (usage[key] ?? 0)
  }
  return sum
}
