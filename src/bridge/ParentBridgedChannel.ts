/**
 * A child's interactor: each request goes to the parent, one link up, and the answer comes back to the child's {@link
 * PendingReplies}.
 *
 * ```
 *  child's tool ── request(r7) ──► r7 waits ───────┐          ┌─► mediator ── the parent's own interactor ─► …
 *                                                  └─ ask r7 ─┘
 *                                   r7 settled ◄──── reply port ◄─┘
 * ```
 *
 * It shows nothing and takes no prompt slot: the slot belongs to the broker that asks people. When the child stops
 * waiting, because it was cancelled or timed out, it withdraws the request at the parent, and the person's dialog
 * closes.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Duration from "effect/Duration"
import type { PendingReplies, Settlement } from "../inbox/PendingReplies.js"
import type { ChildPort } from "../inbox/Inbox.js"
import type * as Interaction from "../interaction/Interaction.js"
import { InteractionCancelled, InteractionTimedOut, type InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type { Restore } from "../core/Interruption.js"
import * as Asking from "../interaction/Asking.js"
import * as Interactor from "../interaction/Interactor.js"

/** @internal */
export interface Options {
  /** Agent path of the parent: names it in events, audit and messages. */
  readonly parent: string
  /** Where the child's own questions wait. */
  readonly replies: PendingReplies
  /** The child's end of the parent's inbox. */
  readonly port: ChildPort
  /**
   * Counted from when the question is raised. A part that is not given keeps its default, {@link defaultTimeouts}. Zero or
   * negative: for ever.
   */
  readonly timeouts?: Interactor.Timeouts | undefined
}

/**
 * Five minutes, for permissions and for each question of a form.
 *
 * @since 0.1.0
 * @category constants
 */
export const defaultTimeouts: Interactor.Timeouts = { permission: "300 seconds", clarification: "300 seconds" }

/** @internal */
export const make = (options: Options): Interactor.Service => new Bridge(options)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Bridge implements Interactor.Service {
  readonly relay = true

  constructor(private readonly options: Options) {}

  get id(): string {
    return this.options.parent
  }

  readonly request = <I extends Interaction.Interaction>(
    request: InteractionRequest<I>,
    options?: Interactor.Options<I>
  ): Effect.Effect<Interactor.Answered<I>, InteractionError> =>
    Effect.uninterruptibleMask((restore) => this.requestMasked(request, options, restore))

  private requestMasked<I extends Interaction.Interaction>(
    request: InteractionRequest<I>,
    options: Interactor.Options<I> | undefined,
    restore: Restore
  ): Effect.Effect<Interactor.Answered<I>, InteractionError> {
    const { replies, parent, port } = this.options
    const timeouts = Interactor.timeoutsOf(this.options.timeouts, defaultTimeouts)
    const limit = Option.getOrUndefined(Interactor.timeoutOf(request.interaction, timeouts))
    return Effect.suspend(() => {
      const { requestId } = request
      const entry = replies.open(request)
      port.ask({
        request,
        recheck: options?.recheck,
        votes: options?.votes,
        upcoming: options?.upcoming,
        reply: replies.replyPort
      })
      const giveUp = (why: InteractionError, end: Settlement = Exit.fail(why)) =>
        replies.close(requestId, end) ? port.withdraw(requestId, why) : Effect.void
      const timeUp = (limit: Duration.Duration) =>
        Effect.sync(() => {
          const why = new InteractionTimedOut({ requestId, by: parent, after: Duration.toMillis(limit) })
          const allows = timeouts.onTimeout === "allow" && request.interaction._tag === "Approve"
          void giveUp(
            why,
            allows ? Exit.succeed(Asking.told({ answer: allowed, by: parent, how: "timeout" })) : undefined
          )
        })
      const waiting =
        limit === undefined
          ? restore(entry.await)
          : Effect.flatMap(Effect.fork(Effect.interruptible(Effect.delay(timeUp(limit), limit))), (timer) =>
              Effect.onExit(restore(entry.await), () => Fiber.interruptAsFork(timer, FiberId.none))
            )
      return Effect.flatMap(Effect.exit(waiting), (exit) => {
        // The answer fits the kind of the request; the type of `PendingReplies` has lost that.
        const answered = exit as Exit.Exit<Interactor.Answered<I>, InteractionError>
        if (Exit.isSuccess(exit) || !Cause.isInterrupted(exit.cause)) return answered
        // The asker goes on when nobody shows the question any more: its turn must not end before the question does.
        const why = options?.withdrawn?.() ?? new InteractionCancelled({ requestId })
        return Effect.zipRight(giveUp(why), answered)
      })
    })
  }
}

const allowed: Interaction.ApproveAnswer = { decision: "allow", scope: "once" }
