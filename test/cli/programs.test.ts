/** Programs that have more authority than a command, and lie where commands write: at the next start they are as trusted. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Confined from "../kit/Confined.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"
import * as Wait from "../kit/Wait.js"

/** A tool server that leaves a mark when it starts. */
const server = (mark: string) => `require("node:fs").appendFileSync(${JSON.stringify(mark)}, "x")
const send = (message) => process.stdout.write(JSON.stringify(message) + "\\n")
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method === "initialize") send({ jsonrpc: "2.0", id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } } })
  else if (id !== undefined) send({ jsonrpc: "2.0", id, result: { tools: [] } })
})
`

const ways = ["a tool server", "an agent of others"] as const

/** A workspace whose file `server.js` the person's settings start. It marks its starts. */
const world = (way: (typeof ways)[number]) =>
  Effect.gen(function* () {
    const at = yield* Program.place
    const mark = at.path("mark")
    yield* at.write("workspace/server.js", server(mark))
    const isServer = way === "a tool server"
    yield* at.write(
      "config/config.json",
      isServer ? { mcp_servers: { x: { command: "node", args: ["server.js"] } } } : {}
    )
    const model = isServer ? yield* at.script({ text: "done" }) : "command:node server.js"
    const args = ["--model", model]
    return {
      at,
      args,
      starts: () => (fs.existsSync(mark) ? fs.readFileSync(mark, "utf8").length : 0),
      /** Until the program has answered or does not start. This one is no agent: it never answers to words. */
      start: (...more: ReadonlyArray<string>) =>
        isServer
          ? at.run(["mcp", "check", "x", ...more])
          : at.run(["run", "--yolo", "--timeout", "2s", ...args, ...more, "go"]),
      run: at.run(["run", "--yolo", "--timeout", "2s", ...args, "go"]),
      change: Effect.sync(() => fs.appendFileSync(at.path("workspace/server.js"), "// evil\n"))
    }
  })

describe.concurrent.each(ways)("%s whose file lies in the workspace", (way) => {
  it.scopedLive("starts as it was at first, and changed only by --trust, which the audit has", () =>
    Effect.gen(function* () {
      const { at, change, run, start, starts } = yield* world(way)
      const first = yield* start()
      assert.match(first.stderr, /Commands can change files of .*: server\.js\./)
      assert.strictEqual(starts(), 1)
      const again = yield* start()
      assert.notInclude(again.stderr, "Commands can change")
      assert.strictEqual(starts(), 2)
      yield* change
      const refused = yield* start()
      assert.notStrictEqual(refused.code, 0)
      const told = yield* run
      assert.strictEqual(starts(), 2, refused.stderr)
      assert.match(told.stderr, /server\.js.*start with --trust/)
      assert.include(told.stderr, "+ // evil")
      yield* start("--trust")
      assert.strictEqual(starts(), 3)
      yield* start()
      assert.strictEqual(starts(), 4)
      assert.match(yield* at.allText, /"class":"trust"[^\n]*server\.js/)
    })
  )

  it.scopedLive("is asked about at a terminal when it changed", () =>
    Effect.gen(function* () {
      const { args, at, change, start, starts } = yield* world(way)
      yield* start()
      yield* change
      const screen = yield* Pseudo.start(at, ["chat", "--mode", "allow", ...args])
      const shown = yield* screen.sees((text) => text.includes("Trust this directory?") && text.endsWith("y/N>"))
      assert.include(shown, "+ // evil")
      assert.strictEqual(starts(), 1)
      // What is typed at once is no answer.
      yield* Effect.sleep("700 millis")
      yield* screen.type("y\r")
      yield* screen.sees((text) => text.endsWith("\n>"))
      yield* screen.type("go\r")
      yield* Wait.until(Effect.sync(starts), (count) => count === 2)
    })
  )
})

describe("the program itself, in the workspace", () => {
  it.scopedLive.skipIf(!Confined.isWanted)("is changed by no confined command and no file tool", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      fs.cpSync(path.dirname(Program.binary), at.path("workspace/tools"), { recursive: true })
      const lines = [
        "echo evil > tools/assent.js",
        "echo evil > tools/program/main.js",
        "rm -rf tools/program",
        "mv tools gone && mkdir tools",
        "ln -sfn /tmp tools",
        "mkdir -p tools/node_modules/@vscode/ripgrep && echo evil > tools/node_modules/@vscode/ripgrep/index.js",
        "mkdir -p tools/program/compiled/x && echo evil > tools/program/compiled/x/main.js"
      ]
      yield* at.write("workspace/x.sh", `${lines.map((line) => `(${line})`).join("\n")}\ntouch ran\n`)
      const model = yield* at.script(
        {
          tools: [
            { name: "run_command", params: { command: "sh x.sh" } },
            { name: "write_file", params: { path: "tools/assent.js", content: "evil" } }
          ]
        },
        { text: "done" }
      )
      const all = () =>
        fs
          .readdirSync(at.path("workspace/tools"), { recursive: true, encoding: "utf8" })
          .filter((name) => !name.includes("compiled"))
          .sort()
          .map((name) => [name, fs.statSync(at.path("workspace/tools", name)).size])
      const before = all()
      const args = ["run", "--json", "--yolo", "--sandbox", "require", "--store", ":memory:", "--model", model, "x"]
      execFileSync(process.execPath, ["tools/assent.js", ...args], {
        cwd: at.path("workspace"),
        env: at.environment,
        stdio: "ignore"
      })
      assert.isTrue(yield* at.exists("workspace/ran"))
      assert.deepStrictEqual(all(), before)
      assert.isFalse(fs.existsSync(at.path("workspace/tools/program/compiled/x")))
    })
  )
})
