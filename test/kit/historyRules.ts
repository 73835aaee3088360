/** The rules of providers for the messages of a conversation, which a history must keep at any moment. */
import * as Prompt from "@effect/ai/Prompt"
import * as Schema from "effect/Schema"

const ownCalls = (message: Prompt.Message | undefined): ReadonlyArray<Prompt.ToolCallPart> =>
  message?.role !== "assistant"
    ? []
    : message.content.flatMap((part) => (part.type === "tool-call" && !part.providerExecuted ? [part] : []))

const name = ({ id, name }: { readonly id: string; readonly name: string }) => `${name}#${id}`

/** Sentences about what is wrong; none for a valid history. */
export const violations = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  const ids = new Set<string>()
  const firstWord = messages.find((message) => message.role !== "system")
  if (firstWord !== undefined && firstWord.role !== "user") wrong.push(`begins with ${firstWord.role}`)
  for (const [index, message] of messages.entries()) {
    const at = `message ${index} (${message.role})`
    if (message.content.length === 0) wrong.push(`${at} is empty`)
    if (message.role === "system" && index !== 0) wrong.push(`${at} is not the first`)
    for (const { id } of ownCalls(message)) {
      if (id === "") wrong.push(`${at} has a call without an id`)
      if (ids.has(id)) wrong.push(`${at} uses the id ${id} again`)
      ids.add(id)
    }
    if (message.role === "assistant") {
      const { partial } = (message.options["assent"] ?? {}) as { readonly partial?: boolean }
      const kinds = message.content.map((part) => part.type)
      if (partial === true && kinds.some((kind) => kind !== "text")) wrong.push(`${at} is partial and holds ${kinds}`)
    }
    const calls = ownCalls(message).map(name)
    const next = messages[index + 1]
    const results = next?.role === "tool" ? next.content.map(name) : []
    if (calls.join() !== results.join()) wrong.push(`${at} calls [${calls}], and the results are [${results}]`)
    if (message.role === "tool" && ownCalls(messages[index - 1]).length === 0) wrong.push(`${at} follows no call`)
  }
  const encoded = Schema.encodeEither(Prompt.FromJson)(Prompt.fromMessages(messages))
  if (encoded._tag === "Left") wrong.push(`cannot be written down: ${encoded.left.message}`)
  return wrong
}
