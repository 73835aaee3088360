/** Two processes want the same at the same moment, again and again: one gets it, and nothing acknowledged is lost. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { RequestId, SessionId } from "../../src/core/Id.js"
import * as SessionLease from "../../src/journal/SessionLease.js"
import type * as SessionStore from "../../src/journal/SessionStore.js"
import * as PostgresConnection from "../../src/store/PostgresConnection.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Postgres from "../kit/Postgres.js"
import * as Wait from "../kit/Wait.js"
import { raceSuite } from "../suite/raceSuite.js"

const { attached, content, draft, opened, raised, received } = JournalSample
const rounds = Array.from({ length: 150 }, (_, round) => round)

/** Two processes of two hosts, and a look past both of them. */
const two = Effect.gen(function* () {
  const url = Postgres.url(yield* Postgres.schema)
  const open = (host: string) => PostgresStore.make({ url, process: { pid: 1, host, isAlive: () => true } })
  const sql = yield* PostgresConnection.open({ url, maxConnections: 1 })
  return { one: yield* open("here"), other: yield* open("there"), sql }
})

const race = (
  name: string,
  body: (
    given: Effect.Effect.Success<typeof two>,
    root: SessionId,
    requestId: RequestId
  ) => Effect.Effect<void, unknown, Scope.Scope>
) =>
  it.scopedLive(
    name,
    () =>
      Effect.flatMap(two, (given) =>
        Effect.forEach(
          rounds,
          (round) => {
            const root = `ses_${round}` as SessionId
            const requestId = `req_${round}` as RequestId
            const begin = Effect.flatMap(given.one.lock(root), (lease) =>
              lease.append([draft(opened(root), root), draft(raised(requestId), root)])
            )
            return Effect.zipRight(Effect.scoped(begin), Effect.scoped(body(given, root, requestId)))
          },
          { discard: true }
        )
      ),
    120_000
  )

/** Locks first and then loads, as whoever resumes does. */
const resume = (store: SessionStore.Service, root: SessionId) =>
  Effect.either(Effect.zip(store.lock(root), store.load(root)))

const tag = <A, E extends { readonly _tag: string }>(outcome: Either.Either<A, E>) =>
  Either.isRight(outcome) ? "done" : outcome.left._tag

const together = { concurrency: "unbounded" } as const

describe.runIf(Postgres.isThere)("in PostgreSQL", () => {
  raceSuite("PostgreSQL", two)
})

