/**
 * Runs the calls of one step.
 *
 * Calls are prepared one after the other in proposal order; this is where approvals are asked. Each starts as soon as
 * it is allowed, a bounded number concurrently. Results are reported in proposal order. In every case each proposed
 * call gets exactly one result.
 *
 * While a call waits to be decided, its batch is a section of the turn: cancelling that call alone interrupts the
 * section, and the batch continues with the next. Work that does not stop, such as an audit that never writes, is
 * abandoned.
 *
 * A lone call runs in the fiber of its turn, which spares it a fiber of its own: see `TurnFiber`.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Region from "../core/Region.js"
import { isImmediate } from "../internal/Immediate.js"
import type * as Spans from "../core/Spans.js"
import * as Defect from "../core/Defect.js"
import type { Interactor } from "../interaction/Interactor.js"
import type { Denied, OpenCheck, Verdict } from "../permission/PermissionGate.js"
import * as ToolOutcome from "../core/ToolOutcome.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ToolSummary from "../tool/ToolSummary.js"
import type { Company } from "../permission/Authority.js"
import { BatchCleanup } from "./BatchCleanup.js"
import { QueuedCalls } from "./QueuedCalls.js"
import type { Generated } from "./ReplyCollector.js"
import type { TurnFiber } from "./TurnFiber.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import * as LateModule from "../core/LateModule.js"
import * as CallFiber from "./CallFiber.js"
import type { RunningCall } from "./RunningCalls.js"
import { SameTool } from "./SameTool.js"
import * as SessionSpan from "./SessionSpan.js"
import * as ToolRun from "./ToolRun.js"
import { leaveNotices, presentable, tellEnd, tooMany, unknownTool } from "./ToolResultEncoding.js"
import { emit, flushOutput, setStatus, type TurnContext } from "./TurnContext.js"

/** Runs an allowed call; undefined when its result is already known. */
export type Prepared = (() => Effect.Effect<void>) | undefined

/** What follows: more work of the batch, nothing, or the end of a turn that was stopped. */
export type State = "on" | "done" | "broken"

/** A call that waits for its decision. */
interface Asking {
  readonly index: number
  readonly call: ToolCall
  readonly check: OpenCheck
  readonly entry: RunningCall
}

export class ToolBatch implements ToolRun.Host {
  /** Cleanup after the calls. */
  readonly cleanup: BatchCleanup
  /** The call that was proposed alone. */
  readonly only: ToolCall | undefined
  /** What the calls of one tool know of each other. */
  private readonly company: Company | undefined
  /** Runs the lone call, once it is allowed. */
  private run: Prepared
  /** The lone call, once it runs. */
  private lone: RunningCall | undefined
  // Results by the call's index. Allocated at exact length, because thousands of batches of one call may wait for
  // approval.
  readonly known: Array<ToolResult | undefined>
  readonly startedAt: Array<number | undefined>
  /** Summaries of the proposed arguments: a call mostly runs with them. */
  readonly summaries: Array<string | undefined>
  private room = true
  private spans: Array<Spans.Open | undefined> | undefined
  private running: Array<RunningCall> | undefined
  /** Calls that have started or are about to, and have not ended. */
  private open = 0
  /** The next call to be prepared. */
  private next = 0
  private asking: Asking | undefined
  private held: QueuedCalls | undefined
  /** The result of the last call, if the output limit cut the call off. */
  cutOff: string | undefined
  private isStopped = false
  private isLate = false
  private refused: Set<number> | undefined
  private notify: (() => void) | undefined

