/** A page over AG-UI without a framework: what it shows, and what it asks its user. */

/**
 * A conversation. `show` draws all messages whenever one changes. `ask` shows an interrupt and resolves to
 * `{ status: "resolved", payload }`, or to `{ status: "cancelled" }`.
 */
export const chat = (agent, { ask, show }) => {
  agent.subscribe({ onMessagesChanged: ({ messages }) => show(messages) })

  const answered = async (interrupt) => ({ interruptId: interrupt.id, ...(await ask(interrupt)) })

  /** Sends words, and runs until nobody has to answer. */
  return async (content) => {
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content })
    await agent.runAgent()
    while (agent.pendingInterrupts.length > 0) {
      const resume = await Promise.all(agent.pendingInterrupts.map(answered))
      await agent.runAgent({ resume })
    }
  }
}
