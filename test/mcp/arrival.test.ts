/** Tools of servers that start, die and come back, before model calls and calls of tools. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { copyFileSync, mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { serverWords } from "../../src/mcp/ServerWords.js"
import { allowAll } from "../kit/agents.js"
import * as Confined from "../kit/Confined.js"
import * as Program from "../kit/Program.js"
import * as ServerKit from "../kit/ServerKit.js"

const call = (tool: string, params: object = {}) => ({ tools: [{ name: `mcp__legacy__${tool}`, params }] })

const outcomes = (results: ReadonlyArray<string>) => results.map((text) => text.split(" ")[0])

/** Without a process, whose end would take real time. */
const silent = { name: "silent", url: "http://127.0.0.1:9/mcp" }
const fetch = () => new Promise<never>(() => undefined)

const gone = { command: "no-such-program-of-assent" }

describe("a server that starts", () => {
  it.scopedLive("has its tools in the first model call", () =>
    Effect.gen(function* () {
      const server = yield* ServerKit.begun(ServerKit.legacySettings())
      const script = [call("echo", { text: "hello" }), { text: "done" }]
      const { results } = yield* ServerKit.played(server, { script, policy: allowAll })
      assert.deepStrictEqual(outcomes(results), ["succeeded"])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("is waited for 5 seconds, once, and then said to be late", () =>
    Effect.gen(function* () {
      const server = yield* ServerKit.begun(silent, { fetch })
      const waits = yield* Effect.fork(server.arrival?.() ?? Effect.fail("no wait"))
      yield* TestClock.adjust("4999 millis")
      assert.isTrue((yield* Fiber.poll(waits))._tag === "None")
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(waits)
      assert.strictEqual(
        serverWords(server.state()),
        "The tool server silent is not ready after 5 seconds. The agent goes on without its tools."
      )
      assert.isUndefined(server.arrival?.())
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("is not waited for if the person wants no wait, or once it has failed", () =>
    Effect.gen(function* () {
      const hasty = yield* ServerKit.begun(silent, { fetch, wait: 0 })
      assert.isUndefined(hasty.arrival?.())
      const server = yield* ServerKit.started({ name: "gone", ...gone })
      assert.strictEqual(server.state().state, "failed")
      assert.isUndefined(server.arrival?.())
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("has a line on standard error if it cannot start, and the run goes on", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/config.json", { mcp_servers: { gone } })
      const model = yield* at.script({ text: "done" })
      const { code, stderr, stdout } = yield* at.run(["run", "--model", model, "go"])
      assert.strictEqual(code, 0)
      assert.include(stdout, "done")
      assert.include(stderr, "The tool server gone cannot be started: there is no program no-such-program-of-assent.")
    })
  )

  it.scopedLive("ends a run with exit code 2 if it cannot start and the settings require it", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/config.json", { mcp: { required: true }, mcp_servers: { gone } })
      const model = yield* at.script({ text: "done" })
      const { code, stderr, stdout } = yield* at.run(["run", "--model", model, "go"])
      assert.strictEqual(code, 2)
      assert.strictEqual(stdout, "")
      assert.include(stderr, "The tool server gone cannot be started: there is no program no-such-program-of-assent.")
      assert.include(stderr, '"mcp.required"')
    })
  )
})

describe("a server that dies", () => {
  it.scopedLive("is back for the next call, each time", () =>
    Effect.gen(function* () {
      const server = yield* ServerKit.begun(ServerKit.legacySettings())
      const echo = call("echo", { text: "again" })
      const script = [call("crash"), echo, call("crash"), echo, { text: "done" }]
      const { results } = yield* ServerKit.played(server, { script, policy: allowAll })
      assert.deepStrictEqual(outcomes(results), ["failed", "succeeded", "failed", "succeeded"])
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

describe.runIf(Confined.isWanted)("a program that the sandbox hides", () => {
  const directory = () => mkdtempSync(join(tmpdir(), "assent-arrival-"))
  for (const [where, programOf] of [
    ["an argument", (file: string) => ({ command: process.execPath, args: [file] })],
    [
      "a path from the workspace",
      (file: string, from: string) => ({ command: process.execPath, args: [relative(from, file)] })
    ],
    ["the program itself", (file: string) => ({ command: file })]
  ] as const)
    it.scopedLive(`fails with a sentence that names the sandbox and readable: ${where}`, () =>
      Effect.gen(function* () {
        const workspace = directory()
        const file = join(directory(), "server.mjs")
        copyFileSync("test/kit/servers/legacy.mjs", file)
        const settings = { name: "far", ...programOf(file, workspace) }
        const server = yield* ServerKit.started(settings, { workspace, sandbox: { root: workspace } })
        const { reason = "", state } = server.state()
        assert.strictEqual(state, "failed")
        assert.include(reason, `The sandbox hides ${file}. Add it or its directory to sandbox.readable in config.json`)
      }).pipe(Effect.provide(NodeContext.layer))
    )
})
