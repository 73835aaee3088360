import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { describe } from "vitest"
import * as Postgres from "../kit/Postgres.js"
import { repeatedRunSuite } from "../suite/repeatedRunSuite.js"

describe.runIf(Postgres.isThere)("PostgreSQL", () => {
  repeatedRunSuite("a PostgreSQL database", () =>
    Effect.map(Effect.orDie(Postgres.schema), (parameters) => Redacted.value(Postgres.url(parameters)))
  )
})
