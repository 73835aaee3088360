/** Real locks of tables while people answer: what was accepted takes effect once, and nothing is settled against it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as PostgresConnection from "../../src/store/PostgresConnection.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as AcceptedAnswers from "../kit/AcceptedAnswers.js"
import * as Cluster from "../kit/Cluster.js"
import * as Family from "../kit/Family.js"
import * as Mortal from "../kit/Mortal.js"
import * as Postgres from "../kit/Postgres.js"
import * as Runs from "../kit/Runs.js"
import { slowSuite } from "../suite/slowSuite.js"

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 180_000)

/** Locks a table from now on, as a migration or a dump does. Yields what frees it. */
const locked = (parameters: Readonly<Record<string, string>>, table: string) =>
  Effect.gen(function* () {
    const sql = yield* PostgresConnection.open({
      url: Postgres.url(parameters),
      maxConnections: 1,
      silentAfter: 120_000
    })
    const there = yield* Effect.makeLatch()
    const free = yield* Effect.makeLatch()
    const holding = yield* Effect.forkScoped(
      sql.withTransaction(
        Effect.zipRight(sql`LOCK TABLE ${sql(table)} IN EXCLUSIVE MODE`, Effect.zipRight(there.open, free.await))
      )
    )
    yield* there.await
    return Effect.zipRight(free.open, Fiber.join(holding))
  })

describe.runIf(Postgres.isThere)("a table that is locked", { concurrent: true }, () => {
  // Each attempt of this store is given up by its client after a second and a half, and goes on at the server.
  for (const [table, holding] of [
    ["assent_entry", "beat"],
    ["assent_session", "beat"],
    ["assent_lock", "beat"],
    ["assent_entry", "fence"],
    ["assent_session", "fence"],
    ["assent_audit", "fence"],
    ["assent_lock", "fence"]
  ] as const) {
    live(`(${table}, ${holding}) makes an answer late, and a line that was given up writes nothing twice`, () =>
      Effect.gen(function* () {
        const scope = yield* Effect.scope
        const parameters = yield* Postgres.schema
        const url = Postgres.url(parameters)
        const store = yield* PostgresStore.make({
          url,
          process: { pid: 1, host: "here", isAlive: () => true, holding },
          silentAfter: 1_500
        })
        const persistence = yield* Persistence.begin(store)
        let free: Effect.Effect<unknown, unknown> = Effect.void
        const answer = TestInteractor.wait(
          Effect.gen(function* () {
            free = yield* Effect.orDie(Scope.extend(locked(parameters, table), scope))
            return "y"
          })
        )
        const script = { main: [Family.calls({ id: "a", name: "work", params: { name: "a" } }), { text: "done" }] }
        const { agent, events, worked } = yield* Family.start({ script, person: [answer], agent: { persistence } })
        const running = yield* Effect.fork(agent.run("go"))
        yield* Effect.sleep("5 seconds")
        assert.deepStrictEqual(worked, [])
        yield* free
        assert.strictEqual(Family.textOf(yield* Fiber.join(running)), "done")
        assert.lengthOf(worked, 1)
        const { entries } = yield* store.load(persistence.rootSessionId)
        const given = Family.ofTag(yield* events, "InteractionAnswered").map(
          ({ by, requestId }): AcceptedAnswers.Given => ({ requestId, by, heard: "accepted" })
        )
        assert.deepStrictEqual(AcceptedAnswers.wrongIn({ entries, given, effects: () => worked.length }), [])
      })
    )
  }

  for (const table of ["assent_entry", "assent_session", "assent_lock", "assent_audit", "assent_answer"]) {
    live(`(${table}) for seventeen seconds makes an answer late in a cluster`, () =>
      Effect.gen(function* () {
        const parameters = yield* Postgres.schema
        const cluster = yield* Cluster.make(Postgres.url(parameters))
        const node = yield* cluster.start("a", { nap: 10, parkAfter: 60_000, evictAfter: 60_000 })
        yield* cluster.settled(1)
        yield* Cluster.begin(node, "s")
        const request = yield* Cluster.asked(node, "s")
        const free = yield* locked(parameters, table)
        const answer = node.call(`/v1/requests/${request}/answer`, { answer: "y", id: "one" })
        const first = yield* Effect.fork(answer)
        yield* Effect.sleep("17 seconds")
        yield* free
        const { status } = yield* Fiber.join(first)
        assert.include([200, 503], status)
        assert.strictEqual((yield* Cluster.asking(answer)).status, 200)
        const ran = yield* Cluster.until(cluster.runs("s"), (runs) => runs.some(({ tool }) => tool === "deploy"))
        assert.lengthOf(
          ran.filter(({ tool }) => tool === "deploy"),
          1
        )
        yield* Cluster.until(node.call("/v1/sessions/s"), ({ body }) => body?.agents?.[0]?.isIdle === true)
        yield* cluster.gapless
        yield* cluster.audited
      })
    )
  }

  slowSuite("a PostgreSQL database", {
    world: Effect.flatMap(Effect.orDie(Postgres.schema), (parameters) =>
      Mortal.worldOf((process) => PostgresStore.make({ url: Postgres.url(parameters), process }))
    ),
    every: Runs.isWhole ? 4 : 9,
    runs: Runs.of(32)
  })
})
