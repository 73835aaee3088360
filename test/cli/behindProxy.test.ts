/** `assent serve` behind the TLS proxies of the guide. The tests of a proxy that is not installed are skipped. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as https from "node:https"
import * as net from "node:net"
import { userInfo } from "node:os"
import * as Program from "../kit/Program.js"
import * as Served from "../kit/Served.js"

/** The program of this name, if it is installed. */
const programOf = (name: string) =>
  [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin"]
    .map((directory) => `${directory}/${name}`)
    .find((file) => fs.existsSync(file))

const freePort = Effect.async<number>((resume) => {
  const server = net.createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" ? (address?.port ?? 0) : 0)))
  })
})

/** The guide's file for this proxy, with the port of this test. */
const recipe = (language: string, port: number): string => {
  const guide = fs.readFileSync(".github/guide/server.md", "utf8")
  const [, lines = ""] = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(guide) ?? []
  assert.include(lines, "assent.example.com")
  return lines.replace("127.0.0.1:4096", `127.0.0.1:${port}`)
}

interface Proxy {
  readonly args: ReadonlyArray<string>
  /** The certificate of its authority, once it is there. */
  readonly ca: string
}

/** Writes what the proxy needs to serve this name in front of this port. */
type Prepare = (place: Program.Place, outer: number, inner: number) => Effect.Effect<Proxy>

const proxies: Readonly<Record<string, Prepare>> = {
  caddy: (place, outer, inner) =>
    Effect.map(
      place.write(
        "Caddyfile",
        `{\n  admin off\n  auto_https disable_redirects\n}\n${recipe("caddyfile", inner).replace(
          "assent.example.com {\n",
          `localhost:${outer} {\n  tls internal\n`
        )}`
      ),
      (file) => ({
        args: ["run", "--config", file, "--adapter", "caddyfile"],
        ca: place.path("caddy/caddy/pki/authorities/local/root.crt")
      })
    ),
  nginx: (place, outer, inner) =>
    Effect.gen(function* () {
      const [key, ca] = [place.path("key.pem"), place.path("cert.pem")]
      const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
      yield* Program.execute("openssl", [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        ca,
        ...names
      ])
      const server = recipe("nginx", inner)
        .replace("443", `127.0.0.1:${outer}`)
        .replace("assent.example.com", "localhost")
        .replace("/etc/ssl/assent.crt", ca)
        .replace("/etc/ssl/assent.key", key)
      const file = yield* place.write(
        "nginx.conf",
        // Only as root it can be another user, who may not read this place.
        `daemon off;\nuser ${userInfo().username};\npid nginx.pid;\nerror_log error.log;\nevents {}\nhttp {\n` +
          ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((one) => `${one}_temp_path ${one};\n`).join("") +
          `access_log access.log;\n${server}}\n`
      )
      return { args: ["-p", place.path(), "-e", "error.log", "-c", file], ca }
    })
}

/** The proxy until the scope closes, and the certificate of its authority. */
const proxied = (place: Program.Place, file: string, { args, ca }: Proxy) =>
  Effect.gen(function* () {
    yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(file, args, {
          env: { HOME: place.path("home"), XDG_DATA_HOME: place.path("caddy") },
          stdio: "ignore"
        })
      ),
      // On SIGTERM nginx ends its workers, too.
      (child) => Effect.sync(() => child.kill())
    )
    yield* Served.until(
      Effect.sync(() => fs.existsSync(ca)),
      (isThere) => isThere
    )
    return { file: ca, text: fs.readFileSync(ca) }
  })

interface Answer {
  readonly status: number
  readonly text: string
}

/** Asks the proxy; the answer ends early when `enough` says so. */
const ask = (
  port: number,
  ca: Buffer,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: string,
  enough: (text: string) => boolean = () => false
): Effect.Effect<Answer> =>
  Effect.promise(
    () =>
      new Promise((resolve) => {
        const request = https.request(
          {
            hostname: "localhost",
            servername: "localhost",
            port,
            path,
            ca,
            headers,
            method: body === undefined ? "GET" : "POST",
            agent: false
          },
          (answer) => {
            let text = ""
            const end = () => {
              resolve({ status: answer.statusCode ?? 0, text })
              request.destroy()
            }
            answer.on("data", (data) => {
              text += String(data)
              if (enough(text)) end()
            })
            answer.on("end", end)
          }
        )
        request.on("error", ({ message }) => resolve({ status: 0, text: message }))
        request.end(body)
      })
  )

