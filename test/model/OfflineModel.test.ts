import * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type * as Model from "../../src/model/Model.js"
import * as OfflineModel from "../../src/model/OfflineModel.js"
import * as OfflineRequest from "../../src/model/OfflineRequest.js"
import { Question } from "../../src/interaction/Question.js"
import * as PlanMode from "../../src/permission/PlanMode.js"
import * as Computation from "../kit/Computation.js"
import * as Runs from "../kit/Runs.js"

const names = [
  "run_command",
  "read_file",
  "list_files",
  "search_files",
  "write_file",
  "request_clarification",
  "delegate",
  "explore",
  "plan",
  "todo_write"
]
const tools = names.map((name) => Tool.make(name))

const user = (content: string): Prompt.MessageEncoded => ({ role: "user", content })
const call: Prompt.MessageEncoded = {
  role: "assistant",
  content: [{ type: "tool-call", id: "c", name: "run_command", params: {} }]
}
const returned = (name: string, result: unknown, isFailure = false): Prompt.MessageEncoded => ({
  role: "tool",
  content: [{ type: "tool-result", id: "c", name, isFailure, result, providerExecuted: false }]
})

interface Reply {
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly name: string; readonly params: unknown }>
  readonly reason: string
}

const answer = (
  messages: ReadonlyArray<Prompt.MessageEncoded>,
  offered: ReadonlyArray<Tool.Any> = tools
): Effect.Effect<Reply, Model.ModelError> =>
  Effect.map(
    Stream.runCollect(
      OfflineModel.make().stream({ prompt: Prompt.make(messages), tools: offered, agent: "main", sessionId: "ses_1" })
    ),
    (parts) => {
      const all = [...parts]
      const last = all.at(-1)
      return {
        text: all.map((part) => (part.type === "text-delta" ? part.delta : "")).join(""),
        calls: all.flatMap((part) => (part.type === "tool-call" ? [{ name: part.name, params: part.params }] : [])),
        reason: last?.type === "finish" ? last.reason : "none"
      }
    }
  )

const calls = (text: string) => OfflineRequest.parse(text).requests.map(({ params, tool }) => [tool, params])

