import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as AuditLocation from "../../../src/host/local/AuditLocation.js"
import * as WorkspaceSettings from "../../../src/host/local/WorkspaceSettings.js"
import * as Trust from "../../../src/host/local/Trust.js"
import * as UserLocation from "../../../src/host/local/UserLocation.js"
import type { RequestId } from "../../../src/core/Id.js"
import * as AuditArchive from "../../../src/audit/AuditArchive.js"

const place = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const base = yield* Effect.flatMap(fs.makeTempDirectoryScoped({ prefix: "assent-trust-" }), fs.realPath)
  const workspace = `${base}/workspace`
  const at: Trust.Place = {
    workspace,
    folder: UserLocation.folderOf(`${base}/state`, workspace),
    configDirectory: `${base}/config`,
    auditKey: undefined
  }
  yield* fs.makeDirectory(`${workspace}/.assent/profiles`, { recursive: true })
  yield* fs.makeDirectory(`${workspace}/.jaato/profiles`, { recursive: true })
  const write = (name: string, text: string) => fs.writeFileString(`${workspace}/${name}`, text)
  yield* write(".assent/permissions.json", "{}")
  return { ...at, base, fs, write }
})

/** As the program asks: of the files as they are now. */
const isTrusted = (at: Trust.Place) =>
  Effect.flatMap(WorkspaceSettings.load(at.workspace), (brought) => Trust.isTrusted(at, brought))
const decide = (at: Trust.Place, decision: Trust.Decision) =>
  Effect.flatMap(WorkspaceSettings.load(at.workspace), (brought) => Trust.decide(at, brought, decision))

/** All that the audit of a directory says was decided; each trail is whole. */
const decisions = (at: Trust.Place) =>
  Effect.gen(function* () {
    const archive = AuditLocation.archive(at)
    const chains = yield* Effect.forEach(yield* AuditArchive.sessions(archive), (id) =>
      AuditArchive.verifySession(archive, id, at.auditKey)
    )
    return chains.flatMap(({ records }) => records.flatMap((record) => (record._tag === "Decided" ? [record] : [])))
  })

const live = <E>(name: string, effect: Effect.Effect<void, E, NodeContext.NodeContext | Scope.Scope>) =>
  it.scopedLive(name, () => Effect.provide(effect, NodeContext.layer))