describe.runIf(Postgres.isThere)("in PostgreSQL, when two processes race", () => {
  race("an answer that was acknowledged is seen by whoever resumes", ({ one, other }, root, requestId) =>
    Effect.gen(function* () {
      const answering = Effect.either(other.answer(requestId, 1, "web"))
      const [answered, resumed] = yield* Effect.all([answering, resume(one, root)], together)
      if (Either.isLeft(resumed)) return assert.fail(resumed.left.message)
      const [, { answers }] = resumed.right
      assert.lengthOf(answers, tag(answered) === "done" ? 1 : 0)
      assert.include(["done", "SessionLocked"], tag(answered))
    })
  )

  race("one answer counts", ({ one, other }, root, requestId) =>
    Effect.gen(function* () {
      const outcomes = yield* Effect.all(
        [one, other, one, other].map((store, index) => Effect.either(store.answer(requestId, index % 2, `${index}`))),
        together
      )
      assert.deepStrictEqual(outcomes.map(tag).sort(), ["AnswerRefused", "AnswerRefused", "AnswerRefused", "done"])
      const winner = outcomes.findIndex(Either.isRight)
      assert.deepStrictEqual(
        (yield* one.load(root)).answers.map(({ answer, by }) => ({ answer, by })),
        [{ answer: winner % 2, by: `${winner}` }]
      )
    })
  )

  race("one has the lease", ({ one, other }, root) =>
    Effect.gen(function* () {
      const outcomes = yield* Effect.all([resume(one, root), resume(other, root)], together)
      assert.deepStrictEqual(outcomes.map(tag).sort(), ["SessionLocked", "done"])
    })
  )

  race(
    "a session is deleted, or it goes on, and nothing of a deleted one stays",
    ({ one, other, sql }, root, requestId) =>
      Effect.gen(function* () {
        const goOn = Effect.gen(function* () {
          const lease = yield* one.lock(root)
          yield* lease.append([draft(received("msg_1", "go on"), root)])
        })
        const [deleted, , goneOn] = yield* Effect.all(
          [Effect.either(other.delete(root)), Effect.either(other.answer(requestId, 1, "web")), Effect.either(goOn)],
          together
        )
        assert.strictEqual(tag(goneOn), "done")
        assert.include(["done", "SessionLocked"], tag(deleted))
        const { answers, entries } = yield* one.load(root)
        // Deleted first: then a new session of that name began.
        assert.lengthOf(entries, tag(deleted) === "done" ? 1 : 3)
        if (tag(deleted) === "done") assert.lengthOf(answers, 0)
        const [left] = yield* sql<{ readonly count: string }>`
        SELECT count(*) AS count FROM assent_entry WHERE root = ${root} AND seq > ${entries.length}`
        assert.strictEqual(Number(left?.count), 0)
      })
  )

  race(
    "a holder that was silent goes on, or has lost the session before it is acknowledged",
    ({ one, other, sql }, root) =>
      Effect.gen(function* () {
        const lease = yield* one.lock(root)
        // As if it had stood still.
        yield* sql`UPDATE assent_lock SET heartbeat = heartbeat - ${SessionLease.silentAfter} WHERE root = ${root}`
        const [written, resumed] = yield* Effect.all(
          [Effect.either(lease.append([draft(received("msg_1", "late"), root)])), resume(other, root)],
          together
        )
        const loaded = yield* one.load(root)
        assert.lengthOf(loaded.entries, tag(written) === "done" ? 3 : 2)
        // Whoever took it over has read what was acknowledged before.
        if (Either.isRight(resumed)) assert.lengthOf(resumed.right[1].entries, loaded.entries.length)
        else assert.strictEqual(tag(written), "done")
      })
  )

  race("content is there for whoever refers to it, and gone with the last", ({ one, other, sql }, root) =>
    Effect.gen(function* () {
      const picture = content(`picture ${root}`)
      const last = `${root}_2` as SessionId
      yield* Effect.scoped(
        Effect.gen(function* () {
          const lease = yield* one.lock(root)
          yield* lease.putContent(picture)
          yield* lease.append([draft(attached("msg_1", picture), root)])
        })
      )
      const beginAnother = Effect.scoped(
        Effect.gen(function* () {
          const lease = yield* other.lock(last)
          yield* lease.putContent(picture)
          yield* lease.append([draft(opened(last), last), draft(attached("msg_1", picture), last)])
        })
      )
      // As a copy of a session does: it refers to what is there, and puts nothing.
      const copied = `${root}_3` as SessionId
      const copy = Effect.scoped(
        Effect.flatMap(other.lock(copied), (lease) =>
          lease.append([draft(opened(copied), copied), draft(attached("msg_1", picture), copied)])
        )
      )
      const [, , copying] = yield* Effect.all([one.delete(root), beginAnother, Effect.either(copy)], together)
      assert.include(["done", "StoreUnwritable"], tag(copying))
      assert.deepStrictEqual(yield* one.getContent(picture.sha256), picture.bytes)
      yield* Effect.all([other.delete(last), Effect.ignore(one.delete(copied))], together)
      const rows = yield* sql`SELECT sha256 FROM assent_content UNION ALL SELECT sha256 FROM assent_reference`
      assert.deepStrictEqual(rows, [])
    })
  )
})

