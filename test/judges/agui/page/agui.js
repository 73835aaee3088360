/** The page of `chat.js` in a browser. */
import { HttpAgent } from "agui-1"
import { chat } from "./chat.js"
import { draw, question } from "./dom.js"

const agent = new HttpAgent({ url: location.hash.slice(1), threadId: crypto.randomUUID() })

const ask = async ({ message, responseSchema }) => {
  const payload = await question(message, responseSchema)
  return payload === undefined ? { status: "cancelled" } : { status: "resolved", payload }
}

const show = (messages) =>
  draw(
    messages.map(({ content = "", role, toolCalls = [] }) => [
      role,
      content,
      ...toolCalls.map((call) => call.function.name)
    ])
  )

const say = chat(agent, { ask, show })

document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault()
  await say(document.querySelector("input").value)
  document.body.dataset.state = "done"
})
