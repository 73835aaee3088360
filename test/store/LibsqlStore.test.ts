import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import type * as SqlClient from "@effect/sql/SqlClient"
import { SqlClient as SqlClientTag } from "@effect/sql/SqlClient"
import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { type RequestId, SessionId } from "../../src/core/Id.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as SessionSummary from "../../src/journal/SessionSummary.js"
import type { Draft } from "../../src/journal/JournalEntry.js"
import type { Process } from "../../src/journal/SessionLease.js"
import type * as SessionStore from "../../src/journal/SessionStore.js"
import * as LibsqlConnection from "../../src/store/LibsqlConnection.js"
import * as LibsqlStore from "../../src/store/LibsqlStore.js"
import * as Migrations from "../../src/store/Migrations.js"
import * as SqlSessionStore from "../../src/store/SqlSessionStore.js"
import * as Computation from "../kit/Computation.js"
import * as JournalSample from "../kit/JournalSample.js"

const { attached, content, draft, opened, raised, received, root, said, taken, turnEnded } = JournalSample

const me: Process = { pid: 1, host: "here", isAlive: () => true }

const live = <E>(name: string, effect: Effect.Effect<void, E, NodeContext.NodeContext | Scope.Scope>) =>
  it.scopedLive(name, () => Effect.provide(effect, NodeContext.layer))

/** A connection that was closed keeps its files open until the garbage of its statements is collected. */
const reallyClosed = Effect.promise(async () => {
  setFlagsFromString("--expose-gc")
  runInNewContext("gc")()
  await new Promise(setImmediate)
})

/** Another process opens the database, and closes it for good. */
const closedElsewhere = (file: string) =>
  Effect.sync(() => {
    const program = `
      import { createClient } from "@libsql/client/sqlite3"
      const look = async () => {
        const client = createClient({ url: "file:" + process.argv[1] })
        await client.execute("SELECT count(*) FROM assent_entry")
        client.close()
      }
      await look()
      gc()
      await new Promise(setImmediate)`
    const { status, stderr } = spawnSync(
      process.execPath,
      ["--expose-gc", "--input-type=module", "--eval", program, file],
      { encoding: "utf8" }
    )
    assert.strictEqual(status, 0, stderr)
  })

const place = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const directory = yield* fs.makeTempDirectoryScoped({ prefix: "assent-libsql-" })
  const file = `${directory}/assent.db`
  /** Does something to a database, as another program would. */
  const tamper = <A, E>(body: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>, at = file) =>
    Effect.scoped(Effect.flatMap(LibsqlConnection.open(at), body))
  /** All that is there, byte by byte. */
  const bytes = Effect.flatMap(Effect.zipRight(reallyClosed, fs.readDirectory(directory)), (names) =>
    Effect.forEach([...names].sort(), (name) =>
      Effect.map(
        fs.readFile(`${directory}/${name}`),
        (content) => [name, createHash("sha256").update(content).digest("hex")] as const
      )
    )
  )
  return { fs, directory, file, tamper, bytes, open: LibsqlStore.make({ file, process: me }) }
})

const write = (store: SessionStore.Service, drafts: ReadonlyArray<Draft>) =>
  Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append(drafts)))

const beginning = [draft(opened()), draft(received("msg_1", "Fix it")), draft(taken("turn_1", 1, "msg_1"))]

