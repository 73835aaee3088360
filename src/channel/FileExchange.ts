/**
 * The directory through which a {@link FileChannel} and whoever answers it talk.
 *
 * ```
 * <directory>/requests/<requestId>.json             {requestId, …, interaction}   written by the channel
 * <directory>/responses/<requestId>.json            {requestId, answer}           written by whoever answers
 * <directory>/responses/<requestId>.rejected.json   an answer that was turned away, moved there by the channel
 * <directory>/responses/<requestId>.reason.txt      why
 * ```
 *
 * `answer` is an encoded answer, or a string as a person would type it. Characters that a file name cannot hold are
 * percent-encoded. Files are readable by their owner only, and appear whole: they are written under another name first.
 */
import type * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as ForeignJson from "../core/ForeignJson.js"
import { UnknownRequest } from "../interaction/InteractionError.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"

/** Where the files of one request are. */
export interface Files {
  readonly request: string
  readonly response: string
  readonly rejected: string
  readonly reason: string
}

export interface FileExchange {
  readonly requests: string
  readonly responses: string
  readonly files: (requestId: string) => Files
  /** Writes a file so that it is there whole or not at all. */
  readonly write: (path: string, text: string) => Effect.Effect<void, PlatformError.PlatformError>
  /** Removes all files of a request; those that are not there, or cannot be removed, are left. */
  readonly clear: (requestId: string) => Effect.Effect<void>
  /** Ids of the requests that are waiting for an answer. */
  readonly waiting: Effect.Effect<ReadonlyArray<string>, PlatformError.PlatformError>
  /** Removes requests that a crash left half-written. Only for the channel itself: nobody else knows that it crashed. */
  readonly tidy: Effect.Effect<void, PlatformError.PlatformError>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The exchange in a directory; nothing is created or checked. */
export const make = (directory: string): Effect.Effect<FileExchange, never, FileSystem.FileSystem | Path.Path> =>
  Effect.map(Effect.all([FileSystem.FileSystem, Path.Path]), ([fs, path]) => {
    const requests = path.join(directory, "requests")
    const responses = path.join(directory, "responses")
    const files = (requestId: string): Files => {
      // Dots as well: a file that starts with one is hidden, and one inside could be taken for another kind of file.
      const name = encodeURIComponent(requestId).replaceAll(".", "%2E")
      return {
        request: path.join(requests, `${name}.json`),
        response: path.join(responses, `${name}.json`),
        rejected: path.join(responses, `${name}.rejected.json`),
        reason: path.join(responses, `${name}.reason.txt`)
      }
    }
    const remove = (file: string) => Effect.ignore(fs.remove(file, { force: true }))
    return {
      requests,
      responses,
      files,
      write: (file, text) => {
        const half = path.join(path.dirname(file), `.${path.basename(file)}.half`)
        return fs.writeFileString(half, text, { mode: 0o600 }).pipe(
          Effect.zipRight(fs.rename(half, file)),
          Effect.onError(() => remove(half)),
          Effect.uninterruptible
        )
      },
      clear: (requestId) => Effect.forEach(Object.values(files(requestId)), remove, { discard: true }),
      waiting: Effect.map(fs.readDirectory(requests), (names) =>
        names.flatMap((name) => Option.toArray(requestIdOf(name)))
      ),
      tidy: Effect.flatMap(fs.readDirectory(requests), (names) =>
        Effect.forEach(
          names.filter((name) => name.endsWith(".half")),
          (name) => remove(path.join(requests, name)),
          { discard: true }
        )
      )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// answering
// -----------------------------------------------------------------------------------------------------------------

/** The requests that wait in a directory, oldest first. Files that are no requests are left out. */
export const pending = (
  directory: string
): Effect.Effect<
  ReadonlyArray<InteractionRequest.InteractionRequest>,
  PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path
> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const exchange = yield* make(directory)
    const read = yield* Effect.forEach(yield* exchange.waiting, (requestId) =>
      Effect.option(Effect.flatMap(fs.readFileString(exchange.files(requestId).request), decodeRequest))
    )
    return read.flatMap(Option.toArray).sort((a, b) => a.issuedAt - b.issuedAt)
  })

/** Answers a request that waits in a directory, with an encoded answer or with what a person typed. */
export const respond = (
  directory: string,
  requestId: string,
  answer: unknown
): Effect.Effect<void, PlatformError.PlatformError | UnknownRequest, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const exchange = yield* make(directory)
    const files = exchange.files(requestId)
    if (!(yield* fs.exists(files.request))) return yield* new UnknownRequest({ requestId })
    yield* exchange.write(files.response, `${JSON.stringify({ requestId, answer }, undefined, 2)}\n`)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decodeRequest = (text: string) =>
  Effect.flatMap(ForeignJson.parse(text), Schema.decodeUnknown(InteractionRequest.InteractionRequest))

const requestIdOf = (name: string): Option.Option<string> =>
  !/^[^.]+\.json$/.test(name)
    ? Option.none()
    : Either.getRight(Either.try(() => decodeURIComponent(name.slice(0, -".json".length))))