describe.each(Object.entries(proxies))("assent serve behind %s with TLS", (kind, prepare) => {
  const file = programOf(kind) ?? ""
  it.scopedLive.skipIf(file === "" || programOf("openssl") === undefined)(
    "serves its name and no other, sends events at once, takes secrets, and is attached to by https",
    () =>
      Effect.gen(function* () {
        const place = yield* Program.place
        const port = yield* freePort
        const name = `localhost:${port}`
        const model = yield* place.script(
          { tools: [{ name: "run_command", params: { command: "touch made" } }] },
          { tools: [{ name: "run_command", params: { command: "$GIT_ASKPASS Password: | wc -c >length" } }] },
          { text: "done" }
        )
        const program = yield* place.start(["serve", "--port", "0", "--model", model, "--allow-host", name])
        const line = yield* program.line((text) => text.startsWith("http://"))
        const [url = "", token = ""] = line.split("/#token=")
        const proxy = yield* prepare(place, port, Number(new URL(url).port))
        const { file: authority, text: ca } = yield* proxied(place, file, proxy)
        const authorization = `Bearer ${token}`
        const json = { authorization, "content-type": "application/json" }
        yield* Served.until(ask(port, ca, "/healthz", {}), ({ status }) => status === 200)

        assert.include((yield* ask(port, ca, "/", {})).text, "<!doctype html>")
        assert.strictEqual((yield* ask(port, ca, "/v1/requests", {})).status, 401)
        assert.strictEqual((yield* ask(port, ca, "/v1/requests", { authorization })).status, 200)
        const origin = `https://${name}`
        assert.strictEqual((yield* ask(port, ca, "/v1/requests", { authorization, origin })).status, 200)
        for (const wrong of [{ origin: "https://evil.example" }, { origin: `http://evil.example:${port}` }])
          assert.strictEqual((yield* ask(port, ca, "/v1/requests", { authorization, ...wrong })).status, 403)
        // Caddy has no site of this name and says nothing; nginx passes it on.
        const { status, text } = yield* ask(port, ca, "/v1/requests", { authorization, host: `evil.example:${port}` })
        assert.deepStrictEqual([status, text.includes("requests")], [kind === "nginx" ? 403 : 200, false])
        // The history of a page is longer than other bodies. This one is no history.
        const long = JSON.stringify({ text: "x".repeat(3_000_000) })
        assert.strictEqual((yield* ask(port, ca, "/v1/agui/mine", json, long)).status, 400)

        yield* ask(port, ca, "/v1/sessions", json, '{"id":"mine"}')
        yield* ask(port, ca, "/v1/sessions/mine/messages", json, '{"text":"go"}')
        // Each piece arrives while the stream is open: the proxy holds nothing back.
        const events = (after: object) =>
          ask(port, ca, "/v1/sessions/mine/events", { authorization, ...after }, undefined, (text) =>
            /InteractionRequested[^]*\n\n/.test(text)
          )
        assert.include((yield* events({})).text, "TurnStarted")
        const again = yield* events({ "last-event-id": "3" })
        assert.deepStrictEqual([again.text.includes("TurnStarted"), again.text.includes("\nid: 5\n")], [false, true])

        const chat = yield* place.start(["chat", "--attach", `https://${name}/#token=${token}`, "--resume", "mine"], {
          env: { NODE_EXTRA_CA_CERTS: authority }
        })
        yield* chat.line((text) => text.includes("touch made"))
        yield* chat.write("y\n")
        yield* Served.until(place.exists("workspace/made"), (isThere) => isThere)

        const next = (kind: string) =>
          Effect.map(
            Served.until(ask(port, ca, "/v1/requests", { authorization }), ({ text }) => text.includes(`"${kind}"`)),
            ({ text }) => `/v1/requests/${/req_[\w-]+/.exec(text)?.[0]}/answer`
          )
        yield* ask(port, ca, yield* next("Approve"), json, '{"answer":"y"}')
        const given = yield* ask(port, ca, yield* next("Auth.Password"), json, '{"answer":"12345"}')
        assert.strictEqual(given.status, 200, given.text)
        yield* Served.until(place.exists("workspace/length"), (isThere) => isThere)
      }),
    60_000
  )
})
