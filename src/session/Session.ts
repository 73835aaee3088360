/**
 * One agent from the inside: it takes words, works in turns, one at a time, and ends.
 *
 * ```
 *           words                     stop, close
 *   idle ─────────────► running ────────────────────► stopping
 *    ▲                   │   ▲                            │
 *    │ no words wait     │   │ words wait                 │
 *    └───────────────────┴───┴──── the turn has ended ◄───┘
 *
 *   any of them ── close, as soon as no turn runs ──► closed
 * ```
 *
 * A session is running from the moment words are filed, and not from the moment their turn begins. So two messages of one
 * moment are one turn. The delivery decides what becomes of words:
 *
 * ```
 *                            running                   stopping, or the turn has decided to end   idle
 *  steer, an interjection    cuts the model's answer,  begins the next turn                       begins a turn
 *                            is read next
 *  steer                     is read at the next step  begins the next turn                       begins a turn
 *  queue                     begins a turn of its own, after the turns that were queued before
 *  along                     is read with the next step, or with the words that begin the next turn; begins neither
 * ```
 *
 * Deciding and filing are one synchronous step, so words are never filed into a turn that reads no more.
 *
 * No fiber waits for words. Filing words forks the fiber of the next turn, and the end of a turn forks the one after it.
 * So an idle session has no fiber, and a working one has one. Everything that the session starts lives in the scope that
 * the session was made in. All fibers write the state in synchronous sections only.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Id from "../core/Id.js"
import type { CorrelationId, Generator, MessageId, ToolCallId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import * as Region from "../core/Region.js"
import * as Spans from "../core/Spans.js"
import type { Todo } from "../core/Todo.js"
import * as CallerContext from "../core/CallerContext.js"
import type { CompactionFailed } from "../conversation/CompactionFailed.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type { TurnEnd } from "../event/TurnEnd.js"
import { attachmentsOf, wordsOf, type Delivery, type Draft, type Message } from "../inbox/Message.js"
import * as Interactor from "../interaction/Interactor.js"
import * as ResumedRequests from "../interaction/ResumedRequests.js"
import * as DetachedFiber from "../internal/DetachedFiber.js"
import { OneShot } from "../internal/OneShot.js"
import type * as JournalEntry from "../journal/JournalEntry.js"
import * as RequestResumption from "../journal/RequestResumption.js"
import * as RestoredFiles from "../journal/RestoredFiles.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as Model from "../model/Model.js"
import * as PermissionGate from "../permission/PermissionGate.js"
import * as PlanMode from "../permission/PlanMode.js"
import { Agenda } from "../tool/Agenda.js"
import type { Compacted } from "../turn/Compaction.js"
import { Delegations } from "../turn/Delegation.js"
import * as SessionSpan from "../turn/SessionSpan.js"
import * as TokenBudget from "../turn/TokenBudget.js"
import * as Turn from "../turn/Turn.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as TurnContext from "../turn/TurnContext.js"
import { TurnFiber, type Fork, type Work } from "../turn/TurnFiber.js"
import { Aside, HandlerSession, type Service as Holding } from "./HandlerSession.js"
import { TurnRequests, type RequestedTurn, type TurnRequest, type Wanted } from "./TurnRequests.js"

export type { Shared } from "../turn/TurnContext.js"
export type { RequestedTurn, TurnOptions, Wanted } from "./TurnRequests.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** Options of one session. */
export interface Own extends TurnContext.Own {
  /** Called with a user's words that a turn has not read at its end. Default: they stay, and begin the next turn. */
  readonly unread: ((message: Message) => void) | undefined
  /** Further services for its tools; called once, when the first tool runs. */
  readonly ambient: ((session: Session) => Context.Context<never>) | undefined
}

/** Where a session is made. */
export interface Surroundings {
  readonly ids: Generator
  readonly clock: Clock.Clock
  /** Everything that the session starts ends with it. */
  readonly scope: Scope.Scope
}

/** Marks a user's words for a turn that works: the tool call that people see the words under, or `root`. */
export type Interjecting = NonNullable<Message["interjection"]>

