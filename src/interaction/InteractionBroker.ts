/**
 * The interactor that fans out to all attached interactors. The first answer wins.
 *
 * ```
 *  request ─► prompt slot ─► recheck ─► InteractionRequested ─┬─► interactor 1 (own fiber)
 *  (kinds that grant authority wait here, one at a time)      ├─► interactor 2 (own fiber)
 *                                                             └─► answer(id) from outside
 *  first to settle ─► settling event ─► the others are interrupted and close their dialogs ─► return
 * ```
 *
 * An interactor that fails, times out or closes leaves the race; when all have left, the request ends. Nobody holds the
 * slot but a request that is being shown here.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { RequestId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import * as Redaction from "../core/Redaction.js"
import * as Spans from "../core/Spans.js"
import * as AgentEvent from "../event/AgentEvent.js"
import type * as AuditTrail from "../event/AuditTrail.js"
import * as EventBus from "../event/EventBus.js"
import * as DialogQueue from "./DialogQueue.js"
import { FormProgress } from "./FormProgress.js"
import * as Interaction from "./Interaction.js"
import {
  InteractionAlreadyAnswered,
  InteractionCancelled,
  MalformedAnswer,
  NoInteractor,
  UnknownRequest,
  type AnswerRejected,
  type InteractionError
} from "./InteractionError.js"
import * as InteractionEvent from "./InteractionEvent.js"
import type { InteractionJournal } from "./InteractionJournal.js"
import * as InteractionRecord from "./InteractionRecord.js"
import type { InteractionRequest } from "./InteractionRequest.js"
import * as Interactor from "./Interactor.js"
import * as Pending from "./Pending.js"
import { checked, dismiss, failureOf, Raised, type Attachment, type By } from "./Raised.js"

export interface Service {
  /** The broker as the interactor it is. */
  readonly interactor: Interactor.Service
  /**
   * Lets an interactor take part until the scope closes; it is asked at once what is open. Closing the scope closes its
   * dialogs and leaves open requests to the others.
   */
  readonly attach: (interactor: Interactor.Service) => Effect.Effect<void, never, Scope.Scope>
  /** Answers an open request with an encoded answer from outside, through the same door as everybody else. */
  readonly answer: (requestId: string, by: string, answer: unknown) => Effect.Effect<void, AnswerRejected>
  /** Withdraws an open request. False when it is not open. */
  readonly cancel: (requestId: string, by: string) => Effect.Effect<boolean>
  /** What is being asked right now, oldest first. */
  readonly open: Effect.Effect<ReadonlyArray<InteractionRequest>>
}

export class InteractionBroker extends Context.Tag("assent/interaction/InteractionBroker")<
  InteractionBroker,
  Service
>() {}

export interface Options {
  /** Where the settling events go. */
  readonly bus: EventBus.Service
  /** The root session the broker belongs to. */
  readonly origin?: Origin.Origin | undefined
  /** With nobody attached: fail at once, or wait for the next one to attach. Default: `fail`. */
  readonly whenNobody?: "fail" | "wait" | undefined
  readonly redactor?: Redaction.Redactor | undefined
  /** Where every settled interaction is written down before its answer counts. Default: nowhere. */
  readonly audit?: AuditTrail.Service | undefined
  /** Where requests are kept, so that another process can go on with them. Default: nowhere. */
  readonly journal?: InteractionJournal | undefined
  /** Default: none. */
  readonly spans?: Spans.Service | undefined
}

/** Closing the scope cancels what is open, what waits in line, and what comes later. */
export const make = (options: Options): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.flatMap(Effect.scope, (scope) =>
    Effect.acquireRelease(
      Effect.sync(() => new Broker(options, scope)),
      (broker) => broker.close
    )
  )

