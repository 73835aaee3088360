/**
 * An interactor that asks through a directory: a request file out, a response file in; `FileExchange` defines them. For
 * scripts, other programs, and people with an editor.
 *
 * A response that is not an answer is moved aside, with the reason beside it, and the request stays open for another. A
 * response that is not complete yet is waited for. When a request is settled, here or elsewhere, all its files are
 * removed. A response that is there before its request counts: it came while the program was away. One process uses a
 * directory at a time.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Directory from "../core/Directory.js"
import * as FileFailure from "../core/FileFailure.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Redaction from "../core/Redaction.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Tally from "../interaction/Tally.js"
import type * as Principal from "../interaction/Principal.js"
import type { Interaction } from "../interaction/Interaction.js"
import {
  type AnswerRejected,
  InteractionCancelled,
  type InteractionError,
  InteractorUnavailable
} from "../interaction/InteractionError.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as FileExchange from "./FileExchange.js"
import * as RemoteInteractor from "./RemoteInteractor.js"

export type { Vouching } from "./RemoteInteractor.js"

/**
 * The directory that two processes share, and how long answers may take.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends RemoteInteractor.Vouching {
  /** Created when it is not there. Keep it out of reach of the agent's tools. */
  readonly directory: string
  /** Default: `file`. */
  readonly id?: string | undefined
  /** Default: one request file at a time. */
  readonly dialogs?: "one" | "unbounded" | undefined
  /** Default: 30 seconds for permission, 60 seconds for each question; a part that is not given keeps its default. */
  readonly timeouts?: Interactor.Timeouts | undefined
  /** How often to look where the file system does not report changes. Default: 500 milliseconds. */
  readonly pollInterval?: Duration.DurationInput | undefined
  /** Masks the secrets that were declared to it, in request files. Default: nothing is masked, as people decide about it. */
  readonly redactor?: Redaction.Redactor | undefined
}

/**
 * The directory cannot be used.
 *
 * @since 0.1.0
 * @category errors
 */
