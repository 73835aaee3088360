/**
 * The tables of a session store, and how a database of an older version gets them: SQLite's and PostgreSQL's dialect.
 *
 * @since 0.1.0
 */
import * as Migrator from "@effect/sql/Migrator"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Record from "effect/Record"
import * as Dialect from "./Dialect.js"

/**
 * The last migration: the version of the tables.
 *
 * @since 0.1.0
 * @category constants
 */
export const latest = 10

/**
 * The migration from which on entries have an order over all sessions.
 *
 * @since 0.1.0
 * @category constants
 */
export const ordering = 4

/**
 * The migration from which on PostgreSQL has room for the audit.
 *
 * @since 0.1.0
 * @category constants
 */
export const auditing = 6

/**
 * Names the tables that this module owns; the list of migrations that have run is one of them.
 *
 * @since 0.1.0
 * @category constants
 */
export const table = "assent_migration"

/**
 * Migrates the database to {@link latest}. Several processes may run it at once. Check {@link version} first: tables of
 * a newer version are not understood here.
 *
 * @since 0.1.0
 * @category operations
 */
export const run: Effect.Effect<void, Migrator.MigrationError | SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    Dialect.of(sql) === "pg"
      ? // PostgreSQL takes tables back with their transaction, so a process that dies here leaves none of them. The lock
        // makes the others wait: two that make the same table at once fail, even with IF NOT EXISTS.
        sql.withTransaction(
          Effect.flatMap(Effect.zipRight(Dialect.hold(sql, table), version), (found) =>
            Effect.when(Effect.zipRight(ofMigratorInPostgres(found), migrate), () => found < latest)
          )
        )
      : migrate
)

/**
 * The last migration that has run here; 0 when none has. Reads only.
 *
 * @since 0.1.0
 * @category operations
 */
export const version: Effect.Effect<number, SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* Dialect.of(sql) === "pg"
    ? sql`SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = ${table}`
    : sql`SELECT name FROM sqlite_master WHERE type = 'table' AND name = ${table}`
  if (tables.length === 0) return 0
  const [row] = yield* sql<{ readonly latest: number | null }>`SELECT max(migration_id) AS latest FROM ${sql(table)}`
  return Number(row?.latest ?? 0)
})

/**
 * A row of SQLite's own schema table.
 *
 * @since 0.1.0
 * @category models
 */
export type SchemaObject = {
  readonly type: string
  readonly name: string
  readonly tbl_name: string
  readonly sql: string | null
}

/**
 * The first object whose text differs from what this module makes: a trigger, a view, a changed table.
 *
 * @since 0.1.0
 * @category getters
 */
export const foreign = (objects: ReadonlyArray<SchemaObject>): SchemaObject | undefined => {
  const seen = new Set<string>()
  return objects.find((object) => {
    const isTwice = seen.has(object.name)
    seen.add(object.name)
    const { name, sql, type } = object
    return isTwice || !(isAutomatic(object) || (sql !== null && known.has(`${name} ${type} ${normalized(sql)}`)))
  })
}

/**
 * A table, view or the like in PostgreSQL that has the name of one of these tables.
 *
 * @since 0.1.0
 * @category models
 */
export type Relation = {
  readonly name: string
  /** `r` is a table. */
  readonly kind: string
  /** With types, in order. */
  readonly columns: string | null
  /** Columns of each index that allows a value once. */
  readonly keys: string | null
  /** Triggers, rules, checks and what else acts when it is read or written. */
  readonly acts: boolean
}

/** What PostgreSQL has under the names of these tables, in the schema in which they would be made. */
const relations: Effect.Effect<ReadonlyArray<Relation>, SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<Relation>`
    SELECT c.relname::text AS name, c.relkind::text AS kind,
      (SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
          || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
          || CASE WHEN a.attgenerated <> '' THEN ' GENERATED' ELSE '' END, ', ' ORDER BY a.attnum)
        FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
      (SELECT string_agg(CASE WHEN i.indpred IS NULL THEN '' ELSE 'some ' END
          || coalesce((SELECT string_agg(a.attname, ' ' ORDER BY k.place)
            FROM unnest(i.indkey) WITH ORDINALITY AS k(number, place)
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number), 'computed'), ', ' ORDER BY i.indexrelid)
        FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique) AS keys,
      (c.relrowsecurity OR c.relhasrules
        OR EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhrelid = c.oid OR h.inhparent = c.oid)
        OR EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
        OR EXISTS (SELECT 1 FROM pg_constraint r WHERE r.conrelid = c.oid AND r.contype IN ('c', 'f', 't', 'x')))
        AS acts
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind NOT IN ('i', 'I', 'S', 't') AND ${sql.in("relname", Object.keys(inPostgres))}`
)

