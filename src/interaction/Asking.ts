/**
 * How Assent's own rooms ask an interactor, and record how an answer came about.
 *
 * The port has one function, `request`, and anybody may wrap an interactor. A fast path is bound to the very `request`
 * whose work it does (see `FastPath`), and the record of how an answer came about to that very answer. A program's own
 * interactor can claim neither, and neither can be carried past it.
 */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { Restore } from "../core/Interruption.js"
import * as FastPath from "../internal/FastPath.js"
import type { Interaction } from "./Interaction.js"
import type { InteractionError } from "./InteractionError.js"
import type { InteractionRequest } from "./InteractionRequest.js"
import type { Answered, Ended, Options, Reply, Service } from "./InteractorPort.js"

// -----------------------------------------------------------------------------------------------------------------
// fast paths
// -----------------------------------------------------------------------------------------------------------------

/** A `request` for callers in an uninterruptible region: only the waiting, inside `restore`, is interruptible. */
export interface Masked {
  readonly requestMasked: <I extends Interaction>(
    request: InteractionRequest<I>,
    options: Options<I> | undefined,
    restore: Restore
  ) => Effect.Effect<Answered<I>, InteractionError>
}

/** A `request` without a fiber, for interactors in which that fiber would only wait. */
export interface Posting {
  /**
   * Files the question, without a recheck, and yields how to withdraw it. Yields nothing when the question has to wait
   * for its turn: `request` must ask it then. It may file the question when it is called, and yield that as an exit.
   */
  readonly post: (
    request: InteractionRequest,
    settle: Settle,
    /** The fiber that asks. */
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    /** Takes the answers of people, where they are votes; `settle` then has none of them. */
    vote?: Options<Interaction>["vote"]
  ) => Effect.Effect<((ended?: Ended) => void) | undefined>
}

/**
 * Takes the end of a posted question. It is called once, in the step in which the question ends, or never once the
 * question was withdrawn. It does not throw.
 */
export type Settle = (exit: Exit.Exit<Answered<Interaction>, InteractionError>) => void

/** Bound to the `request` of an interactor. What such a `request` yields is an {@link Answered}. */
export const masked = FastPath.make<Service["request"], Masked>()

/** Bound to the `request` of an interactor. */
export const posting = FastPath.make<Service["request"], Posting>()

// -----------------------------------------------------------------------------------------------------------------
// asking
// -----------------------------------------------------------------------------------------------------------------

/** Asks an interactor, and tells who answered and how. */
export const ask = <I extends Interaction>(
  service: Service,
  request: InteractionRequest<I>,
  options?: Options<I>
): Effect.Effect<Answered<I>, InteractionError> => {
  const { request: put } = service
  return masked.of(put) === undefined
    ? Effect.map(service.request(request, options), (reply) => answered(service.id, reply))
    : // Only this code knows what a bound `request` yields; the types do not.
      (put(request, options) as Effect.Effect<Answered<I>, InteractionError>)
}

/** As {@link ask}, in an uninterruptible region: only what `restore` is put around is interruptible. */
export const askMasked = <I extends Interaction>(
  service: Service,
  request: InteractionRequest<I>,
  options: Options<I>,
  restore: Restore
): Effect.Effect<Answered<I>, InteractionError> =>
  masked.of(service.request)?.requestMasked(request, options, restore) ?? restore(ask(service, request, options))

// -----------------------------------------------------------------------------------------------------------------
// how an answer came about
// -----------------------------------------------------------------------------------------------------------------

/** Records how an answer came about. The record holds as long as the very same object is handed on. */
export const told = <I extends Interaction>(answer: Answered<I>): Answered<I> => {
  // An answer without a record counts as `answered`.
  if (answer.how !== "answered") known.add(answer)
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