export class FileChannelUnusable extends Schema.TaggedError<FileChannelUnusable>("assent/channel/FileChannelUnusable")(
  "FileChannelUnusable",
  { directory: Schema.String, reason: Schema.String }
) {
  override get message(): string {
    return `The file channel cannot use ${this.directory}: ${this.reason}. Name a directory that can be written to.`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Opens the exchange. It withdraws and logs requests of an earlier process. Closing the scope cancels open requests
 * and removes their files.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<Interactor.Service, FileChannelUnusable, Scope.Scope | FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const id = options.id ?? "file"
    const fs = yield* FileSystem.FileSystem
    const exchange = yield* FileExchange.make(options.directory)
    const owner = yield* prepare(fs, yield* Path.Path, exchange, options.directory)
    const channel: Channel = {
      id,
      fs,
      exchange,
      owner,
      who: options,
      ends: new Map(),
      changes: yield* watchChanges(fs, exchange.responses),
      shown: new Map(),
      pause: Duration.decode(options.pollInterval ?? Duration.millis(500)),
      redactor: options.redactor ?? Redaction.shapesOnly
    }
    yield* Effect.addFinalizer(() => Effect.forEach([...channel.shown.keys()], exchange.clear, { discard: true }))
    yield* Effect.forkScoped(tellLate(channel))
    return yield* RemoteInteractor.make({
      id,
      dialogs: options.dialogs,
      timeouts: options.timeouts,
      who: options,
      ask: (request, ended, vote) =>
        Effect.acquireUseRelease(
          show(channel, request),
          () => awaitAnswer(channel, request, vote),
          () => withdraw(channel, request.requestId, ended())
        )
    })
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * An interactor that asks through a directory; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<Interactor.Interactor, FileChannelUnusable, FileSystem.FileSystem | Path.Path> =>
  Layer.scoped(Interactor.Interactor, make(options))

/**
 * Like {@link layer}, with settings from `Config`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  options: Config.Config.Wrap<Options>
): Layer.Layer<
  Interactor.Interactor,
  FileChannelUnusable | ConfigError.ConfigError,
  FileSystem.FileSystem | Path.Path
> => Layer.unwrapEffect(Effect.map(Config.unwrap(options), layer))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Channel {
  readonly id: string
  readonly fs: FileSystem.FileSystem
  readonly exchange: FileExchange.FileExchange
  readonly changes: Changes
  /** Requests whose files are written, and the latest settled ones: a late response to those is removed in the end. */
  readonly shown: Map<string, "open" | "settled">
  /** How the latest requests that were settled elsewhere ended, and whom to tell of a later answer. */
  readonly ends: Map<string, Interactor.Ended>
  /** This user, on systems that have users. */
  readonly owner: Option.Option<number>
  readonly pause: Duration.Duration
  readonly redactor: Redaction.Redactor
  readonly who: RemoteInteractor.Vouching
}

/** How many settled requests are remembered. */
const remembered = 1024

/** Larger responses are rejected unread. */
const maxBytes = 1_048_576

/** A response that does not parse counts as unfinished until it has not changed for this many poll intervals. */
const patience = 4

/** Prepares the directory, and yields its owner. */
const prepare = (
  fs: FileSystem.FileSystem,
  paths: Path.Path,
  exchange: FileExchange.FileExchange,
  directory: string
): Effect.Effect<Option.Option<number>, FileChannelUnusable> =>
  Effect.gen(function* () {
    for (const path of [exchange.requests, exchange.responses]) {
      yield* Directory.ensure(fs, paths, path, 0o700)
      yield* fs.access(path, { readable: true, writable: true })
    }
    const owner = yield* ownerOf(fs, exchange)
    for (const path of [directory, exchange.requests, exchange.responses]) {
      const unusable = (reason: string) => new FileChannelUnusable({ directory, reason: `${path} ${reason}` })
      if (path !== directory && Option.isSome(yield* Effect.option(fs.readLink(path)))) {
        return yield* unusable("is a link")
      }
      const { mode, uid } = yield* fs.stat(path)
      if (Option.isSome(owner) && !Option.contains(uid, owner.value)) return yield* unusable("belongs to another user")
      // Anybody who may write there may answer.
      if (Option.isSome(owner) && (mode & 0o022) !== 0) {
        return yield* unusable("can be written to by others than its owner (chmod go-w)")
      }
    }
    yield* exchange.tidy
    const leftovers = yield* exchange.waiting
    if (leftovers.length === 0) return owner
    yield* Effect.forEach(leftovers, (requestId) => fs.remove(exchange.files(requestId).request, { force: true }))
    yield* Effect.logInfo(`Withdrew requests that a former process left in ${directory}: ${leftovers.join(", ")}`)
    return owner
  }).pipe(
    Effect.mapError((error) =>
      error._tag === "FileChannelUnusable"
        ? error
        : new FileChannelUnusable({ directory, reason: FileFailure.reason(error) })
    )
  )

/** The owner of the files that this process creates. */
const ownerOf = (fs: FileSystem.FileSystem, { requests }: FileExchange.FileExchange) =>
  Effect.gen(function* () {
    const path = yield* fs.makeTempDirectory({ directory: requests, prefix: ".owner-" })
    return yield* Effect.ensuring(
      Effect.map(fs.stat(path), ({ uid }) => uid),
      Effect.ignore(fs.remove(path, { recursive: true }))
    )
  })

interface Changes {
  readonly version: () => number
  /** Waits until something has changed since `version`. */
  readonly since: (version: number) => Effect.Effect<void>
}

/** The changes that the file system reports of the directory, where it can. Askers poll as well. */
const watchChanges = (fs: FileSystem.FileSystem, directory: string): Effect.Effect<Changes, never, Scope.Scope> => {
  let version = 0
  const waiting = new Set<() => void>()
  const changed = Effect.sync(() => {
    version++
    for (const wake of waiting) wake()
    waiting.clear()
  })
  return Effect.as(Effect.forkScoped(Effect.ignore(Stream.runForEach(fs.watch(directory), () => changed))), {
    version: () => version,
    since: (seen) =>
      Effect.async<void>((resume) => {
        if (version !== seen) return resume(Effect.void)
        const wake = () => resume(Effect.void)
        waiting.add(wake)
        return Effect.sync(() => waiting.delete(wake))
      })
  })
}

const show = (
  channel: Channel,
  request: InteractionRequest.InteractionRequest
): Effect.Effect<void, InteractorUnavailable> =>
  Effect.suspend(() => {
    const { exchange, id, shown } = channel
    const { requestId } = request
    const unavailable = (reason: string) => new InteractorUnavailable({ requestId, by: id, reason })
    if (shown.get(requestId) === "open") return unavailable("a request with this id is open there already")
    shown.set(requestId, "open")
    return exchange.write(exchange.files(requestId).request, textOf(channel, request)).pipe(
      Effect.mapError(({ message }) => unavailable(`the request could not be written: ${message}`)),
      Effect.onError(() => Effect.sync(() => shown.delete(requestId)))
    )
  })

/** Removes the files of a request. When it was settled elsewhere, a file says by whom. */
const withdraw = (
  { ends, exchange, shown }: Channel,
  requestId: string,
  ended: Interactor.Ended | undefined
): Effect.Effect<void> => {
  const told = Effect.suspend(() => {
    if (ended === undefined) return Effect.void
    ends.set(requestId, ended)
    const { by, status } = ended
    const text = JSON.stringify({ requestId, status, by }, undefined, 2)
    return Effect.ignore(exchange.write(exchange.files(requestId).settled, `${text}\n`))
  })
  return Effect.zipRight(
    Effect.zipRight(exchange.clear(requestId), told),
    Effect.suspend(() => {
      shown.delete(requestId)
      shown.set(requestId, "settled")
      const forgotten: Array<string> = []
      for (const [oldest, state] of shown) {
        if (shown.size - forgotten.length <= remembered) break
        if (state === "settled") forgotten.push(oldest)
      }
      for (const oldest of forgotten) {
        shown.delete(oldest)
        ends.delete(oldest)
      }
      return Effect.forEach(forgotten, exchange.clear, { discard: true })
    })
  )
}

/** Rejects an answer that comes after the request was settled elsewhere, and says by whom that was. */
const tellLate = ({ changes, ends, exchange, fs, id, pause }: Channel): Effect.Effect<never> =>
  Effect.forever(
    Effect.gen(function* () {
      const version = changes.version()
      for (const [requestId, { by, late, status }] of ends) {
        const files = exchange.files(requestId)
        if (!(yield* Effect.orElseSucceed(fs.exists(files.response), () => false))) continue
        ends.delete(requestId)
        late(id)
        const who = by === undefined ? "" : ` by ${by}`
        const reason = `it came too late: the request was settled before (${status}${who}).\n`
        yield* Effect.ignore(
          Effect.zipRight(exchange.write(files.reason, reason), fs.rename(files.response, files.rejected))
        )
      }
      yield* Effect.raceFirst(changes.since(version), Effect.sleep(pause))
    })
  )

const awaitAnswer = <I extends Interaction>(
  channel: Channel,
  request: InteractionRequest.InteractionRequest<I>,
  vote: Interactor.Options<I>["vote"]
): Effect.Effect<Interactor.Reply<I>, InteractionError> =>
  Effect.gen(function* () {
    const { changes, pause } = channel
    let shown = request
    let half: { readonly text: string; readonly since: number } | undefined
    while (true) {
      // Read before looking, so that a change while looking is not missed.
      const version = changes.version()
      const { found, text } = yield* look(channel, request)
      switch (found._tag) {
        case "Answered":
          if (vote === undefined) return found
          shown = yield* filed(channel, shown, { found, text }, vote(found))
          break
        case "Cancelled": {
          const refused = Ballot.isReserved(request.interaction)
            ? Tally.refusal(request.interaction.needs, { by: found.by })
            : undefined
          if (refused === undefined) {
            return yield* new InteractionCancelled({ requestId: request.requestId, by: found.by })
          }
          yield* reject(channel, request.requestId, text, refused)
          break
        }
        case "Rejected":
          yield* reject(channel, request.requestId, text, found.reason)
          break
        case "Half": {
          const now = yield* Clock.currentTimeMillis
          if (half?.text !== found.text) half = { text: found.text, since: now }
          else if (found.text !== "" && now - half.since >= patience * Duration.toMillis(pause)) {
            yield* reject(channel, request.requestId, text, "it cannot be read as JSON")
          }
          break
        }
      }
      yield* Effect.raceFirst(changes.since(version), Effect.sleep(pause))
    }
  })

type Found<I extends Interaction> = Data.TaggedEnum<{
  Missing: {}
  /** Not complete, or not readable, yet. */
  Half: { readonly text: string }
  Rejected: { readonly reason: string }
  Cancelled: { readonly by: string }
  Answered: Interactor.Reply<I>
}>

interface Looked<F> {
  readonly found: F
  /** What was read; none of what could not be. */
  readonly text: Option.Option<string>
}

const look = <I extends Interaction>(
  { exchange, id, owner, who }: Channel,
  { interaction, requestId }: InteractionRequest.InteractionRequest<I>
): Effect.Effect<Looked<Found<I>>> => {
  const path = exchange.files(requestId).response
  const meant = (text: string): Found<I> => {
    const json = UntrustedJson.parse(text, { size: maxBytes })
    const known = (said: Principal.Principal | undefined) => RemoteInteractor.authorOf(id, who, said)
    if (Either.isRight(json)) return understand(interaction, requestId, json.right, known)
    return json.left.reason === "syntax"
      ? { _tag: "Half", text: text.trim() }
      : { _tag: "Rejected", reason: `it ${json.left.message}` }
  }
  return Effect.match(exchange.read(path, { maxBytes, owner }), {
    onFailure: (error) => ({
      text: Option.none(),
      found:
        error._tag === "FileUnfit"
          ? { _tag: "Rejected", reason: `it ${error.reason}` }
          : error._tag === "SystemError" && error.reason === "NotFound"
            ? { _tag: "Missing" }
            : { _tag: "Half", text: FileFailure.reason(error) }
    }),
    onSuccess: (text) => ({ text: Option.some(text), found: meant(text) })
  })
}

const decodeResponse = ParseResult.decodeUnknownEither(RemoteInteractor.Response)

const understand = <I extends Interaction>(
  interaction: I,
  requestId: string,
  json: unknown,
  known: (said: Principal.Principal | undefined) => string
): Found<I> => {
  const response = decodeResponse(json, { onExcessProperty: "error" })
  if (Either.isLeft(response)) return { _tag: "Rejected", reason: 'it is not {"requestId": …, "answer": …}' }
  if (response.right.requestId !== requestId) {
    return { _tag: "Rejected", reason: `it names another request than ${requestId}` }
  }
  const by = known(response.right.by)
  const understood = RemoteInteractor.understand(interaction, response.right)
  switch (understood._tag) {
    case "Answered":
      return { ...understood, by }
    case "Withdrawn":
      return { _tag: "Cancelled", by }
    case "Misfit":
      return { _tag: "Rejected", reason: understood.reason }
  }
}

/**
 * A vote that counts is taken away, so that the next one can come, and the request says who has voted; another one is turned
 * away with the reason. Yields the request as it is shown from now on.
 */
const filed = <I extends Interaction>(
  channel: Channel,
  shown: InteractionRequest.InteractionRequest<I>,
  { found, text }: Looked<Interactor.Reply<I>>,
  vote: Effect.Effect<Interactor.Filed, AnswerRejected>
): Effect.Effect<InteractionRequest.InteractionRequest<I>> =>
  Effect.matchEffect(vote, {
    onFailure: ({ message }) => Effect.as(reject(channel, shown.requestId, text, message), shown),
    onSuccess: () => {
      const { exchange, owner } = channel
      const voted = Tally.withVote(shown, found)
      const files = exchange.files(shown.requestId)
      // The request first: whoever sees that the vote was taken sees in the request that it counts.
      const told = Effect.zipRight(
        exchange.write(files.request, textOf(channel, voted)),
        exchange.retire(shown.requestId, text, { maxBytes, owner, keep: false })
      )
      return Effect.as(Effect.ignore(told), voted)
    }
  })

const textOf = ({ redactor }: Channel, request: InteractionRequest.InteractionRequest): string =>
  `${JSON.stringify(redactor.declared.value(InteractionRequest.present(request)), undefined, 2)}\n`

/** The reason is written before the response is taken away, so that it can be read as soon as the response is gone. */
const reject = (
  { exchange, owner }: Channel,
  requestId: string,
  text: Option.Option<string>,
  reason: string
): Effect.Effect<void> =>
  Effect.ignore(
    Effect.zipRight(
      exchange.write(exchange.files(requestId).reason, `This is not an answer to ${requestId}: ${reason}\n`),
      exchange.retire(requestId, text, { maxBytes, owner, keep: true })
    )
  )
