/**
 * A requested compaction between two turns. The next turn waits for its end. An interjection ends it, and the next turn
 * then does the compaction.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import type { Restore } from "../core/Interruption.js"
import type * as Compaction from "../turn/Compaction.js"

export interface IdleCompaction {
  readonly isRunning: () => boolean
  /** Waits until no compaction runs between turns. */
  readonly settled: Effect.Effect<void>
  /** Begins when it is called, before the result is run: from then on {@link isRunning} is true. */
  readonly begin: () => Effect.Effect<void>
}

/** The part of a session that this needs. */
export interface Loop {
  /** Called when it begins, in the same synchronous section. */
  readonly begun: () => void
  /** Runs the work in a fiber of its own, which can be cancelled alone, and waits for its end. */
  readonly cancellable: (work: Effect.Effect<void>, restore: Restore) => Effect.Effect<unknown>
  /** Whether the request must fail as cancelled. */
  readonly isStopped: () => boolean
  /** Whether no words wait. */
  readonly isQuiet: () => boolean
  /** Called at its end, with any exit, before the next turn. */
  readonly ended: () => void
}

export const make = (compaction: Compaction.Service, loop: Loop): IdleCompaction =>
  new SessionIdleCompaction(compaction, loop)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class SessionIdleCompaction implements IdleCompaction {
  /** Made and completed by the compacting fiber, awaited by the next turn. */
  private running: Deferred.Deferred<void> | undefined

  constructor(
    private readonly compaction: Compaction.Service,
    private readonly loop: Loop
  ) {}

  isRunning(): boolean {
    return this.running !== undefined
  }

  get settled(): Effect.Effect<void> {
    return Effect.suspend(() => (this.running === undefined ? Effect.void : Deferred.await(this.running)))
  }

  begin(): Effect.Effect<void> {
    const { compaction, loop } = this
    const gate = Deferred.unsafeMake<void>(FiberId.none)
    this.running = gate
    loop.begun()
    const end = () => {
      if (this.running !== gate) return
      this.running = undefined
      loop.ended()
      Deferred.unsafeDone(gate, Effect.void)
    }
    const once = Effect.uninterruptibleMask((restore) =>
      Effect.ensuring(
        loop.cancellable(Effect.interruptible(compaction.run("manual")), restore),
        Effect.sync(() => {
          if (loop.isStopped()) compaction.dismiss()
        })
      )
    )
    // A new request may have come meanwhile: checking and ending are one step.
    const all: Effect.Effect<void> = Effect.flatMap(once, () => {
      if (compaction.isRequested() && loop.isQuiet()) return all
      end()
      return Effect.void
    })
    return Effect.ensuring(all, Effect.sync(end))
  }
}
