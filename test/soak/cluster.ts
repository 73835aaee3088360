/**
 * Clusters of real processes under what happens to them: `npm run soak:cluster`, or `npm run soak:cluster -- NAME COUNT` for one
 * of the stories below, so many times. Each has a database of its own, and prints its figures.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Cluster from "../kit/Cluster.js"
import * as PostgresServer from "../kit/PostgresServer.js"

const say = (text: string) => process.stdout.write(`${text}\n`)

const check = (holds: boolean, sentence: string): Effect.Effect<void, Cluster.Failed> =>
  holds ? Effect.void : new Cluster.Failed({ message: sentence })

type Story = (cluster: Cluster.Cluster, count: number) => Effect.Effect<void, unknown, Scope.Scope>

const together = { concurrency: "unbounded" } as const

// -----------------------------------------------------------------------------------------------------------------
// parts of stories
// -----------------------------------------------------------------------------------------------------------------

const start = (cluster: Cluster.Cluster, names: ReadonlyArray<string>, options: object) =>
  Effect.gen(function* () {
    const nodes = yield* Effect.forEach(names, (name) => cluster.start(name, options), together)
    yield* cluster.settled(names.length)
    return nodes
  })

const nth = <A>(all: ReadonlyArray<A>, index: number) =>
  Effect.fromNullable(all[index % Math.max(1, all.length)]).pipe(
    Effect.mapError(() => new Cluster.Failed({ message: "There is no node." }))
  )

const any = <A>(all: ReadonlyArray<A>) =>
  Effect.flatMap(Random.nextIntBetween(0, all.length), (index) => nth(all, index))

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const began = yield* Clock.currentTimeMillis
    const value = yield* effect
    return { value, took: (yield* Clock.currentTimeMillis) - began }
  })

/** Such as `median 3 ms, p99 7 ms, longest 9 ms`. */
const figures = (times: ReadonlyArray<number>) => {
  const sorted = times.toSorted((x, y) => x - y)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  return `median ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${sorted.at(-1)} ms`
}

/** Waits until another process has the session's question open, without a request. */
const openElsewhere = ({ sql }: Cluster.Cluster, id: string, owner: Cluster.Node) =>
  Cluster.until(
    sql<{ readonly pid: string; readonly summary: string; readonly token: string }>`
      SELECT l.pid, l.token, s.summary FROM assent_lock l JOIN assent_session s ON s.root = l.root WHERE l.root = ${id}`,
    ([row]) =>
      row !== undefined &&
      !row.summary.includes('"open":[]') &&
      (row.token === "parked" || Number(row.pid) !== owner.pid) &&
      row.token !== "left",
    120_000
  )

/** Answers through this node until it says that it took the answer. */
const answer = (node: Cluster.Node, request: string, text = "y") =>
  Cluster.until(
    node.call(`/v1/requests/${request}/answer`, { answer: text, id: "one" }),
    ({ status }) => status === 200,
    90_000
  )

/** Waits for the effect of the session, and checks that no tool ran twice. */
const effect = (cluster: Cluster.Cluster, id: string) =>
  Effect.gen(function* () {
    yield* Cluster.until(cluster.runs(id), (runs) => runs.some(({ tool }) => tool === "deploy"), 90_000)
    const runs = yield* cluster.runs(id)
    for (const tool of ["nap begins", "deploy"]) {
      const times = runs.filter((run) => run.tool === tool).length
      yield* check(times <= 1, `${tool} ran ${times} times in ${id}.`)
    }
  })

const answered = (cluster: Cluster.Cluster, node: Cluster.Node, id: string) =>
  Effect.gen(function* () {
    yield* answer(node, yield* Cluster.asked(node, id, 90_000))
    yield* effect(cluster, id)
  })

const valueOf = (node: Cluster.Node, name: string) =>
  Effect.map(Cluster.asking(node.call("/metrics")), ({ body }) =>
    Number(new RegExp(`^${name} (.*)$`, "m").exec(String(body))?.[1])
  )

const ids = (letter: string, count: number) => Array.from({ length: count }, (_, index) => `${letter}${index}`)

