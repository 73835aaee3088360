/**
 * The questions that another process asked for a session, handed out again under the ids they had, until its turn has come
 * as far as that process had.
 */
import type { ToolCallId } from "../core/Id.js"
import type * as Interaction from "../interaction/Interaction.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type { Service } from "../interaction/ResumedRequests.js"
import * as SessionSnapshot from "./SessionSnapshot.js"

export interface ResumedQuestions extends Service {
  /**
   * Hands out nothing any more, so that a question of a later step is not taken for one of those. Yields those that were
   * open and that nobody has asked again, because something else decided meanwhile.
   */
  readonly end: () => ReadonlyArray<InteractionRequest.InteractionRequest>
}

/** Each is handed out once, to the call that asked it; an approval may show other things by now, a question may not. */
export const make = (session: Pick<SessionSnapshot.SessionSnapshot, "answered" | "open">): ResumedQuestions => {
  const left = [...SessionSnapshot.requestsOf(session)]
  return {
    take: (interaction, toolCallId) => {
      const asked = JSON.stringify(interaction)
      const at = left.findIndex((request) => isAsked(request, interaction, asked, toolCallId))
      const [request] = at < 0 ? [] : left.splice(at, 1)
      return request
    },
    end: () => {
      const unasked = left.splice(0)
      return session.open.filter((request) => unasked.includes(request))
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isAsked = (
  before: InteractionRequest.InteractionRequest,
  now: Interaction.Interaction,
  asked: string,
  toolCallId: ToolCallId | undefined
): boolean => {
  const { interaction } = before
  if (interaction._tag === "Approve") return now._tag === "Approve" && interaction.toolCallId === toolCallId
  return InteractionRequest.callOf(before) === toolCallId && JSON.stringify(interaction) === asked
}
