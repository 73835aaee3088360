import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Process } from "../../src/journal/SessionLease.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as SessionStoreSuite from "../../src/testing/SessionStoreSuite.js"
import * as Runs from "../kit/Runs.js"
import { sessionStoreSuite } from "../suite/sessionStoreSuite.js"

const fresh = Effect.map(SessionStore.makeMemory, (open) => (process: Process) => Effect.succeed(open(process)))

sessionStoreSuite("memory", { make: fresh, runs: Runs.of(200) })

describe("memory, by the kit for stores", () => {
  for (const { check, name } of SessionStoreSuite.make({ fresh })) it(name, () => Effect.runPromise(check))
})
