import * as Effect from "effect/Effect"
import * as SessionStore from "../../src/journal/SessionStore.js"
import { persistenceSuite } from "../suite/persistenceSuite.js"

persistenceSuite("memory", {
  make: Effect.map(SessionStore.makeMemory, (open) => (process) => Effect.succeed(open(process)))
})
