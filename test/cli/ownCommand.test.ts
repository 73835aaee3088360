/** `!command` at the prompt: the person's own act. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync, rmSync } from "node:fs"
import * as Bubblewrap from "../kit/Bubblewrap.js"
import * as Confined from "../kit/Confined.js"
import * as ModelServer from "../kit/ModelServer.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"
import { chat } from "../kit/Wire.js"

const offer = "@! in a message sends it to the agent\n>"

const settingWith = (more: Record<string, string> = {}) =>
  Effect.gen(function* () {
    const at = yield* Program.place
    const server = yield* ModelServer.make
    // What the agent may do is no matter of the person's.
    yield* at.write("config/permissions.json", { defaultPolicy: "deny" })
    const args = ["chat", "--base-url", `${server.url}/v1`, "--model", "openai-compatible/local-test"]
    const env = { OPENAI_COMPATIBLE_API_KEY: "none", ...more }
    const says = (text: string) => server.play(ModelServer.eventStream(chat.events({ text: [text] })))
    const got = Effect.map(server.received, (request): string =>
      JSON.stringify(ModelServer.json(request).messages.at(-1).content)
    )
    const screen = yield* Pseudo.start(at, args, { columns: 100, rows: 50, env })
    yield* screen.sees((text) => text.endsWith(".\n>"))
    return { at, screen, says, got, server }
  })
const setting = settingWith()

describe.concurrent("a command with ! before it", () => {
  it.live.skipIf(!Confined.isWanted)("that fails in the sandbox is told so, in words for a person", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { screen } = yield* settingWith({ ASSENT_SANDBOX: "auto" })
        yield* screen.type("!exit 3\r")
        const shown = yield* screen.sees((text) => text.endsWith(offer))
        const text = shown.replace(/\s+/g, " ")
        assert.include(text, "[It ran in a sandbox: it could write in ")
        assert.include(text, "exit code 3")
        assert.notInclude(text, "call again")
      })
    )
  )

  it.live.skipIf(!Confined.isWanted)("says and records what was set aside, also when it was stopped", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { at, screen } = yield* settingWith({ ASSENT_SANDBOX: "auto" })
        yield* screen.type("!git init -q --bare docs\r")
        const ended = yield* screen.sees((text) => text.endsWith(offer))
        assert.include(ended.replace(/\s+/g, " "), "docs/HEAD makes docs a git directory")
        yield* screen.type("!git init -q new; echo made; sleep 600\r")
        yield* screen.sees((text) => text.includes("\n  made\n"))
        yield* screen.type("\x03")
        yield* screen.sees((text) => text.endsWith("  ✗ stopped\n>"))
        assert.include(screen.everything().replace(/\s+/g, " "), "new/.git appeared, which acts later; it was moved to")
        const records = (yield* at.allText).split("\n").filter((row) => row.includes('"kind":"files_set_aside"'))
        assert.lengthOf(records, 2)
        for (const record of records) assert.match(record, /"by":/)
      })
    )
  )

  it.live("is seen to run while it prints nothing", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { screen } = yield* settingWith()
        yield* screen.type("!sleep 60\r")
        yield* screen.sees((text) => text.endsWith("> !sleep 60\n  nothing printed yet · Esc stops it\n>"))
        yield* screen.sees((text) => text.endsWith("> !sleep 60\n  nothing printed yet · 1 s · Esc stops it\n>"))
        yield* screen.sees((text) => text.endsWith(" · 2 s · Esc stops it\n>"))
        yield* screen.type("\x03")
        yield* screen.sees((text) => text.endsWith("> !sleep 60\n  ✗ stopped\n>"))
      })
    )
  )

  it.live("is told of between words, however narrow the terminal is", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        const screen = yield* Pseudo.start(at, ["chat"], { columns: 40, rows: 30 })
        const joined = (text: string) => text.replace(/\n +(?=\S)/g, " ")
        yield* screen.sees((text) => text.endsWith("\n>"))
        yield* screen.type("!exit 3\r")
        yield* screen.sees((text) =>
          /✗ exit code 3 · [\d.]+ s · @! in a message sends it to the agent\n>$/.test(joined(text))
        )
        rmSync(at.path("workspace"), { recursive: true })
        yield* screen.type("!echo one\r")
        yield* screen.sees((text) =>
          /✗ The workspace is gone: there is no directory .* Assent creates no other one\. Restore the directory, and call again\.\n>$/.test(
            joined(text)
          )
        )
      })
    )
  )

  // Where nothing can be confined.
  it.live.skipIf(Bubblewrap.isPossible)(
    "does not tear the prompt with a line of the log, nor says again that nothing confines it",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const at = yield* Program.place
          const env = { ASSENT_SANDBOX: "auto", PATH: at.path("tmp") }
          const told = "Commands run without a sandbox: "
          const screen = yield* Pseudo.start(at, ["chat"], { columns: 200, rows: 30, env })
          yield* screen.sees((text) => text.includes(told))
          yield* screen.type("!echo one\r")
          const chatted = yield* screen.sees((text) => text.endsWith(offer))
          assert.include(chatted, "> !echo one\n  one\n")
          assert.strictEqual(chatted.split(told).length, 2)
          const run = yield* Pseudo.start(at, ["run", "--yolo", "run echo two"], { columns: 200, rows: 30, env })
          yield* run.exit
          assert.include(run.everything(), `assent: ${told}`)
          for (const text of [chatted, run.everything()]) assert.notInclude(text, "timestamp=")
        })
      )
  )

  it.live("runs without a question, is shown, and reaches the model with a line that says so alone", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { at, got, says, screen, server } = yield* setting
        yield* screen.type("!echo one; printf 'two\\033[2J'; touch made; exit 3\r")
        yield* screen.sees(
          (text) => /\n {2}one\n {2}two[^\n]*\n {2}✗ exit code 3 · \d+\.\d s · /.test(text) && text.endsWith(offer)
        )
        assert.isTrue(existsSync(at.path("workspace/made")))
        assert.strictEqual(server.count(), 0)
        yield* says("Hello.")
        yield* screen.type("hello\r")
        yield* screen.sees((text) => text.endsWith("Hello.\n>"))
        assert.strictEqual(yield* got, '"hello"')
        yield* says("I see.")
        yield* screen.type("what went wrong? @!\r")
        yield* screen.sees((text) => text.includes("exit code 3, printed (") && text.endsWith("I see.\n>"))
        const content = yield* got
        for (const part of ["what went wrong? @!", "exit code 3, printed", "output.txt:\\none\\ntwo"])
          assert.include(content, part)
        yield* screen.type("\x04")
        assert.strictEqual(yield* screen.exit, 0)
        const audits = yield* at.allText
        const records = audits.split("\n").filter((line) => line.includes('"kind":"command"'))
        assert.strictEqual(records.length, 1)
        assert.match(records[0] ?? "", /"by":"[^"]+","class":"session","kind":"command","outcome":"granted"/)
        assert.notInclude(records[0] ?? "", "echo one")
        assert.strictEqual((yield* at.call(["audit", "verify"])).code, 0)
      })
    )
  )

  it.live("is stopped by Ctrl-C and by Esc, with all that it started, and what it printed is kept", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { at, got, says, screen } = yield* setting
        for (const key of ["\x03", "\x1b"]) {
          yield* screen.type(`!sleep 600 & echo $! > pid; echo begun ${key.length}; sleep 600\r`)
          yield* screen.sees((text) => /\n {2}begun 1\n(?: {2}\d+ s · Esc stops it\n)?>/.test(text))
          const pid = Number(readFileSync(at.path("workspace/pid"), "utf8"))
          yield* screen.type("!ls\r")
          yield* screen.sees((text) => text.includes("A command of yours still runs. Ctrl-C stops it."))
          yield* screen.type(key)
          yield* screen.sees((text) => text.endsWith("  ✗ stopped\n>"))
          if (pid > 1_000) assert.isFalse(Program.isAlive(pid))
          yield* screen.type("\x0c")
          yield* screen.sees((text) => text.trim() === ">")
        }
        yield* says("Seen.")
        yield* screen.type("see @!\r")
        yield* screen.sees((text) => text.endsWith("Seen.\n>"))
        assert.include(yield* got, "begun 1")
        yield* screen.type("!\r")
        yield* screen.sees((text) => text.includes("!COMMAND runs a command as you."))
        yield* says("Words.")
        yield* screen.type(" !ls are words\r")
        yield* screen.sees((text) => text.endsWith("Words.\n>"))
        assert.include(yield* got, "!ls are words")
      })
    )
  )

  const colored = "!printf '\\033[31mr''ed\\033[2J \\033[1;38;5;34mbo''ld\\n\\033[0mpl''ain\\n'\r"

  it.live("shows its last lines before any turn, red where it failed, and Ctrl-O opens all of them", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { screen } = yield* setting
        yield* screen.type("!seq 10000; sleep 600\r")
        const live = yield* screen.sees((text) => /\n {2}10000\n {2}\d+ s · Esc stops it\n>$/.test(text))
        assert.include(live, "> !seq 10000; sleep 600\n  9989\n")
        yield* screen.type("\x03")
        yield* screen.sees((text) =>
          /\n {2}… 9988 lines above · Ctrl-O shows all\n {2}9989\n(?: {2}\d+\n){10} {2}10000\n {2}✗ stopped\n>$/.test(
            text
          )
        )
        yield* screen.type("!seq 20; exit 3\r")
        const failed = yield* screen.sees((text) => text.endsWith(offer))
        assert.match(failed, /\n {2}… 8 lines above · Ctrl-O shows all\n {2}9\n[^]*\n {2}20\n {2}✗ exit code 3 · /)
        assert.deepStrictEqual(screen.styleOf("✗ exit"), ["1"])
        yield* screen.type("\x0f")
        const whole = yield* screen.sees((text) => text.includes("1-20 of 20"))
        assert.include(whole, "!seq 20; exit 3")
        yield* screen.type("q")
        yield* screen.sees((text) => text.endsWith(offer))
        assert.notMatch(screen.everything(), /^ {2}500$/m)
      })
    )
  )

  it.live("keeps the colours of what it prints, unless none are wanted", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { screen } = yield* setting
        yield* screen.type(colored)
        yield* screen.sees((text) => text.includes("\n  red bold\n  plain\n  ✓ exit code 0"))
        assert.deepStrictEqual(screen.styleOf("red bold"), ["1"])
        assert.deepStrictEqual(screen.styleOf("bold"), ["bold", "2"])
        assert.deepStrictEqual(screen.styleOf("plain"), [])
        const { screen: without } = yield* settingWith({ NO_COLOR: "1" })
        yield* without.type(colored)
        yield* without.sees((text) => text.includes("\n  red bold\n  plain\n  ✓ exit code 0"))
        assert.deepStrictEqual(without.styleOf("red bold"), [])
      })
    )
  )

  it.live("works by lines, too, without colours", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        const screen = yield* Pseudo.start(at, ["chat", "--plain"], { columns: 40 })
        yield* screen.sees((text) => text.endsWith("you>"))
        yield* screen.type("!printf '\\033[31mby\\033[0m lines\\n'\r")
        yield* screen.sees((text) => text.includes("\n  by lines\n  done: exit code 0"))
        assert.deepStrictEqual(screen.styleOf("by lines"), [])
        yield* screen.type("!seq 100\r")
        yield* screen.sees((text) => text.includes("\n  100\n  done: exit code 0"))
        assert.match(screen.everything(), /^ {2}1\n(?: {2}\d+\n){98} {2}100$/m)
        yield* screen.type("/quit\r")
        assert.strictEqual(yield* screen.exit, 0)
      })
    )
  )

  it.live("is words where it comes out of a pipe", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.call(["chat"], { stdin: "!touch made\n" })
        assert.isFalse(existsSync(at.path("workspace/made")))
      })
    )
  )
})
