/**
 * Files that a provider does not take: a picture that is too large or broken, a type that a gateway does not pass on.
 *
 * ```
 *  refused ─► asked again without the files ─┬─ answered ─► they leave the history; a note stays
 *                                            └─ refused  ─► they were not at fault; the turn fails
 * ```
 *
 * A history is sent again with each request: with such a file in it, no later turn would be answered.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as AttachedFile from "../conversation/AttachedFile.js"
import type { ModelError } from "../model/ModelError.js"
import { emit, type TurnContext } from "./TurnContext.js"

/**
 * The files that may be the reason of this failure: those that no answer came after, else all of them. It is told that
 * the model is asked again without them. Empty where the reason is another.
 */
export const suspected = (session: TurnContext, failure: ModelError): ReadonlySet<Prompt.FilePart> => {
  if (!isOfRequest(failure)) return new Set()
  const { messages } = session.history
  const fresh = filesOf(messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1))
  const files = fresh.length > 0 ? fresh : filesOf(messages)
  if (files.length > 0) {
    const message = session.redactor.text(`${failure.message} Asking again without ${AttachedFile.named(files)}.`)
    emit(session, { _tag: "AgentError", message })
  }
  return new Set(files)
}

/** The request was answered without these files, so they leave the history. */
export const leaveOut = ({ history, journal }: TurnContext, files: ReadonlySet<Prompt.FilePart>): void => {
  const messages = history.messages.map((message) => AttachedFile.without(message, files))
  history.replace(messages)
  journal?.replaced("files_refused", messages)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// A server of one's own may answer 500 to a picture that its model cannot see. One that is down for a while does so too: a
// file that had nothing to do with that must not go.
const isOfRequest = (failure: ModelError): boolean =>
  failure._tag === "ContextTooLong" ||
  (failure._tag === "Refused" && (failure.status === undefined || statuses.has(failure.status))) ||
  (failure._tag === "Overloaded" && failure.status === 500 && /image|vision|\bfile/i.test(failure.message))

/** Bad request, unsupported media type, unprocessable. */
const statuses: ReadonlySet<number> = new Set([400, 415, 422])

const filesOf = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.FilePart> =>
  messages.flatMap(({ content, role }) =>
    role === "user" ? content.filter((part): part is Prompt.FilePart => part.type === "file") : []
  )