/** Options of {@link Session.run}. */
export interface RunOptions<E> extends Wanted {
  /** Must succeed before the end counts, such as keeping the words. A failure gives the turn up. */
  readonly kept?: Effect.Effect<void, E> | undefined
  /** An interrupt leaves the words and the turn to the session: another process may go on with them. */
  readonly lasts?: boolean | undefined
  /** Called with the requested turn in the step in which its words are filed. */
  readonly requested?: ((turn: RequestedTurn) => void) | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** See the picture above. */
type Phase = "idle" | "running" | "stopping" | "closed"

/** A session of a tree. It takes no turn before {@link Session.start}. */
export class Session implements Holding {
  readonly origin
  readonly history
  readonly tools
  readonly inbox
  /** Its running tool calls. */
  readonly calls
  readonly redactor
  readonly isRestored: boolean
  /** The children that work under its tool calls. */
  readonly delegations = new Delegations()
  private readonly context: TurnContext.TurnContext
  private readonly requests: TurnRequests
  /** Present for a session that another process began. */
  private readonly resumption: RequestResumption.RequestResumption | undefined
  private readonly ids: Generator
  private readonly scope: Scope.Scope
  /** Where turns run. Before the start there is none, and nothing runs. */
  private world: TurnContextScope | undefined
  private phase: Phase
  /** A fiber works, or begins to: words do not have to fork one. */
  private hasFiber = false
  /** The signal of the running turn, else of the next, so that a turn can be cancelled before it begins. */
  private signal = Turn.fresh()
  /** The work of the fiber, once it can be stopped. */
  private running: { readonly stop: () => void } | undefined
  private isCompacting = false
  /** The message that began the running turn. */
  private leading: MessageId | undefined
  /** The request of the running turn, when a caller waits for it. */
  private current: TurnRequest | undefined
  /** A queued message that begins the next turn: later interjections must not come before it. */
  private lead: MessageId | undefined
  /** Messages that came after the next turn was cancelled: that turn must not consume them. */
  private later: Set<MessageId> | undefined
  private count: number
  private lastEnd: Option.Option<TurnEnd>
  /** Number of works beside the turns, such as a background child. */
  private retained = 0
  private hasFinalizers = false
  /** Completed once it is closed. Made by the first caller that closes it. */
  private closing: OneShot<void> | undefined
  /** Completed with the end of the running turn, for all that stop the turn; the next turn has another one. */
  private turnOver: OneShot<Option.Option<TurnEnd>> | undefined
  /** Completed when the session is idle, or has ended; the next time has another one. */
  private idleAgain: OneShot<Option.Option<TurnEnd>> | undefined

  constructor(
    private readonly shared: TurnContext.Shared,
    private readonly own: Own,
    { clock, ids, scope }: Surroundings
  ) {
    const { restored } = own
    const context = TurnContext.make(shared, own, clock, () => this.servicesOfTools())
    this.context = context
    this.origin = context.origin
    this.history = context.history
    this.tools = context.tools
    this.inbox = context.inbox
    this.calls = context.calls
    this.redactor = context.redactor
    this.ids = ids
    this.scope = scope
    this.isRestored = restored !== undefined
    this.resumption =
      restored && RequestResumption.make(restored, shared.redactor, (requests) => own.journal?.dropped(requests))
    this.phase = restored?.turn === undefined ? "idle" : "running"
    this.count = restored?.turns ?? 0
    this.lastEnd = Option.fromNullable(restored?.lastEnd)
    this.leading = restored?.turn?.input[0]
    this.requests = new TurnRequests(this.inbox, (cancel) => this.stop({ cancel }))
  }

  /** From now on it takes turns, in the world of this place. */
  start(place: DetachedFiber.Place): void {
    this.world = new TurnContextScope(place, this.context)
    if (this.own.restored?.turn !== undefined) return this.fork(() => this.resumeTurn())
    this.dropUnasked()
    this.next()
  }

  /** The context in which a tool of it would look at a call that is made in this context. */
  contextOf(entry: ToolRegistry.Entry, outer: Context.Context<never>): Context.Context<never> {
    const context = this.context.contextOf(entry, outer)
    // Nobody made the call, so the session holds on to nothing of its caller.
    this.context.forget()
    return context
  }

  /** Where it was started; nothing before. */
  get place(): DetachedFiber.Place | undefined {
    return this.world?.place
  }

