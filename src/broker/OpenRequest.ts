/**
 * A request that is being asked, and who shows it right now.
 *
 * Only the broker writes it, in synchronous sections. An interactor is counted in before it is asked, so that one which
 * leaves at once does not look like the last.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type { Restore } from "../core/Interruption.js"
import * as Interaction from "../interaction/Interaction.js"
import { InteractorUnavailable, type InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"
import { Waiting } from "../interaction/PendingRequests.js"
import type { BallotBox } from "./BallotBox.js"

/** An attached interactor. */
export interface Attachment {
  readonly interactor: Interactor.Service
}

/** What shows a request: a fiber that asks, or the function that withdraws a posted question. */
export type By = Fiber.RuntimeFiber<void> | ((ended?: Interactor.Ended) => void)

type Answered = Interactor.Answered<Interaction.Interaction>

export class OpenRequest extends Waiting<Answered, InteractionError> {
  /** Whether it has the prompt slot. */
  holdsSlot = false
  /** Where answers go that are votes; only where a rule reserves the call. */
  ballot: BallotBox | undefined = undefined
  /** A channel that closed had it, and it stays open for another process. */
  isParted = false
  private error: InteractionError | undefined
  private shown: ReadonlyArray<Showing> = nobody

  constructor(
    /** Told when the request is to be removed. */
    private readonly broker: { readonly drop: (raised: OpenRequest) => void },
    readonly request: InteractionRequest,
    readonly options: Interactor.Options<Interaction.Interaction> | undefined,
    /** The asker's fiber. */
    readonly fiber: Fiber.RuntimeFiber<unknown, unknown>,
    /** Restores the asker's interruptibility. */
    readonly restore: Restore
  ) {
    super()
  }

  /** The asker's clock. */
  get clock(): Clock.Clock {
    return Context.get(this.fiber.currentDefaultServices, Clock.Clock)
  }

  /** The last failure of an interactor that left; a timeout takes precedence. */
  get lastError(): InteractionError | undefined {
    return this.error
  }

  hasShowing(): boolean {
    return this.shown.length > 0
  }

  /** Counts in all interactors that are about to be asked. */
  joinAll(attached: ReadonlyArray<Attachment>): void {
    this.shown = attached.map((attachment) => ({ attachment, by: undefined }))
  }

  /** Counts in an interactor. */
  join(attachment: Attachment): void {
    if (this.of(attachment) === undefined) this.shown = [...this.shown, { attachment, by: undefined }]
  }

  /** Sets what shows the request for an interactor that was counted in. False: it has left meanwhile. */
  showBy(attachment: Attachment, by: By): boolean {
    const showing = this.of(attachment)
    if (showing === undefined) return false
    showing.by = by
    return true
  }

  /** What shows the request for this interactor; nothing while it is only about to be shown. */
  shownBy(attachment: Attachment): By | undefined {
    return this.of(attachment)?.by
  }

  fail(error: InteractionError): void {
    if (this.error?._tag !== "InteractionTimedOut") this.error = error
  }

  leave(attachment: Attachment): void {
    this.shown = this.shown.filter((showing) => showing.attachment !== attachment)
  }

  /** Closes the dialogs that still show the request. */
  dismissAll(ended?: () => Interactor.Ended | undefined): void {
    const { shown } = this
    this.shown = nobody
    for (const { by } of shown) if (by !== undefined) dismiss(by, ended)
  }

  /** Runs the next step. A step that crashes must not keep the prompt slot from other requests. */
  step<A>(next: () => Effect.Effect<A, InteractionError>): Effect.Effect<A, InteractionError> {
    try {
      return next()
    } catch (defect) {
      this.broker.drop(this)
      return Effect.die(defect)
    }
  }

  /** Runs the next step after an effect that may take time, and may fail. */
  after<A, B>(
    first: Effect.Effect<A, InteractionError>,
    next: (value: A) => Effect.Effect<B, InteractionError>
  ): Effect.Effect<B, InteractionError> {
    return Effect.matchCauseEffect(first, {
      onFailure: (cause) => {
        this.broker.drop(this)
        return Effect.failCause(cause)
      },
      onSuccess: (value) => this.step(() => next(value))
    })
  }

  private of(attachment: Attachment): Showing | undefined {
    return this.shown.find((showing) => showing.attachment === attachment)
  }
}

/** Ends it without waiting: an interactor that is slow to close its dialog must not hold up the answer. */
export const dismiss = (by: By, ended?: () => Interactor.Ended | undefined): void => {
  if (typeof by === "function") by(ended?.())
  // An interactor that answered has mostly ended by now, and need not be woken for that.
  else if (by.unsafePoll() === null) by.unsafeInterruptAsFork(FiberId.none)
}

/** An answer that does not fit its question counts as a failure. */
export const checked = (
  { interaction, requestId }: InteractionRequest,
  by: string,
  exit: Exit.Exit<Answered, InteractionError>
): Exit.Exit<Answered, InteractionError> => {
  const misfit = Exit.isSuccess(exit) ? Interaction.misfit(interaction, exit.value.answer) : undefined
  return misfit === undefined ? exit : Exit.fail(new InteractorUnavailable({ requestId, by, reason: misfit }))
}

/** Why an interactor left. A dismissed fiber ends before it gets here: an interruption here is the interactor's own. */
export const failureOf = (
  { requestId }: InteractionRequest,
  by: string,
  cause: Cause.Cause<InteractionError>
): InteractionError => {
  const reason = Cause.isInterruptedOnly(cause) ? "it was interrupted" : "it crashed"
  return Option.getOrElse(Cause.failureOption(cause), () => new InteractorUnavailable({ requestId, by, reason }))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Showing {
  readonly attachment: Attachment
  by: By | undefined
}

const nobody: ReadonlyArray<Showing> = []
