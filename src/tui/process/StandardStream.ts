/** How text leaves the process. It needs no package: what only tells help or the version has it alone. */

export type Name = "stdout" | "stderr"

/**
 * Writes, and calls back when all of it is written. When the reader has gone away the text is dropped without an error.
 * Any other failed write to standard output, such as on a full disk, is handed back: a lost answer must not look like
 * success.
 */
export const write = (to: Name, text: () => string, written: (lost: Error | undefined) => void): void => {
  const stream = process[to]
  if (isGone(stream)) return written(undefined)
  stream.write(text(), (error) => {
    const isLost = error != null && to === "stdout" && !("code" in error && error.code === "EPIPE")
    written(isLost ? new Error(`standard output cannot be written: ${error.message}`) : undefined)
  })
}

/** The width of the terminal that it leads to. Some report a width of zero, or none. */
export const columns = (name: Name): number | undefined =>
  process[name].columns > 0 ? process[name].columns : undefined

export const isGone = (stream: NodeJS.WriteStream): boolean => stream.destroyed || stream.writableEnded

/** A reader may go away, as in `assent run … | head -1`; writers learn of it from the write's own callback. */
export const outliveReaders = (): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})
}