  // ---------------------------------------------------------------------------------------------------------------
  // words
  // ---------------------------------------------------------------------------------------------------------------

  /**
   * Files words. Synchronous: deciding and filing are one step. A session that has ended files them too, for the process
   * that resumes it.
   */
  send(draft: Draft, delivery: Delivery, interjection?: Interjecting): Message {
    if (delivery === "along") return this.inbox.file(draft, delivery)
    if (delivery === "queue" || !this.isReceiving())
      return this.fileForNext(draft, delivery, interjection !== undefined)
    // The message that waits to begin a turn stays its first one, whatever is filed before that.
    if (!this.inTurn() && !this.inbox.hasSteering()) this.lead = this.inbox.peek()[0]?.id
    const message = this.inbox.file(draft, delivery, interjection)
    if (interjection === undefined) return message
    TurnContext.emit(this.context, {
      _tag: "UserInterjected",
      messageId: message.id,
      message: this.redactor.text(message.text),
      targetAgent: this.origin.agent,
      ...interjection,
      ...attachmentsOf([message])
    })
    this.context.state.cut?.()
    return message
  }

  /** Files a message that no running turn reads, and begins the next turn. */
  private fileForNext(draft: Draft, delivery: Delivery, interjects: boolean): Message {
    const isLate = this.phase === "stopping" && !this.inTurn()
    if (this.phase === "idle") this.phase = "running"
    if (!this.hasFiber) this.take()
    const message = this.inbox.file(draft, delivery)
    if (isLate) (this.later ??= new Set()).add(message.id)
    if (interjects && this.isCompacting) this.context.state.cut?.()
    return message
  }

  /** Whether a turn would read words that are filed now for the working one. */
  isReceiving(): boolean {
    return this.phase === "running" && this.signal.end === undefined && (this.inTurn() || !this.inbox.isEmpty())
  }

  /** Takes back the user's unread words, oldest first. Queued words stay. */
  takeBack(): ReadonlyArray<Message> {
    const { inbox } = this
    return inbox
      .peek()
      .filter(({ delivery, id, source }) => source === "user" && delivery === "steer" && inbox.withdraw(id))
  }

  /** The messages that begin the next turn; none when all cancelled messages are gone and only later ones are left. */
  private takeWords(): ReadonlyArray<Message> {
    const { context, later, lead } = this
    this.lead = undefined
    this.later = undefined
    // Here, and not when the mode changes: it may change often between two turns.
    const { isPlanning } = this.shared.permissions
    if (isPlanning !== context.state.isToldToPlan) {
      context.state.isToldToPlan = isPlanning
      this.inbox.file({ text: PlanMode.note(isPlanning, this.origin.depth), source: "system" }, "along")
    }
    return this.inbox.takeTurn(lead, later)
  }

  /**
   * Runs words as a turn of their own, and waits for its end. An interrupt withdraws the words, or cancels the turn when that
   * has begun, unless it `lasts`. The turn runs in the world of the caller: see `CallerContext`. One turn runs at a time, so a tool
   * that waits for a turn of its own session waits for ever.
   */
  run<E = never>(draft: Draft, { kept, lasts, requested, ...wanted }: RunOptions<E> = {}): Effect.Effect<TurnEnd, E> {
    return Region.uninterruptibleMask((restore) =>
      Effect.flatMap(Effect.getFiberRefs, (world) => {
        const turn = this.awaitTurn(this.send(draft, "queue").id, { ...wanted, world })
        requested?.(turn)
        const end: Effect.Effect<TurnEnd, E> = kept === undefined ? turn.end : Effect.zipRight(kept, turn.end)
        return Effect.tapErrorCause(restore(end), (cause) =>
          lasts === true && Cause.isInterruptedOnly(cause) ? Effect.void : turn.giveUp
        )
      })
    )
  }

  /**
   * Waits for the turn that this message begins: one that was queued in the same synchronous step, or that another process
   * filed and whose turn has not ended.
   */
  awaitTurn(id: MessageId, wanted: Wanted = {}): RequestedTurn {
    const { authority, task } = wanted
    if (task !== undefined || authority !== undefined) {
      this.context.journal?.given(id, task?.toolCallId, authority !== undefined)
    }
    return this.requests.add(id, wanted)
  }

