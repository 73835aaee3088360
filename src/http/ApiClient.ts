/**
 * A client of a server: typed calls, and events as a stream. The token is read before each request, so that a new one counts
 * at once.
 */
import * as HttpApiClient from "@effect/platform/HttpApiClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Sse from "@effect/experimental/Sse"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Connection from "../model/Connection.js"
import * as Api from "./Api.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** Where a server is, and how it knows the client. */
export interface Options {
  /** Such as `http://127.0.0.1:4096`. */
  readonly url: string
  readonly token: Effect.Effect<Redacted.Redacted>
}

/** A piece of a stream of events. */
export interface Piece {
  /** Absent for a piece that is not stored. */
  readonly id: string | undefined
  /** `message`, unless the server says something about the stream itself. */
  readonly event: string
  readonly data: unknown
}

export interface ApiClient {
  readonly url: string
  readonly sessions: Calls["sessions"]
  readonly requests: Calls["requests"]
  readonly control: Calls["control"]
  /** Events behind this id, until the server ends the stream or says nothing for a while. */
  readonly events: (path: string, after: string | undefined) => Stream.Stream<Piece, CallFailed>
}

type Calls = Effect.Effect.Success<ReturnType<typeof calls>>

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/** A call that did not succeed. `Unreachable`: nobody knows whether the server got it. */
export class CallFailed extends Data.Error<{ readonly _tag: string; readonly message: string }> {}

/** The tag of a call that got no answer. */
export const unreachable = "Unreachable"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (options: Options): Effect.Effect<ApiClient, never, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const { url } = options
    const client = authorized(options)(yield* HttpClient.HttpClient)
    const { control, requests, sessions } = yield* calls(options)
    return {
      url,
      requests,
      control,
      sessions,
      events: (path, after) =>
        Stream.unwrapScoped(
          Effect.gen(function* () {
            const request = HttpClientRequest.get(`${url}${path}`, {
              acceptJson: false,
              headers: { accept: "text/event-stream", ...(after === undefined ? {} : { "last-event-id": after }) }
            })
            const response = yield* failing(options, client.execute(request))
            if (response.status !== 200) {
              const body = yield* Effect.orElseSucceed(response.text, () => "")
              return yield* saidIn(body, response.status)
            }
            return pieces(Stream.mapError(response.stream, (error) => failureOf(options, error)))
          })
        )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The same, failing with a sentence. */
export const failing = <A, E, R>(
  { url }: Pick<Options, "url">,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, CallFailed, R> => Effect.mapError(effect, (error) => failureOf({ url }, error))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** No redirect is followed: it would carry the token to another server. */
const authorized =
  ({ token }: Options) =>
  (client: HttpClient.HttpClient): HttpClient.HttpClient =>
    Connection.untraced(client).pipe(
      HttpClient.mapRequestEffect((request) =>
        Effect.map(token, (value) => HttpClientRequest.bearerToken(request, value))
      ),
      HttpClient.transformResponse(Connection.unredirected)
    )

const calls = (options: Options) =>
  HttpApiClient.make(Api.Api, { baseUrl: options.url, transformClient: authorized(options) })

const failureOf = ({ url }: Pick<Options, "url">, error: unknown): CallFailed => {
  if (error instanceof CallFailed) return error
  if (Predicate.isTagged(error, "RequestError")) return notThere(url)
  if (Predicate.isTagged(error, "ResponseError"))
    return Predicate.hasProperty(error, "reason") && error.reason === "StatusCode"
      ? new CallFailed({ _tag: "AnswerUnreadable", message: `The server at ${url} refuses this client.` })
      : notThere(url)
  if (Predicate.hasProperty(error, "_tag") && error instanceof Error && error._tag !== "ParseError")
    return new CallFailed({ _tag: String(error._tag), message: error.message })
  return new CallFailed({
    _tag: "AnswerUnreadable",
    message: `The answer of ${url} was not understood. Use the same version of Assent at both ends.`
  })
}

const notThere = (url: string) =>
  new CallFailed({ _tag: unreachable, message: `The server at ${url} does not answer.` })

/** What the server says in an answer that refuses. */
const saidIn = (body: string, status: number): CallFailed => {
  const json = Either.getOrUndefined(UntrustedJson.parse(body))
  const message = Predicate.hasProperty(json, "message") ? String(json.message) : `It answered with status ${status}.`
  const _tag = Predicate.hasProperty(json, "_tag") ? String(json._tag) : "AnswerUnreadable"
  return new CallFailed({ _tag, message })
}

/** The server sends a comment at least every 15 seconds. */
const longestSilence = "45 seconds"

const pieces = (bytes: Stream.Stream<Uint8Array, CallFailed>): Stream.Stream<Piece, CallFailed> => {
  let found: Array<Piece> = []
  const parser = Sse.makeParser((event) => {
    if (event._tag !== "Event") return
    const data = UntrustedJson.parse(event.data, { size: Infinity })
    if (Either.isRight(data)) found.push({ id: event.id, event: event.event, data: data.right })
  })
  return bytes.pipe(
    Stream.decodeText(),
    Stream.timeoutFail(
      () => new CallFailed({ _tag: unreachable, message: "The server says nothing any more." }),
      longestSilence
    ),
    Stream.mapConcat((text) => {
      found = []
      parser.feed(text)
      return found
    })
  )
}
