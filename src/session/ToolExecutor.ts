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
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Origin from "../core/Origin.js"
import * as Redaction from "../core/Redaction.js"
import type { Interactor } from "../interaction/Interactor.js"
import type { Allowed } from "../permission/PermissionGate.js"
import type { ToolOutcome } from "../core/ToolOutcome.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import { emit, setStatus, type SessionContext } from "./SessionContext.js"

/** The results of a batch, complete at any moment: calls without an end so far count as cancelled. */
export interface Batch {
  readonly run: Effect.Effect<void, never, Interactor>
  /** In proposal order. Call it after `run` ended, however it ended. */
  readonly results: () => ReadonlyArray<ToolResult>
}

export const make = (session: SessionContext, calls: ReadonlyArray<ToolCall>): Batch => {
  const ended = new Map<number, ToolResult>()
  const end = (index: number, call: ToolCall, outcome: ToolOutcome, result: unknown, startedAt?: number): void => {
    if (ended.has(index)) return
    const capped = cap(session, session.redactor.value(result))
    ended.set(index, { id: call.id, name: call.name, outcome, result: capped })
    emit(session, {
      _tag: "ToolCallEnded",
      toolCallId: call.id,
      tool: call.name,
      outcome,
      ...(startedAt === undefined ? {} : { duration: session.now() - startedAt }),
      summary: Redaction.summarize(capped, session.redactor)
    })
  }

  /** Decides about one call; what it returns runs it. */
  const prepare = (index: number, call: ToolCall): Effect.Effect<Effect.Effect<void> | undefined, never, Interactor> =>
    Effect.suspend(() => {
      const entry = session.tools.get(call.name)
      if (entry === undefined || entry.handler === undefined) {
        end(index, call, "invalid", unknownTool(session.tools, call.name))
        return Effect.succeed(undefined)
      }
      const decoded = entry.decode(call.params)
      if (Either.isLeft(decoded)) {
        end(index, call, "invalid", `Invalid arguments for ${call.name}: ${decoded.left}`)
        return Effect.succeed(undefined)
      }
      return Effect.map(
        Origin.inToolCall(call.id)(session.gate.check({ call, entry, params: decoded.right })),
        (verdict) => {
          if (verdict._tag === "Allowed") return execute(index, call, entry, verdict)
          end(index, call, verdict.outcome, verdict.text)
          return undefined
        }
      )
    })

  const execute = (index: number, call: ToolCall, entry: ToolRegistry.Entry, allowed: Allowed): Effect.Effect<void> => {
    const run = Effect.flatMap(session.gate.guard(entry, allowed.encoded), (violation) => {
      if (violation !== undefined) {
        end(index, call, "denied", `Permission denied: ${violation}`)
        return Effect.void
      }
      const startedAt = session.now()
      const summary = Redaction.summarize(allowed.encoded, session.redactor)
      emit(session, { _tag: "ToolCallStarted", toolCallId: call.id, tool: call.name, summary })
      return Effect.flatMap(Effect.exit(handle(session, entry, allowed.params)), (exit) => {
        const { outcome, result } = resultOf(entry, exit)
        end(index, call, outcome, allowed.edited ? editedResult(result, allowed.encoded) : result, startedAt)
        return session.bus.awaitRoom
      })
    })
    return Origin.inToolCall(call.id)(run)
  }

  const one = (call: ToolCall) => Effect.flatMap(prepare(0, call), (run) => run ?? Effect.void)

  const many = Effect.gen(function* () {
    const permits = yield* Effect.makeSemaphore(session.limits.parallelTools)
    const fibers: Array<Fiber.RuntimeFiber<void>> = []
    const all = Effect.gen(function* () {
      for (const [index, call] of calls.entries()) {
        const run = yield* prepare(index, call)
        if (run !== undefined) fibers.push(yield* Effect.fork(permits.withPermits(1)(run)))
      }
      for (const fiber of fibers) yield* Fiber.await(fiber)
    })
    yield* Effect.onInterrupt(all, () => Fiber.interruptAll(fibers))
  })

  return {
    run: Effect.suspend(() => {
      setStatus(session, "executing")
      for (const call of calls) {
        const summary = Redaction.summarize(call.params, session.redactor)
        emit(session, { _tag: "ToolCallProposed", toolCallId: call.id, tool: call.name, summary })
      }
      const [only] = calls
      return Effect.zipRight(session.bus.awaitRoom, calls.length === 1 && only !== undefined ? one(only) : many)
    }),
    results: () => {
      for (const [index, call] of calls.entries()) end(index, call, "cancelled", "The call was cancelled.")
      return calls.flatMap((_, index) => ended.get(index) ?? [])
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
  const handler = entry.handler
  if (handler === undefined) return Effect.dieMessage(`${entry.name} has no handler`)
  const context = session.contextOf(entry)
  const run = Effect.mapInputContext(
    Effect.suspend(() => handler(params)),
    (_: Context.Context<never>) => context
  )
  return entry.timeout === undefined
    ? run
    : Effect.timeoutFail(run, {
        duration: entry.timeout,
        onTimeout: () => `${entry.name} took too long and was stopped.`
      })
}

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
    const encoded = Either.try(() => entry.encodeFailure(failure.value))
    return {
      outcome: "failed",
      result: Either.getOrElse(encoded, () => `${entry.name} failed: ${messageOf(failure.value)}`)
    }
  }
  if (Cause.isInterruptedOnly(exit.cause)) return { outcome: "cancelled", result: "The call was cancelled." }
  return { outcome: "failed", result: `${entry.name} crashed: ${messageOf(Cause.squash(exit.cause))}` }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const unknownTool = (tools: ToolRegistry.Service, name: string): string => {
  const known = tools.entries.map((entry) => entry.name).join(", ")
  return `There is no tool ${JSON.stringify(name)}. ${known === "" ? "No tools are available." : `Available: ${known}.`}`
}

/** Tells the model that the arguments were not the ones it wrote. */
const editedResult = (result: unknown, params: unknown): unknown => {
  const notice = `The user edited the arguments before approving: ${JSON.stringify(params)}`
  return typeof result === "string" ? `${notice}\n\n${result}` : { notice, result }
}

const cap = (session: SessionContext, result: unknown): unknown => {
  const { maxResult } = session.limits
  const text = typeof result === "string" ? result : (JSON.stringify(result) ?? "")
  if (text.length <= maxResult) return result
  return `${text.slice(0, maxResult)}\n[cut: ${text.length - maxResult} of ${text.length} characters left out]`
}