  /** The turn that this message begins or has begun, unless it is over. It may be awaited already. */
  ongoing(id: MessageId, wanted: Wanted = {}): RequestedTurn | undefined {
    const known = this.requests.get(id)
    if (known !== undefined) return known
    if (this.leading === id) return (this.current = this.requests.add(id, wanted))
    const isQueued = this.inbox.peek().some((message) => message.id === id && message.delivery === "queue")
    return isQueued ? this.requests.add(id, wanted) : undefined
  }

  // ---------------------------------------------------------------------------------------------------------------
  // turns
  // ---------------------------------------------------------------------------------------------------------------

  /** Begins the next work, if there is some. */
  private next(): void {
    this.hasFiber = false
    if (this.closing !== undefined) this.conclude()
    else if (this.context.compaction.isRequested() && this.world !== undefined) this.compactBetweenTurns()
    else if (!this.inbox.isEmpty()) this.take()
  }

  /** Forks the fiber of the next turn. It begins later: words of this synchronous step may belong to the turn. */
  private take(): void {
    if (this.closing !== undefined) return this.conclude()
    this.fork(() => {
      const input = this.takeWords()
      if (input.length > 0) return this.runTurn(input, this.beginTurn(input), undefined)
      // The words that began it were withdrawn.
      this.skipTurn()
      return Effect.void
    })
  }

  /** Starts a fiber for work that is made in it. */
  private fork(work: () => Effect.Effect<void>): void {
    const { world } = this
    if (world === undefined || this.phase === "closed") return
    this.hasFiber = true
    world.fork(Effect.flatten(this.guard(Effect.sync(() => (this.isOver() ? Effect.void : work())))))
  }

  /** A session that is broken itself ends: nobody waits for it for ever. */
  private guard<A, R>(effect: Effect.Effect<A, never, R>): Effect.Effect<A, never, R> {
    return Effect.tapErrorCause(effect, () => Effect.sync(() => this.conclude()))
  }

  private beginTurn(input: ReadonlyArray<Message>): CorrelationId {
    const { context } = this
    if (this.phase === "idle") this.phase = "running"
    this.count++
    const correlationId = Id.turn(this.ids)
    context.state.correlationId = correlationId
    // What goes along comes first, and begins nothing.
    const first = input.find(({ delivery }) => delivery !== "along")?.id
    this.leading = first
    this.current = this.requests.get(first)
    this.takeAuthority(first)
    context.history.appendInput(input, { beginsTurn: true })
    context.journal?.taken(input, correlationId, 1)
    TokenBudget.begin(context, input)
    const text = this.redactor.text(wordsOf(input))
    TurnContext.emit(context, { _tag: "TurnStarted", input: text, ...attachmentsOf(input) })
    return correlationId
  }

  /** Continues the turn that another process began. */
  private resumeTurn(): Effect.Effect<void> {
    const { context } = this
    const { restored } = this.own
    if (restored?.turn === undefined) return Effect.void
    const { correlationId, input, step } = restored.turn
    context.state.correlationId = correlationId
    this.current = this.requests.get(input[0])
    this.takeAuthority(input[0])
    const attachments = RestoredFiles.inputOf(restored)
    const attached = attachments.length === 0 ? {} : { attachments }
    TurnContext.emit(context, { _tag: "TurnStarted", input: SessionSnapshot.inputOf(restored), ...attached })
    return this.runTurn([], correlationId, { step, batch: restored.batch, caughtUp: () => this.dropUnasked() })
  }

  /**
   * Takes the authority that the turn was requested with, such as a stage, in addition to the session's own. A stage ends
   * with its process: its turn, resumed in another process, may report its progress but use no tool.
   */
  private takeAuthority(first: MessageId | undefined): void {
    const { authority, restored } = this.own
    const { state } = this.context
    const wasBound = restored?.tasks.some(({ bound, messageId }) => bound === true && messageId === first)
    state.bound = this.current?.wanted.authority ?? (wasBound === true ? stageLost : undefined)
    state.authority = state.bound && PermissionGate.orElse(authority)(state.bound)
  }

  /** Drops open questions that no call asks again. */
  private dropUnasked(): void {
    this.context.journal?.dropped(this.resumption?.end() ?? [])
  }

