/** Standard input of the process, as lines. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

/** The lines, without their ends. Reading begins when the stream runs and stops with it. A read error ends the input. */
export const lines: Stream.Stream<string> = Stream.unwrapScoped(
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => process.stdin),
      // Lets the process end although the other side keeps the pipe open.
      (stdin) => Effect.sync(() => stdin.pause().unref?.())
    ),
    (stdin) =>
      Stream.fromAsyncIterable(stdin as AsyncIterable<Uint8Array | string>, () => "unreadable").pipe(
        Stream.map((chunk) => (typeof chunk === "string" ? Buffer.from(chunk) : chunk)),
        Stream.decodeText(),
        Stream.splitLines,
        Stream.catchAll(() => Stream.empty)
      )
  )
)
