/** One allowed call, from recording its start to its end. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as Defect from "../core/Defect.js"
import * as Origin from "../core/Origin.js"
import * as Spans from "../core/Spans.js"
import type { ToolOutcome } from "../core/ToolOutcome.js"
import type { Allowed } from "../permission/PermissionGate.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ToolSummary from "../tool/ToolSummary.js"
import type { BatchCleanup } from "./BatchCleanup.js"
import { emit, type TurnContext } from "./TurnContext.js"
import * as SessionSpan from "./SessionSpan.js"
import { noticesOf, resultOf, tookTooLong } from "./ToolResultEncoding.js"

/** The batch that runs the call. */
export interface Host {
  readonly session: TurnContext
  /** Summaries of the proposed arguments, by the call's index. */
  readonly summaries: ReadonlyArray<string | undefined>
  /** Filled by the calls that begin. */
  readonly startedAt: Array<number | undefined>
  readonly cleanup: BatchCleanup
  /** What was done to the call while it ran: a sentence. */
  readonly cut: (call: ToolCall) => string | undefined
  /** False: the bus is full. */
  readonly end: (
    index: number,
    call: ToolCall,
    outcome: ToolOutcome,
    result: unknown,
    startedAt?: number,
    notices?: ReadonlyArray<string>
  ) => boolean
  /** The span of a call that runs: the end of the call ends it. */
  readonly opened: (index: number, span: Spans.Open) => void
  /** Present for a lone call: it runs in the turn's fiber, whose FiberRefs are restored later. */
  readonly only: ToolCall | undefined
}

/** The call, by its place among the others. */
export interface Subject {
  readonly index: number
  readonly call: ToolCall
  readonly entry: ToolRegistry.Entry
}

/** The start is recorded before the call runs, so that a resuming process does not run it again. */
export const run = (host: Host, subject: Subject, allowed: Allowed): Effect.Effect<void> => {
  const { journal } = host.session
  if (journal === undefined) return begin(host, subject, allowed)
  const { call, index } = subject
  return Effect.matchEffect(journal.started(call.id, call.name, allowed.encoded), {
    onFailure: (reason) =>
      Effect.sync(() => {
        host.end(index, call, "failed", `${call.name} was not run: ${reason}`)
      }),
    onSuccess: () => Effect.zipRight(begin(host, subject, allowed), Effect.ignore(journal.flush))
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const begin = (host: Host, { call, entry, index }: Subject, allowed: Allowed): Effect.Effect<void> => {
  const { session } = host
  const began = session.now()
  host.startedAt[index] = began
  const proposed = allowed.encoded === call.params ? host.summaries[index] : undefined
  const summary = proposed ?? ToolSummary.ofCall(allowed.encoded, session.redactor)
  emit(session, { _tag: "ToolCallStarted", toolCallId: call.id, tool: call.name, summary })
  const finished = (exit: Exit.Exit<unknown, unknown>) => {
    const { misfit, outcome, result } = resultOf(entry, exit)
    const notices = noticesOf(allowed, outcome === "interrupted" ? undefined : host.cut(call))
    const room = host.end(index, call, outcome, result, began, notices)
    const done = host.only === undefined ? Effect.void : host.cleanup.back()
    const restored = room ? done : Effect.zipRight(session.bus.awaitRoom, done)
    if (misfit !== undefined) return Effect.zipRight(host.cleanup.misfit(call, misfit), restored)
    return Exit.isFailure(exit) && Defect.isIn(exit.cause)
      ? Effect.zipRight(host.cleanup.log(call, exit.cause), restored)
      : restored
  }
  return Effect.matchCauseEffect(handled(host, { call, entry, index }, allowed), {
    onFailure: (cause) => finished(Exit.failCause(cause)),
    onSuccess: (value) => finished(Exit.succeed(value))
  })
}

/** The handler, with the call's FiberRefs until its fiber ends or the batch restores them. */
const handled = (
  host: Host,
  { call, entry, index }: Subject,
  { continuation, encoded, params, paths }: Allowed
): Effect.Effect<unknown, unknown> => {
  const { handler, timeout } = entry
  const { session } = host
  if (handler === undefined) return Effect.dieMessage(`${entry.name} has no handler`)
  const handle = () =>
    paths === undefined ? handler(params) : Origin.withPaths(paths)(Effect.suspend(() => handler(params)))
  const asksAgain = session.journal === undefined || entry.resumable || entry.idempotent || entry.continues === true
  const goOn = () => (continuation === undefined ? handle() : Origin.continuing(continuation)(Effect.suspend(handle)))
  const begin = () => (asksAgain ? goOn() : Origin.once(Effect.suspend(handle)))
  const work = () =>
    timeout === undefined
      ? begin()
      : Effect.timeoutFail(Effect.suspend(begin), { duration: timeout, onTimeout: () => tookTooLong })
  const open = (place: Spans.Place) => {
    const span = session.spans.open(() => SessionSpan.tool(session, call, encoded), place)
    if (span !== undefined) host.opened(index, span)
    return span
  }
  // The fiber of one of many calls has them already.
  if (host.only === undefined) {
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
    return host.cleanup.entered(call, id, refs, span === undefined ? context : span.around(context))
  })
  return Effect.flatMap(enter, work)
}
