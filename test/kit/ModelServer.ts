/** A local HTTP server that plays scripted responses, one per request, and records the requests. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { IncomingHttpHeaders, ServerResponse } from "node:http"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

export interface Script {
  readonly status?: number
  readonly headers?: Record<string, string>
  /** Written one after the other, each in a write of its own. */
  readonly body?: string | ReadonlyArray<string>
  /** After the body: end it, destroy the connection, or keep it open. Default: end. */
  readonly then?: "end" | "cut" | "hang"
}

/** A response, or what makes one of a request, now or later. */
export type Play = Script | ((request: Received) => Script | Promise<Script>)

export interface Received {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Completes when the connection of this request is gone before its response was complete. */
  readonly closed: Effect.Effect<void>
}

export interface ModelServer {
  readonly url: string
  /** Adds responses. A request beyond them gets a 500 with an empty body. */
  readonly play: (...scripts: ReadonlyArray<Play>) => Effect.Effect<void>
  /** The next request, in order of arrival, once its body has been read. */
  readonly received: Effect.Effect<Received>
  /** How many requests have come. */
  readonly count: () => number
}

export const json = (received: Received): any => JSON.parse(received.text)

/** Data lines of an event stream; a string is sent as it is. */
export const sse = (events: ReadonlyArray<unknown>, name?: (event: any) => string): ReadonlyArray<string> =>
  events.map(
    (event) =>
      `${name === undefined ? "" : `event: ${name(event)}\n`}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`
  )

export const eventStream = (body: ReadonlyArray<string>, then: Script["then"] = "end"): Script => ({
  headers: { "content-type": "text/event-stream" },
  body,
  then
})

export const jsonError = (status: number, body: unknown, headers: Record<string, string> = {}): Script => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: typeof body === "string" ? body : JSON.stringify(body)
})

export const make: Effect.Effect<ModelServer, never, Scope.Scope> = Effect.gen(function* () {
  const scripts: Array<Play> = []
  let count = 0
  const requests = yield* Queue.unbounded<Received>()
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk) => chunks.push(chunk))
    request.on("end", () => {
      const closed = Deferred.unsafeMake<void>(FiberId.none)
      response.on("close", () => {
        if (!response.writableFinished) Deferred.unsafeDone(closed, Effect.void)
      })
      const received: Received = {
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.headers,
        text: Buffer.concat(chunks).toString("utf8"),
        closed: Deferred.await(closed)
      }
      count++
      Queue.unsafeOffer(requests, received)
      const script = scripts.shift() ?? { status: 500 }
      void Promise.resolve(typeof script === "function" ? script(received) : script).then((one) =>
        perform(response, one)
      )
    })
  })
  yield* Effect.acquireRelease(
    Effect.async<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.async<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    play: (...more) => Effect.sync(() => void scripts.push(...more)),
    received: Queue.take(requests),
    count: () => count
  }
})

const perform = (response: ServerResponse, script: Script) => {
  response.writeHead(script.status ?? 200, script.headers ?? {})
  const pieces = script.body === undefined ? [] : typeof script.body === "string" ? [script.body] : script.body
  const next = (index: number): void => {
    const piece = pieces[index]
    // Each write is flushed before the next, so that a cut loses nothing that was written.
    if (piece !== undefined) return void response.write(piece, () => next(index + 1))
    if (script.then === "cut") return void response.socket?.destroy()
    if (script.then !== "hang") response.end()
    else response.flushHeaders()
  }
  next(0)
}