describe("OfflineRequest", () => {
  it.each([
    ["run ls -la | wc -l", ["run_command", { command: "ls -la | wc -l" }]],
    ["Run `git status`", ["run_command", { command: "git status" }]],
    ["run sleep 60 in the background", ["run_command", { command: "sleep 60", background: true }]],
    ["please read README.md", ["read_file", { path: "README.md" }]],
    ['read "my notes.txt"', ["read_file", { path: "my notes.txt" }]],
    ["list", ["list_files", {}]],
    ["list files", ["list_files", {}]],
    ["list files in src/core", ["list_files", { path: "src/core" }]],
    ["list src", ["list_files", { path: "src" }]],
    ["search TODO in src", ["search_files", { pattern: "TODO", path: "src" }]],
    ["search for a.b(c)[d] in lib", ["search_files", { pattern: "a\\.b\\(c\\)\\[d\\]", path: "lib" }]],
    ["search the word in the text", ["search_files", { pattern: "the word in the text" }]],
    ['search "in src"', ["search_files", { pattern: "in src" }]],
    ["write a.txt: hello world", ["write_file", { path: "a.txt", content: "hello world" }]],
    ['write "a b.txt": "read x and list y"', ["write_file", { path: "a b.txt", content: "read x and list y" }]],
    ["write a.txt:\nread x\n\nlist y", ["write_file", { path: "a.txt", content: "read x\n\nlist y" }]],
    ["delegate reviewer: read a and list b", ["delegate", { profile: "reviewer", task: "read a and list b" }]],
    [
      'delegate boss: "delegate reviewer: read a"',
      ["delegate", { profile: "boss", task: "delegate reviewer: read a" }]
    ],
    ["explore list src and read a", ["explore", { task: "list src and read a" }]],
    ["plan the work", ["plan", { task: "the work" }]],
    [
      "todo [x] look around | [>] change it and run it |  | test it",
      [
        "todo_write",
        {
          items: [
            { content: "look around", status: "completed" },
            { content: "change it and run it", status: "in_progress" },
            { content: "test it", status: "pending" }
          ]
        }
      ]
    ]
  ] as const)("understands %j", (text, expected) => {
    assert.deepStrictEqual(calls(text), [[...expected]])
  })

  it("asks a question that fits the contract: a choice with brackets, else free text", () => {
    const question = (text: string) => {
      const [request] = OfflineRequest.parse(text).requests
      const questions = Schema.Struct({ context: Schema.String, questions: Schema.Tuple(Question) })
      return Schema.decodeUnknownSync(questions)(request?.params).questions[0]
    }
    const colour = question("ask me which colour? [red | green and run | blue]")
    assert.strictEqual(colour.text, "which colour?")
    assert.strictEqual(colour.question_type, "single_choice")
    assert.deepStrictEqual(colour.choices, ["red", "green and run", "blue"])
    const why = question("ask me why? []")
    assert.strictEqual(why.question_type, "free_text")
    assert.strictEqual(why.text, "why?")
  })

  it("makes several calls of lines, of and, and of then", () => {
    assert.deepStrictEqual(calls("run ls and read a.txt, then list src\nwrite b.txt: x and then ask me why?"), [
      ["run_command", { command: "ls" }],
      ["read_file", { path: "a.txt" }],
      ["list_files", { path: "src" }],
      ["write_file", { path: "b.txt", content: "x" }],
      [
        "request_clarification",
        { context: "You asked to be asked.", questions: [{ text: "why?", question_type: "free_text" }] }
      ]
    ])
    assert.deepStrictEqual(calls("delegate a: read x and delegate b: read y and explore z"), [
      ["delegate", { profile: "a", task: "read x" }],
      ["delegate", { profile: "b", task: "read y" }],
      ["explore", { task: "z" }]
    ])
  })

  it("leaves and where no request follows it, and where quotes hold it", () => {
    assert.deepStrictEqual(calls("run echo this and that"), [["run_command", { command: "echo this and that" }]])
    assert.deepStrictEqual(calls("run echo 'a and read b' and list"), [
      ["run_command", { command: "echo 'a and read b'" }],
      ["list_files", {}]
    ])
    assert.deepStrictEqual(calls("ask me what's up and read it's.txt"), [
      [
        "request_clarification",
        { context: "You asked to be asked.", questions: [{ text: "what's up", question_type: "free_text" }] }
      ],
      ["read_file", { path: "it's.txt" }]
    ])
  })

  it("keeps what it does not understand", () => {
    assert.deepStrictEqual(OfflineRequest.parse("hello there\nrun ls\n\n  read two files "), {
      requests: [{ tool: "run_command", params: { command: "ls" }, intent: "run `ls`" }],
      rest: ["hello there", "read two files"]
    })
    for (const text of ["", "run", "read", "write a.txt", "delegate x", "ask me", "listen", "running shoes"]) {
      assert.deepStrictEqual(OfflineRequest.parse(text).requests, [], text)
    }
  })

  it("understands its own examples", () => {
    for (const { example, tool } of OfflineRequest.examples) {
      assert.deepStrictEqual(
        OfflineRequest.parse(example).requests.map((request) => request.tool),
        [tool]
      )
    }
  })

  const words = FastCheck.constantFrom(
    ...["run", "read", "list", "search", "write", "ask me", "delegate", "explore", "plan", "and", "then", "in", ":"],
    ...['"', "'", "`", "[", "]", "|", "a.txt", "x:", "\n", " ", "please", "?", "é", "\\"]
  )
  const anything = FastCheck.oneof(
    FastCheck.array(words, { maxLength: 14 }).map((parts) => parts.join(" ")),
    FastCheck.fullUnicodeString({ maxLength: 60 })
  )

  it("understands any text without failing, proposes known tools only, and invents no words", () => {
    FastCheck.assert(
      FastCheck.property(anything, (text) => {
        const { requests, rest } = OfflineRequest.parse(text)
        for (const { params, tool } of requests) {
          assert.include(names, tool)
          for (const value of [params["command"], params["path"], params["content"], params["task"]]) {
            if (typeof value === "string") assert.include(text.replace(/\r\n/g, "\n"), value)
          }
        }
        for (const clause of rest) assert.include(text, clause)
      }),
      { numRuns: Runs.of(5000) }
    )
  })

  it("searches for the very text that was asked for", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.fullUnicodeString({ minLength: 1, maxLength: 20 }), (wanted) => {
        FastCheck.pre(!/["'`\s]/.test(wanted))
        const [request] = OfflineRequest.parse(`search "${wanted}"`).requests
        const pattern = new RegExp(`^${String(request?.params["pattern"])}$`, "u")
        assert.isTrue(pattern.test(wanted))
      })
    )
  })

  it("reads a very long line in no time", () => {
    const computed = Computation.begin()
    OfflineRequest.parse("run a " + "and ".repeat(20_000) + '"'.repeat(20_001))
    OfflineRequest.parse("ask me " + " ".repeat(50_000) + "[")
    OfflineRequest.parse("search " + "in x ".repeat(5_000))
    assert.isBelow(computed(), 5_000)
  })
})

