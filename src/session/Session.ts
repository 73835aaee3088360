/**
 * The inside of one agent: its inbox, history, tools and scope, and the loop that takes its turns.
 *
 * Everything the session starts lives in the scope it was made in. One turn runs at a time.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { Generator, MessageId, ToolCallId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type * as Origin from "../core/Origin.js"
import type { Todo } from "../core/Todo.js"
import type { CompactionFailed } from "../conversation/CompactionFailed.js"
import type * as History from "../conversation/History.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type { TurnEnd } from "../event/TurnEnd.js"
import type * as Inbox from "../inbox/Inbox.js"
import type { Draft, Message } from "../inbox/Message.js"
import * as ResumedRequests from "../interaction/ResumedRequests.js"
import type * as DetachedFiber from "../internal/DetachedFiber.js"
import * as Region from "../core/Region.js"
import * as RequestResumption from "../journal/RequestResumption.js"
import type * as Model from "../model/Model.js"
import type * as PermissionGate from "../permission/PermissionGate.js"
import { Agenda } from "../tool/Agenda.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { Compacted } from "../turn/Compaction.js"
import type { StopReason } from "../turn/Turn.js"
import { Delegations } from "../turn/Delegation.js"
import type { RunningCalls } from "../turn/RunningCalls.js"
import * as TurnContext from "../turn/TurnContext.js"
import { Along, OwnTurn, type Policy } from "./Admission.js"
import { Aside, Hold, type Service as Holding } from "./Hold.js"
import { TurnLoop, type Given, type Own as LoopOwn } from "./TurnLoop.js"
import type { RequestedTurn, Wanted } from "./TurnRequest.js"

export type { Shared } from "../turn/TurnContext.js"
export { Along, Interject, Note, OwnTurn, type Policy } from "./Admission.js"
export type { RequestedTurn, TurnOptions, Wanted } from "./TurnRequest.js"

/** Options of one session. */
export interface Own extends LoopOwn {
  /** Further services for its tools; called once, when the first tool runs. */
  readonly ambient: ((session: Service) => Context.Context<never>) | undefined
}

/** Where a session is made. */
export interface Surroundings {
  readonly ids: Generator
  readonly clock: Clock.Clock
  /** Everything that the session starts ends with it. */
  readonly scope: Scope.Scope
}

export interface Service {
  readonly origin: Origin.Origin
  readonly history: History.History
  readonly tools: ToolRegistry.Service
  readonly inbox: Inbox.Service
  /** The children that work under its tool calls. */
  readonly delegations: Delegations
  /** Its running tool calls. */
  readonly calls: RunningCalls
  /** The context in which a tool of it would look at a call that is made in this context. */
  readonly contextOf: (entry: ToolRegistry.Entry, outer: Context.Context<never>) => Context.Context<never>
  /** From now on it takes turns, in the world of this place. */
  readonly start: (place: DetachedFiber.Place) => void
  /** Where it was started; nothing before. */
  readonly place: DetachedFiber.Place | undefined
  /**
   * Files words by a policy. Synchronous: deciding and filing are one step. A session that has ended files them too, for
   * the process that resumes it.
   */
  readonly submit: (draft: Draft, policy: Policy) => Message
  /** Whether a turn would read words that are filed now for the working one. */
  readonly isReceiving: () => boolean
  /**
   * Waits for the turn that this message begins: one that was submitted for a turn of its own in the same synchronous
   * step, or that another process filed and whose turn has not ended.
   */
  readonly awaitTurn: (id: MessageId, wanted?: Wanted) => RequestedTurn
  /** The turn that this message begins or has begun, unless it is over. It may be awaited already. */
  readonly ongoing: (id: MessageId, wanted?: Wanted) => RequestedTurn | undefined
  /** Takes back the user's unread words, oldest first. Queued words stay. */
  readonly takeBack: () => ReadonlyArray<Message>
  /** The authority of the running turn: it holds also for tasks that the turn gives to children. */
  readonly bound: () => PermissionGate.Authority | undefined
  /** Cancels the running turn, or the one about to begin, and waits for its end; none when idle. */
  readonly cancel: (reason: CancelReason) => Effect.Effect<Option.Option<TurnEnd>>
  /** Ends the session if nothing runs in it, and says whether it did. */
  readonly end: () => boolean
  /** Ends the session: stops the running turn for this reason, begins no other, and waits until it has ended. */
  readonly close: (reason: StopReason) => Effect.Effect<void>
  /** Ends the running turn as halted, because nobody can answer. */
  readonly halt: (detail: string) => Effect.Effect<void>
  /** Ends it for all who wait for it, although its turn does not end. */
  readonly abandon: () => void
  /** Whether it has ended, and takes no more turns. */
  readonly isOver: () => boolean
  readonly isIdle: Effect.Effect<boolean>
  /** Waits until no turn runs and the inbox is empty, or it has ended; yields the last turn's end. */
  readonly awaitIdle: Effect.Effect<Option.Option<TurnEnd>>
  /** Keeps the session busy until the result is called, for work beside its turns. */
  readonly retain: () => () => void
  /**
   * Makes the history as short as the configuration allows: now when idle, else before the next model call. A tool that
   * waits for this in its own session waits for ever. An interrupt does not stop a compaction that has begun.
   */
  readonly compact: Effect.Effect<Compacted, CompactionFailed>
  /** Turns begun so far. */
  readonly turns: () => number
  /** Whether the last of them has no end yet. */
  readonly inTurn: () => boolean
  readonly model: Effect.Effect<Model.Service>
  /** What its model has to do, as it wrote it last. */
  readonly todos: () => ReadonlyArray<Todo>
  /** The model of the next model call. */
  readonly setModel: (model: Model.Service) => Effect.Effect<void>
}

