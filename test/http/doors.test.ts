/** Each path under each rule of its row, and the README that shows the rows. */
import { assert, describe, it } from "@effect/vitest"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as http from "node:http"
import * as Api from "../../src/http/Api.js"
import * as RouteTable from "../../src/http/RouteTable.js"
import * as Served from "../kit/Served.js"

const { doors } = RouteTable

const secret = "sk-canary0canary0canary0"

const values = [
  "URL-SECRET-77",
  "HEADER-SECRET-99",
  "ARG-SECRET-55",
  "WORD-SECRET-56",
  "ENV-SECRET-33",
  "pw",
  "OLD-SECRET-1"
]

/** The configuration of a workspace with a secret in each place that a tool server has for one. */
const config = (more: object = {}) =>
  JSON.stringify({
    mcp_servers: {
      gh: { url: `https://me:${values[3]}@mcp.example.com/x?key=${values[0]}`, headers: { Authorization: values[1] } },
      local: {
        command: "sh",
        args: ["-c", `run --token ${values[2]}`, "--api-key", values[3]],
        env: { TOKEN: values[4], P: values[5] }
      },
      ...more
    }
  })

const people: Record<string, Api.Person> = {
  operator: { name: "operator" },
  ann: { name: "ann", tenant: "a", may: Api.Verb.literals },
  bob: { name: "bob", tenant: "b", may: Api.Verb.literals },
  slow: { name: "slow", limits: { requests: 0 } },
  ...Object.fromEntries(
    Api.Verb.literals.map((verb) => [`no-${verb}`, { name: "x", may: Api.Verb.literals.filter((one) => one !== verb) }])
  ),
  ...Object.fromEntries(
    doors.map(({ method, path, rule }) => [
      `only ${method} ${path}`,
      { name: "y", may: rule.verbs === "open" ? [] : rule.verbs }
    ])
  )
}

interface Sent {
  readonly by?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

interface Heard {
  readonly status: number
  readonly type: string
  readonly text: string
}

/** The answer; of a stream its head alone, which ends it. */
const send = (url: string, method: string, path: string, { body, by, headers = {} }: Sent) =>
  Effect.promise(
    () =>
      new Promise<Heard>((resolve) => {
        const { hostname, port } = new URL(url)
        const sent = {
          ...(by === undefined ? {} : { authorization: `Bearer ${by}` }),
          ...(body === undefined
            ? {}
            : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
          ...headers
        }
        const request = http.request(
          { hostname, port, method, path: encodeURI(path), headers: sent, agent: false },
          (answer) => {
            const [status, type] = [answer.statusCode ?? 0, answer.headers["content-type"] ?? ""]
            let text = ""
            if (type.startsWith("text/event-stream")) {
              resolve({ status, type, text })
              return void request.destroy()
            }
            answer.on("data", (data) => (text += String(data)))
            answer.on("end", () => resolve({ status, type, text }))
            answer.on("error", () => resolve({ status, type, text }))
          }
        )
        request.on("error", (error) => resolve({ status: 0, type: "", text: error.message }))
        request.end(body)
      })
  )

/** A body that the path takes. */
const bodies = (workspace: string): Readonly<Record<string, object>> => ({
  "POST /v1/sessions/:sessionId/messages": { text: "x" },
  "POST /v1/sessions/:sessionId/permissions": { command: "status" },
  "POST /v1/sessions/:sessionId/mode": { mode: "ask" },
  "POST /v1/sessions/:sessionId/model": { model: "offline" },
  "POST /v1/requests/:requestId/answer": { answer: "y" },
  "POST /v1/agui/:sessionId": { threadId: "t", runId: "r", messages: [] },
  "POST /v1/ai/:sessionId": { id: "c", messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "x" }] }] },
  "POST /v1/workspaces/trust": { workspace, digest: "0" }
})

const bodyOf = ({ method, path, rule }: RouteTable.Door, { at }: Served.Place): string | undefined =>
  rule.body === 0 ? undefined : JSON.stringify(bodies(at("one"))[`${method} ${path}`] ?? {})

/** The path with these ids. */
const at = ({ path }: RouteTable.Door, session: string, request: string): string =>
  path.replace(":sessionId", session).replace(":requestId", request).replace(":chatId", "chat")

const nameOf = ({ method, path }: RouteTable.Door) => `${method} ${path}`

