import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as FastCheck from "fast-check"
import * as fs from "node:fs"
import * as http from "node:http"
import * as net from "node:net"
import { RequestId } from "../../src/core/Id.js"
import * as Token from "../../src/http/Token.js"
import * as Served from "../kit/Served.js"

/** What a server answers to these bytes, until it closes or is silent for a while. */
const raw = (url: string, bytes: string) =>
  Effect.async<string>((resume) => {
    const { hostname, port } = new URL(url)
    const socket = net.connect(Number(port), hostname, () => socket.write(bytes))
    let text = ""
    const end = () => {
      socket.destroy()
      resume(Effect.succeed(text))
    }
    socket.setTimeout(1_000, end)
    socket.on("data", (data) => (text += data.toString()))
    socket.on("close", end)
    socket.on("error", end)
  })

/** An answer begins right behind the body of the one before. */
const statusOf = (answer: string) => [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))

describe("a server", () => {
  it.scopedLive("takes words back that no agent has read, and lists the requests of one session", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const one = yield* Served.question(served)
      const two = yield* Served.question(served)
      const asked = (yield* served.call(`/v1/requests?session=${one.sessionId}`)).body.requests
      assert.deepStrictEqual(
        asked.map((found: { request: { requestId: string } }) => found.request.requestId),
        [one.requestId]
      )
      assert.deepStrictEqual((yield* served.call("/v1/requests?session=none")).body.requests, [])
      yield* served.call(`/v1/sessions/${two.sessionId}/messages`, { text: "wait", id: "w" })
      const back = yield* served.call(`/v1/sessions/${two.sessionId}/take-back`, {})
      assert.deepStrictEqual(
        back.body.messages.map(({ id, text }: { id: string; text: string }) => [id, text]),
        [["w", "wait"]]
      )
      assert.deepStrictEqual((yield* served.call(`/v1/sessions/${two.sessionId}/take-back`, {})).body.messages, [])
      assert.strictEqual((yield* served.call("/v1/sessions/none/take-back", {})).status, 404)
      assert.strictEqual((yield* served.call(`/v1/sessions/${two.sessionId}/compact`, {})).status, 409)
    })
  )

  it.scopedLive("serves a session from its first words to its end", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const created = yield* served.call("/v1/sessions", { id: "mine" })
      assert.deepStrictEqual(created.body, { sessionId: "mine" })
      assert.deepStrictEqual((yield* served.call("/v1/sessions", { id: "mine" })).body, { sessionId: "mine" })
      const path = "/v1/sessions/mine"
      const [untouched] = (yield* served.call("/v1/sessions")).body.sessions
      const idle = { status: "idle", isLive: true, open: [] }
      assert.deepInclude(untouched, { sessionId: "mine", workspace: place.at("one"), ...idle })
      const first = yield* served.call(`${path}/messages`, { text: "go", id: "k1" })
      assert.deepStrictEqual(first.body, { messageId: "k1" })
      for (const headers of [{}, { "idempotency-key": "k1" }]) {
        const body = { text: "go", ...("idempotency-key" in headers ? {} : { id: "k1" }) }
        const again = yield* served.call(`${path}/messages`, body, headers)
        assert.deepStrictEqual(again.body, { messageId: "k1", again: true })
      }
      yield* Served.until(served.call(path), ({ body }) => body.open.length === 1)
      assert.strictEqual((yield* served.call(path)).body.status, "running")
      const { requests } = (yield* served.call("/v1/requests")).body
      assert.lengthOf(requests, 1)
      const [{ form, request, sessionId }] = requests
      assert.strictEqual(sessionId, "mine")
      assert.strictEqual(request.interaction.argumentsSummary, "touch made")
      assert.deepInclude(form.requestedSchema.properties.command, { type: "string" })
      const answered = yield* served.call(`/v1/requests/${request.requestId}/answer`, { answer: "y" })
      assert.deepStrictEqual([answered.status, answered.body], [200, { status: "answered" }])
      const end = yield* Served.until(served.call(path), ({ body }) => body.agents[0].isIdle === true)
      assert.deepInclude(end.body, { ...idle, mode: "ask", todos: [], jobs: [] })
      assert.isTrue(fs.existsSync(place.at("one", "made")))
      assert.deepStrictEqual((yield* served.call(path, undefined, {}, "DELETE")).body, { ok: true })
      assert.strictEqual((yield* served.call(path)).status, 404)
    })
  )

  it.scopedLive("lists sessions page by page, changes mode, permissions and model, and interrupts", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      for (const id of ["a", "b", "c"]) yield* served.call("/v1/sessions", { id, workspace: place.at("two") })
      const pages: Array<string> = []
      let after: string | undefined
      do {
        const page = yield* served.call(`/v1/sessions?limit=2${after === undefined ? "" : `&after=${after}`}`)
        pages.push(page.body.sessions.map((one: { sessionId: string }) => one.sessionId).join())
        after = page.body.next
      } while (after !== undefined)
      assert.deepStrictEqual(pages.join().split(",").sort(), ["a", "b", "c"])
      assert.strictEqual(pages.length, 2)
      const post = (path: string, body: unknown) => served.call(`/v1/sessions/a/${path}`, body)
      assert.strictEqual((yield* post("mode", { mode: "plan" })).status, 200)
      assert.strictEqual((yield* served.call("/v1/sessions/a")).body.mode, "plan")
      assert.strictEqual((yield* post("mode", { mode: "wild" })).status, 400)
      assert.strictEqual((yield* post("permissions", { command: "status" })).status, 200)
      assert.strictEqual((yield* post("permissions", { command: "dance" })).status, 422)
      assert.strictEqual((yield* post("model", { model: "offline" })).status, 200)
      assert.strictEqual((yield* post("model", { model: "offline", thinking: "high" })).status, 200)
      assert.strictEqual((yield* post("model", { model: "offline", thinking: "hardest" })).status, 400)
      assert.strictEqual((yield* post("model", { model: "openai/nothing" })).status, 422)
      const { sessionId } = yield* Served.question(served)
      const interrupted = yield* served.call(`/v1/sessions/${sessionId}/interrupt`, {})
      assert.strictEqual(interrupted.status, 200)
      yield* Served.until(served.call("/v1/requests"), ({ body }) => body.requests.length === 0)
    })
  )

  it.scopedLive("has one winner of a race, and tells the others who that is, also after a restart", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = Served.asking(place)
      const first = yield* Scope.make()
      const served = yield* Scope.extend(Served.serve(place, model), first)
      const { requestId, sessionId } = yield* Served.question(served)
      const path = `/v1/requests/${requestId}/answer`
      const race = (one: Served.Served) =>
        Effect.all(
          [1, 2, 3, 4, 5].map((n) => one.call(path, { answer: "y", id: `a${n}` })),
          { concurrency: "unbounded" }
        )
      const outcomes = yield* race(served)
      assert.deepStrictEqual(outcomes.map(({ status }) => status).sort(), [200, 409, 409, 409, 409])
      const winner = outcomes.findIndex(({ status }) => status === 200)
      for (const { body, status } of outcomes) {
        if (status === 409) assert.deepInclude(body, { _tag: "InteractionAlreadyAnswered", winner: "ada", requestId })
      }
      const again = yield* served.call(path, { answer: "y", id: `a${winner + 1}` })
      assert.deepStrictEqual([again.status, again.body], [200, { status: "answered", again: true }])
      yield* Served.until(served.call(`/v1/sessions/${sessionId}`), ({ body }) => body.agents[0]?.isIdle === true)
      yield* Scope.close(first, Exit.void)
      const later = yield* Served.serve(place, model)
      const late = yield* later.call(path, { answer: "n" })
      assert.strictEqual(late.status, 409)
      assert.deepInclude(late.body, { _tag: "InteractionAlreadyAnswered", winner: "ada" })
      const cancelled = yield* later.call(`/v1/requests/${requestId}/cancel`, {})
      assert.strictEqual(cancelled.status, 409)
      assert.strictEqual((yield* later.call("/v1/requests/req_none/answer", { answer: "n" })).status, 404)
    })
  )

  it.scopedLive("takes answers to questions of sessions that nobody runs, and they go on", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = Served.asking(place)
      const first = yield* Scope.make()
      const served = yield* Scope.extend(Served.serve(place, model), first)
      const asked = yield* Effect.forEach([1, 2, 3], () => Served.question(served))
      yield* Scope.close(first, Exit.void)
      const later = yield* Served.serve(place, model)
      const open = (yield* later.call("/v1/requests")).body.requests
      assert.deepStrictEqual(
        open.map(({ request }: { request: { requestId: string } }) => request.requestId).sort(),
        asked.map(({ requestId }) => requestId).sort()
      )
      const [one, two, three] = asked
      const path = (requestId = "") => `/v1/requests/${requestId}/answer`
      const outcomes = yield* Effect.all(
        ["y", "n", "y", "n"].map((answer) => later.call(path(one?.requestId), { answer })),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(outcomes.map(({ status }) => status).sort(), [200, 409, 409, 409])
      const wrong = yield* later.call(path(two?.requestId), { form: { command: 7 } })
      assert.deepStrictEqual([wrong.status, wrong.body.problems[0].field], [422, "command"])
      assert.strictEqual((yield* later.call(path(two?.requestId), { answer: "n" })).status, 200)
      yield* Served.until(
        Effect.sync(() => fs.existsSync(place.at("one", "made"))),
        (isThere) => isThere === outcomes.some(({ status }, index) => status === 200 && index % 2 === 0)
      )
      const cancelled = yield* later.call(`/v1/requests/${three?.requestId}/cancel`, {})
      assert.strictEqual(cancelled.status, 200)
      yield* Served.until(later.call("/v1/requests"), ({ body }) => body.requests.length === 0)
    })
  )

  it.scopedLive("takes an answer again that a former process stored before it died, and goes on with it", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = Served.asking(place)
      const first = yield* Scope.make()
      const served = yield* Scope.extend(Served.serve(place, model), first)
      const asked = yield* Effect.forEach([1, 2, 3], () => Served.question(served))
      yield* Scope.close(first, Exit.void)
      const [one, two, three] = asked.map(({ requestId }) => RequestId.make(requestId))
      const second = yield* Scope.make()
      const later = yield* Scope.extend(Served.serve(place, model), second)
      const [store] = yield* Scope.extend(later.host.stores, second)
      const yes = { decision: "allow", scope: "once" }
      const answer = (requestId: string | undefined, body: object) =>
        Effect.map(later.call(`/v1/requests/${requestId}/answer`, body), ({ body, status }) => [status, body.again])
      // As a process does that dies before the session goes on.
      for (const id of [one, two, three]) yield* store?.answer(id ?? RequestId.make(""), yes, "ada") ?? Effect.void
      assert.deepStrictEqual(yield* answer(one, { answer: "n", id: "mine" }), [409, undefined])
      assert.deepStrictEqual(yield* answer(one, { answer: "y" }), [409, undefined])
      assert.deepStrictEqual(yield* answer(one, { answer: "y", id: "mine" }), [200, true])
      yield* Served.until(
        Effect.sync(() => fs.existsSync(place.at("one", "made"))),
        (isThere) => isThere
      )
      assert.deepStrictEqual(yield* answer(one, { answer: "y", id: "mine" }), [200, true])
      yield* Served.until(
        later.call(`/v1/sessions/${asked[0]?.sessionId}`),
        ({ body }) => body.agents[0]?.isIdle === true && body.open.length === 0
      )
      yield* Scope.close(second, Exit.void)
      // Nobody asks again for the others: the next process goes on with them.
      const last = yield* Served.serve(place, model)
      yield* Served.until(last.call("/v1/requests"), ({ body }) => body.requests.length === 0)
    })
  )

  it.scopedLive("takes an answer to a session that it is about to go on with", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = Served.asking(place)
      const first = yield* Scope.make()
      const served = yield* Scope.extend(Served.serve(place, model), first)
      const asked = yield* Effect.forEach(Array.from({ length: 6 }), () => Served.question(served))
      yield* Scope.close(first, Exit.void)
      const later = yield* Served.serve(place, model)
      const outcomes = yield* Effect.forEach(asked, ({ requestId, sessionId }) =>
        Effect.gen(function* () {
          const queued = { text: "and then", delivery: "queue" }
          const sent = yield* Effect.fork(later.call(`/v1/sessions/${sessionId}/messages`, queued))
          const answers: Array<Fiber.Fiber<Served.Answer>> = []
          // One falls into the moment between the lock and the question.
          for (let round = 0; round < 20; round++) {
            const given = { answer: "n", id: "mine" }
            answers.push(yield* Effect.fork(later.call(`/v1/requests/${requestId}/answer`, given)))
            yield* later.call("/healthz")
          }
          return [yield* Fiber.join(sent), ...(yield* Fiber.joinAll(answers))]
        })
      )
      assert.deepStrictEqual(new Set(outcomes.flat().map(({ status }) => status)), new Set([200]))
    })
  )

  it.scopedLive("goes on with what a former process was in the middle of", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = Served.asking(place, "sleep 60")
      const first = yield* Scope.make()
      const served = yield* Scope.extend(Served.serve(place, model), first)
      const { requestId, sessionId } = yield* Served.question(served)
      yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "y" })
      yield* served.events(`/v1/sessions/${sessionId}/events`, (all) =>
        all.some(({ data }) => data._tag === "ToolCallStarted")
      )
      yield* Scope.close(first, Exit.void)
      const later = yield* Served.serve(place, model)
      const whole = later.events(`/v1/sessions/${sessionId}/events`, (all) =>
        all.some(({ data }) => data._tag === "TurnEnded")
      )
      const pieces = yield* whole
      const ended = pieces.filter(({ data }) => data._tag === "ToolCallEnded").map(({ data }) => data.outcome)
      assert.deepStrictEqual(ended, ["interrupted"])
      // The journal has the same places as the agent.
      const live = yield* whole
      yield* later.host.close(sessionId)
      const idsOf = (all: ReadonlyArray<Served.Piece>) => all.flatMap(({ id }) => id ?? [])
      assert.deepStrictEqual(idsOf(yield* whole), idsOf(live))
    })
  )

  it.scopedLive("collects votes, and says who is missing", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      fs.writeFileSync(
        place.at("config", "permissions.json"),
        JSON.stringify({
          approvals: [{ tools: ["run_command"], quorum: 2, roles: ["ops"] }],
          roles: { ops: ["ada", "grace"] }
        })
      )
      const served = yield* Served.serve(place, Served.asking(place))
      const { requestId } = yield* Served.question(served)
      const vote = yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "y" })
      assert.deepStrictEqual([vote.status, vote.body], [202, { status: "voted", missing: "1 more of: ops" }])
    })
  )

  it.scopedLive("ends gently: running tools end, clients are told, and nothing more is taken", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place, "sleep 1; touch made"))
      const { requestId, sessionId } = yield* Served.question(served)
      const heard = yield* Effect.fork(served.events(`/v1/sessions/${sessionId}/events`, () => false))
      yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "y" })
      yield* Served.until(
        served.events(`/v1/sessions/${sessionId}/events`, (all) =>
          all.some(({ data }) => data._tag === "ToolCallStarted")
        ),
        () => true
      )
      const ending = yield* Effect.fork(served.end)
      const refused = yield* Served.until(
        served.call(`/v1/sessions/${sessionId}/messages`, { text: "more" }),
        ({ status }) => status === 503
      )
      assert.strictEqual(refused.body._tag, "Unavailable")
      yield* Fiber.join(ending)
      const pieces = yield* Fiber.join(heard)
      assert.strictEqual(pieces.at(-1)?.event, "goodbye")
      assert.isTrue(pieces.some(({ data }) => data._tag === "ToolCallEnded" && data.outcome === "succeeded"))
      assert.isTrue(fs.existsSync(place.at("one", "made")))
    })
  )
})

