/**
 * The loop of a session: it takes turns out of the inbox, one at a time, and publishes how they end.
 *
 * ```
 *  idle ──message──► turn ──TurnEnd──► (more messages? ──► turn) ──► idle
 * ```
 *
 * Its state is read and written in synchronous sections only, so deciding and acting are one step.
 */
import type * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Id from "../core/Id.js"
import type { CorrelationId, MessageId } from "../core/Id.js"
import type { CancelReason, Restore } from "../core/Interruption.js"
import * as Origin from "../core/Origin.js"
import * as Spans from "../core/Spans.js"
import * as World from "../core/World.js"
import type { Message } from "../inbox/Message.js"
import * as Interactor from "../interaction/Interactor.js"
import * as ResumedRequests from "../interaction/ResumedRequests.js"
import { Admission, type Host } from "./Admission.js"
import * as TurnAuthority from "./TurnAuthority.js"
import { TurnFiber, type Work } from "../turn/TurnFiber.js"
import type * as ResumedQuestions from "../journal/ResumedQuestions.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"
import { emit, setStatus, type Own as ContextOwn, type Shared, type TurnContext } from "../turn/TurnContext.js"
import type { CompactionFailed } from "../conversation/CompactionStrategy.js"
import type { Compacted } from "../turn/Compaction.js"
import * as SessionSpan from "../turn/SessionSpan.js"
import * as IdleCompaction from "./IdleCompaction.js"
import * as TokenBudget from "../turn/TokenBudget.js"
import * as Turn from "../turn/Turn.js"
import {
  TurnRequests,
  type Host as RequestHost,
  type RequestedTurn,
  type TurnRequest,
  type Wanted
} from "./TurnRequest.js"
import { Notify } from "../internal/Notify.js"

/** Options of one session that its loop reads. */
export interface Own extends ContextOwn {
  /** Called with a user's words that a turn has not read at its end. Default: they stay, and begin the next turn. */
  readonly unread: ((message: Message) => void) | undefined
}

/** Further input of the loop. */
export interface Given {
  readonly ids: Id.Generator
  /** The session's scope: work beside the turns ends with it. */
  readonly scope: Scope.Scope
  /** Present for a session that another process began. */
  readonly reopening: ResumedQuestions.ResumedQuestions | undefined
}

// A class with lazy fields: thousands of sessions may wait at once.
export class TurnLoop implements Host, RequestHost, IdleCompaction.Loop {
  readonly admission: Admission
  // Busy from the moment a message is filed, not from the moment its turn begins: admission must not race the loop.
  private busy: boolean
  private hasEnded = false
  /** Turns begun so far. */
  count: number
  /** The signal of the running turn, else of the next, so that a turn can be cancelled before it begins. */
  private signal = Turn.fresh()
  /** The running work. */
  private running: { readonly stop: () => void } | undefined
  private lastEnd: Option.Option<Turn.TurnEnd>
  /** Number of works beside the turns, such as a background child. */
  private retained = 0
  private readonly turnWaiters = new Notify<Option.Option<Turn.TurnEnd>>()
  private readonly idleWaiters = new Notify<Option.Option<Turn.TurnEnd>>()
  private readonly requests = new TurnRequests(this)
  /** The request of the running turn, when a caller waits for it. */
  private current: TurnRequest | undefined
  private readonly idleCompaction: IdleCompaction.IdleCompaction
  /** The FiberRefs of the loop: the world around the session's start. */
  private around: FiberRefs.FiberRefs | undefined
  /** The context of a caller that had nothing of its own in it: most runs have the same one. */
  private plain: Context.Context<never> | undefined

  constructor(
    private readonly shared: Pick<Shared, "permissions" | "policy">,
    private readonly own: Own,
    readonly session: TurnContext,
    private readonly given: Given
  ) {
    const { restored } = own
    this.busy = restored?.turn !== undefined
    this.count = restored?.turns ?? 0
    this.lastEnd = Option.fromNullable(restored?.lastEnd)
    this.admission = new Admission(this)
    this.idleCompaction = IdleCompaction.make(session.compaction, this)
  }

