import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { userInfo } from "node:os"
import { Halted } from "../../src/channel/HaltChannel.js"
import * as InteractionRequest from "../../src/interaction/InteractionRequest.js"
import * as Program from "../kit/Program.js"

const decodeRequest = Schema.decodeUnknownSync(InteractionRequest.InteractionRequest)

/** Who runs the tests, and so answers without anybody vouching for others. */
const account = userInfo().username

const run = (command: string) => ({ tools: [{ name: "run_command", params: { command } }] })

describe.concurrent("assent run --json", () => {
  it.scopedLive("writes every event, from the first to the last, and nothing else", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(
        { thinking: "Hm.", text: "Let me see.", ...run("echo out; echo err >&2"), chunks: 2 },
        { text: "Done: it says out.", usage: { input: 12, output: 7 } }
      )
      const { code, stdout, stderr } = yield* at.call(["run", "--json", "--yolo", "--model", model, "go on"])
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, "")
      const events = Program.events(stdout)
      const tags = events.map(({ _tag }) => _tag)
      assert.strictEqual(tags[0], "AgentCreated")
      assert.strictEqual(tags.at(-1), "AgentCompleted")
      const milestones = new Set([
        "TurnStarted",
        "ModelCallStarted",
        "ModelCallEnded",
        "ToolCallProposed",
        "PermissionResolved",
        "ToolCallStarted",
        "ToolCallEnded",
        "TurnEnded"
      ])
      assert.deepStrictEqual(
        tags.filter((tag) => milestones.has(tag)),
        [
          "TurnStarted",
          "ModelCallStarted",
          "ModelCallEnded",
          "ToolCallProposed",
          "PermissionResolved",
          "ToolCallStarted",
          "ToolCallEnded",
          "ModelCallStarted",
          "ModelCallEnded",
          "TurnEnded"
        ]
      )
      const text = events.flatMap((event) => (event._tag === "TextDelta" ? [event.text] : [])).join("")
      assert.strictEqual(text, "Let me see.Done: it says out.")
      const printed = events.flatMap((event) => (event._tag === "ToolOutput" ? [event.text] : [])).join("")
      assert.strictEqual(printed, "out\nerr\n")
      assert.deepInclude(
        events.find((event) => event._tag === "PermissionResolved"),
        { granted: true, method: "yolo" }
      )
      assert.deepInclude(
        events.findLast((event) => event._tag === "ModelCallEnded"),
        { usage: { inputTokens: 12, outputTokens: 7 } }
      )
      assert.deepInclude(events.at(-1), { success: true, turnsUsed: 1 })
    })
  )

  it.scopedLive("tells in one line after the events what it halted for", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { code, stdout, stderr } = yield* at.call(["run", "--json", "run ls"])
      assert.strictEqual(code, 3)
      assert.strictEqual(stderr, "")
      const lines = Program.linesOf(stdout)
      const events = Program.events(stdout, ["InteractionRequired"])
      const halted = Schema.decodeUnknownSync(Halted)(JSON.parse(lines.at(-1) ?? ""), { onExcessProperty: "error" })
      const requested = events.find((event) => event._tag === "InteractionRequested")
      assert.deepInclude(requested, { requestId: halted.requestId, correlationId: halted.correlationId })
      assert.deepInclude(
        events.find((event) => event._tag === "TurnEnded"),
        { reason: "halted" }
      )
      assert.deepInclude(events.at(-1), { _tag: "AgentCompleted", success: false })
    })
  )

  it.scopedLive("tells a failure as an event, and keeps standard error empty", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script({ expect: { contains: "the magic word" }, text: "unheard" })
      const { code, stdout, stderr } = yield* at.call(["run", "--json", "--model", model, "hello"])
      assert.strictEqual(code, 1)
      assert.strictEqual(stderr, "")
      const end = Program.events(stdout).find((event) => event._tag === "TurnEnded")
      assert.deepInclude(end, { reason: "failed" })
      assert.match(JSON.stringify(end), /the magic word/)
    })
  )
})

