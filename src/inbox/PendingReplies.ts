/**
 * Where a child's own questions wait for their ends.
 *
 * ```
 *  bridge ── open(r7) ──► pending ◄── settle(r7) ── reply port
 * ```
 *
 * Only whoever holds the reply port can settle anything, and with an end that code knows: words that merely look like a
 * reply, wherever they come from, are words. What a model says in its user's place is read by its mediator.
 */
import type * as Exit from "effect/Exit"
import type * as Interaction from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type { Answered } from "../interaction/Interactor.js"
import * as PendingRequests from "../interaction/PendingRequests.js"

export type Settlement = Exit.Exit<Answered<Interaction.Interaction>, InteractionError>

/** The one place from which a child's questions are settled; held by the mediator of the parent, and by nobody else. */
export interface ReplyPort {
  /** Settles a request. False: it is not open, and nothing happened. */
  readonly settle: (requestId: string, end: Settlement, by: string) => boolean
}

export interface PendingReplies {
  /** Lets a question wait here. */
  readonly open: (
    request: InteractionRequest
  ) => PendingRequests.Entry<InteractionRequest, Answered<Interaction.Interaction>, InteractionError>
  /** The asker's own end of a question it does not wait for any more. False: it was settled before. */
  readonly close: (requestId: string, end: Settlement) => boolean
  readonly replyPort: ReplyPort
  /** Oldest first. */
  readonly waiting: () => ReadonlyArray<InteractionRequest>
}

export interface Late {
  readonly requestId: string
  readonly by: string
  /** Who settled it, as long as that is remembered. */
  readonly winner: string | undefined
}

/** `late` is told of every reply that names nothing open. */
export const make = (late: (reply: Late) => void): PendingReplies => new SessionDoor(late)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class SessionDoor implements PendingReplies, ReplyPort {
  /** Made with the first question: most children ask none. */
  private asked:
    PendingRequests.PendingRequests<InteractionRequest, Answered<Interaction.Interaction>, InteractionError> | undefined

  constructor(private readonly late: (reply: Late) => void) {}

  private get pending() {
    return (this.asked ??= PendingRequests.make())
  }

  get replyPort(): ReplyPort {
    return this
  }

  open(request: InteractionRequest) {
    return this.pending.open(request)
  }

  close(requestId: string, end: Settlement): boolean {
    return this.pending.settle(requestId, end, "the asker")
  }

  waiting(): ReadonlyArray<InteractionRequest> {
    return this.pending.list()
  }

  settle(requestId: string, end: Settlement, by: string): boolean {
    if (this.pending.settle(requestId, end, by)) return true
    this.late({ requestId, by, winner: this.pending.settledBy(requestId) })
    return false
  }
}
