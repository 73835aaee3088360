/**
 * The state that a journal amounts to: every session of a tree at the last entry.
 *
 * It is a fold, entry by entry: any prefix of a journal has a state, and continuing from it gives the same as folding
 * all.
 *
 * @since 0.1.0
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Predicate from "effect/Predicate"
import type { MessageId, RequestId, SessionId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import * as ToolOutcome from "../core/ToolOutcome.js"
import * as Todo from "../core/Todo.js"
import type { Usage } from "../event/AgentEvent.js"
import type { TurnEnd } from "../event/TurnEnd.js"
import type { Message } from "../inbox/Message.js"
import type { Kept } from "../broker/InteractionJournal.js"
import * as Tally from "../interaction/Tally.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import type { EntryOf, Permissions, SessionOpened, Written } from "./JournalEntry.js"
import * as History from "../conversation/History.js"
import {
  TreeReading,
  type Batch,
  type CallSnapshot,
  type Fact,
  type FactOf,
  type SessionReading,
  type TurnSnapshot
} from "./JournalReading.js"
import type { Loaded, StoredAnswer } from "./SessionStore.js"

export type { Batch, CallSnapshot, TurnSnapshot } from "./JournalReading.js"

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
  /** The last recorded permissions; absent if none were recorded. */
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
  /** Calls without a result in the history. */
  readonly batch: Batch | undefined
  /** Open requests, oldest first. */
  readonly open: ReadonlyArray<InteractionRequest.InteractionRequest>
  /** Requests settled in the running turn since its last batch: the same question gets the same settlement again. */
  readonly answered: ReadonlyArray<Answered>
  /** Votes on requests that are open, or settled since its last batch, oldest first. */
  readonly votes: ReadonlyArray<EntryOf<"VoteGiven">>
  /** Tasks of its parent without a reported end, in order. */
  readonly tasks: ReadonlyArray<Task>
  /** The todo list that its model wrote last. */
  readonly todos: ReadonlyArray<Todo.Todo>
  /** The sum over all model calls. */
  readonly usage: Usage & { readonly calls: number }
  readonly children: ReadonlyArray<SessionId>
  readonly closed: boolean
}

/**
 * A settled question. Its asker may not have read the answer yet.
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
  todos: [],
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
  const before = new Map(from.sessions.map((session) => [session.opened.sessionId, session]))
  const tree = new TreeReading((opened, reading) => {
    const known = before.get(opened.sessionId)
    if (known === undefined && opened.parentSessionId !== undefined)
      tree.states.get(opened.parentSessionId)?.children.push(opened.sessionId)
    return new SnapshotFold(known ?? begun(opened), reading)
  })
  for (const session of from.sessions) tree.restore(session.opened, session)
  let { seq, permissions } = from
  for (const one of written) {
    const { entry, sessionId } = one
    seq = one.seq
    if (entry._tag === "PermissionsChanged") permissions = entry.permissions
    if (entry._tag === "TurnEnded" && permissions?.turn.includes(sessionId) === true)
      permissions = { ...permissions, turn: permissions.turn.filter((id) => id !== sessionId) }
    const read = tree.read(one)
    read?.state.apply(read.fact)
  }
  return { seq, sessions: Array.from(tree.states.values(), (session) => session.state()), permissions }
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
 * The result of a call for the model. A call without an end is `interrupted`, and the text says so.
 *
 * @since 0.1.0
 * @category getters
 */