/**
 * The version and the relations of one moment, in PostgreSQL: another process may migrate meanwhile, and its tables do
 * not fit to the version before.
 *
 * @since 0.1.0
 * @category operations
 */
export const present: Effect.Effect<
  { readonly version: number; readonly relations: ReadonlyArray<Relation> },
  SqlError,
  SqlClient.SqlClient
> = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.withTransaction(
    Effect.zipRight(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`, Effect.all({ version, relations }))
  )
)

/**
 * A sentence about the first relation that is not as this module makes it, without a full stop.
 *
 * @since 0.1.0
 * @category operations
 */
export const strange = (found: ReadonlyArray<Relation>, version: number): string | undefined => {
  const stranger = found.find(({ acts, columns, keys, kind, name }) => {
    const [knownColumns, knownKeys] = inPostgres[name] ?? []
    const isOurs = version < latest || (columns === knownColumns && keys === knownKeys)
    return version === 0 || kind !== "r" || acts || !isOurs
  })
  if (stranger !== undefined) return `it holds ${JSON.stringify(stranger.name)}, which this program did not make so`
  const missing = Object.keys(inPostgres).find((name) => !found.some((relation) => relation.name === name))
  return version === latest && missing !== undefined ? `its table ${JSON.stringify(missing)} is missing` : undefined
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A statement, in SQLite's words where the two differ in names only. */
type Statement = string | ((dialect: Dialect.Dialect) => string)

/** Those of a migration, or of each dialect its own. */
type Statements = ReadonlyArray<Statement> | { readonly [D in Dialect.Dialect]: ReadonlyArray<string> }

const textsOf = (statements: Statements, dialect: Dialect.Dialect): ReadonlyArray<string> =>
  ("pg" in statements ? statements[dialect] : statements).map((statement) => inDialect(statement, dialect))

const all = (statements: Statements) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.forEach(textsOf(statements, Dialect.of(sql) ?? "sqlite"), (statement) => sql.unsafe(statement), {
      discard: true
    })
  )

/** SQLite's INTEGER has 64 bits, PostgreSQL's 32: too few for milliseconds since the epoch. Bytes have another name. */
const inDialect = (statement: Statement, dialect: Dialect.Dialect): string => {
  const text = typeof statement === "string" ? statement : statement(dialect)
  return dialect === "pg" ? text.replaceAll(" INTEGER", " BIGINT").replaceAll(" BLOB", " BYTEA") : text
}

/** The parts of a summary that a list is ordered by and searched for. */
const indexOfParts =
  (make: (parts: Dialect.SummaryParts) => string): Statement =>
  (dialect) =>
    `CREATE INDEX ${make(Dialect.summaryParts[dialect])}`

const ofAwake = [
  `CREATE INDEX assent_lock_awake ON assent_lock (root) WHERE token <> 'parked'`,
  `CREATE INDEX assent_lock_due ON assent_lock (pid) WHERE token = 'parked' AND pid > 0`
]

// A migration is never edited: a change is a new migration. Every column name is one word, so that no client's name
// transformation changes it.
const statements: { readonly [migration: string]: Statements } = {
  "0001_journal": [
    `CREATE TABLE assent_entry (
      root TEXT NOT NULL,
      seq INTEGER NOT NULL,
      session TEXT NOT NULL,
      at INTEGER NOT NULL,
      tag TEXT NOT NULL,
      request TEXT,
      body TEXT NOT NULL
    )`,
    `CREATE UNIQUE INDEX assent_entry_order ON assent_entry (root, seq)`,
    `CREATE INDEX assent_entry_request ON assent_entry (request) WHERE request IS NOT NULL`,
    `CREATE TABLE assent_session (root TEXT PRIMARY KEY NOT NULL, summary TEXT NOT NULL)`,
    `CREATE TABLE assent_lock (
      root TEXT PRIMARY KEY NOT NULL,
      token TEXT NOT NULL,
      pid INTEGER NOT NULL,
      host TEXT NOT NULL,
      heartbeat INTEGER NOT NULL
    )`,
    `CREATE TABLE assent_answer (
      request TEXT PRIMARY KEY NOT NULL,
      root TEXT NOT NULL,
      answer TEXT NOT NULL,
      author TEXT NOT NULL,
      at INTEGER NOT NULL
    )`,
    `CREATE INDEX assent_answer_root ON assent_answer (root)`
  ],
  "0002_content": [
    `CREATE TABLE assent_content (sha256 TEXT PRIMARY KEY NOT NULL, bytes BLOB NOT NULL)`,
    `CREATE TABLE assent_reference (root TEXT NOT NULL, sha256 TEXT NOT NULL, token TEXT NOT NULL)`,
    `CREATE UNIQUE INDEX assent_reference_root ON assent_reference (root, sha256, token)`,
    `CREATE INDEX assent_reference_content ON assent_reference (sha256)`
  ],
  "0003_list": [
    indexOfParts(({ active, id }) => `assent_session_order ON assent_session ((${active}) DESC, ${id})`),
    indexOfParts(
      ({ active, id, workspace }) =>
        `assent_session_workspace ON assent_session ((${workspace}), (-(${active})), ${id})`
    ),
    indexOfParts(({ open }) => `assent_session_open ON assent_session (root) WHERE ${open}`)
  ],
  // A process of an older version that still runs names the columns which it knows, and the others fill themselves.
  "0004_order": {
    // Rows have numbers of SQLite's own, but VACUUM gives them others, and those of deleted rows come again.
    sqlite: [
      `ALTER TABLE assent_entry RENAME TO assent_entry_before`,
      `CREATE TABLE assent_entry (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        root TEXT NOT NULL,
        seq INTEGER NOT NULL,
        session TEXT NOT NULL,
        at INTEGER NOT NULL,
        tag TEXT NOT NULL,
        request TEXT,
        body TEXT NOT NULL
      )`,
      `INSERT INTO assent_entry (root, seq, session, at, tag, request, body)
        SELECT root, seq, session, at, tag, request, body FROM assent_entry_before ORDER BY rowid`,
      `DROP TABLE assent_entry_before`,
      `CREATE UNIQUE INDEX assent_entry_order ON assent_entry (root, seq)`,
      `CREATE INDEX assent_entry_request ON assent_entry (request) WHERE request IS NOT NULL`
    ],
    pg: [
      `ALTER TABLE assent_entry ADD COLUMN number BIGINT, ADD COLUMN xact XID8`,
      `UPDATE assent_entry e SET xact = '0', number = o.number
        FROM (SELECT root, seq, row_number() OVER (ORDER BY root, seq) AS number FROM assent_entry) o
        WHERE e.root = o.root AND e.seq = o.seq`,
      `ALTER TABLE assent_entry ALTER COLUMN number SET NOT NULL, ALTER COLUMN xact SET NOT NULL,
        ALTER COLUMN xact SET DEFAULT pg_current_xact_id(),
        ALTER COLUMN number ADD GENERATED BY DEFAULT AS IDENTITY`,
      `SELECT setval(pg_get_serial_sequence('assent_entry', 'number'), (SELECT coalesce(max(number), 0) + 1 FROM assent_entry), false)`,
      `CREATE INDEX assent_entry_append ON assent_entry (xact, number)`
    ]
  },
  // Few of the sessions of a cluster are not parked, and it looks for them each second.
  "0005_awake": {
    sqlite: [
      ...ofAwake,
      // SQLite's time has seconds, and the cursors of a store made in the same second would fit this one.
      `UPDATE ${table} SET created_at = created_at || '.' || hex(randomblob(8)) WHERE migration_id = ${ordering}`
    ],
    pg: ofAwake
  },
  // The audit of a cluster. In SQLite, which one machine has, the audit is in files.
  "0006_audit": {
    sqlite: [],
    pg: [
      `CREATE TABLE assent_audit (root TEXT NOT NULL, seq BIGINT NOT NULL, line TEXT NOT NULL)`,
      `CREATE UNIQUE INDEX assent_audit_order ON assent_audit (root, seq)`,
      `CREATE TABLE assent_audit_head (root TEXT PRIMARY KEY NOT NULL, head TEXT NOT NULL)`
    ]
  },
  // Who calls a cluster, and the nodes that answer.
  "0007_access": {
    sqlite: [],
    pg: [
      `CREATE TABLE assent_key (
        id TEXT PRIMARY KEY NOT NULL,
        digest TEXT NOT NULL,
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        roles TEXT NOT NULL,
        may TEXT NOT NULL,
        created BIGINT NOT NULL,
        revoked BIGINT
      )`,
      `CREATE UNIQUE INDEX assent_key_digest ON assent_key (digest)`,
      `CREATE TABLE assent_tenant (tenant TEXT PRIMARY KEY NOT NULL, limits TEXT NOT NULL)`,
      `CREATE TABLE assent_node (
        address TEXT PRIMARY KEY NOT NULL,
        parts TEXT NOT NULL,
        since BIGINT NOT NULL,
        seen BIGINT NOT NULL,
        counts BIGINT NOT NULL
      )`,
      // The sessions of a tenant are those whose ids begin with its name.
      `CREATE INDEX assent_session_id ON assent_session (root COLLATE "C")`
    ]
  },
  // What a tenant used today is not less when it deletes a session.
  "0008_spent": [
    `CREATE TABLE assent_spent (root TEXT PRIMARY KEY NOT NULL, day INTEGER NOT NULL, tokens INTEGER NOT NULL)`
  ],
  // The questions for which a cluster called a webhook, as long as they are open.
  "0009_notified": {
    sqlite: [],
    pg: [`CREATE TABLE assent_notified (request TEXT PRIMARY KEY NOT NULL)`]
  },
  // What the nodes of a cluster prove to each other.
  "0010_node_secret": {
    sqlite: [],
    pg: [
      `CREATE TABLE assent_node_secret (number BIGINT PRIMARY KEY NOT NULL, secret TEXT NOT NULL, made BIGINT NOT NULL)`
    ]
  }
}

const migrations = Record.map(statements, all)

const migrate = Effect.suspend(() =>
  Effect.asVoid(Migrator.make({})({ loader: Migrator.fromRecord(migrations), table }))
)

/**
 * The migrator asks for its table with a statement that fails when there is none, and no other statement is taken in a
 * transaction after that.
 */
const ofMigratorInPostgres = (found: number): Effect.Effect<void, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const made = sql.unsafe(`CREATE TABLE IF NOT EXISTS ${table} (
      migration_id INTEGER PRIMARY KEY,
      created_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
      name TEXT NOT NULL
    )`)
    return found > 0 ? Effect.void : Effect.asVoid(made)
  })

/** Columns and keys of the tables of {@link latest}, as PostgreSQL describes them. */
const inPostgres: { readonly [name: string]: readonly [columns: string, keys: string] } = {
  [table]: [
    "migration_id integer NOT NULL, created_at timestamp with time zone NOT NULL, name text NOT NULL",
    "migration_id"
  ],
  assent_entry: [
    "root text NOT NULL, seq bigint NOT NULL, session text NOT NULL, at bigint NOT NULL, tag text NOT NULL, request text, body text NOT NULL, number bigint NOT NULL, xact xid8 NOT NULL",
    "root seq"
  ],
  assent_session: ["root text NOT NULL, summary text NOT NULL", "root"],
  assent_lock: [
    "root text NOT NULL, token text NOT NULL, pid bigint NOT NULL, host text NOT NULL, heartbeat bigint NOT NULL",
    "root"
  ],
  assent_answer: [
    "request text NOT NULL, root text NOT NULL, answer text NOT NULL, author text NOT NULL, at bigint NOT NULL",
    "request"
  ],
  assent_content: ["sha256 text NOT NULL, bytes bytea NOT NULL", "sha256"],
  assent_reference: ["root text NOT NULL, sha256 text NOT NULL, token text NOT NULL", "root sha256 token"],
  assent_audit: ["root text NOT NULL, seq bigint NOT NULL, line text NOT NULL", "root seq"],
  assent_audit_head: ["root text NOT NULL, head text NOT NULL", "root"],
  assent_key: [
    "id text NOT NULL, digest text NOT NULL, tenant text NOT NULL, subject text NOT NULL, roles text NOT NULL, may text NOT NULL, created bigint NOT NULL, revoked bigint",
    "id, digest"
  ],
  assent_tenant: ["tenant text NOT NULL, limits text NOT NULL", "tenant"],
  assent_spent: ["root text NOT NULL, day bigint NOT NULL, tokens bigint NOT NULL", "root"],
  assent_notified: ["request text NOT NULL", "request"],
  assent_node_secret: ["number bigint NOT NULL, secret text NOT NULL, made bigint NOT NULL", "number"],
  assent_node: [
    "address text NOT NULL, parts text NOT NULL, since bigint NOT NULL, seen bigint NOT NULL, counts bigint NOT NULL",
    "address"
  ]
}

/** The migrator's own table, as it makes it. */
const ofMigrator = `CREATE TABLE ${table} (
  migration_id integer PRIMARY KEY NOT NULL,
  created_at datetime NOT NULL DEFAULT current_timestamp,
  name VARCHAR(255) NOT NULL
)`

/** A statement's text without its layout. */
const normalized = (sql: string): string => sql.replace(/\s+/g, " ").replaceAll('"', "").trim()

/** As SQLite itself makes it for the first number that is given once. */
const ofNumbers = `CREATE TABLE sqlite_sequence(name,seq)`

/** Name, type and text of each object, also as older versions made it. */
const known: ReadonlySet<string> = new Set(
  [ofMigrator, ofNumbers, ...Object.values(statements).flatMap((all) => textsOf(all, "sqlite"))].map((statement) => {
    const [, type = "", name = ""] = /^CREATE (?:UNIQUE )?(TABLE|INDEX) (\w+)/.exec(statement) ?? []
    return `${name} ${type.toLowerCase()} ${normalized(statement)}`
  })
)

/** The index that SQLite makes itself for a primary key; it has no text. */
const isAutomatic = ({ name, sql, tbl_name, type }: SchemaObject): boolean =>
  type === "index" && sql === null && tables.has(tbl_name) && name === `sqlite_autoindex_${tbl_name}_1`

const tables: ReadonlySet<string> = new Set(Object.keys(inPostgres))
