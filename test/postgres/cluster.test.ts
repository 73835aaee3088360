/** Three nodes over one database: any node takes anything, and a node that ends, in whatever way, loses nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Cluster from "../kit/Cluster.js"
import * as Postgres from "../kit/Postgres.js"

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 180_000)

const empty = Effect.flatMap(Postgres.schema, (parameters) => Cluster.make(Postgres.url(parameters)))

/** Three that are started at once. */
const three = (options: object = { nap: 200, evictAfter: 1_000 }) =>
  Effect.gen(function* () {
    const cluster = yield* empty
    const [a, b, c] = yield* Effect.all(
      [cluster.start("a", options), cluster.start("b", options), cluster.start("c", options)],
      { concurrency: "unbounded" }
    )
    return { ...cluster, a, b, c, nodes: [a, b, c] }
  })

const count = (runs: ReadonlyArray<Cluster.Run>) => {
  const counts: Record<string, number> = {}
  for (const { tool } of runs) counts[tool] = (counts[tool] ?? 0) + 1
  return counts
}

const idle = (node: Cluster.Node, id: string) =>
  Cluster.until(
    node.call(`/v1/sessions/${id}`),
    ({ body }) => body?.agents?.[0]?.isIdle === true || body?.status === "idle"
  )

/** Answers through this node, until the session is done. */
const answered = (node: Cluster.Node, id: string, request: string) =>
  Effect.gen(function* () {
    const answer = yield* Cluster.asking(node.call(`/v1/requests/${request}/answer`, { answer: "y", id: "one" }))
    assert.deepStrictEqual([answer.status, answer.body.status], [200, "answered"], JSON.stringify(answer))
    yield* idle(node, id)
  })

/** Without a request: what the database says. */
const openAnew = ({ sql }: Cluster.Cluster, id: string, former: Cluster.Node) =>
  Cluster.until(
    sql<{ readonly pid: string; readonly summary: string }>`
      SELECT l.pid, s.summary FROM assent_lock l JOIN assent_session s ON s.root = l.root
      WHERE l.root = ${id} AND l.token NOT IN ('left', 'parked')`,
    ([row]) => row !== undefined && Number(row.pid) !== former.pid && !row.summary.includes('"open":[]'),
    60_000
  )

/** Waits for the moment, and yields the request that is open then. */
const moments: {
  readonly [name: string]: (
    cluster: Cluster.Cluster,
    node: Cluster.Node,
    id: string
  ) => Effect.Effect<string | undefined, unknown>
} = {
  "when its words are acknowledged": () => Effect.succeed(undefined),
  "in the middle of a tool": ({ runs }, _, id) =>
    Effect.as(
      Cluster.until(runs(id), (found) => found.length === 1),
      undefined
    ),
  "when its question is open": (_, node, id) => Cluster.asked(node, id)
}

