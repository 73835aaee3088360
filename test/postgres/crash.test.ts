import * as Effect from "effect/Effect"
import { describe } from "vitest"
import * as PostgresStore from "../../src/store/PostgresStore.js"
import * as Mortal from "../kit/Mortal.js"
import * as Postgres from "../kit/Postgres.js"
import * as Runs from "../kit/Runs.js"
import { crashSuite } from "../suite/crashSuite.js"

describe.runIf(Postgres.isThere)("PostgreSQL", () => {
  crashSuite("a PostgreSQL database", {
    world: Effect.flatMap(Effect.orDie(Postgres.schema), (parameters) =>
      Mortal.worldOf((process) => PostgresStore.make({ url: Postgres.url(parameters), process }))
    ),
    every: Runs.isWhole ? 4 : 12,
    runs: Runs.of(16)
  })
})
