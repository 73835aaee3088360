/** The audit of a cluster: a decision is in it exactly if the journal has it, whatever becomes of the node that decided. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as SqlClient from "@effect/sql/SqlClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as AuditArchive from "../../src/audit/AuditArchive.js"
import type { Decided } from "../../src/audit/AuditRecord.js"
import * as AuditReport from "../../src/audit/AuditReport.js"
import { SessionId } from "../../src/core/Id.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as SessionFork from "../../src/journal/SessionFork.js"
import type * as SessionStore from "../../src/journal/SessionStore.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as PostgresConnection from "../../src/store/PostgresConnection.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import * as AuditedJournal from "../kit/AuditedJournal.js"
import { noFiles } from "../kit/AuditedJournal.js"
import * as Cluster from "../kit/Cluster.js"
import * as Postgres from "../kit/Postgres.js"
import * as Program from "../kit/Program.js"

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>, timeout = 120_000) =>
  it.scopedLive(name, effect, timeout)

const Read = Tool.make("read", { success: Schema.String })
const Deploy = Tool.make("deploy", { parameters: { to: Schema.String }, success: Schema.String })
const Ask = Tool.make("ask", { success: Schema.String, dependencies: [Interactor.Interactor] })
const toolkit = Toolkit.make(Read, Deploy, Ask)

const handlers = toolkit.toLayer({
  read: () => Effect.succeed("read"),
  deploy: () => Effect.succeed("deployed"),
  ask: () =>
    Interactor.ask(new Interaction.Confirm({ prompt: "Sure?", default: false })).pipe(
      Effect.map(String),
      Effect.orElseSucceed(() => "nobody")
    )
})

/** A refusal ends the turn. */
const round = [
  { tools: [{ name: "read" }, { name: "deploy", params: { to: "here" } }] },
  { tools: [{ name: "ask" }] },
  { tools: [{ name: "deploy", params: { to: "there" } }] }
]

const runtime = AgentRuntime.layer({
  toolkit,
  policy: PermissionFile.policy({ whitelist: { tools: ["read", "ask"] } })
}).pipe(
  Layer.provide(Layer.mergeAll(handlers, ScriptedModel.layer({ agents: { main: [...round, ...round] } }), noFiles))
)

/** Allows one place, denies the other, and confirms. */
const person = TestInteractor.make({
  id: "ann",
  script: ({ interaction }) =>
    interaction._tag === "Approve" && JSON.stringify(interaction).includes("there") ? "n" : "y"
})

const nodeOver = (sql: SqlClient.SqlClient, host: string, auditKey?: Redacted.Redacted) =>
  Effect.provideService(
    PostgresStore.over({ process: { pid: 1, host, isAlive: () => true, holding: "fence" }, auditKey }),
    SqlClient.SqlClient,
    sql
  )

const empty = Effect.gen(function* () {
  const url = Postgres.url(yield* Postgres.schema)
  const sql = yield* PostgresConnection.open({ url, maxConnections: 4 })
  const store = yield* nodeOver(sql, "one")
  return { url, sql, store, source: store.audit ?? assert.fail("the store keeps no audit") }
})

/** A turn of two rounds, with a change of the mode between. */
const turn = (store: SessionStore.Service, id: string) =>
  Effect.gen(function* () {
    const { interactor } = yield* person
    const persistence = yield* Persistence.open(store, SessionId.make(id))
    const agent = yield* Agent.startWith([interactor], { persistence })
    yield* agent.run("go")
    yield* agent.permissions.setMode("plan", { by: "ann" })
    yield* agent.permissions.setMode("ask", { by: "ann" })
    yield* agent.run("go on")
  }).pipe(Effect.scoped, Effect.provide(runtime))

const problems = (source: AuditArchive.Source, id: string, key?: Redacted.Redacted) =>
  Effect.map(
    Effect.provide(Effect.either(AuditArchive.verifyStreamed(source, SessionId.make(id), key)), noFiles),
    Either.match({ onLeft: ({ problem, record }) => `${problem} ${record ?? ""}`.trim(), onRight: () => "whole" })
  )

