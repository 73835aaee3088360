/**
 * Runs the calls of one step: prepare, execute, report.
 *
 * ```
 *  proposed ─► prepare, one after the other ─┬─ allowed ─► execute, a bounded number at once ─► report ─► results
 *              (this is where people are     │                                                  ▲
 *              asked)                        └─ refused, invalid, cancelled ────────────────────┘
 * ```
 *
 * Calls are prepared in proposal order, and each starts as soon as it is allowed. Results are reported in proposal order. In
 * every case each proposed call gets exactly one result.
 *
 * While a call waits to be decided, its batch is a section of the turn: cancelling that call alone interrupts the
 * section, and the batch continues with the next. Work that does not stop, such as an audit that never writes, is
 * abandoned.
 *
 * Each of many calls runs in a fiber of its own. A lone call runs in the fiber of its turn: a fork and a join cost 10 µs, a
 * quarter of a turn of the bench, which then misses its must. The FiberRefs of that fiber are restored behind the call.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Defect from "../core/Defect.js"
import type { RequestId } from "../core/Id.js"
import * as LazyModule from "../core/LazyModule.js"
import * as Origin from "../core/Origin.js"
import * as Region from "../core/Region.js"
import * as Spans from "../core/Spans.js"
import * as ToolOutcome from "../core/ToolOutcome.js"
import * as CallerContext from "../core/CallerContext.js"
import type { BatchPlace } from "../interaction/InteractionRequest.js"
import type { Interactor } from "../interaction/Interactor.js"
import * as DetachedFiber from "../internal/DetachedFiber.js"
import * as GracePeriod from "../internal/GracePeriod.js"
import { isImmediate } from "../internal/Immediate.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type { Company } from "../permission/Authority.js"
import type { Allowed, Denied, OpenCheck, Pending, Verdict } from "../permission/PermissionGate.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ToolSummary from "../tool/ToolSummary.js"
import type { Generated } from "./ReplyCollector.js"
import type { RunningCall } from "./RunningCalls.js"
import * as SessionSpan from "./SessionSpan.js"
import { emit, flushOutput, setStatus, type TurnContext } from "./TurnContext.js"
import type { TurnFiber } from "./TurnFiber.js"
import {
  leaveNotices,
  noticesOf,
  presentable,
  resultOf,
  tellEnd,
  tooMany,
  tookTooLong,
  unknownTool
} from "./ToolResultEncoding.js"

/** Runs an allowed call; undefined when its result is already known. */
type Prepared = (() => Effect.Effect<void>) | undefined

/** What follows: more work of the batch, nothing, or the end of a turn that was stopped. */
export type State = "on" | "done" | "broken"

/** A call, by its place among the others. */
interface Subject {
  readonly index: number
  readonly call: ToolCall
  readonly entry: ToolRegistry.Entry
}

/** A call that waits for its decision. */
interface Asking {
  readonly index: number
  readonly call: ToolCall
  readonly check: OpenCheck
  readonly entry: RunningCall
}

export class ToolBatch {
  /** The call that was proposed alone. */
  private readonly only: ToolCall | undefined
  /** What the calls of one tool know of each other. */
  private readonly company: Company | undefined
  /** Runs the lone call, once it is allowed. */
  private run: Prepared
  /** The lone call, once it runs. */
  private lone: RunningCall | undefined
  // Results by the call's index. Allocated at exact length, because thousands of batches of one call may wait for
  // approval.
  private readonly known: Array<ToolResult | undefined>
  private readonly startedAt: Array<number | undefined>
  /** Summaries of the proposed arguments: a call mostly runs with them. */
  private readonly summaries: Array<string | undefined>
  private room = true
  private spans: Array<Spans.Open | undefined> | undefined
  private running: Array<RunningCall> | undefined
  /** Calls that have started or are about to, and have not ended. */
  private open = 0
  /** The next call to be prepared. */
  private next = 0
  private asking: Asking | undefined
  private queued: QueuedCalls | undefined
  /** The result of the last call, if the output limit cut the call off. */
  cutOff: string | undefined
  private isStopped = false
  private isLate = false
  private refused: Set<number> | undefined
  private notify: (() => void) | undefined
  /** The FiberRefs of the turn's fiber before its first call. */
  private outer: CallerContext.Kept | undefined
  private crashes: Array<readonly [ToolCall, Cause.Cause<unknown>]> | undefined
  /** Checks that were abandoned and whose end is not recorded yet. */
  private abandonedChecks: Array<Left> | undefined

