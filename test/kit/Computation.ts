/** Time of the processor, which other work on the machine does not make longer. */

/** Starts counting; yields the milliseconds that this process has computed since. */
export const begin = (): (() => number) => {
  const before = process.cpuUsage()
  return () => {
    const { system, user } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
}

/**
 * The least milliseconds that work takes, of ten runs. There are fewer if one takes less than `enough`. A single run may
 * also pay for what was compiled, collected, or evicted from the caches by others.
 */
export const least = (enough: number, work: () => unknown): number => {
  let found = Number.POSITIVE_INFINITY
  for (let round = 0; round < 10 && found >= enough; round++) {
    const computed = begin()
    work()
    found = Math.min(found, computed())
  }
  return found
}