  private runTurn(
    input: ReadonlyArray<Message>,
    correlationId: CorrelationId,
    begun: Turn.Begun | undefined
  ): Effect.Effect<void> {
    const { context, signal } = this
    const origin = Origin.inTurn(this.origin, correlationId)
    const turn = new Turn.Turn({
      session: context,
      stop: signal,
      newCallId: () => this.ids.unsafeNext("call"),
      begun,
      // A caller may begin to wait for a turn that another process began.
      output: () => this.current?.wanted.output
    })
    this.begin(turn)
    const own = this.world?.ownOf(this.current?.takeWorld())
    const span = Spans.areOff(context.spans) ? undefined : new SessionSpan.TurnSpan(context, input, origin)
    context.state.span = span
    const end = Effect.gen(this, function* () {
      if (span !== undefined) yield* span.ended(Turn.report(Turn.endOf(signal)))
      if (turn.crash !== undefined) yield* turn.logged
      yield* this.recordEnd()
      this.endTurn()
      begun?.caughtUp()
      // Contexts of handlers hold it.
      if (own !== undefined) context.forget()
    })
    const work = this.within({ origin, own, resumed: begun && this.resumption, span }, (fork) =>
      turn.run(input, () => this.guard(end), fork)
    )
    // A tracer that does not begin a span ends the session, too.
    return span === undefined ? work : this.guard(work)
  }

  /** Runs work in the world that it enters, and its further fibers, too. */
  private within(entering: Entering, work: (fork: Fork) => Work): Effect.Effect<void> {
    const { world } = this
    if (world === undefined) return Effect.void
    return world.enter(
      entering,
      work((further) => world.fork(world.enter(entering, further)))
    )
  }

  /** Registers work that can be stopped. It may have been stopped before it began. */
  private begin(running: { readonly stop: () => void }): void {
    this.running = running
    if (this.signal.reason !== undefined) running.stop()
  }

  /** The end is durable before it is published. If it cannot be written, the turn has failed. */
  private recordEnd(): Effect.Effect<void> {
    const { signal } = this
    const { journal, state } = this.context
    if (journal === undefined) return Effect.void
    if (journal.isFrozen) signal.end = Turn.parked(Turn.endOf(signal))
    else if (state.correlationId !== undefined) journal.turnEnded(state.correlationId, Turn.endOf(signal))
    return Effect.catchAll(journal.flush, (message) =>
      Effect.sync(() => {
        TurnContext.emit(this.context, { _tag: "AgentError", message })
        signal.end = Turn.unsaved(Turn.endOf(signal), message)
      })
    )
  }

  private endTurn(): void {
    const { compaction, state } = this.context
    const end = Turn.endOf(this.signal)
    this.lastEnd = Option.some(end)
    this.resetSignal()
    this.running = undefined
    state.output = undefined
    state.bound = undefined
    const suspended = this.shared.permissions.endTurn(this.origin.sessionId)
    const { detail, reason, steps } = Turn.report(end)
    const told = detail === undefined ? {} : { detail: this.redactor.text(detail) }
    TurnContext.emit(this.context, { _tag: "TurnEnded", reason, steps, ...told })
    state.correlationId = undefined
    this.returnUnread()
    if (suspended) this.publishPermissions()
    if (this.inbox.isEmpty() && !compaction.isRequested()) this.becomeIdle()
    this.wakeTurnWaiters(this.lastEnd)
    const { current } = this
    this.current = undefined
    this.leading = undefined
    if (current !== undefined) this.requests.fulfil(current, end)
    this.next()
  }

  /** The words that were to begin a turn are gone; others may have come. */
  private skipTurn(): void {
    this.resetSignal()
    if (this.inbox.isEmpty()) this.becomeIdle()
    this.wakeTurnWaiters(Option.none())
    this.next()
  }

  /** Nothing leads out of the end. */
  private enter(phase: Phase): void {
    if (this.phase !== "closed") this.phase = phase
  }

  private resetSignal(): void {
    this.signal = Turn.fresh()
    if (this.phase === "stopping") this.phase = "running"
  }

  private becomeIdle(): void {
    this.enter("idle")
    if (this.retained === 0) this.rest()
    else TurnContext.setStatus(this.context, "waiting")
  }