  /** `before`: the state of each call in the process that first ran them. */
  constructor(
    private readonly session: TurnContext,
    readonly calls: ReadonlyArray<ToolCall>,
    /** The model's reply that proposed them. */
    readonly content: Generated["content"],
    private readonly before: ReadonlyMap<string, SessionSnapshot.CallSnapshot> | undefined,
    private readonly turnFiber: TurnFiber,
    /** The result of the last call if its arguments are not whole, when the output limit ended the reply. */
    private readonly cutOffResult?: string | undefined
  ) {
    const { length } = calls
    this.only = length === 1 ? calls[0] : undefined
    this.company = length === 1 ? undefined : new SiblingCalls(this)
    this.known = new Array<ToolResult | undefined>(length)
    this.startedAt = new Array<number | undefined>(length)
    this.summaries = new Array<string | undefined>(length)
  }

  /** Publishes that the calls were proposed. Once, before anything runs. */
  propose(): void {
    const { session } = this
    setStatus(session, "executing")
    for (const [index, call] of this.calls.entries()) {
      if (this.before?.get(call.id)?.ended !== undefined) continue
      const summary = ToolSummary.ofCall(call.params, session.redactor)
      this.summaries[index] = summary
      const params = session.redactor.value(call.params)
      const proposed = {
        toolCallId: call.id,
        tool: call.name,
        summary,
        kind: session.tools.get(call.name)?.kind,
        arguments: params
      }
      this.room = emit(session, { _tag: "ToolCallProposed", ...proposed })
    }
  }

  // ---- sections of the turn ----

  /**
   * The next work, as a section of the turn: deciding about a lone call, then running it; or deciding about many, each
   * of which runs in a fiber of its own. It must be run where it is made.
   */
  work(): Effect.Effect<void, never, Interactor> {
    const { only, run } = this
    if (only === undefined) {
      this.session.calls.waiting = this
      return this.whenRoom(() => Effect.gen(() => this.runAll()))
    }
    // A turn that was stopped meanwhile decides nothing and runs nothing.
    if (this.turnFiber.isStopped) return Effect.interrupt
    if (run !== undefined) return this.runLone(only, run)
    const preparing = this.whenRoom(() => this.prepare(0, only))
    // Most calls are decided by a rule: they run in the same section.
    if (isImmediate(preparing)) return preparing.value === undefined ? Effect.void : this.runLone(only, preparing.value)
    return Effect.map(preparing, (run) => {
      this.run = run
    })
  }

  /**
   * The state after a section: `on` (more work), `done`, or `broken` (stopped). There is more work when a lone call was
   * allowed, and when one of many was cancelled while it waited to be decided.
   */
  stateAfter(exit: Exit.Exit<void>): State {
    const { lone, only } = this
    if (only === undefined) return Exit.isSuccess(exit) ? "done" : this.settleCut(exit.cause) ? "on" : "broken"
    if (lone !== undefined) {
      if (Exit.isFailure(exit)) this.failByDefect(0, only, exit.cause)
      this.session.calls.release(lone)
      return "done"
    }
    if (Exit.isSuccess(exit)) return this.run === undefined ? "done" : "on"
    if (Cause.isInterrupted(exit.cause)) return this.settleCut(exit.cause) ? "done" : "broken"
    this.failByDefect(0, only, exit.cause)
    return "done"
  }

  /** After an interruption: true when a single call was cancelled while it waited to be decided, and has its result. */
  private settleCut(cause: Cause.Cause<never>): boolean {
    const { asking } = this
    this.asking = undefined
    if (asking === undefined || !Cause.isInterrupted(cause)) return false
    const { call, entry, index } = asking
    const { cancelled } = entry
    if (cancelled !== undefined) this.endUnfinished(index, call, cancelled)
    this.session.calls.release(entry)
    return cancelled !== undefined && !this.turnFiber.isStopped
  }

