/** What is piped into the program beside its words. */
import * as NodeStream from "@effect/platform-node/NodeStream"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { fstatSync } from "node:fs"

/**
 * How standard input comes: a `file` or the `pipe` of a shell, which end; or a `socket`, as programs give it to those that
 * they start, and may leave open for ever. Nothing for a terminal, for `/dev/null`, and where it is closed.
 */
export const kind = (): "file" | "pipe" | "socket" | undefined => {
  try {
    const stat = fstatSync(0)
    return stat.isFile() ? "file" : stat.isFIFO() ? "pipe" : stat.isSocket() ? "socket" : undefined
  } catch {
    return undefined
  }
}

/**
 * All of it, up to `most` bytes and a little more. Nothing where a socket was silent for so long that nobody seems to
 * write. Of a pipe that is silent `waiting` is told once, as only a person knows whether somebody will write.
 */
export const read = (options: {
  readonly most: number
  readonly waiting: Effect.Effect<void>
}): Effect.Effect<Uint8Array | undefined> =>
  Effect.scoped(
    Effect.gen(function* () {
      const input = NodeStream.fromReadable<"unreadable", Uint8Array>(
        () => process.stdin,
        () => "unreadable"
      )
      const pull = yield* Stream.toPull(Stream.catchAll(input, () => Stream.empty))
      const next = Effect.option(pull)
      const isSocket = kind() === "socket"
      const telling = yield* Effect.fork(isSocket ? Effect.void : Effect.delay(options.waiting, patience))
      const first = yield* isSocket ? Effect.timeoutOption(next, grace) : Effect.asSome(next)
      yield* Fiber.interrupt(telling)
      if (Option.isNone(first)) return undefined
      const pieces: Array<Uint8Array> = []
      let length = 0
      for (let came = first.value; Option.isSome(came) && length <= options.most; came = yield* next) {
        for (const piece of came.value) {
          pieces.push(piece)
          length += piece.length
        }
      }
      return Buffer.concat(pieces)
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Who starts us with a socket and has something to say writes at once; many have nothing, and never close it. The program
 * is still starting meanwhile.
 */
const grace = "150 millis"
const patience = "2 seconds"
