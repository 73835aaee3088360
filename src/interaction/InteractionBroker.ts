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
import * as FiberId from "effect/FiberId"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
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
  InteractorUnavailable,
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

type AnyAnswered = Interactor.Answered<Interaction.Interaction>

interface Raised {
  readonly request: InteractionRequest
  readonly options: Interactor.Options<Interaction.Interaction> | undefined
  /** Who is showing it, and in which fiber; no fiber yet for one that is about to. */
  readonly shown: Map<Attachment, Fiber.RuntimeFiber<void> | undefined>
  /** The last failure of those who left, timeouts before others. */
  lastError: InteractionError | undefined
}

interface Attachment {
  readonly interactor: Interactor.Service
}

class Broker implements Service {
  private readonly pending = Pending.make<InteractionRequest, AnyAnswered, InteractionError>()
  private readonly raised = new Map<RequestId, Raised>()
  private readonly attached = new Set<Attachment>()
  private readonly slot = DialogQueue.make()
  private readonly redactor: Redaction.Redactor
  private closed = false

  constructor(
    private readonly options: Options,
    private readonly scope: Scope.Scope
  ) {
    this.redactor = options.redactor ?? Redaction.shapesOnly
  }

  readonly interactor: Interactor.Service = {
    id: "broker",
    relay: false,
    request: <I extends Interaction.Interaction>(
      request: InteractionRequest<I>,
      options?: Interactor.Options<I>
    ): Effect.Effect<Interactor.Answered<I>, InteractionError> => {
      const { spans = Spans.off } = this.options
      const raise = spans.within(
        () => InteractionEvent.spanOf(request, spans),
        this.raise(request, options as Raised["options"]) as Effect.Effect<Interactor.Answered<I>, InteractionError>
      )
      if (!Interaction.takesPromptSlot(request.interaction._tag)) return raise
      return this.slot.hold(Interactor.rechecked(options, raise))
    }
  }