describe("a store that cannot be used", () => {
  const refused = (
    name: string,
    problem: string,
    says: string,
    prepare: (at: Effect.Effect.Success<typeof place>) => Effect.Effect<unknown, unknown, NodeContext.NodeContext>
  ) =>
    live(
      `${name}: says so, and leaves it untouched`,
      Effect.gen(function* () {
        const at = yield* place
        yield* prepare(at)
        const before = yield* at.bytes
        const error = yield* Effect.flip(Effect.scoped(at.open))
        assert.strictEqual(error._tag === "StoreUnusable" ? error.problem : error._tag, problem)
        assert.include(error.message, says)
        assert.include(error.message, at.file)
        assert.deepStrictEqual(yield* at.bytes, before)
      })
    )

  refused("a text", "foreign", "the file is not a database", ({ file, fs }) =>
    fs.writeFileString(file, "SQLite is a fine database, but this is a text about it.\n".repeat(10))
  )
  refused("a few bytes", "foreign", "the file is not a database", ({ file, fs }) =>
    fs.writeFileString(file, "SQLite format 3\0")
  )
  refused("a store of a newer version", "newer", "Use a newer version of this program", (at) =>
    Effect.zipRight(
      Effect.scoped(Effect.flatMap(at.open, (store) => write(store, beginning))),
      at.tamper((sql) =>
        Effect.zipRight(
          sql.unsafe(`PRAGMA user_version = ${Migrations.latest + 1}`),
          sql`PRAGMA wal_checkpoint(TRUNCATE)`
        )
      )
    )
  )
  refused("a database that names its program", "foreign", "another program", (at) =>
    at.tamper((sql) => Effect.zipRight(sql`PRAGMA application_id = 42`, sql`CREATE TABLE bookmark (url TEXT)`))
  )
  refused("a database that does not", "foreign", "another program", (at) =>
    at.tamper((sql) => Effect.zipRight(sql`CREATE TABLE bookmark (url TEXT)`, sql`INSERT INTO bookmark VALUES ('a')`))
  )
  /** What a store can be made to hold besides. Whoever reads or writes it would do what these say. */
  const strangers: { readonly [name: string]: ReadonlyArray<string> } = {
    "a trigger": [
      `CREATE TRIGGER open_up AFTER INSERT ON assent_entry BEGIN UPDATE assent_session SET summary = '{}'; END`
    ],
    "a trigger on what is read only": [`CREATE TRIGGER t BEFORE DELETE ON assent_lock BEGIN SELECT RAISE(IGNORE); END`],
    "a view": [`CREATE VIEW bookmark AS SELECT * FROM assent_entry`],
    "a view in the place of a table": [
      `ALTER TABLE assent_answer RENAME TO hidden`,
      `CREATE VIEW assent_answer AS SELECT * FROM hidden`
    ],
    "another table": [`CREATE TABLE bookmark (url TEXT)`],
    "a table that is made by a module": [`CREATE VIRTUAL TABLE bookmark USING fts5(url)`],
    "an index of an expression": [`CREATE INDEX busy ON assent_entry (upper(body))`],
    "a table with a column more": [`ALTER TABLE assent_lock ADD COLUMN more TEXT`],
    "a column that is computed": [`ALTER TABLE assent_session ADD COLUMN more TEXT AS (upper(summary))`],
    "a table with a rule of its own": [
      `DROP TABLE assent_answer`,
      `CREATE TABLE assent_answer (request TEXT PRIMARY KEY NOT NULL, root TEXT NOT NULL, answer TEXT NOT NULL,
        author TEXT NOT NULL DEFAULT 'console', at INTEGER NOT NULL)`
    ],
    "an index that forbids": [`CREATE UNIQUE INDEX only_one ON assent_lock (host)`],
    "the statistics of somebody else": [`ANALYZE`]
  }
  for (const [name, statements] of Object.entries(strangers)) {
    refused(`a store with ${name}`, "foreign", "which this program did not make so", (at) =>
      Effect.zipRight(
        Effect.scoped(Effect.flatMap(at.open, (store) => write(store, beginning))),
        at.tamper((sql) =>
          Effect.zipRight(
            Effect.forEach(statements, (statement) => sql.unsafe(statement)),
            sql`PRAGMA wal_checkpoint(TRUNCATE)`
          )
        )
      )
    )
  }
  refused("a damaged one", "unreadable", "the file is damaged", (at) =>
    Effect.gen(function* () {
      yield* Effect.scoped(Effect.flatMap(at.open, (store) => write(store, beginning)))
      const content = yield* at.fs.readFile(at.file)
      content.fill(0xff, 100, 4_096)
      yield* at.fs.writeFile(at.file, content)
    })
  )

  live(
    "was removed or replaced while it was open: nothing more is acknowledged",
    Effect.gen(function* () {
      for (const harm of ["removed", "replaced", "moved", "its log removed"] as const) {
        const { file, fs, open } = yield* place
        yield* Effect.scoped(
          Effect.gen(function* () {
            const store = yield* open
            const lease = yield* store.lock(root)
            yield* lease.append(beginning)
            if (harm === "moved") yield* fs.rename(file, `${file}.elsewhere`)
            else yield* fs.remove(harm === "its log removed" ? `${file}-wal` : file)
            if (harm === "replaced") yield* fs.writeFileString(file, "")
            // Whoever heard that writes the same again.
            for (let attempt = 0; attempt < 2; attempt++) {
              const error = yield* Effect.flip(lease.append([draft(received("msg_2", "Go on"))]))
              assert.strictEqual(error._tag, "StoreUnwritable")
              assert.include(error.message, "it was removed or replaced while it was open")
              assert.include(error.message, "Open the session again.")
            }
          })
        )
      }
    })
  )

  live(
    "is a directory, or has a file in its way",
    Effect.gen(function* () {
      const { directory, file, fs } = yield* place
      const directoryError = yield* Effect.flip(LibsqlStore.make({ file: directory, process: me }))
      assert.include(directoryError.message, "it is not a file")
      yield* fs.writeFileString(file, "")
      const inTheWay = yield* Effect.flip(LibsqlStore.make({ file: `${file}/assent.db`, process: me }))
      assert.match(inTheWay._tag, /^Store/)
      assert.strictEqual(yield* fs.readFileString(file), "")
    })
  )

  live(
    "had its tables made by a newer version, in a database of the program's own",
    Effect.gen(function* () {
      const at = yield* place
      yield* Effect.scoped(at.open)
      yield* at.tamper((sql) =>
        Effect.gen(function* () {
          yield* sql`INSERT INTO ${sql(Migrations.table)} ${sql.insert({ migration_id: 99, name: "later" })}`
          const error = yield* Effect.flip(
            Effect.scoped(Effect.provideService(SqlSessionStore.make({ process: me }), SqlClientTag, sql))
          )
          assert.include(error.message, "version 99")
        })
      )
    })
  )
})

