/** The same page over the AI SDK. */
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai"
import { draw, question } from "./dom.js"

class Chat extends AbstractChat {}

const messages = []
const show = () => {
  draw(
    messages.map(({ parts, role }) => [
      role,
      ...parts.map(({ state = "", text, toolName, type }) => text ?? `${toolName ?? type} ${state}`)
    ])
  )
  for (const { approval, state, toolName, type } of messages.at(-1)?.parts ?? [])
    if (type === "dynamic-tool" && state === "approval-requested") void asked(approval.id, toolName)
}

const known = new Set()
const asked = async (id, tool) => {
  if (known.has(id)) return
  known.add(id)
  const { approved } = (await question(tool, { properties: { approved: { type: "boolean" } } })) ?? { approved: false }
  await chat.addToolApprovalResponse({ id, approved })
}

const chat = new Chat({
  id: crypto.randomUUID(),
  sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  transport: new DefaultChatTransport({ api: location.hash.slice(1) }),
  onFinish: ({ finishReason }) => (document.body.dataset.state = finishReason === "stop" ? "done" : "waiting"),
  state: {
    status: "ready",
    error: undefined,
    messages,
    pushMessage: (message) => messages.push(message) && show(),
    popMessage: () => messages.pop() && show(),
    replaceMessage: (index, message) => {
      messages[index] = structuredClone(message)
      show()
    },
    snapshot: (thing) => structuredClone(thing)
  }
})

document.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault()
  void chat.sendMessage({ text: document.querySelector("input").value })
})
