/**
 * The tables of a session store, and how a database of an older version gets them. SQLite's dialect.
 *
 * @since 0.1.0
 */
import * as Migrator from "@effect/sql/Migrator"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Record from "effect/Record"

/**
 * The last migration: the version of the tables.
 *
 * @since 0.1.0
 * @category constants
 */
export const latest = 1

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
export const run: Effect.Effect<void, Migrator.MigrationError | SqlError, SqlClient.SqlClient> = Effect.suspend(() =>
  Effect.asVoid(Migrator.make({})({ loader: Migrator.fromRecord(migrations), table }))
)

/**
 * The last migration that has run here; 0 when none has. Reads only.
 *
 * @since 0.1.0
 * @category operations
 */
export const version: Effect.Effect<number, SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql`SELECT name FROM sqlite_master WHERE type = 'table' AND name = ${table}`
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
    return isTwice || !(isAutomatic(object) || (sql !== null && known.get(name) === `${type} ${normalized(sql)}`))
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const all = (statements: ReadonlyArray<string>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
  )

// A migration is never edited: a change is a new migration. Every column name is one word, so that no client's name
// transformation changes it.
const statements = {
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
  ]
}

const migrations = Record.map(statements, all)

/** The migrator's own table, as it makes it. */
const ofMigrator = `CREATE TABLE ${table} (
  migration_id integer PRIMARY KEY NOT NULL,
  created_at datetime NOT NULL DEFAULT current_timestamp,
  name VARCHAR(255) NOT NULL
)`

/** A statement's text without its layout. */
const normalized = (sql: string): string => sql.replace(/\s+/g, " ").replaceAll('"', "").trim()

const known: ReadonlyMap<string, string> = new Map(
  [ofMigrator, ...Object.values(statements).flat()].map((sql) => {
    const [, type = "", name = ""] = /^CREATE (?:UNIQUE )?(TABLE|INDEX) (\w+)/.exec(sql) ?? []
    return [name, `${type.toLowerCase()} ${normalized(sql)}`]
  })
)

/** The index that SQLite makes itself for a primary key; it has no text. */
const isAutomatic = ({ name, sql, tbl_name, type }: SchemaObject): boolean =>
  type === "index" && sql === null && known.has(tbl_name) && name === `sqlite_autoindex_${tbl_name}_1`
