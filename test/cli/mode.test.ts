/** The mode of a session and the list of what is to be done, as a person works with them at a terminal. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync } from "node:fs"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const shiftTab = "\u001b[Z"

const write = (path: string) => ({ name: "write_file", params: { path, content: "x\n" } })
const plan = { name: "propose_plan", params: { plan: "# The plan\n\n1. write `made.txt`\n2. look at it" } }

describe.concurrent("plan mode at a terminal", () => {
  it.live("can be tried without a model: what is refused becomes a plan, and is done when that is approved", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("config/permissions.json", { whitelist: { tools: ["write_file"], patterns: ["touch *"] } })
        const screen = yield* Pseudo.start(at, ["chat"], { columns: 100, rows: 70 })
        const answers = (keys: string) => Effect.zipRight(Effect.sleep("300 millis"), screen.type(keys))
        const made = () => [existsSync(at.path("workspace/notes.txt")), existsSync(at.path("workspace/x"))]
        yield* screen.sees((text) => text.includes("/help"))
        yield* screen.type("/plan write notes.txt: hello and run touch x and list\r")
        const asked = yield* screen.sees((text) => text.includes("Allow propose_plan?") && text.endsWith("answer>"))
        assert.notInclude(asked, "I did not understand")
        // Why, once, and without what is meant for the model.
        assert.include(
          asked.replace(/\n {4}/g, " "),
          "✗ write_file notes.txt denied · plan mode: write_file is not run, because it may change something.\n"
        )
        assert.match(asked, /1\. write notes\.txt\n.*2\. run touch x\n/)
        assert.deepStrictEqual(made(), [false, false])
        assert.include(asked.replace(/\n│ /g, " "), "`never` denies every plan of this session")
        // Sent back, it waits for other words.
        yield* answers("c: not like that\r")
        yield* screen.sees((text) => text.includes("User comment: not like that") && text.endsWith("\n>"))
        yield* screen.type("write notes.txt: hello and run touch x\r")
        yield* screen.sees((text) => text.split("Allow propose_plan?").length > 2 && text.endsWith("answer>"))
        yield* answers("y\r")
        const done = yield* screen.sees((text) => /approved\n(?:.*\n)*.*run_command: done/.test(text))
        assert.include(done, "mode: ask, was plan")
        assert.deepStrictEqual(made(), [true, true])
        yield* screen.type("todo [x] look | mend it\r")
        yield* screen.sees((text) => text.includes("todo: 1 of 2 done") && text.includes("[ ] mend it"))
        yield* screen.type("/quit\r")
        assert.strictEqual(yield* screen.exit, 0)
      })
    )
  )

  it.live("reads only, ends with the plan that a person approves, and is one key away", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        const made = at.path("workspace/made.txt")
        const model = yield* at.script(
          { tools: [write("made.txt"), { name: "run_command", params: { command: "touch made.txt" } }] },
          { tools: [plan] },
          { tools: [plan] },
          { tools: [write("made.txt")] },
          { text: "Written." }
        )
        const env = { ASSENT_STATUS_LINE: "on" }
        const screen = yield* Pseudo.start(at, ["chat", "--model", model], { columns: 100, rows: 60, env })
        // A key that comes at once was meant for something else.
        const answers = (keys: string) => Effect.zipRight(Effect.sleep("300 millis"), screen.type(keys))
        yield* screen.sees((text) => text.includes("/help") && text.endsWith("· ask"))
        yield* screen.type(shiftTab)
        yield* screen.sees((text) => text.endsWith("· plan"))
        yield* screen.type(shiftTab)
        yield* screen.sees((text) => text.endsWith("· ask"))
        yield* screen.type("/plan make it\r")
        const asked = yield* screen.sees((text) => text.includes("The plan") && text.endsWith("answer>"))
        assert.match(asked, /✗ write_file .*plan mode/s)
        assert.match(asked, /✗ run_command .*plan mode/s)
        assert.isFalse(existsSync(made))
        yield* answers("n\r")
        yield* screen.sees((text) => text.split("Allow propose_plan?").length > 2 && text.endsWith("answer>"))
        assert.isFalse(existsSync(made))
        yield* answers("y\r")
        // Approved is the plan, not what it says: that is asked about as ever.
        yield* screen.sees((text) => text.includes("Allow write_file?") && text.endsWith("answer>"))
        assert.isFalse(existsSync(made))
        assert.match(
          screen.everything(),
          /\n● propose_plan The plan\n(?:.*\n)*? {2}✓ (?:propose_plan The plan · )?\S+ \S+ · approved\n/
        )
        yield* answers("y\r")
        yield* screen.sees((text) => text.includes("Written.") && text.endsWith("· ask"))
        assert.strictEqual(readFileSync(made, "utf8"), "x\n")
        yield* screen.type("/mode nonsense\r")
        yield* screen.sees((text) => /ask, plan, deny/.test(text))
        yield* screen.type("/quit\r")
        assert.strictEqual(yield* screen.exit, 0)
      })
    )
  )

  it.live("goes on without a plan once never was said to one, until the mode changes", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        const words = "/plan write notes.txt: hello"
        const { stdout } = yield* at.call(["chat", "--piped-answers"], {
          stdin: `${words}\nnever\n${words}\n/mode ask\n/mode\n`
        })
        assert.strictEqual(stdout.split("Allow propose_plan?").length, 2)
        assert.match(
          stdout,
          /`never` denies: every call of propose_plan[^]*blocked by[^]*mode: ask, was plan[^]*mode is ask/
        )
      })
    )
  )

  it.live("is there again when the session goes on, and allow is not", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        const model = yield* at.script({ text: "One." }, { text: "Two." }, { text: "Three." })
        const chat = (words: ReadonlyArray<string>, lines: ReadonlyArray<string>) =>
          at.call(["chat", "--piped-answers", "--model", model, ...words], {
            stdin: lines.map((line) => `${line}\n`).join("")
          })
        yield* chat([], ["/mode plan", "go"])
        const planned = yield* chat(["--continue"], ["/mode", "/mode allow", "go"])
        assert.include(planned.stdout, "The mode is plan")
        const allowed = yield* chat(["--continue"], ["/mode", "/quit"])
        assert.include(allowed.stdout, "mode: ask, was allow")
        assert.include(allowed.stdout, "The mode is ask")
      })
    )
  )
})

describe.concurrent("the list of what is to be done", () => {
  it.live("is shown when it changes, counted below the prompt, and there again when the session goes on", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        const list = (first: string, second: string) => ({
          name: "todo_write",
          params: {
            items: [
              { content: "look around", status: first },
              { content: "write it down", status: second }
            ]
          }
        })
        const model = yield* at.script(
          { tools: [list("in_progress", "pending")] },
          { tools: [list("completed", "in_progress")] },
          { text: "Half done." }
        )
        const env = { ASSENT_STATUS_LINE: "on" }
        const screen = yield* Pseudo.start(at, ["chat", "--model", model], { columns: 100, rows: 40, env })
        yield* screen.sees((text) => text.includes("/help"))
        yield* screen.type("go\r")
        const done = yield* screen.sees((text) => text.includes("Half done.") && /1\/2/.test(text))
        assert.include(done, "look around")
        assert.include(done, "write it down")
        yield* screen.type("/todos\r")
        yield* screen.sees((text) => text.split("write it down").length > 2)
        yield* screen.type("/quit\r")
        assert.strictEqual(yield* screen.exit, 0)
        const again = yield* at.call(["chat", "--continue"], { stdin: "/todos\n" })
        assert.include(again.stdout, "write it down")
      })
    )
  )
})
