/**
 * An interactor that asks by HTTP: one POST per request, whose response is the answer.
 *
 * ```
 * POST <url>                                 200
 * authorization: Bearer <token>              content-type: application/json
 * idempotency-key: <requestId>
 * {requestId, …, interaction, form}          {"requestId": …, "answer": …, "by": …}
 * ```
 *
 * `answer` is an encoded answer, or a string as a person would type it. Where the request has a `form`, what was filled in
 * may stand as `form` in its place. `by` is optional, names the person, and counts where the server was declared to vouch for
 * it. Where several have to agree, such a server is asked again after each vote, with those who have voted; the key then has
 * the number of the time behind a dot. The connection stays open until somebody answers; it is closed when the request is withdrawn or its time is up. Any
 * response but a 200 that names the request and fits it makes the request fail here as unavailable. Failures that may
 * pass (no connection, 408, 429 and 5xx) are retried before that, under the same idempotency key.
 *
 * @since 0.1.0
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as ProxyFault from "../core/ProxyFault.js"
import * as Redaction from "../core/Redaction.js"
import * as WebAddress from "../core/WebAddress.js"
import * as Tally from "../interaction/Tally.js"
import type * as Principal from "../interaction/Principal.js"
import type { Interaction } from "../interaction/Interaction.js"
import { InteractionCancelled, type InteractionError, InteractorUnavailable } from "../interaction/InteractionError.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as RemoteInteractor from "./RemoteInteractor.js"

export { WebAddressRefused } from "../core/WebAddress.js"
export type { Vouching } from "./RemoteInteractor.js"

/**
 * The address that is asked, and how long an answer may take.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends RemoteInteractor.Vouching {
  /** An http or https address without a user name or a password. A redirect is not followed: it is a failure. */
  readonly url: string
  /** Sent as `authorization: Bearer …`. */
  readonly token?: Redacted.Redacted | undefined
  /** Sent with every request. They may be secret, and are not logged here. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Default: `webhook`. */
  readonly id?: string | undefined
  /** Default: one request at a time. */
  readonly dialogs?: "one" | "unbounded" | undefined
  /** Default: 30 seconds for permission, 60 seconds for each question; a part that is not given keeps its default. */
  readonly timeouts?: Interactor.Timeouts | undefined
  /** When to retry after a failure that may pass. Default: {@link retries} within the request's time. */
  readonly retry?: Schedule.Schedule<unknown, unknown> | undefined
  /** Masks the secrets that were declared to it, in what is sent. Default: nothing is masked, as people decide about it. */
  readonly redactor?: Redaction.Redactor | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Makes the channel. Closing the scope cancels open requests and closes their connections.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<Interactor.Service, WebAddress.WebAddressRefused, Scope.Scope | HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const url = (yield* WebAddress.parse(options.url)).href
    const id = options.id ?? "webhook"
    // The client's own spans would record the address and the headers, which may hold secrets.
    const silent = HttpClient.withTracerDisabledWhen(client, () => true)
    const timeouts = Interactor.timeoutsOf(options.timeouts, RemoteInteractor.defaultTimeouts)
    const redactor = options.redactor ?? Redaction.shapesOnly
    const failures = new WeakMap<InteractionRequest.InteractionRequest, InteractorUnavailable>()
    return yield* RemoteInteractor.make({
      id,
      dialogs: options.dialogs,
      timeouts,
      who: options,
      // While a retry waits, the last failure says more than "nobody answered".
      why: (request) => failures.get(request),
      ask: (request, _, vote) => {
        const limit = Interactor.timeoutOf(request.interaction, timeouts)
        const unavailable = ({ reason }: Failure) =>
          new InteractorUnavailable({ requestId: request.requestId, by: id, reason })
        const known = (said: Principal.Principal | undefined) => RemoteInteractor.authorOf(id, options, said)
        const asked = (shown: typeof request, key: string) =>
          post(silent, { ...options, url }, redactor, shown, key).pipe(
            Effect.tapError((failure) => Effect.sync(() => failures.set(request, unavailable(failure)))),
            Effect.retry({
              while: (failure) => failure.transient,
              schedule: options.retry ?? retries(Option.getOrElse(limit, () => Duration.minutes(1)))
            }),
            Effect.mapError(unavailable),
            Effect.flatMap((response) => understand(id, request, response, known))
          )
        return vote === undefined
          ? asked(request, request.requestId)
          : polled(request, asked, vote, (reason) => unavailable({ reason, transient: false }))
      }
    })
  })

