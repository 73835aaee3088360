/**
 * The open questions of all sessions of a cluster, for its webhook: one node at a time looks, and notes in the database for
 * which ones it called. A node that dies in a call leaves it to the next one, which calls with the same `Idempotency-Key`.
 */
import * as Singleton from "@effect/cluster/Singleton"
import type * as Sharding from "@effect/cluster/Sharding"
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Notifications from "../http/Notifications.js"
import * as Dialect from "../store/Dialect.js"

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/** Calls the webhook while this node is the one that looks. */
export const layer = (
  sql: SqlClient.SqlClient,
  options: Notifications.Options
): Layer.Layer<never, never, Sharding.Sharding> =>
  Layer.unwrapEffect(
    // The engine runs it, and its fibers know nothing of the database's time.
    Effect.map(Effect.clock, (clock) =>
      Singleton.make(
        "Notifications",
        Effect.zipRight(Notifications.call(options, make(sql, Duration.toMillis(options.after))), Effect.never).pipe(
          Effect.scoped,
          Effect.withClock(clock)
        )
      )
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Those that wait for about `after` milliseconds. */
const make = (sql: SqlClient.SqlClient, after: number): Notifications.Questions => {
  const { closed, open } = Dialect.summaryParts.pg
  // Without parsing the JSON: one damaged summary would keep all others from being found.
  const ids = `regexp_matches(split_part(split_part(s.summary, '"open":[', 2), ']', 1),
    '"requestId":"([^"]+)","kind":"([^"]+)"', 'g')`
  const found = sql<Row>`
    SELECT s.root AS session, o.id[1] AS request, o.id[2] AS kind, min(e.at) AS since
    FROM (SELECT root, summary FROM assent_session WHERE ${sql.literal(open)} AND NOT ${sql.literal(closed)}) s
      CROSS JOIN LATERAL ${sql.literal(ids)} o(id)
      JOIN assent_entry e ON e.request = o.id[1] AND e.tag = 'InteractionRaised'
    WHERE NOT EXISTS (SELECT 1 FROM assent_notified n WHERE n.request = o.id[1])
    GROUP BY 1, 2, 3 HAVING min(e.at) <= ${sql.literal(Dialect.clock.pg)} - ${Math.floor(after / 2)}
    ORDER BY since LIMIT ${most}`
  const over = sql`DELETE FROM assent_notified n
    WHERE NOT EXISTS (SELECT 1 FROM assent_entry e WHERE e.request = n.request)
      OR EXISTS (SELECT 1 FROM assent_entry e WHERE e.request = n.request AND e.tag = 'InteractionSettled')`
  return {
    waiting: Effect.zipRight(over, found).pipe(
      Effect.map(
        (rows) =>
          new Map(rows.map(({ kind, request, session, since }) => [request, { kind, session, since: Number(since) }]))
      ),
      // A database that cannot be asked now is asked a little later.
      Effect.orElseSucceed(() => undefined)
    ),
    called: (request) =>
      Effect.ignoreLogged(sql`INSERT INTO assent_notified ${sql.insert({ request })} ON CONFLICT DO NOTHING`)
  }
}

/** Questions of one look. Those that wait the longest come first. */
const most = 1_000

interface Row {
  readonly session: string
  readonly request: string
  readonly kind: string
  /** PostgreSQL gives numbers of 64 bits as text. */
  readonly since: number | string
}
