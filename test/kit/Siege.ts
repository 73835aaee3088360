/**
 * Clients that would take what a server has for others: they say nothing, send a byte a second, read nothing, send too
 * much. Beside them an ordinary client measures how long its answers take.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as http from "node:http"
import * as net from "node:net"

export interface Target {
  readonly url: string
  readonly token: string
  /** A session that is there. */
  readonly sessionId: string
}

/** Sockets of an attack, until the scope closes. */
export interface Siege {
  /** Those that the server has not closed. */
  readonly open: () => number
  /** The statuses that the server has sent to all of them. */
  readonly statuses: () => ReadonlyArray<number>
}

/** Attacks by their names. */
export const sieges: Readonly<Record<string, (target: Target) => Effect.Effect<Siege, never, Scope.Scope>>> = {
  "10,000 connections that say nothing": ({ url }) => sockets(url, 10_000, () => {}),
  "headers that come a byte a second": ({ url }) =>
    sockets(url, 300, (socket) => {
      socket.write(`GET /v1/sessions HTTP/1.1\r\nHost: ${hostOf(url)}\r\nX-Slow: `)
      dripping(socket)
    }),
  "bodies that come a byte a second": (target) =>
    sockets(target.url, 300, (socket) => {
      socket.write(`${head(target, "POST", `/v1/sessions/${target.sessionId}/messages`, ["Content-Length: 1000000"])}{`)
      dripping(socket)
    }),
  "readers of all streams that never read": (target) =>
    Effect.tap(
      sockets(
        target.url,
        64,
        (socket) => socket.write(head(target, "GET", `/v1/sessions/${target.sessionId}/events`)),
        true
      ),
      // What they would have to read: words of 100 kB.
      () =>
        Effect.forkScoped(
          Effect.forEach(
            Array.from({ length: 100 }, (_, index) => index),
            (id) => answers(target, `/v1/sessions/${target.sessionId}/messages`, { id: `w${id}`, text: word }),
            { concurrency: 2, discard: true }
          )
        )
    ),
  "requests in a row whose answers nobody reads": ({ url }) =>
    sockets(
      url,
      200,
      (socket) => socket.write(`GET /openapi.json HTTP/1.1\r\nHost: ${hostOf(url)}\r\n\r\n`.repeat(200)),
      true
    ),
  "tokens that are guessed": (target) =>
    sockets(target.url, 100, (socket) => {
      const guess = () => socket.write(head({ ...target, token: String(Math.random()) }, "GET", "/v1/requests"))
      socket.on("data", guess)
      guess()
    }),
  "bodies without end": (target) =>
    sockets(target.url, 100, (socket) => {
      socket.write(head(target, "POST", "/v1/sessions", ["Transfer-Encoding: chunked"]))
      const chunk = `10000\r\n${"[".repeat(65_536)}\r\n`
      const more = (): void => {
        if (socket.write(chunk)) setImmediate(more)
        else socket.once("drain", more)
      }
      more()
    }),
  "headers without end": ({ url }) =>
    sockets(url, 300, (socket) => {
      socket.write(`GET / HTTP/1.1\r\nHost: ${hostOf(url)}\r\n${`X-More: ${"x".repeat(500)}\r\n`.repeat(100)}`)
    }),
  "900 long bodies without a token": ({ url }) => sockets(url, 900, (socket) => unfinished(socket, url)),
  "1,000 connections of six kinds": (target) => {
    const { url } = target
    const kinds: ReadonlyArray<(socket: net.Socket) => void> = [
      () => {},
      (socket) => {
        socket.write(`GET /v1/sessions HTTP/1.1\r\nHost: ${hostOf(url)}\r\nX-Slow: `)
        dripping(socket)
      },
      (socket) => {
        socket.write(`${head(target, "POST", "/v1/sessions", ["Content-Length: 100000"])}{`)
        dripping(socket)
      },
      (socket) => unfinished(socket, url),
      (socket) => {
        const guess = () => socket.write(head({ url, token: String(Math.random()) }, "GET", "/v1/requests"))
        socket.on("data", guess)
        guess()
      },
      (socket) => socket.write(`GET /nothing HTTP/1.1\r\nHost: ${hostOf(url)}\r\n\r\n`.repeat(200))
    ]
    let begun = 0
    return sockets(url, 1_000, (socket) => kinds[begun++ % kinds.length]?.(socket))
  }
}

