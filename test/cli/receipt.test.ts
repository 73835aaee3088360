/** What a driver of `run --jsonl` may rely on once it was told that its words are taken, whatever dies afterwards. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"

const ask = { tools: [{ name: "ask_user", id: "asked", params: { prompt: "Which?" } }] }

/** The messages that a user sent to a session, by id, as the store has them. */
const kept = (at: Program.Place, sessionId: string) =>
  Effect.map(at.call(["sessions", "export", sessionId]), ({ code, stdout }) => {
    assert.strictEqual(code, 0)
    const { entries } = JSON.parse(stdout) as { readonly entries: ReadonlyArray<{ readonly entry: any }> }
    return entries.flatMap(({ entry }) =>
      entry._tag === "MessageReceived" && entry.message.source === "user"
        ? [[entry.message.id, entry.message.text]]
        : []
    )
  })

const kill = (program: Program.Program) => Effect.zipRight(program.signal("SIGKILL"), program.exit)

describe.concurrent("a receipt for words on a line", () => {
  it.scopedLive("names the line, the message and the id that the driver gave it", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(ask, { text: "one" }, { text: "two" })
      const program = yield* at.start(["run", "--jsonl", "--model", model])
      const taken = () => program.json("SendTaken")
      yield* program.tell({ _tag: "Send", text: "begin", id: "job 1/π" })
      assert.deepStrictEqual(yield* taken(), {
        _tag: "SendTaken",
        line: 1,
        id: "job 1/π",
        messageIds: ["job 1/π"]
      })
      const { request } = yield* program.json("InteractionRequest")
      yield* program.tell({ _tag: "Send", text: "hurry", id: "hurry", target: "main" })
      // The same id in events.
      assert.strictEqual((yield* program.json("UserInterjected")).messageId, "hurry")
      assert.deepStrictEqual((yield* taken()).messageIds, ["hurry"])
      yield* program.write("\n")
      yield* program.tell({ _tag: "Send", text: "then this", when: "idle", id: "later" })
      assert.deepInclude(yield* taken(), { line: 4, id: "later" })
      yield* program.tell({ _tag: "Send", text: "to all", target: ["main", "main"] })
      const { messageId } = yield* program.json("UserInterjected")
      const several = yield* taken()
      assert.deepStrictEqual(several, { _tag: "SendTaken", line: 5, messageIds: [messageId] })
      yield* program.tell({ _tag: "Answer", requestId: request.requestId, answer: "this" })
      yield* program.endInput
      const { code, stdout } = yield* program.exit
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(
        (yield* kept(at, request.sessionId)).map(([, text]) => text),
        ["begin", "hurry", "then this", "to all"]
      )
      assert.isNotEmpty(Program.events(stdout, Program.protocol))
    })
  )

  it.scopedLive("is not given for words that were not taken, and leaves their id free", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--jsonl", "--model", yield* at.script({ text: "heard" })])
      for (const refused of [
        { target: "main/nobody" },
        { target: "main/nobody", when: "idle" },
        { target: ["main", "main/nobody"] },
        { id: 7 },
        { id: null }
      ]) {
        yield* program.tell({ _tag: "Send", text: "x", id: "mine", ...refused })
        yield* program.json("AgentError")
      }
      yield* program.tell({ _tag: "Send", text: "x", id: "mine" })
      yield* program.endInput
      const { stdout } = yield* program.exit
      const receipts = Program.linesOf(stdout).filter((line) => line.includes('"SendTaken"'))
      assert.deepStrictEqual(receipts, ['{"_tag":"SendTaken","line":6,"id":"mine","messageIds":["mine"]}'])
    })
  )

  it.scopedLive("is not given for other words under an id, which are not heard", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script({ text: "one" })
      const send = (text: string) => `{"_tag":"Send","text":"${text}","id":"k1","when":"idle"}\n`
      const stdin = ["deploy to staging", "do NOT deploy", "deploy to staging"].map(send).join("")
      const { stdout } = yield* at.call(["run", "--jsonl", "--model", model], { stdin })
      const told = Program.linesOf(stdout).map((text) => JSON.parse(text))
      assert.deepStrictEqual(
        told.filter(({ _tag }) => _tag === "SendTaken").map(({ line }) => line),
        [1, 3]
      )
      const refused = told.filter(({ _tag }) => _tag === "AgentError")
      assert.lengthOf(refused, 1)
      assert.match(JSON.stringify(refused[0]), /Line 2: Other words were accepted under the id k1/)
    })
  )

  it.scopedLive("comes again for an id that comes again, and the words are heard once", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script({ text: "one" }, { text: "two" })
      const lines = ["a", "a", "b", "a", "b"].map(
        (id) => `{"_tag":"Send","text":"do ${id}","id":"${id}","when":"idle"}\n`
      )
      const { code, stdout } = yield* at.call(["run", "--jsonl", "--model", model], { stdin: lines.join("") })
      assert.strictEqual(code, 0)
      const receipts = Program.linesOf(stdout).flatMap((text) => {
        const line = JSON.parse(text)
        return line._tag === "SendTaken" ? [[line.line, line.id, line.again === true]] : []
      })
      assert.deepStrictEqual(receipts, [
        [1, "a", false],
        [2, "a", true],
        [3, "b", false],
        [4, "a", true],
        [5, "b", true]
      ])
      const inputs = Program.events(stdout, Program.protocol).flatMap((event) =>
        event._tag === "TurnStarted" ? [event.input] : []
      )
      assert.deepStrictEqual(inputs, ["do a", "do b"])
    })
  )

  it.scopedLive("holds for what a child is told, while it works and while it rests", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const agents = {
        main: [
          {
            tools: [{ name: "spawn_subagent", id: "spawning", params: { task: "ask", profile: "asker", keep: true } }]
          },
          { text: "It asks." },
          { text: "It has asked." },
          { text: "It has heard." }
        ],
        asker: [ask, { expect: { contains: "while it asks" }, text: "Asked." }, { text: "Heard." }]
      }
      yield* at.write("config/profiles/asker.json", { name: "asker", description: "asks", plugins: ["clarification"] })
      const model = `script:${yield* at.write("family.json", { version: 1, agents })}`
      const policy = yield* at.write("policy.json", { version: 1, whitelist: { tools: ["spawn_subagent"] } })
      const program = yield* at.start(["run", "--jsonl", "--model", model, "--policy", policy, "go"])
      const { request } = yield* program.json("InteractionRequest")
      const target = "main/asker"
      const tell = (text: string, id: string) =>
        Effect.zipRight(program.tell({ _tag: "Send", text, id, target }), program.json("SendTaken", { id }))
      yield* program.tell({ _tag: "Send", text: "while it asks", id: "c1", target })
      assert.deepInclude(yield* program.json("UserInterjected"), { agent: target, messageId: "c1" })
      assert.deepInclude(yield* program.json("SendTaken"), { line: 1, messageIds: ["c1"] })
      assert.deepInclude(yield* tell("while it asks", "c1"), { again: true })
      yield* program.tell({ _tag: "Answer", requestId: request.requestId, answer: "this" })
      yield* program.json("TurnEnded", { agent: target })
      yield* program.json("TurnEnded", { agent: "main" })
      const receipt = yield* tell("while it rests", "c2")
      assert.deepStrictEqual([receipt.messageIds, receipt.again], [["c2"], undefined])
      assert.deepInclude(yield* tell("while it rests", "c2"), { again: true })
      yield* program.endInput
      assert.strictEqual((yield* program.exit).code, 0)
      const { stdout } = yield* at.call(["sessions", "list", "--json"])
      assert.deepStrictEqual((yield* kept(at, JSON.parse(stdout).rootSessionId)).slice(1), [
        ["c1", "while it asks"],
        ["c2", "while it rests"]
      ])
    })
  )

  it.scopedLive("holds when the process is killed as soon as it is read, and for the next one", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(
        ask,
        { expect: { contains: "and hurry" }, text: "Hurried." },
        { expect: { contains: "then rest" }, text: "Rested." }
      )
      const words = [
        { text: "begin", id: "w1" },
        { text: "and hurry", id: "w2" },
        { text: "then rest", id: "w3", when: "idle" }
      ]
      let sessionId: string | undefined
      // Each process is told all there is to do, and dies with the receipt for one word more than the one before.
      for (const [index, last] of words.entries()) {
        const resume: ReadonlyArray<string> = sessionId === undefined ? [] : ["--resume", sessionId]
        const program = yield* at.start(["run", "--jsonl", "--model", model, ...resume])
        sessionId = (yield* program.json("AgentCreated")).sessionId as string
        for (const [before, word] of words.slice(0, index + 1).entries()) {
          yield* program.tell({ _tag: "Send", ...word })
          const receipt = yield* program.json("SendTaken", { id: word.id })
          assert.strictEqual(receipt.again, before < index ? true : undefined)
        }
        yield* kill(program)
        assert.deepInclude(yield* kept(at, sessionId), [last.id, last.text])
      }
      const program = yield* at.start(["run", "--jsonl", "--model", model, "--resume", sessionId ?? ""])
      const { request } = yield* program.json("InteractionRequest")
      for (const word of words) yield* program.tell({ _tag: "Send", ...word })
      for (const { id } of words) assert.deepInclude(yield* program.json("SendTaken"), { id, again: true })
      yield* program.tell({ _tag: "Answer", requestId: request.requestId, answer: "this" })
      yield* program.endInput
      const { code, stdout } = yield* program.exit
      assert.strictEqual(code, 0)
      assert.include(stdout, "Rested.")
      assert.deepStrictEqual(
        yield* kept(at, sessionId ?? ""),
        words.map(({ id, text }) => [id, text])
      )
    })
  )

  it.scopedLive("need not be waited for: what is sent until there is one, over any deaths, is heard once", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(ask, { text: "Done." })
      const first = yield* at.start(["run", "--jsonl", "--model", model, "begin"])
      const { request } = yield* first.json("InteractionRequest")
      yield* kill(first)
      const resume = ["run", "--jsonl", "--model", model, "--resume", request.sessionId]
      // It dies before the line, with it, or after it, and the driver takes note of none of that.
      for (const output of ["AgentCreated", "UserInterjected", "SendTaken", "SessionRestored", "SendTaken"]) {
        const program = yield* at.start(resume)
        yield* program.tell({ _tag: "Send", text: "once", id: "once" })
        yield* program.json(output)
        yield* kill(program)
      }
      assert.deepStrictEqual(
        (yield* kept(at, request.sessionId)).map(([, text]) => text),
        ["begin", "once"]
      )
    })
  )
})