/** A session of a tree. It takes no turn before {@link Service.start}. */
export const make = (shared: TurnContext.Shared, own: Own, { clock, ids, scope }: Surroundings): Service => {
  const resumption =
    own.restored === undefined
      ? undefined
      : RequestResumption.make(own.restored, shared.redactor, (requests) => own.journal?.dropped(requests))
  return new Session(shared, own, clock, { ids, resumption }, scope)
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Options of {@link turn}. */
export interface Waiting<E> extends Wanted {
  /** Must succeed before the end counts, such as keeping the words. A failure gives the turn up. */
  readonly kept?: Effect.Effect<void, E> | undefined
  /** An interrupt leaves the words and the turn to the session: another process may go on with them. */
  readonly lasts?: boolean | undefined
  /** Called with the requested turn in the step in which its words are filed. */
  readonly requested?: ((turn: RequestedTurn) => void) | undefined
}

/**
 * Gives a session words for a turn of their own, and waits for its end. An interrupt withdraws the words, or cancels the
 * turn when that has begun, unless it `lasts`. The turn runs in the world of the caller: see `World`. One turn runs at a time, so a tool that waits for a turn of its own session waits for ever.
 */
export const turn = <E = never>(
  self: Pick<Service, "awaitTurn" | "submit">,
  draft: Draft,
  { authority, kept, lasts, output, reason, requested, task }: Waiting<E> = {}
): Effect.Effect<TurnEnd, E> =>
  Region.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.getFiberRefs, (world) => {
      const wanted: Wanted = { authority, output, reason, task, world }
      const turn = self.awaitTurn(self.submit(draft, OwnTurn()).id, wanted)
      requested?.(turn)
      const end: Effect.Effect<TurnEnd, E> = kept === undefined ? turn.end : Effect.flatMap(kept, () => turn.end)
      return Effect.tapErrorCause(restore(end), (cause) =>
        lasts === true && Cause.isInterruptedOnly(cause) ? Effect.void : turn.giveUp
      )
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Session implements Service, Holding {
  readonly delegations = new Delegations()
  private readonly loop: TurnLoop
  /** Something lives beside its turns, and takes its time to end. */
  private holds = false

  constructor(
    shared: TurnContext.Shared,
    own: Own,
    clock: Clock.Clock,
    given: Given,
    private readonly scope: Scope.Scope
  ) {
    const ambient = () => {
      const context = own.ambient?.(this) ?? Context.empty()
      // Always: a child's tools must not take questions of its parent, in whose world it was started.
      const reopened = Context.add(context, ResumedRequests.ResumedRequests, given.resumption)
      const { session } = this.loop
      return Context.add(reopened, Agenda, session).pipe(
        Context.add(Hold, this as Holding),
        Context.add(Aside, (notices, call) => session.tellAside(notices, call))
      )
    }
    this.loop = new TurnLoop(shared, own, TurnContext.make(shared, own, clock, ambient), given)
  }

  get origin() {
    return this.loop.session.origin
  }

  contextOf(entry: ToolRegistry.Entry, outer: Context.Context<never>): Context.Context<never> {
    const context = this.loop.session.contextOf(entry, outer)
    // Nobody made the call, so the session holds on to nothing of its world.
    this.loop.session.forget()
    return context
  }

  get history() {
    return this.loop.session.history
  }

  get tools() {
    return this.loop.session.tools
  }

  get inbox() {
    return this.loop.session.inbox
  }

  get calls() {
    return this.loop.session.calls
  }

  // Implements `Hold.Service`.

  get redactor() {
    return this.loop.session.redactor
  }

  get isRestored(): boolean {
    return this.loop.isRestored
  }

  atEnd(finalizer: Effect.Effect<void>): Effect.Effect<void> {
    this.holds = true
    return Scope.addFinalizer(this.scope, finalizer)
  }

  isRunning(call: ToolCallId): boolean {
    return this.calls.has(call)
  }

  tell(body: AgentEvent.Body): void {
    TurnContext.emit(this.loop.session, body)
  }

  note(text: string): () => void {
    const { id } = this.submit({ text, source: "system" }, Along())
    return () => void this.inbox.withdraw(id)
  }

  start(place: DetachedFiber.Place): void {
    this.loop.start(place)
  }

  get place() {
    return this.loop.place
  }

  submit(draft: Draft, policy: Policy): Message {
    return this.loop.admission.submit(draft, policy)
  }

  isReceiving(): boolean {
    return this.loop.admission.isReceiving()
  }

  takeBack(): ReadonlyArray<Message> {
    return this.loop.admission.takeBack()
  }

  awaitTurn(id: MessageId, wanted?: Wanted): RequestedTurn {
    return this.loop.awaitTurn(id, wanted)
  }

  ongoing(id: MessageId, wanted: Wanted = {}): RequestedTurn | undefined {
    return this.loop.ongoing(id, wanted)
  }

  bound() {
    return this.loop.session.state.bound
  }

  cancel(reason: CancelReason): Effect.Effect<Option.Option<TurnEnd>> {
    return this.loop.stopTurn({ cancel: reason })
  }

  end(): boolean {
    return !this.holds && this.loop.end()
  }

  close(reason: StopReason): Effect.Effect<void> {
    return this.loop.close(reason)
  }

  halt(detail: string): Effect.Effect<void> {
    return this.loop.halt(detail)
  }

  abandon(): void {
    this.loop.abandon()
  }

  isOver(): boolean {
    return this.loop.isOver
  }

  get isIdle(): Effect.Effect<boolean> {
    return Effect.sync(() => this.loop.rests())
  }

  get awaitIdle(): Effect.Effect<Option.Option<TurnEnd>> {
    return this.loop.awaitIdle
  }

  retain(): () => void {
    return this.loop.retain()
  }

  get compact(): Service["compact"] {
    return this.loop.compact
  }

  turns(): number {
    return this.loop.count
  }

  inTurn(): boolean {
    return this.loop.session.state.correlationId !== undefined
  }

  todos(): ReadonlyArray<Todo> {
    return this.loop.session.state.todos
  }

  get model(): Service["model"] {
    return Effect.sync(() => this.loop.session.model())
  }

  setModel(next: Model.Service): Effect.Effect<void> {
    return Effect.sync(() => {
      this.loop.session.state.model = next
    })
  }
}
