/** Open questions of another process, reused with their ids until the resumed turn has caught up with that process. */
import { canonicalJson } from "../core/CanonicalJson.js"
import type { ToolCallId } from "../core/Id.js"
import type * as Redaction from "../core/Redaction.js"
import type * as Interaction from "../interaction/Interaction.js"
import { callOf, type InteractionRequest } from "../interaction/InteractionRequest.js"
import type { Service } from "../interaction/ResumedRequests.js"
import * as SessionSnapshot from "./SessionSnapshot.js"

export interface RequestResumption extends Service {
  /**
   * Ends the reuse, so that a question of a later step is not matched. Yields the open questions that no call asked
   * again, because something else decided meanwhile.
   */
  readonly end: () => ReadonlyArray<InteractionRequest>
}

/**
 * Each question is reused once, by the call that asked it. It must be the same, and an approval must show the same: an answer
 * that was left for it is about what was shown. With a secret, an edit is not kept, so the call is asked about as it was
 * before, and no answer to the edited one is about that.
 */
export const make = (
  session: Pick<SessionSnapshot.SessionSnapshot, "answered" | "open">,
  redactor: Pick<Redaction.Masking, "value">,
  drop: (requests: ReadonlyArray<InteractionRequest>) => void
): RequestResumption => {
  let left = SessionSnapshot.requestsOf(session)
  /** Those of them that are open. */
  const without = (isOver: (request: InteractionRequest) => boolean) => {
    const over = left.filter(isOver)
    left = left.filter((request) => !over.includes(request))
    return session.open.filter((request) => over.includes(request))
  }
  return {
    take: (interaction, toolCallId) => {
      // Keys come back from a store in another order than they were made in.
      const asked = shownIn(redactor.value(interaction))
      const found = left.find((request) => isAsked(request, asked, toolCallId))
      if (found !== undefined) without((request) => request === found)
      // Nobody is to answer what is shown no more.
      else if (interaction._tag === "Approve")
        drop(without((request) => request.interaction._tag === "Approve" && callOf(request) === toolCallId))
      return found
    },
    end: () => without(() => true)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A call has one question at a time: only of an approval other things may have changed, such as its place in a batch. */
const isAsked = (before: InteractionRequest, asked: string, toolCallId: ToolCallId | undefined): boolean =>
  callOf(before) === toolCallId && shownIn(before.interaction) === asked

/** What a person decides about. */
const shownIn = (interaction: unknown): string => {
  const { _tag, approvalKey, argumentsSummary, display, editable } = interaction as Interaction.Approve
  return canonicalJson(
    _tag === "Approve" ? { approvalKey, argumentsSummary, display, current: editable?.current } : interaction
  )
}
