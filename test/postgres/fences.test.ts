/** The store as a cluster has it: a lease is the last one's that took it, and whoever had it before writes nothing more. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { RequestId, SessionId } from "../../src/core/Id.js"
import * as Retention from "../../src/journal/Retention.js"
import * as SessionLease from "../../src/journal/SessionLease.js"
import type { Process } from "../../src/journal/SessionLease.js"
import type * as SessionStore from "../../src/journal/SessionStore.js"
import * as SqlClient from "@effect/sql/SqlClient"
import * as PostgresConnection from "../../src/store/PostgresConnection.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import type * as SqlSessionStore from "../../src/store/SqlSessionStore.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Postgres from "../kit/Postgres.js"
import { rounds } from "../suite/raceSuite.js"
import { sessionStoreSuite } from "../suite/sessionStoreSuite.js"

const { attached, content, draft, opened, raised, received, root, said, settled, taken } = JournalSample
const beginning = [draft(opened()), draft(received("msg_1", "Fix it")), draft(raised("req_1"))]

const storeOver = (sql: SqlClient.SqlClient, process: Process) =>
  Effect.provideService(PostgresStore.over({ process }), SqlClient.SqlClient, sql)

const node = (host: string): Process => ({ pid: 1, host, isAlive: () => true, holding: "fence" })

/** Two nodes of a cluster, each with connections of its own, and a look past both of them. */
const two = Effect.gen(function* () {
  const parameters = yield* Postgres.schema
  const url = Postgres.url(parameters)
  const open = (host: string) =>
    Effect.flatMap(PostgresConnection.open({ url, maxConnections: 4 }), (sql) => storeOver(sql, node(host)))
  const sql = yield* PostgresConnection.open({ url, maxConnections: 1 })
  return { one: yield* open("one"), other: yield* open("other"), sql, parameters }
})

const tag = <A, E extends { readonly _tag: string }>(outcome: Either.Either<A, E>) =>
  Either.isRight(outcome) ? "done" : outcome.left._tag

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, Math.max(120_000, rounds * 500))

/** Locks first and then loads, as a node does; then goes on. */
const resume = (store: SessionStore.Service, id: SessionId) =>
  Effect.gen(function* () {
    const lease = yield* store.lock(id)
    const loaded = yield* store.load(id)
    const goesOn = yield* Effect.either(lease.append([draft({ _tag: "SessionResumed" }, id)]))
    return { loaded, goesOn: tag(goesOn) }
  })

const together = { concurrency: "unbounded" } as const

