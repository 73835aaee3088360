import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as AuditLocation from "../../src/host/local/AuditLocation.js"
import * as Audit from "../../src/cli/command/Audit.js"
import * as UserLocation from "../../src/host/local/UserLocation.js"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import type { SessionId } from "../../src/core/Id.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as AuditArchive from "../../src/audit/AuditArchive.js"
import * as AuditChain from "../../src/audit/AuditChain.js"
import * as AuditRecord from "../../src/audit/AuditRecord.js"
import * as AuditFile from "../../src/audit/AuditFile.js"
import * as Program from "../kit/Program.js"

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
  const folder = UserLocation.folderOf(path.join(base, "state"), workspace)
  const archive = AuditLocation.archive({ workspace, folder, configDirectory })
  /** Lets sessions decide something. */
  const decide = (sessions: ReadonlyArray<string>, keyFile?: string) =>
    Effect.scoped(
      Effect.gen(function* () {
        const trail = yield* AuditFile.make({ ...archive, key: yield* AuditLocation.readKey(keyFile) })
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
        assert.include(stderr, "no decision was recorded")
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
    "shows the only session without its id, and asks for one of several",
    Effect.gen(function* () {
      const at = yield* place
      assert.match(String((yield* audit(at, ["show"])).code), /needs a session\. No decision was recorded there yet\./)
      yield* at.decide(["ses_a"])
      assert.deepStrictEqual(yield* audit(at, ["show"]), yield* audit(at, ["show", "ses_a"]))
      assert.strictEqual((yield* audit(at, ["show"])).code, 0)
      yield* at.decide(["ses_b"])
      assert.match(String((yield* audit(at, ["show"])).code), /needs a session\. There are: ses_a, ses_b\./)
    })
  )

  live(
    "finds a session by the beginning of its id, as other commands do",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.decide(["ses_ab", "ses_abc", "ses_b"])
      const code = (word: string) => Effect.map(audit(at, ["show", word]), ({ code }) => code)
      for (const word of ["ses_b", "b", "ab", "abc"]) assert.strictEqual(yield* code(word), 0, word)
      assert.strictEqual(yield* code("a"), "2 sessions begin with a: ses_ab, ses_abc.")
      assert.strictEqual((yield* audit(at, ["verify", "b"])).stdout, "ses_b: 2 records, whole and in order.\n")
      assert.match(String(yield* code("c")), /^There is no audit of session c in .*There are: ses_ab/)
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
      assert.include(none.stdout, "give that key. Here it is given with --key FILE.")
      const shown = yield* audit(at, ["show", "ses_a"])
      assert.strictEqual(shown.code, 0)
      assert.include(shown.stderr, "not verified")
    })
  )

  live(
    "wants a key that is a file, and its owner's alone",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.decide(["ses_a"])
      const told = (key: string) => Effect.map(audit(at, ["verify"], key), ({ code }) => String(code))
      const key = yield* at.write("key", "0123456789abcdef\n")
      for (const mode of [0o640, 0o604, 0o620, 0o602, 0o644, 0o777]) {
        yield* at.fs.chmod(key, mode)
        assert.include(yield* told(key), `is not yours alone to read or write. Run: chmod 600 ${key}`)
      }
      for (const mode of [0o600, 0o400]) {
        yield* at.fs.chmod(key, mode)
        assert.strictEqual(yield* told(key), "1")
      }
      execFileSync("mkfifo", [`${at.base}/pipe`])
      yield* at.fs.symlink("/dev/zero", `${at.base}/zero`)
      for (const [file, words] of [
        [`${at.base}/pipe`, "is a named pipe and not a file"],
        [`${at.base}/zero`, "is a device and not a file"],
        [at.base, "is a directory and not a file"]
      ] as const) {
        assert.include(yield* told(file), words)
      }
    })
  )

  // Only there can a process be asked for the most memory that it had.
  const measured = existsSync("/proc/self/status") ? live : () => {}
  measured(
    "lists and verifies a long trail in little memory",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.decide(["ses_a"])
      /** The most that a process held whose audit is this. */
      const peak = (verb: string) => {
        const report = `${at.base}/peak`
        writeFileSync(
          `${at.base}/watch.cjs`,
          // Not what the system says of resources: to that a child is as large as its parent was.
          `const fs = require("node:fs")
          process.on("exit", () => {
            const [, peak] = /VmHWM:\\s+(\\d+)/.exec(fs.readFileSync("/proc/self/status", "utf8"))
            fs.writeFileSync(${JSON.stringify(report)}, peak)
          })`
        )
        const env = {
          PATH: process.env["PATH"] ?? "",
          ASSENT_CONFIG_DIR: at.configDirectory,
          ASSENT_STATE_DIR: `${at.base}/state`
        }
        const args = ["--require", `${at.base}/watch.cjs`, resolve("dist/bin/assent.js"), "audit", verb]
        return Effect.map(Program.execute(process.execPath, args, { cwd: at.workspace, env }), (result) => ({
          ...result,
          megabytes: Number(readFileSync(report, "utf8")) / 1_000
        }))
      }
      const [list, verify] = [yield* peak("list"), yield* peak("verify")]
      assert.deepStrictEqual([list.code, verify.code], [0, 0])
      const { head, trail } = at.files("ses_a")
      let last = AuditChain.start
      const lines: Array<string> = []
      const add = (content: AuditRecord.Content) => {
        const { line, link } = AuditChain.append(last, content, undefined)
        last = link
        lines.push(line)
      }
      const sessionId = "ses_a" as SessionId
      add({ _tag: "Opened", version: AuditRecord.version, sessionId, at: 1 })
      const decision = { class: "trust", kind: "Confirm", outcome: "granted", agent: "main", answeredAt: 0 } as const
      const reason = "x".repeat(4_000)
      const decided = AuditRecord.decided(
        { ...decision, rootSessionId: sessionId, sessionId, reason },
        Redaction.shapesOnly
      )
      while (lines.length < 27_000) add(decided)
      yield* at.fs.writeFileString(trail, lines.join(""))
      const { directory } = at.archive
      yield* at.fs.writeFileString(
        head,
        AuditChain.renderHead({ sessionId, directory, count: last.seq, hash: last.hash }, undefined)
      )
      assert.isAbove(Number((yield* at.fs.stat(trail)).size), 110_000_000)
      const [longList, longVerify] = [yield* peak("list"), yield* peak("verify")]
      assert.include(longList.stdout, "ses_a  27000 records")
      assert.strictEqual(longVerify.stdout, "ses_a: 27000 records, whole and in order.\n")
      assert.isAbove(list.megabytes, 10)
      assert.isBelow(longList.megabytes - list.megabytes, 60)
      assert.isBelow(longVerify.megabytes - verify.megabytes, 60)
    })
  )

  it.scopedLive("lists when a session was first and last heard of, as the clock said then", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const before = Date.now()
      yield* at.call(["run", "--yolo", "run touch x"])
      const after = Date.now()
      const { stdout } = yield* at.call(["audit"])
      const [, from = "", to = ""] = / {2}\d+ records {2}(\S+ \S+) to (\S+ \S+)\n$/.exec(stdout) ?? []
      const [first, last] = [Date.parse(from.replace(" ", "T")), Date.parse(to.replace(" ", "T"))]
      assert.isTrue(before <= first && first <= last && last <= after, stdout)
    })
  )

  live(
    "explains what it takes",
    Effect.gen(function* () {
      const at = yield* place
      yield* at.decide(["ses_a"])
      const told = (words: ReadonlyArray<string>, key?: string) =>
        Effect.map(audit(at, words, key), ({ code }) => String(code))
      assert.include(yield* told(["erase"]), "list; show [SESSION] [--key FILE]; verify [SESSION] [--key FILE]")
      assert.include(yield* told(["toString"]), "assent audit takes")
      assert.include(yield* told(["verify", "ses_a", "ses_b"]), "assent audit takes")
      assert.strictEqual(yield* told(["show"]), "0")
      yield* at.decide(["ses_b"])
      assert.match(yield* told(["show"]), /There are: ses_[ab], ses_[ab]\./)
      assert.include(yield* told(["show", "../ses_a"]), "There is no audit of session ../ses_a")
      assert.include(yield* told(["verify"], `${at.base}/nowhere`), "There is no key file")
      assert.include(yield* told(["verify"], yield* at.write("short", "abc")), "at least 16 characters")
    })
  )
})
