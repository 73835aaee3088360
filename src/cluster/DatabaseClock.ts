/**
 * The time of the database, for all that a node says and waits for: what one node writes down, another one goes on with, and
 * the clocks of their machines may differ.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Dialect from "../store/Dialect.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Compared with the machine's clock now, and again until the scope closes. Durations are the machine's. */
export const make = (sql: SqlClient.SqlClient): Effect.Effect<Clock.Clock, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const machine = Clock.make()
    let ahead = 0
    const compare = Effect.gen(function* () {
      const before = machine.unsafeCurrentTimeMillis()
      const [row] = yield* sql<{ readonly now: string }>`SELECT ${sql.literal(Dialect.clock.pg)} AS now`
      const after = machine.unsafeCurrentTimeMillis()
      // An answer that took long says less.
      if (row !== undefined && after - before <= slow) ahead = Math.round(Number(row.now) - (before + after) / 2)
    })
    yield* compare
    yield* Effect.forkScoped(Effect.forever(Effect.zipRight(Effect.sleep(every), Effect.ignore(compare))))
    const now = () => machine.unsafeCurrentTimeMillis() + ahead
    return {
      [Clock.ClockTypeId]: Clock.ClockTypeId,
      unsafeCurrentTimeMillis: now,
      currentTimeMillis: Effect.sync(now),
      unsafeCurrentTimeNanos: () => machine.unsafeCurrentTimeNanos(),
      currentTimeNanos: machine.currentTimeNanos,
      sleep: (duration) => machine.sleep(duration)
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const every = Duration.seconds(30)

/** Milliseconds. */
const slow = 1_000