// Most of the time they wait until a node is missed.
describe.runIf(Postgres.isThere)("a cluster of three nodes", { concurrent: true }, () => {
  live("starts on an empty database, all at once, and gives a turn one effect through all of them", () =>
    Effect.gen(function* () {
      const { a, b, c, gapless, runs, sql } = yield* three()
      for (const node of [a, b, c]) assert.strictEqual((yield* Cluster.asking(node.call("/readyz"))).status, 200)
      yield* Cluster.begin(a, "s")
      const again = yield* Cluster.asking(b.call("/v1/sessions/s/messages", { text: "go", id: "s-1" }))
      assert.deepStrictEqual(again.body, { messageId: "s-1", again: true })
      const request = yield* Cluster.asked(b, "s")
      const first = yield* Cluster.asking(c.call(`/v1/requests/${request}/answer`, { answer: "y", id: "one" }, "cleo"))
      assert.deepStrictEqual([first.status, first.body.status], [200, "answered"])
      const second = yield* Cluster.asking(a.call(`/v1/requests/${request}/answer`, { answer: "n" }, "ann"))
      assert.deepStrictEqual([second.status, second.body.winner], [409, "cleo"])
      yield* idle(b, "s")
      assert.deepStrictEqual(count(yield* runs("s")), { "nap begins": 1, nap: 1, deploy: 1 })
      // Idle, it leaves memory, and no sweep brings it back.
      yield* Cluster.until(
        sql<{ readonly token: string }>`SELECT token FROM assent_lock WHERE root = 's'`,
        ([row]) => row?.token === "parked",
        60_000
      )
      yield* gapless
    })
  )

  for (const [moment, reaches] of Object.entries(moments))
    live(`goes on with a session whose node is killed ${moment}, without being asked, and runs no tool twice`, () =>
      Effect.gen(function* () {
        const cluster = yield* three({ nap: 1_500 })
        const { a, nodes } = cluster
        yield* Cluster.begin(a, "s")
        const before = yield* reaches(cluster, a, "s")
        const owner = yield* Cluster.ownerOf(nodes, "s")
        yield* owner.signal("SIGKILL")
        yield* openAnew(cluster, "s", owner)
        const other = nodes.find((node) => node !== owner) ?? a
        const request = yield* Cluster.asked(other, "s")
        if (before !== undefined) assert.strictEqual(request, before)
        yield* answered(other, "s", request)
        const runs = count(yield* cluster.runs("s"))
        assert.strictEqual(runs["deploy"], 1)
        assert.isAtMost(runs["nap begins"] ?? 0, 1)
        yield* cluster.gapless
      })
    )

  live("keeps the result of a tool that runs when its node ends gently", () =>
    Effect.gen(function* () {
      const cluster = yield* three({ nap: 1_500 })
      const { a, nodes } = cluster
      yield* Cluster.begin(a, "s")
      yield* Cluster.until(cluster.runs("s"), (found) => found.length === 1)
      const owner = yield* Cluster.ownerOf(nodes, "s")
      yield* owner.signal("SIGTERM")
      assert.strictEqual(yield* owner.exit, 0)
      assert.deepStrictEqual(count(yield* cluster.runs("s")), { "nap begins": 1, nap: 1 })
      const other = nodes.find((node) => node !== owner) ?? a
      yield* answered(other, "s", yield* Cluster.asked(other, "s"))
      const { body } = yield* other.call("/v1/sessions/s")
      assert.strictEqual(body.open.length, 0)
      const [row] = yield* cluster.sql<{ readonly body: string }>`
        SELECT body FROM assent_entry WHERE root = 's' AND tag = 'ToolEnded' ORDER BY seq LIMIT 1`
      assert.notInclude(row?.body ?? "", "interrupted")
      assert.deepStrictEqual(count(yield* cluster.runs("s")), { "nap begins": 1, nap: 1, deploy: 1 })
      yield* cluster.gapless
    })
  )

  live("takes the sessions of a node that stands still, which writes nothing when it comes back", () =>
    Effect.gen(function* () {
      const cluster = yield* three({ nap: 2_000 })
      const { a, nodes } = cluster
      yield* Cluster.begin(a, "s")
      yield* Cluster.until(cluster.runs("s"), (found) => found.length === 1)
      const owner = yield* Cluster.ownerOf(nodes, "s")
      yield* owner.signal("SIGSTOP")
      yield* openAnew(cluster, "s", owner)
      const others = nodes.filter((node) => node !== owner)
      const [other = a] = others
      yield* answered(other, "s", yield* Cluster.asked(other, "s"))
      yield* owner.signal("SIGCONT")
      // It takes part again, and sees what the others did.
      yield* Cluster.until(owner.call("/v1/sessions/s"), ({ body, status }) => status === 200 && body.open.length === 0)
      yield* Cluster.begin(owner, "s2")
      yield* answered(owner, "s2", yield* Cluster.asked(owner, "s2", 60_000))
      const runs = count(yield* cluster.runs("s"))
      assert.deepStrictEqual([runs["nap begins"], runs["deploy"]], [1, 1])
      yield* cluster.gapless
    })
  )

  live("gives a client that comes back every durable event once, over nodes that die", () =>
    Effect.gen(function* () {
      const cluster = yield* three({ nap: 1_000 })
      const { a, nodes } = cluster
      yield* Cluster.begin(a, "s")
      const path = "/v1/sessions/s/events"
      const named = (pieces: ReadonlyArray<Cluster.Piece>) =>
        pieces.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]))
      const has = (tag: string) => (pieces: ReadonlyArray<Cluster.Piece>) =>
        pieces.some(({ data }) => data._tag === tag)
      const owner = yield* Cluster.ownerOf(nodes, "s")
      const others = nodes.filter((node) => node !== owner)
      const [reader = a, last = a] = others
      // At a node that has not the session, until its owner dies in the middle of a tool, and on with the next one.
      const seen = yield* Effect.forkScoped(reader.events(path, undefined, has("InteractionRequested")))
      yield* Cluster.until(cluster.runs("s"), (found) => found.length === 1)
      yield* owner.signal("SIGKILL")
      const first = yield* Effect.timeout(Fiber.join(seen), "90 seconds")
      const after = String(named(first).at(-1) ?? 0)
      const rest = yield* Effect.forkScoped(last.events(path, after, has("TurnEnded")))
      yield* answered(last, "s", yield* Cluster.asked(last, "s"))
      const second = yield* Effect.timeout(Fiber.join(rest), "90 seconds")
      const ids = [...named(first), ...named(second)]
      assert.deepStrictEqual(
        ids,
        [...new Set(ids)].sort((x, y) => x - y)
      )
      const whole = named(yield* last.events(path, undefined, has("TurnEnded")))
      assert.deepStrictEqual(ids, whole)
    })
  )

  live("keeps the vote of a person when the owner is killed before the next one votes", () =>
    Effect.gen(function* () {
      const cluster = yield* three({ nap: 100, quorum: 2, parkAfter: 60_000 })
      const { a, nodes, runs, sql } = cluster
      yield* cluster.settled(3)
      yield* Cluster.begin(a, "s")
      const request = yield* Cluster.asked(a, "s")
      const owner = yield* Cluster.ownerOf(nodes, "s")
      const [other = a, third = a] = nodes.filter((node) => node !== owner)
      const vote = (node: Cluster.Node, by: string) =>
        Cluster.asking(node.call(`/v1/requests/${request}/answer`, { answer: "y", id: by }, by))
      const votes = sql<{ readonly author: string }>`
        SELECT body::json->>'by' AS author FROM assent_entry WHERE root = 's' AND tag = 'VoteGiven' ORDER BY seq`
      const first = yield* vote(other, "ann")
      yield* owner.signal("SIGKILL")
      assert.deepStrictEqual([first.status, first.body.status], [202, "voted"], JSON.stringify(first))
      assert.deepStrictEqual(yield* votes, [{ author: "ann" }])
      yield* openAnew(cluster, "s", owner)
      // One person has one vote, on whichever node.
      const again = yield* vote(third, "ann")
      assert.deepStrictEqual([again.status, again.body.status], [202, "voted"], JSON.stringify(again))
      const second = yield* vote(third, "ben")
      assert.deepStrictEqual([second.status, second.body.status], [200, "answered"], JSON.stringify(second))
      yield* idle(other, "s")
      assert.deepStrictEqual(yield* votes, [{ author: "ann" }, { author: "ben" }])
      assert.deepStrictEqual(count(yield* runs("s")), { "nap begins": 1, nap: 1, deploy: 1 })
      yield* cluster.gapless
    })
  )

  live("ends a parked question on time whose node died, by the time of the database", () =>
    Effect.gen(function* () {
      const cluster = yield* empty
      const { gapless, runs, settled, sql } = cluster
      const [limit, hour] = [12_000, 3_600_000]
      const options = { nap: 100, limit, parkAfter: 500, evictAfter: 1_000 }
      // The clocks of the machines do not agree.
      const nodes = yield* Effect.forEach(
        [0, hour, -hour],
        (ahead, index) => cluster.start(`n${index}`, { ...options, ahead }),
        { concurrency: "unbounded" }
      )
      const [a] = nodes
      assert(a !== undefined)
      yield* settled(3)
      yield* Cluster.begin(a, "s")
      yield* Cluster.asked(a, "s")
      const owner = yield* Cluster.ownerOf(nodes, "s")
      const token = sql<{ readonly token: string }>`SELECT token FROM assent_lock WHERE root = 's'`
      yield* Cluster.until(token, ([row]) => row?.token === "parked", 60_000)
      yield* owner.signal("SIGKILL")
      const settledEntries = sql<{ readonly status: string; readonly after: number }>`
        SELECT e.body::json->>'status' AS status, (e.at - r.at)::int AS after FROM assent_entry e JOIN assent_entry r
        ON r.root = e.root AND r.request = e.request AND r.tag = 'InteractionRaised'
        WHERE e.root = 's' AND e.tag = 'InteractionSettled'`
      const [end] = yield* Cluster.until(settledEntries, (found) => found.length > 0, 60_000)
      assert.strictEqual(end?.status, "timed_out")
      assert.isAtLeast(end?.after ?? 0, limit - 1_000)
      // A node that died is missed after some seconds, and a machine may be loaded.
      assert.isAtMost(end?.after ?? 0, 3 * limit)
      const other = nodes.find((node) => node !== owner) ?? a
      yield* Cluster.until(
        other.call("/v1/sessions/s"),
        ({ body }) => body?.status === "idle" || body?.agents?.[0]?.isIdle
      )
      assert.deepStrictEqual(count(yield* runs("s")), { "nap begins": 1, nap: 1 })
      yield* gapless
    })
  )

  live("keeps a password that was answered through another node in no table", () =>
    Effect.gen(function* () {
      const password = "Correct-Horse-7714"
      const cluster = yield* three({ secret: true })
      const { a, nodes, sql } = cluster
      yield* Cluster.begin(a, "s")
      const request = yield* Cluster.asked(a, "s")
      const owner = yield* Cluster.ownerOf(nodes, "s")
      const other = nodes.find((node) => node !== owner) ?? a
      const answer = yield* Cluster.asking(
        other.call(`/v1/requests/${request}/answer`, { answer: password, id: "one" })
      )
      assert.deepStrictEqual([answer.status, answer.body.status], [200, "answered"], JSON.stringify(answer))
      yield* idle(other, "s")
      assert.deepStrictEqual(count(yield* cluster.runs("s")), { [`login with ${password.length}`]: 1 })
      const tables = yield* sql<{ readonly name: string }>`
        SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()`
      assert.isAtLeast(tables.length, 9)
      for (const { name } of tables) {
        const rows = yield* sql<{ readonly row: string }>`SELECT t::text AS row FROM ${sql(name)} t`
        assert.notInclude(rows.map(({ row }) => row).join("\n"), password, name)
      }
      // The engine stores who is there and who has which shard, and no message.
      assert.deepStrictEqual(
        tables
          .map(({ name }) => name)
          .filter((name) => name.startsWith("assent_cluster"))
          .sort(),
        ["assent_cluster_locks", "assent_cluster_runners"]
      )
    })
  )
})
