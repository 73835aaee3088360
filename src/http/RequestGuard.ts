/**
 * What a request has to be before anybody looks where it goes: for one of our names, and from one of our pages. It stands
 * before the routes, so that unknown paths are refused in the same way.
 *
 * A page of another site can have a browser send requests to a server on this machine, also under a name of its own that
 * it has pointed here (DNS rebinding). Names and origins keep it out; a token that no browser sends by itself does too.
 */
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import { IncomingMessage } from "node:http"
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
      const refusal = strangeness(options, request) ?? options.refusal?.(request)
      const response = refusal ?? (yield* app)
      if (response.status === 401 && guesses(request) > free) yield* Effect.sleep(penalty)
      return HttpServerResponse.setHeaders(response, {
        ...always,
        ...(response.status === 503 ? soon : {}),
        ...(response.status >= 400 && isUnread(request) ? last : {}),
        // A page says itself what it may load.
        ...response.headers
      })
    })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

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

/** Wrong keys of one connection that are answered at once. Those behind them wait, so that guessing takes no time of others. */
const free = 4

const penalty = "1 second"

const wrongKeys = new WeakMap<object, number>()

/** How many requests of this connection had no key that counts. */
const guesses = ({ source }: HttpServerRequest.HttpServerRequest): number => {
  if (!(source instanceof IncomingMessage)) return 0
  const count = (wrongKeys.get(source.socket) ?? 0) + 1
  wrongKeys.set(source.socket, count)
  return count
}

/** Nothing is read behind an answer that did not wait for its body. */
const last = { connection: "close" }

/** Bytes of a body that Node reads and forgets, so that the connection may be used again. */
const forgotten = 65_536

const isUnread = ({ headers, source }: HttpServerRequest.HttpServerRequest): boolean => {
  const isLong = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > forgotten
  return isLong && source instanceof IncomingMessage && !source.complete
}

const refuse = (status: number, tag: string, message: string) =>
  HttpServerResponse.unsafeJson({ _tag: tag, message }, { status })

/** A person follows a link to the page, which holds no secret. */
const isVisit = ({ headers, method, url }: HttpServerRequest.HttpServerRequest): boolean =>
  method === "GET" &&
  url === "/" &&
  headers["origin"] === undefined &&
  headers["sec-fetch-mode"] === "navigate" &&
  headers["sec-fetch-dest"] === "document"

const strangeness = ({ hosts, origins }: Options, request: HttpServerRequest.HttpServerRequest) => {
  const { host = "", origin, "sec-fetch-site": site } = request.headers
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
  if (site !== undefined && site !== "same-origin" && site !== "none" && !isVisit(request)) {
    return refuse(403, "SiteRefused", "Pages of another site or port may not use this server.")
  }
  return undefined
}
