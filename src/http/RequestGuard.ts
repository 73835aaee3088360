/**
 * What a request has to be before anybody looks where it goes: for one of our names, from one of our pages, JSON, and not
 * too large. It stands before the routes, so that unknown paths are refused in the same way.
 *
 * A page of another site can have a browser send requests to a server on this machine, also under a name of its own that
 * it has pointed here (DNS rebinding). Names and origins keep it out; a token that no browser sends by itself does too.
 */
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as UntrustedJson from "../core/UntrustedJson.js"

/** Who may ask. */
export interface Options {
  /** Names with ports, such as `127.0.0.1:4096`, in lower case. Nothing else is served. */
  readonly hosts: ReadonlySet<string>
  /** Such as `http://127.0.0.1:4096`. A request without an origin is no page's. */
  readonly origins: ReadonlySet<string>
  /** Refuses for a reason of the server's own, such as its end. */
  readonly refusal?:
    ((request: HttpServerRequest.HttpServerRequest) => HttpServerResponse.HttpServerResponse | undefined) | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Refuses what does not belong here; the rest goes on to `app`. */
export const before =
  (options: Options) =>
  <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const refusal = strangeness(options, request) ?? options.refusal?.(request) ?? (yield* ofBody(request))
      return refusal ?? (yield* app)
    }).pipe(
      // A page says itself what it may load.
      Effect.map((response) =>
        HttpServerResponse.setHeaders(response, {
          ...always,
          ...(response.status === 503 ? soon : {}),
          ...response.headers
        })
      )
    )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The longest body, in bytes. */
const maxBody = 1_048_576

/** That of a page which sends its whole history with each message. */
const maxHistory = 4 * maxBody

const maxOf = (url: string): number => (/^\/v1\/(?:agui|ai)\//.test(url) ? maxHistory : maxBody)

/** On every answer that says nothing else: nothing of it is kept, framed, guessed or run. */
const always = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

/** What cannot be done now can be done soon. */
const soon = { "retry-after": "5" }

const refuse = (status: number, tag: string, message: string) =>
  HttpServerResponse.unsafeJson(
    { _tag: tag, message },
    { status, headers: status === 413 ? { connection: "close" } : {} }
  )

const strangeness = ({ hosts, origins }: Options, { headers }: HttpServerRequest.HttpServerRequest) => {
  const { host = "", origin, "sec-fetch-site": site } = headers
  if (!hosts.has(host.toLowerCase())) {
    const name = UntrustedJson.echo(host, 100)
    return refuse(
      403,
      "HostRefused",
      `This server does not answer as "${name}". Use its own address, or allow that name where the server is started.`
    )
  }
  if (origin !== undefined && !origins.has(origin.toLowerCase())) {
    return refuse(403, "OriginRefused", `Pages of "${UntrustedJson.echo(origin, 100)}" may not use this server.`)
  }
  if (site !== undefined && site !== "same-origin" && site !== "none") {
    return refuse(403, "SiteRefused", "Pages of another site or port may not use this server.")
  }
  return undefined
}

const hasBody = (method: string) => method !== "GET" && method !== "HEAD" && method !== "OPTIONS"

/** Reads the body up to its limit. Later readers find the same text. */
const ofBody = (request: HttpServerRequest.HttpServerRequest) => {
  const { "content-length": length, "content-type": type, "transfer-encoding": encoding } = request.headers
  if (!hasBody(request.method) || (length === undefined && encoding === undefined) || length === "0") {
    const isEmptyPost = request.method === "POST" && type !== undefined && !isJson(type)
    return Effect.succeed(isEmptyPost ? notJson : undefined)
  }
  if (!isJson(type)) return Effect.succeed(notJson)
  const most = maxOf(request.url)
  if (Number(length ?? 0) > most) return Effect.succeed(tooLarge(most))
  return request.text.pipe(
    HttpIncomingMessage.withMaxBodySize(Option.some(most)),
    Effect.match({
      onFailure: () => tooLarge(most),
      onSuccess: (text) =>
        Either.match(UntrustedJson.parse(text, { size: most }), {
          onLeft: ({ message }) => refuse(400, "BadRequest", `The body ${message}.`),
          onRight: () => undefined
        })
    })
  )
}

const isJson = (type: string | undefined) => /^application\/json(?:\s*;|$)/i.test(type?.trim() ?? "")

const notJson = refuse(
  415,
  "TypeRefused",
  "The body has to be JSON. Send it with the header content-type: application/json."
)

const tooLarge = (most: number) =>
  refuse(413, "BodyTooLarge", `The body has more than ${most} bytes, or did not arrive whole.`)
