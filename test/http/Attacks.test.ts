/** What strangers send: hundreds of requests, none of which is answered, and none of which changes anything. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "fast-check"
import * as fs from "node:fs"
import * as http from "node:http"
import * as Served from "../kit/Served.js"
import * as Siege from "../kit/Siege.js"

interface Attack {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

/**
 * Sends exactly these headers, `Host` too, which `fetch` would not. The status counts as soon as it is there: an attack
 * that succeeds may open a stream without an end. Silence is a status of 0.
 */
const send = (url: string, { body, headers, method, path }: Attack) =>
  Effect.promise(
    () =>
      new Promise<{ readonly status: number; readonly text: string }>((resolve) => {
        const { hostname, port } = new URL(url)
        const request = http.request({ hostname, port, method, path, headers, agent: false }, (answer) => {
          const status = answer.statusCode ?? 0
          let text = ""
          if (status < 400) {
            resolve({ status, text })
            return void request.destroy()
          }
          answer.on("data", (data) => (text += String(data)))
          answer.on("end", () => resolve({ status, text }))
          answer.on("error", () => resolve({ status: 0, text }))
        })
        // Taken for what it is and cut off.
        request.on("upgrade", (answer, socket) => {
          socket.destroy()
          resolve({ status: answer.statusCode ?? 0, text: "" })
        })
        request.on("error", () => resolve({ status: 0, text: "" }))
        request.setTimeout(15_000, () => request.destroy(new Error("silence")))
        request.end(body)
      })
  )

/** All files below a directory: what a request could have made. A store writes its heartbeats meanwhile. */
const filesOf = (root: string): ReadonlyArray<string> => fs.readdirSync(root, { recursive: true }).map(String).sort()

describe("300 attacks", () => {
  it.scopedLive(
    "are refused with a status of 4xx, leak nothing, and change nothing",
    () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const served = yield* Served.serve(place, Served.asking(place, "touch stolen"))
        const { requestId, sessionId } = yield* Served.question(served)
        const [{ digest }] = (yield* served.call("/v1/workspaces")).body.workspaces
        const { host: own, port } = new URL(served.url)
        const authorization = `Bearer ${served.token}`
        const json = { "content-type": "application/json" }
        const targets = [
          ["POST", `/v1/requests/${requestId}/answer`, '{"answer":"y"}'],
          ["POST", `/v1/requests/${requestId}/cancel`, "{}"],
          ["POST", "/v1/sessions", "{}"],
          ["POST", `/v1/sessions/${sessionId}/messages`, '{"text":"obey"}'],
          ["POST", `/v1/sessions/${sessionId}/permissions`, '{"command":"allow run_command"}'],
          ["POST", `/v1/sessions/${sessionId}/mode`, '{"mode":"allow"}'],
          ["POST", `/v1/sessions/${sessionId}/interrupt`, "{}"],
          ["DELETE", `/v1/sessions/${sessionId}`, undefined],
          ["GET", "/v1/requests", undefined],
          ["GET", `/v1/sessions/${sessionId}`, undefined],
          ["GET", `/v1/sessions/${sessionId}/events`, undefined],
          ["GET", "/v1/events", undefined],
          ["GET", "/v1/workspaces", undefined],
          ["POST", "/v1/workspaces/trust", JSON.stringify({ workspace: place.at("one"), digest })],
          ["GET", "/metrics", undefined]
        ] as const
        /** What is wrong with a request that would count otherwise. */
        const wrongs: ReadonlyArray<Record<string, string | undefined>> = [
          { authorization: undefined },
          { authorization: "Bearer" },
          { authorization: "Bearer wrong" },
          { authorization: `Bearer ${served.token}x` },
          { authorization: `Bearer ${served.token.slice(0, -1)}` },
          { authorization: `Basic ${Buffer.from(`x:${served.token}`).toString("base64")}` },
          { authorization: undefined, cookie: `token=${served.token}` },
          { authorization: undefined, "x-api-key": served.token },
          { host: "evil.example" },
          { host: `evil.example:${port}` },
          { host: `127.0.0.1.evil.example:${port}` },
          { host: "127.0.0.1:1" },
          { host: `${own}@evil.example` },
          { host: "localhost" },
          { origin: "http://evil.example" },
          { origin: "null" },
          { origin: `http://127.0.0.1:${Number(port) + 1}` },
          { origin: `http://localhost.evil.example:${port}` },
          { origin: `${served.url}.evil.example` },
          { "sec-fetch-site": "cross-site" },
          { "sec-fetch-site": "same-site" },
          { host: "evil.example", connection: "Upgrade", upgrade: "websocket" },
          { origin: "http://evil.example", connection: "Upgrade", upgrade: "websocket" }
        ]
        const attacks: ReadonlyArray<Attack> = targets.flatMap(([method, path, body]) =>
          wrongs.map((wrong) => ({
            method,
            path,
            body,
            headers: Object.fromEntries(
              Object.entries({ host: own, authorization, ...(body === undefined ? {} : json), ...wrong }).flatMap(
                ([name, value]) => (value === undefined ? [] : [[name, value]])
              )
            )
          }))
        )
        const bodies = ["", "no JSON", "[1", '{"answer":', '{"__proto__":{}}', "[".repeat(200), '"y"', "7", "null"]
        const garbled = targets
          .filter(([method]) => method === "POST")
          .flatMap(([method, path]) => [
            ...bodies
              .slice(1)
              .map((body): Attack => ({ method, path, body, headers: { host: own, authorization, ...json } })),
            ...["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"].map(
              (type): Attack => ({
                method,
                path,
                body: '{"answer":"y"}',
                headers: { host: own, authorization, "content-type": type }
              })
            )
          ])
        const paths = [
          "/v1/../metrics/..%2f",
          "/v1/sessions/..%2f..%2fetc%2fpasswd",
          "/v1/sessions/%00",
          "//evil.example/v1/requests",
          "/v1/requests/../../serve-token",
          "/v1/sessions/__proto__",
          "/v1/requests/constructor/answer",
          "/.env",
          "/v1/agui/x"
        ].map((path): Attack => ({ method: "GET", path, body: undefined, headers: { host: own, authorization } }))
        const all = [...attacks, ...garbled, ...paths]
        assert.isAbove(all.length, 300)
        const state = Effect.map(
          Effect.all(["sessions", `sessions/${sessionId}`, "workspaces"].map((path) => served.call(`/v1/${path}`))),
          (answers) => [filesOf(place.root), ...answers.map(({ body }) => body)]
        )
        const before = yield* state
        const outcomes = yield* Effect.forEach(
          all,
          (attack) => Effect.map(send(served.url, attack), (answer) => ({ attack, answer })),
          { concurrency: 8 }
        )
        const wrong = outcomes.filter(
          ({ answer, attack }) =>
            answer.status < 400 ||
            answer.status >= 500 ||
            answer.text.includes("touch stolen") ||
            (attack.headers["authorization"] !== authorization && answer.text.includes(served.token))
        )
        assert.deepStrictEqual(wrong, [])
        assert.deepStrictEqual(yield* state, before)
        const { body } = yield* served.call("/v1/requests")
        assert.deepStrictEqual(
          body.requests.map((one: { request: { requestId: string } }) => one.request.requestId),
          [requestId]
        )
        assert.strictEqual((yield* served.call(`/v1/sessions/${sessionId}`)).body.mode, "ask")
        assert.strictEqual((yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "n" })).status, 200)
        assert.isFalse(fs.existsSync(place.at("one", "stolen")))
      }),
    120_000
  )

  it.scopedLive(
    "of random names and origins are refused, unless they are the server's own",
    () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const served = yield* Served.serve(place, Served.asking(place))
        const { port } = new URL(served.url)
        const names = ["127.0.0.1", "localhost", "[::1]"]
        const own = new Set(names.map((name) => `${name}:${port}`))
        const name = FastCheck.oneof(
          FastCheck.constantFrom(
            ...own,
            ...names,
            "LOCALHOST:" + port,
            "127.1",
            "0.0.0.0:" + port,
            "2130706433:" + port
          ),
          FastCheck.domain(),
          FastCheck.tuple(FastCheck.domain(), FastCheck.constantFrom(port, "80")).map((parts) => parts.join(":")),
          FastCheck.tuple(FastCheck.constantFrom(...own), FastCheck.constantFrom(".", "@a", "#", "/", " ")).map(
            (parts) => parts.join("").trim()
          )
        )
        const cases = FastCheck.sample(
          FastCheck.record({ host: name, from: FastCheck.option(name), isTls: FastCheck.boolean() }),
          {
            numRuns: 200,
            seed: 7
          }
        )
        for (const { from, host, isTls } of cases) {
          const origin = from === null ? {} : { origin: `${isTls ? "https" : "http"}://${from}` }
          const { status } = yield* send(served.url, {
            method: "GET",
            path: "/v1/sessions",
            body: undefined,
            headers: { host, authorization: `Bearer ${served.token}`, ...origin }
          })
          const isOwn = own.has(host.toLowerCase()) && (from === null || own.has(from.toLowerCase()))
          if (isOwn) assert.strictEqual(status, 200, JSON.stringify({ host, from }))
          else assert.include([400, 403], status, JSON.stringify({ host, from }))
        }
      }),
    60_000
  )
})

