/** What a server, a network or a stranger can do to a store: it says so in words, and nothing half-written stays. */
import { assert, describe, it } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { RequestId } from "../../src/core/Id.js"
import type { Process } from "../../src/journal/SessionLease.js"
import type * as SessionStore from "../../src/journal/SessionStore.js"
import * as Migrations from "../../src/store/Migrations.js"
import * as PostgresConnection from "../../src/store/PostgresConnection.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Postgres from "../kit/Postgres.js"
import * as Wait from "../kit/Wait.js"

const { attached, content, draft, opened, raised, received, root, said } = JournalSample
const me: Process = { pid: 1, host: "here", isAlive: () => true }
const beginning = [draft(opened()), draft(received("msg_1", "Fix it")), draft(raised("req_1"))]

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 60_000)

const place = Effect.map(Postgres.schema, (parameters) => ({
  parameters,
  name: parameters["application_name"] ?? "",
  url: Postgres.url(parameters),
  open: PostgresStore.make({ url: Postgres.url(parameters), process: me }),
  /** Does something to the schema, as another program would. */
  tamper: <A, E>(body: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
    Effect.scoped(Effect.flatMap(PostgresConnection.open({ url: Postgres.url(parameters), maxConnections: 1 }), body))
}))

const write = (store: SessionStore.Service) =>
  Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append(beginning)))

