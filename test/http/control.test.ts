/** What a person does to a session beside talking: queue, fork, compact, look at turns, models and decisions. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as Served from "../kit/Served.js"

const idle = (served: Served.Served, id: string) =>
  Served.until(
    served.call(`/v1/sessions/${id}`),
    ({ body }) => body.agents[0]?.isIdle === true && body.open.length === 0
  )

describe("the control of a session", () => {
  it.scopedLive("names the caller and the directories", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const { body } = yield* served.call("/v1/about")
      assert.deepStrictEqual(body, { person: "ada", workspaces: [place.at("one"), place.at("two")] })
      const refused = yield* served.call("/v1/about", undefined, { authorization: "Bearer no" })
      assert.strictEqual(refused.status, 401)
      assert.include(refused.body.message, place.at("config", "serve-token"))
    })
  )

  it.scopedLive("queues words for a turn of their own, once", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = place.script(
        { tools: [{ name: "run_command", params: { command: "true" } }] },
        { text: "one" },
        { text: "two" }
      )
      const served = yield* Served.serve(place, model)
      const { requestId, sessionId } = yield* Served.question(served)
      const path = `/v1/sessions/${sessionId}/messages`
      const words = { text: "and then", delivery: "queue", id: "later" }
      assert.deepStrictEqual((yield* served.call(path, words)).body, { messageId: "later" })
      assert.deepStrictEqual((yield* served.call(path, words)).body, { messageId: "later", again: true })
      assert.strictEqual((yield* served.call(path, { ...words, id: "x", target: "main" })).status, 400)
      assert.strictEqual((yield* served.call(path, { ...words, id: "x", delivery: "soon" })).status, 400)
      yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "y" })
      const { body } = yield* Served.until(
        served.call(`/v1/sessions/${sessionId}/turns`),
        ({ body }) => body.turns[1]?.ended !== undefined
      )
      assert.deepStrictEqual(
        body.turns.map(({ number, words }: { number: number; words: string }) => [number, words]),
        [
          [1, "go"],
          [2, "and then"]
        ]
      )
    })
  )

  it.scopedLive("forks at the end of a turn, and the fork goes on with other words", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(
        place,
        place.script({ text: "a" }, { text: "b" }, { text: "c" }, { text: "d" })
      )
      yield* served.call("/v1/sessions", { id: "first" })
      for (const text of ["eins", "zwei"]) {
        yield* served.call("/v1/sessions/first/messages", { text })
        yield* Served.until(served.call("/v1/sessions/first/turns"), ({ body }) =>
          body.turns.some((turn: { words: string; ended?: number }) => turn.words === text && turn.ended !== undefined)
        )
      }
      const fork = yield* served.call("/v1/sessions/first/fork", { turn: 1 })
      assert.deepInclude(fork.body, { turn: 1, words: "zwei" })
      const id = fork.body.sessionId
      assert.notStrictEqual(id, "first")
      yield* served.call(`/v1/sessions/${id}/messages`, { text: "drei" })
      yield* idle(served, id)
      const { body } = yield* served.call(`/v1/sessions/${id}/turns`)
      assert.deepStrictEqual(
        body.turns.map(({ words }: { words: string }) => words),
        ["eins", "drei"]
      )
      const last = yield* served.call("/v1/sessions/first/fork", {})
      assert.deepInclude(last.body, { turn: 2, words: "" })
      assert.strictEqual((yield* served.call("/v1/sessions/first/fork", { turn: 9 })).status, 422)
      assert.strictEqual((yield* served.call("/v1/sessions/first/fork", { turn: -1 })).status, 400)
      assert.strictEqual((yield* served.call("/v1/sessions/none/fork", {})).status, 404)
      const audit = yield* served.call(`/v1/sessions/${id}/audit`)
      assert.deepInclude(audit.body.records[0].forkOf, { sessionId: "first", turn: 1 })
      assert.isTrue(audit.body.records.some((record: { by?: string }) => record.by === "ada"))
    })
  )

  it.scopedLive("shows who decided, by which rule, and whether somebody changed the record", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      yield* served.call("/v1/sessions", { id: "none" })
      const empty = yield* served.call("/v1/sessions/none/audit")
      assert.deepInclude(empty.body, { verified: "unknown", records: [], before: 0 })
      const { requestId, sessionId } = yield* Served.question(served)
      yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "y" })
      yield* idle(served, sessionId)
      const { body } = yield* Served.until(
        served.call(`/v1/sessions/${sessionId}/audit`),
        ({ body }) => body.verified === "whole"
      )
      const decided = body.records.find((record: { _tag: string }) => record._tag === "Decided")
      assert.deepInclude(decided, { outcome: "granted", by: "ada", tool: "run_command", requestId })
      yield* served.host.close(sessionId)
      const [trail = ""] = fs
        .readdirSync(place.at("state"), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(`${sessionId}.jsonl`))
      const file = place.at("state", trail)
      fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace('"ada"', '"eve"'))
      const changed = yield* served.call(`/v1/sessions/${sessionId}/audit`)
      assert.strictEqual(changed.body.verified, "broken")
      assert.match(changed.body.verdict[0], /was changed/)
    })
  )

  it.scopedLive("names the models of a session, and compacts it", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, place.script({ text: "a" }))
      yield* served.call("/v1/sessions", { id: "first" })
      assert.include((yield* served.call("/v1/sessions/first/models")).body.models, "offline/offline")
      const compacted = yield* served.call("/v1/sessions/first/compact", {})
      assert.include([200, 422], compacted.status, JSON.stringify(compacted.body))
      assert.strictEqual((yield* served.call("/v1/sessions/none/compact", {})).status, 404)
      assert.strictEqual((yield* served.call("/v1/sessions/none/models")).status, 404)
      assert.strictEqual((yield* served.call("/v1/sessions/none/turns")).status, 404)
      assert.strictEqual((yield* served.call("/v1/sessions/none/audit")).status, 404)
    })
  )

  it.scopedLive("lists the votes on a reserved call, and the missing people", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const approvals = [{ tools: ["run_command"], quorum: 2, roles: ["ops"] }]
      const roles = { ops: ["ada", "grace"] }
      fs.writeFileSync(place.at("config", "permissions.json"), JSON.stringify({ approvals, roles }))
      const served = yield* Served.serve(place, Served.asking(place))
      const { requestId } = yield* Served.question(served)
      const listed = Effect.map(served.call("/v1/requests"), ({ body }) => body.requests[0])
      assert.deepInclude(yield* listed, { votes: [], missing: "2 more of: ops" })
      yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "y" })
      assert.deepInclude(yield* listed, { votes: [{ by: "ada", vote: "allow" }], missing: "1 more of: ops" })
    })
  )
})
