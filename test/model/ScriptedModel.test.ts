import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Model from "../../src/model/Model.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as ScriptFile from "../../src/model/ScriptFile.js"
import * as WholeAnswer from "../../src/model/WholeAnswer.js"
import * as Runs from "../kit/Runs.js"

const main = { agent: "main", sessionId: "ses_1" }

const after = (...replies: ReadonlyArray<Prompt.MessageEncoded>): Prompt.Prompt =>
  Prompt.make([{ role: "system", content: "You are helpful." }, { role: "user", content: "hello" }, ...replies])

const reply: Prompt.MessageEncoded = { role: "assistant", content: "ok" }

const toolResult = (result: unknown): Prompt.MessageEncoded => ({
  role: "tool",
  content: [{ type: "tool-result", id: "c1", name: "t", isFailure: false, result, providerExecuted: false }]
})

const play = (
  model: Model.Service,
  prompt: Prompt.Prompt,
  asker: Pick<Model.Request, "agent" | "sessionId"> = main
): Effect.Effect<ReadonlyArray<Model.Part>, Model.ModelError> =>
  Effect.map(Stream.runCollect(model.stream({ prompt, tools: [], ...asker })), (parts) => [...parts])

const textOf = (parts: ReadonlyArray<Model.Part>): string =>
  parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("")

const unknownUsage = { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }

describe("ScriptedModel", () => {
  it.effect("plays a step as thinking, text, calls and usage, in one chunk", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({
        agents: {
          main: [
            {
              thinking: "hm",
              text: "Let me look.",
              tools: [{ name: "list_files", params: { path: "src" }, id: "c1" }, { name: "now" }],
              usage: { input: 10, output: 5 }
            }
          ]
        }
      })
      const chunks = yield* Stream.runCollect(Stream.chunks(model.stream({ prompt: after(), tools: [], ...main })))
      assert.strictEqual(Chunk.size(chunks), 1)
      const parts = [...Chunk.flatten(chunks)]
      const fresh = parts.flatMap((part) => (part.type === "tool-call" && part.name === "now" ? [part.id] : []))
      assert.deepStrictEqual(parts, [
        { type: "reasoning-start", id: "0" },
        { type: "reasoning-delta", id: "0", delta: "hm" },
        { type: "reasoning-end", id: "0" },
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "Let me look." },
        { type: "text-end", id: "1" },
        { type: "tool-call", id: "c1", name: "list_files", params: { path: "src" } },
        { type: "tool-call", id: fresh[0] ?? "", name: "now", params: {} },
        { type: "finish", reason: "tool-calls", usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } }
      ])
    })
  )

  it.effect("gives calls without an id one of their own, in every reply", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({ agents: { main: [{ tools: [{ name: "a" }, { name: "a" }] }] } })
      const ids = [...(yield* play(model, after())), ...(yield* play(model, after()))].flatMap((part) =>
        part.type === "tool-call" ? [part.id] : []
      )
      assert.strictEqual(new Set(ids).size, 4)
    })
  )

  it.effect("counts steps by the replies in the history, whoever made them, so that a resumed session goes on", () =>
    Effect.gen(function* () {
      const script = { agents: { main: [{ text: "one" }, { text: "two" }, { text: "three" }] } }
      const model = ScriptedModel.make(script)
      assert.strictEqual(textOf(yield* play(model, after())), "one")
      assert.strictEqual(textOf(yield* play(model, after(reply, toolResult("x"), reply))), "three")
      assert.strictEqual(textOf(yield* play(ScriptedModel.make(script), after(reply))), "two")
      assert.strictEqual(textOf(yield* play(model, after())), "one")
    })
  )

  it.effect("ends without calls after the last step, and for agents it does not know", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({ agents: { main: [{ tools: [{ name: "a" }] }] } })
      for (const replies of [1, 2, 5]) {
        const parts = yield* play(model, after(...Array.from({ length: replies }, () => reply)))
        assert.include(textOf(parts), "no more steps")
        assert.deepStrictEqual(parts.at(-1), { type: "finish", reason: "stop", usage: unknownUsage })
      }
      const unknown = yield* play(model, after(), { agent: "main/stranger", sessionId: "s" })
      assert.include(textOf(unknown), "stranger")
      assert.isFalse(unknown.some((part) => part.type === "tool-call"))
    })
  )

  it.effect("plays the steps of the last name in the agent's path", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({ agents: { main: [{ text: "boss" }], reviewer: [{ text: "reviewer" }] } })
      assert.strictEqual(textOf(yield* play(model, after())), "boss")
      const options = { agent: "main/helper/reviewer", sessionId: "ses_9" }
      assert.strictEqual(textOf(yield* play(model, after(), options)), "reviewer")
    })
  )

  it.effect("fails once with each error of a step, per session, and then plays it", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({
        agents: { main: [{ error: "overloaded" }, { error: "rate_limit", text: "at last" }, { error: "bad_output" }] }
      })
      const attempt = (prompt: Prompt.Prompt, sessionId: string) =>
        Effect.either(play(model, prompt, { agent: "main", sessionId }))
      for (const session of ["ses_1", "ses_2"]) {
        const first = yield* attempt(after(), session)
        const second = yield* attempt(after(), session)
        const third = yield* attempt(after(), session)
        assert.isTrue(Either.isLeft(first) && first.left._tag === "Overloaded" && Model.isTransient(first.left))
        assert.isTrue(Either.isLeft(second) && second.left._tag === "RateLimited" && second.left.status === 429)
        assert.isTrue(Either.isRight(third) && textOf(third.right) === "at last")
        const fourth = yield* attempt(after(reply), session)
        const fifth = yield* attempt(after(reply), session)
        assert.isTrue(Either.isLeft(fourth) && fourth.left._tag === "BadOutput" && !Model.isTransient(fourth.left))
        assert.isTrue(Either.isRight(fifth) && textOf(fifth.right).includes("no more steps"))
      }
    })
  )

  it.effect("gives an answer that comes in one piece at once, as it would stream it", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Script = {
        agents: {
          main: [
            {
              thinking: "hm",
              text: "Let me look.",
              tools: [{ name: "now", id: "c1" }],
              usage: { input: 1, output: 2 }
            },
            { error: "overloaded", expect: { contains: "hello" }, text: "late" },
            { text: "in pieces", chunks: 2 },
            { text: "slowly", chunkDelay: "1 second" }
          ]
        }
      }
      const at = (replies: number) => after(...Array.from({ length: replies }, () => reply))
      const streaming = ScriptedModel.make(script)
      const model = ScriptedModel.make(script)
      const answer = (replies: number, prompt = at(replies)) =>
        WholeAnswer.of(model.stream)?.({ prompt, tools: [], ...main })
      for (const replies of [0, 4]) {
        assert.deepStrictEqual([...(yield* answer(replies) ?? Effect.succeed([]))], yield* play(streaming, at(replies)))
      }
      const hello = after(reply, { role: "user", content: "hello again" })
      const wrong = yield* Effect.flip(answer(1) ?? Effect.fail(undefined))
      assert.strictEqual(wrong?._tag, "BadOutput", "it was told something else")
      const failed = yield* Effect.flip(answer(1, hello) ?? Effect.fail(undefined))
      assert.strictEqual(failed?._tag, "Overloaded")
      assert.strictEqual(textOf([...(yield* answer(1, hello) ?? Effect.succeed([]))]), "late")
      assert.isUndefined(answer(2), "what comes in pieces is streamed")
      assert.isUndefined(answer(3))
    })
  )

  it.effect("gets on when the same stream is tried again, as a retry does", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({ agents: { main: [{ error: "network", text: "there" }] } })
      const stream = model.stream({ prompt: after(), tools: [], ...main })
      const parts = yield* Effect.retry(Stream.runCollect(stream), { times: 1, while: Model.isTransient })
      assert.strictEqual(textOf([...parts]), "there")
    })
  )

  it.effect("checks what the model was told last, and names agent and step when it was something else", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({
        agents: { main: [{ expect: { contains: "hello" } }, { expect: { contains: 'a "quoted" word' }, text: "yes" }] }
      })
      yield* play(model, after())
      assert.strictEqual(textOf(yield* play(model, after(reply, toolResult({ out: 'a "quoted" word' })))), "yes")
      const failed = yield* Effect.flip(play(model, after(reply, toolResult("something else"))))
      assert.strictEqual(failed._tag, "BadOutput")
      for (const word of ["Step 2", "main", "something else"]) assert.include(failed.message, word)
      // What was said before the last reply, or by the system, is not the last input.
      const hello = ScriptedModel.make({ agents: { main: [{}, { expect: { contains: "hello" } }] } })
      yield* Effect.flip(play(hello, after(reply, toolResult("x"))))
      const system = ScriptedModel.make({ agents: { main: [{ expect: { contains: "helpful" } }] } })
      yield* Effect.flip(play(system, after()))
    })
  )

  it.effect("waits, then streams in pieces with pauses, on the clock", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({
        agents: { main: [{ delay: "2 seconds", text: "äbcdef", chunks: 3, chunkDelay: "1 seconds" }] }
      })
      const seen: Array<string> = []
      const running = yield* Effect.fork(
        Stream.runForEachChunk(model.stream({ prompt: after(), tools: [], ...main }), (chunk) =>
          Effect.sync(() => seen.push(textOf([...chunk])))
        )
      )
      yield* TestClock.adjust("1999 millis")
      assert.deepStrictEqual(seen, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(seen, ["äb"])
      yield* TestClock.adjust("1 seconds")
      assert.deepStrictEqual(seen, ["äb", "cd"])
      yield* TestClock.adjust("1 seconds")
      yield* Fiber.join(running)
      assert.deepStrictEqual(seen, ["äb", "cd", "ef"])
    })
  )

  it.effect("stops when it is interrupted while it thinks", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make({ agents: { main: [{ delay: "1 hour", text: "never" }] } })
      const running = yield* Effect.fork(play(model, after()))
      yield* TestClock.adjust("1 minute")
      assert.isTrue(Option.isNone(yield* Fiber.poll(running)))
      yield* Fiber.interrupt(running)
    })
  )

  it.effect.prop(
    "streams the same text and arguments however many pieces they come in",
    { text: FastCheck.fullUnicodeString(), chunks: FastCheck.integer({ min: 1, max: 20 }), value: FastCheck.string() },
    ({ chunks, text, value }) =>
      Effect.gen(function* () {
        const tools = [{ name: "t", id: "c", params: { value } }]
        const model = ScriptedModel.make({ agents: { main: [{ text, chunks, tools }] } })
        const parts = yield* play(model, after())
        assert.strictEqual(textOf(parts), text)
        const params = parts.map((part) => (part.type === "tool-params-delta" ? part.delta : "")).join("")
        assert.deepStrictEqual(JSON.parse(params), { value })
        assert.deepStrictEqual(
          parts.map((part) => part.type).filter((type) => type.endsWith("-start") || type.endsWith("-end")),
          ["text-start", "text-end", "tool-params-start", "tool-params-end"]
        )
        assert.isAtMost(parts.filter((part) => part.type === "text-delta").length, chunks)
      })
  )

  it.effect("is a layer", () =>
    Effect.gen(function* () {
      const model = yield* Model.Model
      assert.strictEqual(model.id, "script/demo")
      assert.strictEqual(textOf(yield* play(model, after())), "hi")
    }).pipe(Effect.provide(ScriptedModel.layer({ agents: { main: [{ text: "hi" }] } }, { id: "script/demo" })))
  )
})