/** A session of tenant a that asks something, and a configuration with secrets. */
const started = Effect.gen(function* () {
  const place = yield* Served.place
  fs.mkdirSync(place.at("one", ".assent"))
  fs.writeFileSync(
    place.at("one", ".assent", "config.json"),
    config({ old: { url: "https://x.example", headers: { K: values[6] } } })
  )
  const model = place.script(
    { text: `I saw ${secret}`, tools: [{ name: "run_command", params: { command: `echo ${secret}` } }] },
    { text: "done" }
  )
  const served = yield* Served.serve(place, model, { people, web: place.at("home") })
  const ann = { authorization: "Bearer ann" }
  yield* served.call("/v1/sessions", { id: "s" }, ann)
  yield* served.call("/v1/sessions/s/messages", { text: `my key is ${secret}`, id: "m1" }, ann)
  const { body } = yield* Served.until(
    served.call("/v1/sessions/s", undefined, ann),
    ({ body }) => body.open.length > 0
  )
  return { place, served, session: "a.s", request: String(body.open[0]) }
})

/** All that is wrong, so that one run shows each cell that does not hold. */
const wrongs = () => {
  const found: Array<string> = []
  return {
    found,
    expect: (door: RouteTable.Door, cell: string, holds: boolean, heard: Heard) => {
      if (!holds) found.push(`${nameOf(door)}, ${cell}: ${heard.status} ${heard.text.slice(0, 200)}`)
    }
  }
}

describe("each door", () => {
  it.scopedLive(
    "is opened by its own name and pages, a key with its verbs, and a caller who has the session",
    () =>
      Effect.gen(function* () {
        const { place, request, served, session } = yield* started
        const { expect, found } = wrongs()
        const { port } = new URL(served.url)
        for (const door of doors) {
          const { method, rule } = door
          const isOpen = rule.verbs === "open"
          const body = bodyOf(door, place)
          const path = at(door, session, request)
          const nowhere = at(door, "none", "req_none")
          const to = (where: string, sent: Sent) => send(served.url, method, where, { body, ...sent })

          const stranger = yield* to(path, {})
          expect(door, "secret", isOpen ? stranger.status === 200 : stranger.status === 401, stranger)
          for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1:1"]) {
            const heard = yield* to(path, { by: "operator", headers: { host } })
            expect(door, "host", heard.status === 403 && heard.text.includes("HostRefused"), heard)
          }
          for (const headers of [
            { origin: "http://evil.example" },
            { origin: "null" },
            { "sec-fetch-site": "cross-site" },
            { "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }
          ]) {
            const heard = yield* to(path, { by: "operator", headers })
            expect(door, "origin", heard.status === 403 && /OriginRefused|SiteRefused/.test(heard.text), heard)
          }
          if (isOpen) continue

          for (const verb of Api.Verb.literals) {
            const heard = yield* to(nowhere, { by: `no-${verb}` })
            const isNeeded = rule.verbs.includes(verb)
            const isRefused = heard.status === 403 && heard.text.includes(`does not permit \\"${verb}\\"`)
            expect(door, `verb ${verb}`, isNeeded === isRefused, heard)
          }
          const permitted = yield* to(nowhere, { by: `only ${nameOf(door)}` })
          expect(door, "its verbs alone", ![401, 403, 500].includes(permitted.status), permitted)

          const foreign = yield* to(path, { by: "bob" })
          if (rule.tenant === "whole") expect(door, "tenant", foreign.status === 403, foreign)
          if (rule.tenant === "own") {
            const isOfOne = path.includes(session) || path.includes(request)
            expect(door, "tenant", isOfOne ? foreign.status === 404 : !foreign.text.includes(session), foreign)
          }
          const slow = yield* to(path, { by: "slow" })
          expect(door, "limit", slow.status === 429, slow)
        }
        assert.deepStrictEqual(found, [])
      }),
    120_000
  )

  it.scopedLive(
    "takes a body up to its length, and no longer one",
    () =>
      Effect.gen(function* () {
        const { place, served } = yield* started
        const { expect, found } = wrongs()
        for (const door of doors) {
          const { method, rule } = door
          const body = bodyOf(door, place)
          if (body === undefined) continue
          const path = at(door, "none", "req_none")
          const padded = (length: number) => ({ by: "operator", body: body.padEnd(length, " ") })
          const whole = yield* send(served.url, method, path, padded(rule.body))
          expect(door, "body", ![400, 413, 500].includes(whole.status), whole)
          const heard = yield* send(served.url, method, path, padded(rule.body + 1))
          expect(door, "longer body", heard.status === 413, heard)
          for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"]) {
            const other = yield* send(served.url, method, path, {
              by: "operator",
              body,
              headers: { "content-type": type }
            })
            expect(door, "type", other.status === 415, other)
          }
        }
        assert.deepStrictEqual(found, [])
      }),
    120_000
  )

  it.scopedLive(
    "streams if its row says so, and shows no secret",
    () =>
      Effect.gen(function* () {
        const { place, request, served, session } = yield* started
        const { expect, found } = wrongs()
        const last = doors.filter(({ method }) => method === "DELETE")
        for (const door of [...doors.filter((one) => !last.includes(one)), ...last]) {
          const { method, path, rule } = door
          // What changes the session that the others look at.
          if (/interrupt|cancel|answer|fork|compact/.test(path)) continue
          const heard = yield* send(served.url, method, at(door, session, request), {
            by: "operator",
            body: bodyOf(door, place)
          })
          expect(door, "stream", rule.stream === heard.type.startsWith("text/event-stream"), heard)
          expect(door, "mask", !heard.text.includes(secret), heard)
          if (rule.mask === "values")
            for (const value of values) expect(door, `mask of ${value}`, !heard.text.includes(value), heard)
        }
        assert.deepStrictEqual(found, [])
        const { body } = yield* served.call("/v1/workspaces", undefined, { authorization: "Bearer operator" })
        const [{ allowances }] = body.workspaces
        assert.lengthOf(allowances, 3)
        // What a person has to see is there: names, addresses, programs.
        for (const part of ["https://", "mcp.example.com/x?key=", "Authorization", "TOKEN=", "sh -c", "--api-key"])
          assert.include(allowances.join("\n"), part)
      }),
    120_000
  )
})

