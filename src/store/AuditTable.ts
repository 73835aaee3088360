/**
 * The audit of sessions in a SQL database: a row for each line of a trail, and one for its head.
 *
 * ```
 *  assent_audit       root, seq, line      as in the files of `AuditChain`
 *  assent_audit_head  root, head
 * ```
 *
 * The process that has the session's lease adds to the chain, in the statement that writes the entries which the decisions
 * are about. So the chain of a process that died ends with the last decision of its journal.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as AuditArchive from "../audit/AuditArchive.js"
import { AuditBroken } from "../audit/AuditBroken.js"
import * as AuditChain from "../audit/AuditChain.js"
import * as AuditRecord from "../audit/AuditRecord.js"
import type { SessionId } from "../core/Id.js"
import { StoreUnwritable } from "../journal/StoreError.js"
import type * as SqlFailure from "./SqlFailure.js"

/** What is written of decisions. */
export interface Addition {
  /** The chain's end with them. */
  readonly last: AuditChain.Link
  /** Further parts of a statement that has the lease as `held`. */
  readonly beside: Fragment
  /** The same in a transaction. */
  readonly put: Effect.Effect<void, SqlError>
}

export interface AuditTable extends AuditArchive.Source {
  /** The end of the session's chain. Fails when it does not fit its head: nothing is added to what somebody changed. */
  readonly last: (root: SessionId) => Effect.Effect<AuditChain.Link, SqlError | StoreUnwritable>
  /** Takes back what was added behind this end by a commit that failed, as far as the database has it. */
  readonly back: (root: SessionId, last: AuditChain.Link) => Effect.Effect<void, SqlError>
  readonly addition: (
    root: SessionId,
    last: AuditChain.Link,
    decisions: ReadonlyArray<AuditRecord.Decision>,
    at: number
  ) => Addition
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (sql: SqlClient.SqlClient, failure: SqlFailure.SqlFailure, key?: AuditChain.Key): AuditTable => {
  const files = (sessionId: SessionId): AuditChain.Files => ({
    trail: `the audit of ${sessionId} in the database`,
    head: `the head of the audit of ${sessionId} in the database`,
    sessionId
  })
  const textOf = (sessionId: SessionId, { hash, seq }: AuditChain.Link) =>
    AuditChain.renderHead({ sessionId, directory: "assent_audit", count: seq, hash }, key)
  const headOf = (root: SessionId) =>
    Effect.map(
      sql<{ readonly head: string }>`SELECT head FROM assent_audit_head WHERE root = ${root}`,
      ([row]) => row && new TextEncoder().encode(row.head)
    )
  const lines = (root: SessionId, after: number, limit: number) =>
    sql<Row>`SELECT seq, line FROM assent_audit WHERE root = ${root} AND seq > ${after} ORDER BY seq LIMIT ${limit}`
  const reading = <A>(file: string, effect: Effect.Effect<A, SqlError>) =>
    Effect.mapError(
      failure.reading(effect),
      ({ message }) => new AuditBroken({ file, problem: "inaccessible", reason: message.replace(/\.$/, "") })
    )

  return {
    name: "the database",
    files,
    head: (root) => reading(files(root).head, headOf(root)),
    eachLine: (root, take) =>
      Effect.gen(function* () {
        let after = 0
        for (;;) {
          const rows = yield* reading(files(root).trail, lines(root, after, page))
          for (const { line } of rows) yield* take(new TextEncoder().encode(line))
          const [last] = rows.slice(-1)
          if (last === undefined) return after === 0 ? undefined : 0
          after = Number(last.seq)
        }
      }),
    sessions: Effect.map(
      reading(
        "assent_audit",
        sql<{
          readonly root: SessionId
        }>`SELECT root FROM assent_audit_head UNION SELECT root FROM assent_audit ORDER BY 1`
      ),
      (rows) => rows.map(({ root }) => root)
    ),
    last: (root) =>
      Effect.gen(function* () {
        const [row] = yield* sql<Row>`
          SELECT seq, line FROM assent_audit WHERE root = ${root} ORDER BY seq DESC LIMIT 1`
        const end = AuditChain.endOf({ files: files(root), head: yield* headOf(root), line: row?.line }, key)
        return yield* Either.mapLeft(
          end,
          ({ message }) =>
            new StoreUnwritable({
              store: "in PostgreSQL",
              reason: `nothing can be added to an audit that was changed: ${message.replace(/\.$/, "")}`,
              remedy: `Verify the audit of ${root} to see what was changed.`
            })
        )
      }),
    back: (root, { hash, seq }) =>
      Effect.zipRight(
        sql`DELETE FROM assent_audit WHERE root = ${root} AND seq > ${seq}`,
        seq === 0
          ? sql`DELETE FROM assent_audit_head WHERE root = ${root}`
          : sql`UPDATE assent_audit_head SET head = ${textOf(root, { hash, seq })} WHERE root = ${root}`
      ),
    addition: (root, before, decisions, at) => {
      const [first] = decisions
      const opened = AuditRecord.opened(root, at, key && AuditChain.fingerprint(key), first?.forkOf)
      const contents = decisions.map(({ decided }) => decided)
      const rows: Array<{ readonly root: SessionId; readonly seq: number; readonly line: string }> = []
      let last = before
      for (const content of before.seq === 0 ? [opened, ...contents] : contents) {
        const { line, link } = AuditChain.append(last, content, key)
        last = link
        rows.push({ root, seq: link.seq, line: line.trimEnd() })
      }
      const head = textOf(root, last)
      const values = rows.map(({ line, seq }) => sql`(${seq}::bigint, ${line}::text)`)
      return {
        last,
        beside: sql`,
            audited AS (INSERT INTO assent_audit (root, seq, line)
              SELECT held.root, a.* FROM held, (VALUES ${sql.csv(values)}) a),
            sealed AS (INSERT INTO assent_audit_head (root, head) SELECT root, ${head}::text FROM held
              ON CONFLICT (root) DO UPDATE SET head = excluded.head)`,
        put: Effect.zipRight(
          sql`INSERT INTO assent_audit ${sql.insert(rows)}`,
          sql`INSERT INTO assent_audit_head ${sql.insert({ root, head })}
            ON CONFLICT (root) DO UPDATE SET head = excluded.head`
        )
      }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Row = { readonly seq: number | string; readonly line: string }

/** Rows that are read at once. */
const page = 1_000
