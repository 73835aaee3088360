import * as Effect from "effect/Effect"
import { describe, it } from "vitest"
import type { Process } from "../../src/journal/SessionLease.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import * as SessionStoreSuite from "../../src/testing/SessionStoreSuite.js"
import * as Postgres from "../kit/Postgres.js"
import { persistenceSuite } from "../suite/persistenceSuite.js"
import { sessionStoreSuite } from "../suite/sessionStoreSuite.js"

const fresh = Effect.map(
  Postgres.schema,
  (parameters) => (process: Process) => PostgresStore.make({ url: Postgres.url(parameters), process })
)

describe.runIf(Postgres.isThere)("PostgreSQL", () => {
  sessionStoreSuite("a PostgreSQL database", { make: fresh, runs: 15 })
  persistenceSuite("a PostgreSQL database", { make: fresh })

  // Rows are read up to the first transaction that has not ended. Other files have some open in the same database, for a while.
  for (const { check, name } of SessionStoreSuite.make({ fresh }))
    it(name, { retry: 5 }, () => Effect.runPromise(check))
})
