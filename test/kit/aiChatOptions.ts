/** The options of a chat of the AI SDK for a session of Assent. */
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai"

export const chatOptions = (api: string, token: string) => ({
  transport: new DefaultChatTransport({
    api,
    headers: { authorization: `Bearer ${token}` },
    // Assent has the history.
    prepareSendMessagesRequest: ({ id, messages }) => ({ body: { id, messages: messages.slice(-1) } })
  }),
  sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
})
