/** Two processes race for one session, over every store that needs no server. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import type { Process } from "../../src/journal/SessionLease.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as LibsqlStore from "../../src/store/LibsqlStore.js"
import { raceSuite } from "../suite/raceSuite.js"

const process_ = (host: string): Process => ({ pid: 1, host, isAlive: () => true })

raceSuite(
  "memory",
  Effect.map(SessionStore.makeMemory, (open) => ({ one: open(process_("here")), other: open(process_("there")) }))
)

raceSuite(
  "libsql",
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const file = `${yield* fs.makeTempDirectoryScoped({ prefix: "assent-races-" })}/assent.db`
    const open = (host: string) => LibsqlStore.make({ file, process: process_(host) })
    return { one: yield* open("here"), other: yield* open("there") }
  }).pipe(Effect.provide(NodeContext.layer))
)
