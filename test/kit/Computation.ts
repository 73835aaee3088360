/**
 * Time of the processor, which other work on the machine does not make longer.
 *
 * Starts counting; yields the milliseconds that this process has computed since.
 */
export const begin = (): (() => number) => {
  const before = process.cpuUsage()
  return () => {
    const { system, user } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
}
