/**
 * The events of a stored tree for readers that come and go: a page, a stream over HTTP.
 *
 * ```
 *  entries ─ appended ─► durable events, the last one of an entry with its position ─┐
 *                                                                                    ├─► readers, in one order
 *  bus ─► pieces of running answers, output, statuses: live, without a position ─────┘
 * ```
 *
 * A durable event comes from the journal, also while it is new: so a reader that came back and one that never left get the
 * same. A live piece waits until the entries before it are appended. What an answer has said so far is kept here for readers
 * that join in its middle.
 *
 * The bus and the journal write, in synchronous sections; each reader has a queue of its own, and is dropped when it is full.
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { SessionId, ToolCallId } from "../core/Id.js"
import { make, type AgentEvent, type Body, type EventOf } from "../event/AgentEvent.js"
import type { Draft, JournalEntry, Written } from "./JournalEntry.js"
import type { JournalFailure } from "./JournalPort.js"
import type * as JournalWriter from "./JournalWriter.js"
import * as Replay from "./Replay.js"
import type * as StoreError from "./StoreError.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * From where events are read.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The position of the last event that is known. Default: 0, and all events are read. */
  readonly after?: number | undefined
  /** Events that wait for the reader before it is dropped. Default: 4,096. */
  readonly capacity?: number | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The reader was too slow, and the events it had not read were dropped.
 *
 * @since 0.1.0
 * @category errors
 */
export class ReaderLagged extends Schema.TaggedError<ReaderLagged>("assent/journal/ReaderLagged")("ReaderLagged", {
  /** Position of the last event that the reader got. */
  position: Schema.Number
}) {
  override get message(): string {
    return `The reader of the events was too slow and was dropped. Read on after position ${this.position}.`
  }
}

/**
 * The position is behind the end of the journal: it is of another session, or of a store that was restored.
 *
 * @since 0.1.0
 * @category errors
 */
export class PositionAhead extends Schema.TaggedError<PositionAhead>("assent/journal/PositionAhead")("PositionAhead", {
  after: Schema.Number,
  /** The last position there is. */
  last: Schema.Number
}) {
  override get message(): string {
    return `There is no position ${this.after} in this session: its last one is ${this.last}. Read its events from the beginning.`
  }
}

/**
 * Why events cannot be read, or not any further.
 *
 * @since 0.1.0
 * @category errors
 */
export type ReadFailure =
  ReaderLagged | PositionAhead | JournalFailure | StoreError.JournalUnreadable | StoreError.StoreUnusable

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Where the feed reads what is stored. */
export interface Source {
  readonly root: SessionId
  /** All entries that are stored. */
  readonly load: Effect.Effect<ReadonlyArray<Written>, StoreError.JournalUnreadable | StoreError.StoreUnusable>
  /** Appends what was noted until now. */
  readonly flush: Effect.Effect<void, JournalFailure>
  /** Number of entries that are stored when the feed begins. */
  readonly from: number
}

/** An `EventBus.Observer`, too. */
export class EventFeed implements JournalWriter.Observer {
  /** Numbers of entries of the whole tree. */
  private noted: number
  private appended: number
  private readonly answers = new Map<SessionId, Answer>()
  private readonly statuses = new Map<SessionId, AgentEvent>()
  private readonly readers = new Set<Pick<Reader, "append" | "drop" | "take" | "wake">>()
  private isClosed = false

  constructor(private readonly source: Source) {
    this.noted = this.appended = source.from
  }

  /** Position of the last entry that is stored. */
  get position(): number {
    return this.appended
  }

  /** All entries that were noted until now. */
  get entries(): Effect.Effect<
    ReadonlyArray<Written>,
    JournalFailure | StoreError.JournalUnreadable | StoreError.StoreUnusable
  > {
    return Effect.zipRight(this.source.flush, this.source.load)
  }

  take(event: AgentEvent): void {
    const answer = this.answerOf(event)
    if (this.readers.size === 0 || !this.isLive(event)) return
    const live: Live = { event, answer, behind: this.noted }
    for (const reader of this.readers) reader.take(live, this.appended)
  }

  note({ entry, sessionId }: Draft): void {
    this.noted++
    // From now on the journal says what the answer was.
    if (entry._tag === "AssistantAppended" || entry._tag === "CallsProposed") this.answers.delete(sessionId)
  }

