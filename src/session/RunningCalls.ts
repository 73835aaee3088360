/**
 * The calls of a session whose tools run right now, each in a fiber of its own: so that one can be cancelled alone, and one
 * that does not stop holds nothing up.
 *
 * ```
 *  start ──► running ──(its fiber ends)─────────────────────────► over
 *               └─ stop ─► interrupted ──(within the patience)──► over
 *                                      └─(else) left behind ────► over, and told
 * ```
 *
 * Written by the batch that runs the calls, and by whoever cancels one; every change is one synchronous step.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ToolCallId } from "../core/Id.js"
import type { ToolCall } from "../tool/ToolCall.js"

/** No tool runs for this call: it never did, waits for an answer, or has ended. */
export class ToolCallNotRunning extends Schema.TaggedError<ToolCallNotRunning>("assent/session/ToolCallNotRunning")(
  "ToolCallNotRunning",
  {
    toolCallId: Schema.String,
    running: Schema.Array(Schema.String)
  }
) {
  override get message(): string {
    const { running, toolCallId } = this
    const there = running.length === 0 ? "No call runs." : `Running: ${running.join(", ")}.`
    return `There is no running tool call ${JSON.stringify(toolCallId)}. ${there}`
  }
}

/** One call whose tool runs. */
export interface RunningCall {
  readonly call: ToolCall
  readonly fiber: Fiber.RuntimeFiber<void>
  /** The user cancelled this call alone. */
  cancelled: boolean
  over: boolean
}

export class RunningCalls {
  private running: Map<ToolCallId, Entry> | undefined

  /** `patience`: how long a call may take to stop. `leftBehind` is told, in a sentence, of one that took longer. */
  constructor(
    private readonly patience: Duration.DurationInput,
    private readonly leftBehind: (sentence: string) => void
  ) {}

  get ids(): ReadonlyArray<ToolCallId> {
    return [...(this.running?.keys() ?? [])]
  }

  has(id: ToolCallId): boolean {
    return this.running?.has(id) === true
  }

  /**
   * Starts a call and adds it to `batch`, in one step; whoever holds the batch {@link stop}s it when interrupted. `over` is
   * called once, when the call has ended or was left behind.
   */
  start(
    call: ToolCall,
    run: Effect.Effect<void>,
    batch: Array<RunningCall>,
    over: (call: RunningCall) => void
  ): Effect.Effect<void> {
    return Effect.uninterruptible(
      Effect.map(Effect.forkDaemon(Effect.interruptible(run)), (fiber) => {
        const entry: Entry = { call, fiber, cancelled: false, over: false, waiting: [over] }
        this.running ??= new Map()
        this.running.set(call.id, entry)
        batch.push(entry)
        fiber.addObserver(() => this.release(entry))
      })
    )
  }

  /** Waits until all of them are over. */
  ended(batch: ReadonlyArray<RunningCall>): Effect.Effect<void> {
    return Effect.async((resume) => {
      let left = 0
      const one = () => {
        if (--left === 0) resume(Effect.void)
      }
      for (const { call, over } of batch) {
        const entry = over ? undefined : this.running?.get(call.id)
        if (entry === undefined) continue
        left++
        entry.waiting.push(one)
      }
      if (left === 0) resume(Effect.void)
    })
  }

  /** Interrupts them and waits until all are over, which is not for ever: what does not stop is left behind. */
  stop(batch: ReadonlyArray<RunningCall>): Effect.Effect<void> {
    return Effect.suspend(() => {
      const open = batch.filter(({ over }) => !over)
      if (open.length === 0) return Effect.void
      for (const { fiber } of open) fiber.unsafeInterruptAsFork(FiberId.none)
      return Effect.map(Effect.timeoutOption(Effect.interruptible(this.ended(open)), this.patience), (ended) => {
        if (Option.isNone(ended)) this.abandon(open)
      })
    })
  }

  /** Cancels one call and waits for its end. False: its tool does not run. */
  cancel(id: ToolCallId): Effect.Effect<boolean> {
    return Effect.uninterruptible(
      Effect.suspend(() => {
        const entry = this.running?.get(id)
        if (entry === undefined) return Effect.succeed(false)
        entry.cancelled = true
        return Effect.as(this.stop([entry]), true)
      })
    )
  }

  private abandon(batch: ReadonlyArray<RunningCall>): void {
    for (const { call } of batch) {
      const entry = this.running?.get(call.id)
      if (entry === undefined) continue
      const patience = Duration.format(this.patience)
      this.leftBehind(
        `${call.name} (${call.id}) did not stop within ${patience} and was left behind. What it still does is not seen; ` +
          `make its handler interruptible.`
      )
      this.release(entry)
    }
  }

  private release(entry: Entry): void {
    if (entry.over) return
    entry.over = true
    this.running?.delete(entry.call.id)
    for (const tell of entry.waiting) tell(entry)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Entry extends RunningCall {
  readonly waiting: Array<(call: RunningCall) => void>
}