/** Takes back what later versions have added to the tables. */
const asOfVersion = (sql: SqlClient.SqlClient, version: 1 | 2 | 3) =>
  Effect.forEach(
    [
      "ALTER TABLE assent_entry RENAME TO later",
      `CREATE TABLE assent_entry (
        root TEXT NOT NULL,
        seq INTEGER NOT NULL,
        session TEXT NOT NULL,
        at INTEGER NOT NULL,
        tag TEXT NOT NULL,
        request TEXT,
        body TEXT NOT NULL
      )`,
      "INSERT INTO assent_entry SELECT root, seq, session, at, tag, request, body FROM later",
      "DROP TABLE later",
      "CREATE UNIQUE INDEX assent_entry_order ON assent_entry (root, seq)",
      "CREATE INDEX assent_entry_request ON assent_entry (request) WHERE request IS NOT NULL",
      "DROP INDEX assent_lock_awake",
      "DROP INDEX assent_lock_due",
      "DROP TABLE assent_spent",
      ...(version < 3
        ? ["DROP INDEX assent_session_order", "DROP INDEX assent_session_workspace", "DROP INDEX assent_session_open"]
        : []),
      ...(version < 2 ? ["DROP TABLE assent_content", "DROP TABLE assent_reference"] : []),
      `DELETE FROM ${Migrations.table} WHERE migration_id > ${version}`,
      `PRAGMA user_version = ${version}`,
      "PRAGMA wal_checkpoint(TRUNCATE)"
    ],
    (statement) => sql.unsafe(statement)
  )

