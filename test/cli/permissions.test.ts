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
      assert.include(stdout, `defaultPolicy: "deny" (${at.path("workspace/.assent/permissions.json")})`)
      assert.notInclude(stdout, "metacharacters")
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

  it.scopedLive("denies paths to every tool, to commands and to mentions, and names the entry", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/.env", "COLOUR=mauve17")
      yield* at.write("workspace/secrets/key", "mauve17")
      yield* at.write("config/permissions.json", { blacklist: { paths: [".env"] }, whitelist: { readonly: true } })
      // What a workspace denies counts without trust.
      const own = yield* at.write("workspace/.assent/permissions.json", { blacklist: { paths: ["secrets/**"] } })
      const shown = (yield* at.call(["permissions", "show"])).stdout
      assert.include(shown, `  path .env (${at.path("config/permissions.json")})`)
      assert.include(shown, `  path secrets/** (${own})`)
      const checks: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [["read_file", '{"path":".env"}'], /^deny \(guard\): \.env is denied by blacklist\.paths \(\.env\)/],
        [["write_file", '{"path":"secrets/new","content":"x"}'], /^deny \(guard\): .*\(secrets\/\*\*\)/],
        [["list_files", '{"path":"secrets"}'], /^deny \(guard\)/],
        [["run_command", "cat .env"], /^deny \(guard\): \.env is denied/],
        [["fetch_url", '{"url":".env"}'], /^deny \(guard\)/],
        [["list_files", "{}"], /^allow/]
      ]
      for (const [call, line] of checks)
        assert.match((yield* at.call(["permissions", "check", ...call])).stdout, line, call.join(" "))
      const why = yield* at.call(["permissions", "why", "read_file", '{"path":"./.env"}'])
      assert.match(why.stdout, /^Denied, and no rule can allow it: \.\/\.env is denied by blacklist\.paths \(\.env\)/)
      for (const words of [
        ["see @.env"],
        ["see @./secrets/key"],
        ["--file", ".env", "x"],
        ["--image", "secrets/key", "x"]
      ]) {
        const { code, stderr } = yield* at.call(["run", "--model", "offline", "--store", ":memory:", ...words])
        assert.strictEqual(code, 2, words.join(" "))
        assert.match(stderr, /is denied by blacklist\.paths/)
      }
    })
  )

  it.scopedLive("refuses denials that can match no call, with their place and the nearest spelling", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const wrong: ReadonlyArray<readonly [file: object, place: string, words: string]> = [
        [{ blacklist: { patterns: ["write_file"] } }, "$.blacklist.patterns[0]", "Did you mean write_file(*)?"],
        [{ blacklist: { patterns: ["ls", "*(*pth=.env)"] } }, "$.blacklist.patterns[1]", "Did you mean path?"],
        [{ guards: { deny: { patterns: ["edit_*(pth=x)"] } } }, "$.guards.deny.patterns[0]", "Did you mean path?"],
        [{ guards: { deny: { patterns: ["wirte_*(path=x)"] } } }, "$.guards.deny.patterns[0]", "Did you mean write_*?"],
        [{ approvals: [{ patterns: ["edit_file"] }] }, "$.approvals[0].patterns[0]", "Did you mean edit_file(*)?"],
        [{ blacklist: { paths: [".env", "/secrets"] } }, "$.blacklist.paths[1]", "Did you mean secrets?"],
        [{ blacklist: { paths: ["~/.ssh"] } }, "$.blacklist.paths[0]", "Did you mean .ssh?"]
      ]
      for (const [file, place, words] of wrong) {
        const policy = yield* at.write("policy.json", file)
        const { code, stderr } = yield* at.call(["permissions", "--policy", policy, "show"])
        assert.strictEqual(code, 2, place)
        assert.include(stderr, `${place}: `)
        assert.include(stderr, words)
      }
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
      const checks: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp, ...ReadonlyArray<string>]> = [
        [["write_file", inAdded], /^deny \(pre_validation\): .*outside the workspace/],
        [["write_file", inAdded], /^ask \(default\)/, ...added],
        [["read_file", `{"path":"${notes}"}`], /^allow \(auto_approved\)/, ...added],
        [["write_file", `{"path":"${directory}/.assent/x","content":""}`], /^deny \(pre_validation\): /, ...added],
        [["run_command", "touch x"], /^allow \(whitelist\): run_command/],
        [["run_command", "touch x"], /^deny \(mode\): plan mode/, "--mode", "plan"],
        [["run_command", "ls"], /^allow \(whitelist\)/, "--mode", "plan"],
        [["write_file", '{"path":"x","content":""}'], /^deny \(mode\)/, "--mode", "deny"],
        [["propose_plan", '{"plan":"x"}'], /^ask \(guard\)/, "--mode", "plan"],
        ...(Confined.isWanted
          ? ([
              [
                ["run_command", '{"command":"ls","sandbox":"off","reason":"why"}'],
                /^ask \(guard\): .*outside.*why/,
                "--sandbox",
                "auto"
              ]
            ] as const)
          : [])
      ]
      yield* Effect.forEach(
        checks,
        ([words, said, ...flags]) =>
          Effect.map(at.call(["permissions", "--policy", policy, ...flags, "check", ...words]), ({ stdout }) => {
            assert.match(stdout, said, words.join(" "))
          }),
        { concurrency: 2, discard: true }
      )
      const sandboxed = yield* at.write("sandboxed.json", { whitelist: { sandboxed: true } })
      for (const [sandbox, said] of [
        [Confined.isWanted ? "auto" : "off", Confined.isWanted ? "allow (whitelist)" : "ask (default)"],
        ["off", "ask (default)"]
      ] as const) {
        const check = ["permissions", "--policy", sandboxed, "--sandbox", sandbox, "check", "run_command", "touch x"]
        assert.include((yield* at.call(check)).stdout, said)
      }
    })
  )

  it.scopedLive("takes every word behind the tool for a part of the call", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/permissions.json", {
        blacklist: { arguments: ["--force", "-rf"] },
        whitelist: { patterns: ["git commit *", "make --version", "env A=1 make"] }
      })
      const checks: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [["git", "push", "--force"], /^deny \(blacklist\): --force/],
        [["--", "git", "push", "--force"], /^deny \(blacklist\): --force/],
        [["rm", "-rf", "x"], /^deny \(blacklist\): -rf/],
        [["make", "--version"], /^allow \(whitelist\): make --version/],
        [["make", "--help"], /^ask \(/],
        [["make", "-v", "--mode", "allow"], /^ask \(/],
        [["git", "commit", "-m", "one; rm two"], /^allow \(whitelist\): git commit \*/],
        [["git", "commit", "-m", "it's"], /^allow \(whitelist\): git commit \*/],
        // One word is a line as a shell has it.
        [["git commit -m one; rm two"], /^ask \(/]
      ]
      yield* Effect.forEach(
        checks,
        ([words, said]) =>
          Effect.map(at.call(["permissions", "--sandbox", "off", "check", "run_command", ...words]), (result) => {
            assert.match(result.stdout, said, `${words.join(" ")}: ${result.stderr}`)
          }),
        { concurrency: 2, discard: true }
      )
      const why = yield* at.call(["--sandbox", "off", "permissions", "why", "run_command", "rm", "-rf", "x"])
      assert.match(why.stdout, /^Denied by a rule: -rf/)
      const behind = yield* at.call(["permissions", "check", "read_file", '{"path":"a"}', "--mode", "plan"])
      assert.strictEqual(behind.code, 2)
      assert.include(behind.stderr, "Put --mode before them")
    })
  )

  it.scopedLive("checks a delegation as the agent's own would be, with its profiles and limits", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/config.json", {
        limits: { max_depth: 1 },
        allow_inline: true,
        inline_allowed_plugins: ["files"]
      })
      const checks: ReadonlyArray<readonly [string, unknown, RegExp]> = [
        ["delegate", { task: "look", profile: "explore" }, /^ask \(default\)/],
        ["delegate", { task: "look", profile: "nobody" }, /^deny \(pre_validation\): .*nobody/],
        ["delegate", { task: "look", plugins: ["files"] }, /^ask \(default\)/],
        ["delegate", { task: "look", plugins: ["cli"] }, /^deny \(pre_validation\): /],
        ["spawn_subagent", { task: "look", profile: "explore" }, /^ask \(default\)/],
        ["explore", { task: "look" }, /^ask \(default\)/],
        ["plan", { task: "look" }, /^ask \(default\)/],
        ["agent", { task: "look" }, /^ask \(default\)/],
        ["agent", { task: "" }, /^deny \(invalid\)/]
      ]
      yield* Effect.forEach(
        checks,
        ([tool, params, said]) =>
          Effect.map(at.call(["permissions", "check", tool, JSON.stringify(params)]), ({ stdout }) => {
            assert.match(stdout, said, `${tool} ${JSON.stringify(params)}`)
          }),
        { concurrency: 2, discard: true }
      )
      assert.isFalse(yield* at.exists("state/workspaces"))
    })
  )

  it.scopedLive("shows every rule in force with its file, and what run warns of", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const own = yield* at.write("config/permissions.json", {
        defaultPolicy: "ask",
        guards: { deny: { patterns: ["shutdown *"] }, sanitize: { metacharacters: true } },
        whitelist: { patterns: ["git status*"], tools: ["nothing_like_it"], sandboxed: false },
        approvals: [{ tools: ["write_file"], quorum: 2 }],
        delegated: { patterns: ["touch *"] }
      })
      const brought = yield* at.write("workspace/.assent/permissions.json", {
        blacklist: { tools: ["edit_file"] },
        whitelist: { patterns: ["git status*"], readonly: true },
        channel: { type: "file", directory: "/tmp/asked" }
      })
      const { stderr, stdout } = yield* at.call(["permissions"])
      const lines = Program.linesOf(stdout).map((line) => line.trim())
      for (const line of [
        `pattern shutdown * (${own})`,
        `tool edit_file (${brought})`,
        `pattern git status* (${own})`,
        `pattern touch * (${own})`,
        `defaultPolicy: "ask" (${own})`,
        `whitelist.sandboxed: false (${own})`,
        `guards.sanitize.metacharacters: true (${own})`,
        'guards.sanitize.pathScope: "ask" (default)'
      ])
        assert.include(lines, line)
      assert.isTrue(lines.some((line) => line.startsWith("tool write_file: ") && line.endsWith(`(${own})`)))
      for (const unsaid of ["readonly", "dangerousCommands", "roles"]) assert.notInclude(stdout, unsaid)
      assert.notInclude(stdout, "/tmp/asked")
      assert.include(stderr, "nothing_like_it")
      assert.include(stderr, "not trusted")
      const run = yield* at.call(["run", "--channel", "halt", "--store", ":memory:", "list"])
      for (const line of Program.linesOf(stderr)) assert.include(run.stderr, line)
      const trusted = Program.linesOf((yield* at.call(["permissions", "--trust"])).stdout).map((line) => line.trim())
      assert.includeMembers(
        [...trusted],
        [
          `pattern git status* (${own}, ${brought})`,
          `whitelist.readonly: true (${brought})`,
          `channel: {"type":"file","directory":"/tmp/asked"} (${brought})`
        ]
      )
    })
  )

  it.scopedLive("takes the system's temp directory, wherever that is", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/permissions.json", { whitelist: { tools: ["run_command"] } })
      const check = (place: string, env: Record<string, string>) =>
        Effect.map(
          at.call(["permissions", "--sandbox", "off", "check", "run_command", `touch ${place}/x`], { env }),
          ({ stdout }) => stdout.split(" ")[0]
        )
      const temp = at.path("temp")
      assert.strictEqual(yield* check(temp, { TMPDIR: temp }), "allow")
      assert.strictEqual(yield* check("/tmp", { TMPDIR: temp }), "ask")
      // A directory that holds the home is no temp directory.
      for (const wide of ["/", at.path("")]) assert.strictEqual(yield* check("/srv", { TMPDIR: wide }), "ask")
      yield* at.write("config/permissions.json", {
        whitelist: { tools: ["run_command"] },
        guards: { sanitize: { pathScope: { allowTmp: false } } }
      })
      assert.strictEqual(yield* check(temp, { TMPDIR: temp }), "ask")
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

  it.scopedLive("tries a policy on the calls of stored sessions", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/notes", "x")
      const model = yield* at.script(
        {
          tools: [
            { name: "run_command", params: { command: "touch made" } },
            { name: "run_command", params: { command: "rm -r made" } },
            { name: "read_file", params: { path: "notes" } },
            { name: "read_file", params: { path: "none" } }
          ]
        },
        { text: "done" }
      )
      const broad = yield* at.write("broad.json", { whitelist: { patterns: ["touch *"] }, defaultPolicy: "deny" })
      yield* at.call(["run", "--model", model, "--policy", broad, "--sandbox", "off", "go"])
      const other = yield* at.write("other.json", {
        blacklist: { patterns: ["touch *"] },
        whitelist: { patterns: ["rm *"] },
        defaultPolicy: "deny"
      })
      const tried = yield* at.call(["permissions", "try", other, "--sandbox", "off"])
      assert.strictEqual(tried.stderr, "")
      assert.deepStrictEqual(Program.linesOf(tried.stdout), [
        "4 calls in 1 session of this workspace: 1 decided the same, 2 otherwise, 1 not judged.",
        "allowed -> deny  by touch *  (run_command)",
        "denied -> allow  by rm *  (run_command)",
        "  Careful: refused then: 1 call.",
        "not judged: the tool itself refused it  (read_file)"
      ])
      assert.strictEqual(tried.code, 0)
      const same = yield* at.call(["permissions", "try", broad, "--sandbox", "off"])
      assert.match(
        same.stdout,
        /^4 calls in 1 session of this workspace: 3 decided the same, 0 otherwise, 1 not judged\./
      )
      const planned = ["run", "--mode", "plan", "--piped-answers", "write new: x"]
      yield* at.call(planned, { stdin: "y\ny\n" })
      const asking = yield* at.write("asking.json", { defaultPolicy: "ask" })
      assert.deepStrictEqual(Program.linesOf((yield* at.call(["permissions", "try", asking])).stdout).slice(-3), [
        "not judged: the mode of its session decided  (write_file)",
        "not judged: its session was in plan mode  (propose_plan)",
        "not judged: the tool itself refused it  (read_file)"
      ])
      const missing = yield* at.call(["permissions", "try"])
      assert.deepStrictEqual([missing.code, missing.stdout], [2, ""])
      assert.include(missing.stderr, "permissions try takes one policy file")
      assert.strictEqual((yield* at.call(["permissions", "try", at.path("gone.json")])).code, 2)
    })
  )
})
