/**
 * A server that receives a `WebhookChannel`'s requests and holds each until the test replies: the other end of a
 * webhook.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { createServer } from "node:http"

export interface Reply {
  /** Default: 200. */
  readonly status?: number
  readonly headers?: { readonly [name: string]: string }
  readonly body: string
}

/** One POST that waits for its reply. */
export interface Arrival {
  readonly requestId: string
  readonly headers: { readonly [name: string]: string | undefined }
  readonly body: string
  readonly reply: (reply: Reply) => Effect.Effect<void>
  /** Ends when the client has closed the connection without waiting for the reply. */
  readonly gone: Effect.Effect<void>
}

export interface WebhookReceiver {
  readonly url: string
  /** The next POST, in order of arrival. */
  readonly arrival: Effect.Effect<Arrival>
}

export const json = (value: unknown): Reply => ({ body: JSON.stringify(value) })

/** Listens on a free port of this machine until the scope closes. */
export const make: Effect.Effect<WebhookReceiver, never, Scope.Scope> = Effect.gen(function* () {
  const listener = createServer()
  const server = yield* NodeHttpServer.make(() => listener, { port: 0, host: "127.0.0.1" })
  const arrivals = yield* Queue.unbounded<Arrival>()
  const app = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const body = yield* request.text
    const reply = yield* Deferred.make<Reply>()
    const gone = yield* Deferred.make<void>()
    yield* Queue.offer(arrivals, {
      requestId: request.headers["idempotency-key"] ?? "",
      headers: request.headers,
      body,
      reply: (value) => Deferred.succeed(reply, value),
      gone: Deferred.await(gone)
    })
    const {
      body: text,
      headers,
      status
    } = yield* Effect.onInterrupt(Effect.interruptible(Deferred.await(reply)), () => Deferred.succeed(gone, undefined))
    return HttpServerResponse.text(text, {
      status: status ?? 200,
      headers: { ...headers },
      contentType: "application/json"
    })
  })
  yield* server.serve(app)
  // A connection that the client keeps for the next request would hold the server for four seconds.
  yield* Effect.addFinalizer(() => Effect.sync(() => listener.closeAllConnections()))
  const address = server.address
  return {
    url: address._tag === "TcpAddress" ? `http://127.0.0.1:${address.port}/interactions` : "",
    arrival: Queue.take(arrivals)
  }
}).pipe(Effect.orDie)
