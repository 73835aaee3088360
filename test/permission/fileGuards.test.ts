import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as NodeFiles from "../../src/host/NodeFiles.js"
import * as MemoryFiles from "../kit/MemoryFiles.js"
import { fileGuardSuite } from "../suite/fileGuardSuite.js"

const node = Layer.map(NodeContext.layer, (context) => context) as Layer.Layer<FileSystem.FileSystem>

/** A wrapper has no fast path of what it wraps. */
const copied = (fileSystem: FileSystem.FileSystem): FileSystem.FileSystem => ({
  ...fileSystem,
  readLink: (path) => fileSystem.readLink(path)
})

fileGuardSuite("the program's file system", node, (fileSystem) =>
  Effect.as(Effect.provideService(NodeFiles.directLinks, FileSystem.FileSystem, fileSystem), fileSystem)
)
fileGuardSuite("Node's own", node, (fileSystem) => Effect.succeed(copied(fileSystem)))
fileGuardSuite("memory", MemoryFiles.layer)
