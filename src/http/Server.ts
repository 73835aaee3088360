/**
 * The API behind a port of this machine: limits of the connections, the guard before the routes, and a gentle end.
 *
 * ```
 *   ending: no new words ─► running tools end (10 s at most) ─► streams say goodbye ─► connections close
 * ```
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type * as HttpServerError from "@effect/platform/HttpServerError"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as OpenApi from "@effect/platform/OpenApi"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import { createServer } from "node:http"
import * as Host from "../host/Host.js"
import type { StoreUnusable } from "../journal/StoreError.js"
import * as Api from "./Api.js"
import * as ApiHandlers from "./ApiHandlers.js"
import * as RequestGuard from "./RequestGuard.js"

export interface Options extends Omit<ApiHandlers.Options, "ending"> {
  /** Where it listens; an address or a name. */
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  /** Further names with ports under which it answers, as behind a proxy. */
  readonly allowHosts?: ReadonlyArray<string> | undefined
}

export interface Server {
  /** Such as `http://127.0.0.1:4096`. */
  readonly url: string
  /** Ends gently; returns when running tools have ended and clients are told. */
  readonly end: Effect.Effect<void>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Listens until the scope closes. */
export const make = (
  options: Options
): Effect.Effect<
  Server,
  HttpServerError.ServeError | Host.LookFailure | StoreUnusable,
  Host.Host | Api.Authentication | Scope.Scope
> =>
  Effect.gen(function* () {
    const host = yield* Host.Host
    const ended = yield* Deferred.make<void>()
    let isEnding = false
    const node = createServer({
      maxHeaderSize: 16_384,
      // A client that sends a byte a second is let go.
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 10_000,
      connectionsCheckingInterval: 2_000
    })
    node.maxConnections = 1_024
    // A client that reads nothing, so that nothing can be sent to it.
    node.setTimeout(60_000)
    const http = yield* NodeHttpServer.make(() => node, { host: options.host, port: options.port })
    // Closed before the server waits for its connections.
    yield* Effect.addFinalizer(() => Effect.sync(() => node.closeAllConnections()))
    const port = http.address._tag === "TcpAddress" ? http.address.port : options.port
    const names = namesOf(options, port)
    const handlers = ApiHandlers.layer({ ...options, ending: Deferred.await(ended) })
    const context = yield* Layer.build(
      Layer.mergeAll(handlers, HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer, NodeHttpServer.layerContext)
    )
    const api = yield* Effect.provide(HttpApiBuilder.httpApp, context)
    const document = HttpServerResponse.unsafeJson(OpenApi.fromApi(Api.Api))
    const app = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, url }) =>
      method === "GET" && url === "/openapi.json"
        ? Effect.succeed(document)
        : // Its type does not say so, but an unknown path fails.
          Effect.catchAllCause(api, (cause) =>
            Predicate.isTagged(Cause.squash(cause), "RouteNotFound")
              ? Effect.succeed(notFound)
              : Effect.failCause(cause)
          )
    )
    const guarded = RequestGuard.before({
      hosts: new Set(names),
      origins: new Set(names.flatMap((name) => [`http://${name}`, `https://${name}`])),
      refusal: (method) => (isEnding && method !== "GET" ? ending : undefined)
    })(app)
    yield* Effect.provide(http.serve(guarded), context)
    return {
      url: `http://${addressOf(options.host)}:${port}`,
      end: Effect.gen(function* () {
        isEnding = true
        yield* Effect.forEach(yield* host.live, ({ agent }) => agent.drain("10 seconds"), {
          concurrency: "unbounded",
          discard: true
        })
        yield* Deferred.succeed(ended, undefined)
        // What was said has to leave before the connections close.
        yield* Effect.sleep("100 millis")
      })
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const addressOf = (host: string): string => (host.includes(":") ? `[${host}]` : host)

const namesOf = ({ allowHosts = [], host }: Options, port: number): ReadonlyArray<string> => {
  const own = ["127.0.0.1", "localhost", "[::1]", addressOf(host)].map((name) => `${name}:${port}`)
  return [...own, ...allowHosts].map((name) => name.toLowerCase())
}

const notFound = HttpServerResponse.unsafeJson(
  { _tag: "NotFound", message: "There is nothing under this path. /openapi.json says what there is." },
  { status: 404 }
)

const ending = HttpServerResponse.unsafeJson(
  { _tag: "Unavailable", message: "This server ends and takes nothing more. Try the one that follows it." },
  { status: 503, headers: { "retry-after": "5" } }
)