  /** Work that runs or decides a call does not stop: the turn continues without it. */
  abandon(): void {
    const { asking, lone } = this
    if (lone !== undefined) {
      this.session.calls.abandon(lone)
      return
    }
    this.isLate = true
    if (asking === undefined) return
    const { call, check, entry, index } = asking
    check.leave()
    this.noteAbandoned(check)
    if (entry.cancelled === undefined) this.endUnfinished(index, call)
    this.session.calls.abandon(entry)
  }

  /** Interrupts running calls; none is started any more. */
  stop(): Effect.Effect<void> {
    this.isStopped = true
    const { calls, limits } = this.session
    // The abandoned work has already used the grace period.
    const gracePeriod = this.isLate ? 0 : limits.stopWithin
    const stopped = Effect.suspend(() => calls.stop(this.running ?? [], gracePeriod))
    return this.queued === undefined ? stopped : Effect.zipRight(this.queued.breakOff(gracePeriod), stopped)
  }

  /** Cancels a call that is not being decided yet. False: it is, or it is none of these. */
  skip(id: string, why: string): boolean {
    for (const [index, call] of this.calls.entries()) {
      if (call.id !== id || index < this.next || this.known[index] !== undefined) continue
      this.endUnfinished(index, call, why)
      return true
    }
    return false
  }

  private whenRoom<A, R>(work: () => Effect.Effect<A, never, R>): Effect.Effect<A, never, R> {
    return this.room ? work() : Effect.flatMap(this.session.bus.awaitRoom, work)
  }

  /** A method of the class, not a generator function for each batch: V8 would keep each in the old generation. */
  private *runAll() {
    const { calls, session } = this
    const { parallelTools } = session.limits
    // Cleanup after an interrupted section.
    yield* Effect.uninterruptible(Region.once(this.cleanUp()))
    if (calls.length > parallelTools)
      this.queued ??= new QueuedCalls(parallelTools, (pending) => this.noteAbandoned(pending))
    let place: Place | undefined
    while (this.next < calls.length) {
      const index = this.next++
      const call = calls[index]
      if (call === undefined || this.known[index] !== undefined) continue
      const preparing = this.prepare(index, call)
      const run = isImmediate(preparing)
        ? preparing.value
        : yield* Effect.catchAllCause(preparing, (cause) => {
            if (Cause.isInterrupted(cause)) return Effect.failCause(cause)
            this.asking = undefined
            this.failByDefect(index, call, cause)
            return nothing
          })
      if (run === undefined || this.isStopped) continue
      place ??= yield* here
      this.start(index, call, run, place)
    }
    yield* this.back()
    yield* this.awaitAll
    yield* this.cleanUp()
  }

  private get awaitAll(): Effect.Effect<void> {
    return Effect.async((resume) => {
      const over = () => resume(Effect.void)
      if (this.open === 0) over()
      else this.notify = over
    })
  }

  // ---- prepare ----

  /** Decides about one call. */
  private prepare(index: number, call: ToolCall): Effect.Effect<Prepared, never, Interactor> {
    const { before } = this
    const entry = this.entryOf(call.name)
    try {
      if (before === undefined) return this.decide(index, call, entry)
    } catch (thrown) {
      return Effect.die(thrown)
    }
    return Effect.flatMap(callResumption(), (CallResumption) => {
      const resumption = CallResumption.of(before.get(call.id), entry)
      return resumption === undefined ? this.decide(index, call, entry) : this.resume(index, call, entry, resumption)
    })
  }

  /** What is left to do of a call that has got so far in another process. */
  private resume(
    index: number,
    call: ToolCall,
    entry: ToolRegistry.Entry | undefined,
    resumption: CallResumption
  ): Effect.Effect<Prepared> {
    switch (resumption._tag) {
      case "Ended":
        this.known[index] = resumption.result
        return nothing
      case "Ends":
        this.end(index, call, resumption.outcome, resumption.result)
        return nothing
      case "Denied":
        this.refuse(index, call, resumption)
        return nothing
      case "Allowed": {
        if (entry === undefined) return nothing
        const { gate, state } = this.session
        const look = () => gate.lookAgain({ call, entry }, resumption, state.authority)
        return Effect.succeed(() =>
          Effect.flatMap(look(), (verdict) => this.executeUnlessDenied({ index, call, entry }, verdict))
        )
      }
    }
  }