describe("events of a server", () => {
  /** What a client has after any number of cuts, each behind any event. */
  it.scopedLive(
    "are gapless and come once, wherever the connection is cut",
    () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const served = yield* Served.serve(place, Served.asking(place))
        const { requestId, sessionId } = yield* Served.question(served)
        yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "y" })
        yield* Served.until(served.call(`/v1/sessions/${sessionId}`), ({ body }) => body.agents[0].isIdle === true)
        const isEnd = (pieces: ReadonlyArray<Served.Piece>) => pieces.some(({ data }) => data._tag === "TurnEnded")
        const own = `/v1/sessions/${sessionId}/events`
        for (const [path, isLive] of [
          [own, true],
          ["/v1/events", true],
          [own, false]
        ] as const) {
          if (!isLive) yield* served.host.close(sessionId)
          const zero = path === "/v1/events" ? yield* place0(served) : "0"
          const whole = durable(yield* served.events(path, (all) => isEnd(durable(all)), zero))
          const text = whole.map((piece) => JSON.stringify(piece)).join("\n")
          yield* Effect.promise(() =>
            FastCheck.assert(
              FastCheck.asyncProperty(
                FastCheck.array(FastCheck.integer({ min: 1, max: 40 }), { maxLength: 8 }),
                (cuts) =>
                  Effect.runPromise(
                    Effect.gen(function* () {
                      const found: Array<Served.Piece> = []
                      let last = zero
                      for (const cut of [...cuts, Infinity]) {
                        const got = yield* served.events(path, (all) => all.length >= cut || isEnd(durable(all)), last)
                        // What came behind the last id is lost with the connection.
                        const known = durable(got)
                        found.push(...known)
                        last = got.findLast(({ id }) => id !== undefined)?.id ?? last
                        if (isEnd(known)) break
                      }
                      assert.strictEqual(found.map((piece) => JSON.stringify(piece)).join("\n"), text)
                    })
                  )
              ),
              { numRuns: 6 }
            )
          )
        }
      }),
    60_000
  )

  it.scopedLive("begin with a snapshot where the place is unknown", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const { requestId, sessionId } = yield* Served.question(served)
      const path = `/v1/sessions/${sessionId}/events`
      for (const unknown of ["99999", "garbage", "-1"]) {
        const [first] = yield* served.events(path, (all) => all.length > 0, unknown)
        assert.strictEqual(first?.event, "snapshot")
        assert.deepStrictEqual(first?.data.open, [requestId])
        assert.strictEqual(first?.id, first?.data.cursor)
      }
      for (const unknown of [undefined, "garbage", "a.1~b.2", "deadbeef.3"]) {
        const [first] = yield* served.events("/v1/events", (all) => all.length > 0, unknown)
        assert.strictEqual(first?.event, "snapshot")
        assert.deepStrictEqual(first?.data.sessions[0].open, [requestId])
      }
    })
  )

  it.scopedLive.each([
    ["a store for each workspace", undefined],
    ["one store for all", "all.db"]
  ] as const)("of all sessions go on behind an id of the process before, in %s", ([, file]) =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const options = file === undefined ? {} : { store: place.at(file) }
      const model = Served.asking(place)
      const first = yield* Scope.make()
      const served = yield* Scope.extend(Served.serve(place, model, options), first)
      const one = yield* Served.question(served)
      const [snapshot] = yield* served.events("/v1/events", (all) => all.length > 0)
      const two = yield* Served.question(served, { workspace: place.at("two") })
      yield* Scope.close(first, Exit.void)
      const later = yield* Served.serve(place, model, options)
      const answers = yield* Effect.fork(
        Effect.forEach([one, two], ({ requestId }) => later.call(`/v1/requests/${requestId}/answer`, { answer: "y" }))
      )
      /** With all that follows the end of its turn. */
      const isOver = (all: ReadonlyArray<Served.Piece>, id: string) => {
        const its = all.filter(({ data }) => data.rootSessionId === id)
        const end = its.findIndex(({ data }) => data._tag === "TurnEnded")
        return end >= 0 && its.slice(end).some(({ data }) => data.status === "idle")
      }
      const pieces = yield* later.events(
        "/v1/events",
        (all) => isOver(all, one.sessionId) && isOver(all, two.sessionId),
        snapshot?.id
      )
      yield* Fiber.join(answers)
      const tagsOf = (id: string) =>
        pieces.filter(({ data }) => data.rootSessionId === id).map(({ data }) => String(data._tag))
      assert.include(tagsOf(two.sessionId), "TurnStarted")
      assert.notInclude(tagsOf(one.sessionId), "TurnStarted")
      for (const { sessionId } of [one, two])
        assert.strictEqual(tagsOf(sessionId).filter((tag) => tag === "InteractionAnswered").length, 1)
      // A place in the middle: what follows it, and nothing twice.
      const ids = pieces.flatMap(({ id }) => (id === undefined ? [] : [id]))
      assert.strictEqual(new Set(ids).size, ids.length)
      const middle = ids[Math.floor(ids.length / 2)]
      const rest = pieces.slice(pieces.findIndex(({ id }) => id === middle) + 1)
      // Two stores have no order between them.
      const bySession = (all: ReadonlyArray<Served.Piece>) =>
        [one, two].map(({ sessionId }) => all.flatMap(({ data }) => (data.rootSessionId === sessionId ? [data] : [])))
      const again = yield* later.events("/v1/events", (all) => all.length === rest.length, middle)
      assert.deepStrictEqual(bySession(again), bySession(rest))
    })
  )

  it.scopedLive(
    "that are long are kept up to a limit: who reads has all of them, who does not is told and dropped",
    () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const served = yield* Served.serve(place, "offline")
        const zero = yield* place0(served)
        const { host, hostname, port } = new URL(served.url)
        const deaf = yield* Effect.acquireRelease(
          Effect.sync(() => net.connect(Number(port), hostname).pause()),
          (socket) => Effect.sync(() => socket.destroy())
        )
        deaf.write(`GET /v1/events HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${served.token}\r\n\r\n`)
        const turns = 24
        const isEnd = (pieces: ReadonlyArray<Served.Piece>) =>
          durable(pieces).filter(({ data }) => data._tag === "TurnEnded").length === turns
        const reader = yield* Effect.fork(served.events("/v1/events", isEnd, zero))
        // 21 MB. Each session has one turn.
        for (let turn = 0; turn < turns; turn++) {
          yield* served.call("/v1/sessions", { id: `long${turn}` })
          yield* served.call(`/v1/sessions/long${turn}/messages`, { text: "word ".repeat(180_000) })
        }
        const whole = durable(yield* Fiber.join(reader)).map(({ data, id }) => [id, data._tag, data.sessionId])
        const middle = whole.findIndex(([id], index) => index > whole.length / 2 && id !== undefined)
        for (const [after, expected] of [
          [zero, whole],
          [String(whole[middle]?.[0]), whole.slice(middle + 1)]
        ] as const) {
          const left = expected.filter(([, tag]) => tag === "TurnEnded").length
          const again = yield* served.events(
            "/v1/events",
            (all) => durable(all).filter(({ data }) => data._tag === "TurnEnded").length === left,
            after
          )
          assert.deepStrictEqual(
            durable(again).map(({ data, id }) => [id, data._tag, data.sessionId]),
            expected
          )
        }
        let text = ""
        yield* Effect.async<void>((resume) => {
          deaf.on("data", (data) => {
            text = (text + String(data)).slice(-10_000)
            if (text.includes("This client reads too slowly and was dropped.")) resume(Effect.void)
          })
          deaf.resume()
        })
      }),
    120_000
  )

  it.scopedLive("go to so many clients of one caller, and no more", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place), { streams: 2 })
      const open = yield* Effect.forEach([1, 2], () => Effect.fork(served.events("/v1/events", () => false)))
      const third = yield* Served.until(
        served.call("/v1/events", undefined, { "x-try": "1" }),
        ({ status }) => status === 429
      )
      assert.strictEqual(third.body._tag, "TooManyRequests")
      yield* Effect.forEach(open, Fiber.interrupt)
      yield* served.events("/v1/events", (all) => all.length > 0)
    })
  )
})

