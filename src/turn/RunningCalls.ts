/**
 * The calls of a session that are being decided or whose tools run: one can be cancelled alone, and one that does not
 * stop blocks nothing.
 *
 * ```
 *  begin ──► waits, or runs ──(it is decided, or its tool ends)─► over
 *               └─ stop ─► interrupted ──(within the gracePeriod)──► over
 *                                      └─(else) left behind ────► over, and told
 * ```
 *
 * Written by the batch that runs the calls, and by cancellers; every change is one synchronous step.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Schema from "effect/Schema"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type { ToolCallId } from "../core/Id.js"
import * as GracePeriod from "../internal/GracePeriod.js"
import * as LateInterrupt from "../internal/LateInterrupt.js"
import type { ToolCall } from "../tool/ToolCall.js"
import { TurnFiber } from "./TurnFiber.js"

/**
 * There is no such call, or it has ended.
 *
 * @since 0.1.0
 * @category errors
 */
export class ToolCallNotRunning extends Schema.TaggedError<ToolCallNotRunning>("assent/turn/ToolCallNotRunning")(
  "ToolCallNotRunning",
  {
    toolCallId: Schema.String,
    running: Schema.Array(Schema.String)
  }
) {
  override get message(): string {
    const { running, toolCallId } = this
    const there = running.length === 0 ? "No call runs." : `Running: ${running.join(", ")}.`
    return `There is no running tool call ${JSON.stringify(UntrustedJson.echo(toolCallId))}. ${there}`
  }
}

/** What runs a call: a fiber of its own, or the turn's fiber for a lone call. */
export type By = Fiber.RuntimeFiber<void> | TurnFiber

/** Calls of a step that are not being decided yet. */
export interface Waiting {
  /** Cancels one of them, with this reason. False: it is none of these. */
  readonly skip: (id: string, why: string) => boolean
}

/** One call that is being decided, or whose tool runs. */
export class RunningCall {
  /** Why this call alone was cancelled. */
  cancelled: string | undefined
  over = false
  private waiting: Array<() => void> | undefined

  constructor(
    readonly call: ToolCall,
    private readonly by: By,
    /** Called once, when the call has ended or was abandoned. */
    private readonly ended: (call: RunningCall) => void,
    /** Whether its tool has begun. Absent while it is being decided. */
    private readonly hasBegun: (() => boolean) | undefined
  ) {}

  /** It is being decided; its tool does not run. */
  get waits(): boolean {
    return this.hasBegun === undefined
  }

  interrupt(): void {
    if (this.by instanceof TurnFiber) this.by.interruptSection()
    else if (this.hasBegun?.() === true) LateInterrupt.interrupt(this.by, () => this.over)
    else this.by.unsafeInterruptAsFork(FiberId.none)
  }

  /** Waits for it no longer. */
  leave(): void {
    if (this.by instanceof TurnFiber) this.by.abandon()
    else this.by.unsafeInterruptAsFork(FiberId.none)
  }

  whenOver(then: () => void): void {
    const waiting = (this.waiting ??= [])
    waiting.push(then)
  }

  /** Resumes those who wait for its end. */
  end(): void {
    this.over = true
    this.ended(this)
    for (const resume of this.waiting ?? []) resume()
  }
}

export class RunningCalls {
  private running: Map<ToolCallId, RunningCall> | undefined
  /** The waiting calls of the running step; set and cleared by its batch. */
  waiting: Waiting | undefined

  /**
   * `gracePeriod`: how long a call may take to stop. `leftBehind` is called with a sentence about a call that took longer.
   */
  constructor(
    readonly gracePeriod: Duration.DurationInput,
    private readonly leftBehind: (sentence: string) => void
  ) {}

  get ids(): ReadonlyArray<ToolCallId> {
    return [...(this.running?.keys() ?? [])]
  }

  /** The calls whose tools run. */
  get atWork(): ReadonlyArray<RunningCall> {
    return [...(this.running?.values() ?? [])].filter(({ waits }) => !waits)
  }

  /** Whether this call alone was cancelled. */
  isCancelled(id: ToolCallId): boolean {
    return this.running?.get(id)?.cancelled !== undefined
  }

  /** Whether its tool runs. */
  has(id: ToolCallId): boolean {
    return this.running?.get(id)?.waits === false
  }

  /** Registers a call that runs, or waits to be decided, until it is {@link release}d. */
  begin(call: ToolCall, by: By, ended: (call: RunningCall) => void, hasBegun?: () => boolean): RunningCall {
    const entry = new RunningCall(call, by, ended, hasBegun)
    this.running ??= new Map()
    this.running.set(call.id, entry)
    return entry
  }

  /** Removes a call whose tool has ended. Idempotent. */
  release(entry: RunningCall): void {
    if (entry.over) return
    if (this.running?.get(entry.call.id) === entry) this.running.delete(entry.call.id)
    entry.end()
  }

  /**
   * Interrupts the calls and waits, for a bounded time, until all have ended. A call that does not stop is abandoned.
   */
  stop(batch: ReadonlyArray<RunningCall>, gracePeriod = this.gracePeriod): Effect.Effect<void> {
    return Effect.suspend(() => {
      const open = batch.filter(({ over }) => !over)
      if (open.length === 0) return Effect.void
      for (const entry of open) entry.interrupt()
      return Effect.map(GracePeriod.wait(allOver(open), gracePeriod), (isOver) => {
        if (!isOver) for (const entry of open) this.abandon(entry)
      })
    })
  }

  /** Cancels one call for the user, and waits for its end. False: there is no such call, or it has ended. */
  cancel(id: string): Effect.Effect<boolean> {
    return this.end(id, "The user cancelled this call", () => true)
  }

  /** Cancels one call if it waits to be decided. */
  withdraw(id: string, why: string): Effect.Effect<boolean> {
    return this.end(id, why, ({ waits }) => waits)
  }

  private end(id: string, why: string, isMeant: (entry: RunningCall) => boolean): Effect.Effect<boolean> {
    return Effect.uninterruptible(
      Effect.suspend(() => {
        const entry = this.running?.get(id as ToolCallId)
        if (entry === undefined) return Effect.succeed(this.waiting?.skip(id, why) === true)
        if (!isMeant(entry)) return Effect.succeed(false)
        entry.cancelled = why
        return Effect.as(this.stop([entry]), true)
      })
    )
  }

  /** Abandons a call and reports it. */
  abandon(entry: RunningCall): void {
    if (entry.over) return
    const { call } = entry
    this.leftBehind(
      `${call.name} (${call.id}) did not stop within ${Duration.format(this.gracePeriod)} and was abandoned. Nobody sees ` +
        `what it still does; make its handler interruptible.`
    )
    this.release(entry)
    entry.leave()
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const allOver = (batch: ReadonlyArray<RunningCall>) => (done: () => void) => {
  let left = 0
  const one = () => {
    if (--left === 0) done()
  }
  for (const entry of batch) {
    if (entry.over) continue
    left++
    entry.whenOver(one)
  }
  if (left === 0) done()
}
