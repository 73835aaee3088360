/**
 * The interactors attached to a broker, and what comes of showing them a question.
 *
 * ```
 *  raised ─► shown to each who is attached ─┬─ answered ────────────► settled by the first
 *                                           ├─ withdrawn by somebody ► settled
 *                                           └─ failed, detached ─────► leaves; settled when nobody is left
 * ```
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Clock from "effect/Clock"
import * as Scope from "effect/Scope"
import type { RequestId } from "../core/Id.js"
import { isImmediate } from "../internal/Immediate.js"
import type * as Redaction from "../core/Redaction.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import { FormProgress } from "../interaction/FormProgress.js"
import * as Interaction from "../interaction/Interaction.js"
import {
  InteractorUnavailable,
  NoInteractor,
  type AnswerRejected,
  type InteractionError
} from "../interaction/InteractionError.js"
import * as InteractionEvent from "../interaction/InteractionEvent.js"
import * as Asking from "../interaction/Asking.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"
import type { BallotBox } from "./BallotBox.js"
import { checked, dismiss, failureOf, type Attachment, type By, type OpenRequest } from "./OpenRequest.js"

/** Ends the turn of the root. An agent that has ended is let go by it: a broker outlives it for a while. */
export interface Halting {
  halt(detail: string): Effect.Effect<void>
}

/** What this needs of a broker. */
export interface Host {
  readonly options: {
    readonly whenNobody?: "fail" | "wait" | undefined
    readonly halting?: Halting | undefined
    /** Present where another process can go on with a request. */
    readonly journal?: unknown
  }
  readonly redactor: Redaction.Redactor
  /** The open requests by id, until their end is published. */
  readonly raised: ReadonlyMap<string, OpenRequest>
  /** False when the request was settled before. */
  readonly settle: (raised: OpenRequest, exit: Answer, by: string) => boolean
  readonly tell: (raised: OpenRequest, body: AgentEvent.Body) => void
  readonly tellLate: (clock: Clock.Clock, requestId: string, by: string) => void
  /** How the request ended; nothing while it is open. */
  readonly endOf: (raised: OpenRequest) => Interactor.Ended | undefined
}

type Answer = Exit.Exit<Interactor.Answered<Interaction.Interaction>, InteractionError>

export class Participants {
  private attached: ReadonlyArray<Attachment> = nobody
  /** Whether an interactor was ever attached. */
  private hadSomebody = false

  constructor(
    private readonly host: Host,
    /** The scope of the fibers that ask. */
    private readonly scope: Scope.Scope
  ) {}

  /** Attaches the first interactors, before anything is asked. */
  begin(interactors: ReadonlyArray<Interactor.Service>): void {
    this.attached = interactors.map((interactor) => ({ interactor }))
    this.hadSomebody = interactors.length > 0
  }

  /** Attaches an interactor until the scope closes; it is asked all open requests at once. */
  attach(interactor: Interactor.Service): Effect.Effect<void, never, Scope.Scope> {
    return Effect.uninterruptible(
      Effect.flatMap(Effect.scope, (scope) => {
        const attachment: Attachment = { interactor }
        this.attached = [...this.attached, attachment]
        this.hadSomebody = true
        const raised = [...this.host.raised.values()]
        return Effect.zipRight(
          Scope.addFinalizerExit(scope, () => Effect.uninterruptible(this.detach(attachment))),
          raised.length === 0
            ? Effect.void
            : Effect.forEach(raised, (raised) => this.show(attachment, raised), { discard: true })
        )
      })
    )
  }

  /** Counts in all interactors that are about to be asked. */
  join(raised: OpenRequest): ReadonlyArray<Attachment> {
    raised.joinAll(this.attached)
    return this.attached
  }

  /** Shows a request that was just raised, then continues. */
  showAll<A>(
    raised: OpenRequest,
    everybody: ReadonlyArray<Attachment>,
    next: () => Effect.Effect<A, InteractionError>
  ): Effect.Effect<A, InteractionError> {
    const shown = () => {
      this.endIfNobodyIsLeft(raised)
      return next()
    }
    const [first] = everybody
    if (first !== undefined && everybody.length === 1) return this.post(first, raised, shown)
    const nothing = () => Effect.void
    const all = Effect.forEach(everybody, (attachment) => this.post(attachment, raised, nothing), { discard: true })
    return raised.after(all, shown)
  }

