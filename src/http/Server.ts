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
import { IncomingMessage, Server as NodeServer, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import * as Host from "../host/Host.js"
import type { StoreUnusable } from "../journal/StoreError.js"
import * as Api from "./Api.js"
import * as ApiHandlers from "./ApiHandlers.js"
import * as RequestGuard from "./RequestGuard.js"
import * as RouteTable from "./RouteTable.js"
import * as WebConsole from "./WebConsole.js"

export interface Options extends Omit<ApiHandlers.Options, "ending"> {
  /** Where it listens; an address or a name. */
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  /** Further names with ports under which it answers, as behind a proxy. */
  readonly allowHosts?: ReadonlyArray<string> | undefined
  /** Ends what its sessions do, gently. Default: drains those that this process runs. */
  readonly draining?: Effect.Effect<void> | undefined
  /** The directory with the files of the web console. Default: no console is served. */
  readonly web?: string | undefined
}

export interface Server {
  /** Such as `http://127.0.0.1:4096`. */
  readonly url: string
  /** Ends gently; returns when running tools have ended and clients are told. */
  readonly end: Effect.Effect<void>
  /** The same without waiting for tools. */
  readonly farewell: Effect.Effect<void>
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
    const drained = Effect.flatMap(host.live, (all) =>
      Effect.forEach(all, ({ agent }) => agent.drain("10 seconds"), { concurrency: "unbounded", discard: true })
    )
    const { draining = drained } = options
    let isEnding = false
    const node = new Listener({
      maxHeaderSize: 16_384,
      // A client that sends a byte a second is let go.
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 10_000,
      connectionsCheckingInterval: 2_000
    })
    node.maxConnections = most
    keepRoom(node)
    // A client that reads nothing, so that nothing can be sent to it.
    node.setTimeout(60_000)
    // It listens before it can answer. A client that comes back at once would wait for ever.
    const early: Array<readonly [IncomingMessage, ServerResponse]> = []
    const hold = (request: IncomingMessage, response: ServerResponse) => void early.push([request, response])
    node.on("request", hold)
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
    const web = options.web === undefined ? undefined : WebConsole.make(options.web)
    const app = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, url }) => {
      const page = url === "/openapi.json" ? document : web?.(url)
      if (page !== undefined) return Effect.succeed(readOnly.includes(method) ? page : notAllowed(readOnly))
      // Its type does not say so, but an unknown path fails.
      return Effect.catchAllCause(api, (cause) => {
        if (!Predicate.isTagged(Cause.squash(cause), "RouteNotFound")) return Effect.failCause(cause)
        const methods = RouteTable.methodsOf(url)
        return Effect.succeed(methods.length === 0 ? notFound : notAllowed(methods))
      })
    })
    const guarded = RequestGuard.before({
      hosts: new Set(names),
      origins: new Set(names.flatMap((name) => [`http://${name}`, `https://${name}`])),
      refusal: ({ method, url }) => (isEnding && (method !== "GET" || url === "/readyz") ? ending : undefined)
    })(app)
    yield* Effect.provide(http.serve(guarded), context)
    node.off("request", hold)
    for (const [request, response] of early) node.emit("request", request, response)
    // A finalizer runs it, too.
    const farewell = Effect.zipRight(
      Deferred.succeed(ended, undefined),
      Effect.asVoid(Effect.timeoutOption(Effect.interruptible(closed(node)), "2 seconds"))
    )
    return {
      farewell,
      url: `http://${addressOf(options.host)}:${port}`,
      end: Effect.gen(function* () {
        isEnding = true
        yield* draining
        yield* farewell
      })
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Connections at once. Those above are refused by Node. */
const most = 1_024

/** Above so many connections, the one that is idle the longest has to leave for a new one. */
const roomy = 768

/** Requests of one connection that wait for their answers. Clients of today send one after the other. */
const ahead = 4

/**
 * Refuses a request with two names. Closes a connection that sends requests and reads no answers: Node parses what has
 * arrived all the same, so these requests are left out before they cost anything.
 */
class Listener extends NodeServer {
  private readonly waiting = new WeakMap<Socket, number>()

  override emit(event: string, ...args: ReadonlyArray<unknown>): boolean {
    const [request, response] = args
    if (event === "request" && request instanceof IncomingMessage && response instanceof ServerResponse) {
      const { socket } = request
      if (socket.destroyed) return true
      // A proxy and this server may read different ones.
      if ((request.headersDistinct["host"]?.length ?? 0) > 1) {
        response.writeHead(400, { connection: "close" }).end()
        return true
      }
      const count = (change: number) => {
        const now = (this.waiting.get(socket) ?? 0) + change
        this.waiting.set(socket, now)
        return now
      }
      if (count(1) > ahead) {
        socket.destroy()
        return true
      }
      response.once("close", () => count(-1))
    }
    return super.emit(event, ...args)
  }
}

/** Connections without a request cannot keep clients out that have one. */
const keepRoom = (node: NodeServer): void => {
  // Added with a connection and at the end of its request, removed with its request. A set keeps the order.
  const idle = new Set<Socket>()
  let open = 0
  node.on("connection", (socket: Socket) => {
    open++
    idle.add(socket)
    socket.once("close", () => {
      open--
      idle.delete(socket)
    })
    const [oldest] = idle
    if (open > roomy && oldest !== undefined && oldest !== socket) oldest.destroy()
  })
  node.on("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket)
    response.once("close", () => {
      if (!socket.destroyed) idle.add(socket)
    })
  })
}

/** Takes no connection more, and waits until each answer has left whole. */
const closed = (node: NodeServer): Effect.Effect<void> =>
  Effect.raceFirst(
    Effect.promise(() => new Promise<void>((resolve) => node.close(() => resolve()))),
    Effect.forever(
      Effect.delay(
        Effect.sync(() => node.closeIdleConnections()),
        "20 millis"
      )
    )
  )

const addressOf = (host: string): string => (host.includes(":") ? `[${host}]` : host)

const namesOf = ({ allowHosts = [], host }: Options, port: number): ReadonlyArray<string> => {
  const own = ["127.0.0.1", "localhost", "[::1]", addressOf(host)].map((name) => `${name}:${port}`)
  return [...own, ...allowHosts].map((name) => name.toLowerCase())
}

const notFound = HttpServerResponse.unsafeJson(
  { _tag: "NotFound", message: "There is nothing under this path. /openapi.json says what there is." },
  { status: 404 }
)

const readOnly = ["GET", "HEAD"]

const notAllowed = (methods: ReadonlyArray<string>) =>
  HttpServerResponse.unsafeJson(
    { _tag: "MethodNotAllowed", message: `This path takes ${methods.join(" and ")}.` },
    { status: 405, headers: { allow: methods.join(", ") } }
  )

const ending = HttpServerResponse.unsafeJson(
  { _tag: "Unavailable", message: "This server ends and takes nothing more. Try the one that follows it." },
  { status: 503, headers: { "retry-after": "5" } }
)