  /** `before`: the state of each call in the process that first ran them. */
  constructor(
    readonly session: TurnContext,
    readonly calls: ReadonlyArray<ToolCall>,
    /** The model's reply that proposed them. */
    readonly content: Generated["content"],
    private readonly before: ReadonlyMap<string, SessionSnapshot.CallSnapshot> | undefined,
    private readonly turnFiber: TurnFiber,
    /** The result of the last call if its arguments are not whole, when the output limit ended the reply. */
    private readonly cutOffResult?: string | undefined
  ) {
    const { length } = calls
    this.cleanup = new BatchCleanup(session)
    this.only = length === 1 ? calls[0] : undefined
    this.company = length === 1 ? undefined : new SameTool(this)
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

  /**
   * The next work, as a section of the turn: deciding about a lone call, then running it; or deciding about many, each
   * of which runs in a fiber of its own. It must be run where it is made.
   */
  work(): Effect.Effect<void, never, Interactor> {
    const { only, run } = this
    if (only === undefined) {
      this.session.calls.waiting = this
      return this.whenRoom(Effect.gen(() => this.all()))
    }
    if (run === undefined) {
      return Effect.flatMap(this.whenRoom(this.prepare(0, only)), (run) => {
        this.run = run
        return Effect.void
      })
    }
    const over = ({ cancelled }: RunningCall) => this.over(0, only, cancelled)
    this.lone = this.session.calls.begin(only, this.turnFiber, over, this.hasBegun)
    // A turn that was stopped meanwhile runs nothing.
    return this.turnFiber.isStopped ? Effect.interrupt : CallFiber.begun(run)
  }

  /**
   * The state after a section: `on` (more work), `done`, or `broken` (stopped). There is more work when a lone call was
   * allowed, and when one of many was cancelled while it waited to be decided.
   */
  ended(exit: Exit.Exit<void>): State {
    const { lone, only } = this
    if (only === undefined) return Exit.isSuccess(exit) ? "done" : this.wasCut(exit.cause) ? "on" : "broken"
    if (lone !== undefined) {
      if (Exit.isFailure(exit)) this.crashed(0, only, exit.cause)
      this.session.calls.release(lone)
      return "done"
    }
    if (Exit.isSuccess(exit)) return this.run === undefined ? "done" : "on"
    if (Cause.isInterrupted(exit.cause)) return this.wasCut(exit.cause) ? "done" : "broken"
    this.crashed(0, only, exit.cause)
    return "done"
  }

  /** Cancels a call that is not being decided yet. False: it is, or it is none of these. */
  skip(id: string): boolean {
    for (const [index, call] of this.calls.entries()) {
      if (call.id !== id || index < this.next || this.known[index] !== undefined) continue
      this.over(index, call, true)
      return true
    }
    return false
  }

  /** After an interruption: true when a single call was cancelled while it waited to be decided, and has its result. */
  private wasCut(cause: Cause.Cause<never>): boolean {
    const { asking } = this
    this.asking = undefined
    if (asking === undefined || !Cause.isInterrupted(cause)) return false
    const { call, entry, index } = asking
    const { cancelled } = entry
    if (cancelled) this.over(index, call, true)
    this.session.calls.release(entry)
    return cancelled && !this.turnFiber.isStopped
  }

  /** Work that runs or decides a call does not stop: the turn continues without it. */
  leave(): void {
    const { asking, lone } = this
    if (lone !== undefined) {
      this.session.calls.abandon(lone)
      return
    }
    this.isLate = true
    if (asking === undefined) return
    const { call, check, entry, index } = asking
    check.leave()
    this.cleanup.leftBehind(check)
    if (!entry.cancelled) this.over(index, call, false)
    this.session.calls.abandon(entry)
  }

  /** Interrupts running calls; none is started any more. */
  stop(): Effect.Effect<void> {
    this.isStopped = true
    const { calls, limits } = this.session
    // The abandoned work has already used the grace period.
    const patience = this.isLate ? 0 : limits.stopWithin
    const stopped = Effect.suspend(() => calls.stop(this.running ?? [], patience))
    return this.held === undefined ? stopped : Effect.zipRight(this.held.breakOff(patience), stopped)
  }

  /** Results in proposal order; calls without a result count as cancelled. Call it when nothing runs any more. */
  results(): ReadonlyArray<ToolResult> {
    if (this.session.calls.waiting === this) this.session.calls.waiting = undefined
    return this.calls.flatMap((call, index) => {
      this.over(index, call, false)
      return this.known[index] ?? []
    })
  }

  /** Whether somebody who was asked refused the call. */
  readonly isRefused = (index: number): boolean => this.refused?.has(index) === true

  /** Records a defect in preparing the call: the call fails, not the turn. */
  crashed(index: number, call: ToolCall, cause: Cause.Cause<unknown>): void {
    if (Cause.isInterruptedOnly(cause)) return
    this.cleanup.crashed(call, cause)
    this.end(index, call, "failed", Defect.sentence(call.name), this.startedAt[index])
  }

  /** Whether a call is still to be decided. */
  isToCome(index: number, { id }: ToolCall): boolean {
    const { callsPerStep } = this.session.limits
    return index < callsPerStep && this.known[index] === undefined && this.before?.get(id)?.decided === undefined
  }

  private whenRoom<A, R>(effect: Effect.Effect<A, never, R>): Effect.Effect<A, never, R> {
    return this.room ? effect : Effect.zipRight(this.session.bus.awaitRoom, effect)
  }

  /** A method of the class, not a generator function for each batch: V8 would keep each in the old generation. */
  private *all() {
    const { calls, session } = this
    const { parallelTools } = session.limits
    // Cleanup after an interrupted section.
    yield* Effect.uninterruptible(Region.once(this.cleanup.done()))
    if (calls.length > parallelTools)
      this.held ??= new QueuedCalls(parallelTools, (pending) => this.cleanup.leftBehind(pending))
    let place: CallFiber.Place | undefined
    while (this.next < calls.length) {
      const index = this.next++
      const call = calls[index]
      if (call === undefined || this.known[index] !== undefined) continue
      const run = yield* Effect.catchAllCause(this.prepare(index, call), (cause) => {
        if (Cause.isInterrupted(cause)) return Effect.failCause(cause)
        this.asking = undefined
        this.crashed(index, call, cause)
        return nothing
      })
      if (run === undefined || this.isStopped) continue
      place ??= yield* CallFiber.here
      this.start(index, call, run, place)
    }
    yield* this.cleanup.back()
    yield* this.allOver
    yield* this.cleanup.done()
  }

  /** Starts one of many calls in a fiber of its own, with the call's FiberRefs. */
  private start(index: number, call: ToolCall, run: () => Effect.Effect<void>, place: CallFiber.Place): void {
    const { held, session } = this
    const { calls, tools } = session
    const entry = tools.get(call.name)
    const { context: outer } = place.world
    const context = entry === undefined ? outer : session.contextOf(entry, outer)
    const fiber = CallFiber.start(place, call, context, held === undefined ? run : () => held.admit(index, run))
    this.open++
    const over = ({ cancelled }: RunningCall) => {
      // A guard check that does not stop has reported nothing yet.
      held?.leave(index)
      this.over(index, call, cancelled)
      this.open--
      if (this.open === 0) this.notify?.()
    }
    const running = calls.begin(call, fiber, over, () => this.startedAt[index] !== undefined)
    this.running ??= []
    this.running.push(running)
    fiber.addObserver((exit) => {
      if (Exit.isFailure(exit)) this.crashed(index, call, exit.cause)
      calls.release(running)
    })
  }

  private get allOver(): Effect.Effect<void> {
    return Effect.async((resume) => {
      const over = () => resume(Effect.void)
      if (this.open === 0) over()
      else this.notify = over
    })
  }

  opened(index: number, span: Spans.Open): void {
    ;(this.spans ??= [])[index] = span
  }

  /** Whether the tool of the lone call has begun. */
  readonly hasBegun = (): boolean => this.lone !== undefined && this.startedAt[0] !== undefined

  cut({ id }: ToolCall): string | undefined {
    if (this.session.calls.isCancelled(id)) return ToolOutcome.cut("The user cancelled this call")
    return this.isStopped || this.turnFiber.isStopped ? ToolOutcome.cut("The call was cancelled") : undefined
  }

  // An interrupted call publishes nothing itself; this does it.
  private over(index: number, call: ToolCall, cancelled: boolean): void {
    if (this.known[index] !== undefined) return
    const why = cancelled ? "The user cancelled this call" : "The call was cancelled"
    const began = this.startedAt[index]
    if (began === undefined) this.end(index, call, "cancelled", `${why}.`)
    else this.end(index, call, "interrupted", ToolOutcome.unknownEffect(ToolOutcome.cut(why)), began)
  }

  /** False: the bus is full. */
  end(
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

  /** Decides about one call. */
  private prepare(index: number, call: ToolCall): Effect.Effect<Prepared, never, Interactor> {
    return Effect.withFiberRuntime((fiber) => {
      const { before, session } = this
      const entry = session.tools.get(call.name)
      if (before === undefined) return this.proposed(index, call, entry, fiber)
      return Effect.flatMap(callResumption(), ({ resume }) => {
        const resumed = resume(this, { index, call }, entry, before.get(call.id))
        return resumed === undefined ? this.proposed(index, call, entry, fiber) : Effect.succeed(resumed.run)
      })
    })
  }

  private proposed(
    index: number,
    call: ToolCall,
    entry: ToolRegistry.Entry | undefined,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
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
    const context = looks ? session.contextOf(entry, fiber.currentContext) : undefined
    const proposal = { call, entry, params: decoded.right, context, company: this.company }
    const check = session.gate.open(proposal, { authority: session.state.authority, held: this.held !== undefined })
    const { verdict } = check
    if (isImmediate(verdict)) return this.prepared(index, call, entry, verdict.value)
    // Slow work and code of the tool run with the call's FiberRefs.
    const enter = Effect.updateFiberRefs((id, refs) => this.cleanup.entered(call, id, refs, undefined))
    const running = session.calls.begin(call, this.turnFiber, doNothing)
    this.asking = { index, call, check, entry: running }
    return Effect.flatMap(enter, () =>
      Effect.flatMap(verdict, (verdict) => {
        this.asking = undefined
        session.calls.release(running)
        return Effect.zipRight(this.cleanup.back(), this.prepared(index, call, entry, verdict))
      })
    )
  }

  private prepared(
    index: number,
    call: ToolCall,
    entry: ToolRegistry.Entry,
    verdict: Verdict
  ): Effect.Effect<Prepared> {
    // It may have been abandoned meanwhile.
    if (this.known[index] !== undefined) return nothing
    if (verdict._tag === "Denied") {
      this.refuse(index, call, verdict)
      return nothing
    }
    const { held } = this
    if (verdict.pending === undefined || held === undefined) {
      return Effect.succeed(() => ToolRun.run(this, { index, call, entry }, verdict))
    }
    held.hold(index, verdict.pending)
    return Effect.succeed(() => held.settle(index, (last) => this.unless({ index, call, entry }, last)))
  }

  /** Runs the call unless the last guard check refused it. */
  unless(subject: ToolRun.Subject, verdict: Verdict): Effect.Effect<void> {
    if (verdict._tag === "Allowed") return ToolRun.run(this, subject, verdict)
    this.refuse(subject.index, subject.call, verdict)
    return Effect.void
  }

  refuse(index: number, call: ToolCall, { outcome, refused, text }: Denied): void {
    if (refused === true) (this.refused ??= new Set()).add(index)
    this.end(index, call, outcome, text)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Loaded for the first calls that another process proposed. */
const callResumption = LateModule.getter(() => import("./CallResumption.js"))

const nothing: Effect.Effect<Prepared> = Effect.succeed(undefined)

const doNothing = () => {}
