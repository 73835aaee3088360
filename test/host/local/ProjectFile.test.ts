import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as AuditArchive from "../../../src/audit/AuditArchive.js"
import * as AuditLocation from "../../../src/host/local/AuditLocation.js"
import * as ProjectFile from "../../../src/host/local/ProjectFile.js"
import * as UserLocation from "../../../src/host/local/UserLocation.js"

const place = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const base = yield* Effect.flatMap(fs.makeTempDirectoryScoped({ prefix: "assent-project-" }), fs.realPath)
  const workspace = `${base}/workspace`
  const folder = UserLocation.folderOf(`${base}/state`, workspace)
  yield* fs.makeDirectory(workspace)
  return {
    at: { workspace, folder, configDirectory: `${base}/config`, auditKey: undefined },
    fs,
    file: `${folder}/project-rules.json`
  }
})

const live = <E>(name: string, effect: Effect.Effect<void, E, NodeContext.NodeContext | Scope.Scope>) =>
  it.scopedLive(name, () => Effect.provide(effect, NodeContext.layer))

describe("the rules of a project", () => {
  live(
    "are kept outside of it, for their owner only, and every change is in the audit",
    Effect.gen(function* () {
      const { at, file, fs } = yield* place
      const rules = yield* ProjectFile.open(at)
      assert.isFalse(yield* fs.exists(file))
      yield* rules.keep("npm test")
      yield* rules.keep("ls")
      yield* rules.revoke("ls")
      assert.deepStrictEqual([...rules.entries()], ["npm test"])
      assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o600)
      assert.deepStrictEqual([...(yield* ProjectFile.open(at)).entries()], ["npm test"])
      const archive = AuditLocation.archive(at)
      const chains = yield* Effect.forEach(yield* AuditArchive.sessions(archive), (id) =>
        AuditArchive.verifySession(archive, id, undefined)
      )
      const decided = chains.flatMap(({ records }) => records.filter((record) => record._tag === "Decided"))
      assert.sameDeepMembers(
        decided.map(({ outcome, reason }) => [outcome, reason?.replace(`${at.workspace}: `, "")]),
        [
          ["granted", "always in this project: npm test"],
          ["granted", "always in this project: ls"],
          ["done", "no longer in this project: ls"]
        ]
      )
    })
  )

  live(
    "end at once in every session when one takes them back, and when their file is spoiled",
    Effect.gen(function* () {
      const { at, file, fs } = yield* place
      const [one, other] = [yield* ProjectFile.open(at), yield* ProjectFile.open(at)]
      yield* one.keep("npm test")
      yield* other.keep("ls")
      assert.deepStrictEqual([...one.entries()], ["npm test", "ls"])
      yield* one.revoke("npm test")
      assert.deepStrictEqual([...other.entries()], ["ls"])
      yield* fs.writeFileString(file, "spoiled, and of another length")
      assert.deepStrictEqual([...other.entries()], [])
      const why = yield* Effect.flip(ProjectFile.open(at))
      assert.include(why.message, "does not hold the rules of a project")
      assert.include(yield* Effect.flip(other.keep("cat")), "does not hold")
      assert.strictEqual(yield* fs.readFileString(file), "spoiled, and of another length")
    })
  )

  live(
    "never allow everything, whoever wrote the file",
    Effect.gen(function* () {
      const { at, file, fs } = yield* place
      const rules = yield* ProjectFile.open(at)
      for (const star of ["*", "**", " * ", ""]) yield* Effect.flip(rules.keep(star))
      yield* UserLocation.prepare(at)
      const value = { version: 1, workspace: at.workspace, rules: ["*", "", "ls", " "] }
      yield* fs.writeFileString(file, JSON.stringify(value))
      assert.deepStrictEqual([...(yield* ProjectFile.open(at)).entries()], ["ls"])
    })
  )
})