describe.runIf(Postgres.isThere)("a PostgreSQL store that cannot be opened", () => {
  const secret = "hunter22"
  const addresses: { readonly [name: string]: readonly [url: string, says: string] } = {
    "no server on its port": [`postgres://assent:${secret}@127.0.0.1:1/assent`, "no server answers at that address"],
    "no server at its socket": [`postgres://assent:${secret}@/assent?host=/tmp/nowhere`, "no server answers"],
    "no such host": [`postgres://assent:${secret}@nowhere.invalid/assent`, "the name of the server"]
  }
  for (const [name, [url, says]] of Object.entries(addresses)) {
    live(`because there is ${name}: says so, and does not tell the password`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(PostgresStore.make({ url: Redacted.make(url), process: me }))
        assert.strictEqual(error._tag, "StoreUnusable")
        assert.include(error.message, says)
        assert.include(error.message, "Check that the server runs")
        assert.notInclude(JSON.stringify(error) + error.message, secret)
      })
    )
  }

  live("because of its password, its database or its schema: says which", () =>
    Effect.gen(function* () {
      const { parameters } = yield* place
      const wrong = (from: string | RegExp, to: string, more = parameters) =>
        Effect.flip(
          PostgresStore.make({ url: Redacted.make(Redacted.value(Postgres.url(more)).replace(from, to)), process: me })
        )
      assert.include((yield* wrong(/:[0-9a-f]{24}@/, ":nonsense@")).message, "does not accept this user and password")
      assert.include((yield* wrong("/postgres?", "/nothing?")).message, "the server has no such database")
      const noSchema = yield* wrong("", "", { ...parameters, options: "-c search_path=nothing" })
      assert.include(noSchema.message, "no schema of its search path exists")
    })
  )

  live("because a newer version made its tables", () =>
    Effect.gen(function* () {
      const { open, tamper } = yield* place
      yield* Effect.scoped(Effect.flatMap(open, write))
      yield* tamper((sql) => sql`INSERT INTO assent_migration (migration_id, name) VALUES (99, 'later')`)
      const error = yield* Effect.flip(open)
      assert.include(error.message, "its tables have version 99")
      assert.include(error.message, "Use a newer version of this program")
    })
  )

  /** What a schema can be made to hold besides. Whoever reads or writes it would do what these say. */
  const strangers: { readonly [name: string]: ReadonlyArray<string> } = {
    "a trigger": [
      `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`,
      `CREATE TRIGGER t BEFORE INSERT ON assent_entry FOR EACH ROW EXECUTE FUNCTION f()`
    ],
    "a rule": [`CREATE RULE r AS ON DELETE TO assent_lock DO INSTEAD NOTHING`],
    "a policy of its own": [`ALTER TABLE assent_entry ENABLE ROW LEVEL SECURITY`],
    "a check": [`ALTER TABLE assent_lock ADD CHECK (host = 'here')`],
    "a column more": [`ALTER TABLE assent_lock ADD COLUMN more TEXT`],
    "a column of another type": [`ALTER TABLE assent_lock ALTER COLUMN pid TYPE INTEGER`],
    "a key that forbids": [`CREATE UNIQUE INDEX only_one ON assent_lock (host)`],
    "a key less": [`DROP INDEX assent_entry_order`],
    "a table less": [`DROP TABLE assent_answer`],
    "a view in the place of a table": [
      `ALTER TABLE assent_answer RENAME TO hidden`,
      `CREATE VIEW assent_answer AS SELECT * FROM hidden`
    ],
    "a table that inherits": [`CREATE TABLE more () INHERITS (assent_entry)`]
  }
  for (const [name, statements] of Object.entries(strangers)) {
    live(`because it has ${name}: says so, and leaves it`, () =>
      Effect.gen(function* () {
        const { open, tamper } = yield* place
        yield* Effect.scoped(Effect.flatMap(open, write))
        yield* tamper((sql) => Effect.forEach(statements, (statement) => sql.unsafe(statement)))
        const error = yield* Effect.flip(open)
        assert.strictEqual(error._tag === "StoreUnusable" ? error.problem : error._tag, "foreign")
        assert.match(error.message, /which this program did not make so|is missing/)
        assert.include(error.message, "Choose another schema or database.")
      })
    )
  }

  live("because another program has tables of these names: leaves them, and makes none", () =>
    Effect.gen(function* () {
      const { name, open, tamper } = yield* place
      yield* tamper((sql) => sql`CREATE TABLE assent_lock (door TEXT)`)
      assert.include((yield* Effect.flip(open)).message, '"assent_lock"')
      const tables = yield* tamper((sql) => sql`SELECT 1 FROM pg_tables WHERE schemaname = ${name}`)
      assert.lengthOf(tables, 1)
    })
  )

  live("of an older version, gets the tables that it lacks, with all that is in it", () =>
    Effect.gen(function* () {
      const { open, tamper } = yield* place
      yield* Effect.scoped(Effect.flatMap(open, write))
      yield* tamper((sql) =>
        Effect.forEach(
          [
            "ALTER TABLE assent_entry DROP COLUMN number, DROP COLUMN xact",
            "DROP TABLE assent_content",
            "DROP TABLE assent_reference",
            "DROP INDEX assent_session_order",
            "DROP INDEX assent_session_workspace",
            "DROP INDEX assent_session_open",
            "DROP INDEX assent_lock_awake",
            "DROP INDEX assent_lock_due",
            "DROP TABLE assent_audit, assent_audit_head, assent_key, assent_tenant, assent_node, assent_spent, assent_notified, assent_node_secret",
            "DROP INDEX assent_session_id",
            `DELETE FROM ${Migrations.table} WHERE migration_id > 1`
          ],
          (statement) => sql.unsafe(statement)
        )
      )
      const [store] = yield* Effect.all([open, open], { concurrency: "unbounded" })
      const picture = content("picture")
      const lease = yield* store.lock(root)
      yield* lease.putContent(picture)
      yield* lease.append([draft(attached("msg_2", picture))])
      assert.deepStrictEqual(yield* store.getContent(picture.sha256), picture.bytes)
    })
  )

  live("while another makes its tables, takes neither half of them for a stranger's", () =>
    Effect.gen(function* () {
      const { open, tamper } = yield* place
      const locked = yield* Effect.makeLatch()
      const opening = yield* Effect.forkScoped(Effect.zipRight(locked.await, open))
      yield* tamper((sql) =>
        sql.withTransaction(
          Effect.gen(function* () {
            // An opener needs this one to look at tables, and not to look for the version.
            yield* sql`LOCK TABLE pg_inherits IN ACCESS EXCLUSIVE MODE`
            yield* locked.open
            yield* Wait.until(
              sql`SELECT 1 FROM pg_locks WHERE relation = 'pg_inherits'::regclass AND NOT granted`,
              (waiting) => waiting.length > 0
            )
            yield* Effect.provideService(Migrations.run, SqlClient.SqlClient, sql)
          })
        )
      )
      yield* Fiber.join(opening)
    })
  )

  live("does not mind the tables of others, and is made by many at once", () =>
    Effect.gen(function* () {
      const { open, tamper } = yield* place
      yield* tamper((sql) => sql`CREATE TABLE bookmark (url TEXT)`)
      const stores = yield* Effect.all(
        Array.from({ length: 6 }, () => open),
        { concurrency: "unbounded" }
      )
      yield* Effect.forEach(stores, (store) => store.list)
      const ran = yield* tamper((sql) => sql`SELECT 1 FROM assent_migration`)
      assert.lengthOf(ran, Migrations.latest)
    })
  )
})

