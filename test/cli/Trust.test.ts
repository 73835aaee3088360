import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as AuditPlace from "../../src/cli/AuditPlace.js"
import * as Trust from "../../src/cli/Trust.js"
import type { RequestId } from "../../src/core/Id.js"
import * as AuditArchive from "../../src/event/AuditArchive.js"

const place = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const base = yield* Effect.flatMap(fs.makeTempDirectoryScoped({ prefix: "assent-trust-" }), fs.realPath)
  const at: Trust.Place = { workspace: `${base}/workspace`, configDirectory: `${base}/config`, auditKey: undefined }
  yield* fs.makeDirectory(at.workspace)
  return { ...at, fs }
})

/** All that the audit of a directory says was decided; each trail is whole. */
const decisions = (at: Trust.Place) =>
  Effect.gen(function* () {
    const archive = yield* AuditPlace.archive(at)
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
      assert.isFalse(yield* Trust.isTrusted(at))
      yield* Trust.decide(at, Trust.byFlag)
      yield* Trust.decide(at, Trust.byFlag)
      assert.isTrue(yield* Trust.isTrusted(at))
      assert.isFalse(yield* Trust.isTrusted({ ...at, workspace: `${at.workspace}/inner` }))
      const recorded = yield* decisions(at)
      assert.lengthOf(recorded, 1)
      assert.deepInclude(recorded[0], {
        class: "trust",
        kind: "Confirm",
        outcome: "granted",
        agent: "outside",
        by: "command line",
        reason: `${at.workspace}, --trust`
      })
      assert.strictEqual(
        yield* at.fs.readFileString(`${at.configDirectory}/trust.json`),
        JSON.stringify([at.workspace], null, 2)
      )
    })
  )

  live(
    "names the request that a person answered, also with no, which is not remembered",
    Effect.gen(function* () {
      const at = yield* place
      const requestId = "req_1" as RequestId
      const said = { by: "console", how: "answered", requestId, askedAt: 5 }
      yield* Trust.decide(at, { trusted: false, ...said })
      assert.isFalse(yield* Trust.isTrusted(at))
      yield* Trust.decide(at, { trusted: true, ...said })
      assert.isTrue(yield* Trust.isTrusted(at))
      const recorded = yield* decisions(at)
      assert.deepStrictEqual(recorded.map(({ outcome }) => outcome).sort(), ["denied", "granted"])
      for (const record of recorded) assert.deepInclude(record, { ...said, reason: at.workspace })
    })
  )

  live(
    "is not given when it cannot be written down",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.fs.makeDirectory(`${at.workspace}/.assent`)
      yield* at.fs.writeFileString(`${at.workspace}/.assent/audit`, "in the way")
      const error = yield* Effect.flip(Trust.decide(at, Trust.byFlag))
      assert.match(error.message, /cannot be written: .*Nothing is allowed unrecorded/)
      assert.isFalse(yield* Trust.isTrusted(at))
    })
  )

  live(
    "is written down with the key that the program was started with",
    Effect.gen(function* () {
      const at = { ...(yield* place), auditKey: Redacted.make("0123456789abcdef") }
      yield* Trust.decide(at, Trust.byFlag)
      assert.lengthOf(yield* decisions(at), 1)
      const error = yield* Effect.flip(decisions({ ...at, auditKey: undefined }))
      assert.strictEqual(error.problem, "keyNeeded")
    })
  )

  live(
    "is not what nonsense says, and what cannot be read is told",
    Effect.gen(function* () {
      const at = yield* place
      const file = `${at.configDirectory}/trust.json`
      yield* at.fs.makeDirectory(at.configDirectory)
      for (const text of ["", "{}", `"${at.workspace}"`, `{"0":"${at.workspace}"}`]) {
        yield* at.fs.writeFileString(file, text)
        assert.isFalse(yield* Trust.isTrusted(at))
      }
      yield* at.fs.remove(file)
      yield* at.fs.makeDirectory(file)
      assert.include((yield* Effect.flip(Trust.isTrusted(at))).message, "cannot be read")
    })
  )
})
