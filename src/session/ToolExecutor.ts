/**
 * Runs the calls of one step.
 *
 * Calls are prepared one after the other in proposal order, which is where approvals are asked; each starts as soon as it
 * is allowed, a bounded number at once; results are reported in proposal order. Whatever happens, every proposed call has
 * exactly one result.
 *
 * A lone call runs in the fiber of its turn, which spares it a fiber of its own: see `Legs`.
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as Origin from "../core/Origin.js"
import { canonicalJson } from "../core/Digest.js"
import { isKnown } from "../core/Known.js"
import * as Redaction from "../core/Redaction.js"
import type { Interactor } from "../interaction/Interactor.js"
import * as Guard from "../permission/Guard.js"
import type { Allowed, Verdict } from "../permission/PermissionGate.js"
import type { ToolOutcome } from "../core/ToolOutcome.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import { denied } from "../permission/Verdict.js"
import type { Legs, Work } from "./Legs.js"
import * as Restored from "./Restored.js"
import type { RunningCall } from "./RunningCalls.js"
import * as SessionSpan from "./SessionSpan.js"
import { editedResult, messageOf, presentable, resultOf, tookTooLong, unknownTool } from "./ToolEnd.js"
import { emit, flushOutput, setStatus, type SessionContext } from "./SessionContext.js"

/** What runs a call that may run, from the moment it is called; nothing when its result is known without. */
export type Prepared = (() => Effect.Effect<void>) | undefined

export class Batch {
  // By the call's index; made as long as they are, because thousands of batches of one call may wait to be approved.
  private readonly known: Array<ToolResult | undefined>
  private readonly startedAt: Array<number | undefined>
  /** Of the proposed arguments: a call mostly starts with them. */
  private readonly summaries: Array<string | undefined>
  private room = true
  /** What the fiber that prepares the calls had, to be put back when they are done with. */
  private outer: { readonly id: FiberId.Single; readonly refs: FiberRefs.FiberRefs } | undefined
  private running: Array<RunningCall> | undefined
  /** Calls that were started, or are about to, and are not over. */
  private open = 0
  private isStopped = false
  private notify: (() => void) | undefined

  /** `before` is how far each call had come when the process stopped that ran them first. */
  constructor(
    private readonly session: SessionContext,
    private readonly calls: ReadonlyArray<ToolCall>,
    private readonly before: ReadonlyMap<string, Restored.RestoredCall> | undefined
  ) {
    const { length } = calls
    this.known = new Array<ToolResult | undefined>(length)
    this.startedAt = new Array<number | undefined>(length)
    this.summaries = new Array<string | undefined>(length)
  }

  /** Tells that the calls were proposed. Once, before anything runs. */
  propose(): void {
    const { session } = this
    setStatus(session, "executing")
    for (const [index, call] of this.calls.entries()) {
      if (this.before?.get(call.id)?.ended !== undefined) continue
      const summary = Redaction.summarize(call.params, session.redactor)
      this.summaries[index] = summary
      this.room = emit(session, { _tag: "ToolCallProposed", toolCallId: call.id, tool: call.name, summary })
    }
  }

  /** Decides about the call of a batch of one. */
  prepareOnly(call: ToolCall): Effect.Effect<Prepared, never, Interactor> {
    return this.whenRoom(this.prepare(0, call))
  }

  /** Runs it as a section of its turn, and goes on. */
  runOnly(call: ToolCall, run: () => Effect.Effect<void>, legs: Legs, then: () => Work): Work {
    const { calls } = this.session
    const entry = calls.begin(call, legs, ({ cancelled }) => this.over(0, call, cancelled))
    return legs.section(
      Effect.suspend(run),
      (exit) => {
        if (Exit.isFailure(exit)) this.crashed(0, call, exit.cause)
        calls.release(entry)
        const back = this.back()
        return back === Effect.void ? then() : Effect.flatMap(back, then)
      },
      () => calls.abandon(entry)
    )
  }

  /** Prepares all calls and runs them side by side, each in a fiber of its own. Whoever is interrupted in it {@link stop}s. */
  runAll(): Work {
    return this.whenRoom(this.all())
  }

