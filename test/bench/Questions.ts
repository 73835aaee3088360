/** Agents of the promise systems that are blocked on a question, and what it costs to ask and to answer them all. */
import * as Cpu from "./Cpu.js"
import type { Sample } from "./Workload.js"

export interface Questions {
  /** What a tool does that asks and waits. */
  readonly ask: () => Promise<void>
  /** Microseconds and heap of each, once `size` have asked what `begin` begins; yields when all is done. */
  readonly blocked: (size: number, begin: () => Promise<void>) => Promise<Sample>
}

export const make = (): Questions => {
  const open: Array<() => void> = []
  return {
    ask: () =>
      new Promise<void>((resolve) => {
        open.push(resolve)
      }),
    blocked: async (size, begin) => {
      const before = Cpu.heapInUse()
      const start = Cpu.now()
      const done = begin()
      while (open.length < size) await new Promise(setImmediate)
      const began = Cpu.now() - start
      const heap = Cpu.heapInUse() - before
      const answering = Cpu.now()
      for (const answer of open.splice(0)) answer()
      await done
      return { us: (began + Cpu.now() - answering) / size, kb: heap / size / 1_024 }
    }
  }
}
