/** A scheduler that runs fibers in random order and lets them yield at random points. */
import type { RuntimeFiber } from "effect/Fiber"
import type { Scheduler, Task } from "effect/Scheduler"

/** Numbers from 0 up to 1, the same for the same seed. */
export const random = (seed: number): (() => number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/** All that it does is an order in which Effect may run fibers; each goes on for at most `patience` operations. */
export class Shuffled implements Scheduler {
  private readonly tasks: Array<Task> = []
  private running = false
  private limit = 12

  constructor(
    private readonly next: () => number,
    private readonly patience = 30
  ) {}

  shouldYield(fiber: RuntimeFiber<unknown, unknown> & { readonly currentOpCount?: number }): number | false {
    if ((fiber.currentOpCount ?? 0) < this.limit) return false
    // At least so many that a fiber gets on: yielding costs some operations itself.
    this.limit = 12 + Math.floor(this.next() * this.patience)
    return 0
  }

  scheduleTask(task: Task): void {
    this.tasks.push(task)
    if (this.running) return
    this.running = true
    queueMicrotask(() => {
      while (this.tasks.length > 0) this.tasks.splice(Math.floor(this.next() * this.tasks.length), 1)[0]?.()
      this.running = false
    })
  }
}