  private decide(
    index: number,
    call: ToolCall,
    entry: ToolRegistry.Entry | undefined
  ): Effect.Effect<Prepared, never, Interactor> {
    const { session } = this
    if (index >= session.limits.callsPerStep) {
      this.end(index, call, "invalid", tooMany(this.calls.length, session.limits.callsPerStep))
      return nothing
    }
    if (entry === undefined || entry.handler === undefined) {
      this.end(index, call, "invalid", unknownTool(session.tools, call.name))
      return nothing
    }
    const decoded = entry.decode(call.params)
    if (Either.isLeft(decoded)) {
      if (index === this.calls.length - 1) this.cutOff = this.cutOffResult
      this.end(index, call, "invalid", this.cutOff ?? `Invalid arguments for ${call.name}: ${decoded.left}`)
      return nothing
    }
    // Merged only for tools that check or preview their arguments; many calls wait for approval without it.
    const looks = entry.validate !== undefined || entry.preview !== undefined
    const context = looks ? session.contextOf(entry, currentContext()) : undefined
    const proposal = { call, entry, params: decoded.right, context, company: this.company }
    const check = session.gate.open(proposal, { authority: session.state.authority, held: this.queued !== undefined })
    const { verdict } = check
    if (isImmediate(verdict)) return this.apply(index, call, entry, verdict.value)
    // Slow work and code of the tool run with the call's FiberRefs.
    const enter = Effect.updateFiberRefs((id, refs) => this.enter(call, id, refs, undefined))
    const running = session.calls.begin(call, this.turnFiber, doNothing)
    this.asking = { index, call, check, entry: running }
    return Effect.flatMap(enter, () =>
      Effect.flatMap(verdict, (verdict) => {
        this.asking = undefined
        session.calls.release(running)
        const applied = this.apply(index, call, entry, verdict)
        // A lone call runs with its FiberRefs next, or ends the step.
        return this.only === undefined ? Effect.zipRight(this.back(), applied) : applied
      })
    )
  }

  private apply(index: number, call: ToolCall, entry: ToolRegistry.Entry, verdict: Verdict): Effect.Effect<Prepared> {
    // It may have been abandoned meanwhile.
    if (this.known[index] !== undefined) return nothing
    if (verdict._tag === "Denied") {
      this.refuse(index, call, verdict)
      return nothing
    }
    const { queued } = this
    if (verdict.pending === undefined || queued === undefined) {
      return Effect.succeed(() => this.execute({ index, call, entry }, verdict))
    }
    queued.hold(index, verdict.pending)
    return Effect.succeed(() => queued.settle(index, (last) => this.executeUnlessDenied({ index, call, entry }, last)))
  }

  private refuse(index: number, call: ToolCall, { outcome, refused, text }: Denied): void {
    if (refused === true) (this.refused ??= new Set()).add(index)
    this.end(index, call, outcome, text)
  }

  entryOf(name: string): ToolRegistry.Entry | undefined {
    return this.session.tools.get(name)
  }

  /** Whether a call is still to be decided. */
  isToCome(index: number, { id }: ToolCall): boolean {
    const { callsPerStep } = this.session.limits
    return index < callsPerStep && this.known[index] === undefined && this.before?.get(id)?.decided === undefined
  }

  // ---- execute ----

  private runLone(call: ToolCall, run: () => Effect.Effect<void>): Effect.Effect<void> {
    const over = ({ cancelled }: RunningCall) => this.endUnfinished(0, call, cancelled)
    this.lone = this.session.calls.begin(call, this.turnFiber, over, this.hasBegun)
    return begin(run)
  }

