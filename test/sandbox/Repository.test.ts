import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Repository from "../../src/sandbox/Repository.js"

const pipe = (file: string) => void execFileSync("mkfifo", [file])
const hole = (file: string) => (fs.writeFileSync(file, ""), fs.truncateSync(file, 1_900_000_000))
const zero = (file: string) => fs.symlinkSync("/dev/zero", file)

describe("what a workspace has as its .git", () => {
  it.scopedLive.each(
    [pipe, hole, zero].flatMap((put) =>
      [".git", "real/config", "real/commondir", "real/gitdir"].map((name) => ({ put, name }))
    )
  )("is not waited for, nor read whole: $name", ({ name, put }) =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const root = yield* fileSystem.realPath(yield* fileSystem.makeTempDirectoryScoped())
      fs.mkdirSync(path.join(root, "real"))
      fs.writeFileSync(path.join(root, ".git"), "gitdir: real\n")
      if (name === "real/gitdir") fs.writeFileSync(path.join(root, "real/commondir"), "..\n")
      fs.rmSync(path.join(root, name), { force: true })
      put(path.join(root, name))
      const before = process.memoryUsage().arrayBuffers
      const found = yield* Repository.read(fileSystem, path, path.join(root, ".git"), [root])
      assert.isBelow(process.memoryUsage().arrayBuffers - before, 50_000_000)
      // Nothing of it is taken for a repository that this directory has.
      assert.isFalse((found?.mounts ?? []).some(({ _tag }) => _tag === "Writable"))
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
