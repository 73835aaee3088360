/**
 * Sessions in a PostgreSQL database, which several processes and hosts share.
 *
 * The tables lie in the first schema of the search path; other tables of the database are nobody's business here. What
 * has the name of one of ours must be as this program made it: a trigger, a view or a rule could answer in its place.
 *
 * ```ts
 * import { PostgresStore } from "assent/postgres"
 * import * as Redacted from "effect/Redacted"
 *
 * const store = PostgresStore.layer({
 *   url: Redacted.make("postgres://assent@db.example/assent"),
 *   process: { host: "worker-1", pid: 17, isAlive: () => true }
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as AuditArchive from "../audit/AuditArchive.js"
import type * as AuditChain from "../audit/AuditChain.js"
import type * as SessionLease from "../journal/SessionLease.js"
import * as SessionStore from "../journal/SessionStore.js"
import type { StoreUnusable, StoreUnwritable } from "../journal/StoreError.js"
import * as AuditTable from "./AuditTable.js"
import * as Migrations from "./Migrations.js"
import * as PostgresConnection from "./PostgresConnection.js"
import * as SqlFailure from "./SqlFailure.js"
import * as SqlSessionStore from "./SqlSessionStore.js"

/**
 * The database, and the process that takes leases there.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** `postgres://user:password@host:port/database`; its parameters are those of `pg`. */
  readonly url: Redacted.Redacted
  /** Connections that are open at once. Default: 4. */
  readonly maxConnections?: number | undefined
  /** Milliseconds for which the server may be silent before it counts as gone. Default: 15000. */
  readonly silentAfter?: number | undefined
  /** The process that takes leases here. */
  readonly process: SessionLease.Process
  /** Seals the audit, which the store keeps if its leases are fences. */
  readonly auditKey?: AuditChain.Key | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Opens the store, and makes its tables if they are missing. Several processes may do that at once.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<SessionStore.Service, StoreUnusable | StoreUnwritable, Scope.Scope> =>
  Effect.gen(function* () {
    const name = nameOf(options.url)
    const client = yield* SqlFailure.make(name).reading(PostgresConnection.open(options))
    return yield* Effect.provideService(over({ ...options, name }), SqlClient.SqlClient, client)
  })

/**
 * The store over a client of the program, which shares its connections and transactions. Several processes may make the
 * tables at once.
 *
 * @since 0.1.0
 * @category constructors
 */
export const over = (
  options: Pick<Options, "process" | "auditKey"> & {
    /** The store's name in messages. Default: `in PostgreSQL`. */
    readonly name?: string | undefined
  }
): Effect.Effect<SqlSessionStore.FencedStore, StoreUnusable | StoreUnwritable, SqlClient.SqlClient | Scope.Scope> =>
  Effect.gen(function* () {
    const { auditKey, name = "in PostgreSQL", process } = options
    const failure = SqlFailure.make(name)
    yield* inspect(failure)
    const store = yield* SqlSessionStore.make({ auditKey, process, name })
    // Again: another process may have made them between the two.
    yield* inspect(failure)
    return store
  })

/**
 * The audit that the stores of a cluster keep in the database, to read. Undefined if the database has none.
 *
 * @internal
 */
export const audit = (
  url: Redacted.Redacted
): Effect.Effect<AuditArchive.Source | undefined, StoreUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    const failure = SqlFailure.make(nameOf(url))
    const sql = yield* failure.reading(PostgresConnection.open({ url, maxConnections: 1 }))
    const version = yield* failure.reading(Effect.provideService(Migrations.version, SqlClient.SqlClient, sql))
    if (version > Migrations.latest) return yield* failure.newer(version, Migrations.latest)
    return version < Migrations.auditing ? undefined : AuditTable.make(sql, failure)
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * A store in a PostgreSQL database; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<SessionStore.SessionStore, StoreUnusable | StoreUnwritable> =>
  Layer.scoped(SessionStore.SessionStore, make(options))

/**
 * Like {@link layer}, with settings from `Config`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  options: Config.Config.Wrap<Options>
): Layer.Layer<SessionStore.SessionStore, StoreUnusable | StoreUnwritable | ConfigError.ConfigError> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(options), layer))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Where it is, without user and password.
 *
 * @internal
 */
export const nameOf = (url: Redacted.Redacted): string => {
  // A socket has a directory for a host, and that is a parameter.
  const text = Redacted.value(url).replace("@/", "@socket/")
  if (!URL.canParse(text)) return "in PostgreSQL"
  const { host, pathname, searchParams } = new URL(text)
  return `postgres://${searchParams.get("host") ?? host}${pathname}`
}

const remedy = "Choose another schema or database."

/** Looks only, so that what is not ours is left as it is. */
const inspect = (failure: SqlFailure.SqlFailure) =>
  Effect.gen(function* () {
    const [place] = yield* failure.reading(schema)
    if (place?.name == null) {
      return yield* failure.foreign("no schema of its search path exists", "Create the schema, or choose another.")
    }
    const { relations, version } = yield* failure.reading(Migrations.present)
    if (version > Migrations.latest) return yield* failure.newer(version, Migrations.latest)
    const stranger = Migrations.strange(relations, version)
    if (stranger !== undefined) return yield* failure.foreign(stranger, remedy)
  })

const schema = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly name: string | null }>`SELECT current_schema() AS name`
)
