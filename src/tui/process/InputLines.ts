/** Standard input of the process, as lines. */
import * as NodeStream from "@effect/platform-node/NodeStream"
import * as Stream from "effect/Stream"

/**
 * The lines, without their ends. Reading begins when the stream runs and stops with it, at once also while nothing comes;
 * the input is closed then, so that the process can end although the other side keeps the pipe open. A read error ends it.
 */
export const lines: Stream.Stream<string> = Stream.suspend(() => Stream.splitLines(text))

/**
 * Like {@link lines}, with a limit: a line of more than `longest` characters is cut off one character later, and is
 * emitted as soon as that much has arrived.
 */
export const linesUpTo = (longest: number): Stream.Stream<string> => Stream.suspend(() => splitUpTo(text, longest))

/** Splits pieces of text into lines. At most `longest` + 1 characters of a line are kept; the rest is skipped. */
export const splitUpTo = <E, R>(text: Stream.Stream<string, E, R>, longest: number): Stream.Stream<string, E, R> =>
  Stream.suspend(() => {
    let held = ""
    let isCut = false
    const linesIn = (piece: string): ReadonlyArray<string> => {
      const found: Array<string> = []
      for (let from = 0; ;) {
        const end = piece.indexOf("\n", from)
        if (!isCut) {
          const room = from + longest + 1 - held.length
          held += piece.slice(from, end < 0 ? room : Math.min(end, room))
          isCut = held.length > longest
          if (isCut || end >= 0) {
            found.push(held.endsWith("\r") ? held.slice(0, -1) : held)
            held = ""
          }
        }
        if (end < 0) return found
        isCut = false
        from = end + 1
      }
    }
    const rest = Stream.suspend(() => (held === "" ? Stream.empty : Stream.succeed(held)))
    return Stream.concat(Stream.mapConcat(text, linesIn), rest)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const text: Stream.Stream<string> = NodeStream.fromReadable<"unreadable", Uint8Array>(
  () => process.stdin,
  () => "unreadable"
).pipe(
  Stream.decodeText(),
  Stream.catchAll(() => Stream.empty)
)
