/**
 * Where a child's own questions wait until they are settled.
 *
 * ```
 *  bridge ── open(r7) ──► pending ◄── settle(r7) ── reply port
 * ```
 *
 * Only the holder of the reply port can settle a question, with a typed settlement. Text that looks like a reply is
 * only text, from any source. The mediator reads what a model answers in its user's place.
 */
import type * as Exit from "effect/Exit"
import type * as Interaction from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type { Answered } from "../interaction/Interactor.js"
import * as PendingRequests from "../interaction/PendingRequests.js"

export type Settlement = Exit.Exit<Answered<Interaction.Interaction>, InteractionError>

/** Settles a child's questions. Only the parent's mediator holds it. */
export interface ReplyPort {
  /** Settles a request. False: it is not open, and nothing changed. */
  readonly settle: (requestId: string, end: Settlement, by: string) => boolean
}

export interface PendingReplies {
  /** Lets a question wait here. */
  readonly open: (
    request: InteractionRequest
  ) => PendingRequests.Entry<InteractionRequest, Answered<Interaction.Interaction>, InteractionError>
  /** Settles a question that the asker stopped waiting for. False: it was settled before. */
  readonly close: (requestId: string, end: Settlement) => boolean
  readonly replyPort: ReplyPort
  /** Oldest first. */
  readonly waiting: () => ReadonlyArray<InteractionRequest>
}

export interface Late {
  readonly requestId: string
  readonly by: string
  /** Who settled it, while that is remembered. */
  readonly winner: string | undefined
}

/** `late` is called with every reply that names no open question. */
export const make = (late: (reply: Late) => void): PendingReplies => new SessionDoor(late)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Both ends of one session: where its questions wait, and where their replies come in. */
class SessionDoor implements PendingReplies, ReplyPort {
  /** Made with the first question: most children ask nothing. */
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
