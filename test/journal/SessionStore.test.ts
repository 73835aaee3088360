import * as Effect from "effect/Effect"
import * as SessionStore from "../../src/journal/SessionStore.js"
import { sessionStoreSuite } from "../suite/sessionStoreSuite.js"

sessionStoreSuite("memory", {
  make: Effect.map(SessionStore.makeMemory, (open) => (process) => Effect.succeed(open(process))),
  runs: 200
})