  /** Starts one of many calls in a fiber of its own, with the call's FiberRefs. */
  private start(index: number, call: ToolCall, run: () => Effect.Effect<void>, place: Place): void {
    const { queued, session } = this
    const { calls, tools } = session
    const entry = tools.get(call.name)
    const { context: outer } = place.world
    const context = entry === undefined ? outer : session.contextOf(entry, outer)
    const fiber = fork(place, call, context, queued === undefined ? run : () => queued.admit(index, run))
    this.open++
    const over = ({ cancelled }: RunningCall) => {
      // A guard check that does not stop has reported nothing yet.
      queued?.leave(index)
      this.endUnfinished(index, call, cancelled)
      this.open--
      if (this.open === 0) this.notify?.()
    }
    const running = calls.begin(call, fiber, over, () => this.startedAt[index] !== undefined)
    this.running ??= []
    this.running.push(running)
    fiber.addObserver((exit) => {
      if (Exit.isFailure(exit)) this.failByDefect(index, call, exit.cause)
      calls.release(running)
    })
  }

  /** Runs the call unless the last guard check refused it. */
  private executeUnlessDenied(subject: Subject, verdict: Verdict): Effect.Effect<void> {
    if (verdict._tag === "Allowed") return this.execute(subject, verdict)
    this.refuse(subject.index, subject.call, verdict)
    return Effect.void
  }

  /** The start is recorded before the call runs, so that a resuming process does not run it again. */
  private execute(subject: Subject, allowed: Allowed): Effect.Effect<void> {
    const { journal } = this.session
    if (journal === undefined) return this.handle(subject, allowed)
    const { call, index } = subject
    const { redactor } = this.session
    const waiting = (why: string) =>
      void emit(this.session, {
        _tag: "AgentError",
        message: redactor.text(`${call.name} is allowed, and begins once the session can be written. ${why}`)
      })
    const started = journal.started(call.id, call.name, allowed.encoded, allowed.byPerson ? waiting : undefined)
    return Effect.matchEffect(started, {
      onFailure: (reason) =>
        Effect.sync(() => {
          this.end(index, call, "failed", `${call.name} was not run: ${reason}`)
        }),
      onSuccess: () => Effect.zipRight(this.handle(subject, allowed), Effect.ignore(journal.flush))
    })
  }

  private handle({ call, entry, index }: Subject, allowed: Allowed): Effect.Effect<void> {
    const { session } = this
    const began = session.now()
    this.startedAt[index] = began
    const proposed = allowed.encoded === call.params ? this.summaries[index] : undefined
    const summary = proposed ?? ToolSummary.ofCall(allowed.encoded, session.redactor)
    emit(session, { _tag: "ToolCallStarted", toolCallId: call.id, tool: call.name, summary })
    const report = (exit: Exit.Exit<unknown, unknown>) => {
      const { misfit, outcome, result } = resultOf(entry, exit)
      const notices = noticesOf(allowed, outcome === "interrupted" ? undefined : this.cutNotice(call))
      const room = this.end(index, call, outcome, result, began, notices)
      const done = this.only === undefined ? Effect.void : this.back()
      const restored = room ? done : Effect.zipRight(session.bus.awaitRoom, done)
      if (misfit !== undefined) return Effect.zipRight(this.logMisfit(call, misfit), restored)
      return Exit.isFailure(exit) && Defect.isIn(exit.cause)
        ? Effect.zipRight(this.log(call.name, call, exit.cause), restored)
        : restored
    }
    return Effect.matchCauseEffect(this.callHandler({ call, entry, index }, allowed), {
      onFailure: (cause) => report(Exit.failCause(cause)),
      onSuccess: (value) => report(Exit.succeed(value))
    })
  }

