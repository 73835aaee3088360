/**
 * How our own rooms ask an interactor, and say how an answer came about.
 *
 * The port has one function, `request`, and an interactor may be wrapped by anybody. What is faster is bound to the very
 * `request` that it does the work of (see `FastPath`), and how an answer came about to that very answer: neither can be
 * claimed by a program's own interactor, or be carried past it.
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

/** Does what a `request` does for those who let nothing be interrupted but the waiting: that is what `restore` is put around. */
export interface Masked {
  readonly requestMasked: <I extends Interaction>(
    request: InteractionRequest<I>,
    options: Options<I> | undefined,
    restore: Restore
  ) => Effect.Effect<Answered<I>, InteractionError>
}

/** Does what a `request` does that would only park the fiber that waits. */
export interface Posting {
  /**
   * Files the question, without a recheck, and yields how it is withdrawn; nothing when the question has to wait for its
   * turn, and is to be asked by `request`. It may file it when it is called, and yield that as an exit.
   */
  readonly post: (
    request: InteractionRequest,
    settle: Settle,
    /** Whoever asks. */
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ) => Effect.Effect<((ended?: Ended) => void) | undefined>
}

/**
 * Takes how a question that was posted has ended: called once, in the step in which it ends, or never once it was
 * withdrawn. It does not throw.
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
    : // What such a one yields is known here only, not to the types.
      (put(request, options) as Effect.Effect<Answered<I>, InteractionError>)
}

/** The same where nothing is interruptible but what `restore` is put around. */
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

/** Says how an answer came about. It holds for as long as the very answer is handed on. */
export const told = <I extends Interaction>(answer: Answered<I>): Answered<I> => {
  // Whatever nothing is known of was answered.
  if (answer.how !== "answered") known.add(answer)
  return answer
}

/** What an interactor of this id has yielded, with its author. */
export const answered = <I extends Interaction>(id: string, reply: Reply<I>): Answered<I> =>
  isTold(reply) ? reply : { answer: reply.answer, by: reply.by ?? id, how: "answered" }

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const known = new WeakSet<object>()

const isTold = <I extends Interaction>(reply: Reply<I>): reply is Answered<I> => known.has(reply)
