/** Each path of the API through a node that has not the session. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Cluster from "../kit/Cluster.js"
import * as Postgres from "../kit/Postgres.js"

/** One after the other: a session stays where it is as long as its node is not slow. */
const inTurn = { timeout: 180_000, sequential: true }

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, inTurn)

const three = (options: object = {}) =>
  Effect.gen(function* () {
    const cluster = yield* Effect.flatMap(Postgres.schema, (parameters) => Cluster.make(Postgres.url(parameters)))
    // A session that is not parked stays where it is.
    const settings = { nap: 100, parkAfter: 60_000, evictAfter: 60_000, ...options }
    const nodes = yield* Effect.all(
      ["a", "b", "c"].map((name) => cluster.start(name, settings)),
      { concurrency: "unbounded" }
    )
    yield* cluster.settled(3)
    return { ...cluster, nodes }
  })

/** Of the nodes that several tests share. */
const scope = Effect.runSync(Scope.make())
const shared = Effect.runSync(Effect.cached(Scope.extend(three(), scope)))
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/** A session that asks, its owner and the two others. */
const asking = (nodes: ReadonlyArray<Cluster.Node>, id: string) =>
  Effect.gen(function* () {
    const [first] = nodes
    assert(first !== undefined)
    yield* Cluster.begin(first, id)
    const request = yield* Cluster.asked(first, id)
    const owner = yield* Cluster.ownerOf(nodes, id)
    const [other = first, third = first] = nodes.filter((node) => node !== owner)
    return { request, owner, other, third }
  })

const idle = (node: Cluster.Node, id: string) =>
  Cluster.until(node.call(`/v1/sessions/${id}`), ({ body }) => body?.agents?.[0]?.isIdle === true)