  /** The handler, with the call's FiberRefs until its fiber ends or the batch restores them. */
  private callHandler(
    { call, entry, index }: Subject,
    { continuation, encoded, params, paths, privileges }: Allowed
  ): Effect.Effect<unknown, unknown> {
    const { handler, timeout } = entry
    const { session } = this
    if (handler === undefined) return Effect.dieMessage(`${entry.name} has no handler`)
    const { denied } = session.gate
    const isDenying = denied.length > 0
    const handle = () =>
      paths === undefined && privileges === undefined && !isDenying
        ? handler(params)
        : Origin.withDecision({
            ...(isDenying && { denied }),
            ...(paths && { paths }),
            ...(privileges && { privileges })
          })(Effect.suspend(() => handler(params)))
    const asksAgain = session.journal === undefined || entry.resumable || entry.idempotent || entry.continues === true
    const goOn = () => (continuation === undefined ? handle() : Origin.continuing(continuation)(Effect.suspend(handle)))
    const begin = () => (asksAgain ? goOn() : Origin.once(Effect.suspend(handle)))
    const work = () =>
      timeout === undefined
        ? begin()
        : Effect.timeoutFail(Effect.suspend(begin), { duration: timeout, onTimeout: () => tookTooLong })
    const open = (place: Spans.Place) => {
      const span = session.spans.open(() => SessionSpan.tool(session, call, encoded), place)
      if (span !== undefined) (this.spans ??= [])[index] = span
      return span
    }
    // The fiber of one of many calls has them already.
    if (this.only === undefined) {
      if (Spans.areOff(session.spans)) return Effect.suspend(work)
      const entered = Effect.updateFiberRefs((id, refs) => {
        const span = open(new Spans.In(refs))
        return span === undefined ? refs : Spans.entered(id, refs, span)
      })
      return Effect.flatMap(entered, work)
    }
    const enter = Effect.updateFiberRefs((id, refs) => {
      const outer = FiberRefs.getOrDefault(refs, FiberRef.currentContext)
      const context = session.contextOf(entry, outer)
      const span = Spans.areOff(session.spans) ? undefined : open(new Spans.In(refs))
      return this.enter(call, id, refs, span === undefined ? context : span.around(context))
    })
    return Effect.flatMap(enter, work)
  }

  // ---- report ----

  /** Results in proposal order; calls without a result count as cancelled. Call it when nothing runs any more. */
  results(): ReadonlyArray<ToolResult> {
    if (this.session.calls.waiting === this) this.session.calls.waiting = undefined
    return this.calls.flatMap((call, index) => {
      this.endUnfinished(index, call)
      return this.known[index] ?? []
    })
  }

  /** Whether somebody who was asked refused the call. */
  readonly isRefused = (index: number): boolean => this.refused?.has(index) === true

  /** Records a defect in preparing the call: the call fails, not the turn. */
  private failByDefect(index: number, call: ToolCall, cause: Cause.Cause<unknown>): void {
    if (Cause.isInterruptedOnly(cause)) return
    ;(this.crashes ??= []).push([call, cause])
    this.end(index, call, "failed", Defect.sentence(call.name), this.startedAt[index])
  }

  /** Whether the tool of the lone call has begun. */
  readonly hasBegun = (): boolean => this.lone !== undefined && this.startedAt[0] !== undefined

  private cutNotice({ id }: ToolCall): string | undefined {
    if (this.session.calls.isCancelled(id)) return ToolOutcome.cut("The user cancelled this call")
    return this.isStopped || this.turnFiber.isStopped ? ToolOutcome.cut("The call was cancelled") : undefined
  }

  // An interrupted call publishes nothing itself; this does it.
  private endUnfinished(index: number, call: ToolCall, why = "The call was cancelled"): void {
    if (this.known[index] !== undefined) return
    const began = this.startedAt[index]
    if (began === undefined) this.end(index, call, "cancelled", `${why}.`)
    else this.end(index, call, "interrupted", ToolOutcome.unknownEffect(ToolOutcome.cut(why)), began)
  }

  /** False: the bus is full. */
  private end(
    index: number,
    call: ToolCall,
    outcome: ToolOutcome.ToolOutcome,
    result: unknown,
    startedAt?: number,
    notices: ReadonlyArray<string> = []
  ): boolean {
    if (this.known[index] !== undefined) return true
    const { session } = this
    leaveNotices(session, call, notices)
    const shown = presentable(session, result)
    const unusable = Either.isLeft(shown)
    const toolResult: ToolResult = {
      id: call.id,
      name: call.name,
      outcome: unusable ? "failed" : outcome,
      result: unusable ? `${call.name} ran, and its result cannot be written as JSON: ${shown.left}.` : shown.right
    }
    this.known[index] = toolResult
    session.journal?.ended(toolResult)
    flushOutput(session, call.id)
    const room = tellEnd(session, toolResult, startedAt)
    SessionSpan.toolEnded(session, this.spans?.[index], toolResult)
    return room
  }

