import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as PromptMessage from "../../src/conversation/PromptMessage.js"

const options = { vendor: { signature: "x" } }
const call = { id: "call_1", name: "work", params: { path: "a", deep: [1] }, providerExecuted: false }
const result = { id: "call_1", name: "work", isFailure: true, result: { lines: ["a"] }, providerExecuted: true }

const parts: ReadonlyArray<readonly [string, Prompt.Part, Prompt.Part]> = [
  ["text", PromptMessage.text("a"), Prompt.textPart({ text: "a" })],
  ["text with options", PromptMessage.text("a", options), Prompt.textPart({ text: "a", options })],
  ["reasoning", PromptMessage.reasoning("a"), Prompt.reasoningPart({ text: "a" })],
  ["reasoning with options", PromptMessage.reasoning("a", options), Prompt.reasoningPart({ text: "a", options })],
  ["a call", PromptMessage.toolCall(call), Prompt.toolCallPart(call)],
  ["a call with options", PromptMessage.toolCall(call, options), Prompt.toolCallPart({ ...call, options })],
  ["a result", PromptMessage.toolResult(result), Prompt.toolResultPart(result)],
  ["a result with options", PromptMessage.toolResult(result, options), Prompt.toolResultPart({ ...result, options })]
]

const said = [PromptMessage.reasoning("hm"), PromptMessage.text("a"), PromptMessage.toolCall(call)]
const messages: ReadonlyArray<readonly [string, Prompt.Message, Prompt.Message]> = [
  ["system", PromptMessage.system("a"), Prompt.systemMessage({ content: "a" })],
  ["system with options", PromptMessage.system("a", options), Prompt.systemMessage({ content: "a", options })],
  [
    "user",
    PromptMessage.user([PromptMessage.text("a")]),
    Prompt.userMessage({ content: [Prompt.textPart({ text: "a" })] })
  ],
  ["user with options", PromptMessage.user([], options), Prompt.userMessage({ content: [], options })],
  ["assistant", PromptMessage.assistant(said), Prompt.assistantMessage({ content: said })],
  [
    "assistant with options",
    PromptMessage.assistant(said, options),
    Prompt.assistantMessage({ content: said, options })
  ],
  [
    "tool",
    PromptMessage.tool([PromptMessage.toolResult(result)]),
    Prompt.toolMessage({ content: [Prompt.toolResultPart(result)] })
  ],
  ["tool with options", PromptMessage.tool([], options), Prompt.toolMessage({ content: [], options })]
]

describe("a message made field by field", () => {
  for (const [name, ours, theirs] of parts) {
    it(`${name}: is the part that the package makes`, () => {
      assert.deepStrictEqual(ours, theirs)
      assert.strictEqual(Object.getPrototypeOf(ours), Object.getPrototypeOf(theirs))
      assert.isTrue(Prompt.isPart(ours))
    })
  }

  for (const [name, ours, theirs] of messages) {
    it(`${name}: is the message that the package makes, to its guards and its schema too`, () => {
      assert.deepStrictEqual(ours, theirs)
      assert.strictEqual(Object.getPrototypeOf(ours), Object.getPrototypeOf(theirs))
      assert.isTrue(Prompt.isMessage(ours))
      const encoded = Schema.encodeSync(Prompt.Message)(ours)
      assert.deepStrictEqual(encoded, Schema.encodeSync(Prompt.Message)(theirs))
      assert.deepStrictEqual(Schema.decodeSync(Prompt.Message)(encoded), ours)
    })
  }

  it("makes a prompt that is written down and read again", () => {
    const prompt = Prompt.fromMessages(messages.map(([, ours]) => ours))
    const encoded = Schema.encodeSync(Prompt.Prompt)(prompt)
    const json: typeof encoded = JSON.parse(JSON.stringify(encoded))
    assert.deepStrictEqual(Schema.decodeSync(Prompt.Prompt)(json).content, prompt.content)
  })
})
