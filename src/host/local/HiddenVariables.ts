/**
 * Hides variables of our own environment from other processes.
 *
 * Without a variable in `process.env`, programs that we start do not get it. The system still shows the environment
 * with which a process began to every process of the same user: on Linux in `/proc/PID/environ`, which maps the
 * process's own memory. There the values are overwritten: all but those that every command gets anyway. The alternative was
 * to start ourselves again without the keys: that costs a second start and leaves the first process, with its environment,
 * in place.
 *
 * It cannot hide the environment of the shell or `npx` that started us, nor, on other systems, the output of `ps`.
 */
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs"
import { isMainThread } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as CommandEnvironment from "../../builtin/CommandEnvironment.js"

/**
 * Takes our `own` variables out of `process.env`: their values must have been read before. The system shows no value to
 * others that is not known to be harmless.
 */
export const hide = (own: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.sync(() => {
    for (const name of own) delete process.env[name]
    if (process.platform === "linux") overwrite(new Set(own))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Overwriting is safe: a variable that the process still has is first written to another place. A worker has a copy of the
 * environment and cannot do that, so it overwrites its own ones only.
 */
const overwrite = (own: ReadonlySet<string>): void => {
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
      if (to === at) {
        at++
        continue
      }
      const equals = bytes.indexOf("=", at)
      // An entry that is no assignment is nobody's to read.
      const from = equals >= 0 && equals < to ? equals + 1 : at
      const name = bytes.toString("utf8", at, Math.max(at, from - 1))
      const isHidden =
        own.has(name) || (isMainThread && !CommandEnvironment.isHarmless(name, bytes.toString("utf8", from, to)))
      if (isHidden && from < to) {
        const value = process.env[name]
        if (value !== undefined) process.env[name] = value
        writeSync(memory, Buffer.alloc(to - from), 0, to - from, start + from)
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
