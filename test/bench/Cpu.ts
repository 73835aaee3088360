/**
 * Time the main thread spent on a core, which leaves out waiting for one and the helper threads of the garbage collector.
 *
 * Linux tells it per thread; elsewhere the whole process has to do.
 */
import { readFileSync } from "node:fs"

/** Microseconds on a core since the process began. */
export const now = (): number => {
  // Asking for the usage makes the kernel bring the thread's figure up to date.
  const { user, system } = process.cpuUsage()
  const thread = mainThread()
  return thread ?? user + system
}

/** Heap in use after a thorough collection, in bytes. */
export const heapInUse = (): number => {
  const collect = globalThis.gc
  if (collect === undefined) throw new Error("Run the benchmark with --expose-gc.")
  for (let round = 0; round < 3; round++) collect()
  return process.memoryUsage().heapUsed
}

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const path = "/proc/self/schedstat"

const mainThread = (): number | undefined => {
  if (process.platform !== "linux") return undefined
  const nanos = Number(readFileSync(path, "utf8").split(" ")[0])
  return nanos > 0 ? nanos / 1_000 : undefined
}
