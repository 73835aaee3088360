/**
 * Hides variables of our own environment from other processes.
 *
 * Without a variable in `process.env`, programs that we start do not get it. The system still shows the environment
 * with which a process began to every process of the same user: on Linux in `/proc/PID/environ`, which maps the
 * process's own memory. There the value is overwritten. The alternative was to start ourselves again without the keys:
 * that costs a second start and leaves the first process, with its environment, in place.
 *
 * It cannot hide the environment of the shell or `npx` that started us, nor, on other systems, the output of `ps`.
 */
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs"
import * as Effect from "effect/Effect"

/** Hides the variables. Their values must have been read before. It costs nothing when none of them is set. */
export const hide = (names: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.sync(() => {
    const found = names.filter((name) => process.env[name] !== undefined)
    for (const name of found) delete process.env[name]
    if (found.length > 0 && process.platform === "linux") overwrite(new Set(found))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Overwriting is safe: nothing reads these bytes after the variable was removed from the environment. */
const overwrite = (names: ReadonlySet<string>): void => {
  let memory: number | undefined
  try {
    const stat = readFileSync("/proc/self/stat", "latin1")
    // `pid (name) state …`; the name may hold anything. The 50th and 51st field say where the environment begins and ends.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    const [start, end] = [Number(fields[47]), Number(fields[48])]
    if (!(start > 0 && end > start && end - start < longest)) return
    memory = openSync("/proc/self/mem", "r+")
    const bytes = Buffer.alloc(end - start)
    if (readSync(memory, bytes, 0, bytes.length, start) !== bytes.length) return
    for (let at = 0; at < bytes.length;) {
      const stop = bytes.indexOf(0, at)
      const to = stop < 0 ? bytes.length : stop
      const equals = bytes.indexOf("=", at)
      if (equals >= 0 && equals < to && names.has(bytes.toString("utf8", at, equals))) {
        const length = to - equals - 1
        writeSync(memory, Buffer.alloc(length), 0, length, start + equals + 1)
      }
      at = to + 1
    }
  } catch {
    // Where the system refuses, the value stays readable.
  } finally {
    if (memory !== undefined) closeSync(memory)
  }
}

/** More than any system allows for arguments and environment together. */
const longest = 64 * 1024 * 1024