describe.concurrent("assent run --jsonl", () => {
  it.scopedLive("asks its peer, takes a typed answer and a typed text, and ends with its input", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(run("touch one"), run("touch two"), run("touch three"), {
        expect: { contains: "User comment: not that one" },
        text: "Two of three."
      })
      const program = yield* at.start(["run", "--jsonl", "--model", model])
      yield* program.json("AgentCreated")
      yield* program.tell({ _tag: "Send", text: "make them" })
      for (const [name, answer] of [
        ["one", { decision: "allow", scope: "once" }],
        ["two", "Y"],
        ["three", "c: not that one"]
      ] as const) {
        const { request } = yield* program.json("InteractionRequest")
        const { interaction, agentPath, requestId } = decodeRequest(request)
        assert.deepInclude(interaction, { _tag: "Approve", tool: "run_command" })
        assert.include(JSON.stringify(interaction), `touch ${name}`)
        assert.strictEqual(agentPath, "main")
        yield* program.tell({ _tag: "Answer", requestId, answer })
        const closed = yield* program.json("InteractionClosed", { requestId })
        assert.deepStrictEqual(closed, { _tag: "InteractionClosed", requestId, status: "answered", by: account })
      }
      yield* program.json("TurnEnded", { reason: "completed" })
      yield* program.endInput
      const { code, stdout, stderr } = yield* program.exit
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, "")
      assert.deepStrictEqual(yield* at.list("workspace"), ["one", "two"])
      const lines = Program.linesOf(stdout)
      assert.strictEqual(JSON.parse(lines[0] ?? "")._tag, "AgentCreated")
      assert.strictEqual(JSON.parse(lines.at(-1) ?? "")._tag, "AgentCompleted")
      assert.isNotEmpty(Program.events(stdout, Program.protocol))
    })
  )

  it.scopedLive("counts one person once, however a peer that vouches spells the name", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/permissions.json", { approvals: [{ patterns: ["touch *"], quorum: 2 }] })
      const model = yield* at.script(run("touch made"), { text: "ok" })
      const program = yield* at.start(["run", "--jsonl", "--vouch", "json", "--model", model, "go"])
      const { request } = yield* program.json("InteractionRequest")
      const { requestId } = request
      const says = (answer: string, by: string) => program.tell({ _tag: "Answer", requestId, answer, by })
      yield* says("y", "ada")
      for (const by of [" ada ", "ADA", "\u00a0\uff41da"]) yield* says("y", by)
      yield* says("y", "ad\u200ba")
      assert.include((yield* program.json("AgentError")).message, '"by" of Answer must be a name')
      assert.isFalse(yield* at.exists("workspace/made"))
      yield* says("y", "grace")
      const closed = yield* program.json("InteractionClosed", { requestId })
      assert.deepInclude(closed, { status: "answered", by: "ada, grace" })
      yield* program.json("TurnEnded", { reason: "completed" })
      assert.isTrue(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("shows in no question what it was given in secret", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const key = "sup3rS3cret-99"
      const asking = { tools: [{ name: "ask_user", params: { prompt: `is ${key} right?` } }] }
      const model = yield* at.script(asking, { text: "ok" })
      const env = { OPENAI_COMPATIBLE_API_KEY: key }
      const program = yield* at.start(["run", "--jsonl", "--model", model, "go"], { env })
      const asked = yield* program.json("InteractionRequest")
      assert.strictEqual(asked.request.interaction.prompt, "is [REDACTED] right?")
      assert.notInclude(JSON.stringify(asked), key)
    })
  )

  it.scopedLive("rejects what is no answer to its sender, and keeps the request open", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(run("touch made"), { text: "ok" })
      const program = yield* at.start(["run", "--jsonl", "--model", model, "go"])
      const { request } = yield* program.json("InteractionRequest")
      const { requestId } = request
      const rejected = (answer: unknown, id = requestId) =>
        Effect.zipRight(
          program.tell({ _tag: "Answer", requestId: id, answer }),
          program.json("AnswerRejected", { requestId: id })
        )
      for (const nonsense of [
        "yes please",
        "",
        "allow",
        true,
        null,
        42,
        [],
        {},
        { decision: "allow" },
        { decision: "allow", scope: "forever" },
        { decision: "allow", scope: "once", also: "this" },
        { decision: "edit", editedArguments: "rm" },
        { "1": { value: "an answer to another kind" } }
      ]) {
        const { reason } = yield* rejected(nonsense)
        assert.isAbove(reason.length, 10)
      }
      assert.include((yield* rejected("y", "req_nobody")).reason, "req_nobody")
      assert.isFalse(yield* at.exists("workspace/made"))
      yield* program.tell({ _tag: "Answer", requestId, answer: "y" })
      yield* program.json("InteractionClosed", { requestId, status: "answered" })
      assert.match((yield* rejected("n")).reason, /already|settled/)
      yield* program.json("TurnEnded", { reason: "completed" })
      yield* program.endInput
      assert.strictEqual((yield* program.exit).code, 0)
      assert.isTrue(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("names the line of what is no command, and goes on", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--jsonl", "--model", yield* at.script({ text: "still here" })])
      yield* program.json("AgentCreated")
      const lines = [
        "hello",
        "{",
        "",
        "[]",
        '"Shutdown"',
        '{"_tag":"Jump"}',
        '{"_tag":"Send"}',
        '{"_tag":"Send","text":""}',
        '{"_tag":"Send","text":"x","when":"later"}',
        '{"_tag":"Shutdown","now":true}',
        '{"_tag":"Send","text":"x","target":"main/nobody"}',
        '{"_tag":"Permissions","command":"frobnicate"}',
        '{"_tag":"Send","text":"x","id":""}',
        `{"_tag":"Send","text":"x","id":"${"x".repeat(201)}"}`,
        '{"_tag":"Send","text":"x","id":"x","target":["main","main"]}',
        `{"_tag":"Send","text":"${"x".repeat(10_500_000)}"}`
      ]
      yield* program.write(lines.map((line) => `${line}\n`).join(""))
      for (const [index, line] of lines.entries()) {
        if (line === "") continue
        const { message } = yield* program.json("AgentError")
        assert.match(message, new RegExp(`^Line ${index + 1}\\b`))
        assert.isBelow(message.length, 1_500)
      }
      yield* program.tell({ _tag: "Send", text: "are you there?" })
      yield* program.json("TextDelta", { text: "still here" })
      yield* program.endInput
      const { code, stdout } = yield* program.exit
      assert.strictEqual(code, 0)
      const events = Program.events(stdout, Program.protocol)
      assert.strictEqual(events.filter((event) => event._tag === "TurnStarted").length, 1)
    })
  )

  it.scopedLive("interrupts the turn and what it runs; the agent stays usable", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(run("echo pid $$; exec sleep 300"), { text: "again" })
      const program = yield* at.start(["run", "--jsonl", "--yolo", "--model", model, "wait"])
      const pid = Number(/pid (\d+)/.exec((yield* program.json("ToolOutput")).text)?.[1])
      assert.isTrue(Program.isAlive(pid))
      yield* program.tell({ _tag: "Interrupt" })
      assert.deepInclude(yield* program.json("ToolCallEnded"), { outcome: "interrupted" })
      assert.deepInclude(yield* program.json("TurnEnded"), { reason: "cancelled", detail: "user" })
      assert.isFalse(Program.isAlive(pid))
      // Nothing runs now, so there is nothing to stop.
      yield* program.tell({ _tag: "Interrupt" })
      yield* program.tell({ _tag: "Send", text: "again" })
      assert.deepInclude(yield* program.json("TurnEnded"), { reason: "completed" })
      yield* program.endInput
      assert.strictEqual((yield* program.exit).code, 0)
    })
  )

  it.scopedLive("obeys permissions commands", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(run("touch made one"), run("touch made two"), { text: "ok" })
      const program = yield* at.start(["run", "--jsonl", "--model", model])
      yield* program.tell({ _tag: "Permissions", command: "allow touch made*" })
      const { lines } = yield* program.json("Permissions")
      assert.deepStrictEqual(lines, ["Allowed for this session: touch made*"])
      yield* program.tell({ _tag: "Permissions", command: "check run_command touch made one" })
      assert.match((yield* program.json("Permissions")).lines.join(), /^allow \(session_whitelist\)/)
      yield* program.tell({ _tag: "Permissions", command: "default deny" })
      yield* program.json("Permissions")
      yield* program.tell({ _tag: "Send", text: "go" })
      yield* program.json("TurnEnded", { reason: "completed" })
      yield* program.endInput
      const { code, stdout } = yield* program.exit
      assert.strictEqual(code, 0)
      assert.notInclude(stdout, '"InteractionRequest"')
      assert.include(stdout, '"PermissionStatusChanged"')
      assert.deepStrictEqual(yield* at.list("workspace"), ["made", "one", "two"])
    })
  )

  it.scopedLive("interjects into the running turn, or queues a turn of its own", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(
        run("touch made"),
        { expect: { contains: "and hurry" }, text: "Hurried." },
        { expect: { contains: "then rest" }, text: "Rested." }
      )
      const program = yield* at.start(["run", "--jsonl", "--model", model, "make it"])
      const { request } = yield* program.json("InteractionRequest")
      yield* program.tell({ _tag: "Send", text: "then rest", when: "idle" })
      yield* program.tell({ _tag: "Send", text: "and hurry" })
      const interjected = yield* program.json("UserInterjected")
      assert.deepInclude(interjected, { message: "and hurry", targetAgent: "main", parentId: "root" })
      yield* program.tell({ _tag: "Answer", requestId: request.requestId, answer: "y" })
      yield* program.json("InterjectionAcknowledged", { messageId: interjected.messageId, step: 2 })
      yield* program.json("TextDelta", { text: "Hurried." })
      yield* program.json("TurnEnded", { reason: "completed", steps: 2 })
      assert.strictEqual((yield* program.json("TurnStarted")).input, "then rest")
      yield* program.json("TextDelta", { text: "Rested." })
      yield* program.endInput
      const { code, stdout } = yield* program.exit
      assert.strictEqual(code, 0)
      assert.strictEqual(stdout.split('"UserInterjected"').length, 2)
    })
  )

  it.scopedLive("sends a question as a form too, and takes what was filled in, or says field by field why not", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--jsonl", "ask me which? [red | green]"])
      const { form, request } = yield* program.json("InteractionRequest")
      assert.deepStrictEqual(form.requestedSchema.properties.q01.oneOf, [
        { const: "1", title: "red" },
        { const: "2", title: "green" }
      ])
      const { requestId } = request
      yield* program.tell({ _tag: "Answer", requestId, form: { q01: "3", q02: true } })
      const { problems } = yield* program.json("AnswerRejected", { requestId })
      assert.deepStrictEqual(problems, [
        { field: "q02", message: "There is no such field." },
        { field: "q01", message: 'It must be one of "1", "2".' }
      ])
      yield* program.tell({ _tag: "Answer", requestId, form: { q01: "2" }, answer: "1" })
      yield* program.json("AnswerRejected", { requestId })
      yield* program.tell({ _tag: "Answer", requestId, form: { q01: "2" } })
      const { value } = yield* program.json("InteractionAnswered", { requestId })
      assert.deepStrictEqual(value, { "1": { selected: 2, text: "green" } })
      yield* program.endInput
      assert.strictEqual((yield* program.exit).code, 0)
    })
  )

  it.scopedLive("finishes what is queued when its input ends", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script({ text: "first" }, { text: "second" }, { text: "third" })
      const stdin = ["one", "two", "three"]
        .map((text) => `${JSON.stringify({ _tag: "Send", text, when: "idle" })}\n`)
        .join("")
      const { code, stdout } = yield* at.call(["run", "--jsonl", "--model", model], { stdin })
      assert.strictEqual(code, 0)
      const events = Program.events(stdout, Program.protocol)
      const inputs = events.flatMap((event) => (event._tag === "TurnStarted" ? [event.input] : []))
      assert.strictEqual(inputs.join(), "one,two,three")
    })
  )

  it.scopedLive("halts for an open question when its input ends and nobody else is there", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--jsonl", "ask me which? [red | green]"])
      const { request } = yield* program.json("InteractionRequest")
      yield* program.endInput
      const { code, stdout, stderr } = yield* program.exit
      assert.strictEqual(code, 3)
      assert.strictEqual(stderr, "")
      const last = JSON.parse(Program.linesOf(stdout).at(-1) ?? "")
      assert.deepInclude(last, { _tag: "InteractionRequired", kind: "Clarify", requestId: request.requestId })
    })
  )

  it.scopedLive("halts for a question that comes up after its input has ended", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { code, stdout } = yield* at.call(["run", "--jsonl"], {
        stdin: '{"_tag":"Send","text":"run ls"}'
      })
      assert.strictEqual(code, 3)
      assert.deepInclude(JSON.parse(Program.linesOf(stdout).at(-1) ?? ""), {
        _tag: "InteractionRequired",
        kind: "Approve"
      })
    })
  )

  it.scopedLive("leaves an open question to the other channels when its input ends", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--jsonl", "--channel", "auto", "run touch made"])
      const { request } = yield* program.json("InteractionRequest")
      yield* program.endInput
      const { code, stdout } = yield* program.exit
      // The other one never approves, and so nobody is left who could.
      assert.strictEqual(code, 0)
      assert.notInclude(stdout, "InteractionRequired")
      assert.include(stdout, "Permission denied")
      assert.include(stdout, request.requestId)
      assert.isFalse(yield* at.exists("workspace/made"))
      const auto = yield* at.call(["run", "--jsonl", "--channel", "auto", "ask me which? [red | green]"])
      assert.strictEqual(auto.code, 0)
      assert.include(auto.stdout, "You answered: red")
    })
  )

  it.scopedLive("ends at once on Shutdown, and does not begin what is queued", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(run("echo started; exec sleep 300"), { text: "queued" }, { text: "queued" })
      const program = yield* at.start(["run", "--jsonl", "--yolo", "--model", model, "wait"])
      yield* program.json("ToolOutput")
      yield* program.tell({ _tag: "Send", text: "later", when: "idle" })
      yield* program.tell({ _tag: "Shutdown" })
      // Its input stays open.
      const { code, stdout } = yield* program.exit
      assert.strictEqual(code, 130)
      const events = Program.events(stdout, Program.protocol)
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "TurnEnded" ? [[event.reason, event.detail]] : [])),
        [["cancelled", "shutdown"]]
      )
      assert.deepInclude(events.at(-1), { _tag: "AgentCompleted", success: false })
    })
  )

  it.scopedLive("ends with 0 on Shutdown when nothing is left to do", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--jsonl", "--model", yield* at.script({ text: "hello" }), "hi"])
      yield* program.json("TurnEnded")
      yield* program.json("AgentStatusChanged", { status: "idle" })
      yield* program.tell({ _tag: "Shutdown" })
      assert.strictEqual((yield* program.exit).code, 0)
      const idle = yield* at.call(["run", "--jsonl"], { stdin: '{"_tag":"Shutdown"}\n' })
      assert.strictEqual(idle.code, 0)
      assert.deepStrictEqual(
        Program.events(idle.stdout).map(({ _tag }) => _tag),
        ["AgentCreated", "AgentCompleted"]
      )
    })
  )

  it.scopedLive("ends with 130 on a signal, also while its peer says nothing", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--jsonl", "run ls"])
      yield* program.json("InteractionRequest")
      yield* program.signal("SIGTERM")
      const { code, stdout } = yield* program.exit
      assert.strictEqual(code, 130)
      for (const line of Program.linesOf(stdout)) JSON.parse(line)
    })
  )

  it.scopedLive.each(["--json", "--jsonl"])(
    "with %s tells its last events and how to go on when it is interrupted",
    (how) =>
      Effect.gen(function* () {
        const at = yield* Program.place
        const model = yield* at.script(run("echo started; exec sleep 300"), { text: "never" })
        const program = yield* at.start(["run", how, "--yolo", "--model", model, "wait"])
        yield* program.json("ToolOutput")
        yield* program.signal("SIGINT")
        const { code, stdout, stderr } = yield* program.exit
        assert.strictEqual(code, 130)
        const events = Program.events(stdout, Program.protocol)
        assert.deepInclude(events.at(-1), { _tag: "AgentCompleted", success: false })
        assert.isTrue(events.some((event) => event._tag === "ToolCallEnded"))
        assert.match(stderr, /^assent: resume with: assent run --resume ses_\S+\n$/)
      })
  )

  it.scopedLive("ends when nobody reads its lines any more, though its input stays open", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--jsonl", "--model", yield* at.script({ text: "hello" })])
      yield* program.json("AgentCreated")
      yield* program.stopReading
      // Found out by the first line that nobody takes.
      yield* program.tell({ _tag: "Answer", requestId: "req_nobody", answer: "y" })
      assert.strictEqual((yield* program.exit).code, 0)
    })
  )

  it.scopedLive("denies what its peer leaves unanswered for longer than the environment allows", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--jsonl", "run touch made"], {
        env: { ASSENT_PERMISSION_TIMEOUT: "0.2" }
      })
      const { request } = yield* program.json("InteractionRequest")
      yield* program.json("InteractionClosed", { requestId: request.requestId, status: "timed_out" })
      assert.deepInclude(yield* program.json("PermissionResolved"), { granted: false, method: "timeout" })
      yield* program.endInput
      assert.strictEqual((yield* program.exit).code, 0)
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )
})
