import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import * as AcpEditor from "../kit/AcpEditor.js"
import * as Program from "../kit/Program.js"

const binary = fileURLToPath(new URL("../../dist/bin/assent.js", import.meta.url))

/** `assent acp` with an editor at it. */
const started = (
  place: Program.Place,
  options: AcpEditor.Options & { readonly args?: ReadonlyArray<string>; readonly env?: Record<string, string> } = {}
) =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [binary, "acp", ...(options.args ?? [])], {
          cwd: place.path("tmp"),
          env: { ...place.environment, ...options.env },
          stdio: ["pipe", "pipe", "ignore"]
        })
      ),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    )
    const exit = new Promise<number | null>((resolve) => child.on("exit", resolve))
    const editor = yield* AcpEditor.open(
      // Node declares its own streams of the web beside those of the platform, which they are.
      { input: Writable.toWeb(child.stdin), output: Readable.toWeb(child.stdout) as ReadableStream<Uint8Array> },
      options
    )
    return { ...editor, child, exit: Effect.promise(() => exit) }
  })

const { choose, text } = AcpEditor

describe("assent acp", () => {
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
      const command = "run sh -c 'echo $$ > pid; exec sleep 60'"
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
      assert.isBelow(Date.now() - before, 5_000)
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
        AcpEditor.saying(editor.updates).includes("does not use the editor's tool servers yet: files")
          ? true
          : undefined
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