describe("ScriptFile", () => {
  const problems = (text: string): ReadonlyArray<string> =>
    Either.match(ScriptFile.parse(text, "demo.yaml"), {
      onLeft: (invalid) => {
        assert.include(invalid.message, "demo.yaml")
        return invalid.problems
      },
      onRight: () => assert.fail("it was taken for a script")
    })

  it.effect("reads YAML and JSON alike, durations included", () =>
    Effect.gen(function* () {
      const yaml = [
        "version: 1",
        "agents:",
        "  main:",
        "    - text: |",
        "        Two",
        "        lines",
        "      tools: [{ name: list_files, params: { path: src } }]",
        "      delay: 250ms",
        "      chunks: 2",
        "      chunkDelay: 1.5 s",
        "      usage: { input: 3, output: 4 }",
        "    - error: rate_limit",
        "    - expect: { contains: index.ts }",
        "      delay: 2 minutes",
        "      thinking: hm",
        "  reviewer: []"
      ].join("\n")
      const json = JSON.stringify({
        version: 1,
        agents: {
          main: [
            {
              text: "Two\nlines\n",
              tools: [{ name: "list_files", params: { path: "src" } }],
              delay: 250,
              chunks: 2,
              chunkDelay: 1500,
              usage: { input: 3, output: 4 }
            },
            { error: "rate_limit" },
            { expect: { contains: "index.ts" }, delay: "2m", thinking: "hm" }
          ],
          reviewer: []
        }
      })
      const [left, right] = [yield* ScriptFile.parse(yaml), yield* ScriptFile.parse(json)]
      assert.deepStrictEqual(JSON.stringify(left), JSON.stringify(right))
      const model = ScriptedModel.make(left)
      const running = yield* Effect.fork(play(model, after()))
      yield* TestClock.adjust("250 millis")
      for (let pause = 0; pause < 3; pause++) yield* TestClock.adjust("1500 millis")
      assert.strictEqual(textOf(yield* Fiber.join(running)), "Two\nlines\n")
    })
  )

  it("lists every problem at once, each with its path and line", () => {
    const found = problems(
      [
        "version: 2",
        "agents:",
        "  main:",
        "    - text: 5",
        "      tools: [{ params: {} }]",
        "      delay: soon",
        "    - chunks: 0",
        "      txt: oops",
        "    - error: meltdown",
        "      usage: { input: -1, output: 1 }"
      ].join("\n")
    )
    for (const [path, line] of [
      ["version", 1],
      ["agents.main[0].text", 4],
      ["agents.main[0].tools[0].name", 5],
      ["agents.main[0].delay", 6],
      ["agents.main[1].chunks", 7],
      ["agents.main[1].txt", 8],
      ["agents.main[2].error", 9],
      ["agents.main[2].usage.input", 10]
    ] as const) {
      assert.isTrue(
        found.some((problem) => problem.startsWith(`${path} (line ${line}): `)),
        `${path} in ${found.join(" | ")}`
      )
    }
    assert.lengthOf(found, 8, found.join(" | "))
  })

  it("refuses ids that are used twice by one agent, which would garble its history", () => {
    const call = { tools: [{ name: "t", id: "c1" }] }
    const found = problems(JSON.stringify({ version: 1, agents: { main: [call, call], other: [call] } }))
    assert.lengthOf(found, 1)
    assert.include(found[0] ?? "", "agents.main[1].tools[0].id")
  })

  it("refuses what is not a script, in a sentence", () => {
    for (const text of ["", "[]", "hello", "{", "a: b: c", "version: 1", "\u0000\u0001", "agents: [1]\n---\nx: 1"]) {
      assert.isAtLeast(problems(text).length, 1, JSON.stringify(text))
    }
    for (const delay of ["-5", ".inf", "'-1 seconds'", "Infinity", "[1]", "''"]) {
      assert.lengthOf(problems(`{version: 1, agents: {main: [{delay: ${delay}}]}}`), 1, delay)
    }
  })

  it("refuses a document that grows without bounds by its aliases", () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for (let level = 1; level < 12; level++) {
      lines.push(`a${level}: &a${level} [${Array.from({ length: 9 }, () => `*a${level - 1}`).join(", ")}]`)
    }
    assert.include(problems(lines.join("\n")).join(), "alias")
  })

  it("never throws, whatever the text", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.oneof(FastCheck.string(), FastCheck.json(), FastCheck.fullUnicodeString()), (text) =>
        Either.isEither(ScriptFile.parse(text))
      ),
      { numRuns: Runs.of(2000) }
    )
  })
})