describe("a store of an older version", () => {
  live(
    "is listed page by page, and so is what a process of that version still writes to it",
    Effect.gen(function* () {
      const { open, tamper } = yield* place
      yield* Effect.scoped(open)
      yield* tamper((sql) => asOfVersion(sql, 2))
      const summaryOf = (name: string, lastActivity: number, more = {}) =>
        JSON.stringify({
          ...SessionSummary.empty(SessionId.make(name), 1),
          entries: 1,
          lastActivity,
          ...more
        })
      // As version 2 writes.
      const put = (name: string, summary: string) => (sql: SqlClient.SqlClient) =>
        sql`INSERT INTO assent_session ${sql.insert({ root: name, summary })}
          ON CONFLICT (root) DO UPDATE SET summary = excluded.summary`
      yield* tamper(put("ses_a", summaryOf("ses_a", 10)))
      yield* tamper(put("ses_b", summaryOf("ses_b", 20, { workspace: "/b" })))
      yield* tamper(put("ses_half", `{"rootSessionId":"ses_half","lastActivity":15`))
      yield* tamper(put("ses_none", "no summary"))
      const store = yield* open
      const idsOf = (query?: SessionStore.Query) =>
        Effect.map(store.page(query), ({ sessions }) => sessions.map(({ rootSessionId }) => String(rootSessionId)))
      assert.deepStrictEqual(yield* idsOf({ limit: 1 }), ["ses_b"])
      yield* tamper(put("ses_a", summaryOf("ses_a", 30, { open: [{ requestId: "req_1", kind: "Ask" }] })))
      yield* tamper(put("ses_c", summaryOf("ses_c", 25, { workspace: "/c" })))
      assert.deepStrictEqual(yield* idsOf({ limit: 3 }), ["ses_a", "ses_c", "ses_b"])
      assert.deepStrictEqual(yield* idsOf({ workspace: "/b", limit: 2 }), ["ses_a", "ses_b"])
      assert.deepStrictEqual(yield* idsOf({ prefix: "ses_c" }), ["ses_c"])
      // Damage is told where it is met, and hides nothing before it.
      const error = yield* Effect.flip(store.page())
      assert.match(error.message, /the summary of session ses_(half|none) is damaged/)
    })
  )

  live(
    "has its entries in order, with those that a process of that version still writes",
    Effect.gen(function* () {
      const { open, tamper } = yield* place
      const seqs = (store: SessionStore.Service, after?: SessionStore.Cursor) =>
        Effect.map(store.readAll({ after }), (all) => all.map(({ written }) => Either.getOrThrow(written).seq))
      yield* Effect.scoped(Effect.flatMap(open, (store) => write(store, beginning)))
      yield* tamper((sql) => asOfVersion(sql, 3))
      const store = yield* open
      assert.deepStrictEqual(yield* seqs(store), [1, 2, 3])
      assert.deepStrictEqual((yield* store.load(root)).entries, (yield* store.read(root)).slice())
      const end = yield* store.end
      const row = {
        root,
        seq: 4,
        session: root,
        at: 1,
        tag: "SessionClosed",
        request: null,
        body: '{"_tag":"SessionClosed"}'
      }
      yield* tamper((sql) => sql`INSERT INTO assent_entry ${sql.insert(row)}`)
      assert.deepStrictEqual(yield* seqs(store, end), [4])
      // VACUUM moves rows, and the end of a deleted tail is not given again.
      yield* tamper((sql) => Effect.zipRight(sql`DELETE FROM assent_entry WHERE seq > 3`, sql`VACUUM`))
      const last = yield* store.end
      yield* tamper((sql) => sql`INSERT INTO assent_entry ${sql.insert(row)}`)
      assert.deepStrictEqual(yield* seqs(store, last), [4])
      assert.deepStrictEqual(yield* seqs(store, end), [4])
    })
  )

  live(
    "of which an entry is damaged gives the others",
    Effect.gen(function* () {
      const { open, tamper } = yield* place
      const store = yield* open
      yield* write(store, beginning)
      yield* tamper((sql) => sql`UPDATE assent_entry SET body = '{' WHERE seq = 2`)
      const found = yield* store.readAll()
      assert.deepStrictEqual(
        found.map(({ written }) => (Either.isRight(written) ? written.right.seq : written.left._tag)),
        [1, "JournalUnreadable", 3]
      )
      assert.lengthOf(yield* store.readAll({ after: found[1]?.cursor }), 1)
    })
  )

  live(
    "gets the tables that it lacks, with all that is in it",
    Effect.gen(function* () {
      const { open, tamper } = yield* place
      yield* Effect.scoped(Effect.flatMap(open, (store) => write(store, beginning)))
      yield* tamper((sql) => asOfVersion(sql, 1))
      const store = yield* open
      assert.lengthOf((yield* store.load(root)).entries, beginning.length)
      const picture = content("picture")
      const lease = yield* store.lock(root)
      yield* lease.putContent(picture)
      yield* lease.append([draft(attached("msg_2", picture))])
      assert.deepStrictEqual(yield* store.getContent(picture.sha256), picture.bytes)
    })
  )
})

