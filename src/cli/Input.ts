/** Standard input of the process, as lines. */
import * as NodeStream from "@effect/platform-node/NodeStream"
import * as Stream from "effect/Stream"

/**
 * The lines, without their ends. Reading begins when the stream runs and stops with it, at once also while nothing comes;
 * the input is closed then, so that the process can end although the other side keeps the pipe open. A read error ends it.
 */
export const lines: Stream.Stream<string> = NodeStream.fromReadable<"unreadable", Uint8Array>(
  () => process.stdin,
  () => "unreadable"
).pipe(
  Stream.decodeText(),
  Stream.splitLines,
  Stream.catchAll(() => Stream.empty)
)
