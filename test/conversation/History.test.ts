import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import type { MessageId, ToolCallId } from "../../src/core/Id.js"
import * as Redaction from "../../src/core/Redaction.js"
import type * as Message from "../../src/inbox/Message.js"
import * as History from "../../src/conversation/History.js"
import type { ToolResult } from "../../src/tool/ToolCall.js"
import * as Rules from "../kit/historyRules.js"
import { outline } from "../kit/session.js"

const message = (text: string, extra: Partial<Message.Message> = {}): Message.Message => ({
  id: "msg_1" as MessageId,
  source: "user",
  delivery: "steer",
  text,
  at: 0,
  ...extra
})
const call = (id: string, params: unknown = {}) =>
  Prompt.toolCallPart({ id, name: "work", params, providerExecuted: false })
const result = (id: string, outcome: ToolResult["outcome"] = "succeeded"): ToolResult => ({
  id: id as ToolCallId,
  name: "work",
  outcome,
  result: outcome
})

describe("History", () => {
  it("keeps what was said, with who said it and how", () => {
    const history = History.make()
    history.setSystem("Be kind.")
    history.appendInput([message("one"), message("two", { interjection: { parentId: "root" }, source: "parent" })])
    history.appendAssistant([Prompt.textPart({ text: "well" })], { partial: true })
    history.appendInput([message("three")])
    history.appendAssistant([Prompt.textPart({ text: "then" }), call("a"), call("b")])
    history.appendResults([result("a"), result("b", "denied")])
    assert.deepStrictEqual(outline(history.messages), [
      "system: Be kind.",
      "user: one",
      "user: two",
      "assistant: well …",
      "user: three",
      "assistant: then | work({}) | work({})",
      "tool: succeeded | ✗ denied"
    ])
    assert.deepStrictEqual(history.messages.slice(1, 4).map(History.metadata), [
      { messageId: "msg_1" as MessageId, source: "user" },
      { messageId: "msg_1" as MessageId, source: "parent", isInterjection: true, parentId: "root" },
      { partial: true }
    ])
    assert.deepStrictEqual(Rules.violations(history.messages), [])
    assert.strictEqual(history.prompt.content, history.messages, "the prompt is the same list")
  })

  it("joins the text parts of a person's message by line breaks, and those of an answer as they came", () => {
    const file: Message.Part = {
      type: "file",
      file: { name: "plan.txt", mediaType: "text/plain", size: 1, sha256: "0".repeat(64) }
    }
    const said = (parts: ReadonlyArray<Message.Part>): string => {
      const history = History.make()
      history.appendInput([message("", { parts })])
      return History.textOf(history.messages.at(-1))
    }
    const text = (text: string): Message.Part => ({ type: "text", text })
    assert.strictEqual(said([text("Look at"), file, text("and tell me")]), "Look at\nand tell me")
    assert.strictEqual(said([text("one"), text("two"), text("three")]), "one\ntwo\nthree")
    assert.strictEqual(said([file, text("alone")]), "alone")
    assert.strictEqual(said([file]), "")
    const history = History.make()
    history.appendAssistant(["I ", "see."].map((text) => Prompt.textPart({ text })))
    assert.strictEqual(History.textOf(history.messages.at(-1)), "I see.")
    assert.strictEqual(History.textOf(undefined), "")
  })

  it("has one system message, and none where nothing is said", () => {
    const history = History.make()
    history.setSystem("")
    assert.deepStrictEqual(history.messages, [])
    history.appendInput([message("one")])
    history.setSystem("first")
    history.setSystem("second")
    assert.deepStrictEqual(outline(history.messages), ["system: second", "user: one"])
    history.clear()
    assert.deepStrictEqual(outline(history.messages), ["system: second"])
  })

  it("does not keep messages that say nothing", () => {
    const history = History.make()
    history.appendAssistant([])
    history.appendResults([])
    history.appendInput([])
    assert.deepStrictEqual(history.messages, [])
  })

  it("knows the ids of its calls, of those it began with too, until it is cleared", () => {
    const before = History.make()
    before.appendAssistant([call("a")])
    const history = History.make(before.messages)
    history.appendAssistant([call("b")])
    assert.deepStrictEqual(
      ["a", "b", "c"].map((id) => history.hasCall(id)),
      [true, true, false]
    )
    assert.isFalse(before.hasCall("b"), "histories are separate")
    history.clear()
    assert.isFalse(history.hasCall("a"))
  })

  it("masks secrets on the way in; reasoning, which is signed, is left out instead", () => {
    const secret = "hunter2-hunter2"
    const history = History.make([], Redaction.make([secret]))
    history.setSystem(`s ${secret}`)
    history.appendInput([message(`i ${secret}`)])
    history.appendAssistant([
      Prompt.reasoningPart({ text: `r ${secret}`, options: { vendor: { signature: "x" } } }),
      Prompt.reasoningPart({ text: "clean", options: { vendor: { signature: "y" } } }),
      Prompt.textPart({ text: `t ${secret}`, options: { vendor: { cited: 1 } } }),
      call("a", { deep: [secret] })
    ])
    history.appendResults([{ ...result("a"), result: { [secret]: secret } }])
    assert.deepStrictEqual(outline(history.messages), [
      "system: s [REDACTED]",
      "user: i [REDACTED]",
      'assistant: <reasoning> | t [REDACTED] | work({"deep":["[REDACTED]"]})',
      'tool: {"[REDACTED]":"[REDACTED]"}'
    ])
    const reply = history.messages[2]
    assert(reply?.role === "assistant")
    assert.deepStrictEqual(
      reply.content.map((part) => part.options),
      [{ vendor: { signature: "y" } }, { vendor: { cited: 1 } }, {}]
    )
    assert.deepStrictEqual(Rules.violations(history.messages), [])
  })

  it("reads the text of a message", () => {
    const history = History.make()
    history.setSystem("system")
    history.appendAssistant([Prompt.textPart({ text: "a" }), call("x"), Prompt.textPart({ text: "b" })])
    assert.deepStrictEqual([...history.messages.map(History.textOf), History.textOf(undefined)], ["system", "ab", ""])
  })
})

describe("the rules of a conversation", () => {
  const user = Prompt.userMessage({ content: [Prompt.textPart({ text: "go" })] })
  const reply = (...calls: ReadonlyArray<Prompt.ToolCallPart>) => Prompt.assistantMessage({ content: [...calls] })
  const tool = (...ids: ReadonlyArray<string>) =>
    Prompt.toolMessage({
      content: ids.map((id) =>
        Prompt.toolResultPart({ id, name: "work", isFailure: false, providerExecuted: false, result: "" })
      )
    })
  const broken: ReadonlyArray<readonly [string, ReadonlyArray<Prompt.Message>]> = [
    ["a call without a result", [user, reply(call("a"))]],
    ["a result without a call", [user, reply(call("a")), tool("a", "b")]],
    ["results in another order", [user, reply(call("a"), call("b")), tool("b", "a")]],
    ["a result twice", [user, reply(call("a")), tool("a", "a")]],
    ["words between a call and its result", [user, reply(call("a")), user, tool("a")]],
    ["an id used twice", [user, reply(call("a")), tool("a"), reply(call("a")), tool("a")]],
    ["a beginning without a user", [reply(call("a")), tool("a")]],
    ["a system message in the middle", [user, Prompt.systemMessage({ content: "x" })]],
    ["an empty message", [user, Prompt.assistantMessage({ content: [] })]]
  ]
  for (const [name, messages] of broken) {
    it(`are broken by ${name}`, () => {
      assert.isNotEmpty(Rules.violations(messages))
    })
  }
})
