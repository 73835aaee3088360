/** Standard output and standard error of the process, written in order, waiting for slow readers. */
import * as Effect from "effect/Effect"
import type { Writable } from "node:stream"

/**
 * Writes all of it, then goes on. A reader that has gone away is no error of ours: the text is dropped. What cannot be
 * written for another reason, such as a full disk, ends the program: an answer that nobody got must not look like one.
 */
export const write = (stream: Writable, text: string): Effect.Effect<void> =>
  Effect.async<void>((resume) => {
    if (stream.destroyed || stream.writableEnded) return resume(Effect.void)
    stream.write(text, (error) => {
      const lost = error != null && stream === process.stdout && !("code" in error && error.code === "EPIPE")
      resume(lost ? Effect.die(new Error(`standard output cannot be written: ${error.message}`)) : Effect.void)
    })
  })

/** One JSON value a line. */
export const writeJson = (stream: Writable, value: unknown): Effect.Effect<void> =>
  write(stream, `${JSON.stringify(value)}\n`)
