/** What every run in AG-UI keeps, and the messages that a client makes of it: the rules of the protocol's own clients. */
import type { Event } from "../../src/http/AgUi.js"

type Fields = { readonly [field: string]: unknown }

/** What is wrong with the events of one run; empty when nothing is. */
export const problems = (events: ReadonlyArray<Event>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const open = new Map<string, unknown>()
  const owners = new Map<string, unknown>()
  const children = new Map<string, "open" | "ended">()
  let isOver = false
  const begin = (key: string, owner: unknown) => {
    if (open.has(key)) found.push(`${key} starts twice`)
    if (owners.has(key) && owner !== owners.get(key)) found.push(`${key} starts again for ${String(owner)}`)
    open.set(key, owner)
    if (!owners.has(key)) owners.set(key, owner)
  }
  const go = (key: string, owner: unknown, ends: boolean) => {
    if (!open.has(key)) found.push(`${key} goes on without a start`)
    if (owner !== undefined && owner !== owners.get(key)) found.push(`${key} goes on for ${String(owner)}`)
    if (ends) open.delete(key)
  }
  for (const [index, event] of events.entries()) {
    const { messageId, parentMessageId, parentSubagentRunId, stepName, subagentRunId, toolCallId, type } =
      event as Fields & Event
    if (isOver) found.push(`${type} behind the end`)
    if ((index === 0) !== (type === "RUN_STARTED")) found.push(`${type} at ${index}`)
    if (JSON.stringify(event).includes(":null")) found.push(`${type} has a null`)
    const of = String(messageId ?? toolCallId)
    switch (type) {
      case "TEXT_MESSAGE_START":
        begin(`message ${of}`, subagentRunId)
        break
      case "TEXT_MESSAGE_CONTENT":
      case "TEXT_MESSAGE_END":
        go(`message ${of}`, subagentRunId, type === "TEXT_MESSAGE_END")
        break
      case "REASONING_START":
        begin(`span ${of}`, subagentRunId)
        break
      case "REASONING_END":
        go(`span ${of}`, subagentRunId, true)
        break
      case "REASONING_MESSAGE_START":
        begin(`reasoning ${of}`, subagentRunId)
        break
      case "REASONING_MESSAGE_CONTENT":
      case "REASONING_MESSAGE_END":
        go(`reasoning ${of}`, subagentRunId, type === "REASONING_MESSAGE_END")
        break
      case "TOOL_CALL_START":
        begin(`call ${of}`, subagentRunId)
        if (
          owners.has(`message ${String(parentMessageId)}`) &&
          owners.get(`message ${String(parentMessageId)}`) !== subagentRunId
        )
          found.push(`call ${of} is in a message of another agent`)
        break
      case "TOOL_CALL_ARGS":
      case "TOOL_CALL_END":
        go(`call ${of}`, subagentRunId, type === "TOOL_CALL_END")
        break
      case "STEP_STARTED":
        begin(`step ${String(subagentRunId)} ${String(stepName)}`, subagentRunId)
        break
      case "STEP_FINISHED":
        go(`step ${String(subagentRunId)} ${String(stepName)}`, subagentRunId, true)
        break
      case "SUBAGENT_STARTED":
        if (children.has(String(subagentRunId))) found.push(`subagent ${String(subagentRunId)} starts twice`)
        if (parentSubagentRunId !== undefined && !children.has(String(parentSubagentRunId)))
          found.push(`the parent of ${String(subagentRunId)} has not started`)
        children.set(String(subagentRunId), "open")
        break
      case "SUBAGENT_FINISHED":
      case "SUBAGENT_ERROR":
        if (children.get(String(subagentRunId)) !== "open")
          found.push(`subagent ${String(subagentRunId)} ends unstarted`)
        children.set(String(subagentRunId), "ended")
        break
      case "RUN_FINISHED":
        for (const key of open.keys()) found.push(`${key} is open at the end`)
        for (const [child, state] of children) if (state === "open") found.push(`subagent ${child} is open at the end`)
        isOver = true
        break
      case "RUN_ERROR":
        isOver = true
    }
    if (typeof subagentRunId === "string" && !children.has(subagentRunId))
      found.push(`${type} of a subagent that has not started`)
  }
  if (!isOver) found.push("the run has no end")
  return found
}

/** A message of a client. */
export interface Message {
  readonly id: string
  readonly role: string
  content?: string
  toolCallId?: string
  toolCalls?: Array<{ readonly id: string; readonly function: { readonly name: string; arguments: string } }>
}

/** The messages behind these events, as the reducers of the clients make them. */
export const reduce = (before: ReadonlyArray<Message>, events: ReadonlyArray<Event>): ReadonlyArray<Message> => {
  const messages: Array<Message> = structuredClone([...before])
  const message = (id: string, role: string): Message => {
    const known = messages.find((one) => one.id === id)
    if (known !== undefined) return known
    const made: Message = { id, role }
    messages.push(made)
    return made
  }
  const callOf = (id: string) => messages.flatMap(({ toolCalls = [] }) => toolCalls).find((call) => call.id === id)
  for (const event of events) {
    const { content, delta, messageId, parentMessageId, role, toolCallId, toolCallName, type } = event as Fields & Event
    switch (type) {
      case "TEXT_MESSAGE_START":
      case "REASONING_MESSAGE_START": {
        const one = message(String(messageId), String(role))
        one.content ??= ""
        break
      }
      case "TEXT_MESSAGE_CONTENT":
      case "REASONING_MESSAGE_CONTENT": {
        const one = message(String(messageId), "lost")
        one.content = `${one.content ?? ""}${String(delta)}`
        break
      }
      case "TOOL_CALL_START": {
        if (callOf(String(toolCallId)) !== undefined) break
        const one = message(String(parentMessageId ?? toolCallId), "assistant")
        one.toolCalls ??= []
        one.toolCalls.push({ id: String(toolCallId), function: { name: String(toolCallName), arguments: "" } })
        break
      }
      case "TOOL_CALL_ARGS": {
        const call = callOf(String(toolCallId))
        if (call !== undefined) call.function.arguments += String(delta)
        break
      }
      case "TOOL_CALL_RESULT":
        messages.push({ id: String(messageId), role: "tool", toolCallId: String(toolCallId), content: String(content) })
    }
  }
  return messages
}
