import * as Effect from "effect/Effect"
import { describe } from "vitest"
import type { Process } from "../../src/journal/SessionLease.js"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import * as Postgres from "../kit/Postgres.js"
import { sessionStoreSuite } from "../suite/sessionStoreSuite.js"

describe.runIf(Postgres.isThere)("PostgreSQL", () => {
  sessionStoreSuite("a PostgreSQL database", {
    make: Effect.map(
      Postgres.schema,
      (parameters) => (process: Process) => PostgresStore.make({ url: Postgres.url(parameters), process })
    ),
    runs: 15
  })
})