  private rest(): void {
    if (this.shared.permissions.becomeIdle(this.origin.sessionId)) this.publishPermissions()
    TurnContext.setStatus(this.context, "idle")
    this.wakeIdleWaiters()
  }

  private wakeTurnWaiters(end: Option.Option<TurnEnd>): void {
    const { turnOver } = this
    this.turnOver = undefined
    turnOver?.complete(end)
  }

  private wakeIdleWaiters(): void {
    const { idleAgain, lastEnd } = this
    this.idleAgain = undefined
    idleAgain?.complete(lastEnd)
  }

  private publishPermissions(): void {
    const { permissions, policy } = this.shared
    TurnContext.emit(this.context, permissions.told(policy, this.origin.sessionId))
  }

  private returnUnread(): void {
    const { unread } = this.own
    if (unread !== undefined) this.takeBack().forEach(unread)
  }

  // ---------------------------------------------------------------------------------------------------------------
  // compaction between two turns
  // ---------------------------------------------------------------------------------------------------------------

  /**
   * Makes the history as short as the configuration allows: now when idle, else before the next model call. A tool that
   * waits for this in its own session waits for ever. An interrupt does not stop a compaction that has begun.
   */
  get compact(): Effect.Effect<Compacted, CompactionFailed> {
    return Effect.suspend(() => {
      const compacted = this.context.compaction.request()
      if (this.phase === "idle") this.next()
      return compacted
    })
  }

  /** The next turn begins after its end. An interjection ends it, and the next turn then does the compaction. */
  private compactBetweenTurns(): void {
    const { compaction, limits } = this.context
    this.isCompacting = true
    if (this.phase === "idle") this.phase = "running"
    TurnContext.setStatus(this.context, "thinking")
    this.fork(() => {
      // A compaction publishes its own failures.
      const fiber = new TurnFiber({ gracePeriod: limits.stopWithin, failed: () => {} })
      this.begin(fiber)
      const steps = TurnFiber.steps(Effect.interruptible(compaction.run("manual")))
      return this.within({ origin: this.origin, own: undefined, resumed: undefined, span: undefined }, (fork) =>
        fiber.run(steps, () => this.guard(Effect.sync(() => this.endCompaction())), fork)
      )
    })
  }

  private endCompaction(): void {
    const { compaction } = this.context
    if (this.signal.reason !== undefined || this.isOver()) compaction.dismiss()
    const isQuiet = this.inbox.isEmpty() && !this.isOver()
    // A new request may have come meanwhile: checking and ending are one step.
    if (compaction.isRequested() && isQuiet) return this.compactBetweenTurns()
    this.isCompacting = false
    this.running = undefined
    if (isQuiet) this.skipTurn()
    // The turn that words begin does what is still requested.
    else this.take()
  }

  // ---------------------------------------------------------------------------------------------------------------
  // the end
  // ---------------------------------------------------------------------------------------------------------------

  /**
   * Stops the running turn, or the one about to begin, and waits for its end; none when idle. A session that halts while
   * idle has that end, too: a question may come from a child in the background.
   */
  stop(reason: Turn.StopReason): Effect.Effect<Option.Option<TurnEnd>> {
    return Effect.suspend(() => {
      this.haltIdle(reason)
      if (this.phase === "idle" || this.phase === "closed") return Effect.succeed(Option.none<TurnEnd>())
      this.stopRunning(reason)
      return (this.turnOver ??= new OneShot())
    })
  }

  private stopRunning(reason: Turn.StopReason): void {
    this.enter("stopping")
    this.signal.reason ??= reason
    this.running?.stop()
  }

  /** An idle session halts, too: a question may come from a child in the background. */
  private haltIdle(reason: Turn.StopReason): void {
    if (this.phase === "idle" && "halt" in reason) {
      this.lastEnd = Option.some(Turn.Halted({ detail: reason.halt, steps: 0 }))
    }
  }

  /** Ends the session if nothing runs in it, and says whether it did. */
  end(): boolean {
    if (this.hasFinalizers || !this.isIdle() || this.isCompacting) return false
    this.conclude()
    return true
  }

