/**
 * The entries of all sessions of a SQL database in the order in which they were appended.
 *
 * SQLite has one writer at a time: `number` rises from commit to commit, and is never given twice.
 *
 * In PostgreSQL several transactions append at once, and the one that began first may end last. There the order is that of
 * the transactions (`xact`), and within one that of `number`. Rows are read up to the first transaction that has not ended,
 * so none is ever added before a place that was read. Transactions of other databases do not count: they write nothing here.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type * as Statement from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as RcRef from "effect/RcRef"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Digest from "../core/Digest.js"
import type { SessionId } from "../core/Id.js"
import * as SessionStore from "../journal/SessionStore.js"
import * as StoreError from "../journal/StoreError.js"
import type * as Dialect from "./Dialect.js"
import * as EntryRow from "./EntryRow.js"
import * as Migrations from "./Migrations.js"
import type * as SqlFailure from "./SqlFailure.js"

export interface AppendOrder extends Pick<SessionStore.Service, "appends" | "end" | "readAll"> {
  /** For after a commit. */
  readonly tell: (root: SessionId) => void
  /**
   * Takes the rows of a database that another server made to the beginning of the order. Its transactions had numbers that
   * this server gives only later, or to others.
   */
  readonly adopt: Effect.Effect<void, SqlError>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (
  sql: SqlClient.SqlClient,
  dialect: Dialect.Dialect,
  failure: SqlFailure.SqlFailure
): Effect.Effect<AppendOrder, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { adopt, beginning, between, ends, order, place } = orders[dialect](sql)
    const hints = new SessionStore.Hints()

    // When the tables were made: a cursor of another database under the same name says nothing here.
    let known: string | undefined
    const mark = Effect.suspend(() =>
      known === undefined
        ? Effect.map(
            sql<{ readonly made: unknown }>`SELECT created_at AS made FROM ${sql(Migrations.table)}
            WHERE migration_id = ${Migrations.ordering}`,
            ([row]) => (known = Digest.sha256(JSON.stringify(row)).slice(0, 8))
          )
        : Effect.succeed(known)
    )

    const end = Effect.map(Effect.all([mark, ends]), ([mark, { last }]) => SessionStore.cursorOf(mark, ...last))

    /** The rows behind a cursor that can be read now. */
    const rowsBehind = (after: SessionStore.Cursor | undefined) =>
      Effect.gen(function* () {
        const own = yield* mark
        const { last, next } = yield* ends
        const place =
          after === undefined
            ? beginning
            : SessionStore.numbersIn(after, own, beginning.length)?.map((one) => String(one))
        if (place === undefined || BigInt(place[0] ?? 0) > BigInt(next))
          return yield* new StoreError.CursorUnknown({ cursor: after ?? "" })
        return { between: between(place, last), last: SessionStore.cursorOf(own, ...last), mark: own }
      })

    /** The sessions to which others append. They send no hints, so that the database is asked once a second. */
    const elsewhere = Effect.gen(function* () {
      let last = Option.getOrUndefined(yield* Effect.option(end))
      const look = Effect.gen(function* () {
        const rows = yield* rowsBehind(last)
        const roots = yield* sql<{
          readonly root: SessionId
        }>`SELECT DISTINCT root FROM assent_entry WHERE ${rows.between}`
        last = rows.last
        for (const { root } of roots) hints.tell(root)
      })
      // A hint that is not to be had now is had later.
      yield* Effect.forkScoped(Effect.forever(Effect.ignore(Effect.delay(look, "1 second"))))
    })

    /** Once all that had begun until now has ended: before that, what was appended may stand behind it, unread. */
    const settled = Effect.flatMap(ends, ({ next }) =>
      Effect.repeat(ends, {
        until: ({ last: [last = "0"] }) => BigInt(last) >= BigInt(next),
        schedule: Schedule.spaced("20 millis")
      })
    )

    /** Own appends that those who read all may not have been able to read yet. Open while there are some. */
    const unsettled = { roots: new Set<SessionId>(), latch: Effect.unsafeMakeLatch(false) }
    /** A second hint, for those who read all. */
    const again = Effect.gen(function* () {
      yield* unsettled.latch.await
      unsettled.latch.unsafeClose()
      const roots = [...unsettled.roots]
      unsettled.roots.clear()
      yield* Effect.ignore(settled)
      for (const root of roots) hints.tell(root)
    })

    /** While somebody listens, once for all of them. */
    const listening = yield* RcRef.make({
      acquire: Effect.zipRight(elsewhere, dialect === "sqlite" ? Effect.void : Effect.forkScoped(Effect.forever(again)))
    })

    return {
      adopt,
      tell: (root) => {
        hints.tell(root)
        if (!hints.isHeard || dialect === "sqlite") return
        unsettled.roots.add(root)
        unsettled.latch.unsafeOpen()
      },
      end: failure.reading(end),
      readAll: Effect.fn("SessionStore.readAll")(function* (behind: SessionStore.BehindAll = {}) {
        const rows = yield* failure.reading(rowsBehind(behind.after))
        const found = yield* failure.reading(
          sql<Row>`SELECT ${place} AS place, root, seq, session, at, body FROM assent_entry
          WHERE ${rows.between} ORDER BY ${order} LIMIT ${SessionStore.limitOfAll(behind)}`
        )
        return found.map(({ place, root, ...row }): SessionStore.Appended => ({
          rootSessionId: root,
          cursor: SessionStore.cursorOf(rows.mark, place),
          written: EntryRow.decode(root, row)
        }))
      }),
      // Before the database is asked: so no append in between is missed.
      appends: Effect.zipLeft(hints.appends, RcRef.get(listening))
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Numbers from 64 bits, as text. */
type Numbers = ReadonlyArray<string>

type Row = EntryRow.Stored & { readonly place: string | number; readonly root: SessionId }

/** How rows stand in a dialect. */
interface Order {
  /** Before all rows. */
  readonly beginning: Numbers
  /** Up to where rows can be read, and the number that no row has reached. */
  readonly ends: Effect.Effect<{ readonly last: Numbers; readonly next: string }, SqlError>
  /** Behind the one place, and not behind the other. */
  readonly between: (after: Numbers, last: Numbers) => Statement.Fragment
  readonly order: Statement.Fragment
  /** The numbers of a row, with dots in between. */
  readonly place: Statement.Fragment
  readonly adopt: Effect.Effect<void, SqlError>
}

const orders: { readonly [D in Dialect.Dialect]: (sql: SqlClient.SqlClient) => Order } = {
  sqlite: (sql) => ({
    beginning: ["0"],
    // The greatest number that was ever given: those of rows that are deleted are not given again.
    ends: Effect.map(
      sql<{ readonly seq: number }>`SELECT seq FROM sqlite_sequence WHERE name = 'assent_entry'`,
      ([row]) => ({ last: [String(row?.seq ?? 0)], next: String(row?.seq ?? 0) })
    ),
    between: ([after = "0"], [last = "0"]) => sql`number > ${Number(after)} AND number <= ${Number(last)}`,
    order: sql`number`,
    place: sql`number`,
    adopt: Effect.void
  }),
  pg: (sql) => ({
    beginning: ["0", "0"],
    ends: Effect.map(
      sql<{ readonly last: string; readonly next: string }>`
        SELECT coalesce(
            (SELECT x FROM pg_snapshot_xip(pg_current_snapshot()) x WHERE NOT EXISTS (
              SELECT 1 FROM pg_stat_activity a JOIN pg_database d ON d.oid = a.datid
              WHERE a.backend_xid = x::xid AND d.datname <> current_database())
              ORDER BY x LIMIT 1),
            pg_snapshot_xmax(pg_current_snapshot()))::text AS last,
          pg_snapshot_xmax(pg_current_snapshot())::text AS next`,
      ([row]) => ({ last: [row?.last ?? "0", "0"], next: row?.next ?? "0" })
    ),
    between: ([xact = "0", number = "0"], [last = "0"]) =>
      sql`(xact, number) > (${xact}::xid8, ${number}::bigint) AND xact < ${last}::xid8`,
    order: sql`xact, number`,
    place: sql`xact::text || '.' || number`,
    // Looks first: whoever may only read must not fail here.
    adopt: Effect.flatMap(
      sql`SELECT 1 FROM assent_entry WHERE xact >= pg_snapshot_xmax(pg_current_snapshot()) LIMIT 1`,
      (foreign) =>
        foreign.length === 0
          ? Effect.void
          : Effect.asVoid(sql`UPDATE assent_entry SET xact = '0' WHERE xact >= pg_snapshot_xmax(pg_current_snapshot())`)
    )
  })
}