const durable = (pieces: ReadonlyArray<Served.Piece>): ReadonlyArray<Served.Piece> => {
  const last = pieces.findLastIndex(({ id }) => id !== undefined)
  return pieces
    .slice(0, last + 1)
    .filter(({ data, event }) => event === undefined && data._tag !== "AgentStatusChanged")
}

/** The beginning of all events. */
const place0 = (served: Served.Served) =>
  Effect.map(
    served.events("/v1/events", (all) => all.length > 0),
    ([first]) =>
      String(first?.id)
        .split("~")
        .map((one) => one.replace(/\..*/, ".0"))
        .join("~")
  )

describe("what a server refuses", () => {
  it.scopedLive(
    "are connections without a request when there are too many, and never a client with one",
    () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const served = yield* Served.serve(place, Served.asking(place))
        yield* served.call("/v1/sessions", { id: "one" })
        const { hostname, port } = new URL(served.url)
        // A stream is a client with a request, also when nothing happens.
        const stream = yield* Effect.fork(
          served.events("/v1/sessions/one/events", (pieces) => pieces.some(({ data }) => data._tag === "TurnEnded"))
        )
        const silent = yield* Effect.acquireRelease(
          Effect.sync(() =>
            Array.from({ length: 2_000 }, () => net.connect(Number(port), hostname).on("error", () => {}))
          ),
          (sockets) => Effect.sync(() => sockets.forEach((socket) => socket.destroy()))
        )
        yield* Served.until(
          Effect.sync(() => silent.filter(({ connecting }) => connecting).length),
          (left) => left === 0
        )
        for (let count = 0; count < 20; count++)
          assert.strictEqual((yield* served.call("/healthz", undefined, { connection: "close" })).status, 200)
        yield* served.call("/v1/sessions/one/messages", { text: "go" })
        yield* Served.until(served.call("/v1/requests"), ({ body }) => body.requests.length === 1)
        const [{ request }] = (yield* served.call("/v1/requests")).body.requests
        yield* served.call(`/v1/requests/${request.requestId}/answer`, { answer: "y" })
        assert.isAbove((yield* Fiber.join(stream)).length, 3)
      }),
    60_000
  )

  it.scopedLive("is said with its status, and nothing of it is done", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const { call, token } = served
      const port = new URL(served.url).port
      const cases: ReadonlyArray<readonly [number, string, string, unknown?, Record<string, string>?]> = [
        [401, "Unauthorized", "/v1/sessions", undefined, { authorization: "" }],
        [401, "Unauthorized", "/v1/sessions", undefined, { authorization: `Bearer ${token}x` }],
        [401, "Unauthorized", "/v1/sessions", undefined, { authorization: `Basic ${token}` }],
        [401, "Unauthorized", "/metrics", undefined, { authorization: "" }],
        [403, "OriginRefused", "/v1/sessions", undefined, { origin: "http://evil.example" }],
        [403, "OriginRefused", "/nothing", undefined, { origin: "null" }],
        [403, "OriginRefused", "/v1/sessions", undefined, { origin: `http://127.0.0.1:${Number(port) + 1}` }],
        [403, "SiteRefused", "/healthz", undefined, { "sec-fetch-site": "cross-site" }],
        [403, "SiteRefused", "/v1/sessions", undefined, { "sec-fetch-site": "same-site" }],
        [415, "TypeRefused", "/v1/sessions", "a=b", { "content-type": "application/x-www-form-urlencoded" }],
        [415, "TypeRefused", "/v1/sessions", "{}", { "content-type": "text/plain" }],
        [415, "TypeRefused", "/v1/sessions", "{}", { "content-type": "application/jsonp" }],
        [413, "BodyTooLarge", "/v1/sessions", JSON.stringify({ workspace: "x".repeat(1_100_000) })],
        [400, "BadRequest", "/v1/sessions", "{"],
        [400, "HttpApiDecodeError", "/v1/sessions", { model: 7 }],
        [400, "HttpApiDecodeError", "/v1/sessions", { wokspace: "/" }],
        [400, "HttpApiDecodeError", "/v1/sessions", []],
        [400, "BadRequest", "/v1/sessions", { id: "../../etc" }],
        [403, "Forbidden", "/v1/sessions", { workspace: place.at("home") }],
        [422, "Unprocessable", "/v1/sessions", { model: "openai/none" }],
        [404, "NotFound", "/v1/sessions/none"],
        [404, "NotFound", "/v1/sessions/none/events"],
        [404, "NotFound", "/v1/sessions/none/messages", { text: "x" }],
        [404, "NotFound", "/nothing"]
      ]
      for (const [status, tag, path, body, headers] of cases) {
        const answer = yield* call(path, body, headers)
        assert.deepStrictEqual([answer.status, answer.body._tag], [status, tag], `${path} ${JSON.stringify(headers)}`)
        if (status === 401) assert.include(answer.body.message, "serve-token")
        assert.strictEqual(answer.headers.get("cache-control"), "no-store")
        assert.isNull(answer.headers.get("access-control-allow-origin"))
        assert.isNull(answer.headers.get("set-cookie"))
      }
      const wrong = (yield* call("/v1/sessions", { model: 7 })).body
      assert.deepStrictEqual(wrong.issues[0].path, ["model"])
      assert.deepStrictEqual((yield* call("/v1/sessions")).body.sessions, [])
    })
  )

  it.scopedLive("is every name but its own, also for paths that there are not", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, "offline", { allowHosts: ["assent.example:443"] })
      const { port } = new URL(served.url)
      const ask = (host: string, path = "/healthz") =>
        raw(served.url, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      for (const host of [
        `127.0.0.1:${port}`,
        `localhost:${port}`,
        `LOCALHOST:${port}`,
        `[::1]:${port}`,
        "assent.example:443"
      ])
        assert.deepStrictEqual(statusOf(yield* ask(host)), [200], host)
      for (const host of [
        "evil.example",
        `evil.example:${port}`,
        "127.0.0.1",
        `127.0.0.1.evil.example:${port}`,
        "",
        `localhost:${port}.evil`
      ])
        for (const path of ["/healthz", "/nothing", "/openapi.json"])
          assert.deepStrictEqual(statusOf(yield* ask(host, path)), [403], host)
    })
  )

  it.scopedLive("are two requests in one by two lengths, and headers without end", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, "offline")
      const { host } = new URL(served.url)
      const hidden = `GET /healthz HTTP/1.1\r\nHost: ${host}\r\n\r\n`
      const post = `POST /v1/sessions HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n`
      const smuggled = [
        ...["+0", "0x0", "0, 44", "0 0", "-1", "", "0\r\n 44", "99999999999999999999"].map(
          (length) => `${post}Content-Length: ${length}\r\n\r\n${hidden}`
        ),
        ...[
          "xchunked",
          "chunked, chunked",
          "identity",
          "gzip, chunked",
          "\x0bchunked",
          "chunked\r\nTransfer-Encoding: x"
        ].map((coding) => `${post}Transfer-Encoding: ${coding}\r\nContent-Length: 2\r\n\r\n{}${hidden}`),
        ...["g", "-1", "0x0", "fffffffffffffffff", "0;\n", " 0"].map(
          (size) => `${post}Transfer-Encoding: chunked\r\n\r\n${size}\r\n\r\n${hidden}`
        ),
        `${post}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
        `${post}Content-Length\0: 0\r\n\r\n${hidden}`,
        `${post}Content-Length: 0\n\n${hidden}`,
        `${post.replaceAll("\r\n", "\r")}\r\r${hidden}`,
        `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nHost: evil.example\r\n\r\n`,
        `GET http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n`,
        `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
        `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${hidden}`,
        `POST /v1/sessions HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
        `POST /v1/sessions HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n${hidden}`,
        `POST /v1/sessions HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${hidden}`,
        `POST /v1/sessions HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n${hidden}`,
        `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nX: ${"x".repeat(20_000)}\r\n\r\n`
      ]
      for (const bytes of smuggled) {
        const statuses = statusOf(yield* raw(served.url, bytes))
        assert.notInclude(statuses, 200, bytes.slice(0, 200))
      }
      assert.strictEqual((yield* served.call("/healthz")).status, 200)
    })
  )

  it.scopedLive("are requests of a connection that reads no answers, beyond four", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, "offline")
      const request = `GET /healthz HTTP/1.1\r\nHost: ${new URL(served.url).host}\r\n\r\n`
      assert.deepStrictEqual(statusOf(yield* raw(served.url, request.repeat(4))), [200, 200, 200, 200])
      for (const count of [5, 6, 100])
        assert.isAtMost(statusOf(yield* raw(served.url, request.repeat(count))).length, 4)
      // One after the other, they are as many as a client wants.
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
      for (let count = 0; count < 20; count++)
        assert.strictEqual(
          yield* Effect.async<number | undefined>((resume) => {
            http.get(`${served.url}/healthz`, { agent }, (answer) =>
              answer.resume().on("end", () => resume(Effect.succeed(answer.statusCode)))
            )
          }),
          200
        )
      agent.destroy()
    })
  )

  it.scopedLive("is a token that was rotated, and the next one counts at once", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, "offline")
      const file = place.at("config", "serve-token")
      assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
      assert.strictEqual(Buffer.from(served.token, "base64url").length, 24)
      yield* Token.rotate(file)
      assert.strictEqual((yield* served.call("/v1/sessions")).status, 401)
      const next = fs.readFileSync(file, "utf8").trim()
      assert.notStrictEqual(next, served.token)
      const headers = { authorization: `Bearer ${next}` }
      assert.strictEqual((yield* served.call("/v1/sessions", undefined, headers)).status, 200)
      fs.rmSync(file)
      assert.strictEqual((yield* served.call("/v1/sessions", undefined, headers)).status, 401)
      fs.writeFileSync(file, "short\n")
      const error = yield* Effect.flip(Token.open(file))
      assert.include(error.message, "at least 22 characters")
    })
  )

  it.scopedLive("answers a client that came while it began", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const port = yield* Effect.promise(
        () =>
          new Promise<number>((resolve) => {
            const probe = net.createServer().listen(0, "127.0.0.1", () => {
              const { port } = probe.address() as net.AddressInfo
              probe.close(() => resolve(port))
            })
          })
      )
      // As soon as somebody listens there, it is asked.
      const first = yield* Effect.fork(
        Effect.tryPromise(() => fetch(`http://127.0.0.1:${port}/healthz`)).pipe(
          Effect.map(({ status }) => status),
          Effect.retry({ schedule: Schedule.spaced("1 millis") }),
          Effect.timeout("20 seconds")
        )
      )
      yield* Served.serve(place, Served.asking(place), { port })
      assert.strictEqual(yield* Fiber.join(first), 200)
    })
  )
})