  /** Ends the session: stops the running turn for this reason, begins no other, and waits until it has ended. */
  close(reason: Turn.StopReason): Effect.Effect<void> {
    return Effect.suspend(() => {
      const closing = (this.closing ??= new OneShot())
      this.haltIdle(reason)
      // A turn that has begun publishes its end; one that waits to begin does not begin.
      if (this.running === undefined) this.conclude()
      else this.stopRunning(reason)
      return closing
    })
  }

  /** Ends the session for all that wait for it, although its turn does not end. */
  abandon(): void {
    this.phase = "closed"
    this.lastEnd = Option.some(Turn.neverBegun)
    this.wakeTurnWaiters(this.lastEnd)
    this.wakeIdleWaiters()
    this.requests.close()
    this.context.compaction.close()
  }

  /** It has ended: no further turn. */
  private conclude(): void {
    if (this.phase !== "closed") {
      this.phase = "closed"
      this.running = undefined
      this.returnUnread()
      if (!this.inbox.isEmpty()) this.lastEnd = Turn.unread(this.lastEnd)
      this.wakeTurnWaiters(this.lastEnd)
      this.rest()
      this.requests.close()
      this.context.compaction.close()
    }
    this.closing?.complete()
  }

  /** Whether it has ended, and takes no more turns. */
  isOver(): boolean {
    return this.phase === "closed"
  }

  /** Whether no turn runs, no words wait, and nothing retains it. */
  isIdle(): boolean {
    // An abandoned turn still works in a session that is closed.
    const isWorking = this.phase === "closed" ? this.running !== undefined : this.phase !== "idle"
    return !isWorking && this.retained === 0 && this.inbox.isEmpty()
  }

  /** Waits until it is idle or has ended; yields the last turn's end. */
  get awaitIdle(): Effect.Effect<Option.Option<TurnEnd>> {
    return Effect.suspend(() => {
      if (this.isOver()) return Effect.succeed(this.inbox.isEmpty() ? this.lastEnd : Turn.unread(this.lastEnd))
      if (this.isIdle()) return Effect.succeed(this.lastEnd)
      return (this.idleAgain ??= new OneShot())
    })
  }

  /** Calls the listener once, when it is idle next or has ended. */
  whenIdle(listener: () => void): void {
    ;(this.idleAgain ??= new OneShot()).observe(listener)
  }

  /** Keeps the session busy until the result is called, for work beside its turns. */
  retain(): () => void {
    this.retained++
    let released = false
    return () => {
      if (released) return
      released = true
      this.retained--
      if (!this.isOver() && this.isIdle()) this.rest()
    }
  }

  // ---------------------------------------------------------------------------------------------------------------
  // for its tools and its driver
  // ---------------------------------------------------------------------------------------------------------------

  private servicesOfTools(): Context.Context<never> {
    const { context } = this
    return (this.own.ambient?.(this) ?? Context.empty()).pipe(
      // Always: a child's tools must not take questions of its parent, in whose world it was started.
      Context.add(ResumedRequests.ResumedRequests, this.resumption),
      Context.add(Agenda, context),
      Context.add(HandlerSession, this as Holding),
      Context.add(Aside, (notices, call) => context.tellAside(notices, call))
    )
  }

  // Implements `HandlerSession.Service`.

  atEnd(finalizer: Effect.Effect<void>): Effect.Effect<void> {
    this.hasFinalizers = true
    return Scope.addFinalizer(this.scope, finalizer)
  }

  isRunning(call: ToolCallId): boolean {
    return this.calls.has(call)
  }

  tell(body: AgentEvent.Body): void {
    TurnContext.emit(this.context, body)
  }

  note(text: string): () => void {
    const { id } = this.send({ text, source: "system" }, "along")
    return () => void this.inbox.withdraw(id)
  }

  /** Turns begun so far. */
  turns(): number {
    return this.count
  }

  /** Whether the last of them has no end yet. */
  inTurn(): boolean {
    return this.context.state.correlationId !== undefined
  }

  /** The authority of the running turn: it holds also for tasks that the turn gives to children. */
  bound(): PermissionGate.Authority | undefined {
    return this.context.state.bound
  }

  /** The todo list as its model wrote it last. */
  todos(): ReadonlyArray<Todo> {
    return this.context.state.todos
  }

