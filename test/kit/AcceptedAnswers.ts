/**
 * What journals and effects say of the answers that were given: an answer that was accepted takes effect once, and nothing is
 * settled against it. An answer that was refused has no effect.
 */
import type { RequestId } from "../../src/core/Id.js"
import type { Draft, EntryOf } from "../../src/journal/JournalEntry.js"

/** One answer of a person, from its sending to what the sender heard. */
export interface Given {
  readonly requestId: string
  readonly by: string
  /** `unknown`: the sender was told to try again, or heard nothing. */
  readonly heard: "accepted" | "refused" | "unknown"
}

/** What happened to one session and its children. It has come to rest. */
export interface Story {
  readonly entries: ReadonlyArray<Pick<Draft, "entry" | "sessionId">>
  readonly given?: ReadonlyArray<Given>
  /** How often the tool of each call did its work; undefined for tools that are not counted. */
  readonly effects?: (toolCallId: string) => number | undefined
}

/** Each as a sentence; none when all is well. */
export const wrongIn = ({ effects = () => undefined, entries, given = [] }: Story): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  const raised = new Map<RequestId, EntryOf<"InteractionRaised">>()
  const settled = new Map<RequestId, EntryOf<"InteractionSettled">>()
  const granted = new Map<string, EntryOf<"CallDecided">>()
  const started = new Set<string>()
  /** The end of a process cut them: the model is told that it does not know. */
  const cut = new Set<string>()
  for (const { entry, sessionId } of entries) {
    switch (entry._tag) {
      case "InteractionRaised":
        raised.set(entry.request.requestId, entry)
        break
      case "InteractionSettled":
        if (!raised.has(entry.requestId)) wrong.push(`${entry.requestId} ended and was never raised`)
        if (settled.has(entry.requestId)) wrong.push(`${entry.requestId} ended twice`)
        settled.set(entry.requestId, entry)
        break
      case "CallDecided": {
        const { method, requestId, toolCallId } = entry
        if (entry.granted) granted.set(`${sessionId} ${toolCallId}`, entry)
        if (requestId === undefined) break
        const end = settled.get(requestId)
        if (raised.has(requestId) && end === undefined)
          wrong.push(`${toolCallId} was decided (${method}) while ${requestId} was open`)
        if (!entry.granted && isPersonal(end) && allows(end) && unasked.has(method))
          wrong.push(
            `${requestId} was allowed by ${end?.by}, and ${toolCallId} was refused (${method}: ${entry.reason})`
          )
        if (entry.granted && method === "user_approved" && raised.has(requestId) && !allows(end))
          wrong.push(`${toolCallId} was allowed by ${requestId}, which ended as ${JSON.stringify(end)}`)
        break
      }
      case "ToolStarted":
        started.add(`${sessionId} ${entry.toolCallId}`)
        break
      case "ToolEnded": {
        const call = `${sessionId} ${entry.toolCallId}`
        if (entry.outcome === "interrupted") cut.add(entry.toolCallId)
        const isByPerson = granted.get(call)?.method === "user_approved"
        if (isByPerson && !started.has(call) && !isExcused(entry))
          wrong.push(`${entry.toolCallId} was allowed and not run: ${entry.outcome}, ${JSON.stringify(entry.result)}`)
      }
    }
  }
  const callOf = (requestId: string) => {
    const interaction = raised.get(requestId as RequestId)?.request.interaction
    return interaction?._tag === "Approve" ? interaction.toolCallId : undefined
  }
  for (const { by, heard, requestId } of given) {
    const end = settled.get(requestId as RequestId)
    const counts = end?.status === "answered" && end.by === by
    if (heard === "accepted" && !counts)
      wrong.push(`${requestId}: the answer of ${by} was accepted, and it ended as ${JSON.stringify(end)}`)
    if (heard === "refused" && counts) wrong.push(`${requestId}: the answer of ${by} was refused, and it counts`)
  }
  for (const [requestId, end] of settled) {
    const call = callOf(requestId)
    const times = call === undefined ? undefined : effects(call)
    if (call === undefined || times === undefined || end.status !== "answered") continue
    if (allows(end) && times !== 1 && !(times === 0 && cut.has(call)))
      wrong.push(`${requestId} was allowed by ${end.by}, and ${call} ran ${times} times`)
    if (!allows(end) && times !== 0) wrong.push(`${requestId} was not allowed, and ${call} ran ${times} times`)
  }
  return wrong
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Ways to refuse a call for want of an answer. */
const unasked: ReadonlySet<string> = new Set(["unavailable", "timeout", "no_channel", "check_failed"])

const isPersonal = (end: EntryOf<"InteractionSettled"> | undefined) =>
  end?.status === "answered" && end.how === undefined

const allows = (end: EntryOf<"InteractionSettled"> | undefined): boolean =>
  JSON.stringify(end?.answer)?.includes('"decision":"allow"') === true

/** A person or the end of the process stopped it, or a guard looked once more. */
const isExcused = ({ outcome }: EntryOf<"ToolEnded">) => outcome !== "failed" && outcome !== "succeeded"
