import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Halted } from "../../src/channel/HaltChannel.js"
import * as Program from "../kit/Program.js"

/** Tells two process ids, its own and that of a child in the background, and then takes for ever. */
const endless = "sleep 300 & echo $$ $! > pids.half && mv pids.half pids && wait"

const pidsOf = (text: string): ReadonlyArray<number> => text.trim().split(" ").map(Number)

describe.concurrent("assent run", () => {
  it.scopedLive("prints the answer on standard output and nothing else anywhere", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/notes.txt", "remember the milk\n")
      const model = yield* at.script(
        { text: "Let me look.", tools: [{ name: "read_file", params: { path: "notes.txt" } }] },
        { expect: { contains: "remember the milk" }, text: "Buy milk.\nToday.", chunks: 3 }
      )
      const result = yield* at.run(["run", "--model", model, "What", "is", "to do?"])
      assert.deepStrictEqual(result, { code: 0, stdout: "Buy milk.\nToday.\n", stderr: "" })
      assert.deepStrictEqual(yield* at.list("tmp"), [])
      assert.deepStrictEqual(yield* at.list("home"), [])
      assert.deepStrictEqual(yield* at.list("config"), [])
      assert.deepStrictEqual(yield* at.list("workspace"), ["notes.txt"])
    })
  )

  it.scopedLive("takes the task from standard input, line breaks and all", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script({ expect: { contains: "first line\nsecond — line" }, text: "ok" })
      const result = yield* at.run(["--model", model, "run"], { stdin: "\nfirst line\nsecond — line\n\n" })
      assert.deepStrictEqual(result, { code: 0, stdout: "ok\n", stderr: "" })
    })
  )

  it.scopedLive("wants a task", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const result = yield* at.call(["run"], { stdin: " \n\n" })
      assert.deepStrictEqual(result, {
        code: 2,
        stdout: "",
        stderr: "assent: The task on standard input is empty.\n"
      })
    })
  )

  it.scopedLive("ends with 1 and the reason when the model fails, or says nothing at all", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      for (const step of [{ error: "bad_output" }, { text: "" }]) {
        const result = yield* at.call(["run", "--model", yield* at.script(step), "x"])
        assert.strictEqual(result.code, 1)
        assert.strictEqual(result.stdout, "")
        assert.match(result.stderr, /^assent: [A-Z].+\.\n$/)
      }
    })
  )

  it.scopedLive("ends with 1 at the limit of model calls, with what there is of an answer", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/config.json", { limits: { max_steps: 2 } })
      const looking = { text: "Looking.", tools: [{ name: "list_files", params: {} }] }
      const model = yield* at.script(looking, looking, looking)
      const result = yield* at.call(["run", "--model", model, "x"])
      assert.deepStrictEqual(result, {
        code: 1,
        stdout: "Looking.\n",
        stderr: "assent: the limit of 2 model calls was reached.\n"
      })
    })
  )

  it.scopedLive("halts with 3 and one machine-readable line when somebody would have to be asked", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const result = yield* at.call(["run", "run touch made"])
      assert.strictEqual(result.code, 3)
      assert.strictEqual(result.stdout, "")
      const [line = "", hint = "", ...others] = Program.linesOf(result.stderr)
      assert.deepStrictEqual(others, [])
      assert.match(hint, /^assent: resume with: assent run --resume ses_\S+$/)
      const halted = Schema.decodeUnknownSync(Halted)(JSON.parse(line), { onExcessProperty: "error" })
      assert.strictEqual(halted.kind, "Approve")
      assert.match(halted.requestId, /^req_/)
      assert.match(halted.correlationId, /^turn_/)
      assert.include(halted.hint, "--yolo")
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("says how to go on with what halted, which then is asked again and done", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const store = at.path("config", "my sessions.db")
      const halted = yield* at.call(["run", "--store", store, "run touch made"])
      const [, command = ""] = /resume with: assent (.*)\n$/.exec(halted.stderr) ?? []
      assert.match(command, /^run --store '.*my sessions\.db' --resume ses_\S+$/)
      const args = Array.from(command.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, bare]) => quoted ?? bare ?? "")
      const done = yield* at.call([...args, "--yolo"])
      assert.strictEqual(done.code, 0, done.stderr)
      assert.isTrue(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("says nothing of going on where nothing is kept", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const halted = yield* at.call(["run", "--store", ":memory:", "run touch made"])
      assert.strictEqual(halted.code, 3)
      assert.lengthOf(Program.linesOf(halted.stderr), 1)
    })
  )

  it.scopedLive("halts on a question too, and takes its default with --channel auto", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const halted = yield* at.call(["run", "ask me which? [red | green]"])
      assert.strictEqual(halted.code, 3)
      assert.strictEqual(JSON.parse(Program.linesOf(halted.stderr)[0] ?? "").kind, "Clarify")
      const auto = yield* at.call(["run", "--channel", "auto", "ask me which? [red | green]"])
      assert.deepStrictEqual(auto, { code: 0, stdout: "You answered: red\n", stderr: "" })
    })
  )

  it.scopedLive("says no to an approval when only the automatic channel is there", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const result = yield* at.call(["run", "--channel", "auto", "run touch made"])
      assert.strictEqual(result.code, 0)
      assert.match(result.stdout, /^run_command was not run\. Permission denied/)
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("asks nobody with --yolo, though guards still deny", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/permissions.json", {
        guards: { deny: { patterns: ["rm *"] } },
        whitelist: { patterns: ["touch *"] }
      })
      const result = yield* at.call(["run", "--yolo", "run touch made\nrun rm made\nread /etc/passwd"])
      assert.strictEqual(result.code, 0)
      assert.match(result.stdout, /run_command was not run\. Permission denied: .*rm/)
      assert.match(result.stdout, /read_file (was not run|failed)/)
      assert.notInclude(result.stdout, "root:")
      assert.isTrue(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("asks a person at a pipe, on standard error, and keeps standard output for the answer", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const args = ["run", "--piped-answers", "run echo made > made"]
      const allowed = yield* at.run(args, { stdin: "y\n" })
      assert.strictEqual(allowed.code, 0)
      assert.strictEqual(allowed.stdout, "run_command: done, nothing to show.\n")
      assert.include(allowed.stderr, "Allow run_command?")
      assert.strictEqual(yield* at.read("workspace/made"), "made\n")
      yield* at.write("workspace/made", "")
      const commented = yield* at.call(args, { stdin: "\nmaybe\nc: elsewhere please\n" })
      assert.strictEqual(
        commented.stdout,
        "run_command was not run. Tool not executed. User comment: elsewhere please\n"
      )
      const silent = yield* at.call(args, { stdin: "y" })
      assert.strictEqual(silent.code, 3)
      assert.strictEqual(silent.stdout, "")
      assert.include(silent.stderr, "The input ended before this was answered. The question stays open")
      assert.strictEqual(yield* at.read("workspace/made"), "")
    })
  )

  it.scopedLive("is cancelled by --timeout, and leaves no process behind", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script({ tools: [{ name: "run_command", params: { command: endless } }] })
      const program = yield* at.start(["run", "--yolo", "--timeout", "8s", "--model", model, "x"])
      const pids = pidsOf(yield* at.appears("workspace/pids"))
      assert.deepStrictEqual(pids.map(Program.isAlive), [true, true])
      const result = yield* program.exit
      assert.deepStrictEqual({ code: result.code, stdout: result.stdout }, { code: 130, stdout: "" })
      assert.match(
        result.stderr,
        // A run would have nothing to do: its turn is over.
        /^assent: cancelled \(timeout\)\.\nassent: resume with: assent chat --resume ses_\S+\n$/
      )
      assert.deepStrictEqual(pids.map(Program.isAlive), [false, false])
    })
  )

  it.scopedLive("prints a plan, and names the chat in which a person approves it", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { code, stderr, stdout } = yield* at.run(["run", "--mode", "plan", "write a.txt: b"])
      assert.strictEqual(code, 0)
      assert.include(stdout, "1. write `a.txt`")
      const [said, hint] = stderr.trim().split("\n").slice(-2)
      assert.match(said ?? "", /nothing was changed\. Resume the session in a chat and approve it there\.$/)
      assert.match(hint ?? "", /^assent: resume with: assent chat --resume ses_\S+$/)
    })
  )

  it.scopedLive.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "ends with 130 on %s while a command runs, and leaves no process behind",
    (signal) =>
      Effect.gen(function* () {
        const at = yield* Program.place
        const model = yield* at.script({ tools: [{ name: "run_command", params: { command: endless } }] })
        const program = yield* at.start(["run", "--yolo", "--model", model, "x"])
        const pids = pidsOf(yield* at.appears("workspace/pids"))
        yield* program.signal(signal)
        const { code, stdout, stderr } = yield* program.exit
        assert.strictEqual(code, 130)
        assert.strictEqual(stdout, "")
        assert.match(stderr, /^(?:● .*\n)?assent: resume with: assent run --resume ses_\S+\n$/)
        assert.deepStrictEqual(pids.map(Program.isAlive), [false, false])
        assert.deepStrictEqual(yield* at.list("tmp"), [])
      })
  )

  it.scopedLive("ends with 130 on a signal while it waits for its task", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--log-level", "debug"])
      // More than a pipe holds: it was written only once it is being read.
      yield* program.write("a task ".repeat(100_000))
      yield* program.signal("SIGINT")
      assert.strictEqual((yield* program.exit).code, 130)
    })
  )

  it.scopedLive("is not held up by a reader who goes away", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(
        { text: "word ".repeat(20_000), chunks: 2_000, tools: [{ name: "list_files", params: {} }] },
        { text: "word ".repeat(20_000), chunks: 2_000 }
      )
      const program = yield* at.start(["run", "--json", "--model", model, "x"])
      yield* program.json("TextDelta")
      yield* program.stopReading
      const { code, stderr } = yield* program.exit
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, "")
    })
  )

  it.scopedLive("is not held up by a reader of text who was never there", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script({ text: "word ".repeat(50_000) })
      const program = yield* at.start(["run", "--model", model])
      yield* program.stopReading
      yield* program.write("go\n")
      yield* program.endInput
      const { code, stderr } = yield* program.exit
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, "")
    })
  )
})