describe.runIf(Postgres.isThere)("a PostgreSQL store that cannot be written to", () => {
  live("because its user may only read, or the database is read-only, can be read", () =>
    Effect.gen(function* () {
      const { open, parameters } = yield* place
      yield* Effect.scoped(Effect.flatMap(open, write))
      const options = `${parameters["options"]} -c default_transaction_read_only=on`
      const store = yield* PostgresStore.make({ url: Postgres.url({ ...parameters, options }), process: me })
      const errors = [
        yield* Effect.flip(Effect.scoped(store.lock(root))),
        yield* Effect.flip(store.delete(root)),
        yield* Effect.flip(store.answer("req_1" as RequestId, 1, "web"))
      ]
      for (const error of errors) assert.include(error.message, "it is read-only")
      assert.lengthOf((yield* store.load(root)).entries, 3)
      assert.lengthOf(yield* store.list, 1)
    })
  )

  live("because its user may not write there says so", () =>
    Effect.gen(function* () {
      const { name, open, parameters, tamper } = yield* place
      yield* Effect.scoped(Effect.flatMap(open, write))
      yield* tamper((sql) =>
        Effect.gen(function* () {
          yield* sql`DROP ROLE IF EXISTS guest`
          yield* sql`CREATE ROLE guest LOGIN PASSWORD 'guest'`
          yield* sql`GRANT USAGE ON SCHEMA ${sql(name)} TO guest`
          yield* sql`GRANT SELECT ON ALL TABLES IN SCHEMA ${sql(name)} TO guest`
        })
      )
      const url = Redacted.make(Redacted.value(Postgres.url(parameters)).replace(/\/\/[^@]*@/, "//guest:guest@"))
      const store = yield* PostgresStore.make({ url, process: me })
      const error = yield* Effect.flip(Effect.scoped(store.lock(root)))
      assert.include(error.message, "this user has no right to that")
      assert.lengthOf((yield* store.load(root)).entries, 3)
    })
  )

  live("because a text has a character that PostgreSQL does not know says so", () =>
    Effect.gen(function* () {
      const { open } = yield* place
      const store = yield* open
      yield* write(store)
      const error = yield* Effect.flip(store.answer("req_1" as RequestId, 1, "a\0b"))
      assert.include(error.message, "a character that PostgreSQL cannot store")
      // In what is said it is fine.
      yield* Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append([draft(said("a\0b\ud800"))])))
      assert.lengthOf((yield* store.load(root)).entries, 4)
    })
  )
})

// Some wait until the silence of the server is noticed.
describe.runIf(Postgres.isThere)("a PostgreSQL store whose connection fails", { concurrent: true }, () => {
  /** A store with something in between, whose lease is held. */
  const between = Effect.gen(function* () {
    const { open, parameters } = yield* place
    const proxy = yield* Postgres.proxy
    const url = Postgres.url(parameters, proxy.socket)
    const store = yield* PostgresStore.make({ url, process: me, silentAfter: 1_500 })
    const lease = yield* store.lock(root)
    yield* lease.append(beginning)
    return { lease, proxy, store, direct: yield* open }
  })
  const more = [draft(said("one")), draft(said("two"))]

  for (const [moment, word] of Object.entries({
    "as a transaction begins": "BEGIN",
    "in the middle of one": "INSERT INTO assent_entry",
    "as it is committed": "COMMIT"
  })) {
    for (const fate of ["cut", "cut when answered", "silence"] as const) {
      live(`${moment} (${fate}): says so, writes the same again once, and goes on`, () =>
        Effect.gen(function* () {
          const { direct, lease, proxy } = yield* between
          proxy.fate = (text) => (text.includes(word) ? fate : "forward")
          // As often as there are connections, and once more.
          for (let attempt = 0; attempt < 5; attempt++) {
            const error = yield* Effect.flip(lease.append(more))
            assert.strictEqual(error._tag, "StoreUnwritable")
            assert.match(error.message, /connection to the server was lost|did not answer in time/)
            assert.include([3, 5], (yield* direct.load(root)).entries.length)
          }
          proxy.fate = () => "forward"
          yield* lease.append([...more, draft(said("three"))])
          const { entries } = yield* direct.load(root)
          assert.deepStrictEqual(
            entries.slice(3).map(({ entry }) => entry),
            [...more, draft(said("three"))].map(({ entry }) => entry)
          )
          assert.strictEqual((yield* direct.list)[0]?.entries, 6)
        })
      )
    }
  }

  live("while it is idle goes on with another", () =>
    Effect.gen(function* () {
      const { direct, lease, proxy, store } = yield* between
      for (let cut = 0; cut < 6; cut++) {
        proxy.cut()
        // The first words after that may meet the end of the old line.
        yield* Effect.retry(lease.append([draft(said(`${cut}`))]), { times: 1 })
        assert.lengthOf((yield* store.load(root)).entries, 4 + cut)
      }
      assert.strictEqual((yield* direct.list)[0]?.entries, 9)
    })
  )
})
