/** Whole turns against a mock of the vendors' APIs that nobody here wrote: five formats, tools, streaming and faults. */
import type { Fixture } from "@copilotkit/aimock"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Input from "../../src/inbox/Input.js"
import * as FileSample from "../kit/FileSample.js"
import * as Kit from "../kit/session.js"
import * as VendorMock from "../kit/VendorMock.js"

const fast = { limits: { retryDelay: "1 milli", maxRetryDelay: "5 millis", modelAttempts: 3 } } as const

const usage = {
  ...{ prompt_tokens: 120, completion_tokens: 7, total_tokens: 127 },
  ...{ input_tokens: 120, output_tokens: 7 },
  ...{ promptTokenCount: 120, candidatesTokenCount: 7, totalTokenCount: 127 }
}

const work = (name: string) => ({ name: "work", arguments: JSON.stringify({ name }) })

for (const vendor of VendorMock.vendors) {
  const setup = (...fixtures: ReadonlyArray<Fixture>) =>
    Effect.gen(function* () {
      const mock = yield* VendorMock.start(...fixtures)
      const model = yield* VendorMock.modelAt(mock, vendor)
      const kit = yield* Kit.start({ model, agent: fast })
      return { kit, mock }
    })

  describe.concurrent(vendor[0], () => {
    it.scopedLive("streams words, thoughts and usage, turn after turn", () =>
      Effect.gen(function* () {
        const { kit, mock } = yield* setup(
          {
            match: { userMessage: "one" },
            response: { content: "The first answer, in pieces.", reasoning: "Hm, the first.", usage },
            chunkSize: 3
          },
          { match: { userMessage: "two" }, response: { content: "The second.", usage } }
        )
        assert.deepInclude(yield* kit.agent.run("one"), { _tag: "Completed", text: "The first answer, in pieces." })
        assert.deepInclude(yield* kit.agent.run("two"), { _tag: "Completed", text: "The second." })
        assert.isAbove((yield* kit.of("TextDelta")).length, 3)
        const called = yield* kit.of("ModelCallEnded")
        for (const call of called) assert.deepInclude(call.usage, { inputTokens: 120, outputTokens: 7 })
        assert.deepStrictEqual(
          called.map(({ finishReason, remark }) => [finishReason, remark]),
          [
            ["stop", undefined],
            ["stop", undefined]
          ]
        )
        if (vendor[0] !== "ollama") {
          assert.strictEqual((yield* kit.of("ThinkingDelta")).map(({ text }) => text).join(""), "Hm, the first.")
        }
        assert.include(JSON.stringify(mock.getLastRequest()?.body), "The first answer, in pieces.")
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )

    it.scopedLive("carries images, documents and texts to the server, in their order", () =>
      Effect.gen(function* () {
        // As it left this process: the mock keeps another form of it.
        const bodies: Array<string> = []
        const recording: typeof fetch = (url, options) => {
          const { body } = options ?? {}
          bodies.push(body instanceof Uint8Array ? new TextDecoder().decode(body) : String(body))
          return fetch(url, options)
        }
        const { kit } = yield* Effect.provideService(
          setup({ match: { userMessage: /./ }, response: { content: "I see.", usage } }),
          FetchHttpClient.Fetch,
          recording
        )
        const files = FileSample.all.map(([, name, bytes]) => Input.fromBytes(bytes, { name }))
        const notes = Input.fromBytes(FileSample.text("buy milk"), { name: "notes.txt" })
        assert.deepInclude(yield* kit.agent.run(["first words", ...files, notes, "last words"]), { _tag: "Completed" })
        const body = bodies.join("")
        const sent = [
          "first words",
          ...files.map(({ bytes }) => Encoding.encodeBase64(bytes)),
          "buy milk",
          "last words"
        ]
        const places = sent.map((text) => body.indexOf(text))
        assert.deepStrictEqual(
          places,
          [...places].sort((a, b) => a - b),
          body.slice(0, 2_000)
        )
        assert.isAtLeast(places[0] ?? -1, 0, body.slice(0, 2_000))
        for (const [mediaType] of FileSample.all) assert.include(body, mediaType)
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )

    it.scopedLive("runs several calls at once, and gives their results back", () =>
      Effect.gen(function* () {
        const { kit, mock } = yield* setup(
          {
            match: { userMessage: "go", hasToolResult: false },
            response: { content: "Working.", toolCalls: [work("a"), work("b"), work("c")] }
          },
          { match: { hasToolResult: true, toolResultContains: "c" }, response: { content: "Done." } }
        )
        assert.deepInclude(yield* kit.agent.run("go"), { _tag: "Completed", text: "Done.", steps: 2 })
        assert.deepStrictEqual(kit.results(), ["a", "b", "c"])
        assert.deepStrictEqual(
          (yield* kit.of("ToolCallEnded")).map(({ outcome }) => outcome),
          ["succeeded", "succeeded", "succeeded"]
        )
        assert.strictEqual((yield* kit.of("ModelCallEnded"))[0]?.finishReason, "tool-calls")
        assert.strictEqual(mock.getRequests().length, 2)
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )

    it.scopedLive("takes calls before and between words, and calls step after step", () =>
      Effect.gen(function* () {
        const { kit } = yield* setup(
          {
            match: { userMessage: "go", hasToolResult: false },
            response: {
              blocks: [
                { type: "toolCall", ...work("first") },
                { type: "text", text: "Between." },
                { type: "toolCall", ...work("second") }
              ]
            }
          },
          { match: { toolResultContains: "second" }, response: { toolCalls: [work("third")] } },
          { match: { toolResultContains: "third" }, response: { content: "Done." } }
        )
        assert.deepInclude(yield* kit.agent.run("go"), { _tag: "Completed", text: "Done.", steps: 3 })
        assert.deepStrictEqual(kit.results(), ["third"])
        assert.strictEqual((yield* kit.of("ToolCallEnded")).length, 3)
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )

    it.scopedLive("answers a call with arguments that are wrong, for the model to correct", () =>
      Effect.gen(function* () {
        const { kit } = yield* setup(
          {
            match: { userMessage: "go", hasToolResult: false },
            response: {
              toolCalls: [
                { name: "work", arguments: '{"nome": 3}' },
                { name: "invented", arguments: "{}" }
              ]
            }
          },
          { match: { toolResultContains: "no tool" }, response: { toolCalls: [work("right")] } },
          { match: { toolResultContains: "right" }, response: { content: "Done." } }
        )
        assert.deepInclude(yield* kit.agent.run("go"), { _tag: "Completed", text: "Done." })
        assert.deepStrictEqual(kit.results(), ["right"])
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )

    it.scopedLive("says that an answer was cut off at the limit of its length", () =>
      Effect.gen(function* () {
        const { kit } = yield* setup({
          match: { userMessage: "go" },
          response: { content: "And then", finishReason: "length" }
        })
        assert.deepInclude(yield* kit.agent.run("go"), { _tag: "Completed", text: "And then" })
        const [call] = yield* kit.of("ModelCallEnded")
        assert.strictEqual(call?.finishReason, "length")
        assert.include(call?.remark, "cut off at the limit")
      })
    )

    it.scopedLive("fails in words with every status, tries again what may pass, and works afterwards", () =>
      Effect.gen(function* () {
        const { kit, mock } = yield* setup({ match: { userMessage: "go" }, response: { content: "Fine." } })
        for (const [status, attempts] of [
          [401, 1],
          [403, 1],
          [404, 1],
          [400, 1],
          [429, 3],
          [500, 3],
          [503, 3],
          [529, 3]
        ] as const) {
          mock.clearRequests()
          for (let attempt = 0; attempt < attempts; attempt++) {
            mock.nextRequestError(status, { message: `no ${status}`, type: "some_error" })
          }
          const end = yield* kit.agent.run("go")
          assert(end._tag === "Failed", `${status}: ${end._tag}`)
          assert.include(end.error, `(${status}: no ${status})`)
          assert.strictEqual(mock.getRequests().length, attempts, `attempts at ${status}`)
        }
        // One that passes is not even told as a failure.
        mock.nextRequestError(500, { message: "busy" })
        assert.deepInclude(yield* kit.agent.run("go"), { _tag: "Completed", text: "Fine." })
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )

    it.scopedLive("survives connections that drop and bodies that are malformed", () =>
      Effect.gen(function* () {
        const { kit, mock } = yield* setup(
          { match: { userMessage: "fine" }, response: { content: "Fine." } },
          {
            match: { userMessage: "cut" },
            response: { content: "A long answer that is cut off in the middle." },
            chunkSize: 4,
            truncateAfterChunks: 3
          }
        )
        const ends: Array<string> = []
        const runs = (words: string) =>
          Effect.gen(function* () {
            const end = yield* kit.agent.run(words)
            ends.push(end._tag)
            if (end._tag !== "Failed") return assert.fail(`${words}: ${end._tag}`)
            assert.notInclude(end.error, "empty")
            assert.match(end.error, /connection failed|cannot be used|cannot serve|refused/)
          })
        yield* runs("cut")
        for (const chaos of [{ disconnectRate: 1 }, { malformedRate: 1 }, { dropRate: 1 }]) {
          mock.setChaos(chaos)
          yield* runs("fine")
          mock.clearChaos()
          assert.deepInclude(yield* kit.agent.run("fine"), { _tag: "Completed", text: "Fine." })
        }
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )
  })
}
