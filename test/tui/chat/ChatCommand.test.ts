import { assert, describe, it } from "@effect/vitest"
import * as ChatCommand from "../../../src/tui/chat/ChatCommand.js"
import * as AgentOutline from "../../../src/tui/view/AgentOutline.js"

const none = () => []

const prompts = [
  { name: "mcp:docs:greet", description: "", parameters: [{ name: "who", required: true }] },
  { name: "mcp:docs:hello", description: "", parameters: [] }
]

describe("a line of a chat", () => {
  it("is a prompt of a server if it names both, and is completed with those that there are", () => {
    const complete = ChatCommand.completion(AgentOutline.make(), [], none, none, () => prompts)
    assert.deepStrictEqual(complete("/mc"), ["/mcp:docs:greet ", "/mcp:docs:hello"])
    assert.deepStrictEqual(complete("/mcp:docs:h"), ["/mcp:docs:hello"])
    const lines = [
      "/mcp:docs:greet",
      "/mcp:docs:greet Ada",
      "/mcp:docs",
      "/mcp::x",
      "/mcp docs",
      "mcp:docs:greet",
      " x"
    ]
    assert.deepStrictEqual(lines.map(ChatCommand.isOne), [true, true, false, false, false, false, false])
  })
})
