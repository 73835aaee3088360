/**
 * A child's interactor: it hands each request over to the parent, one link up, and waits for its end.
 *
 * ```
 *  child's tool ── request ──► a ChildRequest ──► the parent's queue ──► mediator ── the parent's own interactor ─► …
 *       ▲                           │                                       │
 *       └─────── its end ───────────┴──────────────── reply ◄───────────────┘
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
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import { ChildRequest, type Late, type Settlement } from "../inbox/ChildRequestQueue.js"
import type { ChildPort } from "../inbox/Inbox.js"
import type * as Interaction from "../interaction/Interaction.js"
import { InteractionCancelled, InteractionTimedOut, type InteractionError } from "../interaction/InteractionError.js"
import { isResumed, type InteractionRequest } from "../interaction/InteractionRequest.js"
import type { Restore } from "../core/Interruption.js"
import * as InteractorCall from "../interaction/InteractorCall.js"
import * as Interactor from "../interaction/Interactor.js"

/** @internal */
export interface Options {
  /** Agent path of the parent: names it in events, audit and messages. */
  readonly parent: string
  /** The child's end of the parent's inbox. */
  readonly port: ChildPort
  /**
   * Counted from when the question is raised. A part that is not given keeps its default, {@link defaultTimeouts}. Zero or
   * negative: for ever.
   */
  readonly timeouts?: Interactor.Timeouts | undefined
  /** Called with replies to questions that had ended. Default: they are dropped silently. */
  readonly late?: ((reply: Late) => void) | undefined
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

/** A resumed question has been open for a while. A clock that was set back gives it no more time than it had. */
const leftOf = (limit: Duration.Duration, { issuedAt }: InteractionRequest<Interaction.Interaction>) =>
  Effect.map(Clock.currentTimeMillis, (now) =>
    Math.min(Duration.toMillis(limit), Math.max(0, Duration.toMillis(limit) - (now - issuedAt)))
  )

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
    const { late = () => {}, parent, port } = this.options
    const timeouts = Interactor.timeoutsOf(this.options.timeouts, defaultTimeouts)
    const limit = Option.getOrUndefined(Interactor.timeoutOf(request.interaction, timeouts))
    return Effect.suspend(() => {
      const { requestId } = request
      const { recheck, settled, upcoming, votes, withdrawn } = options ?? {}
      const raised = new ChildRequest(request, { recheck, upcoming, votes }, late)
      // The answer fits the kind of the request; the type of `ChildRequest` has lost that.
      const end = raised.await as Effect.Effect<Interactor.Answered<I>, InteractionError>
      port.ask(raised)
      /** The time may be up while the asker leaves. */
      let leaving: Effect.Effect<void> | undefined
      // To a resumed question an answer may be stored, and that one counts. The parent looks, and then the wait ends.
      const giveUp = (why: InteractionError, outcome: Settlement = Exit.fail(why)): Effect.Effect<unknown> => {
        if (isResumed(request)) {
          leaving ??= port.withdraw(requestId, why)
          return Effect.zipRight(
            leaving,
            Effect.sync(() => raised.close(outcome))
          )
        }
        return raised.close(outcome) ? port.withdraw(requestId, why) : Effect.void
      }
      const timeUp = (limit: Duration.Duration) =>
        Effect.suspend(() => {
          const why = new InteractionTimedOut({ requestId, by: parent, after: Duration.toMillis(limit) })
          const allows = timeouts.onTimeout === "allow" && request.interaction._tag === "Approve"
          return giveUp(
            why,
            allows ? Exit.succeed(InteractorCall.told({ answer: allowed, by: parent, how: "timeout" })) : undefined
          )
        })
      /** The child of the asker stopped waiting. */
      const part = (why: InteractionError) =>
        Effect.onExit(Effect.zipRight(giveUp(why), end), (exit) => Effect.sync(() => settled?.(exit)))
      const already = withdrawn?.()
      if (already !== undefined) return part(already)
      const waiting =
        limit === undefined
          ? restore(end)
          : Effect.flatMap(
              Effect.fork(
                Effect.interruptible(
                  Effect.flatMap(leftOf(limit, request), (left) => Effect.delay(timeUp(limit), left))
                )
              ),
              (timer) => Effect.onExit(restore(end), () => Fiber.interruptAsFork(timer, FiberId.none))
            )
      return Effect.flatMap(Effect.exit(waiting), (exit) => {
        if (Exit.isSuccess(exit) || !Cause.isInterrupted(exit.cause)) return exit
        // The asker goes on when nobody shows the question any more: its turn must not end before the question does.
        const why = withdrawn?.()
        return why === undefined ? Effect.zipRight(giveUp(new InteractionCancelled({ requestId })), exit) : part(why)
      })
    })
  }
}

const allowed: Interaction.ApproveAnswer = { decision: "allow", scope: "once" }