describe.runIf(Postgres.isThere)("in PostgreSQL, a reader of all sessions", () => {
  const seqs = (store: SessionStore.Service, after?: SessionStore.Cursor) =>
    Effect.map(store.readAll({ after }), (all) =>
      all.map(({ rootSessionId, written }) => `${rootSessionId} ${Either.getOrThrow(written).seq}`)
    )
  /** Other tests append to this database too, and a reader waits for them. */
  const sees = (store: SessionStore.Service, after: SessionStore.Cursor | undefined, expected: ReadonlyArray<string>) =>
    Effect.flatMap(
      Wait.until(seqs(store, after), ({ length }) => length >= expected.length),
      (found) => Effect.sync(() => assert.deepStrictEqual(found, expected))
    )
  const write = (store: SessionStore.Service, id: string, ...words: ReadonlyArray<string>) =>
    Effect.scoped(
      Effect.flatMap(store.lock(id as SessionId), (lease) =>
        lease.append(words.map((word) => draft(received(word, word), id as SessionId)))
      )
    )
  const rowOf = (id: string, seq: number) => {
    const body = '{"_tag":"SessionClosed"}'
    return { root: id, seq, session: id, at: 1, tag: "SessionClosed", request: null, body }
  }

  /** A transaction of its own fiber, which has done this and then stays open. */
  const beside = <E>(sql: SqlClient.SqlClient, body: Effect.Effect<unknown, E>) =>
    Effect.gen(function* () {
      const [begun, done] = [yield* Effect.makeLatch(), yield* Effect.makeLatch()]
      const fiber = yield* Effect.forkScoped(
        sql.withTransaction(body.pipe(Effect.zipRight(begun.open), Effect.zipRight(done.await)))
      )
      yield* Effect.raceFirst(begun.await, Fiber.join(fiber))
      return { end: Effect.zipRight(done.open, Fiber.join(fiber)) }
    })

  it.scopedLive("waits for an append that began first and ends last, and misses none", () =>
    Effect.gen(function* () {
      const { one, other, sql } = yield* two
      yield* write(one, "ses_a", "a")
      yield* sees(one, undefined, ["ses_a 1"])
      const before = yield* one.end
      const late = yield* beside(sql, sql`INSERT INTO assent_entry ${sql.insert(rowOf("ses_late", 1))}`)
      yield* write(one, "ses_b", "b", "c")
      yield* write(other, "ses_c", "d")
      assert.deepStrictEqual(yield* seqs(one, before), [])
      const during = yield* one.end
      yield* late.end
      const all = ["ses_late 1", "ses_b 1", "ses_b 2", "ses_c 1"]
      yield* sees(one, before, all)
      yield* sees(other, during, all)
    })
  )

  it.scopedLive("goes on beside a transaction that is taken back, and one of another database", () =>
    Effect.gen(function* () {
      const { one, other, sql } = yield* two
      const before = yield* one.end
      yield* sql
        .withTransaction(
          Effect.zipRight(sql`INSERT INTO assent_entry ${sql.insert(rowOf("ses_late", 1))}`, Effect.fail("taken back"))
        )
        .pipe(Effect.ignore)
      yield* write(one, "ses_a", "a")
      yield* sees(other, before, ["ses_a 1"])
      const elsewhere = yield* PostgresConnection.open({
        url: Redacted.make(Redacted.value(Postgres.url({})).replace(/\/\w+(?=\?|$)/, "/template1")),
        maxConnections: 1
      })
      const foreign = yield* beside(elsewhere, elsewhere`SELECT pg_current_xact_id()`)
      yield* write(one, "ses_b", "b")
      yield* sees(other, before, ["ses_a 1", "ses_b 1"])
      yield* foreign.end
    })
  )

  it.scopedLive("finds all of a database that another server made", () =>
    Effect.gen(function* () {
      const url = Postgres.url(yield* Postgres.schema)
      const open = PostgresStore.make({ url, process: { pid: 1, host: "here", isAlive: () => true } })
      const sql = yield* PostgresConnection.open({ url, maxConnections: 1 })
      yield* Effect.scoped(
        Effect.flatMap(open, (store) => Effect.zipRight(write(store, "ses_a", "a", "b"), write(store, "ses_b", "c")))
      )
      yield* sql`UPDATE assent_entry SET xact = (xact::text::bigint + 1000000)::text::xid8`
      const store = yield* open
      const found = ["ses_a 1", "ses_a 2", "ses_b 1"]
      yield* sees(store, undefined, found)
      yield* write(store, "ses_a", "d")
      yield* sees(store, undefined, [...found, "ses_a 3"])
    })
  )
})
