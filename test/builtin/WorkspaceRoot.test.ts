import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as WorkspaceFile from "../../src/builtin/WorkspaceFile.js"
import * as WorkspaceRoot from "../../src/builtin/WorkspaceRoot.js"
import { inWorkspace } from "./workspaceFixture.js"

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

describe("a workspace that was deleted", () => {
  const calls = [
    ["run_command", { command: "pwd" }],
    ["run_command", { command: "pwd", cwd: "sub" }],
    ["run_command", { command: "pwd", background: true }],
    ["read_file", { path: "a.txt" }],
    ["list_files", {}],
    ["search_files", { pattern: "a" }],
    ["write_file", { path: "a.txt", content: "a" }],
    ["write_file", { path: "sub/deep/a.txt", content: "a" }],
    ["edit_file", { path: "a.txt", old_text: "a", new_text: "b" }]
  ] as const
  const told = (root: string) =>
    `The workspace is gone: there is no directory ${root}. Assent creates no other one. Restore the directory, and call again.`

  for (const [name, put] of [
    ["is told by every tool, and not made again, and used when it is back", undefined],
    ["is told the same where a file is in its place", "file"]
  ] as const) {
    it.scopedLive(
      name,
      inWorkspace(({ call, check, fileSystem, root }) =>
        Effect.gen(function* () {
          yield* fileSystem.remove(root, { recursive: true })
          if (put !== undefined) yield* fileSystem.writeFileString(root, put)
          for (const [tool, params] of calls) {
            assert.strictEqual(yield* check(tool, params), told(root), tool)
            assert.strictEqual(yield* call(tool, params), `failed: ${told(root)}`, tool)
          }
          assert.strictEqual(yield* fileSystem.exists(root), put !== undefined)
          yield* fileSystem.remove(root, { force: true })
          yield* fileSystem.makeDirectory(root)
          assert.include(yield* call("write_file", { path: "sub/a.txt", content: "a" }), "Created sub/a.txt")
        })
      )
    )
  }

  it.scopedLive("is told of the directory that is meant, where others were added", () =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const base = yield* Effect.flatMap(fileSystem.makeTempDirectoryScoped(), fileSystem.realPath)
      const root = `${base}/ws`
      const added = [`${base}/beside`, `${root}/inside`]
      for (const one of [root, ...added]) yield* fileSystem.makeDirectory(one)
      const workspace = yield* WorkspaceRoot.make({ root, added })
      const write = (path: string) =>
        Effect.either(
          Effect.provideService(WorkspaceFile.write({ path, content: "a" }), WorkspaceRoot.WorkspaceRoot, workspace)
        )
      for (const one of added) yield* fileSystem.remove(one, { recursive: true })
      assert.deepStrictEqual(
        yield* write("../beside/deep/a"),
        Either.left(told(added[0] ?? "").replace("workspace", "added directory"))
      )
      // A directory of the workspace like any other.
      assert.deepStrictEqual(yield* write("inside/deep/a"), Either.right("Created inside/deep/a (1 line)."))
      yield* fileSystem.makeDirectory(added[0] ?? "")
      yield* fileSystem.remove(root, { recursive: true })
      assert.isTrue(Either.isRight(yield* write("../beside/deep/a")))
      assert.deepStrictEqual(yield* write("inside/a"), Either.left(told(root)))
      assert.deepStrictEqual(yield* fileSystem.readDirectory(base), ["beside"])
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
