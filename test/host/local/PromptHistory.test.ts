import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as PromptHistory from "../../../src/host/local/PromptHistory.js"
import * as UserLocation from "../../../src/host/local/UserLocation.js"
import * as Redaction from "../../../src/core/Redaction.js"

const place = Effect.acquireRelease(
  Effect.sync(() => {
    const base = fs.mkdtempSync(path.join(os.tmpdir(), "assent-history-"))
    const workspace = path.join(base, "workspace")
    const folder = UserLocation.folderOf(path.join(base, "state"), workspace)
    return { base, at: { folder, workspace }, file: path.join(folder, "history") }
  }),
  ({ base }) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
)
const redactor = Redaction.make(["declared-value"])

describe("what was typed at the prompt", () => {
  it.scopedLive("is kept but for what is or may be a secret", () =>
    Effect.gen(function* () {
      const { at, file } = yield* place
      const history = PromptHistory.open(at, redactor)
      const secret = [
        "use declared-value there",
        `the key is ${["ghp", "0".repeat(30)].join("_")}`,
        "password: hunter2",
        "My PASSWORD is hunter2",
        "run mysql --password=hunter2",
        "run curl https://me:hunter2@example.com",
        "set API_KEY=12345",
        "export DB_PASSWORD=hunter2",
        "the api key: abc",
        "passphrase = correct horse",
        " begins with a blank",
        "x".repeat(20_001)
      ]
      const plain = ["fix the password dialog", "count tokens", "why is the secret store slow?", "a\nb", "/cost"]
      for (const line of [...secret, ...plain, "/cost", "", "  "]) yield* history.add(line)
      assert.deepStrictEqual(PromptHistory.open(at, redactor).entries, plain)
      assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
    })
  )

  it.scopedLive("stays short, and private again where it was not", () =>
    Effect.gen(function* () {
      const { at, file } = yield* place
      const history = PromptHistory.open(at, redactor)
      yield* history.add("first")
      fs.chmodSync(file, 0o644)
      fs.appendFileSync(file, `${JSON.stringify("y".repeat(15_000))}\n`.repeat(80))
      yield* history.add("last")
      assert.isBelow(fs.statSync(file).size, 1_300_000)
      yield* history.add("very last")
      assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
      assert.deepStrictEqual(PromptHistory.open(at, redactor).entries.slice(-2), ["last", "very last"])
      assert.isAtMost(PromptHistory.open(at, redactor).entries.length, 1_000)
    })
  )

  it.scopedLive("is written through no link, and never fails", () =>
    Effect.gen(function* () {
      const { at, base, file } = yield* place
      const other = path.join(base, "other")
      fs.writeFileSync(other, "mine")
      fs.mkdirSync(at.folder, { recursive: true, mode: 0o700 })
      fs.symlinkSync(other, file)
      yield* PromptHistory.open(at, redactor).add("words")
      assert.strictEqual(fs.readFileSync(other, "utf8"), "mine")
      fs.rmSync(file)
      fs.mkdirSync(file)
      yield* PromptHistory.open(at, redactor).add("words")
      yield* PromptHistory.open({ ...at, folder: "/proc/nowhere/workspaces/x" }, redactor).add("words")
    })
  )
})