// -----------------------------------------------------------------------------------------------------------------
// stories
// -----------------------------------------------------------------------------------------------------------------

/** Three nodes at once on an empty database. */
const begins: Story = (cluster) =>
  Effect.gen(function* () {
    const { took, value } = yield* timed(
      Effect.forEach(["a", "b", "c"], (name) => cluster.start(name, { nap: 0 }), together)
    )
    for (const node of value) yield* Cluster.asking(node.call("/readyz"))
    say(`three nodes listen after ${took} ms`)
  })

/** A random owner is killed at a random moment of a turn. Nobody asks for its session. */
const kills: Story = (cluster, count) =>
  Effect.gen(function* () {
    const options = { nap: 3_000, parkAfter: 60_000 }
    let nodes = yield* start(cluster, ["a", "b", "c"], options)
    const times: Array<number> = []
    for (let round = 0; round < count; round++) {
      const id = `k${round}`
      yield* Cluster.begin(yield* nth(nodes, round), id)
      yield* Effect.sleep(yield* Random.nextIntBetween(0, 4_000))
      const owner = yield* Cluster.ownerOf(nodes, id)
      yield* owner.signal("SIGKILL")
      const { took } = yield* timed(openElsewhere(cluster, id, owner))
      nodes = [...nodes.filter((node) => node !== owner), yield* cluster.start(`r${round}`, options)]
      yield* answered(cluster, yield* nth(nodes, round), id)
      yield* cluster.gapless
      yield* cluster.audited
      times.push(took)
      say(`${round + 1} of ${count}: open again after ${took} ms`)
    }
    say(`open again: ${figures(times)}`)
  })

/** Two owners are killed, one after the other, and nobody is started again. All turns go on. */
const twice: Story = (cluster, count) =>
  Effect.gen(function* () {
    const nodes = yield* start(cluster, ["a", "b", "c"], { nap: 3_000, parkAfter: 60_000 })
    const all = ids("t", count)
    yield* Effect.forEach(all, (id, index) => Effect.flatMap(nth(nodes, index), (node) => Cluster.begin(node, id)), {
      concurrency: 8
    })
    let left = nodes
    for (const id of all.slice(0, 2)) {
      const owner = yield* Effect.flatMap(any(left), (fallback) =>
        Effect.orElseSucceed(Cluster.ownerOf(left, id), () => fallback)
      )
      const theirs = yield* cluster.sql<{
        readonly root: string
      }>`SELECT root FROM assent_lock WHERE pid = ${owner.pid}`
      yield* owner.signal("SIGKILL")
      left = left.filter((node) => node !== owner)
      const { took } = yield* timed(
        Effect.forEach(theirs, ({ root }) => openElsewhere(cluster, root, owner), { concurrency: 2, discard: true })
      )
      say(`${theirs.length} of ${count} sessions were there; all open again after ${took} ms`)
    }
    yield* Effect.forEach(all, (id) => Effect.flatMap(any(left), (node) => answered(cluster, node, id)), {
      concurrency: 4
    })
    yield* cluster.gapless
    say(`all ${count} turns went on over two deaths`)
  })

/** The owner stands still for a minute in the middle of a tool, and comes back. */
const standstill: Story = (cluster, count) =>
  Effect.gen(function* () {
    const nodes = yield* start(cluster, ["a", "b", "c"], { nap: 3_000, parkAfter: 60_000 })
    for (const id of ids("f", count)) {
      yield* Cluster.begin(yield* any(nodes), id)
      yield* Cluster.until(cluster.runs(id), (runs) => runs.length === 1)
      const owner = yield* Cluster.ownerOf(nodes, id)
      yield* owner.signal("SIGSTOP")
      const others = nodes.filter((node) => node !== owner)
      const { took } = yield* timed(openElsewhere(cluster, id, owner))
      yield* answered(cluster, yield* any(others), id)
      yield* Effect.sleep(Math.max(0, 60_000 - took))
      const entries = cluster.sql<{ readonly count: number }>`
        SELECT count(*)::int AS count FROM assent_entry WHERE root = ${id} AND at < ${Date.now() + 3_600_000}`
      const runs = yield* cluster.runs(id)
      yield* owner.signal("SIGCONT")
      const back = yield* timed(
        Cluster.until(owner.call(`/v1/sessions/${id}`), ({ body, status }) => status === 200 && body.open.length === 0)
      )
      yield* Effect.sleep("5 seconds")
      const after = yield* cluster.runs(id)
      yield* check(
        after.length <= runs.length + 1,
        `The owner began a tool after it came back: ${JSON.stringify(after)}`
      )
      yield* cluster.settled(3)
      yield* cluster.gapless
      const [{ count } = { count: 0 }] = yield* entries
      say(`taken over after ${took} ms; the owner answers ${back.took} ms after it came back; ${count} entries`)
    }
  })

