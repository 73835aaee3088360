/**
 * A requested compaction between two turns. The next turn begins after its end. An interjection ends it, and the next turn
 * then does the compaction.
 */
import * as Effect from "effect/Effect"
import type * as Compaction from "../turn/Compaction.js"

/** The part of a session that this needs. */
export interface Loop {
  /** Called when it begins. */
  readonly begun: () => void
  /** Runs the work in a fiber of its own, which can be cancelled alone; then calls `ended`, also when it was cancelled. */
  readonly cancellable: (work: Effect.Effect<void>, ended: () => void) => void
  /** Whether the request must fail as cancelled. */
  readonly isStopped: () => boolean
  /** Whether no words wait. */
  readonly isQuiet: () => boolean
  /** Called at its end, before the next turn. */
  readonly ended: () => void
}

export class IdleCompaction {
  private running = false

  constructor(
    private readonly compaction: Compaction.Service,
    private readonly loop: Loop
  ) {}

  isRunning(): boolean {
    return this.running
  }

  begin(): void {
    const { compaction, loop } = this
    this.running = true
    loop.begun()
    loop.cancellable(Effect.interruptible(compaction.run("manual")), () => {
      if (loop.isStopped()) compaction.dismiss()
      // A new request may have come meanwhile: checking and ending are one step.
      if (compaction.isRequested() && loop.isQuiet()) return this.begin()
      this.running = false
      loop.ended()
    })
  }
}
