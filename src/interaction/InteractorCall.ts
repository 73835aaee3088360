/**
 * How Assent's own rooms ask an interactor, and record how an answer came about.
 *
 * The port has one function, `request`, and anybody may wrap an interactor. The record of how an answer came about is bound
 * to that very answer: a program's own interactor cannot claim it, and it cannot be carried past one.
 */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as FastPath from "../internal/FastPath.js"
import type { Interaction } from "./Interaction.js"
import type { InteractionError } from "./InteractionError.js"
import type { InteractionRequest } from "./InteractionRequest.js"
import type { Answered, Ended, Options, Reply, Service } from "./InteractorPort.js"

// -----------------------------------------------------------------------------------------------------------------
// asking
// -----------------------------------------------------------------------------------------------------------------

/** Asks an interactor, and tells who answered and how. */
export const ask = <I extends Interaction>(
  service: Service,
  request: InteractionRequest<I>,
  options?: Options<I>
): Effect.Effect<Answered<I>, InteractionError> =>
  Effect.map(service.request(request, options), (reply) => answered(service.id, reply))

// -----------------------------------------------------------------------------------------------------------------
// posting
// -----------------------------------------------------------------------------------------------------------------

/** A `request` without a fiber, for an interactor in which that fiber would only wait. */
export interface Posting {
  /**
   * Files the question, without a recheck, and yields how to withdraw it. Yields nothing when the question has to wait for
   * its turn: `request` must ask it then. It does not throw.
   */
  readonly post: (
    request: InteractionRequest,
    settle: Settle,
    /** Takes the answers of people, where they are votes; `settle` then has none of them. */
    vote?: Options<Interaction>["vote"]
  ) => ((ended?: Ended) => void) | undefined
}

/**
 * Takes the end of a posted question. It is called once, in the step in which the question ends, or never once the
 * question was withdrawn. It does not throw.
 */
export type Settle = (exit: Exit.Exit<Answered<Interaction>, InteractionError>) => void

/** Bound to the `request` of an interactor. A fiber for each waiting question takes 3 KB of its agent, and 30 µs. */
export const posting = FastPath.make<Service["request"], Posting>()

// -----------------------------------------------------------------------------------------------------------------
// how an answer came about
// -----------------------------------------------------------------------------------------------------------------

/** Records how an answer came about. The record holds as long as the very same object is handed on. */
export const told = <I extends Interaction>(answer: Answered<I>): Answered<I> => {
  // An answer without a record counts as `answered`, and as given now.
  if (answer.how !== "answered" || answer.at !== undefined) known.add(answer)
  return answer
}

/** The reply of the interactor with this id, with its author. */
export const answered = <I extends Interaction>(id: string, reply: Reply<I>): Answered<I> =>
  isTold(reply) ? reply : withVotes({ answer: reply.answer, by: reply.by ?? id, how: "answered" }, reply)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const known = new WeakSet<object>()

/** Most answers are one person's, and keep the shape they have. */
const withVotes = <I extends Interaction>(answer: Answered<I>, { roles, votes }: Reply<I>): Answered<I> => {
  if (roles === undefined && votes === undefined) return answer
  return { ...answer, ...(roles && { roles }), ...(votes && { votes }) }
}

const isTold = <I extends Interaction>(reply: Reply<I>): reply is Answered<I> => known.has(reply)
