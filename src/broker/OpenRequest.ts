/**
 * A request that is being asked, and who shows it right now.
 *
 * Written by the broker in synchronous sections only. Whoever shows it is counted in before being asked, so that one who
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

/** An interactor that takes part. */
export interface Attachment {
  readonly interactor: Interactor.Service
}

/** What shows a request: a fiber that asks, or how a question that was posted is withdrawn. */
export type By = Fiber.RuntimeFiber<void> | ((ended?: Interactor.Ended) => void)

type Answered = Interactor.Answered<Interaction.Interaction>

export class OpenRequest extends Waiting<Answered, InteractionError> {
  /** Whether it has the prompt slot. */
  holdsSlot = false
  private error: InteractionError | undefined
  private shown: ReadonlyArray<Showing> = nobody

  constructor(
    /** Told when nothing is to be left of it. */
    private readonly broker: { readonly drop: (raised: OpenRequest) => void },
    readonly request: InteractionRequest,
    readonly options: Interactor.Options<Interaction.Interaction> | undefined,
    /** Of whoever asked. */
    readonly fiber: Fiber.RuntimeFiber<unknown, unknown>,
    /** Makes interruptible what whoever asked lets be interrupted. */
    readonly restore: Restore
  ) {
    super()
  }

  /** That of whoever asked. */
  get clock(): Clock.Clock {
    return Context.get(this.fiber.currentDefaultServices, Clock.Clock)
  }

  /** The last failure of those who left, timeouts before others. */
  get lastError(): InteractionError | undefined {
    return this.error
  }

  hasShowing(): boolean {
    return this.shown.length > 0
  }

  /** Counts in all who are about to be asked. */
  joinAll(attached: ReadonlyArray<Attachment>): void {
    this.shown = attached.map((attachment) => ({ attachment, by: undefined }))
  }

  /** Counts somebody in. */
  join(attachment: Attachment): void {
    if (this.of(attachment) === undefined) this.shown = [...this.shown, { attachment, by: undefined }]
  }

  /** Says what shows it for somebody who was counted in. False: who that was has left meanwhile. */
  showBy(attachment: Attachment, by: By): boolean {
    const showing = this.of(attachment)
    if (showing === undefined) return false
    showing.by = by
    return true
  }

  /** Nothing yet for one who is about to show it. */
  shownBy(attachment: Attachment): By | undefined {
    return this.of(attachment)?.by
  }

  fail(error: InteractionError): void {
    if (this.error?._tag !== "InteractionTimedOut") this.error = error
  }

  leave(attachment: Attachment): void {
    this.shown = this.shown.filter((showing) => showing.attachment !== attachment)
  }

  /** Closes what still shows it. */
  dismissAll(ended?: () => Interactor.Ended | undefined): void {
    const { shown } = this
    this.shown = nobody
    for (const { by } of shown) if (by !== undefined) dismiss(by, ended)
  }

  /** Goes on. A step that crashes must not keep the prompt slot from the others. */
  step<A>(goOn: () => Effect.Effect<A, InteractionError>): Effect.Effect<A, InteractionError> {
    try {
      return goOn()
    } catch (defect) {
      this.broker.drop(this)
      return Effect.die(defect)
    }
  }

  /** Goes on after something that may take its time, and may fail. */
  after<A, B>(
    first: Effect.Effect<A, InteractionError>,
    goOn: (value: A) => Effect.Effect<B, InteractionError>
  ): Effect.Effect<B, InteractionError> {
    return Effect.matchCauseEffect(first, {
      onFailure: (cause) => {
        this.broker.drop(this)
        return Effect.failCause(cause)
      },
      onSuccess: (value) => this.step(() => goOn(value))
    })
  }

  private of(attachment: Attachment): Showing | undefined {
    return this.shown.find((showing) => showing.attachment === attachment)
  }
}

/** Ends it without waiting: an interactor that is slow to close its dialog must not hold up the answer. */
export const dismiss = (by: By, ended?: () => Interactor.Ended | undefined): void => {
  if (typeof by === "function") by(ended?.())
  // Who answered has ended by now, mostly, and need not be woken for that.
  else if (by.unsafePoll() === null) by.unsafeInterruptAsFork(FiberId.none)
}

/** An answer that does not fit its question is none. */
export const checked = (
  { interaction, requestId }: InteractionRequest,
  by: string,
  exit: Exit.Exit<Answered, InteractionError>
): Exit.Exit<Answered, InteractionError> => {
  const misfit = Exit.isSuccess(exit) ? Interaction.misfit(interaction, exit.value.answer) : undefined
  return misfit === undefined ? exit : Exit.fail(new InteractorUnavailable({ requestId, by, reason: misfit }))
}

/** Why an interactor left. Being dismissed ends a fiber before it gets here; an interruption that does is its own. */
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
