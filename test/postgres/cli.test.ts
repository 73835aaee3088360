/** The program with its sessions in PostgreSQL. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as StoreAddress from "../../src/host/local/StoreAddress.js"
import * as Postgres from "../kit/Postgres.js"
import * as Program from "../kit/Program.js"

describe.runIf(Postgres.isThere)("assent with its sessions in PostgreSQL", () => {
  it.scopedLive("keeps, lists, answers and goes on with them, and tells the password nobody", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const address = Redacted.value(Postgres.url(yield* Postgres.schema))
      const password = StoreAddress.passwordIn(address) ?? ""
      assert.isAbove(password.length, 3)
      const env = { ASSENT_STORE: address }
      const told: Array<string> = []
      const run = (args: ReadonlyArray<string>, options: Parameters<typeof at.run>[1] = { env }) =>
        Effect.tap(at.run(args, options), ({ stderr, stdout }) => Effect.sync(() => told.push(stdout, stderr)))

      const halted = yield* run(["run", "write a.txt: hello"])
      assert.strictEqual(halted.code, 3, halted.stderr)
      const waiting = yield* run(["sessions", "waiting"])
      const [, request = "", id = ""] = /^(req_\S+)[^]* in (ses_\S+)/.exec(waiting.stdout) ?? []
      assert.strictEqual((yield* run(["sessions", "answer", id, request, "y"])).code, 0)
      const gone = yield* run(["run", "--resume", id])
      assert.strictEqual(gone.code, 0, gone.stderr)
      assert.strictEqual(yield* at.read("workspace/a.txt"), "hello")
      // By flag too, and so it is shown how to go on: without the password.
      const flagged = yield* run(["run", "--store", address, "write b.txt: hello"], {})
      const shown = StoreAddress.shown(address)
      assert.match(flagged.stderr, /resume with: assent run .*--store /)
      assert.include(flagged.stderr.replaceAll("'", ""), `--store ${shown}`)
      const again = yield* run(["sessions", "--store", shown, "list"], { env: { PGPASSWORD: password } })
      assert.lengthOf(again.stdout.trim().split("\n"), 2)

      // No command has it, confined or not, and what says it is masked.
      const leak = `write leak.txt: ${password}`
      yield* run([
        "run",
        "--yolo",
        "--sandbox",
        "off",
        `run env and run tr '\\0' ' ' < /proc/$PPID/environ and ${leak}`
      ])
      for (const { stdout } of [yield* run(["doctor"]), yield* run(["sessions", "--json"])]) told.push(stdout)
      const ids = (yield* run(["sessions"])).stdout.match(/ses_\S+/g) ?? []
      for (const one of ids) yield* run(["sessions", "export", one])
      const wrong = address.replace(password, "Wrong-Password")
      const refused = yield* run(["sessions", "--store", wrong], {})
      assert.include(refused.stderr, "does not accept this user and password")
      for (const text of told) assert.notInclude(text, password)
      assert.notInclude(refused.stderr, "Wrong-Password")
      // Nothing of it is in a file.
      assert.isFalse((yield* at.list("state")).some((name) => name.endsWith("sessions.db")))
    })
  )
})
