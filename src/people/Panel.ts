/**
 * Several interactors with one question: who asks them is told each answer, one end is told to all, and nothing that was
 * opened stays open.
 *
 * Where a rule reserves the call, an answer is a vote: it goes to the one who counts, and the panel goes on.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as InteractorCall from "../interaction/InteractorCall.js"
import * as Tally from "../interaction/Tally.js"
import * as Interaction from "../interaction/Interaction.js"
import {
  InteractionAlreadyAnswered,
  InteractorUnavailable,
  MalformedAnswer,
  type AnswerRejected,
  type InteractionError
} from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"

/** What is done with an answer: it ends the question for all, or others are waited for. */
export type Take<I extends Interaction.Interaction> = (
  answered: Interactor.Answered<I>
) => Effect.Effect<Option.Option<Interactor.Answered<I>>, AnswerRejected>

/** A question that is put to several. */
export interface Panel {
  /**
   * Asks one of them; `left` is run when they answer no more: with their error, or with none where they have answered. One
   * person who has no say in a reserved call, or has voted on it, is not asked.
   */
  readonly ask: (
    service: Interactor.Service,
    left: (error: InteractionError | undefined) => Effect.Effect<void>,
    /** Who is asked after them. */
    next?: Interactor.Next
  ) => Effect.Effect<void>
  /** Ends the question without an answer. */
  readonly fail: (error: InteractionError) => Effect.Effect<void>
  /** Runs beside the asking, and ends with it. */
  readonly meanwhile: (effect: Effect.Effect<void>) => Effect.Effect<void>
}

/** Puts the question, and waits for its one end. */
export const run = <I extends Interaction.Interaction>(
  request: InteractionRequest<I>,
  options: Interactor.Options<I> | undefined,
  take: Take<I>,
  begin: (panel: Panel) => Effect.Effect<void>
): Effect.Effect<Interactor.Answered<I>, InteractionError> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      // The first end completes it, the asker waits for it.
      const over = Deferred.unsafeMake<Interactor.Answered<I>, InteractionError>(FiberId.none)
      let ended: Interactor.Ended | undefined
      const fibers: Array<Fiber.Fiber<void>> = []
      const { requestId } = request
      let isClosed = false
      // One step: a fiber that was begun and not written down, or after the others were closed, would never be closed.
      const meanwhile = (effect: Effect.Effect<void>) =>
        Effect.uninterruptible(
          Effect.suspend(() =>
            isClosed
              ? Effect.void
              : Effect.flatMap(Effect.forkDaemon(Effect.interruptible(effect)), (fiber) => {
                  fibers.push(fiber)
                  // It was closed while it was begun.
                  return isClosed ? Fiber.interruptFork(fiber) : Effect.void
                })
          )
        )
      const end = (exit: Exit.Exit<Interactor.Answered<I>, InteractionError>, by: string | undefined) =>
        Effect.suspend(() => {
          const status = Exit.isSuccess(exit) ? "answered" : "cancelled"
          ended ??= { status, by, late: (who) => options?.ended?.()?.late(who) }
          return Effect.asVoid(Deferred.done(over, exit))
        })
      /** The question as those see it who are asked from now on: with the votes that count. */
      let shown = request
      const counted = ({ answer, by, votes = [{ answer, by }] }: Interactor.Answered<I>) =>
        Effect.sync(() => {
          for (const vote of votes) shown = Tally.withVote(shown, vote)
        })
      const file = (answered: Interactor.Answered<I>): Effect.Effect<Interactor.Filed, AnswerRejected> =>
        Effect.uninterruptible(
          Effect.suspend(() => {
            if (ended !== undefined)
              return new InteractionAlreadyAnswered({ requestId, by: ended.by ?? "somebody else" })
            const reason = Interaction.misfit(request.interaction, answered.answer)
            if (reason !== undefined) return new MalformedAnswer({ requestId, kind: request.interaction._tag, reason })
            return Effect.flatMap(take(answered), (taken): Effect.Effect<Interactor.Filed, AnswerRejected> => {
              if (Option.isNone(taken)) return Effect.succeed("open")
              // Whoever asked counts the votes, where a rule reserves the call.
              if (options?.vote !== undefined) return Effect.tap(options.vote(taken.value), () => counted(taken.value))
              return Effect.as(end(Exit.succeed(taken.value), taken.value.by), "settled")
            })
          })
        )
      const ask: Panel["ask"] = (service, left, next) => {
        const { id } = service
        const refused = refusedBy(service, shown)
        if (refused !== undefined) return left(refused === "voted" ? undefined : refused)
        const asking = Effect.suspend(() =>
          service.request(shown, {
            ...options,
            // Others may be asked about those.
            upcoming: undefined,
            next,
            vote: (reply) => file(InteractorCall.answered(id, reply)),
            ended: () => ended ?? options?.ended?.()
          })
        )
        const answered = Effect.flatMap(asking, (reply) =>
          Effect.mapError(
            file(InteractorCall.answered(id, reply)),
            ({ message }) => new InteractorUnavailable({ requestId, by: id, reason: message })
          )
        )
        const asked = Effect.flatMap(Effect.exit(answered), (exit) => {
          if (ended !== undefined) return Effect.void
          if (Exit.isSuccess(exit)) return left(undefined)
          const error = Option.getOrElse(
            Cause.failureOption(exit.cause),
            () => new InteractorUnavailable({ requestId, by: id, reason: "it crashed" })
          )
          // A person's decision to withdraw the question ends it for all.
          return error._tag === "InteractionCancelled" && error.by !== undefined
            ? end(Exit.fail(error), error.by)
            : left(error)
        })
        return meanwhile(asked)
      }
      const fail: Panel["fail"] = (error) => end(Exit.fail(error), undefined)
      // Nobody who is slow to close a dialog holds up the answer.
      const close = Effect.suspend(() => {
        isClosed = true
        return Effect.forEach(fibers, Fiber.interruptFork, { discard: true })
      })
      return Effect.ensuring(Effect.zipRight(begin({ ask, fail, meanwhile }), restore(Deferred.await(over))), close)
    })
  )

/**
 * Why the one person of an interactor is not asked about a reserved call: they have no say in it, or have `voted`. Nothing when
 * they are asked.
 */
export const refusedBy = (
  { id, principal, roles }: Interactor.Service,
  { interaction, requestId }: InteractionRequest
): InteractorUnavailable | "voted" | undefined => {
  const reason = principal === undefined ? undefined : Tally.refusedOf(interaction, principal, roles)
  if (reason === undefined || reason === "voted") return reason
  return new InteractorUnavailable({ requestId, by: id, reason })
}

/** The error when all have left. */
export const nobodyLeft = (
  { requestId }: InteractionRequest,
  id: string,
  why: string,
  last: InteractionError | undefined
): InteractionError => {
  if (last?._tag === "InteractionTimedOut") return last
  const reason = last === undefined ? why : `${why}; ${last.message}`
  return new InteractorUnavailable({ requestId, by: id, reason })
}