  // ---- behind the calls ----

  /**
   * The FiberRefs of a call in the turn's fiber: its identity and the tool's own context. Keeps those that the fiber had
   * before its first call.
   */
  private enter(
    call: ToolCall,
    id: FiberId.Single,
    refs: FiberRefs.FiberRefs,
    context: Context.Context<never> | undefined
  ): FiberRefs.FiberRefs {
    this.outer ??= { id, refs }
    const origin = Origin.inCall(call.id, id, refs)
    return FiberRefs.updateManyAs(refs, {
      entries: context === undefined ? [origin] : [origin, [FiberRef.currentContext, [[id, context]]]]
    })
  }

  /** Restores the FiberRefs; not in another leg of the turn, which never had them. */
  private back(): Effect.Effect<void> {
    const { outer } = this
    if (outer === undefined) return Effect.void
    this.outer = undefined
    return CallerContext.back(outer)
  }

  /** Restores the FiberRefs, logs crashes and records abandoned checks. */
  cleanUp(): Effect.Effect<void> {
    const { crashes, abandonedChecks } = this
    if (crashes === undefined && abandonedChecks === undefined) return this.back()
    this.crashes = undefined
    this.abandonedChecks = undefined
    const logged = Effect.forEach(crashes ?? [], ([call, cause]) => this.log(call.name, call, cause), { discard: true })
    // In a daemon fiber: the audit itself may be what hangs.
    const written = Effect.forkDaemon(
      Effect.forEach(abandonedChecks ?? [], (check) => check.writeLeft, { discard: true })
    )
    return Effect.zipRight(Effect.zipRight(logged, written), this.back())
  }

  /** A check was abandoned. */
  private noteAbandoned(check: Left): void {
    ;(this.abandonedChecks ??= []).push(check)
  }

  /** Logs that a tool returned what its schema does not allow. */
  private logMisfit(call: ToolCall, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return this.log(`Encoding what ${call.name} returned`, call, cause)
  }

