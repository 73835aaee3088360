/**
 * Runs the calls of one step.
 *
 * Calls are prepared one after the other in proposal order, which is where approvals are asked; each starts as soon as it
 * is allowed, a bounded number at once; results are reported in proposal order. Whatever happens, every proposed call has
 * exactly one result.
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import * as Origin from "../core/Origin.js"
import { canonicalJson } from "../core/Digest.js"
import * as Redaction from "../core/Redaction.js"
import type { Interactor } from "../interaction/Interactor.js"
import * as Guard from "../permission/Guard.js"
import type { Allowed } from "../permission/PermissionGate.js"
import type { ToolOutcome } from "../core/ToolOutcome.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import { denied } from "../permission/Verdict.js"
import * as Restored from "./Restored.js"
import type { RunningCall } from "./RunningCalls.js"
import * as SessionSpan from "./SessionSpan.js"
import type { Restore } from "./Tidying.js"
import { emit, flushOutput, setStatus, type SessionContext } from "./SessionContext.js"

/** The results of a batch, complete at any moment: calls without an end so far count as cancelled. */
export interface Batch {
  /** Tells that the calls were proposed. Once, before `run`. */
  readonly propose: () => void
  /** Says itself where it may be interrupted; the rest of it may not. */
  readonly run: (restore: Restore) => Effect.Effect<void, never, Interactor>
  /** In proposal order. Call it after `run` ended, however it ended. */
  readonly results: () => ReadonlyArray<ToolResult>
}

