/** An agent of others, written by hand: asks leave for a command, or asks by a form, and writes to a file what came of it. */
import { appendFileSync } from "node:fs"
import { createInterface } from "node:readline"

const [, , log] = process.argv
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const update = (update) => send({ method: "session/update", params: { sessionId: "s", update } })
const options = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" }
]
const form = { type: "object", properties: { region: { type: "string" } }, required: ["region"] }
let prompt

const ended = (words) => {
  appendFileSync(log, `${words}\n`)
  update({
    sessionUpdate: "tool_call_update",
    toolCallId: "c",
    status: "completed",
    content: [{ type: "content", content: { type: "text", text: words } }]
  })
  update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: words } })
  send({ id: prompt.id, result: { stopReason: "end_turn" } })
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line)
  const { id, method, params } = message
  if (method === "initialize") return send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  if (method === "session/new") return send({ id, result: { sessionId: "s" } })
  if (method === "session/prompt") {
    prompt = { id, words: params.prompt[0].text }
    appendFileSync(log, `heard ${JSON.stringify(prompt.words)}\n`)
    const toolCall = { toolCallId: "c", title: "list", kind: "execute", rawInput: { command: "ls" } }
    return prompt.words.includes("form")
      ? send({
          id: "f",
          method: "elicitation/create",
          params: { sessionId: "s", mode: "form", message: "Which region?", requestedSchema: form }
        })
      : send({ id: "p", method: "session/request_permission", params: { sessionId: "s", toolCall, options } })
  }
  if (id === "p") return ended(`${message.result.outcome.optionId ?? "cancelled"} to ${JSON.stringify(prompt.words)}`)
  if (id === "f") return ended(`${JSON.stringify(message.result)} to ${JSON.stringify(prompt.words)}`)
})