/** All connections are cut every five seconds, under load. */
const cuts: Story = (cluster, seconds) =>
  Effect.gen(function* () {
    const nodes = yield* start(cluster, ["a", "b", "c"], { nap: 1_000, parkAfter: 60_000 })
    const cutting = yield* Effect.fork(
      Effect.forever(
        Effect.zipRight(
          Effect.sleep("5 seconds"),
          cluster.sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid() AND application_name LIKE 'test_%'`.pipe(Effect.ignore)
        )
      )
    )
    // The story's own connection is cut, too.
    const patient = <A, E>(look: Effect.Effect<A, E>) =>
      Effect.retry(look, { times: 20, schedule: Schedule.spaced(100) })
    const one = (index: number) =>
      Effect.gen(function* () {
        const id = `c${index}`
        yield* patient(Effect.flatMap(nth(nodes, index), (node) => Cluster.begin(node, id)))
        yield* patient(Effect.flatMap(nth(nodes, index + 1), (node) => answered(cluster, node, id)))
      })
    const began = yield* Clock.currentTimeMillis
    let done = 0
    while ((yield* Clock.currentTimeMillis) - began < seconds * 1_000) {
      const base = done
      yield* Effect.forEach([0, 1, 2], (offset) => one(base + offset), together)
      done += 3
    }
    yield* Fiber.interrupt(cutting)
    yield* patient(cluster.gapless)
    for (const node of nodes) yield* Cluster.asking(node.call("/readyz"))
    say(`${done} sessions to their effect while connections were cut for ${seconds} s`)
  })

/** So many sessions wait, and cost nothing. Then some are answered, forty a second. */
const parks: Story = (cluster, count) =>
  Effect.gen(function* () {
    const nodes = yield* start(cluster, ["a", "b", "c"], { nap: 0, parkAfter: 1_000, evictAfter: 1_000 })
    const heaps = Effect.forEach(nodes, (node) =>
      Effect.gen(function* () {
        yield* node.signal("SIGUSR2")
        yield* Effect.sleep("1 second")
        return yield* valueOf(node, "nodejs_heap_size_used_bytes")
      })
    )
    yield* Cluster.begin(yield* any(nodes), "warm")
    const before = yield* heaps
    const begun = yield* timed(
      Effect.forEach(ids("p", count), (id) => Effect.flatMap(any(nodes), (node) => Cluster.begin(node, id)), {
        concurrency: 24,
        discard: true
      })
    )
    const burnt = Effect.map(
      Effect.forEach(nodes, (node) => valueOf(node, "process_cpu_seconds_total")),
      (all) => all.reduce((sum, one) => sum + one, 0)
    )
    say(`${count} sessions begun in ${Math.round(begun.took / 1_000)} s`)
    const parked = cluster.sql<{ readonly count: number }>`
      SELECT count(*)::int AS count FROM assent_lock WHERE token = 'parked'`
    const all = yield* timed(Cluster.until(parked, ([row]) => row?.count === count + 1, 600_000))
    say(`all parked ${Math.round(all.took / 1_000)} s after the last one was begun`)
    yield* Effect.sleep("45 seconds")
    const entities = yield* Effect.forEach(nodes, (node) => valueOf(node, "assent_cluster_entities"))
    const after = yield* heaps
    const growth = after.map((heap, index) => (heap - (before[index] ?? 0)) / 1_000_000)
    const transactions = Effect.map(
      cluster.sql<{ readonly count: string }>`SELECT xact_commit + xact_rollback AS count FROM pg_stat_database
        WHERE datname = current_database()`,
      ([row]) => Number(row?.count)
    )
    const first = yield* transactions
    yield* Effect.sleep("30 seconds")
    const rate = ((yield* transactions) - first) / 30 / nodes.length
    const size = cluster.sql<{ readonly bytes: string }>`SELECT sum(pg_total_relation_size(c.oid)) AS bytes
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = current_schema() AND c.relkind = 'r' AND c.relname LIKE 'assent_%'`
    const [{ bytes } = { bytes: "0" }] = yield* size
    say(`${Math.round(Number(bytes) / count / 1_000)} kB of the database for each session`)
    say(`entities in memory: ${entities.join(", ")}`)
    say(`heap of each node: + ${growth.map((one) => one.toFixed(1)).join(", ")} MB`)
    say(`${rate.toFixed(1)} transactions a second and node`)

    const chosen = Math.min(count, Math.max(300, count / 10))
    const rows = yield* cluster.sql<{ readonly root: string; readonly request: string }>`
      SELECT root, summary::json->'open'->0->>'requestId' AS request FROM assent_session
      WHERE root LIKE 'p%' ORDER BY md5(root) LIMIT ${chosen}`
    const times: Array<number> = []
    const later: Array<number> = []
    const cpu = yield* burnt
    const answering = yield* timed(
      Effect.forEach(
        rows,
        ({ request }, index) =>
          Effect.delay(
            Effect.gen(function* () {
              const { took, value } = yield* timed(
                Effect.flatMap(any(nodes), (node) =>
                  node.call(`/v1/requests/${request}/answer`, { answer: "y", id: "one" })
                )
              )
              if (value.status === 200) return void times.push(took)
              later.push(value.status)
              yield* Effect.flatMap(any(nodes), (node) => answer(node, request))
            }),
            index * 25
          ),
        { concurrency: "unbounded", discard: true }
      )
    )
    say(
      `${rows.length} answers in ${Math.round(answering.took / 1_000)} s: ${figures(times)}; asked again: ${later.length}`
    )
    const deploys = cluster.sql<{ readonly count: number; readonly sessions: number }>`
      SELECT count(*)::int AS count, count(DISTINCT session)::int AS sessions FROM tool_run WHERE tool = 'deploy'`
    const each = ((yield* burnt) - cpu) / rows.length
    say(`${Math.round(each * 1_000)} ms of processor time of the nodes for each answer`)
    const [found] = yield* Cluster.until(deploys, ([row]) => row?.sessions === rows.length, 60_000)
    yield* check(found?.count === rows.length, `${rows.length} answers had ${found?.count} effects.`)
    say(`exactly ${found?.count} effects`)
    const unhealthy = nodes.map((node) => node.logged().split("Shard lock storage is unhealthy").length - 1)
    say(`the engine called its locks unhealthy: ${unhealthy.join(", ")} times`)
    yield* cluster.gapless
  })

/** So many sessions wait already when the nodes start. Only their lists are there, which is all that nodes ever read of them. */
const crowd: Story = (cluster, count) =>
  Effect.gen(function* () {
    const options = { nap: 0, parkAfter: 1_000, evictAfter: 1_000 }
    const first = yield* cluster.start("a", options)
    yield* Cluster.begin(first, "seed")
    const token = cluster.sql<{ readonly token: string }>`SELECT token FROM assent_lock WHERE root = 'seed'`
    yield* Cluster.until(token, ([row]) => row?.token === "parked", 60_000)
    const made = yield* timed(
      Effect.gen(function* () {
        yield* cluster.sql`INSERT INTO assent_session (root, summary)
          SELECT 'x' || g, replace(summary, '"seed"', '"x' || g || '"')
          FROM assent_session, generate_series(1, ${count}::int) g WHERE root = 'seed'`
        yield* cluster.sql`INSERT INTO assent_lock (root, token, pid, host, heartbeat)
          SELECT 'x' || g, 'parked', 0, '', 0 FROM generate_series(1, ${count}::int) g`
        yield* cluster.sql`ANALYZE assent_session`
        yield* cluster.sql`ANALYZE assent_lock`
      })
    )
    const size = cluster.sql<{ readonly bytes: string }>`SELECT sum(pg_total_relation_size(c.oid)) AS bytes
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = current_schema() AND c.relname IN ('assent_session', 'assent_lock')`
    const [{ bytes } = { bytes: "0" }] = yield* size
    say(`${count} sessions in ${Math.round(made.took / 1_000)} s, ${Math.round(Number(bytes) / count)} bytes each`)
    const joined = yield* timed(cluster.start("b", options))
    yield* cluster.settled(2)
    say(`a second node listens after ${joined.took} ms`)
    for (const path of ["/v1/sessions?limit=50", "/metrics", "/v1/sessions/x7", "/v1/requests?session=seed"]) {
      const asked = yield* timed(joined.value.call(path))
      say(`${path}: ${asked.value.status} after ${asked.took} ms`)
    }
    const request = yield* Cluster.asked(joined.value, "seed")
    const given = yield* timed(answer(joined.value, request))
    say(`an answer: ${given.took} ms`)
    yield* effect(cluster, "seed")
  })

/** The owner of a parked question with a limit of 20 seconds is killed after ten. */
const deadlines: Story = (cluster, count) =>
  Effect.gen(function* () {
    const options = { nap: 0, limit: 20_000, parkAfter: 2_000 }
    let nodes = yield* start(cluster, ["a", "b", "c"], options)
    for (const [round, id] of ids("d", count).entries()) {
      yield* Cluster.begin(yield* any(nodes), id)
      const node = yield* any(nodes)
      yield* Cluster.asked(node, id, 60_000)
      const raised = yield* Clock.currentTimeMillis
      const owner = yield* Effect.flatMap(any(nodes), (fallback) =>
        Effect.orElseSucceed(Cluster.ownerOf(nodes, id), () => fallback)
      )
      yield* Effect.sleep(10_000 - ((yield* Clock.currentTimeMillis) - raised))
      yield* owner.signal("SIGKILL")
      nodes = [...nodes.filter((one) => one !== owner), yield* cluster.start(`e${round}`, options)]
      const ends = cluster.sql<{ readonly status: string; readonly after: number }>`
        SELECT e.body::json->>'status' AS status, (e.at - r.at)::int AS after FROM assent_entry e JOIN assent_entry r
        ON r.root = e.root AND r.request = e.request AND r.tag = 'InteractionRaised'
        WHERE e.root = ${id} AND e.tag = 'InteractionSettled'`
      const [end] = yield* Cluster.until(ends, (found) => found.length > 0, 60_000)
      yield* check(end?.status === "timed_out", `It ended as ${end?.status}.`)
      yield* check(Math.abs((end?.after ?? 0) - 20_000) <= 3_000, `It ended after ${end?.after} ms.`)
      say(`timed out after ${end?.after} ms`)
    }
  })

/** A client reads events while the owner dies twice, and comes back with its last id. */
const reader: Story = (cluster, count) =>
  Effect.gen(function* () {
    let nodes = yield* start(cluster, ["a", "b", "c"], { nap: 3_000, parkAfter: 60_000 })
    for (const [round, id] of ids("e", count).entries()) {
      yield* Cluster.begin(yield* any(nodes), id)
      const path = `/v1/sessions/${id}/events`
      const seen: Array<Cluster.Piece> = []
      const last = () => seen.findLast((piece) => piece.id !== undefined)?.id
      const isOver = (pieces: ReadonlyArray<Cluster.Piece>) => pieces.some(({ data }) => data._tag === "TurnEnded")
      const reading = yield* Effect.fork(
        Effect.repeat(
          Effect.gen(function* () {
            seen.push(...(yield* (yield* any(nodes)).events(path, last(), isOver)))
          }),
          { until: () => isOver(seen), schedule: Schedule.spaced("100 millis") }
        )
      )
      for (const moment of ["in the tool", "at the question"]) {
        if (moment === "in the tool") yield* Cluster.until(cluster.runs(id), (runs) => runs.length === 1)
        else yield* Cluster.asked(yield* any(nodes), id, 90_000)
        const owner = yield* Cluster.ownerOf(nodes, id)
        yield* owner.signal("SIGKILL")
        nodes = [
          ...nodes.filter((node) => node !== owner),
          yield* cluster.start(`s${round}${moment[0]}`, { nap: 3_000 })
        ]
        yield* openElsewhere(cluster, id, owner)
      }
      yield* answered(cluster, yield* any(nodes), id)
      yield* Effect.timeout(Fiber.join(reading), "90 seconds")
      const got = seen.flatMap((piece) => (piece.id === undefined ? [] : [Number(piece.id)]))
      const whole = (yield* (yield* any(nodes)).events(path, undefined, isOver)).flatMap((piece) =>
        piece.id === undefined ? [] : [Number(piece.id)]
      )
      yield* check(
        got.every((one, index) => index === 0 || one > (got[index - 1] ?? 0)),
        `The ids do not rise: ${got.join(" ")}`
      )
      yield* check(JSON.stringify(got) === JSON.stringify(whole), `${got.join(" ")} is not ${whole.join(" ")}`)
      say(`${got.length} events with ids over two deaths, none missing, none twice`)
    }
  })

/** A node joins and the oldest one leaves, again and again, while turns run. */
const rolling: Story = (cluster, count) =>
  Effect.gen(function* () {
    const options = { nap: 2_000, parkAfter: 60_000 }
    let nodes = yield* start(cluster, ["a", "b", "c"], options)
    const all = ids("j", 50)
    const running = yield* Effect.fork(
      Effect.forEach(
        all,
        (id) =>
          Effect.gen(function* () {
            yield* Effect.retry(
              Effect.flatMap(
                Effect.suspend(() => any(nodes)),
                (node) => Cluster.begin(node, id)
              ),
              {
                times: 50
              }
            )
            yield* Effect.retry(
              Effect.flatMap(
                Effect.suspend(() => any(nodes)),
                (node) => answered(cluster, node, id)
              ),
              {
                times: 50
              }
            )
          }),
        { concurrency: 10, discard: true }
      )
    )
    const shares: Array<number> = []
    for (let round = 0; round < count; round++) {
      const [oldest, ...rest] = nodes
      const joined = yield* cluster.start(`j${round}`, options)
      nodes = [...rest, joined]
      yield* oldest === undefined ? Effect.void : oldest.signal("SIGTERM")
      const { took } = yield* timed(oldest?.exit ?? Effect.succeed(0))
      yield* check(took <= 12_000, `The node took ${took} ms to leave.`)
      yield* cluster.settled(3)
      const held = cluster.sql<{ readonly count: number }>`
        SELECT count(*)::int AS count FROM assent_cluster_locks GROUP BY address`
      const isShared = (found: ReadonlyArray<{ readonly count: number }>) =>
        found.reduce((sum, { count }) => sum + count, 0) === 300
      const counts = (yield* Cluster.until(held, isShared, 60_000)).map(({ count }) => count)
      shares.push(Math.max(...counts) / Math.min(...counts))
      say(`${round + 1} of ${count}: left after ${took} ms; shares ${counts.join(", ")}`)
    }
    yield* Fiber.join(running)
    for (const id of all) {
      const runs = yield* cluster.runs(id)
      yield* check(runs.filter(({ tool }) => tool === "deploy").length === 1, `${id}: ${JSON.stringify(runs)}`)
    }
    yield* cluster.gapless
    say(
      `50 turns over ${count} rounds, each with one effect; shares differ by ${Math.max(...shares).toFixed(2)} at most`
    )
  })

/** A password that is answered through another node is in no table and no log. */
const secrets: Story = (cluster, count) =>
  Effect.gen(function* () {
    const nodes = yield* start(cluster, ["a", "b", "c"], { secret: true, parkAfter: 500, evictAfter: 500 })
    const word = (index: number) => `Correct-Horse-${7_714 + index}`
    for (const [index, id] of ids("w", count).entries()) {
      yield* Cluster.begin(yield* any(nodes), id)
      const node = yield* any(nodes)
      yield* answer(node, yield* Cluster.asked(node, id), word(index))
      yield* Cluster.until(cluster.runs(id), (runs) => runs.length > 0)
    }
    const tables = yield* cluster.sql<{ readonly name: string }>`
      SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()`
    for (const { name } of tables) {
      const rows = yield* cluster.sql<{ readonly row: string }>`SELECT t::text AS row FROM ${cluster.sql(name)} t`
      yield* check(!rows.some(({ row }) => row.includes("Correct-Horse-")), `The password is in ${name}.`)
    }
    for (const node of nodes) {
      yield* check(!node.logged().includes("Correct-Horse-"), `The password is in the log of ${node.name}.`)
    }
    say(`${count} passwords, in none of ${tables.length} tables and 3 logs`)
  })

/** Two people answer at once through two nodes, at the moment in which the session leaves memory. */
const races: Story = (cluster, count) =>
  Effect.gen(function* () {
    const nodes = yield* start(cluster, ["a", "b", "c"], { nap: 0, parkAfter: 200, evictAfter: 200 })
    const times: Array<number> = []
    const one = (id: string) =>
      Effect.gen(function* () {
        yield* Cluster.begin(yield* any(nodes), id)
        const request = yield* Cluster.asked(yield* any(nodes), id, 90_000)
        yield* Effect.sleep(yield* Random.nextIntBetween(0, 600))
        const by = (person: string) =>
          Effect.flatMap(any(nodes), (node) =>
            Cluster.asking(node.call(`/v1/requests/${request}/answer`, { answer: "y", id: person }, person))
          )
        const { took, value } = yield* timed(Effect.all([by("ann"), by("ben")], together))
        times.push(took)
        const winners = ["ann", "ben"].filter((_, index) => value[index]?.status === 200)
        const [row] = yield* cluster.sql<{ readonly author: string }>`SELECT body::json->>'by' AS author
          FROM assent_entry WHERE root = ${id} AND tag = 'InteractionSettled'`
        yield* check(
          winners.length === 1 && winners[0] === row?.author,
          `${id}: acknowledged ${winners.join(", ")}, written ${row?.author}: ${JSON.stringify(value)}`
        )
        yield* effect(cluster, id)
      })
    yield* Effect.forEach(ids("r", count), one, { concurrency: 6, discard: true })
    yield* cluster.gapless
    say(`${count} races: no acknowledged answer unseen; ${figures(times)}`)
  })

// -----------------------------------------------------------------------------------------------------------------
// program
// -----------------------------------------------------------------------------------------------------------------

/** How often each is played, and what its number counts. */
const stories: { readonly [name: string]: readonly [Story, number, { readonly each?: boolean }?] } = {
  begins: [begins, 20, { each: true }],
  kills: [kills, 60],
  twice: [twice, 40],
  standstill: [standstill, 1],
  cuts: [cuts, 60],
  parks: [parks, 10_000],
  crowd: [crowd, 1_000_000],
  deadlines: [deadlines, 3],
  reader: [reader, 3],
  rolling: [rolling, 20],
  secrets: [secrets, 20],
  races: [races, 1_000]
}

const [wanted, times] = process.argv.slice(2)
const chosen = Object.entries(stories).filter(([name]) => wanted === undefined || name === wanted)
if (chosen.length === 0) {
  say(`There is no story ${wanted}. There are ${Object.keys(stories).join(", ")}.`)
  process.exit(2)
}

const { server, stop } = await PostgresServer.start()
try {
  for (const [name, [story, usual, { each = false } = {}]] of chosen) {
    const count = times === undefined ? usual : Number(times)
    say(`\n${name}, ${count}`)
    const once = Effect.scoped(
      Effect.gen(function* () {
        const parameters = yield* PostgresServer.schema(server)
        const cluster = yield* Cluster.make(PostgresServer.url(server, parameters))
        yield* story(cluster, count)
      })
    )
    await Effect.runPromise(each ? Effect.repeatN(once, count - 1) : once)
  }
} finally {
  await stop()
}
