/**
 * Events as an HTTP response (server-sent events).
 *
 * An id stands only where nothing before it is missing: an entry of a journal may be several events, and the last of them
 * has the id. A client that was cut off names the last id that it got, and misses nothing.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"

/** A piece of the stream. */
export interface Piece {
  /** For `Last-Event-ID`: all before this piece, and it, are known to a client that has it. */
  readonly id?: string | undefined
  /** Default: `message`. */
  readonly event?: string | undefined
  readonly data: unknown
}

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

/** JSON has no line breaks, so the data is one line. Ids are ours, and have none. */
export const encode = ({ data, event, id }: Piece): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n${id === undefined ? "" : `id: ${id}\n`}\n`

/**
 * The response. A comment comes whenever nothing else did for 15 seconds, so that neither end takes silence for a
 * connection that is gone. `ended` completes when the server ends; `counted` holds while the stream lasts.
 */
export const response = (
  pieces: Stream.Stream<Piece>,
  ended: Effect.Effect<void>,
  counted: Effect.Effect<unknown, never, Scope.Scope>
): HttpServerResponse.HttpServerResponse => {
  const beats = Stream.as(Stream.fromSchedule(Schedule.spaced("15 seconds")), ": still here\n\n")
  const farewell = Stream.as(Stream.fromEffect(ended), encode({ event: "goodbye", data: { message: goodbye } }))
  const lines = Stream.mapChunks(pieces, (chunk) => Chunk.of(Chunk.toReadonlyArray(chunk).map(encode).join("")))
  const text = Stream.mergeAll([Stream.make("retry: 1000\n\n"), lines, beats], {
    concurrency: "unbounded",
    bufferSize: 1
  }).pipe(Stream.interruptWhen(ended), Stream.concat(farewell))
  const whole = Stream.unwrapScoped(Effect.as(counted, text))
  return HttpServerResponse.stream(Stream.encodeText(whole), {
    contentType: "text/event-stream",
    headers: { "x-accel-buffering": "no" }
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const goodbye = "This server ends. Connect again to the one that follows it."