/** `before` is how far each call had come when the process stopped that ran them first. */
export const make = (
  session: SessionContext,
  calls: ReadonlyArray<ToolCall>,
  before?: ReadonlyMap<string, Restored.RestoredCall>
): Batch => {
  // By the call's index; arrays, because a batch is mostly one call, and thousands of them may wait to be approved.
  const known: Array<ToolResult | undefined> = []
  const startedAt: Array<number | undefined> = []
  let room = true
  // Told when a call is proposed and when it starts, mostly with the same arguments.
  const summaries = new Map<unknown, string>()
  const summaryOf = (params: unknown): string => {
    const known = summaries.get(params) ?? Redaction.summarize(params, session.redactor)
    summaries.set(params, known)
    return known
  }
  /** False: the bus is full. */
  const end = (index: number, call: ToolCall, outcome: ToolOutcome, result: unknown, startedAt?: number): boolean => {
    if (known[index] !== undefined) return true
    const shown = presentable(session, result)
    const unusable = Either.isLeft(shown)
    const toolResult: ToolResult = {
      id: call.id,
      name: call.name,
      outcome: unusable ? "failed" : outcome,
      result: unusable ? `${call.name} returned something that cannot be written as JSON.` : shown.right
    }
    known[index] = toolResult
    session.journal?.ended(toolResult)
    flushOutput(session, call.id)
    const summary = Redaction.summarize(toolResult.result, session.redactor)
    return emit(session, {
      _tag: "ToolCallEnded",
      toolCallId: call.id,
      tool: call.name,
      outcome: toolResult.outcome,
      summary,
      ...(startedAt === undefined ? {} : { duration: session.now() - startedAt })
    })
  }

  /** Decides about one call; `start` is given what runs it. */
  const prepare = (
    index: number,
    call: ToolCall,
    start: (run: Effect.Effect<void>) => Effect.Effect<void>
  ): Effect.Effect<void, never, Interactor> =>
    Effect.suspend(() => {
      const entry = session.tools.get(call.name)
      const past = before?.get(call.id)
      if (past !== undefined && Restored.stateOf(past) !== "proposed") return goOn(index, past, entry, start)
      if (entry === undefined || entry.handler === undefined) {
        end(index, call, "invalid", unknownTool(session.tools, call.name))
        return Effect.void
      }
      const decoded = entry.decode(call.params)
      if (Either.isLeft(decoded)) {
        end(index, call, "invalid", `Invalid arguments for ${call.name}: ${decoded.left}`)
        return Effect.void
      }
      // Merged for the tools that look at their arguments; many a call is asked about, and waits, without it.
      const looks = entry.validate !== undefined || entry.preview !== undefined
      const context = looks ? session.contextOf(entry) : undefined
      const proposal = { call, entry, params: decoded.right, context }
      return Effect.flatMap(session.gate.check(proposal, session.state.authority), (verdict) => {
        if (verdict._tag === "Allowed") return start(guarded(index, call, entry, verdict))
        end(index, call, verdict.outcome, verdict.text)
        return Effect.void
      })
    })

  /** What was decided stays decided, what has ended has its result, and what may have had its effect is not begun again. */
  const goOn = (
    index: number,
    past: Restored.RestoredCall,
    entry: ToolRegistry.Entry | undefined,
    start: (run: Effect.Effect<void>) => Effect.Effect<void>
  ): Effect.Effect<void> => {
    const { call, decided, ended, started } = past
    if (ended !== undefined) {
      known[index] = Restored.resultOf(past)
      return Effect.void
    }
    if (decided !== undefined && !decided.granted) {
      const { granted, method, reason } = decided
      if (method === "pre_validation") end(index, call, "invalid", reason)
      else end(index, call, "denied", denied({ granted, method, reason }).text)
      return Effect.void
    }
    const encoded = started?.params ?? decided?.params ?? call.params
    const params = entry?.decode(encoded)
    const mayRun = started === undefined || entry?.idempotent === true || entry?.resumable === true
    if (!mayRun || entry === undefined || params === undefined || Either.isLeft(params)) {
      end(index, call, "interrupted", Restored.resultOf(past).result)
      return Effect.void
    }
    if (canonicalJson(encoded).includes(Redaction.mask)) {
      end(index, call, "interrupted", "Its arguments held a secret, which is not kept. Propose the call again.")
      return Effect.void
    }
    const edited = decided?.params !== undefined
    return start(guarded(index, call, entry, { _tag: "Allowed", params: params.right, encoded, edited }))
  }

  const guarded = (index: number, call: ToolCall, entry: ToolRegistry.Entry, allowed: Allowed): Effect.Effect<void> =>
    Effect.suspend(() => {
      const violation = session.gate.guard(entry, allowed.encoded)
      if (violation === Guard.none) return execute(index, call, entry, allowed)
      return Effect.flatMap(violation, (reason) => {
        if (reason === undefined) return execute(index, call, entry, allowed)
        end(index, call, "denied", `Permission denied: ${reason}`)
        return Effect.void
      })
    })

  /** Nothing begins that is not written down, so that a process which goes on later does not begin it again. */
  const execute = (index: number, call: ToolCall, entry: ToolRegistry.Entry, allowed: Allowed): Effect.Effect<void> => {
    const { journal } = session
    if (journal === undefined) return begin(index, call, entry, allowed)
    return Effect.matchEffect(journal.started(call.id, call.name, allowed.encoded), {
      onFailure: (reason) =>
        Effect.sync(() => {
          end(index, call, "failed", `${call.name} was not run: ${reason}`)
        }),
      onSuccess: () => Effect.zipRight(begin(index, call, entry, allowed), Effect.ignore(journal.flush))
    })
  }

  const begin = (index: number, call: ToolCall, entry: ToolRegistry.Entry, allowed: Allowed): Effect.Effect<void> => {
    const began = session.now()
    startedAt[index] = began
    const summary = summaryOf(allowed.encoded)
    emit(session, { _tag: "ToolCallStarted", toolCallId: call.id, tool: call.name, summary })
    const over = (exit: Exit.Exit<unknown, unknown>) => {
      const { outcome, result } = resultOf(entry, exit)
      const told = allowed.edited ? editedResult(result, allowed.encoded) : result
      return end(index, call, outcome, told, began) ? Effect.void : session.bus.awaitRoom
    }
    const handled = handle(session, entry, allowed.params)
    const traced = SessionSpan.tool(session, call, allowed.encoded, (exit) => resultOf(entry, exit), handled)
    return Effect.matchCauseEffect(traced, {
      onFailure: (cause) => over(Exit.failCause(cause)),
      onSuccess: (value) => over(Exit.succeed(value))
    })
  }

  // Whatever else goes wrong around a call is that call's failure, not the turn's.
  const contained = <R>(index: number, call: ToolCall, effect: Effect.Effect<void, never, R>) =>
    Effect.catchAllDefect(effect, (defect) =>
      Effect.sync(() => end(index, call, "failed", `${call.name} crashed: ${messageOf(defect)}`))
    )

  // A fiber that runs the call has its origin from here too.
  const inCall = <R>(index: number, call: ToolCall, effect: Effect.Effect<void, never, R>) =>
    contained(index, call, Origin.inToolCall(call.id)(effect))

  // Interrupted alone or with the batch, a call says nothing any more; this says it for it.
  const start = (index: number, call: ToolCall, batch: Array<RunningCall>, run: Effect.Effect<void>) =>
    session.calls.start(call, contained(index, call, run), batch, ({ cancelled }) => {
      const why = cancelled ? "The user cancelled this call." : "The call was cancelled."
      end(index, call, "cancelled", why, startedAt[index])
    })

  const stoppable = <R>(batch: ReadonlyArray<RunningCall>, restore: Restore, all: Effect.Effect<void, never, R>) =>
    Effect.catchAllCause(restore(Effect.flatMap(all, () => session.calls.ended(batch))), (cause) =>
      Effect.zipRight(session.calls.stop(batch), Effect.failCause(cause))
    )

  const one = (call: ToolCall, restore: Restore) => {
    const batch: Array<RunningCall> = []
    const prepared = prepare(0, call, (run) => start(0, call, batch, run))
    return stoppable(batch, restore, inCall(0, call, prepared))
  }

  const many = (restore: Restore) =>
    Effect.gen(function* () {
      const { parallelTools } = session.limits
      const permits = calls.length > parallelTools ? yield* Effect.makeSemaphore(parallelTools) : undefined
      const admitted = (run: Effect.Effect<void>) => (permits === undefined ? run : permits.withPermits(1)(run))
      const batch: Array<RunningCall> = []
      const all = Effect.gen(function* () {
        for (const [index, call] of calls.entries()) {
          yield* inCall(
            index,
            call,
            prepare(index, call, (run) => start(index, call, batch, admitted(run)))
          )
        }
      })
      yield* stoppable(batch, restore, all)
    })

  return {
    propose: () => {
      setStatus(session, "executing")
      for (const call of calls) {
        if (before?.get(call.id)?.ended !== undefined) continue
        const summary = summaryOf(call.params)
        room = emit(session, { _tag: "ToolCallProposed", toolCallId: call.id, tool: call.name, summary })
      }
    },
    run: (restore) => {
      const [only] = calls
      const all = calls.length === 1 && only !== undefined ? one(only, restore) : many(restore)
      return room ? all : Effect.zipRight(restore(session.bus.awaitRoom), all)
    },
    results: () => {
      for (const [index, call] of calls.entries()) end(index, call, "cancelled", "The call was cancelled.")
      return calls.flatMap((_, index) => known[index] ?? [])
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const handle = (
  session: SessionContext,
  entry: ToolRegistry.Entry,
  params: unknown
): Effect.Effect<unknown, unknown> => {
  const { handler, timeout } = entry
  if (handler === undefined) return Effect.dieMessage(`${entry.name} has no handler`)
  const run = inContext(
    (outer) => session.spans.keep(outer, session.contextOf(entry)),
    Effect.suspend(() => handler(params))
  )
  return timeout === undefined ? run : Effect.timeoutFail(run, { duration: timeout, onTimeout: () => tookTooLong })
}

/**
 * `Effect.mapInputContext` for a third of its price, which is that of a small fiber. The context is not put back when the
 * fiber is interrupted: then it has nothing more to do.
 */
const inContext = <A, E>(
  contextOf: (outer: Context.Context<never>) => Context.Context<never>,
  self: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.withFiberRuntime((fiber) => {
    const outer = fiber.getFiberRef(FiberRef.currentContext)
    const back = FiberRef.set(FiberRef.currentContext, outer)
    const inside = Effect.matchCauseEffect(self, {
      onFailure: (cause) => Effect.zipRight(back, Effect.failCause(cause)),
      onSuccess: (value) => Effect.as(back, value)
    })
    return Effect.zipRight(FiberRef.set(FiberRef.currentContext, contextOf(outer)), inside)
  })

/** Told apart from every failure of a handler. */
const tookTooLong = Symbol("took too long")

const resultOf = (
  entry: ToolRegistry.Entry,
  exit: Exit.Exit<unknown, unknown>
): { readonly outcome: ToolOutcome; readonly result: unknown } => {
  if (Exit.isSuccess(exit)) {
    const encoded = Either.try(() => entry.encode(exit.value))
    return Either.match(encoded, {
      onLeft: () => ({ outcome: "failed", result: `${entry.name} returned something its schema does not allow.` }),
      onRight: (result) => ({ outcome: "succeeded", result })
    })
  }
  const failure = Cause.failureOption(exit.cause)
  if (Option.isSome(failure)) {
    if (failure.value === tookTooLong) {
      return { outcome: "failed", result: `${entry.name} took too long and was stopped.` }
    }
    const encoded = Either.try(() => entry.encodeFailure(failure.value))
    return {
      outcome: "failed",
      result: Either.getOrElse(encoded, () => `${entry.name} failed: ${messageOf(failure.value)}`)
    }
  }
  if (Cause.isInterruptedOnly(exit.cause)) return { outcome: "cancelled", result: "The call was cancelled." }
  return { outcome: "failed", result: `${entry.name} crashed: ${messageOf(Cause.squash(exit.cause))}` }
}

const messageOf = (error: unknown): string => {
  if (error instanceof Error) return error.message
  return typeof error === "object" && error !== null ? canonicalJson(error) : String(error)
}

const unknownTool = (tools: ToolRegistry.Service, name: string): string => {
  const known = tools.entries.map((entry) => entry.name).join(", ")
  return `There is no tool ${JSON.stringify(name)}. ${known === "" ? "No tools are available." : `Available: ${known}.`}`
}

/** Tells the model that the arguments were not the ones it wrote. */
const editedResult = (result: unknown, params: unknown): unknown => {
  const notice = `The user edited the arguments before approving: ${JSON.stringify(params)}`
  return typeof result === "string" ? `${notice}\n\n${result}` : { notice, result }
}

/** A result as the model gets to see it: JSON, masked, and not too long. */
const presentable = (session: SessionContext, result: unknown): Either.Either<unknown, unknown> =>
  Either.try(() => {
    const { limits, redactor } = session
    const text = typeof result === "string" ? result : JSON.stringify(result)
    if (text === undefined) return null
    if (text.length <= limits.maxResult) return redactor.value(result)
    // Masked first: a secret that the cut goes through would not be found any more.
    const masked = redactor.text(text)
    const kept = masked.slice(0, limits.maxResult)
    return `${kept}\n[cut: ${masked.length - kept.length} of ${masked.length} characters left out]`
  })
