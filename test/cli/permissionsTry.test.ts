import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"

const command = (command: string) => ({ name: "run_command", params: { command } })

describe.concurrent("assent permissions try", () => {
  it.scopedLive("goes through what was decided here, with the arguments that the journal has", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const now = yield* at.write("now.json", {
        defaultPolicy: "deny",
        whitelist: { patterns: ["echo *"] },
        blacklist: { tools: ["write_file"] }
      })
      const model = yield* at.script(
        {
          tools: [
            command("echo one"),
            command("echo two"),
            command("uname"),
            { name: "write_file", params: { path: "a", content: "b" } },
            { name: "list_files", params: { path: "." } }
          ]
        },
        { text: "done" }
      )
      const ran = yield* at.call(["run", "--model", model, "--policy", now, "go"])
      assert.strictEqual(ran.code, 0, ran.stderr)
      const next = yield* at.write("next.json", {
        defaultPolicy: "ask",
        whitelist: { tools: ["write_file"] },
        guards: { deny: { patterns: ["echo t*"] } }
      })
      const tried = yield* at.call(["permissions", "try", next])
      assert.strictEqual(tried.stderr, "")
      assert.strictEqual(tried.code, 0)
      const [first, ...lines] = Program.linesOf(tried.stdout)
      assert.strictEqual(first, "5 calls in the audit: 1 decided the same, 4 otherwise, 0 not told.")
      assert.deepStrictEqual(lines.slice(0, 5), [
        "denied -> allow  1x  by write_file  (write_file)",
        "  Careful: all of them were refused then.",
        "allowed -> ask  1x  by the default is ask  (run_command)",
        "allowed -> deny  1x  by echo t*  (run_command)",
        "denied -> ask  1x  by the default is ask  (run_command)"
      ])
      assert.isTrue(lines.slice(5).every((line) => line.startsWith("Note: ")))
      // Without the journal only names are told.
      const blind = yield* at.call(["permissions", "try", next, "--store", ":memory:"])
      assert.match(blind.stdout, /^5 calls in the audit: 1 decided the same, 1 otherwise, 3 not told\.\n/)
      assert.match(blind.stdout, /not told {2}3x {2}its rules look at arguments/)
      // Nothing is changed by a trial.
      assert.strictEqual((yield* at.call(["permissions", "try", next])).stdout, tried.stdout)
      assert.include((yield* at.call(["audit", "verify"])).stdout, "whole and in order")
    })
  )

  it.scopedLive("says what is wrong with the file, and that there is nothing to try it on", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const policy = yield* at.write("policy.json", { defaultPolicy: "deny" })
      const nothing = yield* at.call(["permissions", "try", policy])
      assert.deepStrictEqual([nothing.code, nothing.stderr], [0, ""])
      assert.strictEqual(nothing.stdout, "0 calls in the audit: 0 decided the same, 0 otherwise, 0 not told.\n")
      const wrong: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [[], /permissions try takes one file/],
        [[policy, policy], /permissions try takes one file/],
        [["none.json"], /There is no policy file none\.json/],
        [[yield* at.write("half.json", { defaultPolicy: "no" })], /\$\.defaultPolicy: expected one of/],
        [[yield* at.write("name.json", { blacklist: { tools: ["write_fil"] } })], /Did you mean write_file\?/]
      ]
      for (const [words, message] of wrong) {
        const { code, stderr, stdout } = yield* at.call(["permissions", "try", ...words])
        assert.strictEqual(code, 2, stdout)
        assert.match(stderr, message)
      }
      const remark = yield* at.call([
        "permissions",
        "try",
        yield* at.write("allow.json", { whitelist: { tools: ["read_fil"] } })
      ])
      assert.strictEqual(remark.code, 0)
      assert.match(remark.stderr, /there is no tool "read_fil"\. Did you mean read_file\?/)
    })
  )
})
