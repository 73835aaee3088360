/** Open questions of another process, reused with their ids until the resumed turn has caught up with that process. */
import { canonicalJson } from "../core/CanonicalJson.js"
import type { ToolCallId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import type * as Interaction from "../interaction/Interaction.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type { Service } from "../interaction/ResumedRequests.js"
import * as SessionSnapshot from "./SessionSnapshot.js"

export interface RequestResumption extends Service {
  /**
   * Ends the reuse, so that a question of a later step is not matched. Yields the open questions that no call asked
   * again, because something else decided meanwhile.
   */
  readonly end: () => ReadonlyArray<InteractionRequest.InteractionRequest>
}

/**
 * Each question is reused once, by the call that asked it. An approval may show other content by now; a question must
 * be the same.
 */
export const make = (session: Pick<SessionSnapshot.SessionSnapshot, "answered" | "open">): RequestResumption => {
  const left = [...SessionSnapshot.requestsOf(session)]
  return {
    take: (interaction, toolCallId) => {
      // Keys come back from a store in another order than they were made in.
      const asked = canonicalJson(interaction)
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
  if (interaction._tag === "Approve") {
    // With a secret, an edit is not kept: the call asks as it was before, and no answer to the edited one is about that.
    const isEditLost = Redaction.isMasked(interaction.editable?.current)
    return now._tag === "Approve" && interaction.toolCallId === toolCallId && !isEditLost
  }
  return InteractionRequest.callOf(before) === toolCallId && canonicalJson(interaction) === asked
}
