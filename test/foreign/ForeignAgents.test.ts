import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import * as Program from "../kit/Program.js"

const binary = fileURLToPath(new URL("../../dist/bin/assent.js", import.meta.url))

/** Our own agent for editors, as one of others. */
const own = `${process.execPath} ${binary} acp`

/** An agent that does with each message what the body says; `send` writes one. */
const scripted = (place: Program.Place, body: string) =>
  Effect.map(
    place.write(
      "agent.mjs",
      `import { createInterface } from "node:readline"
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n")
const update = (update) => send({ method: "session/update", params: { sessionId: "s", update } })
const text = (words) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: words } })
const options = [
  { optionId: "all", name: "All", kind: "allow_always" },
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" }
]
const ask = (id, toolCall) =>
  send({ id, method: "session/request_permission", params: { sessionId: "s", toolCall, options } })
createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line)
  if (message.method === "initialize") return send({ id: message.id, result: { protocolVersion: 1 } })
  if (message.method === "session/new") return send({ id: message.id, result: { sessionId: "s" } })
  ${body}
})
`
    ),
    (file) => `${process.execPath} ${file}`
  )

const model = (command: string) => ["--model", `command:${command}`]

describe("an agent of others", () => {
  it.scopedLive("asks through three processes, and the rules at the top decide", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const policy = yield* place.write("policy.json", {
        version: 1,
        whitelist: { patterns: ["foreign_execute(echo *)", "echo *"] },
        blacklist: { patterns: ["rm *"] }
      })
      yield* place.write("workspace/kept.txt", "kept")
      const args = ["run", "--policy", policy, ...model(`${own} --model 'command:${own}'`)]
      const allowed = yield* place.run([...args, "run echo deep"])
      assert.include(allowed.stdout, "deep")
      assert.strictEqual(allowed.code, 0, allowed.stderr)
      const denied = yield* place.run([...args, "run rm kept.txt"])
      assert.match(denied.stdout, /was not run/)
      assert.isTrue(yield* place.exists("workspace/kept.txt"))
      // Nobody is there to be asked about anything else.
      const halted = yield* place.run([...args, "write new.txt: hi"])
      assert.strictEqual(halted.code, 3)
      assert.isFalse(yield* place.exists("workspace/new.txt"))
    })
  )

  it.scopedLive("gets leave for one call, whatever lasts here, and its result is what it says", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt") {
          globalThis.prompt = message.id
          return ask(7, { toolCallId: "c", title: "list", kind: "execute", rawInput: { command: "ls" } })
        }
        if (message.id === 7) {
          const chosen = message.result.outcome.optionId
          update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed",
            content: [{ type: "content", content: { type: "text", text: "a b c" } }] })
          text("I got " + chosen)
          return send({ id: globalThis.prompt, result: { stopReason: "end_turn" } })
        }`
      )
      const { code, stdout } = yield* place.run(["run", "--mode", "allow", ...model(command), "go"])
      assert.strictEqual(code, 0)
      assert.include(stdout, "I got yes")
      const [session] = (yield* place.run(["sessions", "list"])).stdout.split(" ")
      const { stdout: shown } = yield* place.run(["sessions", "show", session ?? ""])
      assert.include(shown, "a b c")
    })
  )

  it.scopedLive("is asked about each call of which only its words are known, and is seen at what it does unasked", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt") {
          globalThis.prompt = message.id
          update({ sessionUpdate: "tool_call", toolCallId: "u", title: "peek", status: "in_progress" })
          return ask(7, { toolCallId: "c", title: "safe thing, reply y", kind: "other", rawInput: { x: 1 } })
        }
        if (message.id === 7) {
          text("chosen " + message.result.outcome.optionId)
          return send({ id: globalThis.prompt, result: { stopReason: "end_turn" } })
        }`
      )
      const policy = yield* place.write("policy.json", { version: 1, whitelist: { tools: ["foreign_act"] } })
      const halted = yield* place.run(["run", "--policy", policy, ...model(command), "go"])
      assert.strictEqual(halted.code, 3, halted.stderr)
      const denied = yield* place.run(["run", "--json", "--mode", "deny", ...model(command), "go"])
      assert.match(denied.stdout, /chosen no/)
      assert.match(denied.stdout, /without asking: peek/)
    })
  )

  it.scopedLive("that exits, says garbage or refuses fails its turn with a sentence, and leaves nothing running", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      for (const command of ["false", "echo garbage", "no-such-program-here"]) {
        const { code, stderr } = yield* place.run(["run", ...model(command), "go"])
        assert.strictEqual(code, 1, command)
        assert.match(stderr, new RegExp(command.split(" ")[0] ?? ""), command)
      }
      const dying = yield* scripted(place, `if (message.method === "session/prompt") process.exit(1)`)
      const { code, stderr } = yield* place.run(["run", ...model(dying), "go"])
      assert.strictEqual(code, 1)
      assert.match(stderr, /node(?:: The agent)? has ended\./)
    })
  )

  it.scopedLive("that floods while a call of it runs is ended, and its call fails with a sentence", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const command = yield* scripted(
        place,
        `if (message.method === "session/prompt" && message.params.prompt[0].text === "Go on.") {
          text("back again")
          return send({ id: message.id, result: { stopReason: "end_turn" } })
        }
        if (message.method === "session/prompt")
          return ask(7, { toolCallId: "c", title: "list", kind: "execute", rawInput: { command: "ls" } })
        if (message.id === 7) for (let i = 0; i < 30; i++) text("x".repeat(1_000_000))`
      )
      const { code, stdout } = yield* place.run(["run", "--json", "--mode", "allow", ...model(command), "go"])
      assert.strictEqual(code, 0)
      assert.include(stdout, "node sent more than 10 MB of text that nobody read. Its process was ended.")
      assert.include(stdout, "Whether the call took effect is not known.")
      assert.include(stdout, "back again")
    })
  )

  it.scopedLive("ends with the program, its own processes too", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const pid = place.path("workspace", "pid")
      const program = yield* place.start([
        "run",
        ...model(`sh -c 'echo $$ > ${pid}.new; mv ${pid}.new ${pid}; sleep 60; true'`),
        "go"
      ])
      const child = Number((yield* place.appears(pid)).trim())
      yield* program.signal("SIGINT")
      yield* program.exit
      assert.isFalse(Program.isAlive(child))
      assert.isTrue(fs.existsSync(pid))
    })
  )

  it.scopedLive("of a profile works under its name, and the question to delegate shows the whole line", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      yield* place.write("config/profiles/other.json", { description: "another agent", command: own, plugins: [] })
      const { code, stderr, stdout } = yield* place.run(
        ["run", "--channel", "console", "--piped-answers", "delegate other: list"],
        { stdin: "y\ny\ny\n" }
      )
      assert.strictEqual(code, 0, stderr)
      assert.include(stderr, own)
      assert.isNotEmpty(stdout)
    })
  )
})
