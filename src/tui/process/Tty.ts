/** Detects a person at a terminal. It is apart from the screen, which is loaded for a person only. */
import * as fs from "node:fs"
import { isatty, ReadStream, WriteStream } from "node:tty"

let isPlain = false

/** From now on nothing is drawn, and nothing is coloured: somebody listens to the terminal. */
export const keepPlain = (): void => {
  isPlain = true
}

/** Whether colours may be used at all. */
export const mayColor = (): boolean => !isPlain

/**
 * Whether a person can be asked at this output: both it and standard input are terminals.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isInteractive = (output: "stdout" | "stderr"): boolean =>
  // Checks the descriptors: naming `process.stdin` would already open a stream.
  isatty(0) && isatty(output === "stdout" ? 1 : 2)

/**
 * Whether a screen can be drawn at this output, and again over itself.
 *
 * @since 0.1.0
 * @category predicates
 */
export const canDraw = (output: "stdout" | "stderr"): boolean => isInteractive(output) && isDrawable(output)

/** Whether a person reads this output on a terminal that knows more than lines. */
export const isDrawable = (output: "stdout" | "stderr"): boolean =>
  !isPlain && isatty(output === "stdout" ? 1 : 2) && process.env["TERM"] !== "dumb"

/** Whether rows are told in words: somebody listens, or reads on a terminal that knows no more than lines. */
export const isHeard = (output: "stdout" | "stderr"): boolean =>
  isPlain || (!isDrawable(output) && isatty(output === "stdout" ? 1 : 2))

/** False for what a shell runs in the background, with `&`. True where that cannot be told. */
export const isForeground = (): boolean => {
  const { foreground, group } = groups() ?? {}
  return group === foreground
}

/** The terminal of the process, whatever its standard streams are: both its ends, which its caller closes. Nothing without one. */
export const open = (): { readonly input: ReadStream; readonly output: WriteStream } | undefined => {
  const descriptors: Array<number> = []
  try {
    // Each end closes its own.
    for (const mode of ["r", "w"]) descriptors.push(fs.openSync("/dev/tty", mode))
    const [reads = -1, writes = -1] = descriptors
    return { input: new ReadStream(reads), output: new WriteStream(writes) }
  } catch {
    descriptors.forEach((one) => fs.closeSync(one))
    return undefined
  }
}

/** Whether the process has a terminal. */
export const isThere = (): boolean => {
  try {
    fs.closeSync(fs.openSync("/dev/tty", "r+"))
    return true
  } catch {
    return false
  }
}

/** Whether this descriptor is a terminal, which is not gone. */
export const isOne = (descriptor: number): boolean => isatty(descriptor)

/** Whether this reads a terminal that is the shell's at this moment, or another job's. */
export const isBehindShell = (): boolean => {
  // A terminal whose shell has died is nobody's.
  const isHeld = Number(groups()?.foreground ?? 0) > 0
  return isatty(0) && isHeld && !isForeground()
}

/** Whether a shell runs this as one of its jobs, and has the terminal whenever we are stopped. True where that cannot be told. */
export const isJob = (): boolean => {
  const known = groups()
  return known === undefined || known.group !== known.session
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const groups = () => {
  try {
    // Behind the name, which may hold anything: state, parent, group, session, terminal, and the group in its foreground.
    const [, , group, session, , foreground] = fs
      .readFileSync("/proc/self/stat", "utf8")
      .replace(/^.*\) /s, "")
      .split(" ")
    return { group, session, foreground }
  } catch {
    return undefined
  }
}
