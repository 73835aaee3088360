/**
 * Events as an HTTP response (server-sent events).
 *
 * An id stands only where nothing before it is missing: an entry of a journal may be several events, and the last of them
 * has the id. A client that was cut off names the last id that it got, and misses nothing.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Mailbox from "effect/Mailbox"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"

/** A piece of the stream. */
export interface Piece {
  /** For `Last-Event-ID`: all before this piece, and it, are known to a client that has it. */
  readonly id?: string | undefined
  /** Default: `message`. */
  readonly event?: string | undefined
  readonly data?: unknown
  /** The data as JSON, in its place: of pieces that many clients get. */
  readonly json?: string | undefined
}

/** Where a response takes its bytes from. */
export interface Source {
  /** So many writes may wait for the connection. */
  readonly ahead: number
  /** Writes until there is no more. */
  readonly run: (lines: Lines) => Effect.Effect<void>
}

/** Why a response that stays open ends before its source does. */
export interface Parting {
  /** The name of the last event of an event stream. */
  readonly event: "goodbye" | "unauthorized"
  /** For the person at the other end. */
  readonly message: string
}

/** The way to a connection. */
export interface Lines {
  /** Waits while too much waits for the connection. */
  readonly send: (bytes: Uint8Array) => Effect.Effect<unknown>
  /** False if too much waits for the connection: more writes than the source said, or bytes. It is not written then. */
  readonly push: (bytes: Uint8Array) => boolean
}

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

/** JSON has no line breaks, so the data is one line. Ids are ours, and have none. */
export const encode = ({ data, event, id, json }: Piece): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${json ?? JSON.stringify(data)}\n${id === undefined ? "" : `id: ${id}\n`}\n`

/** A source that waits for its connection. */
export const ofPieces = (pieces: Stream.Stream<Piece>): Source => ({
  ahead: 1,
  run: ({ send }) =>
    Stream.runForEachChunk(pieces, (some) => send(bytesOf(Chunk.toReadonlyArray(some).map(encode).join(""))))
})

/**
 * The response. A comment comes whenever nothing else did for 15 seconds, so that neither end takes silence for a
 * connection that is gone. `parting` completes when the stream has to end. When the source ends, the response does, and the
 * client connects again.
 */
export const response = (
  { ahead, run }: Source,
  parting: Effect.Effect<Parting>
): HttpServerResponse.HttpServerResponse =>
  streamed(
    Stream.unwrapScoped(
      Effect.gen(function* () {
        // Written by the fibers below, read by the connection. When it is full, they wait. It ends with the source, or with
        // the server.
        const lines = yield* Mailbox.make<Uint8Array>(ahead)
        let waiting = 0
        const send = (bytes: Uint8Array) =>
          Effect.suspend(() => {
            waiting += bytes.length
            return lines.offer(bytes)
          })
        const push = (bytes: Uint8Array) => {
          if (waiting > mostWaiting || !lines.unsafeOffer(bytes)) return false
          waiting += bytes.length
          return true
        }
        yield* send(bytesOf("retry: 1000\n\n"))
        const beating = Effect.forever(Effect.zipRight(Effect.sleep(silence), send(bytesOf(beat))))
        const saying = Effect.map(parting, ({ event, message }) => encode({ event, data: { message } }))
        yield* Effect.raceFirst(Effect.as(Effect.raceFirst(run({ push, send }), beating), undefined), saying).pipe(
          Effect.flatMap((last) => (last === undefined ? Effect.void : send(bytesOf(last)))),
          Effect.zipRight(lines.end),
          Effect.forkScoped
        )
        return Stream.mapChunks(Mailbox.toStream(lines), (taken) => {
          for (const bytes of taken) waiting -= bytes.length
          return taken
        })
      })
    )
  )

/** The response of a stream that ends by itself. `farewell` is what it ends with if it has to end before. */
export const finite = (
  lines: Stream.Stream<string>,
  farewell: (message: string) => string,
  parting: Effect.Effect<Parting>,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  streamed(
    Stream.encodeText(
      Stream.suspend(() => {
        let cut: Parting | undefined
        const parted = Effect.map(parting, (why) => (cut = why))
        return Stream.merge(lines, beats, { haltStrategy: "left" }).pipe(
          Stream.interruptWhen(parted),
          Stream.concat(Stream.suspend(() => (cut === undefined ? Stream.empty : Stream.make(farewell(cut.message)))))
        )
      })
    ),
    headers
  )

// -----------------------------------------------------------------------------------------------------------------
// constants
// -----------------------------------------------------------------------------------------------------------------

/** That the server ends. */
export const goodbye: Parting = {
  event: "goodbye",
  message: "This server ends. Connect again to the one that follows it."
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const silence = "15 seconds"

/** Bytes. */
const mostWaiting = 8_000_000

const beat = ": still here\n\n"

const beats = Stream.as(Stream.fromSchedule(Schedule.spaced(silence)), beat)

export const bytesOf = (text: string): Uint8Array => encoder.encode(text)

const encoder = new TextEncoder()

const streamed = (
  bytes: Stream.Stream<Uint8Array>,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(bytes, {
    contentType: "text/event-stream",
    headers: { "x-accel-buffering": "no", ...headers }
  })