  append(drafts: ReadonlyArray<Draft & { readonly at: number }>): void {
    const before = this.appended
    this.appended += drafts.length
    if (this.readers.size === 0) return
    const entries = drafts.map((draft, index): Written => ({ ...draft, seq: before + index + 1 }))
    for (const reader of this.readers) reader.append(entries)
  }

  /** Readers have counted the entries already: they read on behind what they know. */
  retract(count: number): void {
    this.noted -= count
    for (const reader of this.readers) reader.drop()
  }

  close(): void {
    this.isClosed = true
    for (const reader of this.readers) reader.wake()
  }

  /** The events behind a position: durable ones, what running answers have said so far, and all that follows. */
  read({ after = 0, capacity = 4_096 }: Options): Stream.Stream<AgentEvent, ReadFailure> {
    const { flush } = this.source
    return Stream.unwrapScoped(
      Effect.gen(this, function* () {
        const { begun, last, reader } = yield* Effect.acquireRelease(
          Effect.sync(() => this.join(capacity)),
          ({ reader }) => Effect.sync(() => this.readers.delete(reader))
        )
        if (after > last) return Stream.fail(new PositionAhead({ after, last }))
        const telling = new Telling(after)
        const stored = (yield* this.entries).filter(({ seq }) => seq <= last)
        const before = [...stored, ...begun].flatMap((item) => telling.tell(item))
        const next: Effect.Effect<Chunk.Chunk<AgentEvent>, Option.Option<ReadFailure>> = Effect.suspend(() => {
          const items = reader.takeAll()
          // Entries that were noted before the reader joined may be appended only now.
          const events = items.flatMap((item) => ("seq" in item && item.seq <= last ? [] : telling.tell(item)))
          if (events.length > 0) return Effect.succeed(Chunk.unsafeFromArray(events))
          if (items.length > 0) return next
          if (reader.isFull) return Effect.fail(Option.some(new ReaderLagged({ position: telling.position })))
          if (reader.isWaiting) return Effect.zipRight(Effect.mapError(flush, Option.some), next)
          return this.isClosed ? Effect.fail(Option.none()) : Effect.zipRight(reader.awaitItem, next)
        })
        return Stream.concat(Stream.fromIterable(before), Stream.repeatEffectChunkOption(next))
      })
    )
  }