/**
 * Waits a quarter of a second, then twice as long each time, at most five seconds, with jitter. Ends early enough
 * within `limit` to report the last failure instead of "nobody answered".
 *
 * @since 0.1.0
 * @category constructors
 */
export const retries = (limit: Duration.Duration): Schedule.Schedule<unknown, unknown> => {
  const millis = Duration.toMillis(limit)
  return Schedule.exponential("250 millis").pipe(
    Schedule.union(Schedule.spaced("5 seconds")),
    Schedule.jittered,
    Schedule.upTo(Duration.millis(Math.max(millis / 2, millis - 10_000)))
  )
}

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * An interactor that asks a server; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<Interactor.Interactor, WebAddress.WebAddressRefused, HttpClient.HttpClient> =>
  Layer.scoped(Interactor.Interactor, make(options))

/**
 * Like {@link layer}, with settings from `Config`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  options: Config.Config.Wrap<Options>
): Layer.Layer<Interactor.Interactor, WebAddress.WebAddressRefused | ConfigError.ConfigError, HttpClient.HttpClient> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(options), layer))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Longer responses are rejected. */
const maxBytes = 1_048_576

/** Why there is no response to read. The reason holds no part of the request, whose headers are secret. */
interface Failure {
  readonly reason: string
  readonly transient: boolean
}

/** How often in a row a server may answer with what does not count, or was counted before. */
const patience = 5

/** Asks for one vote after the other, until the question is settled and this is interrupted. */
const polled = <I extends Interaction>(
  request: InteractionRequest.InteractionRequest<I>,
  ask: (
    shown: InteractionRequest.InteractionRequest<I>,
    key: string
  ) => Effect.Effect<Interactor.Reply<I>, InteractionError>,
  vote: NonNullable<Interactor.Options<I>["vote"]>,
  unavailable: (reason: string) => InteractionError
): Effect.Effect<Interactor.Reply<I>, InteractionError> => {
  const go = (
    shown: InteractionRequest.InteractionRequest<I>,
    time: number,
    vain: number
  ): Effect.Effect<Interactor.Reply<I>, InteractionError> =>
    Effect.flatMap(ask(shown, time === 1 ? request.requestId : `${request.requestId}.${time}`), (reply) =>
      Effect.matchEffect(vote(reply), {
        onFailure: ({ message }) =>
          vain + 1 >= patience ? Effect.fail(unavailable(message)) : go(shown, time + 1, vain + 1),
        onSuccess: (filed) => {
          if (filed === "settled") return Effect.never
          const next = Tally.withVote(shown, reply)
          if (next !== shown) return go(next, time + 1, 0)
          const again = `it repeats the vote of ${reply.by ?? "nobody"}`
          return vain + 1 >= patience ? Effect.fail(unavailable(again)) : go(shown, time + 1, vain + 1)
        }
      })
    )
  return go(request, 1, 0)
}