export const resultOf = ({ call, ended }: CallSnapshot): ToolResult => ({
  id: call.id,
  name: call.name,
  outcome: ended?.outcome ?? "interrupted",
  // Null is a result too: that of a tool which returns nothing.
  result: ended === undefined ? ToolOutcome.lost : ended.result
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
 * The open requests of a whole tree that an answer counts for, parents' first.
 *
 * @since 0.1.0
 * @category getters
 */
export const openRequests = (self: TreeSnapshot, answers: Loaded["answers"]): ReadonlyArray<OpenRequest> => {
  const byRequest = new Map<RequestId, StoredAnswer>(answers.map((answer) => [answer.requestId, answer]))
  return self.sessions.flatMap(({ open, votes }) =>
    open.flatMap((request) => {
      if (InteractionRequest.isAskedOnce(request)) return []
      const given = votes.filter(({ requestId }) => requestId === request.requestId)
      return { request: given.reduce(Tally.withVote, request), answer: byRequest.get(request.requestId) }
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

/** What was masked in an answer would run otherwise than it was decided. Words beside a decision may be masked. */
const isWhole = (answer: unknown): boolean =>
  !Redaction.isMasked(Predicate.isRecord(answer) && "decision" in answer ? { ...answer, comment: "" } : answer)

/** One session while it is folded. The snapshot that it is made from is not changed. */
class SnapshotFold {
  readonly children: Array<SessionId>
  private opened: SessionOpened
  private history: History.History
  private readonly interjections: Map<MessageId, Message>
  private turns: number
  private lastEnd: TurnEnd | undefined
  private answered: ReadonlyArray<Answered>
  private votes: ReadonlyArray<EntryOf<"VoteGiven">>
  private readonly tasks: Map<MessageId, Task>
  private todos: SessionSnapshot["todos"]
  private usage: SessionSnapshot["usage"]
  private closed: boolean

  constructor(
    session: SessionSnapshot,
    private readonly reading: SessionReading
  ) {
    this.children = [...session.children]
    this.opened = session.opened
    this.history = History.make(session.history, verbatim)
    this.interjections = new Map(session.interjections.map((message) => [message.id, message]))
    this.turns = session.turns
    this.lastEnd = session.lastEnd
    this.answered = session.answered
    this.votes = session.votes
    this.tasks = new Map(session.tasks.map((task) => [task.messageId, task]))
    this.todos = session.todos
    this.usage = session.usage
    this.closed = session.closed
  }

  state(): SessionSnapshot {
    const { batch, open, turn, waiting } = this.reading
    return {
      opened: this.opened,
      history: this.history.messages,
      waiting: [...waiting.values()],
      interjections: [...this.interjections.values()],
      turns: this.turns,
      turn,
      lastEnd: this.lastEnd,
      batch,
      open: [...open.values()],
      answered: this.answered,
      votes: this.votes,
      tasks: [...this.tasks.values()],
      todos: this.todos,
      usage: this.usage,
      children: this.children,
      closed: this.closed
    }
  }

  apply(fact: Fact): void {
    switch (fact._tag) {
      case "MessageReceived": {
        const { message } = fact.entry
        if (message.interjection !== undefined) this.interjections.set(message.id, message)
        return
      }
      case "MessageWithdrawn":
        this.interjections.delete(fact.entry.messageId)
        this.tasks.delete(fact.entry.messageId)
        return
      case "TaskGiven": {
        const { bound, messageId, toolCallId } = fact.entry
        this.tasks.set(messageId, { messageId, toolCallId, end: undefined, ...(bound && { bound }) })
        return
      }
      case "TaskTold":
        this.tasks.delete(fact.entry.messageId)
        return
      case "MessageTaken":
        this.finish(fact.finished)
        if (fact.begins) this.turns++
        return this.history.appendInput(fact.messages, { beginsTurn: fact.begins })
      case "AssistantAppended":
        return this.history.appendAssistant(fact.entry.content, { partial: fact.entry.partial === true })
      case "UsageRecorded":
      case "TokensSpent":
        this.usage = added(this.usage, fact.entry.usage)
        return
      case "CallsProposed":
      case "ResultsAppended":
        return this.finish(fact.finished)
      case "TurnEnded":
        return this.endTurn(fact)
      case "InteractionSettled":
        return this.settle(fact)
      case "VoteGiven":
        if (isWhole(fact.entry.answer)) this.votes = [...this.votes, fact.entry]
        return
      case "HistoryReplaced":
        this.history = History.make(fact.entry.messages, verbatim)
        if (fact.entry.reason === "cleared") this.todos = []
        return
      case "SessionResumed":
        this.closed = false
        if (fact.entry.workspace !== undefined) this.opened = { ...this.opened, workspace: fact.entry.workspace }
        return
      case "SessionClosed":
        this.closed = true
        return
      case "ModelChosen": {
        const { model, thinking } = fact.entry
        const { thinking: _, ...opened } = this.opened
        this.opened = { ...opened, model, ...(thinking && { thinking }) }
        return
      }
      case "ToolEnded":
        return this.write(fact)
      case "CallDecided":
      case "ToolStarted":
      case "InteractionRaised":
      case "SessionOpened":
      case "PermissionsChanged":
        return
      default:
        // What a new entry means to a session is decided here.
        return fact satisfies never
    }
  }

  private endTurn({ entry: { end }, finished, turn }: FactOf<"TurnEnded">): void {
    this.finish(finished)
    for (const id of turn?.input ?? []) {
      const task = this.tasks.get(id)
      if (task !== undefined) this.tasks.set(id, { ...task, end })
    }
    this.used()
    this.lastEnd = end
  }

  private settle({ at, entry, request }: FactOf<"InteractionSettled">): void {
    const { answer, by, how, status } = entry
    // An open request is asked again, and so is a secret, whose answer is never stored, and what was masked in one.
    const isDecided = status === "cancelled" || (status === "answered" && answer !== undefined && isWhole(answer))
    if (request === undefined || this.reading.turn === undefined || by === undefined || !isDecided) return
    this.answered = [
      ...this.answered,
      { request, by, at, ...(answer === undefined ? {} : { answer }), ...(how && { how }) }
    ]
  }

  private write({ call, entry: { outcome }, isAgain }: FactOf<"ToolEnded">): void {
    if (call === undefined || isAgain || outcome !== "succeeded") return
    this.todos = Todo.written(call.call.name, call.call.params) ?? this.todos
  }

  /** A proposal and its results enter the history together; a call without an end gets a result that says so. */
  private finish(batch: Batch | undefined): void {
    if (batch === undefined) return
    this.history.appendAssistant(batch.content)
    this.history.appendResults(batch.calls.map(resultOf))
    this.used()
  }

  /** The settlements were used. */
  private used(): void {
    this.answered = []
    if (this.votes.length > 0) this.votes = this.votes.filter(({ requestId }) => this.reading.open.has(requestId))
  }
}

const added = (total: SessionSnapshot["usage"], usage: Usage): SessionSnapshot["usage"] => {
  const sum: { -readonly [K in keyof Usage]: Usage[K] } & { calls: number } = { calls: total.calls + 1 }
  for (const key of [
    "inputTokens",
    "outputTokens",
    "cachedInputTokens",
    "cacheWriteTokens",
    "reasoningTokens",
    "cost"
  ] as const) {
    const known = total[key] ?? usage[key]
    if (known !== undefined) sum[key] = (total[key] ?? 0) + (usage[key] ?? 0)
  }
  return sum
}
