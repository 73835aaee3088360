/** `useChat` of the AI SDK without React: its chat, its transport and its reader, against a server. */
import { AbstractChat, type UIMessage } from "ai"
import * as Effect from "effect/Effect"
import { chatOptions } from "./aiChatOptions.js"
import type * as Served from "./Served.js"

class Chat extends AbstractChat<UIMessage> {}

/** The transport's events, as they came, and the chat that shows them. */
export interface AiChat {
  readonly chat: Chat
  readonly sessionId: string
  readonly data: ReadonlyArray<{ readonly type: string; readonly data: unknown }>
  readonly say: (text: string) => Effect.Effect<void>
  readonly parts: () => UIMessage["parts"]
}

let ids = 0

/** Of a new session; or the page of another chat, loaded again behind the words of its user. */
export const make = (served: Served.Served, before?: AiChat): Effect.Effect<AiChat> =>
  Effect.gen(function* () {
    const sessionId = before?.sessionId ?? String((yield* served.call("/v1/sessions", {})).body.sessionId)
    const data: Array<{ readonly type: string; readonly data: unknown }> = []
    const messages: Array<UIMessage> = structuredClone(
      before?.chat.messages.filter(({ role }) => role === "user") ?? []
    )
    const chat = new Chat({
      id: before?.chat.id ?? `chat-${++ids}`,
      generateId: () => `id-${++ids}`,
      onData: (part) => data.push(part),
      state: {
        status: "ready",
        error: undefined,
        messages,
        pushMessage: (message) => messages.push(message),
        popMessage: () => messages.pop(),
        replaceMessage: (index, message) => (messages[index] = structuredClone(message)),
        snapshot: (thing) => structuredClone(thing)
      },
      ...chatOptions(`${served.url}/v1/ai/${sessionId}`, served.token)
    })
    return {
      chat,
      sessionId,
      data,
      say: (text) => Effect.promise(() => chat.sendMessage({ text })),
      parts: () => messages.at(-1)?.parts ?? []
    }
  })