/** What somebody with the rights of the database may do to the rows of session `s`, and what is said of it. */
const tampered: { readonly [what: string]: readonly [change: string, problem: string] } = {
  "changes a record": [
    `UPDATE assent_audit SET line = replace(line, '"granted"', '"denied"') WHERE seq = 2`,
    "changed 2"
  ],
  "changes who decided": [`UPDATE assent_audit SET line = replace(line, 'ann', 'bob') WHERE seq = 3`, "changed 3"],
  "removes a record": [`DELETE FROM assent_audit WHERE seq = 3`, "misplaced 3"],
  "removes the last record": [`DELETE FROM assent_audit WHERE seq = (SELECT max(seq) FROM assent_audit)`, "cut 13"],
  "swaps two records": [
    `UPDATE assent_audit a SET line = b.line FROM assent_audit b WHERE a.seq IN (3, 4) AND b.seq = 7 - a.seq`,
    "misplaced 3"
  ],
  "removes all records": [`DELETE FROM assent_audit`, "missing 1"],
  "removes the head": [`DELETE FROM assent_audit_head`, "headMissing"],
  "changes the head": [`UPDATE assent_audit_head SET head = replace(head, '"count":13', '"count":12')`, "headChanged"],
  "adds a record": [`INSERT INTO assent_audit SELECT root, 14, line FROM assent_audit WHERE seq = 13`, "misplaced 14"]
}