  readonly attach = (interactor: Interactor.Service): Effect.Effect<void, never, Scope.Scope> =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.suspend(() => {
          const attachment: Attachment = { interactor }
          this.attached.add(attachment)
          return Effect.as(
            Effect.forEach([...this.raised.values()], (raised) => this.show(attachment, raised), { discard: true }),
            attachment
          )
        }),
        (attachment) =>
          Effect.suspend(() => {
            this.attached.delete(attachment)
            const showing = [...this.raised.values()].flatMap((raised) => raised.shown.get(attachment) ?? [])
            return Effect.zipRight(
              Fiber.interruptAll(showing),
              Effect.sync(() => {
                for (const raised of this.raised.values()) this.leave(attachment, raised)
              })
            )
          })
      )
    )

  readonly answer = (requestId: string, by: string, input: unknown): Effect.Effect<void, AnswerRejected> =>
    Effect.suspend(() => {
      const request = this.pending.get(requestId)
      if (request === undefined) return this.reject(requestId, by)
      const decoded = Interaction.decodeAnswer(request.interaction, input)
      if (Either.isLeft(decoded)) {
        return new MalformedAnswer({ requestId, kind: request.interaction._tag, reason: decoded.left })
      }
      this.pending.settle(requestId, Exit.succeed({ answer: decoded.right, by, how: "answered" }), by)
      return Effect.void
    })

  readonly cancel = (requestId: string, by: string): Effect.Effect<boolean> =>
    Effect.sync(() => {
      const request = this.pending.get(requestId)
      if (request === undefined) return false
      const exit = Exit.fail(new InteractionCancelled({ requestId: request.requestId, by }))
      return this.pending.settle(requestId, exit, by)
    })

  readonly open: Effect.Effect<ReadonlyArray<InteractionRequest>> = Effect.sync(() => this.pending.list())

  readonly close: Effect.Effect<void> = Effect.sync(() => {
    this.closed = true
    for (const { requestId } of this.pending.list()) {
      this.pending.settle(requestId, Exit.fail(new InteractionCancelled({ requestId })), "the end of the broker")
    }
  })

  private reject(requestId: string, by: string): Effect.Effect<never, AnswerRejected> {
    const winner = this.pending.settledBy(requestId)
    return winner === undefined
      ? new UnknownRequest({ requestId })
      : Effect.zipRight(
          Effect.map(Clock.currentTimeMillis, (at) => {
            const { sessionId, agent } = this.options.origin ?? Origin.outside
            this.options.bus.unsafePublish({ _tag: "LateAnswer", at, sessionId, agent, requestId, by, winner })
          }),
          new InteractionAlreadyAnswered({ requestId: requestId as RequestId, winner })
        )
  }

  private raise(request: InteractionRequest, options: Raised["options"]): Effect.Effect<AnyAnswered, InteractionError> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.clockWith((clock) => {
        if (this.closed) return new InteractionCancelled({ requestId: request.requestId })
        const entry = this.pending.open(request)
        const raised: Raised = { request, options, shown: new Map(), lastError: undefined }
        this.raised.set(request.requestId, raised)
        // All are counted in before the first is asked, so that one which leaves at once does not look like the last.
        const everybody = [...this.attached]
        for (const attachment of everybody) raised.shown.set(attachment, undefined)
        const over = (exit: Exit.Exit<AnyAnswered, InteractionError>) => {
          this.tell(clock, request, InteractionEvent.settled(request, exit, this.redactor))
          dismiss(raised.shown.values())
          return exit
        }
        const ended = (awaited: Exit.Exit<AnyAnswered, InteractionError>) => {
          let exit = awaited
          // Interrupted while waiting: whoever asked does not want the answer any more.
          if (Exit.isFailure(awaited) && Cause.isInterrupted(awaited.cause)) {
            const why = options?.withdrawn?.()
            if (why !== undefined) exit = Exit.fail(why)
            this.pending.settle(request.requestId, exit, "the asker")
          }
          this.raised.delete(request.requestId)
          const { audit, journal } = this.options
          const nothingToWrite = audit === undefined && journal === undefined
          return nothingToWrite
            ? over(exit)
            : Effect.flatMap(InteractionRecord.settled(this.options, request, exit), over)
        }
        const wait = () =>
          Effect.matchCauseEffect(restore(entry.await), {
            onFailure: (cause) => ended(Exit.failCause(cause)),
            onSuccess: (answered) => ended(Exit.succeed(answered))
          })
        const ask = () =>
          Effect.flatMap(this.showAll(everybody, raised), () => {
            this.endIfNobodyIsLeft(raised)
            return wait()
          })
        const tell = () => this.tell(clock, request, InteractionEvent.requested(request, this.redactor))
        if (this.options.journal !== undefined) {
          return Effect.flatMap(this.begun(request, tell), (isSettled) => (isSettled ? wait() : ask()))
        }
        tell()
        return ask()
      })
    )
  }

  /** Writes down that the request is raised, and tells it. True: it has its end already, and nobody is asked. */
  private begun(request: InteractionRequest, tell: () => void): Effect.Effect<boolean> {
    return Effect.map(InteractionRecord.raised(this.options, request), (end) => {
      tell()
      if (end === undefined) return false
      this.pending.settle(request.requestId, end, Exit.isSuccess(end) ? end.value.by : "the journal")
      return true
    })
  }

  private showAll(everybody: ReadonlyArray<Attachment>, raised: Raised): Effect.Effect<void> {
    const [first] = everybody
    return first !== undefined && everybody.length === 1
      ? this.show(first, raised)
      : Effect.forEach(everybody, (attachment) => this.show(attachment, raised), { discard: true })
  }

  /** Starts one interactor on one request, in a fiber that ends with the request, the attachment or the broker. */
  private show(attachment: Attachment, raised: Raised): Effect.Effect<void> {
    const { request, options } = raised
    const { requestId } = request
    // Between any two steps the attachment may have left, or the request may have ended.
    if (!this.attached.has(attachment) || this.raised.get(requestId) !== raised) return Effect.void
    const by = attachment.interactor.id
    // An interactor is foreign code: it may throw before it is an effect, or hand back what is no answer.
    const asking = Effect.flatMap(
      Effect.suspend(() => attachment.interactor.request(request, options)),
      (answered) => {
        const misfit = Interaction.misfit(request.interaction, answered.answer)
        return misfit === undefined
          ? Effect.succeed(answered)
          : new InteractorUnavailable({ requestId, by, reason: misfit })
      }
    )
    const watched =
      request.interaction._tag === "Clarify"
        ? Effect.provideService(asking, FormProgress, (progress) =>
            this.publish(request, InteractionEvent.progressed(request, progress, this.redactor))
          )
        : asking
    const run = Effect.exit(watched).pipe(
      Effect.flatMap((exit) => {
        if (Exit.isSuccess(exit)) {
          return this.pending.settle(requestId, exit, exit.value.by)
            ? Effect.void
            : Effect.ignore(this.reject(requestId, by))
        }
        // Being dismissed ends this fiber before it gets here; an interruption that does get here is its own.
        const reason = Cause.isInterruptedOnly(exit.cause) ? "it was interrupted" : "it crashed"
        const error = Option.getOrElse(
          Cause.failureOption(exit.cause),
          () => new InteractorUnavailable({ requestId, by, reason })
        )
        // Somebody's decision to withdraw the question ends it for all.
        if (error._tag === "InteractionCancelled" && error.by !== undefined) {
          this.pending.settle(requestId, Exit.fail(error), error.by)
          return Effect.void
        }
        if (raised.lastError?._tag !== "InteractionTimedOut") raised.lastError = error
        return Effect.map(
          this.publish(request, {
            _tag: "InteractorFailed",
            requestId,
            interactor: by,
            reason: this.redactor.text(error.message)
          }),
          () => this.leave(attachment, raised)
        )
      })
    )
    raised.shown.set(attachment, undefined)
    return Effect.flatMap(Effect.forkIn(Effect.interruptible(run), this.scope), (fiber) => {
      // Nobody who ended the request or detached meanwhile could know of this fiber.
      if (!raised.shown.has(attachment) || this.raised.get(requestId) !== raised) dismiss([fiber])
      else raised.shown.set(attachment, fiber)
      return Effect.void
    })
  }

  private leave(attachment: Attachment, raised: Raised): void {
    raised.shown.delete(attachment)
    this.endIfNobodyIsLeft(raised)
  }

  private endIfNobodyIsLeft(raised: Raised): void {
    if (raised.shown.size > 0) return
    const { requestId } = raised.request
    if (raised.lastError === undefined) {
      if (this.options.whenNobody === "wait") return
      this.pending.settle(requestId, Exit.fail(new NoInteractor({ requestId })), "nobody")
    } else {
      this.pending.settle(requestId, Exit.fail(raised.lastError), "nobody")
    }
  }

  private publish(request: InteractionRequest, body: AgentEvent.Body): Effect.Effect<void> {
    return Effect.clockWith((clock) => {
      this.tell(clock, request, body)
      return Effect.void
    })
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

/** Interrupts without waiting: an interactor that is slow to close its dialog must not hold up the answer. */
const dismiss = (fibers: Iterable<Fiber.RuntimeFiber<void> | undefined>): void => {
  // Who answered has ended by now, mostly, and need not be woken for that.
  for (const fiber of fibers) if (fiber?.unsafePoll() === null) fiber.unsafeInterruptAsFork(FiberId.none)
}