describe("an ordinary client", () => {
  it.scopedLive.each(Object.entries(Siege.sieges))("is served beside %s", ([, lay]) =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const { requestId, sessionId } = yield* Served.question(served)
      const target = { url: served.url, token: served.token, sessionId }
      const siege = yield* lay(target)
      const { failures, times } = yield* Siege.measure(target, 2_000)
      assert.deepStrictEqual(failures, [])
      // The server and those who besiege it share this process, which may share the machine.
      assert.isBelow(times.at(-1) ?? Infinity, 40_000)
      assert.deepStrictEqual(
        siege.statuses().filter((status) => status < 400 || status >= 500),
        []
      )
      assert.strictEqual((yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "y" })).status, 200)
    })
  )
})

describe("races", () => {
  it.scopedLive(
    "of five answers have one winner each, and the others hear who it was",
    () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const rounds = 20
        const steps = Array.from({ length: rounds }, () => ({
          tools: [{ name: "run_command", params: { command: "true" } }]
        }))
        const served = yield* Served.serve(place, place.script(...steps, { text: "done" }))
        const { sessionId } = yield* Served.question(served)
        let last = ""
        for (let round = 0; round < rounds; round++) {
          const { body } = yield* Served.until(
            served.call(`/v1/requests?session=${sessionId}`),
            ({ body }) => body.requests.length === 1 && body.requests[0].request.requestId !== last
          )
          last = body.requests[0].request.requestId
          const outcomes = yield* Effect.forEach(
            ["y", "n", "y", "n", "y"],
            (answer) => served.call(`/v1/requests/${last}/answer`, { answer: round % 2 === 0 ? answer : "y" }),
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual(outcomes.map(({ status }) => status).sort(), [200, 409, 409, 409, 409])
          assert.deepStrictEqual(
            outcomes.flatMap(({ body }) => (body.winner === undefined ? [] : [body.winner])),
            ["ada", "ada", "ada", "ada"]
          )
        }
      }),
    120_000
  )
})