  /** Stops what runs; nothing is started any more. */
  stop(): Effect.Effect<void> {
    this.isStopped = true
    return this.session.calls.stop(this.running ?? [])
  }

  /** In proposal order; calls without an end so far count as cancelled. Call it when nothing runs any more. */
  results(): ReadonlyArray<ToolResult> {
    for (const [index, call] of this.calls.entries()) this.over(index, call, false)
    return this.calls.flatMap((_, index) => this.known[index] ?? [])
  }

  /** Notes that preparing the call went wrong: that is the call's failure, not the turn's. */
  crashed(index: number, call: ToolCall, cause: Cause.Cause<never>): void {
    if (Cause.isInterruptedOnly(cause)) return
    this.end(index, call, "failed", `${call.name} crashed: ${messageOf(Cause.squash(cause))}`)
  }

  /** Puts back what was set for the calls, and what they set; not in another leg of the turn, which never had it. */
  back(): Effect.Effect<void> {
    const { outer } = this
    if (outer === undefined) return Effect.void
    this.outer = undefined
    return Effect.updateFiberRefs((id, refs) => {
      if (id !== outer.id) return refs
      // Being told to stop is such a value too, and must not be forgotten.
      const interrupted = FiberRefs.getOrDefault(refs, FiberRef.interruptedCause)
      if (Cause.isEmpty(interrupted)) return outer.refs
      return FiberRefs.updateAs(outer.refs, { fiberId: id, fiberRef: FiberRef.interruptedCause, value: interrupted })
    })
  }

  private whenRoom<A, R>(effect: Effect.Effect<A, never, R>): Effect.Effect<A, never, R> {
    return this.room ? effect : Effect.zipRight(this.session.bus.awaitRoom, effect)
  }

  private all(): Effect.Effect<void, never, Interactor> {
    const { calls, session } = this
    const { parallelTools } = session.limits
    return Effect.gen(this, function* () {
      const permits = calls.length > parallelTools ? yield* Effect.makeSemaphore(parallelTools) : undefined
      for (const [index, call] of calls.entries()) {
        const run = yield* Effect.catchAllCause(this.prepare(index, call), (cause) => {
          if (Cause.isInterrupted(cause)) return Effect.failCause(cause)
          this.crashed(index, call, cause)
          return nothing
        })
        if (run === undefined) continue
        this.open++
        const admitted = permits === undefined ? run : () => permits.withPermits(1)(Effect.suspend(run))
        yield* Effect.forkDaemon(this.started(index, call, admitted))
      }
      yield* this.back()
      yield* this.allOver
    })
  }

  /** In the call's own fiber: says that it runs, unless the batch was stopped before it came to that. */
  private started(index: number, call: ToolCall, run: () => Effect.Effect<void>): Effect.Effect<void> {
    return Effect.withFiberRuntime((fiber) => {
      if (this.isStopped) return Effect.void
      const { calls } = this.session
      const entry = calls.begin(call, fiber, ({ cancelled }) => {
        this.over(index, call, cancelled)
        this.open--
        if (this.open === 0) this.notify?.()
      })
      this.running ??= []
      this.running.push(entry)
      fiber.addObserver((exit) => {
        if (Exit.isFailure(exit)) this.crashed(index, call, exit.cause)
        calls.release(entry)
      })
      return run()
    })
  }

  private get allOver(): Effect.Effect<void> {
    return Effect.async((resume) => {
      if (this.open === 0) resume(Effect.void)
      else this.notify = () => resume(Effect.void)
    })
  }

  // Interrupted alone or with the batch, a call says nothing any more; this says it for it.
  private over(index: number, call: ToolCall, cancelled: boolean): void {
    if (this.known[index] !== undefined) return
    const why = cancelled ? "The user cancelled this call." : "The call was cancelled."
    this.end(index, call, "cancelled", why, this.startedAt[index])
  }