  get run(): Effect.Effect<never> {
    const { interactor } = this.session
    const begun = Effect.flatMap(Effect.getFiberRefs, (refs) => {
      this.around = refs
      return this.own.restored === undefined ? this.turns() : Effect.flatMap(this.resumed, () => this.turns())
    })
    const loop = Interactor.inFiber(interactor)(begun)
    const failed = (cause: Cause.Cause<never>) => {
      this.over()
      return Effect.failCause(cause)
    }
    // Only the inside is interruptible: an interrupt before its start must run the finalizer too.
    return Effect.uninterruptible(Effect.catchAllCause(Effect.interruptible(loop), failed))
  }

  awaitTurn(id: MessageId, wanted: Wanted = {}): RequestedTurn {
    const { authority, task } = wanted
    if (task !== undefined || authority !== undefined) {
      this.session.journal?.given(id, task?.toolCallId, authority !== undefined)
    }
    return this.requests.add(id, wanted)
  }

  halt(detail: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      // A question came from a child in the background.
      if (!this.busy && !this.hasEnded) this.lastEnd = Option.some(Turn.Halted({ detail, steps: 0 }))
      return Effect.asVoid(this.stopTurn({ halt: detail }))
    })
  }

  get awaitIdle(): Effect.Effect<Option.Option<Turn.TurnEnd>> {
    return Effect.suspend(() => {
      if (this.hasEnded) return Effect.succeed(this.session.inbox.isEmpty() ? this.lastEnd : Turn.unread(this.lastEnd))
      return this.rests() ? Effect.succeed(this.lastEnd) : this.idleWaiters.wait()
    })
  }

  end(): boolean {
    if (!this.rests() || this.idleCompaction.isRunning()) return false
    this.over()
    return true
  }

  /** What runs does not let itself be stopped: nobody waits for it any longer. */
  abandon(): void {
    this.hasEnded = true
    this.lastEnd = Option.some(Turn.neverBegun)
    this.turnWaiters.wake(this.lastEnd)
    this.idleWaiters.wake(this.lastEnd)
    this.requests.close()
    this.session.compaction.close()
  }

  retain(): () => void {
    this.retained++
    let released = false
    return () => {
      if (released) return
      released = true
      this.retained--
      if (!this.hasEnded && this.rests()) this.rest()
    }
  }

  get compact(): Effect.Effect<Compacted, CompactionFailed> {
    return Effect.suspend(() => {
      const compacted = this.session.compaction.request()
      if (this.busy || this.hasEnded) return compacted
      return Effect.zipRight(Effect.forkIn(this.idleCompaction.begin(), this.given.scope), compacted)
    })
  }

  // Implements `Admission.Host`, `TurnRequest.Host` and `IdleCompaction.Loop`.

  isBusy(): boolean {
    return this.busy && !this.hasEnded
  }

  wake(): void {
    this.busy = !this.hasEnded
  }

  stopSignal(): Turn.StopSignal {
    return this.signal
  }

  isCompacting(): boolean {
    return this.idleCompaction.isRunning()
  }

  withdraw(id: MessageId): boolean {
    return this.session.inbox.withdraw(id)
  }

  stop(reason: CancelReason): Effect.Effect<unknown> {
    return this.stopTurn({ cancel: reason })
  }

  begun(): void {
    this.busy = true
    setStatus(this.session, "thinking")
  }

  cancellable(work: Work, restore: Restore): Effect.Effect<void> {
    const { interactor, limits, origin } = this.session
    // A compaction publishes its own failures.
    const turnFiber = new TurnFiber({ fork: forkAs(origin), patience: limits.stopWithin, failed: () => {} })
    this.begins(turnFiber)
    return Interactor.withInteractor(interactor)(turnFiber.run(TurnFiber.steps(work), restore))
  }

  isStopped(): boolean {
    return this.signal.reason !== undefined || this.hasEnded
  }

  isQuiet(): boolean {
    return this.session.inbox.isEmpty() && !this.hasEnded
  }

  ended(): void {
    this.running = undefined
    if (this.isQuiet()) this.skip()
  }

  /** Takes turns one after the other, for ever. */
  private turns(): Effect.Effect<never, never, Interactor.Interactor> {
    return Effect.flatMap(this.next, () => this.turns())
  }

  /** Takes the next turn, after a compaction that was requested in the last turn and not done there. */
  private get next(): Work {
    return Effect.suspend(() => {
      if (this.session.compaction.isRequested() && !this.idleCompaction.isRunning()) {
        return Effect.flatMap(this.idleCompaction.begin(), () => this.taken)
      }
      return Effect.flatMap(this.session.inbox.awaitWork, () =>
        Effect.flatMap(this.idleCompaction.settled, () => this.taken)
      )
    })
  }

  /** Only waiting is interruptible: a turn that has begun publishes its end, also when the session ends. */
  private get taken(): Work {
    return Effect.uninterruptibleMask((restore) => {
      // The words that woke the session may have been withdrawn.
      if (this.session.inbox.isEmpty()) {
        if (!this.idleCompaction.isRunning()) this.skip()
        return Effect.void
      }
      const input = this.admission.takeTurn()
      if (input.length > 0) return this.work(input, this.begin(input), restore, undefined)
      this.skip()
      return Effect.void
    })
  }

  /** The turn that another process began. */
  private get resumed(): Work {
    const { restored } = this.own
    if (restored === undefined) return Effect.void
    return Effect.uninterruptibleMask((restore) => {
      if (restored.turn === undefined) {
        this.reopeningOver()
        return Effect.void
      }
      const { correlationId, input, step } = restored.turn
      this.session.state.correlationId = correlationId
      this.current = this.requests.of(input.map((id) => ({ id })))
      TurnAuthority.begin(this.session, this.current, input[0], this.own)
      emit(this.session, { _tag: "TurnStarted", input: SessionSnapshot.inputOf(restored) })
      const begun = { step, batch: restored.batch, caughtUp: () => this.reopeningOver() }
      const work = this.work([], correlationId, restore, begun)
      return Effect.map(Effect.provideService(work, ResumedRequests.ResumedRequests, this.given.reopening), () =>
        this.reopeningOver()
      )
    })
  }

  /** Drops open questions that no call asks again. */
  private reopeningOver(): void {
    this.session.journal?.dropped(this.given.reopening?.end() ?? [])
  }

  private begin(input: ReadonlyArray<Message>): CorrelationId {
    const { session } = this
    this.busy = true
    this.count++
    const correlationId = Id.turn(this.given.ids)
    session.state.correlationId = correlationId
    this.current = this.requests.of(input)
    TurnAuthority.begin(session, this.current, input[0]?.id, this.own)
    session.history.appendInput(input, { beginsTurn: true })
    session.journal?.taken(input, correlationId, 1)
    TokenBudget.begin(session, input)
    const text = session.redactor.text(input.map((message) => message.text).join("\n\n"))
    emit(session, { _tag: "TurnStarted", input: text })
    return correlationId
  }

  private work(
    input: ReadonlyArray<Message>,
    correlationId: CorrelationId,
    restore: Restore,
    begun: Turn.Begun | undefined
  ): Work {
    const { session, signal } = this
    const origin = Origin.inTurn(session.origin, correlationId)
    const turn = new Turn.Turn({
      session,
      stop: signal,
      newCallId: () => this.given.ids.unsafeNext("call"),
      begun,
      output: this.current?.output,
      fork: forkAs(origin)
    })
    this.begins(turn)
    const ended = () => Turn.report(Turn.endOf(signal))
    const world = this.worldOfCaller()
    const traced = SessionSpan.turn(session, { input, origin, ended })(turn.run(input, restore))
    const run = world === undefined ? traced : Effect.map(World.within(world)(traced), () => session.forget())
    return Effect.matchCauseEffect(run, {
      onFailure: (cause) => Effect.flatMap(this.close(), () => Effect.failCause(cause)),
      onSuccess: () => (turn.crash === undefined ? this.close() : Effect.zipRight(turn.logged, this.close()))
    })
  }

  /** What the turn's caller has that is not around the start. */
  private worldOfCaller(): World.Own | undefined {
    const { around, session } = this
    const world = this.current?.world
    if (world === undefined || around === undefined) return undefined
    const context = FiberRefs.getOrDefault(world, FiberRef.currentContext)
    const own = World.own(around, world, Interactor.Interactor.key, this.plain)
    if (own?.has(FiberRef.currentContext) !== true) this.plain = context
    // Before its first span.
    if (own?.has(DefaultServices.currentServices) === true && session.spans instanceof Spans.Following) {
      session.spans.notice(FiberRefs.getOrDefault(world, DefaultServices.currentServices))
    }
    return own
  }

  /** Registers cancellable work; it may have been cancelled before it began. */
  private begins(running: { readonly stop: () => void }): void {
    this.running = running
    if (this.signal.reason !== undefined) running.stop()
  }

  /** The end is durable before it is published; if it cannot be written, the turn has failed. */
  private close(): Effect.Effect<void> {
    const { session } = this
    const { journal, state } = session
    if (journal === undefined) {
      this.finish()
      return Effect.void
    }
    const { signal } = this
    if (state.correlationId !== undefined) journal.turnEnded(state.correlationId, Turn.endOf(signal))
    return Effect.matchEffect(journal.flush, {
      onFailure: (message) => {
        emit(session, { _tag: "AgentError", message })
        signal.end = Turn.unsaved(Turn.endOf(signal), message)
        this.finish()
        return Effect.void
      },
      onSuccess: () => {
        this.finish()
        return Effect.void
      }
    })
  }

  private finish(): void {
    const { compaction, inbox, origin, redactor, state } = this.session
    const end = Turn.endOf(this.signal)
    this.lastEnd = Option.some(end)
    this.signal = Turn.fresh()
    this.running = undefined
    state.output = undefined
    state.bound = undefined
    const suspended = this.shared.permissions.endTurn(origin.sessionId)
    const { detail, reason, steps } = Turn.report(end)
    if (detail === undefined) emit(this.session, { _tag: "TurnEnded", reason, steps })
    else emit(this.session, { _tag: "TurnEnded", reason, steps, detail: redactor.text(detail) })
    state.correlationId = undefined
    this.giveBack()
    if (suspended) this.tellPermissions()
    if (inbox.isEmpty() && !compaction.isRequested()) this.becomeIdle()
    this.turnWaiters.wake(this.lastEnd)
    const { current } = this
    // It holds the world of its caller.
    this.current = undefined
    if (current !== undefined) this.requests.fulfil(current, end)
  }

  /** The words that were to begin a turn are gone; others may have come. */
  private skip(): void {
    this.signal = Turn.fresh()
    if (this.session.inbox.isEmpty()) this.becomeIdle()
    this.turnWaiters.wake(Option.none())
  }

  private becomeIdle(): void {
    this.busy = false
    if (this.retained === 0) this.rest()
    else setStatus(this.session, "waiting")
  }

  private rest(): void {
    if (this.shared.permissions.becomeIdle(this.session.origin.sessionId)) this.tellPermissions()
    setStatus(this.session, "idle")
    this.idleWaiters.wake(this.lastEnd)
  }

  rests(): boolean {
    return !this.busy && this.retained === 0 && this.session.inbox.isEmpty()
  }

  private tellPermissions(): void {
    const { permissions, policy } = this.shared
    const { default: fallback, suspension } = permissions.status(policy, this.session.origin.sessionId)
    emit(this.session, {
      _tag: "PermissionStatusChanged",
      default: fallback,
      ...(suspension === undefined ? {} : { suspension })
    })
  }

  private giveBack(): void {
    const { unread } = this.own
    if (unread !== undefined) this.admission.takeBack().forEach(unread)
  }

  stopTurn(reason: NonNullable<Turn.StopSignal["reason"]>): Effect.Effect<Option.Option<Turn.TurnEnd>> {
    return Effect.suspend(() => {
      if (!this.busy || this.hasEnded) return Effect.succeed(Option.none<Turn.TurnEnd>())
      this.signal.reason ??= reason
      this.running?.stop()
      return this.turnWaiters.wait()
    })
  }

  get isOver(): boolean {
    return this.hasEnded
  }

  /** The loop has ended: no further turn. */
  private over(): void {
    if (this.hasEnded) return
    this.hasEnded = true
    this.giveBack()
    if (!this.session.inbox.isEmpty()) this.lastEnd = Turn.unread(this.lastEnd)
    this.turnWaiters.wake(this.lastEnd)
    this.busy = false
    this.rest()
    this.requests.close()
    this.session.compaction.close()
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const forkAs = (origin: Origin.Origin) => (leg: Work) => Effect.forkDaemon(Origin.inFiber(origin)(leg))
