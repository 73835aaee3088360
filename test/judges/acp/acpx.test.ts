/** acpx, a client that others wrote, drives the built `assent acp`. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as AcpSchema from "../../kit/AcpSchema.js"
import * as Program from "../../kit/Program.js"
import * as ServerKit from "../../kit/ServerKit.js"
import * as Judged from "../Judged.js"

const acpx = fileURLToPath(new URL("node_modules/acpx/dist/cli.js", import.meta.url))
const judged = it.scopedLive.skipIf(!Judged.isInstalled("acp"))

/** Runs acpx in a place; each call is a client of its own. */
const client = (place: Program.Place, ...agent: ReadonlyArray<string>) => {
  const command = [process.execPath, Program.binary, "acp", ...agent].join(" ")
  return (...words: ReadonlyArray<string>) =>
    Judged.run(place, Judged.node("acp"), [acpx, "--agent", command, "--cwd", place.path("workspace"), ...words])
}

const strict = ["--format", "json", "--json-strict"]

const linesOf = (stdout: string): ReadonlyArray<any> =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

describe("acpx 0.19.1", () => {
  judged("sees the end of the turn last, and the file is written", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { code, stdout } = yield* client(place)("--approve-all", "exec", "write a.txt: hi")
      assert.strictEqual(code, 0)
      assert.strictEqual(stdout.trim().split("\n").at(-1), "[done] end_turn")
      assert.strictEqual(yield* place.read("workspace/a.txt"), "hi")
    })
  )

  judged("denies by the option that was offered, and nothing is written", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { code, stdout } = yield* client(place)("--deny-all", ...strict, "exec", "write b.txt: hi")
      assert.strictEqual(code, 5)
      assert.isFalse(existsSync(place.path("workspace/b.txt")))
      const chosen = linesOf(stdout).flatMap(({ result }) => result?.outcome?.optionId ?? [])
      assert.deepStrictEqual(chosen, ["n"])
    })
  )

  judged("gets lines of the protocol alone, and the answer to the prompt is the last", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { stdout } = yield* client(place)("--approve-all", ...strict, "exec", "write a.txt: hi")
      const lines = linesOf(stdout)
      const updates = lines.filter(({ method }) => method === "session/update")
      assert.isAtLeast(updates.length, 5)
      for (const { params } of updates) assert.isUndefined(AcpSchema.problem("SessionNotification", params))
      assert.deepStrictEqual(lines.at(-1)?.result, { stopReason: "end_turn" })
    })
  )

  judged("leaves no command behind when it runs out of time", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { code } = yield* client(place)("--approve-all", "--timeout", "4", "exec", "run sleep 98713")
      assert.strictEqual(code, 3)
      assert.strictEqual(yield* Judged.running("sleep 98713"), "")
    })
  )

  judged("cancels a prompt from another process, and goes on with the same session", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const run = client(place)
      const made = yield* run("sessions", "new", "--name", "s")
      assert.strictEqual(made.code, 0, made.stderr)
      const prompt = yield* Effect.fork(
        run("--approve-all", "--ttl", "1", "prompt", "-s", "s", "run echo > began; sleep 98714")
      )
      yield* place.appears("workspace/began")
      const cancelled = yield* run("cancel", "-s", "s")
      assert.strictEqual(cancelled.code, 0, cancelled.stderr)
      const { code, stdout } = yield* prompt
      assert.strictEqual(code, 0)
      assert.include(stdout, "[done] cancelled")
      assert.strictEqual(yield* Judged.running("sleep 98714"), "")
      const again = yield* run("--approve-all", "--ttl", "1", ...strict, "prompt", "-s", "s", "list")
      assert.strictEqual(again.code, 0)
      // One session: the one that was made is the one that is spoken to.
      assert.lengthOf(yield* place.list("state/workspaces"), 1)
      const listed = yield* place.run(["sessions", "list", "--json"])
      assert.lengthOf(linesOf(listed.stdout), 1)
    })
  )

  judged("denies without a person, and by its own policy", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const run = client(place)
      const policy = JSON.stringify({ autoDeny: ["execute"], defaultAction: "deny" })
      const ends = yield* Effect.all([
        run("--non-interactive-permissions", "fail", "exec", "run touch z"),
        run("--permission-policy", policy, "exec", "run touch z")
      ])
      assert.deepStrictEqual(
        ends.map(({ code }) => code),
        [5, 5]
      )
      assert.isFalse(existsSync(place.path("workspace/z")))
    })
  )

  judged("without forms never answers a question of ours, although it approves everything", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const question = { text: "Which colour?", question_type: "free_text" }
      const model = yield* place.script(
        { tools: [{ name: "request_clarification", params: { context: "c", questions: [question] } }] },
        { text: "I go on." }
      )
      const { code, stdout } = yield* client(place, "--model", model)("--approve-all", ...strict, "exec", "go")
      assert.strictEqual(code, 0)
      assert.notInclude(stdout, "session/request_permission")
      assert.include(stdout, "the editor takes no forms")
    })
  )

  judged("with forms answers each question of ours, and leaves one out", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const questions = [
        { text: "Which colour?", question_type: "single_choice", choices: ["green", "red"] },
        { text: "Which size?", question_type: "free_text", required: false },
        { text: "Why?", question_type: "free_text" }
      ]
      const model = yield* place.script(
        { tools: [{ name: "request_clarification", params: { context: "c", questions } }] },
        { text: "I go on." }
      )
      const agent = [process.execPath, Program.binary, "acp", "--model", model].join(" ")
      const driver = fileURLToPath(new URL("runtime.mjs", import.meta.url))
      const state = yield* place.makeDirectory("acpx")
      const { stdout, stderr } = yield* Judged.run(place, Judged.node("acp"), [
        driver,
        agent,
        place.path("workspace"),
        state
      ])
      const lines = linesOf(stdout)
      assert.deepStrictEqual(
        lines.flatMap(({ form }) => (form === undefined ? [] : [form.names])),
        [["q01", "q02", "q03"]],
        stderr
      )
      const text = JSON.stringify(lines)
      assert.include(text, "green")
      assert.include(text, "because")
      assert.include(text, "I go on.")
    })
  )

  judged("gets lines of the protocol alone in a turn of 500 calls", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const call = (_: unknown, i: number) => ({ name: "write_file", params: { path: `f${i}.txt`, content: "x" } })
      const step = { tools: Array.from({ length: 50 }, call) }
      const model = yield* place.script(...Array.from({ length: 10 }, () => step), { text: "done" })
      const { code, stdout } = yield* client(place, "--model", model)("--approve-all", ...strict, "exec", "go")
      assert.strictEqual(code, 0)
      const lines = linesOf(stdout)
      const updates = lines.filter(({ method }) => method === "session/update")
      const calls = updates.filter(({ params }) => params.update.sessionUpdate === "tool_call")
      assert.lengthOf(calls, 500)
      const bad = updates.flatMap(({ params }) => AcpSchema.problem("SessionNotification", params) ?? [])
      assert.deepStrictEqual(bad, [])
      assert.deepStrictEqual(lines.at(-1)?.result, { stopReason: "end_turn" })
    })
  )

  judged("brings a tool server to its session, and its calls ask", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(
        { tools: [{ name: "run_command", params: { command: "sleep 5" } }] },
        { tools: [{ name: "mcp__legacy__echo", params: { text: "hello" } }] },
        { text: "done" }
      )
      const { args, command } = ServerKit.legacySettings()
      const config = yield* place.write("mcp.json", {
        mcpServers: [{ name: "legacy", type: "stdio", command, args, env: [] }]
      })
      const run = client(place, "--model", model)
      const allowed = yield* run("--mcp-config", config, "--approve-all", ...strict, "exec", "go")
      assert.include(allowed.stdout, "hello", allowed.stderr)
      const denied = yield* run("--mcp-config", config, "--deny-all", ...strict, "exec", "go")
      assert.notInclude(denied.stdout, "\\nhello\\n")
      assert.strictEqual(denied.code, 5)
    })
  )
})
