import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Confined from "../kit/Confined.js"
import * as Program from "../kit/Program.js"

describe.concurrent("assent permissions", () => {
  it.scopedLive("shows the user's and the workspace's rules as one", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/permissions.json", {
        guards: { deny: { patterns: ["shutdown *"] } },
        blacklist: { arguments: ["--force"] },
        whitelist: { patterns: ["git status*"] }
      })
      yield* at.write("workspace/.assent/permissions.json", {
        defaultPolicy: "deny",
        blacklist: { tools: ["edit_file"] }
      })
      const { code, stdout, stderr } = yield* at.call(["permissions"])
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, "")
      assert.deepStrictEqual(yield* at.call(["permissions", "show"]), { code, stdout, stderr })
      const lines = Program.linesOf(stdout)
      const section = (title: string) => {
        const from = lines.indexOf(`${title}:`) + 1
        const rest = lines.slice(from)
        const length = rest.findIndex((line) => !line.startsWith("  "))
        return from === 0 ? undefined : rest.slice(0, length < 0 ? rest.length : length).join("\n")
      }
      assert.include(lines, "mode: deny")
      assert.include(section("guards"), "shutdown *")
      assert.include(section("denied by policy"), "--force")
      assert.include(section("denied by policy"), "edit_file")
      assert.include(section("allowed by policy"), "git status*")
      assert.include(section("never ask"), "read_file")
      assert.notInclude(section("never ask"), "write_file")
      assert.strictEqual((yield* at.call(["permissions", "status"])).stdout, "mode: deny\nsuspended: no\n")
    })
  )

  it.scopedLive("checks a call and names what decides", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/notes/a", "x")
      const policy = yield* at.write("policy.json", {
        guards: { deny: { patterns: ["rm -rf *"] } },
        blacklist: { arguments: ["--force"] },
        whitelist: { patterns: ["git status*"] }
      })
      const checks: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [["run_command", "git", "status"], /^allow \(whitelist\): git status\*\n$/],
        [["run_command", "git status; rm -rf x"], /^deny \(guard\): forbidden by rule rm -rf \*/],
        [["run_command", "git status; ls"], /^ask \(default\)/],
        [["run_command", "--", "git", "push", "--force"], /^deny \(blacklist\): --force/],
        [["run_command", '{"command":"git status -s"}'], /^allow \(whitelist\)/],
        [["write_file", '{"path":"notes/a","content":"x"}'], /^ask \(default\)/],
        [["read_file", '{"path":"none"}'], /^deny \(pre_validation\): none does not exist/],
        [["read_file", '{"path":"notes/a"}'], /^allow \(auto_approved\)/],
        [["run_command", "cat", "/etc/passwd"], /^ask \(guard\): The path \/etc\/passwd leads outside/],
        [["write_file", '{"path":".assent/x","content":""}'], /^deny \(pre_validation\): /],
        [["write_file", '{"path":".git/config","content":""}'], /^ask \(/],
        [["write_file", '{"path":7}'], /^deny \(invalid\): /]
      ]
      yield* Effect.forEach(
        checks,
        ([words, said]) =>
          Effect.map(at.call(["permissions", "--policy", policy, "check", ...words]), ({ code, stdout, stderr }) => {
            assert.match(stdout, said, words.join(" "))
            assert.strictEqual(code, 0)
            assert.strictEqual(stderr, "")
          }),
        { concurrency: 2, discard: true }
      )
    })
  )

  it.scopedLive("judges a call as an agent started with the same flags would be judged", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const notes = yield* at.write("added/notes", "x")
      const policy = yield* at.write("policy.json", { whitelist: { tools: ["run_command"] } })
      const directory = notes.replace(/\/notes$/, "")
      const added = ["--add-dir", directory]
      const inAdded = `{"path":"${notes}","content":"y"}`
      const checks: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [["write_file", inAdded], /^deny \(pre_validation\): .*outside the workspace/],
        [["write_file", inAdded, ...added], /^ask \(default\)/],
        [["read_file", `{"path":"${notes}"}`, ...added], /^allow \(auto_approved\)/],
        [["write_file", `{"path":"${directory}/.assent/x","content":""}`, ...added], /^deny \(pre_validation\): /],
        [["run_command", "touch x"], /^allow \(whitelist\): run_command/],
        [["run_command", "touch x", "--mode", "plan"], /^deny \(mode\): plan mode/],
        [["run_command", "ls", "--mode", "plan"], /^allow \(whitelist\)/],
        [["write_file", '{"path":"x","content":""}', "--mode", "deny"], /^deny \(mode\)/],
        [["propose_plan", '{"plan":"x"}', "--mode", "plan"], /^ask \(guard\)/],
        ...(Confined.isWanted
          ? ([
              [
                ["run_command", '{"command":"ls","sandbox":"off","reason":"why"}', "--sandbox", "auto"],
                /^ask \(guard\): .*outside.*why/
              ]
            ] as const)
          : [])
      ]
      yield* Effect.forEach(
        checks,
        ([words, said]) =>
          Effect.map(at.call(["permissions", "--policy", policy, "check", ...words]), ({ stdout }) => {
            assert.match(stdout, said, words.join(" "))
          }),
        { concurrency: 2, discard: true }
      )
      const sandboxed = yield* at.write("sandboxed.json", { whitelist: { sandboxed: true } })
      for (const [sandbox, said] of [
        [Confined.isWanted ? "auto" : "off", Confined.isWanted ? "allow (whitelist)" : "ask (default)"],
        ["off", "ask (default)"]
      ] as const) {
        const check = ["permissions", "check", "run_command", "touch x", "--policy", sandboxed, "--sandbox", sandbox]
        assert.include((yield* at.call(check)).stdout, said)
      }
    })
  )

  it.scopedLive("changes nothing without a session, and does not say that it did", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      for (const words of ["allow git *", "deny x *", "mode deny", "default allow", "suspend", "resume", "clear"]) {
        const { code, stderr, stdout } = yield* at.call(["permissions", ...words.split(" ")])
        assert.deepStrictEqual([code, stdout], [2, ""], words)
        assert.include(stderr, "changes a running session", words)
      }
      assert.strictEqual((yield* at.call(["permissions", "mode", "--mode", "plan"])).stdout, "mode: plan\n")
    })
  )
})