  /** False: the bus is full. */
  private end(index: number, call: ToolCall, outcome: ToolOutcome, result: unknown, startedAt?: number): boolean {
    if (this.known[index] !== undefined) return true
    const { session } = this
    const shown = presentable(session, result)
    const unusable = Either.isLeft(shown)
    const toolResult: ToolResult = {
      id: call.id,
      name: call.name,
      outcome: unusable ? "failed" : outcome,
      result: unusable ? `${call.name} returned something that cannot be written as JSON.` : shown.right
    }
    this.known[index] = toolResult
    session.journal?.ended(toolResult)
    flushOutput(session, call.id)
    const summary = Redaction.summarize(toolResult.result, session.redactor)
    const { id: toolCallId, name: tool } = call
    const ended = toolResult.outcome
    // Named one by one: fields behind a spread give every event a shape of its own, which outlives many collections.
    return startedAt === undefined
      ? emit(session, { _tag: "ToolCallEnded", toolCallId, tool, outcome: ended, summary })
      : emit(session, {
          _tag: "ToolCallEnded",
          toolCallId,
          tool,
          outcome: ended,
          summary,
          duration: session.now() - startedAt
        })
  }

  /** Decides about one call. */
  private prepare(index: number, call: ToolCall): Effect.Effect<Prepared, never, Interactor> {
    return Effect.withFiberRuntime((fiber, status) => {
      const { session } = this
      const entry = session.tools.get(call.name)
      const past = this.before?.get(call.id)
      if (past !== undefined && Restored.stateOf(past) !== "proposed") {
        return Effect.succeed(this.goOn(index, past, entry))
      }
      if (entry === undefined || entry.handler === undefined) {
        this.end(index, call, "invalid", unknownTool(session.tools, call.name))
        return nothing
      }
      const decoded = entry.decode(call.params)
      if (Either.isLeft(decoded)) {
        this.end(index, call, "invalid", `Invalid arguments for ${call.name}: ${decoded.left}`)
        return nothing
      }
      // Merged for the tools that look at their arguments; many a call is asked about, and waits, without it.
      const looks = entry.validate !== undefined || entry.preview !== undefined
      const context = looks ? session.contextOf(entry) : undefined
      const proposal = { call, entry, params: decoded.right, context }
      const decided = (verdict: Verdict) => {
        if (verdict._tag === "Allowed") return Effect.succeed(() => this.guarded(index, call, entry, verdict))
        this.end(index, call, verdict.outcome, verdict.text)
        return nothing
      }
      const checked = session.gate.checkIn(fiber, status, proposal, session.state.authority)
      if (isKnown(checked)) return decided(checked.value)
      // What takes its time, or runs code of the tool, does so as part of the call.
      const enter = Effect.updateFiberRefs((id, refs) => {
        this.outer ??= { id, refs }
        return this.entered(call, id, refs, undefined)
      })
      return Effect.flatMap(enter, () => Effect.flatMap(checked, decided))
    })
  }

  /** A fiber's local values as part of the call, and with the tool's own context. */
  private entered(
    call: ToolCall,
    id: FiberId.Single,
    refs: FiberRefs.FiberRefs,
    context: Context.Context<never> | undefined
  ): FiberRefs.FiberRefs {
    const origin = Origin.inCall(call.id, id, refs)
    return FiberRefs.updateManyAs(refs, {
      entries: context === undefined ? [origin] : [origin, [FiberRef.currentContext, [[id, context]]]]
    })
  }

  /** What was decided stays decided, what has ended has its result, and what may have had its effect is not begun again. */
  private goOn(index: number, past: Restored.RestoredCall, entry: ToolRegistry.Entry | undefined): Prepared {
    const { call, decided, ended, started } = past
    if (ended !== undefined) {
      this.known[index] = Restored.resultOf(past)
      return undefined
    }
    if (decided !== undefined && !decided.granted) {
      const { granted, method, reason } = decided
      if (method === "pre_validation") this.end(index, call, "invalid", reason)
      else this.end(index, call, "denied", denied({ granted, method, reason }).text)
      return undefined
    }
    const encoded = started?.params ?? decided?.params ?? call.params
    const params = entry?.decode(encoded)
    const mayRun = started === undefined || entry?.idempotent === true || entry?.resumable === true
    if (!mayRun || entry === undefined || params === undefined || Either.isLeft(params)) {
      this.end(index, call, "interrupted", Restored.resultOf(past).result)
      return undefined
    }
    if (canonicalJson(encoded).includes(Redaction.mask)) {
      this.end(index, call, "interrupted", "Its arguments held a secret, which is not kept. Propose the call again.")
      return undefined
    }
    const edited = decided?.params !== undefined
    return () => this.guarded(index, call, entry, { _tag: "Allowed", params: params.right, encoded, edited })
  }