  private log(what: string, { id, name }: ToolCall, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const { origin, redactor } = this.session
    return Defect.log(what, cause, redactor, { session: origin.sessionId, agent: origin.agent, tool: name, call: id })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type CallResumption = import("./CallResumption.js").CallResumption

/** Loaded for the first calls that another process proposed. */
const callResumption = LazyModule.getter(() => import("./CallResumption.js"))

const nothing: Effect.Effect<Prepared> = Effect.succeed(undefined)

const currentContext = () => Option.getOrThrow(Fiber.getCurrentFiber()).currentContext

const doNothing = () => {}

/** A check that was abandoned. */
type Left = Pick<Pending, "writeLeft">

/** Where calls are started: the world of a fiber at one moment. */
interface Place {
  readonly world: Runtime.Runtime<never>
  /** Whose FiberRefs these are. */
  readonly id: FiberId.Single
}

/** The place of the running fiber; what is started there can be interrupted where that fiber can. */
const here: Effect.Effect<Place> = Effect.fiberIdWith((id) => Effect.map(Effect.runtime(), (world) => ({ world, id })))

/** Starts one of many calls in a fiber of its own, with the services of its tool. It begins after the running code. */
const fork = (
  { id, world: { fiberRefs, runtimeFlags } }: Place,
  call: ToolCall,
  context: Context.Context<never>,
  run: () => Effect.Effect<void>
): Fiber.RuntimeFiber<void> => {
  const own = FiberRefs.updateManyAs(fiberRefs, { entries: [Origin.inCall(call.id, id, fiberRefs)] })
  return DetachedFiber.unsafeFork(Runtime.make({ context, fiberRefs: own, runtimeFlags }), Effect.suspend(run))
}

/** The first step of a run, in the fiber of its turn: it is made where it is asked for. */
const begin = (run: () => Effect.Effect<void>): Effect.Effect<void> => {
  try {
    return run()
  } catch (thrown) {
    return Effect.die(thrown)
  }
}

/** What the calls of one step know of each other: which are of one tool, and which of those are still to be decided. */
class SiblingCalls implements Company {
  /** For each tool the id of the first request about one of its calls. */
  private first: Map<string, RequestId> | undefined

  constructor(private readonly batch: Pick<ToolBatch, "calls" | "isToCome" | "entryOf">) {}

  placeOf({ id, name }: ToolCall, asked: RequestId): BatchPlace | undefined {
    const alike = this.batch.calls.filter((call) => call.name === name)
    const index = alike.findIndex((call) => call.id === id) + 1
    if (alike.length < 2 || index === 0) return undefined
    this.first ??= new Map()
    const first = this.first.get(name) ?? asked
    this.first.set(name, first)
    return { id: first, index, of: alike.length }
  }

  behind({ id, name }: ToolCall): ReturnType<Company["behind"]> {
    const { batch } = this
    const entry = batch.entryOf(name)
    const at = batch.calls.findIndex((call) => call.id === id)
    let index = 0
    return batch.calls.flatMap((call, position) => {
      if (call.name !== name) return []
      index++
      if (entry === undefined || position <= at || !batch.isToCome(position, call)) return []
      const decoded = entry.decode(call.params)
      return Either.isLeft(decoded) ? [] : [{ index, proposal: { call, entry, params: decoded.right } }]
    })
  }
}

/**
 * Calls of one step that are allowed and wait for room: more were proposed than may run concurrently.
 *
 * ```
 *  held ──room──► last look ──► runs, or refused
 *    └─ stopped ──► broken off: it never ran
 * ```
 */
class QueuedCalls {
  /** By the call's index. */
  private readonly pending = new Map<number, Pending>()
  /** Calls in their last guard check, each in its own fiber, which reports the result. */
  private readonly settling = new Map<number, Pending>()
  private isClosed = false
  private readonly permits: Effect.Semaphore

  /** `left` is called with an abandoned check, which is still to be recorded. */
  constructor(
    atOnce: number,
    private readonly left: (pending: Pending) => void
  ) {
    this.permits = Effect.unsafeMakeSemaphore(atOnce)
  }

  hold(index: number, pending: Pending): void {
    this.pending.set(index, pending)
  }

  /** Runs the call once there is room. A call that is interrupted before that does not run. */
  admit(index: number, run: () => Effect.Effect<void>): Effect.Effect<void> {
    const brokenOff = Effect.suspend(() => this.pending.get(index)?.breakOff ?? Effect.void)
    return Effect.onInterrupt(this.permits.withPermits(1)(Region.once(Effect.suspend(run))), () => brokenOff)
  }

  /** The last guard check. */
  settle(index: number, then: (verdict: Verdict) => Effect.Effect<void>): Effect.Effect<void> {
    const pending = this.pending.get(index)
    if (pending === undefined) return Effect.void
    // It got room while the batch was being stopped.
    if (this.isClosed) return pending.breakOff
    this.pending.delete(index)
    this.settling.set(index, pending)
    return Effect.flatMap(pending.settle, (verdict) => {
      this.settling.delete(index)
      return then(verdict)
    })
  }

  /** Its guard check does not stop: the call counts as stopped. */
  leave(index: number): void {
    for (const pending of [this.pending.get(index), this.settling.get(index)])
      if (pending !== undefined) this.abandon(pending)
    this.pending.delete(index)
    this.settling.delete(index)
  }

  /** Stops all: none of them runs any more. */
  breakOff(gracePeriod: Duration.DurationInput): Effect.Effect<void> {
    this.isClosed = true
    if (this.pending.size === 0) return Effect.void
    const pending = [...this.pending.values()]
    const all = Effect.forEach(pending, ({ breakOff }) => breakOff, { discard: true })
    return Effect.flatMap(Effect.forkDaemon(all), (fiber) =>
      Effect.map(
        GracePeriod.wait((done) => fiber.addObserver(done), gracePeriod),
        (isOver) => {
          if (!isOver) for (const one of pending) this.abandon(one)
        }
      )
    )
  }

  private abandon(pending: Pending): void {
    pending.leave()
    this.left(pending)
  }
}