/** The events of a run. */
const eventsOf = (text: string): ReadonlyArray<any> =>
  text.split("\n\n").flatMap((block) => {
    const data = /^data: (\{.*)$/m.exec(block)?.[1]
    return data === undefined ? [] : [JSON.parse(data)]
  })

const agui = (node: Cluster.Node, id: string, input: object) =>
  Effect.map(
    Cluster.asking(node.call(`/v1/agui/${id}`, { threadId: "t", runId: "r", messages: [], ...input })),
    ({ body, status }) => {
      assert.strictEqual(status, 200, String(body))
      return eventsOf(String(body))
    }
  )

const words = { id: "m1", role: "user", content: "go" }

describe.runIf(Postgres.isThere)("the API of a cluster", { concurrent: true }, () => {
  describe("from any node", () => {
    live("is whole at a node that has not the session", () =>
      Effect.gen(function* () {
        const { gapless, nodes } = yield* shared
        const { other, owner, request, third } = yield* asking(nodes, "whole")
        const session = "/v1/sessions/whole"
        const answers: Array<readonly [string, Cluster.Answer]> = []
        const ask = (path: string, body?: unknown, method?: string) =>
          Effect.tap(other.call(path, body, "ann", method), (answer) =>
            Effect.sync(() => answers.push([`${method ?? ""} ${path}`, answer]))
          )
        for (const path of ["/healthz", "/readyz", "/metrics", "/v1/about", "/v1/sessions", "/v1/requests"])
          yield* ask(path)
        for (const path of ["", "/turns", "/audit", "/models"]) yield* ask(`${session}${path}`)
        const { body: asked } = yield* ask("/v1/requests?session=whole")
        assert.deepStrictEqual(
          asked.requests.map(({ request }: any) => request.requestId),
          [request]
        )
        yield* ask(`${session}/mode`, { mode: "ask" })
        yield* ask(`${session}/permissions`, { command: "" })
        yield* ask(`${session}/messages`, { text: "more", id: "whole-2" })
        const { body: taken } = yield* ask(`${session}/take-back`, {})
        assert.deepStrictEqual(
          taken.messages.map(({ id }: any) => id),
          ["whole-2"]
        )
        const { body: agreed } = yield* ask(`/v1/requests/${request}/answer`, { answer: "y", id: "one" })
        assert.deepStrictEqual(agreed, { status: "answered" })
        yield* idle(third, "whole")
        const { body: models } = yield* third.call(`${session}/models`)
        assert.strictEqual(models.models.length, 1)
        const { body: fork } = yield* ask(`${session}/fork`, { turn: 1 })
        assert.strictEqual(fork.turn, 1, JSON.stringify(fork))
        const { body: turns } = yield* Cluster.asking(third.call(`/v1/sessions/${fork.sessionId}/turns`))
        assert.deepStrictEqual(
          turns.turns.map(({ words }: any) => words),
          ["go"]
        )
        // It works like any other one, wherever it is.
        yield* Cluster.asking(owner.call(`/v1/sessions/${fork.sessionId}/messages`, { text: "again" }))
        yield* Cluster.asked(third, fork.sessionId)
        yield* ask(`${session}/interrupt`, {})
        yield* ask(`/v1/ai/whole/chat/stream`)
        yield* ask(session, undefined, "DELETE")
        for (const [path, { body, status }] of answers)
          assert.oneOf(status, [200, 204], `${path} ${JSON.stringify(body)}`)
        assert.strictEqual((yield* third.call(session)).status, 404)
        yield* gapless
      })
    )

    live("shows a run in AG-UI through a node that has not the session, over two runs", () =>
      Effect.gen(function* () {
        const { gapless, nodes, runs } = yield* shared
        const { other, third } = yield* asking(nodes, "agui")
        const asked = yield* agui(other, "agui", { messages: [{ ...words, id: "agui-1" }] })
        assert.strictEqual(asked[0].type, "RUN_STARTED")
        const { outcome } = asked.at(-1)
        assert.strictEqual(outcome?.type, "interrupt", JSON.stringify(asked.at(-1)))
        assert.strictEqual(outcome.interrupts[0].reason, "tool_call")
        const resume = [{ interruptId: outcome.interrupts[0].id, status: "resolved", payload: { approved: true } }]
        const done = yield* agui(third, "agui", { messages: [{ ...words, id: "agui-1" }], resume })
        assert.deepStrictEqual(done.at(-1).outcome, { type: "success" }, JSON.stringify(done.slice(-6)))
        assert.isTrue(done.some(({ delta }) => delta === "done"))
        assert.deepStrictEqual(
          (yield* runs("agui")).map(({ tool }) => tool),
          ["nap begins", "nap", "deploy"]
        )
        // What cannot be begun has the client's own terms there, too.
        const refused = yield* agui(other, "agui", { resume: [{ ...resume[0], interruptId: "req_none" }] })
        assert.strictEqual(refused.at(-1).code, "unknown_interrupt")
        yield* gapless
      })
    )

    live("shows a run to the AI SDK through a node that has not the session, also to a page that is loaded again", () =>
      Effect.gen(function* () {
        const { nodes } = yield* shared
        const { other, request, third } = yield* asking(nodes, "ai")
        const again = yield* third.call("/v1/ai/ai/chat/stream")
        const shown = eventsOf(String(again.body)).find(({ type }) => type === "tool-approval-request")
        assert.strictEqual(shown?.approvalId, request)
        const message = {
          id: "m2",
          role: "assistant",
          parts: [
            {
              type: "dynamic-tool",
              toolCallId: shown.toolCallId,
              state: "approval-responded",
              approval: { id: request, approved: true }
            }
          ]
        }
        const { body, status } = yield* Cluster.asking(other.call("/v1/ai/ai", { id: "chat", messages: [message] }))
        assert.strictEqual(status, 200)
        const chunks = eventsOf(String(body))
        assert.deepStrictEqual(chunks.at(-1), { type: "finish", finishReason: "stop" })
        assert.isTrue(String(body).endsWith("data: [DONE]\n\n"))
        yield* idle(third, "ai")
        assert.strictEqual((yield* other.call("/v1/ai/ai/chat/stream")).status, 204)
      })
    )

    live("lists a question that only its node can ask, and takes its answer, through another one", () =>
      Effect.gen(function* () {
        const { nodes, runs } = yield* three({ secret: true, once: true })
        const { other, request, third } = yield* asking(nodes, "s")
        for (const path of ["/v1/requests", "/v1/requests?session=s"]) {
          // A node that does not answer in time is left out of the list.
          const { body } = yield* Cluster.until(other.call(path), ({ body }) => body.requests?.length > 0)
          assert.deepStrictEqual(
            body.requests.map(({ request, sessionId }: any) => [request.requestId, sessionId]),
            [[request, "s"]]
          )
        }
        const answer = third.call(`/v1/requests/${request}/answer`, { answer: "horse", id: "one" })
        const { body } = yield* Cluster.asking(answer)
        assert.strictEqual(body.status, "answered", JSON.stringify(body))
        yield* Cluster.until(runs("s"), (found) => found.length === 1)
      })
    )

    live("ends a run whose node is killed with a sentence, and the page goes on with the next node", () =>
      Effect.gen(function* () {
        const { gapless, nodes, runs } = yield* three({ nap: 60_000 })
        const [first] = nodes
        assert(first !== undefined)
        yield* Cluster.asking(first.call("/v1/sessions", { id: "s" }))
        yield* Cluster.until(
          first.call("/v1/sessions/s"),
          ({ body, status }) => status === 200 && body.holder !== undefined
        )
        const owner = yield* Cluster.ownerOf(nodes, "s")
        const [other = first, third = first] = nodes.filter((node) => node !== owner)
        const running = yield* Effect.forkScoped(agui(other, "s", { messages: [words] }))
        yield* Cluster.until(runs("s"), (found) => found.length === 1)
        yield* owner.signal("SIGKILL")
        const cut = yield* Effect.timeout(Fiber.join(running), "60 seconds")
        assert.deepStrictEqual([cut.at(-1).type, cut.at(-1).code], ["RUN_ERROR", "stream_ended"])
        const request = yield* Cluster.asked(third, "s", 60_000)
        const rest = yield* agui(third, "s", { messages: [words] })
        assert.strictEqual(rest.at(-1).outcome.interrupts[0].id, request)
        assert.strictEqual((yield* runs("s")).filter(({ tool }) => tool === "nap begins").length, 1)
        yield* gapless
      })
    )
  })

  // It waits for most of its time.
  it.scopedLive(
    "measures its shards, what it has in memory, and how long sessions took to come there",
    () =>
      Effect.gen(function* () {
        const { nodes, sql } = yield* three({ parkAfter: 100, evictAfter: 100 })
        const [third] = nodes
        assert(third !== undefined)
        yield* Cluster.begin(third, "s")
        const request = yield* Cluster.asked(third, "s")
        const valuesOf = (name: string) =>
          Effect.forEach(nodes, (node) =>
            Effect.map(node.call("/metrics"), ({ body }) =>
              Number(new RegExp(`^${name} (.*)$`, "m").exec(String(body))?.[1])
            )
          )
        const sumOf = (name: string) => Effect.map(valuesOf(name), (all) => all.reduce((sum, one) => sum + one, 0))
        assert.strictEqual(yield* sumOf("assent_cluster_shards"), 300)
        assert.deepStrictEqual(yield* valuesOf("assent_cluster_sessions_waiting"), [1, 1, 1])
        yield* Cluster.until(
          sql<{ readonly token: string }>`SELECT token FROM assent_lock WHERE root = 's'`,
          ([row]) => row?.token === "parked",
          60_000
        )
        assert.isAtLeast(yield* sumOf("assent_cluster_parkings_total"), 1)
        assert.isAbove(yield* sumOf("assent_cluster_sweeps_total"), 0)
        const before = yield* sumOf("assent_cluster_wake_seconds_count")
        yield* Cluster.asking(third.call(`/v1/requests/${request}/answer`, { answer: "y", id: "one" }))
        assert.isAbove(yield* sumOf("assent_cluster_wake_seconds_count"), before)
        assert.strictEqual(yield* sumOf("assent_cluster_writes_refused_total"), 0)
        // The engine forgets what nobody asks about.
        yield* Cluster.until(sumOf("assent_cluster_entities"), (count) => count === 0, 90_000)
      }),
    inTurn.timeout
  )
})
