import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as ServerKit from "../kit/ServerKit.js"

/** Positions of these texts, which must come one after the other. */
const inOrder = (text: string, parts: ReadonlyArray<string>) => {
  let from = 0
  for (const part of parts) {
    const at = text.indexOf(part, from)
    assert.isAtLeast(at, 0, `${JSON.stringify(part)} does not come after ${from} in:\n${text}`)
    from = at + part.length
  }
}

describe.concurrent("assent chat at a pipe", () => {
  it.scopedLive("takes each line as a turn of its own, and quits at the end of input", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/notes.txt", "remember the milk")
      const { code, stdout, stderr } = yield* at.call(["chat"], { stdin: "list\n\n   \nread notes.txt\nlist" })
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, "")
      inOrder(stdout, [
        "assent model offline/offline",
        "I will list the files here.",
        "● list_files",
        "list_files: notes.txt",
        "I will read notes.txt.",
        "● read_file notes.txt",
        "remember the milk",
        "I will list the files here.",
        "list_files: notes.txt"
      ])
      assert.notInclude(stdout, "↳")
      assert.notInclude(stdout, "\u001b")
      assert.notInclude(stdout, "I am not a language model but")
    })
  )

  it.scopedLive("shows a prompt of a tool server and sends it, and refuses one that its server has not", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { name, ...settings } = ServerKit.legacySettings(at.path("log"))
      yield* at.write("config/config.json", { mcp_servers: { [name]: settings } })
      const model = yield* at.script({ text: "Hello, Ada." })
      const stdin = "/mcp:legacy:greet\n/mcp:legacy:no\n/mcp:other:greet\n/mcp:legacy:greet Ada\n"
      const { code, stdout } = yield* at.run(["chat", "--model", model], { stdin })
      assert.strictEqual(code, 0)
      inOrder(stdout, [
        "The prompt needs arguments: /mcp:legacy:greet WHO",
        "The server legacy has no prompt no. It has /mcp:legacy:greet.",
        "There is no server other. Servers: assent mcp",
        "Do what the prompt greet of the server legacy says. I chose it.",
        '<foreign-text source="mcp:legacy">',
        "Greet Ada.",
        "Hello, Ada."
      ])
    })
  )

  it.scopedLive("asks again about a tool that its server changed after `always`, and shows what changed", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { name, ...settings } = ServerKit.legacySettings(at.path("log"))
      yield* at.write("config/config.json", { mcp_servers: { [name]: settings } })
      const call = (tool: string, params: object) => ({ tools: [{ name: `mcp__legacy__${tool}`, params }] })
      const wait = { tools: [{ name: "run_command", params: { command: "sleep 2" } }] }
      const echo = call("echo", { text: "hello" })
      const model = yield* at.script(
        { tools: [{ name: "run_command", params: { command: "sleep 6" } }] },
        echo,
        echo,
        call("change", { to: "Sends it away." }),
        wait,
        echo,
        { text: "Done." }
      )
      const stdin = "go\ny\na\ny\ny\nn\n"
      const { stdout } = yield* at.run(["chat", "--piped-answers", "--model", model], { stdin })
      assert.strictEqual(stdout.match(/Allow mcp__legacy__echo\?/g)?.length, 2, stdout)
      inOrder(stdout, [
        "Allow mcp__legacy__echo?",
        "Allow mcp__legacy__change?",
        "Allow mcp__legacy__echo?",
        "The server changed mcp__legacy__echo after it was allowed.",
        "Sends it away.",
        "Done."
      ])
    })
  )

  it.scopedLive("makes the conversation shorter, and says when there is nothing to shorten", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const stdin = `/compact\n${"list\n".repeat(7)}/compact\n/compact\n`
      const { code, stdout } = yield* at.call(["chat"], { stdin })
      assert.strictEqual(code, 0)
      inOrder(stdout, [
        "There is nothing to shorten: the latest turns stay. The conversation has about ",
        "The conversation was shortened: ",
        "There is nothing to shorten: "
      ])
    })
  )

  it.scopedLive("lists the last sessions with their first words, and says how to go on with one", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.call(["run", "read notes.txt"])
      const { code, stdout } = yield* at.call(["chat"], { stdin: "list the files\n/sessions\n" })
      assert.strictEqual(code, 0)
      assert.match(
        stdout,
        /\nses_\S+ {2}\w+ \d\d:\d\d {2}\(this one\) {2}list the files\nses_\S+ {2}\w+ \d\d:\d\d {2}read notes\.txt\nTo resume one: \/resume ID, or the beginning of an id\n/
      )
      const nothing = yield* at.call(["chat", "--store", ":memory:"], { stdin: "list\n/sessions\n" })
      assert.include(nothing.stdout, "This chat stores no sessions.")
    })
  )

  it.scopedLive("goes back to the end of a turn in a session of its own, and leaves the old one byte for byte", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const first = yield* at.call(["chat"], { stdin: "list\nread notes.txt\n" })
      assert.strictEqual(first.code, 0)
      const id = (yield* at.call(["sessions"])).stdout.split(" ")[0] ?? ""
      const refused = yield* at.call(["chat", "--resume", id], { stdin: "/rewind 7\n/rewind two\n/rewind -1\n" })
      inOrder(refused.stdout, [
        "There are 2 turns. /rewind lists them.",
        '"two" is not the number of a turn. /rewind lists the turns.',
        '"-1" is not the number of a turn.'
      ])
      assert.strictEqual((yield* at.call(["sessions"])).stdout.trim().split("\n").length, 1)
      // Resumed once: from here on it is only gone back from.
      const lines = "/rewind 1\nread other.txt\n/rewind\n/rewind 0\n/rewind\nlist\n"
      const both = ["chat", "--continue"]
      const before = yield* at.call(["sessions", "export", id])
      const { code, stdout } = yield* at.call(both, { stdin: lines })
      assert.strictEqual(code, 0)
      inOrder(stdout, [
        "Back at the end of turn 1. The session is ses_",
        `; ${id} stays as it is.`,
        "I will read other.txt.",
        "1  ",
        "Completed  list\n2  ",
        "Completed  read other.txt",
        "Back at the beginning. The session is ses_",
        "Nothing was said yet.",
        "● list_files"
      ])
      const after = yield* at.call(["sessions", "export", id])
      const entries = (text: string): ReadonlyArray<unknown> => JSON.parse(text).entries
      // It says that it was resumed, as it says without a rewind, and nothing else.
      assert.deepStrictEqual(entries(after.stdout).slice(0, -1), entries(before.stdout))
      assert.match(JSON.stringify(entries(after.stdout).at(-1)), /"SessionResumed"/)
      const kept = (yield* at.call(["sessions"])).stdout
      assert.match(kept, /\(fork of ses_\S+ at turn 0\)/)
      const nothing = yield* at.call(["chat", "--store", ":memory:"], { stdin: "list\n/rewind 0\n/rewind\n" })
      inOrder(nothing.stdout, ["● list_files", "Back at the beginning.", "Nothing was said yet."])
    })
  )

  it.scopedLive("puts back the files of the last turn, also in a later process, and names what it leaves alone", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/a.txt", "old a")
      const task = "write a.txt: new a and write made/b.txt: b and run echo x > c.txt"
      assert.strictEqual((yield* at.call(["run", "--yolo", task])).code, 0)
      assert.strictEqual(yield* at.read("workspace/a.txt"), "new a")
      const { code, stdout } = yield* at.call(["chat", "--continue"], { stdin: "/undo\n/undo\nlist\n/undo\n" })
      assert.strictEqual(code, 0)
      inOrder(stdout, [
        "The files of turn 1 are as before: 2 files. The agent reads this with your next message.",
        "  put back   a.txt\n  removed    made/b.txt, which the turn had created\n  not undone run_command echo x > c.txt: what commands changed stays",
        "Nothing of turn 1 was restored.",
        "● list_files",
        "Turn 2 has nothing to restore"
      ])
      assert.strictEqual(yield* at.read("workspace/a.txt"), "old a")
      assert.isFalse(yield* at.exists("workspace/made"))
      assert.isTrue(yield* at.exists("workspace/c.txt"))
      const id = (yield* at.call(["sessions"])).stdout.split(" ")[0] ?? ""
      // Once, before the words that came next.
      const transcript = (yield* at.call(["sessions", "show", id])).stdout
      assert.match(
        transcript,
        /\n> system: The user took back what file tools changed in turn 1\. .*before that turn: a\.txt\. .*gone: made\/b\.txt\.\n> list\n/
      )
      assert.lengthOf(transcript.match(/> system: /g) ?? [], 1)
      assert.match((yield* at.call(["sessions", "turns", id])).stdout, /2 {2}\S+ \S+ {2}Completed {2}list\n/)
      const audit = (yield* at.call(["audit", "show", id])).stdout
      assert.strictEqual(audit.match(/ session undo /g)?.length, 1)
      assert.include(audit, "turn 1; put back a.txt; removed made/b.txt; not covered run_command echo x > c.txt")
      assert.strictEqual((yield* at.call(["audit", "verify"])).code, 0)
      // What is kept goes with the session.
      const kept = `state/workspaces/${(yield* at.list("state/workspaces")).find((name) => !name.includes("/")) ?? ""}/checkpoints`
      yield* at.call(["sessions", "delete", id])
      assert.deepStrictEqual(yield* at.list(kept), [])
    })
  )

  it.scopedLive("goes on with a session that has a subagent, and quits at the end of input", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.call(["run", "--yolo", "explore list"])
      const { code, stdout } = yield* at.call(["chat", "--continue"], { stdin: "list\nlist\n" })
      assert.strictEqual(code, 0)
      assert.lengthOf(stdout.match(/I will list the files here/g) ?? [], 2)
    })
  )

  it.scopedLive("is what runs without a command, and ends at once without input", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { code, stdout, stderr } = yield* at.call([])
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, "")
      // Nobody's terminal breaks its rows, so neither do we.
      assert.match(stdout, /^assent model offline\/offline.*\nThe offline stand-in .* with \/model\.\n$/)
    })
  )

  it.scopedLive("gives the next lines to an open dialog, and never takes an empty one for a yes", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const stdin = ["run touch one", "", "sure", "y", "run touch two", "n", "list"].map((line) => `${line}\n`).join("")
      const { code, stdout } = yield* at.call(["chat", "--piped-answers"], { stdin })
      assert.strictEqual(code, 0)
      inOrder(stdout, [
        "Allow run_command?",
        "touch one",
        "Please type one of",
        "Please type one of",
        "● run_command touch one",
        "Allow run_command?",
        "touch two",
        "run_command was not run. Permission denied",
        "list_files: one"
      ])
      assert.deepStrictEqual(yield* at.list("workspace"), ["one"])
    })
  )

  it.scopedLive("denies after three lines that are no answer, and nothing where the input ends instead of one", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const nonsense = yield* at.call(["chat", "--piped-answers"], { stdin: "run touch made\n\nperhaps\nwell\nlist\n" })
      assert.strictEqual(nonsense.code, 0)
      const unclear = "\n  · console could not answer: Assent understood no answer\n"
      inOrder(nonsense.stdout, [unclear, "run_command was not run. Permission denied", "I will list the files here."])
      // Also when the last line is a yes that was cut off.
      for (const stdin of ["run touch made\n", "run touch made\n\n\n", "run touch made\ny"]) {
        const ended = yield* at.call(["chat", "--piped-answers"], { stdin })
        assert.strictEqual(ended.code, 3)
        inOrder(ended.stdout, [
          "Allow run_command?",
          "The input ended before this was answered. The question stays open"
        ])
        assert.notInclude(ended.stdout, "denied")
      }
      assert.deepStrictEqual(yield* at.list("workspace"), [])
    })
  )

  it.scopedLive("asks questions one after the other, with defaults and retries", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const questions = [
        { text: "Which colour?", question_type: "single_choice", choices: ["red", "green"], default_choice: 2 },
        { text: "Which sizes?", question_type: "multiple_choice", choices: ["S", "M", "L"] },
        { text: "Anything else?", question_type: "free_text", required: false }
      ]
      const model = yield* at.script(
        { tools: [{ name: "request_clarification", params: { context: "An order.", questions } }] },
        { expect: { contains: '"selected":[1,3]' }, text: "Ordered." }
      )
      const { code, stdout } = yield* at.call(["chat", "--piped-answers", "--model", model], {
        stdin: "order\n\n9\n1, 3, 1\n\n"
      })
      assert.strictEqual(code, 0)
      inOrder(stdout, ["An order.", "Which colour?", "Which sizes?", "9", "Anything else?", "Ordered."])
    })
  )

  it.scopedLive("knows its commands, and tells those it does not know", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const other = yield* at.script({ text: "I am the other.", usage: { input: 11, output: 4 } })
      const lines = [
        "/help",
        "/cost",
        "/permissions",
        "/permissions allow touch made*",
        "/permissions frobnicate",
        "run touch made",
        "/model",
        "/model acme/none",
        `/model ${other}`,
        "/model",
        "/clear",
        "hello",
        "/cost",
        "/dance",
        "/quit",
        "run touch never"
      ]
      const { code, stdout } = yield* at.call(["chat", "--piped-answers"], {
        stdin: lines.map((line) => `${line}\n`).join("")
      })
      assert.strictEqual(code, 0)
      // A gap behind each usage, the longest one too.
      assert.match(stdout, /\n\/mode \[ask\|plan\|deny\|allow\] +set how calls/)
      inOrder(stdout, [
        "/permissions [COMMAND]",
        "/agents",
        "/select AGENT|none",
        "No model was called yet.",
        "mode: ask",
        "Allowed for this session: touch made*",
        'There is no "permissions frobnicate"',
        "● run_command touch made",
        "offline/offline",
        'There is no provider "acme"',
        `The model is now ${other}.`,
        other,
        "The conversation is cleared.",
        "I am the other.",
        "agent  calls  retries  input  cached  output",
        "main       3        0     11       0       4",
        "There is no command /dance"
      ])
      assert.notInclude(stdout, "Allow run_command?")
      assert.deepStrictEqual(yield* at.list("workspace"), ["made"])
    })
  )

  it.scopedLive("has AGENTS.md written, with what else somebody says, and asks about it as about any file", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const content = "# Working here\n"
      const model = yield* at.script(
        {
          expect: { contains: "Write AGENTS.md" },
          tools: [{ name: "write_file", params: { path: "AGENTS.md", content } }]
        },
        { text: "Written." },
        { expect: { contains: "Name the linter." }, text: "Named." }
      )
      const lines = ["/init", "y", "/init Name the linter."]
      const { code, stdout } = yield* at.call(["chat", "--piped-answers", "--model", model], {
        stdin: lines.map((line) => `${line}\n`).join("")
      })
      assert.strictEqual(code, 0)
      inOrder(stdout, ["Allow write_file?", "Written.", "Named."])
      assert.strictEqual(yield* at.read("workspace/AGENTS.md"), content)
    })
  )

  it.scopedLive("sends the words of a command that is typed in a question, which the model reads after it", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(
        { tools: [{ name: "write_file", params: { path: "a", content: "a" } }] },
        { expect: { contains: "Look at the tests first." }, text: "A plan." }
      )
      const { code, stdout } = yield* at.call(["chat", "--piped-answers", "--model", model], {
        stdin: "begin\n/plan Look at the tests first.\nn\n"
      })
      assert.strictEqual(code, 0)
      inOrder(stdout, [
        "Allow write_file?",
        "mode: plan",
        "Plan mode is on, for this question too",
        "Answer the question first: then the agent reads your words.",
        "Look at the tests first.",
        "A plan."
      ])
    })
  )

  it.scopedLive("goes on after a turn that failed, and ends as its last turn did", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script({ error: "bad_output" }, { text: "Better." }, { error: "bad_output" })
      const better = yield* at.call(["chat", "--model", model], { stdin: "one\ntwo\n" })
      assert.strictEqual(better.code, 0)
      inOrder(better.stdout, ["— failed:", "Better."])
      const worse = yield* at.call(["chat", "--model", model], { stdin: "one\ntwo\nthree\n" })
      assert.strictEqual(worse.code, 1)
    })
  )

  it.scopedLive("ends with 130 on a signal in the middle of a command, and leaves no process behind", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["chat", "--yolo"])
      yield* program.write("run echo $$ > pid.half && mv pid.half pid && exec sleep 300\n")
      const pid = Number(yield* at.appears("workspace/pid"))
      assert.isTrue(Program.isAlive(pid))
      yield* program.signal("SIGTERM")
      const { code, stderr } = yield* program.exit
      assert.strictEqual(code, 130)
      assert.strictEqual(stderr, "")
      assert.isFalse(Program.isAlive(pid))
    })
  )
})
