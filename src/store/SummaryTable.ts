/**
 * Summaries of sessions in a SQL database, and pages of them in the order of the list.
 *
 * ```
 *  assent_session  root, summary        the summary is one JSON text
 *  assent_spent    root, day, tokens    of sessions that were deleted today
 * ```
 *
 * The indexes are over parts of that text, not over columns beside it. So they are right whoever writes it: also a
 * process of an older version, which does not know of them and still runs.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type * as Statement from "@effect/sql/Statement"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { SessionId } from "../core/Id.js"
import * as SessionLease from "../journal/SessionLease.js"
import * as SessionPage from "../journal/SessionPage.js"
import * as SessionSummary from "../journal/SessionSummary.js"
import type { Holder, StoreUnusable } from "../journal/StoreError.js"
import * as Dialect from "./Dialect.js"
import type * as SqlFailure from "./SqlFailure.js"

export interface SummaryTable {
  /** Undefined when there is none. */
  readonly get: (root: SessionId) => Effect.Effect<SessionSummary.SessionSummary | undefined, SqlError | StoreUnusable>
  readonly put: (summary: SessionSummary.SessionSummary) => Effect.Effect<unknown, SqlError>
  /** Last used first. */
  readonly all: Effect.Effect<ReadonlyArray<SessionSummary.Listed>, StoreUnusable>
  readonly page: (query?: SessionPage.Query) => Effect.Effect<SessionPage.Page, StoreUnusable>
  readonly tally: (prefix: string) => Effect.Effect<SessionPage.Tally, StoreUnusable>
  /** What the session spent today is counted on. */
  readonly remove: (summary: SessionSummary.SessionSummary, now: number) => Effect.Effect<void, SqlError>
  /** How many sessions have open requests: of an index, which no row is read for. */
  readonly waiting: Effect.Effect<number, StoreUnusable>
  /** The sessions that have open requests, or this one if it has some. */
  readonly open: (root: SessionId | undefined) => Effect.Effect<ReadonlyArray<SessionSummary.Listed>, StoreUnusable>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** `locker` is the process that reads. */
