/** Standard output and standard error of the process, written in order, waiting for slow readers. */
import * as Effect from "effect/Effect"
import type { Writable } from "node:stream"

/** Writes all of it, then goes on. A reader that has gone away is no error of ours: the text is dropped. */
export const write = (stream: Writable, text: string): Effect.Effect<void> =>
  Effect.async<void>((resume) => {
    if (stream.destroyed || stream.writableEnded) return resume(Effect.void)
    stream.write(text, () => resume(Effect.void))
  })

/** One JSON value a line. */
export const writeJson = (stream: Writable, value: unknown): Effect.Effect<void> =>
  write(stream, `${JSON.stringify(value)}\n`)
