/**
 * The directory through which a {@link FileChannel} and its answerers, programs or people, talk.
 *
 * ```
 * <directory>/requests/<requestId>.json             {requestId, …, interaction, form}   written by the channel
 * <directory>/responses/<requestId>.json            {requestId, answer, by}             written by the answerer
 * <directory>/responses/<requestId>.rejected.json   an answer that was turned away, moved there by the channel
 * <directory>/responses/<requestId>.reason.txt      why
 * <directory>/responses/<requestId>.settled.json    {requestId, status, by}             when somebody else was faster
 * ```
 *
 * `answer` is an encoded answer, or a string as a person would type it. Where the request has a `form`, what was filled in
 * may stand as `form` in its place. `by` is optional and names the person. Only regular files of our own are read: no link
 * is followed, and no file is opened that waits for another end, such as a pipe. Characters that a file name cannot hold
 * are percent-encoded. Files are readable by their owner only, and appear whole: they are written under another name
 * first.
 */
import type * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as RegularFile from "../core/RegularFile.js"
import { UnknownRequest } from "../interaction/InteractionError.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"

/** Where the files of one request are. */
export interface Files {
  readonly request: string
  readonly response: string
  readonly rejected: string
  readonly reason: string
  readonly settled: string
}

export interface FileExchange {
  readonly requests: string
  readonly responses: string
  readonly files: (requestId: string) => Files
  /** Writes a file atomically: it is there whole or not at all. */
  readonly write: (path: string, text: string) => Effect.Effect<void, PlatformError.PlatformError>
  /** Reads a regular file of this user, of at most `maxBytes` bytes. */
  readonly read: (
    path: string,
    options: { readonly maxBytes: number; readonly owner: Option.Option<number> }
  ) => Effect.Effect<string, PlatformError.PlatformError | RegularFile.FileUnfit>
  /**
   * Takes away the response that was judged: its text, none if it could not be read. Another one that has come meanwhile
   * stays for the next look. With `keep` it is kept as turned away.
   */
  readonly retire: (
    requestId: string,
    judged: Option.Option<string>,
    options: Parameters<FileExchange["read"]>[1] & { readonly keep: boolean }
  ) => Effect.Effect<void, PlatformError.PlatformError>
  /** Removes all files of a request; those that are not there, or cannot be removed, are left. */
  readonly clear: (requestId: string) => Effect.Effect<void>
  /** Ids of the requests that are waiting for an answer. */
  readonly waiting: Effect.Effect<ReadonlyArray<string>, PlatformError.PlatformError>
  /** Removes requests that a crash left half-written. For the channel only: nobody else knows that it crashed. */
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
        reason: path.join(responses, `${name}.reason.txt`),
        settled: path.join(responses, `${name}.settled.json`)
      }
    }
    const remove = (file: string) => Effect.ignore(fs.remove(file, { force: true }))
    const takenOf = (file: string) => path.join(responses, `.${path.basename(file)}.taken`)
    /** Where a newer one stands already, that one counts. A link never replaces it; some file systems have none. */
    const putBack = (response: string) =>
      fs.link(takenOf(response), response).pipe(
        Effect.catchAll(() =>
          Effect.flatMap(fs.exists(response), (isThere) =>
            isThere ? Effect.void : fs.rename(takenOf(response), response)
          )
        ),
        Effect.ignore,
        Effect.zipRight(remove(takenOf(response)))
      )
    return {
      requests,
      responses,
      files,
      write: (file, text) => {
        const half = path.join(path.dirname(file), `.${path.basename(file)}.half`)
        // Creates a new file: nothing that already stands under this name is written through.
        return Effect.zipRight(remove(half), fs.writeFileString(half, text, { mode: 0o600, flag: "wx" })).pipe(
          Effect.zipRight(fs.rename(half, file)),
          Effect.onError(() => remove(half)),
          Effect.uninterruptible
        )
      },
      read: (file, options) => readOwn(fs, file, options),
      retire: (requestId, judged, { keep, ...options }) => {
        const { rejected, response } = files(requestId)
        const taken = takenOf(response)
        // Nobody writes under the other name, so what is read there is what was taken away.
        return Effect.flatMap(
          Effect.zipRight(fs.rename(response, taken), Effect.option(readOwn(fs, taken, options))),
          (text) => {
            if (Option.getOrUndefined(text) !== Option.getOrUndefined(judged)) return putBack(response)
            return keep ? fs.rename(taken, rejected) : remove(taken)
          }
        ).pipe(Effect.uninterruptible)
      },
      clear: (requestId) => Effect.forEach(Object.values(files(requestId)), remove, { discard: true }),
      waiting: Effect.map(fs.readDirectory(requests), (names) =>
        names.flatMap((name) => Option.toArray(requestIdOf(name)))
      ),
      tidy: Effect.zipRight(
        Effect.flatMap(fs.readDirectory(requests), (names) =>
          Effect.forEach(
            names.filter((name) => name.endsWith(".half")),
            (name) => remove(path.join(requests, name)),
            { discard: true }
          )
        ),
        // The process died before it had read what it took away.
        Effect.flatMap(fs.readDirectory(responses), (names) =>
          Effect.forEach(
            names.flatMap((name) => /^\.(.+)\.taken$/.exec(name)?.slice(1) ?? []),
            (name) => putBack(path.join(responses, name)),
            { discard: true }
          )
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
    const exchange = yield* make(directory)
    const read = yield* Effect.forEach(yield* exchange.waiting, (requestId) =>
      Effect.option(Effect.flatMap(exchange.read(exchange.files(requestId).request, anybodys), decodeRequest))
    )
    return read.flatMap(Option.toArray).sort((a, b) => a.issuedAt - b.issuedAt)
  })

/** Answers a request that waits in a directory, with an encoded answer or with what a person typed, as this person. */
export const respond = (
  directory: string,
  requestId: string,
  answer: unknown,
  by?: string
): Effect.Effect<void, PlatformError.PlatformError | UnknownRequest, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const exchange = yield* make(directory)
    const files = exchange.files(requestId)
    if (!(yield* fs.exists(files.request))) return yield* new UnknownRequest({ requestId })
    yield* exchange.write(files.response, `${JSON.stringify({ requestId, answer, by }, undefined, 2)}\n`)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A request may be larger than an answer: it shows what is to run. */
const anybodys = { maxBytes: 16_777_216, owner: Option.none<number>() }

/** Nobody but its owner can write in the directory. */
const readOwn = (
  fs: FileSystem.FileSystem,
  file: string,
  { maxBytes, owner }: Parameters<FileExchange["read"]>[1]
): Effect.Effect<string, PlatformError.PlatformError | RegularFile.FileUnfit> =>
  Effect.gen(function* () {
    if (Option.isSome(yield* Effect.option(fs.readLink(file)))) {
      return yield* new RegularFile.FileUnfit({ reason: "is a link" })
    }
    if (Option.isSome(owner) && !Option.contains((yield* fs.stat(file)).uid, owner.value)) {
      return yield* new RegularFile.FileUnfit({ reason: "belongs to another user" })
    }
    return yield* RegularFile.read(fs, file, maxBytes)
  })

const decodeRequest = (text: string) =>
  Effect.flatMap(UntrustedJson.parse(text), Schema.decodeUnknown(InteractionRequest.InteractionRequest))

const requestIdOf = (name: string): Option.Option<string> =>
  !/^[^.]+\.json$/.test(name)
    ? Option.none()
    : Either.getRight(Either.try(() => decodeURIComponent(name.slice(0, -".json".length))))
