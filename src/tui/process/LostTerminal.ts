/**
 * A terminal that is closed under the program. Node sets every terminal that it began with back to how it was, at its very
 * end, and aborts where that fails: whoever closed a window was told of a crash. It leaves out what is closed by then, and
 * raw mode was given back before.
 */
import * as fs from "node:fs"
import * as Tty from "./Tty.js"

const begunWith = [0, 1, 2].filter((descriptor) => Tty.isOne(descriptor))
let isHungUp = false

/** It is said that the terminal goes; the signal may come before it is gone. */
export const hungUp = (): void => {
  isHungUp = true
}

/** Lets go of terminals that are gone, after all else that is done at the end of the process. */
export const letGo = (): void => {
  process.on("exit", () => {
    for (const descriptor of begunWith) if (isHungUp || !Tty.isOne(descriptor)) close(descriptor)
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const close = (descriptor: number): void => {
  try {
    fs.closeSync(descriptor)
  } catch {
    // It is closed.
  }
}