  /** Shows a request to one interactor: without a fiber, if the interactor needs none. */
  private post<A>(
    attachment: Attachment,
    raised: OpenRequest,
    next: () => Effect.Effect<A, InteractionError>
  ): Effect.Effect<A, InteractionError> {
    const { interactor } = attachment
    const { ballot, fiber, options, request } = raised
    // A request for the prompt slot was rechecked when it got the slot.
    const isRechecked = options?.recheck === undefined || Interaction.takesPromptSlot(request.interaction._tag)
    const posting = isRechecked ? postingOf(attachment) : undefined
    if (posting === undefined) return raised.after(this.show(attachment, raised), next)
    if (!this.isToShow(attachment, raised)) return next()
    const { id: by } = interactor
    const came = (exit: Answer) =>
      ballot === undefined
        ? this.came(attachment, raised, checked(request, by, exit))
        : this.polled(attachment, raised, ballot, unvoted(ballot, request, by, exit))
    const posted = (withdraw: ((ended?: Interactor.Ended) => void) | undefined) => {
      if (withdraw === undefined) return raised.after(this.show(attachment, raised), next)
      this.shows(attachment, raised, withdraw)
      return next()
    }
    if (ballot !== undefined && this.hasNoVote(attachment, raised, ballot)) return next()
    const filing = attempted(() => posting.post(ballot?.shown ?? request, came, fiber, ballot && votingOf(ballot, by)))
    if (isImmediate(filing)) return posted(filing.value)
    return Effect.matchCauseEffect(filing, {
      onFailure: (cause) =>
        raised.step(() => {
          came(Exit.failCause(cause))
          return next()
        }),
      onSuccess: (withdraw) => raised.step(() => posted(withdraw))
    })
  }

  private detach(attachment: Attachment): Effect.Effect<void> {
    const { raised } = this.host
    this.attached = this.attached.filter((other) => other !== attachment)
    const fibers: Array<Fiber.RuntimeFiber<void>> = []
    for (const one of raised.values()) {
      const by = one.shownBy(attachment)
      if (typeof by === "function") by()
      else if (by !== undefined) fibers.push(by)
    }
    return Effect.zipRight(
      Fiber.interruptAll(fibers),
      Effect.sync(() => {
        for (const one of raised.values()) {
          if (this.keeps) one.isParted = true
          this.leave(attachment, one)
        }
      })
    )
  }

  /** Starts one interactor on one request, in a fiber that ends with the request, the attachment or the broker. */
  private show(attachment: Attachment, raised: OpenRequest): Effect.Effect<void> {
    if (!this.isToShow(attachment, raised)) return Effect.void
    if (raised.ballot !== undefined) return this.poll(attachment, raised, raised.ballot)
    const { request, options } = raised
    const by = attachment.interactor.id
    // An interactor is foreign code: it may throw before it returns an effect, or reply with something invalid.
    const asking = Effect.flatMap(
      Effect.suspend(() =>
        attachment.interactor.request(request, {
          ...options,
          halt: this.halt,
          ended: () => this.host.endOf(raised)
        })
      ),
      (reply) => checked(request, by, Exit.succeed(Asking.answered(by, reply)))
    )
    const watched =
      request.interaction._tag === "Clarify" || request.interaction._tag === "Elicit"
        ? Effect.provideService(asking, FormProgress, (progress) =>
            Effect.sync(() =>
              this.host.tell(raised, InteractionEvent.progressed(request, progress, this.host.redactor))
            )
          )
        : asking
    const run = Effect.map(Effect.exit(watched), (exit) => this.came(attachment, raised, exit))
    raised.join(attachment)
    return Effect.map(Effect.forkIn(Effect.interruptible(run), this.scope), (fiber) =>
      this.shows(attachment, raised, fiber)
    )
  }

  /** Asks one interactor for a vote. It leaves with its answer; one through which several people answer files their votes. */
  private poll(attachment: Attachment, raised: OpenRequest, ballot: BallotBox): Effect.Effect<void> {
    const { interactor } = attachment
    const { options } = raised
    const { requestId } = raised.request
    raised.join(attachment)
    if (this.hasNoVote(attachment, raised, ballot)) return Effect.void
    const by = interactor.id
    const vote = votingOf(ballot, by)
    const asking = Effect.flatMap(
      Effect.suspend(() =>
        interactor.request(ballot.shown, {
          ...options,
          votes: ballot.cast,
          vote,
          halt: this.halt,
          ended: () => this.host.endOf(raised)
        })
      ),
      (reply) =>
        Effect.mapError(vote(reply), ({ message }) => new InteractorUnavailable({ requestId, by, reason: message }))
    )
    const run = Effect.map(Effect.exit(asking), (exit) => this.polled(attachment, raised, ballot, exit))
    return Effect.map(Effect.forkIn(Effect.interruptible(run), this.scope), (fiber) =>
      this.shows(attachment, raised, fiber)
    )
  }

  /** Does not ask a person who has no say, or has their vote in already. */
  private hasNoVote(attachment: Attachment, raised: OpenRequest, ballot: BallotBox): boolean {
    const { id: by, principal, roles } = attachment.interactor
    const reason = principal === undefined ? undefined : ballot.refuses(principal, roles)
    if (reason === undefined) return false
    const { requestId } = raised.request
    if (reason === "voted") this.leave(attachment, raised)
    else this.came(attachment, raised, Exit.fail(new InteractorUnavailable({ requestId, by, reason })))
    return true
  }