export const make = (
  sql: SqlClient.SqlClient,
  dialect: Dialect.Dialect,
  failure: SqlFailure.SqlFailure,
  locker: SessionLease.Process
): SummaryTable => {
  const parts = Dialect.summaryParts[dialect]
  const active = sql.literal(parts.active)
  const closed = sql.literal(parts.closed)
  const id = sql.literal(parts.id)
  const open = sql.literal(parts.open)
  const workspace = sql.literal(parts.workspace)

  /** Two conditions, so that an index begins there. */
  const beginsWith = (prefix: string) =>
    prefix === "" ? [] : [sql`${id} >= ${prefix}`, sql`substr(root, 1, ${[...prefix].length}) = ${prefix}`]

  const damaged = ({ root }: Row) => failure.damaged(`the summary of session ${root} is damaged`)

  const parsed = <R extends Row>(rows: ReadonlyArray<R>, holderOf: (row: R) => Holder | undefined) =>
    Effect.gen(function* () {
      const found: Array<SessionSummary.Listed> = []
      for (const row of rows) {
        const one = SessionSummary.parseListed(row.summary, holderOf(row))
        if (one === undefined) return yield* damaged(row)
        found.push(one)
      }
      return found
    })

  const holderAt = (now: number) => (row: LockRow) => SessionLease.holderOf(lockIn(row), locker, now)

  /** Sessions, and who runs them. */
  const joined = (rows: Statement.Fragment) =>
    sql<Row & LockRow>`SELECT s.root, s.summary, l.token, l.pid, l.host, l.heartbeat
      FROM (${rows}) s LEFT JOIN assent_lock l ON l.root = s.root`

  /** Without that join, which would add four columns to very many rows; the database would take longer to sort them too. */
  const all = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const rows = sql<Row>`SELECT root, summary FROM assent_session`
    const locks = sql<LockRow & Pick<Row, "root">>`SELECT root, token, pid, host, heartbeat FROM assent_lock`
    const found = yield* failure.reading(rows)
    const holders = new Map((yield* failure.reading(locks)).map((lock) => [lock.root, holderAt(now)(lock)]))
    return (yield* parsed(found, ({ root }) => holders.get(root))).sort(SessionSummary.byActivity)
  })

  const page = (query: SessionPage.Query) => {
    const { after, prefix = "", waiting = false } = query
    const limit = SessionPage.limitOf(query)
    const conditions = [
      ...(query.id === undefined ? [] : [sql`root = ${query.id}`]),
      ...beginsWith(prefix),
      ...(waiting ? [open, sql`NOT ${closed}`] : [])
    ]
    const first = (more: ReadonlyArray<Statement.Fragment>, order: Statement.Fragment) =>
      sql`SELECT root, summary, ${active} AS active FROM assent_session WHERE ${sql.and([...conditions, ...more])}
        ORDER BY ${order}, ${id} LIMIT ${Math.min(limit, most) + 1}`
    const ofAll = () =>
      first(
        // Two conditions, so that the index begins at that place.
        after === undefined
          ? []
          : [
              sql`${active} <= ${after.lastActivity}`,
              sql`(${active} < ${after.lastActivity} OR ${id} > ${after.rootSessionId})`
            ],
        // Few wait, and few begin with the same letters: found first, and put in order then. A plus keeps the database
        // from walking along the index of the order until it has met enough of them.
        waiting || prefix !== "" ? sql`+(${active}) DESC` : sql`${active} DESC`
      )
    // In an order that only the index of workspaces has, for the same reason.
    const passive = sql`-(${active})`
    const ofPlace = (place: Statement.Fragment) =>
      first(
        after === undefined
          ? [place]
          : [
              place,
              sql`${passive} >= ${-after.lastActivity}`,
              sql`(${passive} > ${-after.lastActivity} OR ${id} > ${after.rootSessionId})`
            ],
        passive
      )
    // A session belongs to one workspace or to none. Each has its part of the index.
    const wanted =
      query.workspace === undefined
        ? ofAll()
        : sql`SELECT * FROM (${ofPlace(sql`${workspace} = ${parts.workspaceKey(query.workspace)}`)}) a
            UNION ALL SELECT * FROM (${ofPlace(sql`${workspace} IS NULL`)}) b`
    return Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const rows = yield* failure.reading(sql<Row & LockRow>`${joined(wanted)} ORDER BY s.active DESC, s.${id}`)
      // One more was looked for, and is not read: its damage is the next page's.
      const sessions = yield* parsed(rows.slice(0, limit), holderAt(now))
      return { sessions, ...SessionPage.following(sessions, rows.length > limit) }
    })
  }

  return {
    get: (root) =>
      Effect.flatMap(sql<Row>`SELECT root, summary FROM assent_session WHERE root = ${root}`, ([row]) =>
        row === undefined
          ? Effect.succeed(undefined)
          : Either.fromNullable(SessionSummary.parse(row.summary), () => damaged(row))
      ),
    put: (summary) =>
      sql`INSERT INTO assent_session ${sql.insert({ root: summary.rootSessionId, summary: JSON.stringify(summary) })}
        ON CONFLICT (root) DO UPDATE SET summary = excluded.summary`,
    all,
    page: (query = {}) => page(query),
    tally: (prefix) =>
      Effect.gen(function* () {
        const day = SessionSummary.dayOf(yield* Clock.currentTimeMillis)
        const [row] = yield* failure.reading(
          sql<{ readonly [Count in keyof SessionPage.Tally]: number | string | null }>`
            SELECT count(*) AS sessions, sum(CASE WHEN ${sql.literal(parts.working)} THEN 1 ELSE 0 END) AS turns,
              coalesce(sum(${sql.literal(parts.spent(day))}), 0) + (SELECT coalesce(sum(tokens), 0) FROM assent_spent
                WHERE ${sql.and([sql`day = ${day}`, ...beginsWith(prefix)])}) AS tokens
            FROM assent_session WHERE ${sql.and([sql`1 = 1`, ...beginsWith(prefix)])}`
        )
        return {
          sessions: Number(row?.sessions ?? 0),
          turns: Number(row?.turns ?? 0),
          tokens: Number(row?.tokens ?? 0)
        }
      }),
    remove: (summary, now) =>
      Effect.gen(function* () {
        const day = SessionSummary.dayOf(now)
        yield* sql`DELETE FROM assent_spent WHERE day < ${day}`
        const row = { root: summary.rootSessionId, day, tokens: SessionSummary.spentOn(summary, day) }
        if (row.tokens > 0)
          yield* sql`INSERT INTO assent_spent ${sql.insert(row)}
            ON CONFLICT (root) DO UPDATE SET tokens = assent_spent.tokens + excluded.tokens`
        yield* sql`DELETE FROM assent_session WHERE root = ${row.root}`
      }),
    waiting: Effect.map(
      failure.reading(sql<{ readonly count: unknown }>`SELECT count(*) AS count FROM assent_session WHERE ${open}`),
      ([row]) => Number(row?.count ?? 0)
    ),
    open: (root) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const wanted = sql`SELECT root, summary FROM assent_session WHERE ${root === undefined ? open : sql`root = ${root}`}`
        const found = yield* parsed(yield* failure.reading(joined(wanted)), holderAt(now))
        return found.filter(({ open }) => open.length > 0)
      })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** As many as a statement can name. */
const most = 2 ** 52

interface Row {
  readonly root: SessionId
  readonly summary: string
}

/** A lock, if there is one. PostgreSQL gives numbers of 64 bits as text. */
interface LockRow {
  readonly token: string | null
  readonly host: string | null
  readonly pid: number | string | null
  readonly heartbeat: number | string | null
}

const lockIn = ({ heartbeat, host, pid, token }: LockRow): SessionLease.Row | undefined =>
  token === null ? undefined : { token, host: host ?? "", pid: Number(pid), heartbeat: Number(heartbeat) }