  /** Counts a model call that is no step of its turns. */
  spent(model: string, usage: AgentEvent.Usage): void {
    this.context.spent(model, usage, "call")
  }

  /** The model of the next model call. */
  get model(): Effect.Effect<Model.Service> {
    return Effect.sync(() => this.context.state.model)
  }

  /** Returns when the journal has it; a journal that cannot be written ends the session at its next entry. */
  setModel(next: Model.Service, thinking?: JournalEntry.Thinking): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.context.state.model = next
      return this.context.journal?.chosen(next.id, thinking) ?? Effect.void
    })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const stageLost: PermissionGate.Authority = () =>
  Effect.succeedSome({
    granted: false,
    method: "stage_grant",
    reason: "the stage of this task ended with its process; report your progress"
  })

/** What a turn has besides the world around its session's start. */
interface Entering {
  readonly origin: Origin.Origin
  /** What its caller has of its own. */
  readonly own: CallerContext.Own | undefined
  /** Present for a turn that another process began. */
  readonly resumed: ResumedRequests.Service | undefined
  /** Its span; undefined when there are none, and for work that is no turn. */
  readonly span: SessionSpan.TurnSpan | undefined
}

/**
 * Where the turns of one session run: in the world around its start, as its origin, with its interactor. The turn of a
 * caller that has something of its own runs in both worlds: see `CallerContext`. The fiber of a turn ends with it, so it enters its
 * world once and restores nothing.
 */
class TurnContextScope {
  /** The context around the start with the interactor: most turns run in it, and their handlers' contexts are kept by it. */
  private usual: Context.Context<never> | undefined
  /** The context of a caller that had nothing of its own in it: most runs have the same one. */
  private plain: Context.Context<never>

  constructor(
    readonly place: DetachedFiber.Place,
    private readonly session: Pick<TurnContext.TurnContext, "interactor" | "spans">
  ) {
    this.plain = place.context
  }

  /** Starts a fiber around the start of the session. It begins after the running code. */
  fork(work: Effect.Effect<void>): void {
    DetachedFiber.unsafeFork(this.place, work)
  }

  /** What a caller has that is not around the start. Call it before the first span of the caller's turn. */
  ownOf(caller: FiberRefs.FiberRefs | undefined): CallerContext.Own | undefined {
    const { fiberRefs } = this.place
    // A caller in the starting fiber, as most are, has nothing to be compared.
    if (caller === undefined || caller === fiberRefs) return undefined
    const own = CallerContext.own(fiberRefs, caller, Interactor.Interactor.key, this.plain)
    if (own?.has(FiberRef.currentContext) !== true) this.plain = FiberRefs.getOrDefault(caller, FiberRef.currentContext)
    const { spans } = this.session
    if (own?.has(DefaultServices.currentServices) === true && spans instanceof Spans.Following) {
      spans.notice(FiberRefs.getOrDefault(caller, DefaultServices.currentServices))
    }
    return own
  }

  /** Runs work until the end of its fiber. */
  enter(entering: Entering, work: Work): Effect.Effect<void> {
    // The interactor is among what is entered; the types do not know.
    return Effect.zipRight(
      Effect.updateFiberRefs((id, refs) => this.entered(id, refs, entering)),
      work as Effect.Effect<void>
    )
  }

  private entered(
    id: FiberId.Single,
    refs: FiberRefs.FiberRefs,
    { origin, own, resumed, span }: Entering
  ): FiberRefs.FiberRefs {
    const around = own === undefined ? refs : CallerContext.entered(id, refs, own)
    const asking = own === undefined ? (this.usual ??= this.asking(around)) : this.asking(around)
    const outside = resumed === undefined ? asking : Context.add(asking, ResumedRequests.ResumedRequests, resumed)
    const context = span === undefined ? outside : span.around(outside, new Spans.In(around))
    const entries = [...Interactor.locals(this.session.interactor, context, id), Origin.local(origin, id)] as const
    return FiberRefs.updateManyAs(around, { entries })
  }

  private asking(refs: FiberRefs.FiberRefs): Context.Context<never> {
    const context = FiberRefs.getOrDefault(refs, FiberRef.currentContext)
    return Context.add(context, Interactor.Interactor, this.session.interactor)
  }
}
