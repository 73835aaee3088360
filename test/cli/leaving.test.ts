import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const command = (line: string) => ({ tools: [{ name: "run_command", params: { command: line } }] })
const hushed = Effect.sleep("700 millis")

describe.concurrent("whoever leaves at a terminal", () => {
  it.scopedLive("quits by Ctrl-D at a question too, which stays open and is asked again; a comment is left first", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(command("touch made"), { text: "the model went on" })
      const screen = yield* Pseudo.start(place, ["chat", "--model", model], { columns: 300 })
      yield* screen.sees((text) => text.includes("Commands run unconfined") || text.endsWith(">"))
      yield* screen.type("go\r")
      yield* screen.sees((text) => text.endsWith("answer>"))
      yield* hushed
      yield* screen.type("c")
      yield* screen.sees((text) => text.endsWith("comment>"))
      yield* screen.type("\x04")
      yield* screen.sees((text) => text.includes("comment> (back)") && text.endsWith("answer>"))
      yield* hushed
      yield* screen.type("\x04")
      assert.strictEqual(yield* screen.exit, 3)
      assert.include(screen.everything(), "answer> (left open)")
      assert.include(screen.everything(), "The question stays open: assent chat --continue asks again")
      assert.include(screen.everything(), "To resume: assent chat --resume")
      assert.notMatch(screen.everything(), /the model went on|withdrawn/)
      assert.isFalse(yield* place.exists("workspace/made"))
      const again = yield* Pseudo.start(place, ["chat", "--continue"])
      yield* again.sees((text) => text.includes("Allow run_command?") && text.endsWith("answer>"))
      yield* hushed
      yield* again.type("y")
      yield* again.sees((text) => text.includes("the model went on"))
      assert.isTrue(yield* place.exists("workspace/made"))
    })
  )

  for (const plain of [false, true])
    it.scopedLive(
      `quits by one Ctrl-D at the question of a child that works in the background, ${plain ? "by lines" : "drawn"}`,
      () =>
        Effect.gen(function* () {
          const place = yield* Program.place
          yield* place.write("config/profiles/asker.json", { name: "asker", description: "asks", plugins: ["cli"] })
          const agents = {
            main: [
              { tools: [{ name: "spawn_subagent", params: { task: "ask", profile: "asker" } }] },
              { text: "I rest." },
              { text: "I hear it." }
            ],
            asker: [command("touch made"), { text: "It is made." }]
          }
          const model = `script:${yield* place.write("family.json", { version: 1, agents })}`
          const policy = yield* place.write("policy.json", { version: 1, whitelist: { tools: ["spawn_subagent"] } })
          const look = plain ? ["--plain"] : []
          const screen = yield* Pseudo.start(place, ["chat", "--model", model, "--policy", policy, ...look])
          yield* screen.sees((text) => (plain ? text.endsWith("you>") : /^>/m.test(text)))
          yield* screen.type("go\r")
          yield* screen.sees((text) => text.includes("I rest.") && text.endsWith("answer>"))
          yield* hushed
          yield* screen.type("\x04")
          assert.strictEqual(yield* screen.exit, 3)
          assert.match(screen.everything(), /The\s+question\s+stays\s+open/)
          assert.notMatch(screen.everything(), /withdrawn|finished|I hear it/)
          assert.include((yield* place.call(["sessions", "waiting"])).stdout, "run_command")
          const again = yield* Pseudo.start(place, ["chat", "--continue", "--policy", policy])
          yield* again.sees((text) => text.includes("Allow run_command?") && text.endsWith("answer>"))
          yield* hushed
          yield* again.type("y")
          yield* again.sees((text) => text.includes("I hear it."))
          assert.isTrue(yield* place.exists("workspace/made"))
        })
    )

  it.scopedLive("halts a run by Ctrl-D at its question, as where nobody is there", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(command("touch made"), { text: "the model went on" })
      const screen = yield* Pseudo.start(place, ["run", "--model", model, "go"])
      yield* screen.sees((text) => text.endsWith("answer>"))
      yield* hushed
      yield* screen.type("\x04")
      assert.strictEqual(yield* screen.exit, 3)
      assert.include(screen.everything(), "assent chat --continue")
      assert.notMatch(screen.everything(), /the model went on|withdrawn|denied/)
      assert.include((yield* place.call(["sessions", "waiting"])).stdout, "run_command")
    })
  )

  it.scopedLive("waits at that question for tools that run, and not after a second Ctrl-D", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      yield* place.write("config/permissions.json", { whitelist: { patterns: ["sleep 1000"] } })
      const model = yield* place.script(
        {
          tools: [
            { name: "run_command", params: { command: "sleep 1000" } },
            { name: "run_command", params: { command: "touch made" } }
          ]
        },
        { text: "the model went on" }
      )
      const screen = yield* Pseudo.start(place, ["chat", "--model", model])
      yield* screen.sees((text) => /^>/m.test(text))
      yield* screen.type("go\r")
      yield* screen.sees((text) => text.endsWith("answer>"))
      yield* hushed
      yield* screen.type("\x04")
      yield* screen.sees((text) => text.includes("(left open)"))
      yield* screen.type("\x04")
      yield* screen.exit
      assert.notInclude(screen.everything(), "the model went on")
      assert.isFalse(yield* place.exists("workspace/made"))
    })
  )

  it.scopedLive("ends a run by Ctrl-D while a command runs, and says how to go on", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(command("echo begun; sleep 1000"), { text: "the model went on" })
      const screen = yield* Pseudo.start(place, ["run", "--model", model, "go"])
      yield* screen.sees((text) => text.endsWith("answer>"))
      yield* hushed
      yield* screen.type("y")
      yield* screen.sees((text) => text.includes("executing"))
      yield* screen.type("\x04")
      assert.strictEqual(yield* screen.exit, 130)
      assert.include(screen.everything(), "assent: resume with: assent chat --resume")
      assert.notInclude(screen.everything(), "the model went on")
    })
  )

  it.scopedLive("leaves no debugger open, whoever sends the signal for it", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const screen = yield* Pseudo.start(place, ["chat"])
      yield* screen.sees((text) => /^>/m.test(text))
      process.kill(screen.pid, "SIGUSR1")
      yield* screen.type("!echo over\r")
      yield* screen.sees((text) => text.includes("exit code 0"))
      yield* screen.type("/quit\r")
      assert.strictEqual(yield* screen.exit, 0)
      assert.notInclude(screen.everything(), "Debugger")
    })
  )

  it.scopedLive("finds the question again when the window was closed over it", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(command("touch made"), { text: "it was made" })
      const shell = yield* Pseudo.startShell(place, { env: { ASSENT_MODEL: model } })
      // Outlives the terminal, to say that the program has ended.
      yield* shell.type("(trap '' HUP; assent chat; echo $? > ended.new; mv ended.new ended)\r")
      yield* shell.sees((text) => /^>$/m.test(text))
      yield* shell.type("go\r")
      yield* shell.sees((text) => text.endsWith("answer>"))
      yield* shell.hangUp
      assert.strictEqual(yield* place.appears("workspace/ended"), "130\n")
      const screen = yield* Pseudo.start(place, ["chat", "--continue"])
      yield* screen.sees((text) => text.includes("Allow run_command?") && text.endsWith("answer>"))
      yield* hushed
      yield* screen.type("y")
      yield* screen.sees((text) => text.includes("it was made"))
      assert.isTrue(yield* place.exists("workspace/made"))
    })
  )

  it.scopedLive("goes back from a comment to the question, whose answer counts, also where files are answered", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(command("touch made"), { text: "it was made" })
      const directory = place.path("ask")
      const requests = yield* place.makeDirectory("ask/requests")
      const asking = yield* place.start(["run", "--model", model, "--channel", `file:${directory}`, "go"])
      yield* place.appearsIn(requests, ".json")
      const screen = yield* Pseudo.start(place, ["answer", directory])
      yield* screen.sees((text) => text.endsWith("answer>"))
      yield* hushed
      yield* screen.type("c")
      yield* screen.sees((text) => text.endsWith("comment>"))
      yield* screen.type("\x1b")
      yield* screen.sees((text) => text.includes("comment> (back)") && text.endsWith("answer>"))
      yield* hushed
      yield* screen.type("y")
      const { code, stdout } = yield* asking.exit
      assert.deepStrictEqual({ code, stdout }, { code: 0, stdout: "it was made\n" })
    })
  )
})
