/** A walk finds the same whether the system reads directories at once or by effects. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import { execFileSync } from "node:child_process"
import * as WorkspaceRoot from "../../src/builtin/WorkspaceRoot.js"
import * as WorkspaceSearch from "../../src/builtin/WorkspaceSearch.js"
import * as NodeFiles from "../../src/host/NodeFiles.js"

const files = [
  "a.txt",
  "B.txt",
  "ä/ö.md",
  "src/deep/x.ts",
  "src/.gitignore",
  "node_modules/m/i.js",
  ".assent/x",
  "a-b/c",
  "a/c"
]

describe("directories read at once", () => {
  it.scopedLive(
    "are listed as by effects",
    () =>
      Effect.gen(function* () {
        const fileSystem = yield* FileSystem.FileSystem
        const root = yield* Effect.flatMap(fileSystem.makeTempDirectoryScoped(), fileSystem.realPath)
        for (const name of files) {
          yield* fileSystem.makeDirectory(`${root}/${name}/..`.replace(/[^/]+\/\.\.$/, ""), { recursive: true })
          yield* fileSystem.writeFileString(`${root}/${name}`, "")
        }
        yield* fileSystem.symlink(`${root}/src`, `${root}/link`)
        yield* fileSystem.symlink(`${root}/a.txt`, `${root}/linked.txt`)
        if (process.platform === "linux") execFileSync("mkfifo", [`${root}/pipe`])

        const slow = WorkspaceRoot.layer({ root, protectedPaths: ["a-b"] })
        const fast = Layer.provide(slow, NodeFiles.layer)
        const both = (use: Effect.Effect<string, string, WorkspaceRoot.WorkspaceRoot>) =>
          Effect.gen(function* () {
            const [one, other] = yield* Effect.all(
              [slow, fast].map((layer) => Effect.either(Effect.provide(use, layer)))
            )
            assert.deepStrictEqual(other, one)
            return Either.merge(other ?? Either.right(""))
          })
        yield* both(WorkspaceSearch.list({ pattern: "**" }))
        yield* both(WorkspaceSearch.list({ path: "none" }))
      }).pipe(Effect.provide(NodeContext.layer)),
    120_000
  )
})