  /** Handles the end of one interactor that was asked for votes. */
  private polled(
    attachment: Attachment,
    raised: OpenRequest,
    ballot: BallotBox,
    exit: Exit.Exit<unknown, InteractionError>
  ): void {
    const { requestId } = raised.request
    const { id: by } = attachment.interactor
    if (raised.settled !== undefined) {
      const decided = Exit.isSuccess(exit) && exit.value === "settled"
      return decided ? undefined : this.host.tellLate(raised.clock, requestId, by)
    }
    if (Exit.isSuccess(exit)) return this.leave(attachment, raised)
    const error = failureOf(raised.request, by, exit.cause)
    // Who has no say may not withdraw it for the others either.
    const reason = error._tag === "InteractionCancelled" && error.by !== undefined && ballot.refuses(error.by)
    const isRefused = typeof reason === "string" && reason !== "voted"
    this.came(attachment, raised, Exit.fail(isRefused ? new InteractorUnavailable({ requestId, by, reason }) : error))
  }

  /** Between any two steps the interactor may have been detached, or the request may have ended. */
  private isToShow(attachment: Attachment, raised: OpenRequest): boolean {
    return this.attached.includes(attachment) && this.host.raised.get(raised.request.requestId) === raised
  }

  private shows(attachment: Attachment, raised: OpenRequest, by: By): void {
    // The request may have ended, or the interactor been detached, before `by` was known: then `by` is dismissed here.
    if (this.isToShow(attachment, raised) && raised.showBy(attachment, by)) return
    dismiss(by, () => this.host.endOf(raised))
  }

  /** Handles the outcome of one interactor. */
  private came(attachment: Attachment, raised: OpenRequest, exit: Answer): void {
    const { host } = this
    const { clock, request } = raised
    const { requestId } = request
    const by = attachment.interactor.id
    if (Exit.isSuccess(exit)) {
      if (!host.settle(raised, exit, exit.value.by)) host.tellLate(clock, requestId, by)
      return
    }
    const error = failureOf(request, by, exit.cause)
    // A person's decision to withdraw the question ends it for all.
    if (error._tag === "InteractionCancelled" && error.by !== undefined) {
      host.settle(raised, Exit.fail(error), error.by)
      return
    }
    // A channel that closes takes no kept question with it: the process may be ending.
    if (error._tag === "InteractionCancelled" && this.keeps) raised.isParted = true
    else raised.fail(error)
    const reason = host.redactor.text(error.message)
    host.tell(raised, { _tag: "InteractorFailed", requestId, interactor: by, reason })
    this.leave(attachment, raised)
  }

  private get halt(): ((detail: string) => Effect.Effect<void>) | undefined {
    const { halting } = this.host.options
    return halting === undefined ? undefined : (detail) => halting.halt(detail)
  }

  private get keeps(): boolean {
    return this.host.options.journal !== undefined
  }

  private leave(attachment: Attachment, raised: OpenRequest): void {
    raised.leave(attachment)
    this.endIfNobodyIsLeft(raised)
  }

  /** "Nobody was ever attached" and "all have left" are different errors. */
  private nobody(requestId: RequestId): InteractionError {
    return this.hadSomebody
      ? new InteractorUnavailable({ requestId, by: "broker", reason: "everybody who could have answered has gone" })
      : new NoInteractor({ requestId })
  }

  private endIfNobodyIsLeft(raised: OpenRequest): void {
    if (raised.hasShowing()) return
    const { ballot, lastError, request } = raised
    const isParted = raised.isParted || (this.keeps && this.hadSomebody && this.attached.length === 0)
    const waits = this.host.options.whenNobody === "wait" || isParted
    if (lastError === undefined && waits) return
    if (ballot !== undefined && this.hadSomebody) {
      this.host.settle(raised, Exit.fail(ballot.missing(lastError)), "nobody")
      return
    }
    this.host.settle(raised, Exit.fail(lastError ?? this.nobody(request.requestId)), "nobody")
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const nobody: ReadonlyArray<Attachment> = []

/** Only an approval is reserved, and its answers are those of an approval; the type of all answers cannot say so. */
const asVote = (answered: Interactor.Answered<Interaction.Interaction>) =>
  answered as Interactor.Answered<Interaction.Approve>

/** Files what somebody answered as their vote. */
const votingOf =
  (ballot: BallotBox, by: string) =>
  (reply: Interactor.Reply<Interaction.Interaction>): Effect.Effect<Interactor.Filed, AnswerRejected> =>
    ballot.file(asVote(Asking.answered(by, reply)))

/** A posted question ends with what is no vote: nobody gave it, as when the time ran out. */
const unvoted = (ballot: BallotBox, { requestId }: InteractionRequest, by: string, exit: Answer): Answer => {
  if (Exit.isFailure(exit)) return exit
  const reason = ballot.objection(asVote(exit.value))?.message ?? "its answer was not filed as a vote"
  return Exit.fail(new InteractorUnavailable({ requestId, by, reason }))
}

/** How to post a question without a fiber. An interactor that throws here is asked in a fiber, which sees it crash. */
const postingOf = ({ interactor }: Attachment): Asking.Posting | undefined => {
  try {
    return Asking.posting.of(interactor.request)
  } catch {
    return undefined
  }
}

/** An interactor is foreign code: when it throws, the question must stay open for the others. */
const attempted = <A>(posting: () => Effect.Effect<A>): Effect.Effect<A> => {
  try {
    return posting()
  } catch (defect) {
    return Effect.die(defect)
  }
}