  private guarded(index: number, call: ToolCall, entry: ToolRegistry.Entry, allowed: Allowed): Effect.Effect<void> {
    const violation = this.session.gate.guard(entry, allowed.encoded, allowed.answered)
    if (violation === Guard.none) return this.execute(index, call, entry, allowed)
    return Effect.flatMap(violation, (reason) => {
      if (reason === undefined) return this.execute(index, call, entry, allowed)
      this.end(index, call, "denied", `Permission denied: ${reason}`)
      return Effect.void
    })
  }

  /** Nothing begins that is not written down, so that a process which goes on later does not begin it again. */
  private execute(index: number, call: ToolCall, entry: ToolRegistry.Entry, allowed: Allowed): Effect.Effect<void> {
    const { journal } = this.session
    if (journal === undefined) return this.begin(index, call, entry, allowed)
    return Effect.matchEffect(journal.started(call.id, call.name, allowed.encoded), {
      onFailure: (reason) =>
        Effect.sync(() => {
          this.end(index, call, "failed", `${call.name} was not run: ${reason}`)
        }),
      onSuccess: () => Effect.zipRight(this.begin(index, call, entry, allowed), Effect.ignore(journal.flush))
    })
  }

  private begin(index: number, call: ToolCall, entry: ToolRegistry.Entry, allowed: Allowed): Effect.Effect<void> {
    const { session } = this
    const began = session.now()
    this.startedAt[index] = began
    const proposed = allowed.encoded === call.params ? this.summaries[index] : undefined
    const summary = proposed ?? Redaction.summarize(allowed.encoded, session.redactor)
    emit(session, { _tag: "ToolCallStarted", toolCallId: call.id, tool: call.name, summary })
    const over = (exit: Exit.Exit<unknown, unknown>) => {
      const { outcome, result } = resultOf(entry, exit)
      const told = allowed.edited ? editedResult(result, allowed.encoded) : result
      const room = this.end(index, call, outcome, told, began)
      const back = this.calls.length === 1 ? this.back() : Effect.void
      return room ? back : Effect.zipRight(session.bus.awaitRoom, back)
    }
    const handled = this.handled(call, entry, allowed.params)
    const traced = SessionSpan.tool(session, call, allowed.encoded, (exit) => resultOf(entry, exit), handled)
    return Effect.matchCauseEffect(traced, {
      onFailure: (cause) => over(Exit.failCause(cause)),
      onSuccess: (value) => over(Exit.succeed(value))
    })
  }

  /** The handler, as part of the call until its fiber ends or whoever runs it puts {@link back} what was there. */
  private handled(call: ToolCall, entry: ToolRegistry.Entry, params: unknown): Effect.Effect<unknown, unknown> {
    const { handler, timeout } = entry
    const { session } = this
    if (handler === undefined) return Effect.dieMessage(`${entry.name} has no handler`)
    const enter = Effect.updateFiberRefs((id, refs) => {
      // One of many has a fiber of its own.
      if (this.calls.length === 1) this.outer ??= { id, refs }
      const outer = FiberRefs.getOrDefault(refs, FiberRef.currentContext)
      return this.entered(call, id, refs, session.spans.keep(outer, session.contextOf(entry)))
    })
    return Effect.flatMap(enter, () =>
      timeout === undefined
        ? handler(params)
        : Effect.timeoutFail(
            Effect.suspend(() => handler(params)),
            { duration: timeout, onTimeout: () => tookTooLong }
          )
    )
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const nothing: Effect.Effect<Prepared> = Effect.succeed(undefined)