describe.concurrent("a permissions command on a line", () => {
  it.scopedLive("is kept once its reply is there", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(ask, { text: "Done." })
      const first = yield* at.start(["run", "--jsonl", "--model", model, "begin"])
      const { request } = yield* first.json("InteractionRequest")
      yield* first.tell({ _tag: "Permissions", command: "deny touch *" })
      yield* first.json("Permissions")
      yield* kill(first)
      const second = yield* at.start(["run", "--jsonl", "--model", model, "--resume", request.sessionId])
      yield* second.tell({ _tag: "Permissions", command: "check run_command touch one" })
      assert.match((yield* second.json("Permissions")).lines.join(), /^deny \(session_blacklist\)/)
    })
  )
})

describe("a line that does not end", () => {
  it.scopedLive("is told of while it still comes, and takes no memory", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const program = yield* at.start(["run", "--jsonl", "--model", yield* at.script({ text: "still here" })])
      yield* program.json("AgentCreated")
      const megabyte = "x".repeat(1_000_000)
      yield* program.write(`\n{"_tag":"Send","text":"${megabyte}`)
      for (let written = 0; written < 150; written++) yield* program.write(megabyte)
      const { message } = yield* program.json("AgentError")
      assert.strictEqual(message, "Line 2 of the input was skipped: it is larger than 1048576 characters.")
      assert.isBelow(Program.peakMegabytes(program.pid) ?? 0, 250)
      // Not even its end is a command.
      yield* program.write('"}{"_tag":"Shutdown"}\n')
      yield* program.tell({ _tag: "Send", text: "are you there?" })
      yield* program.endInput
      const { code, stdout } = yield* program.exit
      assert.strictEqual(code, 0)
      // In whatever order: the receipt waits for the disk, the model does not.
      assert.match(stdout, /"_tag":"SendTaken","line":3,/)
      assert.match(stdout, /"_tag":"TextDelta","text":"still here"/)
    })
  )
})
