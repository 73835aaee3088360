/**
 * Where PostgreSQL differs from SQLite for a session store.
 *
 * SQLite has one writer at a time, so a transaction that looks and then writes is one step. In PostgreSQL another
 * transaction can come in between: whoever looks and then writes takes a lock on the session first.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Digest from "../core/Digest.js"

/** The databases in which sessions are kept. */
export type Dialect = "sqlite" | "pg"

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Undefined for a database in which sessions cannot be kept. */
export const of = (sql: SqlClient.SqlClient): Dialect | undefined =>
  sql.onDialectOrElse({
    sqlite: (): Dialect | undefined => "sqlite",
    pg: (): Dialect | undefined => "pg",
    orElse: () => undefined
  })

/**
 * Holds what these names stand for until the transaction ends, which this must be the first statement of. Others that
 * hold one of them wait. Does nothing in SQLite. Content comes before sessions, so that no two wait for each other.
 *
 * It also sets the isolation. A stricter one shows the transaction what was there before it waited, which is what it
 * waits in order not to see.
 */
export const hold = (sql: SqlClient.SqlClient, ...names: ReadonlyArray<string>): Effect.Effect<void, SqlError> =>
  of(sql) === "pg"
    ? Effect.asVoid(
        sql.unsafe(
          [
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            ...names.map((name) => `SELECT pg_advisory_xact_lock(${space}, ${keyOf(name)})`)
          ].join("; ")
        )
      )
    : Effect.void

/** The database's clock, in milliseconds since the epoch. */
export const clock: { readonly [D in Dialect]: string } = {
  sqlite: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
  pg: "(extract(epoch from clock_timestamp()) * 1000)::bigint"
}

/** What a list asks of a stored summary, which is one JSON text. */
export interface SummaryParts {
  /** Milliseconds since the epoch; 0 in a summary that is damaged. */
  readonly active: string
  /** Null when there is none. */
  readonly workspace: string
  /** How `workspace` is compared. */
  readonly workspaceKey: (workspace: string) => string
  /** Whether it has open requests. */
  readonly open: string
  /** Whether it ended by itself. */
  readonly closed: string
  /** Whether it is in a turn, and nobody is waited for. */
  readonly working: string
  /** Tokens of this day. No index has it. */
  readonly spent: (day: number) => string
  /** The session's id, in the order of its characters' numbers. */
  readonly id: string
}

/**
 * Expressions over a row of `assent_session`. The indexes of migration 3 are made of exactly these texts, so they stay
 * as they are. None of them fails on a damaged summary: one such row would keep the whole store from being opened.
 */
export const summaryParts: { readonly [D in Dialect]: SummaryParts } = {
  sqlite: {
    active: "coalesce(CASE WHEN json_valid(summary) THEN json_extract(summary, '$.lastActivity') END, 0)",
    workspace: "CASE WHEN json_valid(summary) THEN json_extract(summary, '$.workspace') END",
    workspaceKey: (workspace) => workspace,
    // As `JSON.stringify` writes it; a text in it has its quotes escaped.
    open: `instr(summary, '"open":[]') = 0`,
    closed: `instr(summary, '"closed":true') > 0`,
    working: `instr(summary, '"inTurn":true') > 0 AND instr(summary, '"open":[]') > 0`,
    spent: (day) =>
      `CASE WHEN json_valid(summary) AND json_extract(summary, '$.spent.day') = ${day} THEN json_extract(summary, '$.spent.tokens') ELSE 0 END`,
    id: "root"
  },
  pg: {
    // Split first: a pattern that has to be looked for takes five times as long.
    active: `coalesce(substring(split_part(summary, '"lastActivity":', 2) from '^-?[0-9]+')::numeric, 0)`,
    workspace: String.raw`substring(split_part(summary, '"workspace":', 2) from '^"(?:[^"\\]|\\.)*"')`,
    workspaceKey: (workspace) => JSON.stringify(workspace),
    open: `strpos(summary, '"open":[]') = 0`,
    closed: `strpos(summary, '"closed":true') > 0`,
    working: `strpos(summary, '"inTurn":true') > 0 AND strpos(summary, '"open":[]') > 0`,
    spent: (day) =>
      `coalesce(substring(split_part(summary, '"spent":{"day":${day},"tokens":', 2) from '^[0-9]{1,15}')::bigint, 0)`,
    id: 'root COLLATE "C"'
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Keeps our locks apart from those of other programs in the same database. */
const space = 0x61736e74

/** 32 bits with a sign. Two names with one key only wait for each other. */
const keyOf = (name: string): number => Number.parseInt(Digest.sha256(name).slice(0, 8), 16) | 0