export interface Measured {
  /** Milliseconds from each request to its answer, in order of their length. */
  readonly times: ReadonlyArray<number>
  /** What came instead of an answer. */
  readonly failures: ReadonlyArray<string>
}

/** So many ordinary clients at once. */
export const measureAll = (target: Target, millis: number, clients: number): Effect.Effect<Measured> =>
  Effect.map(
    Effect.all(
      Array.from({ length: clients }, () => measure(target, millis)),
      { concurrency: "unbounded" }
    ),
    (all) => ({
      times: all.flatMap(({ times }) => times).sort((a, b) => a - b),
      failures: all.flatMap(({ failures }) => failures)
    })
  )

/** An ordinary client for so many milliseconds: by turns over a connection that it keeps, and over a new one. */
export const measure = (target: Target, millis: number): Effect.Effect<Measured> =>
  Effect.gen(function* () {
    const times: Array<number> = []
    const failures: Array<string> = []
    const kept = new http.Agent({ keepAlive: true, maxSockets: 1 })
    for (const end = performance.now() + millis; performance.now() < end;) {
      const began = performance.now()
      const agent = times.length % 2 === 0 ? kept : false
      const answer = yield* answers(target, `/v1/sessions/${target.sessionId}`, undefined, agent)
      times.push(performance.now() - began)
      if (answer !== 200) failures.push(String(answer))
      yield* Effect.sleep("10 millis")
    }
    kept.destroy()
    return { times: times.sort((a, b) => a - b), failures }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const word = "word ".repeat(20_000)

const hostOf = (url: string): string => new URL(url).host

const head = (
  { token, url }: Pick<Target, "token" | "url">,
  method: string,
  path: string,
  more: ReadonlyArray<string> = []
): string =>
  [
    `${method} ${path} HTTP/1.1`,
    `Host: ${hostOf(url)}`,
    `Authorization: Bearer ${token}`,
    "Content-Type: application/json",
    ...more,
    "\r\n"
  ].join("\r\n")

/** All but the end of a body of four megabytes, which nobody has asked for. */
const unfinished = (socket: net.Socket, url: string): void => {
  const length = 4 * 1_048_576
  socket.write(
    `POST /v1/agui/x HTTP/1.1\r\nHost: ${hostOf(url)}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
  )
  socket.write(spaces)
}

const spaces = Buffer.alloc(4 * 1_048_576 - 1_000, " ")

/** A status, or why there is none. */
const answers = (
  { token, url }: Target,
  path: string,
  body?: unknown,
  agent: http.Agent | false = false
): Effect.Effect<number | string> =>
  Effect.async((resume) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const method = body === undefined ? "GET" : "POST"
    const request = http.request(`${url}${path}`, { method, headers, agent }, (answer) => {
      answer.resume()
      answer.on("end", () => resume(Effect.succeed(answer.statusCode ?? 0)))
      answer.on("error", ({ message }) => resume(Effect.succeed(message)))
    })
    request.on("error", ({ message }) => resume(Effect.succeed(message)))
    request.end(body === undefined ? undefined : JSON.stringify(body))
  })

const dripping = (socket: net.Socket): void => {
  const timer = setInterval(() => socket.write("x"), 1_000)
  socket.on("close", () => clearInterval(timer))
}

const sockets = (
  url: string,
  count: number,
  begin: (socket: net.Socket) => void,
  isDeaf = false
): Effect.Effect<Siege, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const { hostname, port } = new URL(url)
        const statuses: Array<number> = []
        const all = Array.from({ length: count }, () => {
          const socket = net.connect(Number(port), hostname, () => begin(socket))
          // The server closes it in the middle of a write.
          socket.on("error", () => {})
          if (isDeaf) socket.pause()
          else
            socket.on("data", (data) => {
              for (const [, status] of data.toString().matchAll(/HTTP\/1\.1 (\d{3})/g)) statuses.push(Number(status))
            })
          return socket
        })
        return { all, statuses }
      }),
      ({ all }) => Effect.sync(() => all.forEach((socket) => socket.destroy()))
    ),
    ({ all, statuses }) => ({
      open: () => all.filter(({ closed, connecting }) => !closed && !connecting).length,
      statuses: () => statuses
    })
  )