describe("a store that cannot be written to", () => {
  /** A store on a connection that the test has its hands on. */
  const withConnection = <E>(
    body: (store: SessionStore.Service, sql: SqlClient.SqlClient) => Effect.Effect<void, E, Scope.Scope>
  ) =>
    Effect.gen(function* () {
      const { file } = yield* place
      const sql = yield* LibsqlConnection.open(file)
      const store = yield* Effect.provideService(SqlSessionStore.make({ process: me, name: file }), SqlClientTag, sql)
      yield* body(store, sql)
    })

  live(
    "for want of space keeps what it has, writes nothing in part, and goes on when there is space",
    withConnection((store, sql) =>
      Effect.gen(function* () {
        const lease = yield* store.lock(root)
        yield* lease.append(beginning)
        const [pages] = yield* sql<{ readonly page_count: number }>`PRAGMA page_count`
        yield* sql.unsafe(`PRAGMA max_page_count = ${(pages?.page_count ?? 0) + 100}`)
        // More than one statement takes, and room for the first of them only.
        const big = Array.from({ length: 2_500 }, (_, index) => draft(said(`${index} `.repeat(20))))
        for (let attempt = 0; attempt < 3; attempt++) {
          const error = yield* Effect.flip(lease.append(big))
          assert.strictEqual(error._tag, "StoreUnwritable")
          assert.include(error.message, "the disk is full")
          assert.lengthOf((yield* store.load(root)).entries, 3)
        }
        yield* sql`PRAGMA max_page_count = 100000`
        yield* lease.append(big)
        assert.lengthOf((yield* store.load(root)).entries, 2_503)
        assert.strictEqual((yield* store.list)[0]?.entries, 2_503)
      })
    )
  )

  live(
    "because it is read-only can still be read",
    withConnection((store, sql) =>
      Effect.gen(function* () {
        yield* write(store, [...beginning, draft(raised("req_1"))])
        yield* sql`PRAGMA query_only = 1`
        const errors = [
          yield* Effect.flip(Effect.scoped(store.lock(root))),
          yield* Effect.flip(store.delete(root)),
          yield* Effect.flip(store.answer("req_1" as RequestId, 1, "web"))
        ]
        for (const error of errors) assert.include(error.message, "it is read-only")
        assert.lengthOf((yield* store.load(root)).entries, 4)
        assert.lengthOf(yield* store.list, 1)
      })
    )
  )

  live(
    "because an entry has no JSON writes none of what came with it",
    withConnection((store) =>
      Effect.gen(function* () {
        const lease = yield* store.lock(root)
        const circle: { self?: unknown } = {}
        circle.self = circle
        const bad = { ...JournalSample.ended("call_1"), result: circle }
        const error = yield* Effect.flip(lease.append([...beginning, draft(bad)]))
        assert.include(error.message, "ToolEnded")
        assert.deepStrictEqual(yield* store.list, [])
      })
    )
  )

  live(
    "because it is closed says so",
    Effect.gen(function* () {
      const at = yield* place
      const lease = yield* Effect.scoped(Effect.flatMap(at.open, (store) => store.lock(root)))
      const error = yield* Effect.flip(lease.append(beginning))
      assert.include(error.message, "it is closed")
    })
  )
})

describe("a journal that cannot be read", () => {
  const unreadable = (name: string, says: string, statement: string) =>
    live(
      `because ${name}, says from where on`,
      Effect.gen(function* () {
        const at = yield* place
        yield* Effect.scoped(Effect.flatMap(at.open, (store) => write(store, beginning)))
        yield* at.tamper((sql) => sql.unsafe(statement))
        const store = yield* at.open
        const error = yield* Effect.flip(store.load(root))
        assert.strictEqual(error._tag, "JournalUnreadable")
        assert.include(error.message, says)
        assert.lengthOf(yield* store.list, 1)
      })
    )
  unreadable("an entry is missing", "entry 2 on: it is missing", "DELETE FROM assent_entry WHERE seq = 2")
  unreadable(
    "an entry is damaged",
    "entry 2 on: it is no JSON",
    "UPDATE assent_entry SET body = substr(body, 2) WHERE seq = 2"
  )
  unreadable(
    "an entry is of a kind that came later",
    "entry 3 on",
    `UPDATE assent_entry SET body = '{"_tag":"MoonPhaseChanged"}' WHERE seq = 3`
  )
  unreadable(
    "it is of a newer version",
    "version 2",
    `UPDATE assent_entry SET body = replace(body, '"version":1', '"version":2') WHERE seq = 1`
  )
})

