/**
 * A proxy on loopback: it leads every name to one server, by requests in absolute form and by tunnels. Inside a tunnel to
 * port 443 it speaks TLS as `*.assent.test`.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as http from "node:http"
import * as https from "node:https"
import * as net from "node:net"

export interface Options {
  /** Where every name leads. */
  readonly to: string
  /** `USER:PASSWORD`. Default: anybody. */
  readonly login?: string
  /** What every request gets. Default: they are forwarded. */
  readonly refusal?: number
}

export interface ForwardProxy {
  /** `127.0.0.1:PORT` */
  readonly host: string
  /** `POST http://NAME/PATH` and `CONNECT NAME:PORT`, in order of arrival. */
  readonly asked: ReadonlyArray<string>
}

/** Listens on a free port until the scope closes. */
export const make = ({ login, refusal, to }: Options): Effect.Effect<ForwardProxy, never, Scope.Scope> =>
  Effect.gen(function* () {
    const asked: Array<string> = []
    const sockets = new Set<net.Socket>()
    const statusFor = ({ headers }: http.IncomingMessage): number | undefined => {
      const wanted = login && `Basic ${Buffer.from(login).toString("base64")}`
      return wanted !== undefined && headers["proxy-authorization"] !== wanted ? 407 : refusal
    }
    const forward: http.RequestListener = (request, response) => {
      const { pathname, search } = new URL(request.url ?? "", "http://inside")
      const { "proxy-authorization": _, ...headers } = request.headers
      const onward = http.request(`${to}${pathname}${search}`, { method: request.method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(response)
      })
      onward.on("error", () => response.destroy())
      request.pipe(onward)
    }
    const inside = https.createServer({ cert: certificate, key }, forward)
    const server = http.createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`)
      const status = statusFor(request)
      if (status === undefined) forward(request, response)
      else response.writeHead(status).end()
    })
    server.on("connection", (socket) => sockets.add(socket))
    server.on("connect", (request, socket) => {
      asked.push(`CONNECT ${request.url}`)
      const status = statusFor(request)
      if (status !== undefined) return void socket.end(`HTTP/1.1 ${status} No\r\n\r\n`)
      socket.write("HTTP/1.1 200 OK\r\n\r\n")
      inside.emit("connection", socket)
    })
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.sync(() => {
          for (const socket of sockets) socket.destroy()
          server.close()
        })
    )
    const address = server.address()
    return { host: `127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`, asked }
  })

/** It signs itself: name it in `NODE_EXTRA_CA_CERTS`. */
export const certificate = `-----BEGIN CERTIFICATE-----
MIIBnTCCAUOgAwIBAgIURNsQcNZuh7xlXwOB74jTdFsTMrAwCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLYXNzZW50LnRlc3QwIBcNMjYxMTI3MTYxODA0WhgPMjEyNjEx
MDMxNjE4MDRaMBYxFDASBgNVBAMMC2Fzc2VudC50ZXN0MFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAE8V3z4cfEGA3QtNZZL2gK2+94uuTe8ZrHgC1ETH/Y8ndvyiTA
9IPpWdUKTYsLsM678W2pu0O6eC528odth4eceKNtMGswHQYDVR0OBBYEFGjKT8lJ
geCm45CbuLktOnbpZsrDMB8GA1UdIwQYMBaAFGjKT8lJgeCm45CbuLktOnbpZsrD
MA8GA1UdEwEB/wQFMAMBAf8wGAYDVR0RBBEwD4INKi5hc3NlbnQudGVzdDAKBggq
hkjOPQQDAgNIADBFAiEAklbv8kzZMvu2QKEvIzhLh0k6uv+4EaUcjdK1/QZYrsQC
ICg/NnDVOlZkmyKU4ocbFasCG+aoxUbwHZw8hOR/qFuj
-----END CERTIFICATE-----
`

const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgo3fzebNzwR2XoBLQ
edYCoiYY2wz4ofVnVfXzymfkubWhRANCAATxXfPhx8QYDdC01lkvaArb73i65N7x
mseALURMf9jyd2/KJMD0g+lZ1QpNiwuwzrvxbam7Q7p4Lnbyh22Hh5x4
-----END PRIVATE KEY-----
`