describe("trust in a directory", () => {
  live(
    "is remembered outside of it, once the audit says who gave it, and given once",
    Effect.gen(function* () {
      const at = yield* place
      assert.isFalse(yield* isTrusted(at))
      yield* decide(at, Trust.byFlag)
      yield* decide(at, Trust.byFlag)
      assert.isTrue(yield* isTrusted(at))
      const recorded = yield* decisions(at)
      assert.lengthOf(recorded, 1)
      assert.deepInclude(recorded[0], {
        class: "trust",
        kind: "Confirm",
        outcome: "granted",
        agent: "outside",
        by: "command line"
      })
      assert.match(recorded[0]?.reason ?? "", new RegExp(`^${at.workspace} as of [0-9a-f]{16}, --trust$`))
      assert.deepStrictEqual(yield* at.fs.readDirectory(`${at.workspace}/.assent`), ["permissions.json", "profiles"])
      const { mode } = yield* at.fs.stat(`${at.folder}/trust.json`)
      assert.strictEqual(mode & 0o777, 0o600)
    })
  )

  live(
    "is in the files as they were: any that changes, comes or goes is nobody's decision yet",
    Effect.gen(function* () {
      const at = yield* place
      yield* decide(at, Trust.byFlag)
      for (const name of [
        ".assent/permissions.json",
        ".assent/config.json",
        ".assent/instructions.md",
        ".assent/profiles/a.json",
        ".assent/profiles/b.yaml",
        ".jaato/profiles/c.yml"
      ]) {
        const before = yield* Effect.option(at.fs.readFileString(`${at.workspace}/${name}`))
        yield* at.write(name, `{ "some": "thing" }`)
        assert.isFalse(yield* isTrusted(at), name)
        if (before._tag === "Some") yield* at.write(name, before.value)
        else yield* at.fs.remove(`${at.workspace}/${name}`)
        assert.isTrue(yield* isTrusted(at), name)
      }
      yield* at.fs.remove(`${at.workspace}/.assent/permissions.json`)
      assert.isFalse(yield* isTrusted(at))
      // What says nothing about what is allowed may change.
      yield* at.write(".assent/permissions.json", "{}")
      yield* at.write("AGENTS.md", "Be brief.")
      yield* at.write(".assent/notes.txt", "Not read.")
      assert.isTrue(yield* isTrusted(at))
    })
  )

  live(
    "is never in what a link stands in for, and not in a directory that took the place of another",
    Effect.gen(function* () {
      const at = yield* place
      yield* decide(at, Trust.byFlag)
      yield* at.fs.rename(`${at.workspace}/.assent`, `${at.base}/elsewhere`)
      yield* at.fs.symlink(`${at.base}/elsewhere`, `${at.workspace}/.assent`)
      assert.isFalse(yield* isTrusted(at))
      assert.include((yield* Effect.flip(decide(at, Trust.byFlag))).message, "is a symbolic link")
      assert.isFalse(yield* isTrusted(at))
      // Another workspace with the same files is another decision.
      const other = {
        ...at,
        workspace: `${at.base}/other`,
        folder: UserLocation.folderOf(`${at.base}/state`, `${at.base}/other`)
      }
      yield* at.fs.makeDirectory(`${other.workspace}/.assent/profiles`, { recursive: true })
      yield* at.fs.writeFileString(`${other.workspace}/.assent/permissions.json`, "{}")
      assert.isFalse(yield* isTrusted(other))
      // Nor does it come along with a state that was copied.
      yield* at.fs.copy(at.folder, other.folder)
      assert.isFalse(yield* isTrusted(other))
    })
  )

  live(
    "names the request that a person answered, also with no, which is not remembered",
    Effect.gen(function* () {
      const at = yield* place
      const requestId = "req_1" as RequestId
      const said = { by: "console", how: "answered", requestId, askedAt: 5 }
      yield* decide(at, { trusted: false, ...said })
      assert.isFalse(yield* isTrusted(at))
      yield* decide(at, { trusted: true, ...said })
      assert.isTrue(yield* isTrusted(at))
      const recorded = yield* decisions(at)
      assert.deepStrictEqual(recorded.map(({ outcome }) => outcome).sort(), ["denied", "granted"])
      for (const record of recorded) {
        assert.deepInclude(record, said)
        assert.include(record.reason, `${at.workspace} as of `)
      }
    })
  )

  live(
    "is not given when it cannot be written down",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.fs.makeDirectory(at.folder, { recursive: true })
      yield* at.fs.writeFileString(`${at.folder}/audit`, "in the way")
      const error = yield* Effect.flip(decide(at, Trust.byFlag))
      assert.match(error.message, /cannot be written: .*Nothing is allowed unrecorded/)
      assert.isFalse(yield* isTrusted(at))
    })
  )

  live(
    "is written down with the key that the program was started with",
    Effect.gen(function* () {
      const at = { ...(yield* place), auditKey: Redacted.make("0123456789abcdef") }
      yield* decide(at, Trust.byFlag)
      assert.lengthOf(yield* decisions(at), 1)
      const error = yield* Effect.flip(decisions({ ...at, auditKey: undefined }))
      assert.strictEqual(error.problem, "keyNeeded")
    })
  )

  live(
    "is not what nonsense says, and what cannot be read is told",
    Effect.gen(function* () {
      const at = yield* place
      const file = `${at.folder}/trust.json`
      yield* at.fs.makeDirectory(at.folder, { recursive: true })
      for (const text of ["", "{}", `"${at.workspace}"`, `["${at.workspace}"]`, `{"workspace":"${at.workspace}"}`]) {
        yield* at.fs.writeFileString(file, text)
        assert.isFalse(yield* isTrusted(at))
      }
      yield* at.fs.remove(file)
      yield* at.fs.makeDirectory(file)
      assert.include((yield* Effect.flip(isTrusted(at))).message, "is a directory and not a file")
    })
  )
})