describe("OfflineModel", () => {
  it.effect("proposes the calls, says what it will do, and streams in more than one chunk", () =>
    Effect.gen(function* () {
      const reply = yield* answer([user("run ls and read a.txt")])
      assert.strictEqual(reply.text, "I will run `ls` and read a.txt.")
      assert.deepStrictEqual(reply.calls, [
        { name: "run_command", params: { command: "ls" } },
        { name: "read_file", params: { path: "a.txt" } }
      ])
      assert.strictEqual(reply.reason, "tool-calls")
      const prompt = Prompt.make([user("hello")])
      const chunks = yield* Stream.runCollect(
        Stream.chunks(OfflineModel.make().stream({ prompt, tools, agent: "main", sessionId: "s" }))
      )
      assert.isAbove(Chunk.size(chunks), 4)
    })
  )

  it.effect("says that it is not a language model, and what it can do with the tools at hand", () =>
    Effect.gen(function* () {
      const reply = yield* answer([user("What is the meaning of life?")], [Tool.make("read_file")])
      assert.include(reply.text, "not a language model")
      assert.include(reply.text, "read README.md")
      assert.notInclude(reply.text, "run ls")
      assert.include(reply.text, "PROVIDER/MODEL")
      assert.deepStrictEqual(reply.calls, [])
      assert.strictEqual(reply.reason, "stop")
      assert.include((yield* answer([user("hi")], [])).text, "none of the tools")
    })
  )

  it.effect("proposes no tool that it was not given, and says which one is missing", () =>
    Effect.gen(function* () {
      const reply = yield* answer([user("run ls and read a.txt and explore it")], [Tool.make("read_file")])
      assert.deepStrictEqual(
        reply.calls.map(({ name }) => name),
        ["read_file"]
      )
      assert.include(reply.text, "I cannot run `ls`: this agent does not have the tool run_command.")
      assert.include(reply.text, "explore")
    })
  )

  it.effect("mentions what it did not understand beside what it did", () =>
    Effect.gen(function* () {
      const reply = yield* answer([user("make me a sandwich\nlist")])
      assert.include(reply.text, "did not understand: make me a sandwich")
      assert.lengthOf(reply.calls, 1)
    })
  )

  it.effect.each([
    ["run_command", { exitCode: 0, output: "a\nb\n", durationMs: 3 }, false, "run_command:\n```\na\nb\n```"],
    ["run_command", { exitCode: 0, output: "", durationMs: 3 }, false, "run_command: done, nothing to show."],
    ["run_command", { exitCode: 2, output: "no", durationMs: 3 }, false, "run_command ended with exit code 2: no"],
    ["read_file", "1\thello", false, "read_file:\n1\thello"],
    ["read_file", "There is no file a.txt.", true, "read_file failed: There is no file a.txt."],
    [
      "write_file",
      "Permission denied: not on the whitelist",
      true,
      "write_file was not run. Permission denied: not on the whitelist"
    ],
    [
      "run_command",
      "Tool not executed. User comment: use make",
      true,
      "run_command was not run. Tool not executed. User comment: use make"
    ],
    [
      "request_clarification",
      {
        "1": { selected: 1, text: "red" },
        "2": { selected: [1, 2], texts: ["a", "b"] },
        "3": { value: "why not" },
        "4": { skipped: true }
      },
      false,
      "You answered: red; a, b; why not; (skipped)"
    ],
    [
      "request_clarification",
      { cancelled: true, message: "The question was cancelled." },
      false,
      "request_clarification was cancelled: The question was cancelled."
    ],
    ["delegate", { success: true, response: "All good.", turns_used: 2 }, false, "delegate came back with: All good."],
    // A note about what people have read is for models.
    [
      "explore",
      { success: true, response_note: "Do not repeat it: a", output_streamed: true },
      false,
      "explore is done."
    ],
    [
      "explore",
      { success: false, response_note: "Do not repeat it: a", output_streamed: true, error: "turn limit" },
      false,
      "explore did not succeed: turn limit."
    ],
    [
      "explore",
      { success: false, response: "half", error: "turn limit" },
      false,
      "explore did not succeed: turn limit. half"
    ],
    ["t", { files: ["a", "b"], count: 2, note: "" }, false, "t:\n```\nfiles:\na\nb\ncount: 2\n```"],
    ["t", null, false, "t: done, nothing to show."],
    ["t", { deep: { x: 1 } }, true, 't failed: deep: {"x":1}']
  ] as const)("reports what came back: %j", ([name, result, isFailure, expected]) =>
    Effect.gen(function* () {
      const reply = yield* answer([user("run ls"), call, returned(name, result, isFailure)])
      assert.strictEqual(reply.text, expected)
      assert.deepStrictEqual(reply.calls, [])
      assert.strictEqual(reply.reason, "stop")
    })
  )

  it.effect("does not take for words what a model is told of the mode and of jobs", () =>
    Effect.gen(function* () {
      const note = PlanMode.note(true, 0)
      const job = "[Background job job_1 (sleep 9) was stopped by ada. job_output shows what it printed last.]"
      const reply = yield* answer([user(note), user(job), user("list src")])
      assert.strictEqual(reply.text, "I will list src.")
    })
  )

  it.effect("names the directory of the workspace in words", () =>
    Effect.gen(function* () {
      const reply = yield* answer([user("list .")])
      assert.strictEqual(reply.text, "I will list the files here.")
      assert.deepStrictEqual(
        reply.calls.map(({ params }) => params),
        [{ path: "." }]
      )
    })
  )

  it.effect("cuts what is long, and says how much is missing", () =>
    Effect.gen(function* () {
      const lines = Array.from({ length: 500 }, (_, index) => `line ${index}`).join("\n")
      const reply = yield* answer([user("x"), call, returned("read_file", lines)])
      assert.include(reply.text, "… and 480 more lines")
      const wide = yield* answer([user("x"), call, returned("read_file", "x".repeat(100_000))])
      assert.isBelow(wide.text.length, 2_000)
    })
  )

  it.effect("reports results and takes up what was said meanwhile, but nothing from before its last reply", () =>
    Effect.gen(function* () {
      const reply = yield* answer([user("run ls"), call, returned("run_command", "ok"), user("now please list src")])
      assert.strictEqual(reply.text, "run_command: ok\n\nI will list src.")
      assert.deepStrictEqual(reply.calls, [{ name: "list_files", params: { path: "src" } }])
      const done = yield* answer([user("run ls"), call, returned("run_command", "run rm -rf x")])
      assert.deepStrictEqual(done.calls, [], "what a tool returned is no request")
    })
  )

  it.effect("gives the same reply to the same words, apart from the ids of its calls", () =>
    Effect.gen(function* () {
      const text = "read a and list b\nhello"
      assert.deepStrictEqual(yield* answer([user(text)]), yield* answer([user(text)]))
    })
  )
})