const post = (
  client: HttpClient.HttpClient,
  options: Options,
  redactor: Redaction.Redactor,
  request: InteractionRequest.InteractionRequest,
  key: string
): Effect.Effect<string, Failure> => {
  const message = HttpClientRequest.post(options.url).pipe(
    HttpClientRequest.setHeaders({ ...options.headers, "idempotency-key": key }),
    HttpClientRequest.acceptJson,
    options.token === undefined ? (same) => same : HttpClientRequest.bearerToken(options.token),
    HttpClientRequest.bodyUnsafeJson(redactor.declared.value(InteractionRequest.present(request)))
  )
  return unredirected(client.execute(message)).pipe(
    Effect.flatMap((response): Effect.Effect<string, Failure | HttpClientError.HttpClientError> =>
      response.status === 200
        ? bodyOf(response)
        : Effect.fail({
            reason: isRedirect(response.status)
              ? `the webhook returned status ${response.status || "3xx"}, a redirect, and those are not followed`
              : `the webhook returned status ${response.status}`,
            transient: response.status === 408 || response.status === 429 || response.status >= 500
          })
    ),
    Effect.mapError((error): Failure => ("transient" in error ? error : failureOf(error)))
  )
}

/** A browser hides the status of a redirect. */
const isRedirect = (status: number): boolean => status === 0 || (status >= 300 && status < 400)

// A redirect would carry the token and the question to another address. Among the platform's clients only the one over
// `fetch` follows redirects.
const unredirected = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.mapInputContext(effect, (context: Context.Context<R>) => {
    const init = Option.getOrUndefined(Context.getOption(context, FetchHttpClient.RequestInit))
    return Context.add(context, FetchHttpClient.RequestInit, { ...init, redirect: "manual" })
  })

const failureOf = (error: HttpClientError.HttpClientError): Failure => {
  const proxy = ProxyFault.within(error)
  if (proxy !== undefined) return { reason: proxy.message.replace(/\.$/, ""), transient: proxy.transient }
  if (error._tag === "ResponseError") return { reason: "the webhook's response broke off", transient: true }
  return error.reason === "Transport"
    ? { reason: "the webhook could not be reached", transient: true }
    : { reason: "the webhook's address is not a valid URL", transient: false }
}

const bodyOf = (
  response: HttpClientResponse.HttpClientResponse
): Effect.Effect<string, Failure | HttpClientError.HttpClientError> =>
  response.stream.pipe(
    Stream.mapAccumEffect(0, (size, bytes): Effect.Effect<readonly [number, Uint8Array], Failure> => {
      const total = size + bytes.length
      return total <= maxBytes
        ? Effect.succeed([total, bytes])
        : Effect.fail({ reason: `the webhook's response is larger than ${maxBytes} bytes`, transient: false })
    }),
    Stream.decodeText(),
    Stream.mkString
  )

const decodeResponse = ParseResult.decodeUnknownEither(RemoteInteractor.Response)

const understand = <I extends Interaction>(
  id: string,
  { interaction, requestId }: InteractionRequest.InteractionRequest<I>,
  text: string,
  known: (said: Principal.Principal | undefined) => string
): Effect.Effect<Interactor.Reply<I>, InteractionError> => {
  const unavailable = (reason: string) => new InteractorUnavailable({ requestId, by: id, reason })
  const json = UntrustedJson.parse(text, { size: maxBytes })
  if (Either.isLeft(json) && json.left.reason !== "syntax") {
    return unavailable(`the webhook answered with JSON that ${json.left.message}`)
  }
  const response = Either.flatMap(json, (value) => decodeResponse(value, { onExcessProperty: "error" }))
  if (Either.isLeft(response)) {
    return unavailable('the webhook answered with status 200, but not with {"requestId": …, "answer": …}')
  }
  if (response.right.requestId !== requestId) return unavailable("the webhook answered another request than this one")
  const by = known(response.right.by)
  const understood = RemoteInteractor.understand(interaction, response.right)
  switch (understood._tag) {
    case "Answered":
      return Effect.succeed({ answer: understood.answer, by })
    case "Withdrawn":
      return new InteractionCancelled({ requestId, by })
    case "Misfit":
      return unavailable(`the webhook's answer does not fit: ${understood.reason}`)
  }
}
