/**
 * What is asked of a database file beside SQLite.
 *
 * POSIX drops every lock that a process has on a file as soon as the process closes any descriptor of that file. SQLite
 * does not notice: another process that closes the database then removes the write-ahead log that is in use here, and
 * what is written afterwards is lost. So a descriptor of a file that SQLite has opened in this process is never closed.
 * Source: sqlite.org/howtocorrupt.html, section 2.2.
 */
import { globalValue } from "effect/GlobalValue"
import * as fs from "node:fs"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Tells that SQLite has opened the file. For good: a closed connection lives on until its garbage is collected. */
export const opened = (file: string): void => {
  const found = identity(file)
  if (found !== undefined && !inUse.has(found)) inUse.set(found, undefined)
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Which file has this name now; undefined when there is none. Synchronous, as SQLite itself is: through the thread pool
 * it would cost as much as a commit.
 */
export const identity = (file: string): string | undefined => {
  try {
    const found = fs.statSync(file, { throwIfNoEntry: false })
    return found && `${found.dev} ${found.ino}`
  } catch {
    return undefined
  }
}

/** Bytes; 0 when there is no file. */
export const sizeOf = (file: string): number => fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** The first `size` bytes, or fewer when the file is shorter. Throws when it cannot be opened or read. */
export const beginning = (file: string, size: number): Uint8Array => {
  const found = identity(file)
  const known = found === undefined ? undefined : inUse.get(found)
  // Nothing can come between opening and closing, so SQLite does not open an unknown file meanwhile.
  const descriptor = known ?? fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const bytes = new Uint8Array(size)
    return bytes.subarray(0, fs.readSync(descriptor, bytes, 0, size, 0))
  } finally {
    if (found !== undefined && inUse.has(found)) inUse.set(found, descriptor)
    else fs.closeSync(descriptor)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Files that SQLite has opened in this process, each with the descriptor that stays open once it was read here. */
const inUse = globalValue("assent/store/DatabaseFile/inUse", () => new Map<string, number | undefined>())
