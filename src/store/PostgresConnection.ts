/**
 * A SQL client for PostgreSQL that always comes back: a socket on which nothing comes or goes for too long is closed,
 * because a network that drops packets tells nobody. So a server that falls silent costs a time limit, not the agent.
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as PgClient from "@effect/sql-pg/PgClient"
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { Socket } from "node:net"

/** The server, and how much is asked of it at once. */
export interface Options {
  readonly url: Redacted.Redacted
  readonly maxConnections?: number | undefined
  /** Milliseconds. */
  readonly silentAfter?: number | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Connects. The scope closes the connections. */
export const open = ({
  maxConnections = 4,
  silentAfter = 15_000,
  url
}: Options): Effect.Effect<SqlClient.SqlClient, SqlError, Scope.Scope> =>
  PgClient.make({
    url,
    maxConnections,
    applicationName: "assent",
    connectTimeout: silentAfter,
    // Before its socket counts as silent.
    idleTimeout: Math.min(10_000, silentAfter / 2),
    stream: () => watched(silentAfter)
  }).pipe(Effect.provide(Reactivity.layer))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const watched = (silentAfter: number): Socket => {
  const socket = new Socket()
  return socket.setTimeout(silentAfter, () =>
    socket.destroy(Object.assign(new Error("the server is silent"), { code: "ETIMEDOUT" }))
  )
}
