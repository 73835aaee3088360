import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import * as LibsqlStore from "../../src/store/LibsqlStore.js"
import * as Mortal from "../kit/Mortal.js"
import * as Runs from "../kit/Runs.js"
import { slowSuite } from "../suite/slowSuite.js"

slowSuite("a SQLite file", {
  world: Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const directory = yield* fs.makeTempDirectoryScoped({ prefix: "assent-slow-" })
    const context = yield* Effect.context<NodeContext.NodeContext>()
    return yield* Mortal.worldOf((process) =>
      Effect.provide(LibsqlStore.make({ file: `${directory}/assent.db`, process }), context)
    )
  }).pipe(Effect.orDie, Effect.provide(NodeContext.layer)),
  every: Runs.isWhole ? 2 : 7,
  runs: Runs.of(32)
})
