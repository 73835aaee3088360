/** What is read and made by its path, where somebody else may have put something: nothing waits, nothing grows. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Directory from "../../src/core/Directory.js"
import * as RegularFile from "../../src/core/RegularFile.js"

const limit = 1_000

const place = Effect.gen(function* () {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = yield* fileSystem.realPath(yield* fileSystem.makeTempDirectoryScoped())
  return { fileSystem, path, directory, file: path.join(directory, "it") }
})

describe("a file that somebody put there", () => {
  const cases: ReadonlyArray<readonly [string, (file: string) => unknown, string]> = [
    ["a text", (file) => fs.writeFileSync(file, "text"), "text"],
    ["nothing", (file) => fs.writeFileSync(file, ""), ""],
    ["as much as may be", (file) => fs.writeFileSync(file, "é".repeat(limit / 2)), "é".repeat(limit / 2)],
    ["a byte more", (file) => fs.writeFileSync(file, "x".repeat(limit + 1)), "It is larger than 1000 bytes."],
    ["a hole", (file) => (fs.writeFileSync(file, ""), fs.truncateSync(file, 2 ** 40)), "It is larger than 1000 bytes."],
    ["a pipe", (file) => execFileSync("mkfifo", [file]), "It is a pipe."],
    ["a link to a device", (file) => fs.symlinkSync("/dev/zero", file), "It is a device."],
    ["a directory", (file) => fs.mkdirSync(file), "It is a directory."]
  ]
  it.scopedLive.each(cases)("is read when it is one and bounded: %s", ([, put, expected]) =>
    Effect.gen(function* () {
      const { file, fileSystem } = yield* place
      put(file)
      const read = RegularFile.read(fileSystem, file, limit)
      assert.strictEqual(yield* Effect.merge(Effect.mapError(read, ({ message }) => message)), expected)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("is not read when it became another between the two looks", () =>
    Effect.gen(function* () {
      const { file, fileSystem } = yield* place
      fs.writeFileSync(file, "before")
      const swapping: FileSystem.FileSystem = {
        ...fileSystem,
        open: (path, options) => {
          fs.renameSync(file, `${file}-before`)
          fs.writeFileSync(file, "behind")
          return fileSystem.open(path, options)
        }
      }
      const error = yield* Effect.flip(RegularFile.read(swapping, file, limit))
      assert.strictEqual(error.message, "It was exchanged while it was opened.")
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

describe("a directory of ours", () => {
  it.scopedLive("is made with those above it, for nobody else, once or by several at once", () =>
    Effect.gen(function* () {
      const { directory, fileSystem, path } = yield* place
      const deep = path.join(directory, "a", "b", "c")
      const make = Directory.ensure(fileSystem, path, deep, 0o700)
      yield* Effect.all([make, make, make], { concurrency: "unbounded" })
      yield* make
      assert.strictEqual(fs.statSync(path.join(directory, "a")).mode & 0o777, 0o700)
      assert.isTrue(fs.statSync(deep).isDirectory())
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("fails where nobody can make any", () =>
    Effect.gen(function* () {
      const { directory, fileSystem, path } = yield* place
      fs.writeFileSync(path.join(directory, "file"), "")
      for (const where of ["/proc/nobody/a/b", "/dev/null/a", path.join(directory, "file", "a")]) {
        assert.strictEqual((yield* Effect.flip(Directory.ensure(fileSystem, path, where, 0o700)))._tag, "SystemError")
      }
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
