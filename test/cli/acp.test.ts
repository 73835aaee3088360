import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as fs from "node:fs"
import * as AcpEditor from "../kit/AcpEditor.js"
import * as AcpProgram from "../kit/AcpProgram.js"
import * as Program from "../kit/Program.js"

const { started } = AcpProgram
const { choose, text } = AcpEditor

describe.concurrent("assent acp", () => {
  it.scopedLive(
    "--attach shows a session of a server at two editors: answered at one, the other's dialog closes",
    () =>
      Effect.gen(function* () {
        const place = yield* Program.place
        const cwd = place.path("workspace")
        const none = yield* place.run(["acp", "--attach"])
        assert.deepStrictEqual([none.code, none.stdout], [2, ""])
        const model = yield* place.script(
          { tools: [{ name: "run_command", params: { command: "touch made" } }] },
          { tools: [{ name: "run_command", params: { command: "touch again" } }] },
          { text: "all done" }
        )
        const server = yield* place.start(["serve", "--port", "0", "--model", model])
        yield* server.line((text) => text.startsWith("http://"))
        const one = yield* started(place, { args: ["--attach"] })
        const { configOptions, sessionId } = yield* one.request("session/new", { cwd, mcpServers: [] })
        assert.deepInclude(
          configOptions?.find(({ id }) => id === "mode"),
          { currentValue: "ask" }
        )
        const models = configOptions?.find(({ id }) => id === "model")
        assert.include(JSON.stringify(models), '"value":"offline/offline"')
        const prompt = yield* Effect.fork(one.request("session/prompt", { sessionId, prompt: text("go") }))
        const asked = yield* one.question(0)
        const two = yield* started(place, { args: ["--attach"], answers: () => choose("y") })
        const { sessions } = yield* two.request("session/list", { cwd })
        assert.deepStrictEqual(
          sessions.map((found) => found.sessionId),
          [sessionId]
        )
        yield* two.request("session/load", { sessionId, cwd, mcpServers: [] })
        assert.deepStrictEqual(yield* Fiber.join(prompt), { stopReason: "end_turn" })
        assert.isTrue(asked.isWithdrawn())
        assert.isTrue((yield* one.question(1)).isWithdrawn())
        assert.deepStrictEqual(yield* place.list("workspace"), ["again", "made"])
        // On the line the words come first; the editor's library hands an answer over sooner than a notification.
        yield* one.sees(() => (AcpEditor.saying(one.updates).includes("all done") ? true : undefined))
        yield* two.sees(() => (AcpEditor.saying(two.updates).includes("all done") ? true : undefined))
        // Each time, the person is told why the dialog is gone.
        const heard = AcpEditor.saying(one.updates).match(/The question was answered by \S+\.\n/g)
        assert.lengthOf(heard ?? [], 2)
        assert.notInclude(AcpEditor.saying(two.updates), "The question was answered")
        AcpEditor.judge(one)
        AcpEditor.judge(two)
        // The session stays at the server.
        yield* one.leave
        yield* one.exit
        const again = yield* two.request("session/prompt", { sessionId, prompt: text("/cost") })
        assert.deepStrictEqual(again, { stopReason: "end_turn" })
        yield* two.request("session/close", { sessionId })
        assert.lengthOf((yield* two.request("session/list", { cwd })).sessions, 1)
      }),
    90_000
  )

  it.scopedLive("that is killed at a question asks it again under its id, and the call runs once", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const cwd = place.path("workspace")
      const first = yield* started(place)
      const { sessionId } = yield* first.request("session/new", { cwd, mcpServers: [] })
      yield* Effect.fork(first.refusal("session/prompt", { sessionId, prompt: text("run echo once >> log.txt") }))
      const asked = yield* first.question(0)
      first.child.kill("SIGKILL")
      yield* first.exit
      const second = yield* started(place, { answers: () => choose("y") })
      yield* second.request("session/load", { sessionId, cwd, mcpServers: [] })
      const again = yield* second.question(0)
      assert.strictEqual(again.params._meta?.["assent/requestId"], asked.params._meta?.["assent/requestId"])
      yield* second.request("session/prompt", { sessionId, prompt: text("list") })
      assert.strictEqual(yield* place.read("workspace/log.txt"), "once\n")
      AcpEditor.judge(second)
    })
  )

  it.scopedLive("keeps a session that nobody spoke to, also when it is killed", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const cwd = place.path("workspace")
      const first = yield* started(place)
      const { sessionId } = yield* first.request("session/new", { cwd, mcpServers: [] })
      first.child.kill("SIGKILL")
      yield* first.exit
      const second = yield* started(place)
      yield* second.request("session/resume", { sessionId, cwd })
    })
  )

  it.scopedLive("ends what runs when the editor closes standard input, and exits with 0", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const cwd = place.path("workspace")
      const editor = yield* started(place, { answers: () => choose("y") })
      const { sessionId } = yield* editor.request("session/new", { cwd, mcpServers: [] })
      const command = "run sh -c 'echo $$ > pid; exec sleep 600'"
      yield* Effect.fork(editor.refusal("session/prompt", { sessionId, prompt: text(command) }))
      const pid = Number(
        yield* editor.sees(() => {
          const file = place.path("workspace", "pid")
          const written = fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim() : ""
          return written === "" ? undefined : written
        })
      )
      const before = Date.now()
      yield* editor.leave
      assert.strictEqual(yield* editor.exit, 0)
      assert.isBelow(Date.now() - before, 60_000)
      assert.isFalse(Program.isAlive(pid))
    })
  )

  it.scopedLive("gives each session of one process the key, and says which one is missing", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const cwd = place.path("workspace")
      const args = ["--model", "anthropic/claude-sonnet-4-5"]
      const editor = yield* started(place, { args, env: { ANTHROPIC_API_KEY: "sk-ant-1" } })
      const servers = [{ name: "files", command: "/bin/files", args: [], env: [] }]
      yield* editor.request("session/new", { cwd, mcpServers: [] })
      yield* editor.request("session/new", { cwd, mcpServers: servers })
      yield* editor.sees(() =>
        /The tool server files cannot be started/.test(AcpEditor.saying(editor.updates)) ? true : undefined
      )
      const poor = yield* started(place, { args })
      assert.match(yield* poor.refusal("session/new", { cwd, mcpServers: [] }), /^-32000 .*ANTHROPIC_API_KEY/)
    })
  )

  it.scopedLive("names the process that holds a session", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const cwd = place.path("workspace")
      const first = yield* started(place)
      const { sessionId } = yield* first.request("session/new", { cwd, mcpServers: [] })
      const second = yield* started(place)
      assert.match(
        yield* second.refusal("session/load", { sessionId, cwd, mcpServers: [] }),
        new RegExp(`^-32603 .*process ${first.child.pid}`)
      )
    })
  )
})
