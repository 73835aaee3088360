/**
 * Where a child's own questions wait for their replies.
 *
 * ```
 *  bridge ── open(r7) ──► pending ◄── settle(r7) / reply("<permission_response request_id="r7">…") ── reply port
 * ```
 *
 * A reply never becomes a message: it settles the request it names, or it is dropped. Only whoever holds the reply port
 * can settle anything, so words that merely look like a reply, wherever they come from, are words.
 */
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Interaction from "../interaction/Interaction.js"
import { InteractionCancelled, InteractorUnavailable, type InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as InteractionXml from "../interaction/InteractionXml.js"
import type { Answered } from "../interaction/Interactor.js"
import * as Pending from "../interaction/Pending.js"

export type Settlement = Exit.Exit<Answered<Interaction.Interaction>, InteractionError>

/** The one place from which a child's questions are settled; held by the mediator of the parent, and by nobody else. */
export interface ReplyPort {
  /** Settles a request with an end that code knows. False: it is not open, and nothing happened. */
  readonly settle: (requestId: string, end: Settlement, by: string) => boolean
  /**
   * Settles a request with a text: a reply element, a withdrawal, or a bare option word while exactly one `Approve` is
   * open. A reply to an open request that cannot be understood ends it safely. False: the text settled nothing.
   */
  readonly reply: (text: string, by: string) => boolean
}

export interface Door {
  /** Lets a question wait here. */
  readonly open: (
    request: InteractionRequest
  ) => Pending.Entry<InteractionRequest, Answered<Interaction.Interaction>, InteractionError>
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
export const make = (late: (reply: Late) => void): Door => new SessionDoor(late)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class SessionDoor implements Door, ReplyPort {
  /** Made with the first question: most children ask none. */
  private asked: Pending.Pending<InteractionRequest, Answered<Interaction.Interaction>, InteractionError> | undefined

  constructor(private readonly late: (reply: Late) => void) {}

  private get pending() {
    return (this.asked ??= Pending.make())
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

  reply(text: string, by: string): boolean {
    const reply = InteractionXml.parseReply(text)
    switch (reply._tag) {
      case "Response":
        return this.answer(reply.requestId, reply, by)
      case "Cancelled":
        return this.withdraw(reply.requestId, by)
      case "Bare": {
        const approvals = this.pending.list().filter(({ interaction }) => interaction._tag === "Approve")
        const [only, another] = approvals
        if (only === undefined || another !== undefined) return false
        const answer = InteractionXml.decodeAnswer(only, reply)
        // Not an option: somebody talks.
        if (Either.isLeft(answer)) return false
        return this.settle(only.requestId, Exit.succeed({ answer: answer.right, by, how: "answered" }), by)
      }
      case "Malformed": {
        const { requestId, reason } = reply
        const request = requestId === undefined ? undefined : this.pending.get(requestId)
        return request !== undefined && this.settle(request.requestId, unreadable(request, reason, by), by)
      }
    }
  }

  private answer(requestId: string, reply: InteractionXml.Reply, by: string): boolean {
    const request = this.pending.get(requestId)
    if (request === undefined) {
      this.late({ requestId, by, winner: this.pending.settledBy(requestId) })
      return false
    }
    const answer = InteractionXml.decodeAnswer(request, reply)
    if (Either.isRight(answer)) {
      return this.settle(requestId, Exit.succeed({ answer: answer.right, by, how: "answered" }), by)
    }
    return answer.left.cancelled
      ? this.withdraw(requestId, by)
      : this.settle(requestId, unreadable(request, answer.left.reason, by), by)
  }

  private withdraw(requestId: string, by: string): boolean {
    const request = this.pending.get(requestId)
    const id = request?.requestId
    return id !== undefined && this.settle(id, Exit.fail(new InteractionCancelled({ requestId: id, by })), by)
  }
}

/** What a garbled reply comes to: a denial where authority was asked for, else a cancelled question. */
const unreadable = ({ interaction, requestId }: InteractionRequest, reason: string, by: string): Settlement =>
  Exit.fail(
    Interaction.takesPromptSlot(interaction._tag)
      ? new InteractorUnavailable({ requestId, by, reason: `its reply could not be understood: ${reason}` })
      : new InteractionCancelled({ requestId, by })
  )
