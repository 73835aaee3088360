/** Another order of things: a scheduler that runs fibers in random order and lets them go at random points. */
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

/** All that it does is an order in which Effect may run fibers; `yields` is how often a fiber is let go, 0 to 1. */
export class Shuffled implements Scheduler {
  private readonly tasks: Array<Task> = []
  private running = false

  constructor(
    private readonly next: () => number,
    private readonly yields = 0.3
  ) {}

  shouldYield(_: RuntimeFiber<unknown, unknown>): number | false {
    return this.next() < this.yields ? 0 : false
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