  /** Looks for an entry that is appended from now on, until the scope closes. The inner effect waits for it. */
  awaitEntry(isIt: (entry: JournalEntry) => boolean): Effect.Effect<Effect.Effect<void>, never, Scope.Scope> {
    return Effect.gen(this, function* () {
      const seen = yield* Deferred.make<void>()
      const reader = {
        append: (entries: ReadonlyArray<Written>) => {
          if (entries.some(({ entry }) => isIt(entry))) Deferred.unsafeDone(seen, Effect.void)
        },
        take: () => {},
        drop: () => {},
        wake: () => {}
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => this.readers.add(reader)),
        () => Effect.sync(() => this.readers.delete(reader))
      )
      return Deferred.await(seen)
    })
  }

  /** In one step: what was noted until now is stored, what comes from now on goes to the reader. */
  private join(capacity: number) {
    const reader = new Reader(capacity)
    this.readers.add(reader)
    const answers = Array.from(this.answers.values(), (answer) =>
      answer.events().map((event): Live => ({ event, answer, behind: this.noted }))
    )
    const statuses = Array.from(this.statuses.values(), (event): Live => ({
      event,
      answer: undefined,
      behind: this.noted
    }))
    return { reader, last: this.noted, begun: [...statuses, ...answers.flat()] }
  }

  private isLive(event: AgentEvent): boolean {
    // A child's end is in the journal.
    return event._tag === "AgentCompleted" ? event.sessionId === this.source.root : live[event._tag]
  }

  /** Keeps what running answers say; yields the one that the event belongs to. */
  private answerOf(event: AgentEvent): Answer | undefined {
    const { sessionId } = event
    switch (event._tag) {
      case "AgentStatusChanged":
        if (event.status === "done") this.statuses.delete(sessionId)
        else this.statuses.set(sessionId, event)
        return undefined
      case "ModelCallStarted": {
        const answer = new Answer(event)
        this.answers.set(sessionId, answer)
        return answer
      }
      case "TurnEnded":
        this.answers.delete(sessionId)
        return undefined
      default: {
        const answer = this.answers.get(sessionId)
        answer?.take(event)
        return answer
      }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Converts all entries of a tree that nobody runs, as a feed does: the events behind a position, with positions. */
export const teller = (after: number): Replay.Teller => {
  const telling = new Telling(after)
  return (written) => telling.tell(written)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** An event that is in no journal. */
interface Live {
  readonly event: AgentEvent
  readonly answer: Answer | undefined
  /** Number of the last entry that was noted before it. */
  readonly behind: number
}

/** Events that have no entry, or whose entry comes after them: pieces of answers are in the journal once they are whole. */
const live: { readonly [Tag in AgentEvent["_tag"]]: boolean } = {
  AgentCreated: false,
  AgentStatusChanged: true,
  AgentCompleted: false,
  AgentError: true,
  McpServerChanged: true,
  SessionRestored: false,
  TurnStarted: false,
  TurnEnded: false,
  ModelCallStarted: true,
  ModelCallEnded: false,
  ModelRetried: true,
  BlockStarted: true,
  TextDelta: true,
  ThinkingDelta: true,
  BlockEnded: true,
  ToolArgumentsStarted: true,
  ToolArgumentsDelta: true,
  ToolCallProposed: false,
  ToolCallStarted: false,
  ToolOutput: true,
  ToolCallEnded: false,
  TodosChanged: false,
  FilesSetAside: true,
  JobStarted: true,
  JobEnded: true,
  InteractionRequested: false,
  QuestionDisplayed: true,
  QuestionAnswered: true,
  InteractionAnswered: false,
  InteractionVoted: false,
  InteractionCancelled: false,
  InteractionTimedOut: false,
  InteractionUnavailable: false,
  InteractorFailed: true,
  LateAnswer: true,
  PermissionResolved: false,
  PermissionStatusChanged: false,
  GrantMinted: true,
  GrantConsumed: true,
  SubagentEnvelopeApproved: false,
  SubagentEnvelopeDenied: false,
  UserInterjected: false,
  InterjectionAcknowledged: false,
  CompactionStarted: false,
  CompactionEnded: false,
  Lagged: false
}

/** What the running model call of a session has said so far, as it was published. */
class Answer {
  private parts: Array<
    | { readonly block: "text" | "thinking"; text: string; isOpen: boolean }
    | { readonly toolCallId: ToolCallId; readonly tool: string; text: string }
  > = []

  constructor(private readonly started: EventOf<"ModelCallStarted">) {}

  take(event: AgentEvent): void {
    switch (event._tag) {
      case "BlockStarted":
        this.parts.push({ block: event.block, text: "", isOpen: true })
        return
      case "TextDelta":
      case "ThinkingDelta": {
        const last = this.parts.at(-1)
        if (last !== undefined) last.text += event.text
        return
      }
      case "BlockEnded": {
        const last = this.parts.at(-1)
        if (last !== undefined && "block" in last) last.isOpen = false
        return
      }
      case "ToolArgumentsStarted":
        this.parts.push({ toolCallId: event.toolCallId, tool: event.tool, text: "" })
        return
      case "ToolArgumentsDelta": {
        const call = this.parts.find((part) => "tool" in part && part.toolCallId === event.toolCallId)
        if (call !== undefined) call.text += event.text
        return
      }
      case "ModelRetried":
        this.parts = []
    }
  }

  /** The same again, in as few events as there can be. */
  events(): ReadonlyArray<AgentEvent> {
    const { started } = this
    const bodies = this.parts.flatMap((part): ReadonlyArray<Body> => {
      if ("tool" in part) {
        const { text, tool, toolCallId } = part
        const begun: Body = { _tag: "ToolArgumentsStarted", toolCallId, tool }
        return text === "" ? [begun] : [begun, { _tag: "ToolArgumentsDelta", toolCallId, text }]
      }
      const { block, isOpen, text } = part
      return [
        { _tag: "BlockStarted", block },
        ...(text === "" ? [] : [wordsOf(block, text)]),
        ...(isOpen ? [] : [{ _tag: "BlockEnded", block } as const])
      ]
    })
    return [started, ...bodies.map((body) => make(started, body))]
  }

  /** Whether it is the answer of this stored call. */
  isOf([first]: ReadonlyArray<AgentEvent>): boolean {
    return first?._tag === "ModelCallStarted" && first.step === this.started.step
  }

  /** Whether these events of a stored call say the same. */
  isSaidBy(call: ReadonlyArray<AgentEvent>): boolean {
    const stored = call.flatMap((event) =>
      event._tag === "TextDelta" || event._tag === "ThinkingDelta" ? [`${event._tag} ${event.text}`] : []
    )
    const said = this.parts.flatMap((part) =>
      "block" in part && part.text !== "" ? [`${wordsOf(part.block, part.text)._tag} ${part.text}`] : []
    )
    return stored.length === said.length && stored.every((words, index) => words === said[index])
  }
}

const wordsOf = (block: "text" | "thinking", text: string) => ({
  _tag: block === "text" ? ("TextDelta" as const) : ("ThinkingDelta" as const),
  text
})

/** What one reader receives, in order. */
class Telling {
  private readonly project = Replay.teller()
  /** Answers that the reader has got piece by piece. */
  private readonly told = new Map<SessionId, Answer>()

  /** `position`: of the last event that the reader knows. */
  constructor(public position: number) {}

  tell(item: Live | Written): ReadonlyArray<AgentEvent> {
    if ("seq" in item) return this.stored(item)
    const { answer, event } = item
    if (answer !== undefined) this.told.set(event.sessionId, answer)
    return [event]
  }

  private stored(written: Written): ReadonlyArray<AgentEvent> {
    const events = this.untold(this.project(written))
    const last = events.at(-1)
    if (written.seq <= this.position || last === undefined) return []
    this.position = written.seq
    // Only here no cut can fall inside of an entry.
    return [...events.slice(0, -1), { ...last, position: written.seq }]
  }

  /** Without the words of calls that came piece by piece. Words that differ are published again, from the start of their call. */
  private untold(events: ReadonlyArray<AgentEvent>): ReadonlyArray<AgentEvent> {
    const kept: Array<AgentEvent> = []
    let call: Array<AgentEvent> | undefined
    for (const event of events) {
      if (event._tag === "AgentStatusChanged" && event.status !== "done") continue
      if (event._tag === "ModelCallStarted") call = [event]
      else if (call !== undefined && event._tag !== "ModelCallEnded") call.push(event)
      else {
        if (call !== undefined) kept.push(...this.untoldOf(event.sessionId, call))
        call = undefined
        kept.push(event)
      }
    }
    return kept
  }

  private untoldOf(sessionId: SessionId, call: ReadonlyArray<AgentEvent>): ReadonlyArray<AgentEvent> {
    const answer = this.told.get(sessionId)
    if (answer === undefined) return call
    // A call without words ends with the entry after it: the next call runs, and must not begin anew.
    if (!answer.isOf(call)) return []
    this.told.delete(sessionId)
    return answer.isSaidBy(call) ? [] : call
  }
}

/** Written by the feed, read by one stream. It takes nothing more once it is full. */
class Reader {
  isFull = false
  private queue: Array<Live | Written> = []
  /** Live events that come after entries that are not appended yet. */
  private waiting: Array<Live> = []
  /** Open while there is something to look at. */
  private readonly latch = Effect.unsafeMakeLatch(false)

  constructor(private readonly capacity: number) {}

  get isWaiting(): boolean {
    return this.waiting.length > 0
  }

  take(live: Live, appended: number): void {
    if (this.isWaiting || live.behind > appended) {
      if (this.hasRoom()) this.waiting.push(live)
      this.wake()
    } else this.push(live)
  }

  append(entries: ReadonlyArray<Written>): void {
    for (const written of entries) {
      this.release(written.seq - 1)
      this.push(written)
    }
    this.release(entries.at(-1)?.seq ?? 0)
  }

  /** What came until now. When there is nothing, {@link awaitItem} waits for what comes then. */
  takeAll(): ReadonlyArray<Live | Written> {
    this.latch.unsafeClose()
    const items = this.queue
    this.queue = []
    return items
  }

  /** It takes nothing more, as if it were full. */
  drop(): void {
    this.isFull = true
    this.waiting = []
    this.wake()
  }

  wake(): void {
    this.latch.unsafeOpen()
  }

  get awaitItem(): Effect.Effect<void> {
    return this.latch.await
  }

  private release(appended: number): void {
    let count = 0
    while ((this.waiting[count]?.behind ?? Infinity) <= appended) this.queue.push(...this.waiting.slice(count, ++count))
    if (count > 0) this.waiting.splice(0, count)
  }

  private push(item: Live | Written): void {
    if (this.hasRoom()) this.queue.push(item)
    this.wake()
  }

  private hasRoom(): boolean {
    if (this.queue.length + this.waiting.length < this.capacity) return !this.isFull
    this.isFull = true
    return false
  }
}
