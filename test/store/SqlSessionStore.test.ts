import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import type { Process } from "../../src/journal/SessionLease.js"
import * as LibsqlStore from "../../src/store/LibsqlStore.js"
import { sessionStoreSuite } from "../suite/sessionStoreSuite.js"

sessionStoreSuite("a SQLite file", {
  make: Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const directory = yield* fs.makeTempDirectoryScoped({ prefix: "assent-store-" })
    const context = yield* Effect.context<NodeContext.NodeContext>()
    return (process: Process) =>
      Effect.provide(LibsqlStore.make({ file: `${directory}/a b#%/assent.db`, process }), context)
  }).pipe(Effect.provide(NodeContext.layer)),
  runs: 15
})