describe.runIf(Postgres.isThere)("the audit in PostgreSQL", () => {
  live("has each decision of the journal once, and none beside", () =>
    Effect.gen(function* () {
      const { sql, source, store } = yield* empty
      yield* turn(store, "s")
      const { audited, journaled } = yield* AuditedJournal.both(sql, source)
      assert.isAbove(journaled.length, 8)
      assert.deepStrictEqual(audited, journaled)
      const modes = yield* sql`SELECT 1 FROM assent_audit WHERE line LIKE '%"kind":"mode"%'`
      assert.strictEqual(modes.length, 2)
    })
  )

  live("begins the audit of a fork with where it comes from", () =>
    Effect.gen(function* () {
      const { source, store } = yield* empty
      yield* turn(store, "s")
      const forked = yield* SessionFork.fork(store, SessionId.make("s"), { at: 1, by: "ann" })
      const lines: Array<string> = []
      yield* AuditReport.show(source, forked.rootSessionId, (some) => Effect.sync(() => void lines.push(...some))).pipe(
        Effect.provide(noFiles)
      )
      assert.match(lines[0] ?? "", /a fork of s at the end of turn 1/)
      assert.match(lines[1] ?? "", /by ann/)
      assert.strictEqual(yield* problems(source, forked.rootSessionId), "whole")
    })
  )

  live("stays when its session is deleted", () =>
    Effect.gen(function* () {
      const { source, store } = yield* empty
      yield* turn(store, "s")
      yield* store.delete(SessionId.make("s"))
      assert.strictEqual(yield* problems(source, "s"), "whole")
    })
  )

  for (const [what, [change, problem]] of Object.entries(tampered))
    live(`says which record it was when somebody ${what}`, () =>
      Effect.gen(function* () {
        const { sql, source, store } = yield* empty
        yield* turn(store, "s")
        assert.strictEqual(yield* problems(source, "s"), "whole")
        yield* sql.unsafe(change)
        assert.strictEqual(yield* problems(source, "s"), problem)
      })
    )

  live("is sealed by a key, without which nobody forges it, and takes nothing behind a change", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* empty
      const key = Redacted.make("a key of enough characters")
      const store = yield* nodeOver(sql, "one", key)
      const source = store.audit ?? assert.fail("the store keeps no audit")
      yield* turn(store, "s")
      assert.strictEqual(yield* problems(source, "s", key), "whole")
      assert.strictEqual(yield* problems(source, "s"), "keyNeeded 1")
      assert.strictEqual(yield* problems(source, "s", Redacted.make("another one of as many")), "keyWrong 1")
      // Another process, with another key.
      const other = yield* nodeOver(yield* PostgresConnection.open({ url, maxConnections: 2 }), "other")
      const lease = yield* other.lock(SessionId.make("s"))
      const entry = { sessionId: SessionId.make("s"), entry: { _tag: "SessionResumed" as const } }
      const decision = { decided: { ...(yield* lastOf(source)), reason: "forged" } }
      const error = yield* Effect.flip(lease.append([{ ...entry, decisions: [decision] }]))
      assert.match(error.message, /nothing can be added to an audit that was changed/)
      // The entry is not there without its decision.
      assert.strictEqual((yield* sql`SELECT 1 FROM assent_entry WHERE tag = 'SessionResumed'`).length, 0)
      yield* lease.append([entry])
    })
  )

  live(
    "has each decision once, whenever the node that decided is killed, and the program verifies it",
    () =>
      Effect.gen(function* () {
        const url = Postgres.url(yield* Postgres.schema)
        const cluster = yield* Cluster.make(url)
        const options = { nap: 300 }
        const start = (name: string) => cluster.start(name, options)
        const [a, b] = yield* Effect.all([start("a"), start("b")], { concurrency: "unbounded" })
        /** Answers through this node, whatever becomes of the others, until the call has run. */
        const answered = (node: Cluster.Node, id: string) =>
          Effect.gen(function* () {
            const request = yield* Cluster.asked(node, id)
            const answer = node.call(`/v1/requests/${request}/answer`, { answer: "y", id: "one" })
            yield* Cluster.until(answer, ({ status }) => status === 200)
            yield* Cluster.until(cluster.runs(id), (runs) => runs.some(({ tool }) => tool === "deploy"))
          })
        // Before its question is open, or while it is: each session is at another moment.
        const early = ["k0", "k1", "k2", "k3"]
        for (const id of early) {
          yield* Cluster.begin(a, id)
          yield* Effect.sleep(yield* Random.nextIntBetween(0, 500))
        }
        const first = yield* Cluster.ownerOf([a, b], "k3")
        yield* first.signal("SIGKILL")
        const other = first === a ? b : a
        const c = yield* start("c")
        yield* Effect.forEach(early, (id) => answered(other, id), { concurrency: "unbounded" })
        // While they are answered.
        const late = ["k4", "k5", "k6", "k7"]
        for (const id of late) yield* Cluster.begin(c, id)
        for (const id of late) yield* Cluster.asked(c, id)
        const second = yield* Cluster.ownerOf([other, c], "k7")
        const last = second === c ? other : c
        yield* Effect.forkScoped(
          Effect.zipRight(Effect.sleep(yield* Random.nextIntBetween(0, 60)), second.signal("SIGKILL"))
        )
        yield* Effect.forEach(late, (id) => answered(last, id), { concurrency: "unbounded" })
        yield* cluster.gapless
        yield* cluster.audited
        const program = yield* Program.place
        const env = { ASSENT_DATABASE_URL: Redacted.value(url) }
        const verified = yield* program.run(["audit", "verify"], { env })
        assert.deepStrictEqual(
          [verified.code, verified.stdout.match(/whole and in order/g)?.length, verified.stderr],
          [0, 8, ""]
        )
        const shown = yield* program.run(["audit", "show", "k1"], { env })
        assert.match(shown.stdout, /granted .* permission deploy .* by ann/)
        yield* cluster.sql`UPDATE assent_audit SET line = replace(line, 'ann', 'bob') WHERE root = 'k1'`
        const broken = yield* program.run(["audit", "verify"], { env })
        assert.deepStrictEqual([broken.code, broken.stdout.match(/whole and in order/g)?.length], [1, 7])
        assert.match(broken.stdout, /^k1: BROKEN\. the audit of k1 in the database: record \d was changed/m)
      }),
    240_000
  )
})

const lastOf = (source: AuditArchive.Source) =>
  Effect.gen(function* () {
    let last: Decided | undefined
    yield* AuditArchive.peekEach(source, SessionId.make("s"), (record) =>
      Effect.sync(() => {
        if (record?._tag !== "Decided") return
        const { hash: _hash, prev: _prev, seq: _seq, ...decided } = record
        last = decided
      })
    ).pipe(Effect.provide(noFiles))
    return last ?? assert.fail("there is no record")
  })