describe("a path", () => {
  it.scopedLive("that is there takes its methods alone, and says which", () =>
    Effect.gen(function* () {
      const { request, served, session } = yield* started
      const methods = new Map<string, ReadonlyArray<string>>()
      for (const door of doors) {
        const path = at(door, session, request)
        methods.set(path, [...(methods.get(path) ?? []), ...(door.method === "GET" ? ["GET", "HEAD"] : [door.method])])
      }
      for (const page of ["/", "/openapi.json", "/console.js"]) methods.set(page, ["GET", "HEAD"])
      for (const [path, own] of methods)
        for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
          if (own.includes(method)) continue
          const answer = yield* served.call(path, method === "GET" ? undefined : {}, {}, method)
          assert.strictEqual(answer.status, 405, `${method} ${path}`)
          assert.deepStrictEqual(answer.headers.get("allow")?.split(", ").sort(), [...own].sort(), path)
        }
      assert.strictEqual((yield* served.call("/v1/nothing", {}, {}, "PUT")).status, 404)
    })
  )
})

it("the document has names that every generator takes, and each reference leads to one", () => {
  const document = OpenApi.fromApi(Api.Api)
  const names = Object.keys(document.components.schemas)
  assert.include(names, "Unauthorized")
  assert.deepStrictEqual(
    names.filter((name) => !/^[a-zA-Z0-9._-]+$/.test(name)),
    []
  )
  const text = JSON.stringify(document)
  const references = [...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, to = ""]) => to)
  assert.isNotEmpty(references)
  assert.deepStrictEqual(
    references.filter((to) => !names.some((name) => to === `#/components/schemas/${name}`)),
    []
  )
  // A name of a schema that stands in two places is no name.
  assert.notInclude(text, '"$id"')
})

const size = (bytes: number) =>
  bytes === 0 ? "–" : bytes >= 1_048_576 ? `${bytes / 1_048_576} MiB` : `${bytes / 1_024} KiB`

const pages = [
  "`GET /`                   | open | own, or a link | own | – | – | none | connections | none",
  "`GET /console.js` and others of the page | open | own | own | – | – | none | connections | none",
  "`GET /openapi.json`       | open | own | own | – | – | none | connections | none"
]

/** The table as the README shows it, without its blanks. */
const table = [
  ...doors.map((door) => {
    const { body, mask, stream, tenant, verbs } = door.rule
    const limits =
      verbs === "open" ? ["connections"] : ["requests", ...(body > 0 ? ["bodies"] : []), ...(stream ? ["streams"] : [])]
    const needs = verbs === "open" ? "open" : verbs.length === 0 ? "any key" : verbs.join(", ")
    return `\`${nameOf(door)}\` | ${needs} | own | own | ${size(body)} | ${stream ? "yes" : "–"} | ${tenant} | ${limits.join(", ")} | ${mask}`
  }),
  ...pages
].map((row) => row.replace(/\s+/g, " "))

it("the README of the room shows each row", () => {
  const shown = fs
    .readFileSync("src/http/README.md", "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| `GET ") || line.startsWith("| `POST ") || line.startsWith("| `DELETE "))
    .map((line) => line.slice(1, -1).replace(/\s+/g, " ").trim())
  assert.deepStrictEqual(shown, table)
})
