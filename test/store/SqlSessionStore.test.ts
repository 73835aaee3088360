import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import { describe, it } from "vitest"
import type { Process } from "../../src/journal/SessionLease.js"
import * as LibsqlStore from "../../src/store/LibsqlStore.js"
import * as SessionStoreSuite from "../../src/testing/SessionStoreSuite.js"
import { persistenceSuite } from "../suite/persistenceSuite.js"
import { sessionStoreSuite } from "../suite/sessionStoreSuite.js"

const fresh = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const directory = yield* fs.makeTempDirectoryScoped({ prefix: "assent-store-" })
  const context = yield* Effect.context<NodeContext.NodeContext>()
  return (process: Process) =>
    Effect.provide(LibsqlStore.make({ file: `${directory}/a b#%/assent.db`, process }), context)
}).pipe(Effect.provide(NodeContext.layer))

sessionStoreSuite("a SQLite file", { make: fresh, runs: 15 })
persistenceSuite("a SQLite file", { make: fresh })

describe("a SQLite file, by the kit for stores", () => {
  for (const { check, name } of SessionStoreSuite.make({ fresh })) it(name, () => Effect.runPromise(check))
})
