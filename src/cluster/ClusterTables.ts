/**
 * The engine's tables, made by one node after the other: those that make them at once on an empty database fail, also with
 * IF NOT EXISTS.
 */
import * as MessageStorage from "@effect/cluster/MessageStorage"
import * as RunnerStorage from "@effect/cluster/RunnerStorage"
import type * as ShardingConfig from "@effect/cluster/ShardingConfig"
import * as SqlRunnerStorage from "@effect/cluster/SqlRunnerStorage"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Membership and shards. Messages are not kept: see `SessionEntity`. */
const runners = SqlRunnerStorage.layerWith({ prefix: "assent_cluster" })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/** Makes what is missing, and stores membership there. */
export const layer: Layer.Layer<
  MessageStorage.MessageStorage | RunnerStorage.RunnerStorage,
  SqlError,
  SqlClient.SqlClient | ShardingConfig.ShardingConfig
> = Layer.unwrapEffect(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const outside = yield* Effect.context<SqlClient.SqlClient | ShardingConfig.ShardingConfig>()
    // The lock is the transaction's: a node that dies here holds nothing. The tables are made outside of it.
    const made = Effect.mapInputContext(
      Effect.scoped(Layer.build(Layer.fresh(runners))),
      (_: Context.Context<never>) => outside
    )
    yield* sql.withTransaction(Effect.zipRight(sql`SELECT pg_advisory_xact_lock(${lock})`, made))
    return Layer.merge(runners, MessageStorage.layerNoop)
  })
)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Ours among the locks of a database. */
const lock = 0x61736e74
