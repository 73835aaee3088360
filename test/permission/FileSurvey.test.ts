import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as NodeFiles from "../../src/host/NodeFiles.js"
import * as SyncLinks from "../../src/internal/SyncLinks.js"
import { FileSurvey, run } from "../../src/permission/FileSurvey.js"

/** The file system, and a workspace in it. Another `readLink` has no direct path, though it does the same. */
const inWorkspace = <A>(use: (fs: FileSystem.FileSystem, workspace: string) => Effect.Effect<A, never, Path.Path>) =>
  Effect.gen(function* () {
    const node = yield* FileSystem.FileSystem
    const fs: FileSystem.FileSystem = { ...node, readLink: (path) => node.readLink(path) }
    const workspace = `${yield* Effect.flatMap(fs.makeTempDirectoryScoped(), fs.realPath)}/workspace`
    yield* fs.makeDirectory(`${workspace}/src/deep`, { recursive: true })
    yield* fs.writeFileString(`${workspace}/src/a.ts`, "x")
    yield* fs.symlink("src/deep", `${workspace}/inner`)
    yield* fs.symlink("/etc", `${workspace}/outer`)
    yield* fs.symlink("../nothing", `${workspace}/dangling`)
    yield* fs.symlink("loop", `${workspace}/loop`)
    yield* fs.symlink("../inner", `${workspace}/src/chain`)
    return yield* use(fs, workspace)
  }).pipe(Effect.scoped, Effect.provide(NodeContext.layer), Effect.orDie)

const direct = (fs: FileSystem.FileSystem): FileSystem.FileSystem => {
  const readLink: FileSystem.FileSystem["readLink"] = (path) => fs.readLink(path)
  const bound = { ...fs, readLink }
  Effect.runSync(Effect.provideService(NodeFiles.directLinks, FileSystem.FileSystem, bound))
  return bound
}

const names = [
  "src",
  "src/a.ts",
  "src/a.ts/below",
  "src/a.ts/../a.ts",
  "src/missing/deeper",
  "SRC/A.ts",
  "inner",
  "inner/x",
  "inner/../x",
  "outer",
  "outer/passwd",
  "outer/../x",
  "dangling",
  "dangling/x",
  "loop",
  "loop/x",
  "src/chain/x",
  "src/chain/../../..",
  "..",
  "/etc/../etc",
  "a b",
  "é",
  "x".repeat(300),
  "a\u0000b",
  "",
  ...Array.from({ length: 20 }, (_, i) => `many${i}`)
]

describe("a look at the file system", () => {
  it.effect("learns the same of every path, directly or not", () =>
    inWorkspace((fs, workspace) =>
      Effect.gen(function* () {
        const path = yield* Path.Path
        const learned = (files: FileSystem.FileSystem) =>
          Effect.gen(function* () {
            const survey = new FileSurvey(files, path, { workspace })
            const out: Array<unknown> = []
            for (const name of names) {
              const at = path.resolve(workspace, name)
              out.push([name, yield* run(survey.targets(workspace, name)), yield* run(survey.isThere(at))])
            }
            return out
          })
        const bound = direct(fs)
        assert.isDefined(SyncLinks.of(bound.readLink))
        assert.isUndefined(SyncLinks.of(fs.readLink))
        assert.deepStrictEqual(yield* learned(bound), yield* learned(fs))
      })
    )
  )

  it.effect("asks what wraps the file system, and what is outside of the workspace as before", () =>
    inWorkspace((fs, workspace) =>
      Effect.gen(function* () {
        const path = yield* Path.Path
        const asked: Array<string> = []
        const own = direct(fs)
        const wrapper: FileSystem.FileSystem = {
          ...own,
          readLink: (at) => {
            asked.push(path.relative(workspace, at))
            return at.endsWith("/src") ? Effect.succeed("/etc") : own.readLink(at)
          }
        }
        const survey = new FileSurvey(wrapper, path, { workspace })
        assert.deepStrictEqual(yield* run(survey.targets(workspace, "src/x")), ["/etc/x"])
        assert.include(asked, "src")

        let looks = 0
        const counted: FileSystem.FileSystem = { ...own, readLink: own.readLink }
        SyncLinks.bind(own.readLink, (at) => {
          // The way to the workspace is ours.
          if (workspace === at || workspace.startsWith(`${at}/`)) return "other"
          assert.isTrue(at.startsWith(`${workspace}/`), at)
          looks++
          return "missing"
        })
        const other = new FileSurvey(counted, path, { workspace })
        yield* run(other.targets(workspace, "a/b/c"))
        yield* run(other.targets(workspace, "/etc/ssl/x"))
        // Below what is not there, nobody looks.
        assert.strictEqual(looks, 1)

        // A path of ours is looked at directly wherever it is; a path of a call is not, after it.
        const ours: Array<string> = []
        SyncLinks.bind(own.readLink, (at) => {
          ours.push(at)
          return "other"
        })
        const third = new FileSurvey(counted, path, { workspace })
        assert.strictEqual(yield* run(third.own("/etc/ssl/x")), "/etc/ssl/x")
        assert.deepStrictEqual(ours, ["/etc", "/etc/ssl", "/etc/ssl/x"])
        yield* run(third.real("/usr/share"))
        assert.notInclude(ours, "/usr")
      })
    )
  )
})
