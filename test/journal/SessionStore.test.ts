import * as Effect from "effect/Effect"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Runs from "../kit/Runs.js"
import { sessionStoreSuite } from "../suite/sessionStoreSuite.js"

sessionStoreSuite("memory", {
  make: Effect.map(SessionStore.makeMemory, (open) => (process) => Effect.succeed(open(process))),
  runs: Runs.of(200)
})
