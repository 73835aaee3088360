import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as WorkspaceRoot from "../../src/builtin/WorkspaceRoot.js"

/** A workspace, and how often it asked where a path is. */
const world = Effect.gen(function* () {
  const fileSystem = yield* FileSystem.FileSystem
  const root = yield* Effect.flatMap(fileSystem.makeTempDirectoryScoped(), fileSystem.realPath)
  const asked = { count: 0 }
  const counted: FileSystem.FileSystem = {
    ...fileSystem,
    realPath: (path) => {
      asked.count++
      return fileSystem.realPath(path)
    }
  }
  const workspace = yield* Effect.provideService(
    WorkspaceRoot.make({ root }),
    FileSystem.FileSystem,
    FileSystem.FileSystem.of(counted)
  )
  return { fileSystem, root, asked, locate: (path: string) => Effect.either(workspace.locate(path)) }
})

const parts = (count: number, name = "a") => Array.from({ length: count }, () => name).join("/")

describe("a path that is not there", () => {
  for (const there of [0, 1, 30, 399]) {
    it.scoped(`of 400 parts, ${there} of which are there, is found in few looks`, () =>
      Effect.gen(function* () {
        const { asked, fileSystem, locate, root } = yield* world
        if (there > 0) yield* fileSystem.makeDirectory(`${root}/${parts(there)}`, { recursive: true })
        yield* locate("warm")
        asked.count = 0
        const found = yield* locate(parts(400))
        assert.strictEqual(Either.isRight(found) ? found.right.absolute : found.left, `${root}/${parts(400)}`)
        assert.isBelow(asked.count, 40)
      }).pipe(Effect.provide(NodeContext.layer))
    )
  }

  it.scoped("is seen through the links before it, wherever they are", () =>
    Effect.gen(function* () {
      const { fileSystem, locate, root } = yield* world
      yield* fileSystem.makeDirectory(`${root}/real`)
      yield* fileSystem.makeDirectory(`${root}/${parts(20)}`, { recursive: true })
      for (const [target, link] of [
        [`${root}/real`, "in"],
        ["/usr", "out"],
        [`${root}/nowhere`, "broken"]
      ] as const) {
        for (const depth of [0, 3, 20]) {
          const above = depth === 0 ? link : `${parts(depth)}/${link}`
          yield* fileSystem.symlink(target, `${root}/${above}`)
          for (const below of [1, 2, 3, 4, 5, 9, 50]) {
            const path = `${above}/${parts(below, "b")}`
            const found = yield* locate(path)
            const told = Either.isRight(found) ? found.right.absolute : found.left
            if (link === "in") assert.strictEqual(told, `${root}/real/${parts(below, "b")}`)
            else assert.include(told, link === "out" ? "is outside the workspace" : "leads nowhere", path)
          }
        }
      }
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