describe("a SQLite file", () => {
  live(
    "is its owner's alone, says whose it is, and is not made again",
    Effect.gen(function* () {
      const { file, fs, open } = yield* place
      yield* Effect.scoped(Effect.flatMap(open, (store) => write(store, beginning)))
      assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o600)
      const header = Buffer.from(yield* fs.readFile(file)).subarray(0, 100)
      assert.strictEqual(header.subarray(68, 72).toString(), "asnt")
      assert.strictEqual(header.readUInt32BE(60), Migrations.latest)
      assert.lengthOf((yield* Effect.scoped(Effect.flatMap(open, (store) => store.load(root)))).entries, 3)
    })
  )

  live(
    "takes no place of another one for its own, also of one that was made in the same second",
    Effect.gen(function* () {
      const [here, there] = yield* Effect.all([place, place])
      const [one, other] = yield* Effect.all([here.open, there.open])
      for (const store of [one, other]) yield* write(store, beginning)
      const error = yield* Effect.flip(other.readAll({ after: yield* one.end }))
      assert.strictEqual(error._tag, "CursorUnknown")
      assert.deepStrictEqual(yield* one.readAll({ after: yield* one.end }), [])
    })
  )

  live(
    "is opened by several at once when it is new",
    Effect.gen(function* () {
      const { open } = yield* place
      const stores = yield* Effect.all([open, open, open, open, open], { concurrency: "unbounded" })
      yield* Effect.forEach(stores, (store) => write(store, beginning.slice(0, 1)))
      const [first] = stores
      assert.lengthOf((yield* first.load(root)).entries, 5)
    })
  )

  live(
    "stays on the connection that was set up, also after transactions that failed",
    Effect.gen(function* () {
      const { file } = yield* place
      yield* LibsqlStore.make({ file, process: me })
      const sql = yield* LibsqlConnection.open(file, { busyTimeout: 7 })
      yield* sql.withTransaction(sql`SELECT 1`)
      yield* Effect.flip(sql.withTransaction(sql`SELECT * FROM nowhere`))
      assert.deepStrictEqual(
        [yield* sql`PRAGMA synchronous`, yield* sql`PRAGMA busy_timeout`, yield* sql`PRAGMA journal_mode`].map(
          ([row]) => Object.values(row ?? {})[0]
        ),
        [2, 7, "wal"]
      )
    })
  )

  // Closing a descriptor of a file drops the locks that SQLite has on it in the same process. Another process that closes
  // the database then takes it for its own, and removes the log.
  live(
    "keeps its log when it is looked at and opened again here, and another process closes it",
    Effect.gen(function* () {
      const { file, open } = yield* place
      const lease = yield* Effect.flatMap(open, (store) => store.lock(root))
      yield* lease.append(beginning)
      const looks = [
        LibsqlStore.inspect(file),
        Effect.scoped(open),
        LibsqlStore.inspect(file),
        LibsqlStore.compact(file)
      ]
      for (const [index, look] of looks.entries()) {
        yield* look
        yield* closedElsewhere(file)
        yield* lease.append([draft(received(`msg_${index + 2}`, "Go on"))])
      }
      yield* reallyClosed
      yield* closedElsewhere(file)
      yield* lease.append([draft(turnEnded("turn_1"))])
      assert.lengthOf((yield* Effect.flatMap(open, (store) => store.load(root))).entries, 8)
    })
  )

  live(
    "can be written to again after another program had it for too long",
    Effect.gen(function* () {
      const { file } = yield* place
      yield* LibsqlStore.make({ file, process: me })
      const sql = yield* LibsqlConnection.open(file, { busyTimeout: 1 })
      // Under another name it does not take turns with us, as another program does not.
      const other = yield* LibsqlConnection.open(`/proc/self/root${file}`)
      yield* other`BEGIN IMMEDIATE`
      for (let attempt = 0; attempt < 2; attempt++) {
        const inside = yield* Effect.flip(sql.withTransaction(sql`DELETE FROM assent_entry`))
        const alone = yield* Effect.flip(sql`DELETE FROM assent_entry`)
        for (const error of [inside, alone]) assert.include(String(error.cause), "SQLITE_BUSY")
      }
      yield* other`ROLLBACK`
      yield* sql.withTransaction(sql`DELETE FROM assent_entry`)
      assert.strictEqual((yield* sql`PRAGMA synchronous`)[0]?.["synchronous"], 2)
    })
  )

  live(
    "has all that was acknowledged, and nothing in part, whenever its process dies",
    Effect.gen(function* () {
      const { directory, file, fs, open } = yield* place
      const store = yield* open
      const lease = yield* store.lock(root)
      const acknowledged: Array<string> = []
      const writers = yield* Effect.forEach([0, 1, 2, 3], (writer) =>
        Effect.fork(
          Effect.forEach(Array.from({ length: 40 }), (_, batch) =>
            Effect.zipRight(
              lease.append([0, 1, 2].map((at) => draft(received(`${writer}/${batch}/${at}`, "x".repeat(3_000))))),
              Effect.sync(() => acknowledged.push(`${writer}/${batch}`))
            )
          )
        )
      )
      for (let death = 0; death < 12; death++) {
        yield* Effect.forEach(Array.from({ length: death * 7 }), () => Effect.yieldNow())
        const known = [...acknowledged]
        // What the disk holds at this moment is what a process that is killed now leaves.
        const left = `${directory}/${death}`
        yield* fs.makeDirectory(left)
        for (const name of ["assent.db-wal", "assent.db"]) yield* fs.copyFile(`${directory}/${name}`, `${left}/${name}`)
        const next = yield* LibsqlStore.make({
          file: `${left}/assent.db`,
          process: { ...me, pid: 2, isAlive: () => false }
        })
        const { entries } = yield* Effect.orElseSucceed(next.load(root), () => ({ entries: [] }))
        const ids = entries.map(({ entry }) => (entry._tag === "MessageReceived" ? String(entry.message.id) : "?"))
        const batches = ids.filter((_, index) => index % 3 === 0).map((id) => id.replace(/\/0$/, ""))
        assert.deepStrictEqual(
          ids,
          batches.flatMap((batch) => [0, 1, 2].map((at) => `${batch}/${at}`))
        )
        for (const batch of known) assert.include(batches, batch)
        yield* write(next, [draft(turnEnded("turn_1"))])
      }
      yield* Effect.forEach(writers, Fiber.join)
      assert.strictEqual((yield* store.load(root)).entries.length, 4 * 40 * 3)
      assert.isTrue(yield* fs.exists(file))
    })
  )

  live(
    "with 10,000 messages is resumed in well under a second, and appended to as fast as an empty one",
    Effect.gen(function* () {
      const { open } = yield* place
      const store = yield* open
      const drafts = Array.from({ length: 5_000 }, (_, turn) => [
        draft(received(`msg_${turn}`, "words ".repeat(20))),
        draft(taken(`turn_${turn}`, 1, `msg_${turn}`)),
        draft(said("an answer ".repeat(30))),
        draft(turnEnded(`turn_${turn}`))
      ]).flat()
      const one = (lease: SessionStore.Lease) =>
        Effect.map(
          Effect.forEach(Array.from({ length: 50 }), () => Effect.timed(lease.append([draft(said("more"))]))),
          // Others may want the processor or the disk meanwhile.
          (appended) => Math.min(...appended.map(([duration]) => Duration.toMillis(duration)))
        )
      const lease = yield* store.lock(root)
      yield* lease.append([draft(opened())])
      const empty = yield* one(lease)
      yield* lease.append(drafts)
      const full = yield* one(lease)
      const computed = Computation.begin()
      const restored = SessionSnapshot.fold((yield* store.load(root)).entries)
      assert.isBelow(computed(), 2_000)
      assert.isAbove(SessionSnapshot.get(restored, root)?.history.length ?? 0, 10_000)
      assert.isBelow(full, Math.max(empty * 4, 10))
    })
  )
})