describe.runIf(Postgres.isThere)("PostgreSQL, whose leases are fences", () => {
  sessionStoreSuite("fences in a PostgreSQL database", {
    make: Effect.map(
      Postgres.schema,
      (parameters) => (process: Process) =>
        Effect.flatMap(PostgresConnection.open({ url: Postgres.url(parameters) }), (sql) => storeOver(sql, process))
    ),
    runs: 15,
    holding: "fence"
  })

  live("gives a session to who comes last, at once, and the one before writes nothing more", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two
      const first = yield* one.lock(root)
      yield* first.append(beginning)
      const second = yield* other.lock(root)
      const error = yield* Effect.flip(first.append([draft(said("late"))]))
      assert.strictEqual(error._tag, "SessionTakenOver")
      assert.include(error.message, "other")
      const picture = content("picture")
      assert.strictEqual((yield* Effect.flip(first.putContent(picture)))._tag, "SessionTakenOver")
      yield* second.putContent(picture)
      // With content an append is a transaction, and without it one statement.
      yield* second.append([draft(attached("msg_2", picture))])
      yield* second.append([draft(said("mine"))])
      assert.strictEqual((yield* one.list)[0]?.state, "running")
      // Also from a lease of its own.
      const third = yield* other.lock(root)
      assert.strictEqual((yield* Effect.flip(second.append([draft(said("late"))])))._tag, "SessionTakenOver")
      yield* third.append([draft(said("mine"))])
      assert.lengthOf((yield* one.load(root)).entries, 6)
      assert.strictEqual((yield* one.list)[0]?.entries, 6)
    })
  )

  live("writes all of an append or nothing, also when it is long", () =>
    Effect.gen(function* () {
      const { one, sql } = yield* two
      const lease = yield* one.lock(root)
      yield* lease.append(beginning)
      yield* lease.append(Array.from({ length: 2_500 }, (_, at) => draft(received(`more_${at}`, "x"))))
      assert.lengthOf((yield* one.load(root)).entries, 2_503)
      yield* sql`UPDATE assent_lock SET token = 'other'`
      yield* Effect.flip(lease.append([draft(said("late")), draft(settled("req_1"))]))
      assert.lengthOf((yield* one.load(root)).entries, 2_503)
      assert.strictEqual((yield* one.list)[0]?.open.length, 1)
    })
  )

  live("writes an append once whose connection is cut again and again, answered or not", () =>
    Effect.gen(function* () {
      const { one: direct, parameters } = yield* two
      const proxy = yield* Postgres.proxy
      const sql = yield* PostgresConnection.open({ url: Postgres.url(parameters, proxy.socket), silentAfter: 1_500 })
      const store = yield* storeOver(sql, node("one"))
      const lease = yield* store.lock(root)
      yield* lease.append(beginning)
      const more = [draft(said("one")), draft(said("two"))]
      for (const fate of ["cut", "cut when answered"] as const) {
        let cuts = 3
        proxy.fate = (text) => (text.includes("INSERT INTO assent_entry") && cuts-- > 0 ? fate : "forward")
        yield* lease.append(more)
      }
      // A fence is no less one after that.
      let cuts = 1
      proxy.fate = (text) => (text.includes("INSERT INTO assent_entry") && cuts-- > 0 ? "cut" : "forward")
      const [late] = yield* Effect.all([Effect.either(lease.append(more)), Effect.scoped(direct.lock(root))], together)
      const { entries } = yield* direct.load(root)
      const expected = [...more, ...more, ...(Either.isRight(late) ? more : [])]
      assert.deepStrictEqual(
        entries.slice(3).map(({ entry }) => entry),
        expected.map(({ entry }) => entry)
      )
      assert.strictEqual((yield* direct.list)[0]?.entries, entries.length)
    })
  )

  live("says which sessions are to go on: not those that are parked, but those that are overdue", () =>
    Effect.gen(function* () {
      const { one, other, sql } = yield* two
      const ids = ["ses_held", "ses_left", "ses_parked", "ses_later", "ses_due", "ses_busy", "ses_turn"].map(
        (id) => id as SessionId
      )
      for (const id of ids) {
        const scope = yield* Scope.make()
        const lease = yield* Scope.extend(one.lock(id), scope)
        yield* lease.append([opened(id), received("msg_1", "go"), raised(`req_${id}`)].map((entry) => draft(entry, id)))
        // What an agent notes when it ends changes nothing.
        if (id === "ses_parked")
          yield* Effect.zipRight(one.park(id), lease.append([draft({ _tag: "SessionResumed" }, id)]))
        if (id === "ses_later" || id === "ses_due") yield* one.park(id, 3_600_000)
        // What is written after that has another word in it.
        if (id === "ses_busy") yield* Effect.zipRight(one.park(id), lease.append([draft(said("more"), id)]))
        // In a turn that waits for nobody.
        if (id === "ses_turn") {
          yield* lease.append([draft(taken("turn_1", 1, "msg_1"), id), draft(settled(`req_${id}`), id)])
          yield* one.park(id)
        }
        if (id !== "ses_held") yield* Scope.close(scope, Exit.void)
      }
      yield* Effect.scoped(one.lock("ses_nothing" as SessionId))
      // A fork is locked first and then written: nobody else goes on with what is not there yet.
      yield* one.lock("ses_unwritten" as SessionId)
      yield* sql`UPDATE assent_lock SET pid = pid - 3600000 WHERE root = 'ses_due'`
      assert.deepStrictEqual([...(yield* other.awake)].sort(), [
        "ses_busy",
        "ses_due",
        "ses_held",
        "ses_left",
        "ses_turn"
      ])
      const states = (yield* other.list).map(({ rootSessionId, state }) => `${rootSessionId} ${state}`)
      assert.include(states, "ses_held running")
      assert.include(states, "ses_parked waiting")
      // An answer makes it awake, and so does whoever takes it.
      const parked = "ses_parked" as SessionId
      const waiting = (yield* other.openRequests(parked))[0]
      if (waiting === undefined) return assert.fail("it asks nothing")
      yield* other.answer(waiting.request.requestId, 1, "web")
      assert.include([...(yield* one.awake)], parked)
      yield* Effect.scoped(Effect.zipRight(other.lock(parked), other.park(parked)))
      assert.notInclude([...(yield* one.awake)], parked)
      yield* Effect.scoped(other.lock(parked))
      assert.include([...(yield* one.awake)], parked)
    })
  )

  live("keeps its sessions beside processes that send heartbeats, whose own it leaves alone while they do", () =>
    Effect.gen(function* () {
      const { one, other, parameters, sql } = yield* two
      const beating = yield* Effect.flatMap(PostgresConnection.open({ url: Postgres.url(parameters) }), (sql) =>
        storeOver(sql, { pid: 2, host: "laptop", isAlive: () => true })
      )
      const begun = (store: SqlSessionStore.FencedStore, id: string) =>
        Effect.gen(function* () {
          const root = id as SessionId
          const scope = yield* Scope.make()
          const lease = yield* Scope.extend(store.lock(root), scope)
          yield* lease.append(
            [opened(root), received("msg_1", "go"), raised(`req_${id}`)].map((entry) => draft(entry, root))
          )
          return { root, scope, lease }
        })
      const held = yield* begun(one, "ses_held")
      const parked = yield* begun(one, "ses_parked")
      const [asked] = (yield* one.openRequests(parked.root)).map(({ request }) => request.requestId)
      if (asked === undefined) return assert.fail("it asks nothing")
      yield* one.park(parked.root)
      yield* Scope.close(parked.scope, Exit.void)
      const own = yield* begun(beating, "ses_own")
      // A node sends no heartbeat, so its silence says nothing.
      const gone = yield* Retention.prune(beating, { keep: 0 })
      assert.deepStrictEqual(gone, [])
      const refused = [
        beating.delete(held.root),
        beating.answer("req_ses_held" as RequestId, 1, "web"),
        Effect.scoped(beating.lock(held.root))
      ]
      for (const refusal of refused)
        assert.strictEqual((yield* Effect.flip<unknown, any, never>(refusal))._tag, "SessionLocked")
      yield* held.lease.append([draft(said("mine"), held.root)])
      assert.deepStrictEqual([...(yield* other.awake)], [held.root])
      // An answer, and a look, of such a process: a node goes on with it.
      yield* beating.answer(asked, 1, "web")
      assert.sameMembers([...(yield* other.awake)], [held.root, parked.root])
      yield* Effect.scoped(Effect.zipRight(other.lock(parked.root), other.park(parked.root)))
      assert.deepStrictEqual([...(yield* other.awake)], [held.root])
      yield* Effect.scoped(beating.lock(parked.root))
      assert.sameMembers([...(yield* other.awake)], [held.root, parked.root])
      // Its own go on at a node when it has died.
      yield* sql`UPDATE assent_lock SET heartbeat = heartbeat - ${SessionLease.silentAfter} WHERE root = 'ses_own'`
      assert.sameMembers([...(yield* other.awake)], [held.root, parked.root, own.root])
      yield* Scope.close(own.scope, Exit.void)
      assert.sameMembers([...(yield* other.awake)], [held.root, parked.root])
      yield* Scope.close(held.scope, Exit.void)
    })
  )

  live("loses no answer that was acknowledged: whoever goes on has it, or is fenced", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two
      let [seen, fenced] = [0, 0]
      for (let round = 0; round < rounds; round++) {
        const id = `ses_${round}` as SessionId
        const asked = `req_${round}` as RequestId
        yield* Effect.scoped(
          Effect.flatMap(one.lock(id), (lease) => lease.append([draft(opened(id), id), draft(raised(asked), id)]))
        )
        const [answered, resumed] = yield* Effect.all(
          [Effect.either(other.answer(asked, 1, "web")), Effect.scoped(Effect.either(resume(one, id)))],
          together
        )
        assert.strictEqual(tag(answered), "done")
        if (Either.isLeft(resumed)) return assert.fail(resumed.left.message)
        const { goesOn, loaded } = resumed.right
        if (goesOn === "SessionTakenOver") fenced++
        else {
          // Or it came after all that this process wrote, and ends its lease then.
          const { answers, entries } = yield* one.load(id)
          assert.lengthOf(answers, 1)
          assert.isAtLeast(entries.length, loaded.entries.length)
          if (loaded.answers.length > 0) seen++
        }
      }
      assert.isAbove(seen + fenced, 0)
    })
  )

  live("lets one of two go on who take a session at once", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two
      for (let round = 0; round < rounds; round++) {
        const id = `ses_${round}` as SessionId
        yield* Effect.scoped(Effect.flatMap(one.lock(id), (lease) => lease.append([draft(opened(id), id)])))
        const scope = yield* Scope.make()
        const leases = yield* Scope.extend(Effect.all([one.lock(id), other.lock(id)], together), scope)
        const outcomes = yield* Effect.forEach(
          leases,
          (lease) => Effect.map(Effect.either(lease.append([draft(received("msg_1", "mine"), id)])), tag),
          together
        )
        assert.deepStrictEqual([...outcomes].sort(), ["SessionTakenOver", "done"])
        yield* Scope.close(scope, Exit.void)
        assert.lengthOf((yield* one.load(id)).entries, 2)
      }
    })
  )
})