/** A broker as the program's interactor. */
export const layer = (
  options: Omit<Options, "bus"> = {}
): Layer.Layer<InteractionBroker | Interactor.Interactor, never, EventBus.EventBus> =>
  Layer.scopedContext(
    Effect.map(
      Effect.flatMap(EventBus.EventBus, (bus) => make({ ...options, bus })),
      (broker) => Context.make(InteractionBroker, broker).pipe(Context.add(Interactor.Interactor, broker.interactor))
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Asked<I extends Interaction.Interaction> = Effect.Effect<Interactor.Answered<I>, InteractionError>
type AnyAnswered = Interactor.Answered<Interaction.Interaction>

class Broker implements Service {
  private readonly pending = Pending.make<InteractionRequest, AnyAnswered, InteractionError>()
  private readonly raised = new Map<RequestId, Raised>()
  private attached: ReadonlyArray<Attachment> = []
  private readonly slot = DialogQueue.make()
  private closed = false

  constructor(
    private readonly options: Options,
    private readonly scope: Scope.Scope
  ) {}

  private get redactor(): Redaction.Redactor {
    return this.options.redactor ?? Redaction.shapesOnly
  }

  readonly interactor: Interactor.Service = {
    id: "broker",
    relay: false,
    request: <I extends Interaction.Interaction>(
      request: InteractionRequest<I>,
      options?: Interactor.Options<I>
    ): Asked<I> => {
      const { spans = Spans.off } = this.options
      const raise = (restore: DialogQueue.Restore) =>
        spans.within(
          () => InteractionEvent.spanOf(request, spans),
          this.raise(restore, request, options as Raised["options"]) as Asked<I>
        )
      if (!Interaction.takesPromptSlot(request.interaction._tag)) return Effect.uninterruptibleMask(raise)
      const { recheck } = options ?? {}
      return this.slot.holdMask((restore) =>
        Interactor.rechecked(recheck && { recheck: restore(recheck) }, raise(restore))
      )
    }
  }

  attach(interactor: Interactor.Service): Effect.Effect<void, never, Scope.Scope> {
    return Effect.asVoid(
      Effect.acquireRelease(
        Effect.suspend(() => {
          const attachment: Attachment = { interactor }
          this.attached = [...this.attached, attachment]
          return Effect.as(
            Effect.forEach([...this.raised.values()], (raised) => this.show(attachment, raised), { discard: true }),
            attachment
          )
        }),
        (attachment) =>
          Effect.suspend(() => {
            this.attached = this.attached.filter((other) => other !== attachment)
            const fibers: Array<Fiber.RuntimeFiber<void>> = []
            for (const raised of this.raised.values()) {
              const by = raised.shownBy(attachment)
              if (typeof by === "function") by()
              else if (by !== undefined) fibers.push(by)
            }
            return Effect.zipRight(
              Fiber.interruptAll(fibers),
              Effect.sync(() => {
                for (const raised of this.raised.values()) this.leave(attachment, raised)
              })
            )
          })
      )
    )
  }

  answer(requestId: string, by: string, input: unknown): Effect.Effect<void, AnswerRejected> {
    return Effect.suspend(() => {
      const request = this.pending.get(requestId)
      if (request === undefined) return this.reject(requestId, by)
      const decoded = Interaction.decodeAnswer(request.interaction, input)
      if (Either.isLeft(decoded)) {
        return new MalformedAnswer({ requestId, kind: request.interaction._tag, reason: decoded.left })
      }
      this.pending.settle(requestId, Exit.succeed({ answer: decoded.right, by, how: "answered" }), by)
      return Effect.void
    })
  }

  cancel(requestId: string, by: string): Effect.Effect<boolean> {
    return Effect.sync(() => {
      const request = this.pending.get(requestId)
      if (request === undefined) return false
      const exit = Exit.fail(new InteractionCancelled({ requestId: request.requestId, by }))
      return this.pending.settle(requestId, exit, by)
    })
  }

  get open(): Effect.Effect<ReadonlyArray<InteractionRequest>> {
    return Effect.sync(() => this.pending.list())
  }

  get close(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.closed = true
      for (const { requestId } of this.pending.list()) {
        this.pending.settle(requestId, Exit.fail(new InteractionCancelled({ requestId })), "the end of the broker")
      }
    })
  }

  private reject(requestId: string, by: string): Effect.Effect<never, AnswerRejected> {
    const winner = this.pending.settledBy(requestId)
    return winner === undefined
      ? new UnknownRequest({ requestId })
      : Effect.clockWith((clock) => {
          this.tellLate(clock, requestId, by)
          return new InteractionAlreadyAnswered({ requestId: requestId as RequestId, winner })
        })
  }

  private raise(
    restore: DialogQueue.Restore,
    request: InteractionRequest,
    options: Raised["options"]
  ): Effect.Effect<AnyAnswered, InteractionError> {
    return Effect.clockWith((clock) => {
      if (this.closed) return new InteractionCancelled({ requestId: request.requestId })
      const entry = this.pending.open(request)
      const everybody = this.attached
      const raised = new Raised(request, options, clock, everybody)
      this.raised.set(request.requestId, raised)
      const wait = () =>
        Effect.matchCauseEffect(restore(entry.await), {
          onFailure: (cause) => this.ended(raised, Exit.failCause(cause)),
          onSuccess: (answered) => this.ended(raised, Exit.succeed(answered))
        })
      if (this.options.journal !== undefined) {
        return Effect.flatMap(this.begun(clock, request), (isSettled) =>
          isSettled ? wait() : Effect.flatMap(this.showAll(everybody, raised), wait)
        )
      }
      this.tell(clock, request, InteractionEvent.requested(request, this.redactor))
      return Effect.flatMap(this.showAll(everybody, raised), wait)
    })
  }

  /** Settled, or the asker does not wait any more: writes it down, tells it, and closes the dialogs that are left. */
  private ended(
    raised: Raised,
    awaited: Exit.Exit<AnyAnswered, InteractionError>
  ): Effect.Effect<AnyAnswered, InteractionError> {
    const { clock, options, request } = raised
    let exit = awaited
    // Interrupted while waiting: whoever asked does not want the answer any more.
    if (Exit.isFailure(awaited) && Cause.isInterrupted(awaited.cause)) {
      const why = options?.withdrawn?.()
      if (why !== undefined) exit = Exit.fail(why)
      this.pending.settle(request.requestId, exit, "the asker")
    }
    this.raised.delete(request.requestId)
    const over = (exit: Exit.Exit<AnyAnswered, InteractionError>) => {
      this.tell(clock, request, InteractionEvent.settled(request, exit, this.redactor))
      raised.dismissAll()
      return exit
    }
    const { audit, journal } = this.options
    const nothingToWrite = audit === undefined && journal === undefined
    return nothingToWrite ? over(exit) : Effect.flatMap(InteractionRecord.settled(this.options, request, exit), over)
  }

  /** Writes down that the request is raised, and tells it. True: it has its end already, and nobody is asked. */
  private begun(clock: Clock.Clock, request: InteractionRequest): Effect.Effect<boolean> {
    return Effect.map(InteractionRecord.raised(this.options, request), (end) => {
      this.tell(clock, request, InteractionEvent.requested(request, this.redactor))
      if (end === undefined) return false
      this.pending.settle(request.requestId, end, Exit.isSuccess(end) ? end.value.by : "the journal")
      return true
    })
  }

  private showAll(everybody: ReadonlyArray<Attachment>, raised: Raised): Effect.Effect<void> {
    const [first] = everybody
    const shown =
      first !== undefined && everybody.length === 1
        ? this.post(first, raised)
        : Effect.forEach(everybody, (attachment) => this.post(attachment, raised), { discard: true })
    return Effect.map(shown, () => this.endIfNobodyIsLeft(raised))
  }

  /** Shows a request that was just raised: without a fiber to an interactor that needs none. */
  private post(attachment: Attachment, raised: Raised): Effect.Effect<void> {
    const { interactor } = attachment
    const { options, request } = raised
    // Whoever comes for the prompt slot was rechecked as it got it.
    const isRechecked = options?.recheck === undefined || Interaction.takesPromptSlot(request.interaction._tag)
    if (interactor.post === undefined || !isRechecked) return this.show(attachment, raised)
    if (!this.isToShow(attachment, raised)) return Effect.void
    const came = (exit: Exit.Exit<AnyAnswered, InteractionError>) =>
      this.came(attachment, raised, checked(request, interactor.id, exit))
    return Effect.matchCause(interactor.post(request, came), {
      onFailure: (cause) => came(Exit.failCause(cause)),
      onSuccess: (withdraw) => this.shows(attachment, raised, withdraw)
    })
  }

  /** Starts one interactor on one request, in a fiber that ends with the request, the attachment or the broker. */
  private show(attachment: Attachment, raised: Raised): Effect.Effect<void> {
    if (!this.isToShow(attachment, raised)) return Effect.void
    const { request, options } = raised
    const by = attachment.interactor.id
    // An interactor is foreign code: it may throw before it is an effect, or hand back what is no answer.
    const asking = Effect.flatMap(
      Effect.suspend(() => attachment.interactor.request(request, options)),
      (answered) => checked(request, by, Exit.succeed(answered))
    )
    const watched =
      request.interaction._tag === "Clarify"
        ? Effect.provideService(asking, FormProgress, (progress) =>
            Effect.sync(() =>
              this.tell(raised.clock, request, InteractionEvent.progressed(request, progress, this.redactor))
            )
          )
        : asking
    const run = Effect.map(Effect.exit(watched), (exit) => this.came(attachment, raised, exit))
    raised.join(attachment)
    return Effect.map(Effect.forkIn(Effect.interruptible(run), this.scope), (fiber) =>
      this.shows(attachment, raised, fiber)
    )
  }

  /** Between any two steps the attachment may have left, or the request may have ended. */
  private isToShow(attachment: Attachment, raised: Raised): boolean {
    return this.attached.includes(attachment) && this.raised.get(raised.request.requestId) === raised
  }

  private shows(attachment: Attachment, raised: Raised, by: By): void {
    // Nobody who ended the request or detached meanwhile could know of this.
    if (!this.isToShow(attachment, raised) || !raised.showBy(attachment, by)) dismiss(by)
  }

  /** What one interactor says. */
  private came(attachment: Attachment, raised: Raised, exit: Exit.Exit<AnyAnswered, InteractionError>): void {
    const { clock, request } = raised
    const { requestId } = request
    const by = attachment.interactor.id
    if (Exit.isSuccess(exit)) {
      if (!this.pending.settle(requestId, exit, exit.value.by)) this.tellLate(clock, requestId, by)
      return
    }
    const error = failureOf(request, by, exit.cause)
    // Somebody's decision to withdraw the question ends it for all.
    if (error._tag === "InteractionCancelled" && error.by !== undefined) {
      this.pending.settle(requestId, Exit.fail(error), error.by)
      return
    }
    raised.fail(error)
    const told = this.redactor.text(error.message)
    this.tell(clock, request, { _tag: "InteractorFailed", requestId, interactor: by, reason: told })
    this.leave(attachment, raised)
  }

  private leave(attachment: Attachment, raised: Raised): void {
    raised.leave(attachment)
    this.endIfNobodyIsLeft(raised)
  }

  private endIfNobodyIsLeft(raised: Raised): void {
    if (raised.hasShowing()) return
    const { requestId } = raised.request
    if (raised.lastError === undefined && this.options.whenNobody === "wait") return
    const error = raised.lastError ?? new NoInteractor({ requestId })
    this.pending.settle(requestId, Exit.fail(error), "nobody")
  }

  private tellLate(clock: Clock.Clock, requestId: string, by: string): void {
    const winner = this.pending.settledBy(requestId)
    if (winner === undefined) return
    const { sessionId, agent } = this.options.origin ?? Origin.outside
    const at = clock.unsafeCurrentTimeMillis()
    this.options.bus.unsafePublish({ _tag: "LateAnswer", at, sessionId, agent, requestId, by, winner })
  }

  private tell(clock: Clock.Clock, { agentPath, correlationId, sessionId }: InteractionRequest, body: AgentEvent.Body) {
    const at = clock.unsafeCurrentTimeMillis()
    const stamp = {
      at,
      sessionId,
      agent: agentPath,
      correlationId: correlationId === "none" ? undefined : correlationId
    }
    this.options.bus.unsafePublish(AgentEvent.make(stamp, body))
  }
}
