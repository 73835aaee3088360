import * as Effect from "effect/Effect"
import * as Interactor from "../../src/interaction/Interactor.js"
import { wrapperSuite } from "../suite/wrapperSuite.js"

wrapperSuite("Interactor.serialized", (inner) => Effect.succeed(Interactor.serialized(inner)))
wrapperSuite("Interactor.withTimeout", (inner) =>
  Effect.succeed(Interactor.withTimeout(inner, { permission: "1 minute", clarification: "1 minute" }))
)
wrapperSuite("Interactor.withTimeout without a limit", (inner) => Effect.succeed(Interactor.withTimeout(inner, {})))
