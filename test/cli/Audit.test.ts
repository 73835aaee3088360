import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as AuditPlace from "../../src/cli/AuditPlace.js"
import * as Audit from "../../src/cli/command/Audit.js"
import * as UserPlace from "../../src/cli/UserPlace.js"
import type { SessionId } from "../../src/core/Id.js"
import * as AuditArchive from "../../src/event/AuditArchive.js"
import * as AuditFile from "../../src/event/AuditFile.js"

afterEach(() => {
  vi.restoreAllMocks()
})

/** A workspace and a directory of the user's settings. */
const place = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const base = yield* Effect.flatMap(fs.makeTempDirectoryScoped({ prefix: "assent-audit-" }), fs.realPath)
  const workspace = path.join(base, "workspace")
  const configDirectory = path.join(base, "config")
  yield* fs.makeDirectory(workspace)
  const folder = UserPlace.folderOf(path.join(base, "state"), workspace)
  const archive = AuditPlace.archive({ workspace, folder, configDirectory })
  /** Lets sessions decide something. */
  const decide = (sessions: ReadonlyArray<string>, keyFile?: string) =>
    Effect.scoped(
      Effect.gen(function* () {
        const trail = yield* AuditFile.make({ ...archive, key: yield* AuditPlace.readKey(keyFile) })
        for (const name of sessions) {
          const sessionId = name as SessionId
          yield* trail.record({
            class: "trust",
            kind: "Confirm",
            outcome: "granted",
            rootSessionId: sessionId,
            sessionId,
            agent: "main",
            answeredAt: 0
          })
        }
      })
    )
  const files = (name: string) => AuditArchive.files(path, archive, name as SessionId)
  const write = (name: string, text: string) =>
    Effect.as(fs.writeFileString(path.join(base, name), text, { mode: 0o600 }), path.join(base, name))
  return { base, workspace, configDirectory, archive, decide, files, write, fs }
})

/** Runs the command and takes what it prints. */
const audit = (
  at: { readonly base: string; readonly workspace: string; readonly configDirectory: string },
  words: ReadonlyArray<string>,
  key?: string
) =>
  Effect.gen(function* () {
    const printed = { stdout: "", stderr: "" }
    for (const name of ["stdout", "stderr"] as const) {
      vi.spyOn(process[name], "write").mockImplementation((text, ...rest) => {
        printed[name] += String(text)
        for (const callback of rest) if (typeof callback === "function") callback()
        return true
      })
    }
    const code = yield* Effect.either(Audit.run({ flags: { workspace: at.workspace, key }, words })).pipe(
      Effect.withConfigProvider(
        ConfigProvider.fromMap(
          new Map([
            ["ASSENT_CONFIG_DIR", at.configDirectory],
            ["ASSENT_STATE_DIR", `${at.base}/state`]
          ])
        )
      ),
      Effect.ensuring(Effect.sync(() => vi.restoreAllMocks()))
    )
    return { code: code._tag === "Right" ? code.right : code.left.message, ...printed }
  })

const live = <E>(name: string, effect: Effect.Effect<void, E, NodeContext.NodeContext | Scope.Scope>) =>
  it.scopedLive(name, () => Effect.provide(effect, NodeContext.layer))

describe("assent audit", () => {
  live(
    "says that nothing was recorded yet",
    Effect.gen(function* () {
      const at = yield* place
      for (const words of [[], ["list"], ["verify"]]) {
        const { code, stdout, stderr } = yield* audit(at, words)
        assert.deepStrictEqual([code, stdout], [0, ""])
        assert.include(stderr, "nothing was recorded")
      }
    })
  )

  live(
    "lists, shows and verifies what was decided",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.decide(["ses_a", "ses_b"])
      const list = yield* audit(at, [])
      assert.strictEqual(list.code, 0)
      assert.match(list.stdout, /^ses_a {2}2 records {2}.+\nses_b {2}2 records {2}.+\n$/)
      const show = yield* audit(at, ["show", "ses_a"])
      assert.strictEqual(show.code, 0)
      assert.match(show.stdout, /^ +1 .*opened.*\n +2 {2}1970-01-01 .*granted {4}trust Confirm {2}main\n$/)
      assert.deepStrictEqual(yield* audit(at, ["verify"]), {
        code: 0,
        stdout: "ses_a: 2 records, whole and in order.\nses_b: 2 records, whole and in order.\n",
        stderr: ""
      })
    })
  )

  live(
    "names what is broken, goes through the rest, and ends with 1",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.decide(["ses_a", "ses_b", "ses_c"])
      const { trail } = at.files("ses_a")
      yield* at.fs.writeFileString(trail, (yield* at.fs.readFileString(trail)).replace("granted", "denied"))
      yield* at.fs.remove(at.files("ses_c").trail)
      const all = yield* audit(at, ["verify"])
      assert.strictEqual(all.code, 1)
      assert.include(all.stdout, `ses_a: BROKEN. ${trail}: record 2 was changed.\n`)
      assert.include(all.stdout, "ses_b: 2 records, whole and in order.\n")
      assert.match(all.stdout, /ses_c: BROKEN\. .*the trail is gone, with its 2 records/)
      assert.strictEqual((yield* audit(at, ["verify", "ses_a"])).code, 1)
      assert.strictEqual((yield* audit(at, ["verify", "ses_b"])).code, 0)
      const shown = yield* audit(at, ["show", "ses_a"])
      assert.include(shown.stdout, "denied")
      assert.include(shown.stderr, "not verified")
      assert.strictEqual(shown.code, 1)
      const gone = yield* audit(at, ["show", "ses_c"])
      assert.deepStrictEqual([gone.code, gone.stdout], [1, ""])
    })
  )

  live(
    "verifies with the key that a trail was written with, and with no other",
    Effect.gen(function* () {
      const at = yield* place
      const right = yield* at.write("key", "0123456789abcdef\n")
      const wrong = yield* at.write("wrong", "fedcba9876543210\n")
      yield* at.decide(["ses_a"], right)
      assert.deepStrictEqual(yield* audit(at, ["verify"], right), {
        code: 0,
        stdout: "ses_a: 2 records, whole and in order, written with this key.\n",
        stderr: ""
      })
      const other = yield* audit(at, ["verify"], wrong)
      assert.strictEqual(other.code, 1)
      assert.include(other.stdout, "written with another key")
      const none = yield* audit(at, ["verify"])
      assert.strictEqual(none.code, 1)
      assert.include(none.stdout, "give it with --key FILE")
      const shown = yield* audit(at, ["show", "ses_a"])
      assert.strictEqual(shown.code, 0)
      assert.include(shown.stderr, "not verified")
    })
  )

  live(
    "explains what it takes",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.decide(["ses_a"])
      const told = (words: ReadonlyArray<string>, key?: string) =>
        Effect.map(audit(at, words, key), ({ code }) => String(code))
      assert.include(yield* told(["erase"]), "list; show SESSION; verify [SESSION] [--key FILE]")
      assert.include(yield* told(["toString"]), "assent audit takes")
      assert.include(yield* told(["verify", "ses_a", "ses_b"]), "assent audit takes")
      assert.include(yield* told(["show"]), "There are: ses_a.")
      assert.include(yield* told(["show", "../ses_a"]), "There is no audit of session ../ses_a")
      assert.include(yield* told(["verify"], `${at.base}/nowhere`), "There is no key file")
      assert.include(yield* told(["verify"], yield* at.write("short", "abc")), "at least 16 characters")
    })
  )
})
