import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"

const reviewer = {
  description: "Reviews code",
  plugins: ["files", "run_command"],
  model: "gemini-flash",
  provider: "google",
  max_turns: 5,
  auto_approved: true,
  system_instructions: "Work in ${workspaceRoot} for ${TEAM}, not ${OPENAI_API_KEY} nor ${toString}.",
  plugin_configs: { cli: { home: "${HOME}" } },
  gc: { type: "budget", pressure_percent: 0 }
}

describe.concurrent("assent profiles", () => {
  it.scopedLive("lists the shipped ones where there are no files", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { code, stdout, stderr } = yield* at.call(["profiles"])
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, "")
      assert.notInclude(stdout, "\u001b")
      const lines = Program.linesOf(stdout)
      assert.deepStrictEqual(
        lines.filter((line) => !line.startsWith(" ")).map((line) => line.split("  ")[0]),
        ["code_reviewer", "explore", "plan"]
      )
      assert.include(lines[1], "model as its parent (offline); tools files, grep, cli; from built-in")
      assert.deepStrictEqual(yield* at.call(["profiles", "list"]), { code, stdout, stderr })
      assert.deepStrictEqual(yield* at.call(["profiles", "check"]), {
        code: 0,
        stdout: "3 profiles, no problem\n",
        stderr
      })
    })
  )

  it.scopedLive(
    "finds the workspace's before the user's own once it is trusted, and the user's before the shipped ones",
    () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("workspace/.assent/profiles/one.json", { description: "first" })
        yield* at.write("workspace/.jaato/profiles/one.yaml", "description: second\n")
        yield* at.write("workspace/.jaato/profiles/two.yaml", "description: second\n")
        yield* at.write("config/profiles/two.yml", "description: third\n")
        yield* at.write("config/profiles/plan.json", { description: "third" })
        const untrusted = yield* at.call(["profiles", "list"])
        for (const line of ["one  first", "two  third", "plan  third"]) {
          assert.include(Program.linesOf(untrusted.stdout), line)
        }
        const { code, stdout } = yield* at.call(["profiles", "list", "--trust"])
        assert.strictEqual(code, 0)
        const lines = Program.linesOf(stdout)
        for (const line of ["one  first", "two  second", "plan  third"]) assert.include(lines, line)
        assert.include(stdout, `from ${at.path("config/profiles/plan.json")}`)
      })
  )

  it.scopedLive("shows what a profile comes to, and less of it before the workspace is trusted", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/.assent/profiles/reviewer.json", reviewer)
      const env = { TEAM: "us", OPENAI_API_KEY: "sk-secret" }
      const before = yield* at.call(["profiles", "show", "reviewer"], { env })
      assert.strictEqual(before.code, 0)
      assert.include(
        before.stdout,
        `Work in ${at.path("workspace")} for \${TEAM}, not \${OPENAI_API_KEY} nor \${toString}.`
      )
      assert.match(before.stdout, /^asks +as the policy says$/m)
      assert.include(before.stderr, "$.auto_approved: it has no effect until the directory is trusted")
      assert.include(before.stderr, "${TEAM} stays as it is written")
      const { stderr, stdout } = yield* at.call(["profiles", "--trust", "show", "reviewer"], { env })
      assert.strictEqual(stderr, "")
      assert.match(stdout, /^reviewer {2}Reviews code$/m)
      assert.match(stdout, /^model +google\/gemini-flash$/m)
      assert.match(stdout, /^tools +.*\brun_command\b.*\brequest_clarification\b/m)
      assert.notMatch(stdout, /^tools +.*\bwrite_file\b/m)
      assert.match(stdout, /^max turns +5$/m)
      assert.match(stdout, /^asks +nobody; guards still deny$/m)
      assert.match(stdout, /^compaction +.*"type":"budget".*"pressurePercent":0/m)
      assert.include(stdout, `{"home":"${at.path("home")}"}`)
      assert.include(stdout, "for us, not ${OPENAI_API_KEY} nor ${toString}.")
      assert.notInclude(stdout, "sk-secret")
    })
  )

  it.scopedLive("shows that the explorer and the planner only read", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      for (const name of ["explore", "plan"]) {
        const { stdout } = yield* at.call(["profiles", "show", name])
        const tools = /^tools +(.*)$/m.exec(stdout)?.[1]?.split(", ").toSorted()
        assert.deepStrictEqual(tools, ["list_files", "read_file", "request_clarification", "search_files"])
      }
    })
  )

  it.scopedLive("tells every problem, and goes on with the other profiles", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const bad = yield* at.write("workspace/.assent/profiles/bad.yaml", "plugins: nothing\nmax_turns: 0\n")
      yield* at.write("workspace/.assent/profiles/good.json", { description: "good", plugins: ["fles"] })
      const list = yield* at.call(["profiles"])
      assert.strictEqual(list.code, 0)
      assert.include(list.stdout, "good  good")
      assert.strictEqual(list.stderr, "assent: 4 problems in profile files. Run assent profiles check.\n")
      const check = yield* at.call(["profiles", "check"])
      assert.strictEqual(check.code, 2)
      const lines = Program.linesOf(check.stdout)
      assert.strictEqual(lines.length, 4)
      assert.strictEqual(lines.filter((line) => line.startsWith(`${bad}: $.`)).length, 3)
      assert.include(lines[3], '$.plugins[0]: "fles" is neither a tool nor a group; there are')
      const shown = yield* at.call(["profiles", "show", "good"])
      assert.strictEqual(shown.code, 0)
      assert.include(shown.stderr, "fles")
    })
  )

  it.scopedLive("checks files by name, wherever they are", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const good = yield* at.write("elsewhere/good.yaml", "description: good\nauto_approved: true\n")
      const bad = yield* at.write("workspace/bad.json", "{")
      assert.deepStrictEqual(yield* at.call(["profiles", "check", good]), {
        code: 0,
        stdout: "1 file, no problem\n",
        stderr: ""
      })
      const { code, stdout } = yield* at.call(["profiles", "check", good, "bad.json", "missing.json"])
      assert.strictEqual(code, 2)
      const lines = Program.linesOf(stdout)
      assert.strictEqual(lines.length, 2)
      assert.include(lines[0], `${bad}: $: not JSON`)
      assert.strictEqual(lines[1], `${at.path("workspace/missing.json")}: $: there is no such file`)
    })
  )

  it.scopedLive("refuses other words, and names of no profile", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const unknown = yield* at.call(["profiles", "show", "reviewer"])
      assert.deepStrictEqual(unknown, {
        code: 2,
        stdout: "",
        stderr: 'assent: There is no profile "reviewer". There are: code_reviewer, explore, plan.\n'
      })
      for (const words of [["show"], ["show", "a", "b"], ["list", "x"], ["remove"]]) {
        const { code, stderr } = yield* at.call(["profiles", ...words])
        assert.strictEqual(code, 2, words.join(" "))
        assert.strictEqual(stderr, "assent: assent profiles takes: list; show NAME; check [FILE…].\n")
      }
      const mediator = yield* at.call(["run", "--mediator", "nobody"])
      assert.strictEqual(mediator.code, 2)
      assert.strictEqual(mediator.stderr, 'assent: --mediator takes forward or agent, not "nobody".\n')
    })
  )

  it.scopedLive("lets no file write to the terminal", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/profiles/x.json", {
        description: "\u001b[2Jgone\nexplore  fake",
        system_instructions: "\u001b]0;title\u0007",
        icon_name: "\u202e"
      })
      for (const words of [["list"], ["show", "x"]]) {
        const { stdout } = yield* at.call(["profiles", ...words])
        assert.notMatch(stdout, /[\u001b\u0007\u202e]/)
        assert.notInclude(Program.linesOf(stdout), "explore  fake")
      }
    })
  )
})
