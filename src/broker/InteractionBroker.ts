/**
 * The interactor that asks all attached interactors at once. The first answer wins.
 *
 * ```
 *  request ─► prompt slot ─► recheck ─► journal ─► InteractionRequested ─┬─► interactor 1, in a fiber of its own
 *  (kinds that grant authority wait here, one at a time)                 ├─► interactor 2, in a fiber of its own
 *                                                                        └─► answer(id) from outside
 *  first to settle ─► journal, audit ─► settling event ─► the other dialogs close ─► return
 * ```
 *
 * An interactor that fails, times out or closes leaves the race. When all have left, the request ends. A request holds the
 * slot only while this broker shows it.
 *
 * @since 0.1.0
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
import * as LazyModule from "../core/LazyModule.js"
import type { RequestId } from "../core/Id.js"
import type { Restore } from "../core/Interruption.js"
import * as Origin from "../core/Origin.js"
import * as Redaction from "../core/Redaction.js"
import * as Spans from "../core/Spans.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import * as FairLock from "../internal/FairLock.js"
import * as Ballot from "../interaction/Ballot.js"
import { FormProgress } from "../interaction/FormProgress.js"
import * as Interaction from "../interaction/Interaction.js"
import {
  InteractionAlreadyAnswered,
  InteractionCancelled,
  InteractorUnavailable,
  MalformedAnswer,
  NoInteractor,
  UnknownRequest,
  VoteRefused,
  type AnswerRejected,
  type InteractionError
} from "../interaction/InteractionError.js"
import * as InteractionEvent from "../interaction/InteractionEvent.js"
import { isResumed, type InteractionRequest } from "../interaction/InteractionRequest.js"
import * as InteractorCall from "../interaction/InteractorCall.js"
import * as Interactor from "../interaction/Interactor.js"
import * as PermissionOption from "../interaction/PermissionOption.js"
import * as Principal from "../interaction/Principal.js"
import { RecentSettlements } from "../interaction/RecentSettlements.js"
import * as Tally from "../interaction/Tally.js"
import type * as BallotBox from "./BallotBox.js"
import * as InteractionAudit from "./InteractionAudit.js"
import type { InteractionJournal, Kept } from "./InteractionJournal.js"

export type { InteractionJournal, Kept } from "./InteractionJournal.js"

/**
 * Attaches interactors, and takes answers by request id.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** The broker, as an interactor. */
  readonly interactor: Interactor.Service
  /**
   * Attaches an interactor until the scope closes; it is asked all open requests at once. Closing the scope closes its
   * dialogs; the other interactors keep the open requests.
   */
  readonly attach: (interactor: Interactor.Service) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Answers an open request with an encoded answer from outside, under the same rules as every interactor. `roles`: those
   * that the caller knows the author to have.
   */
  readonly answer: (
    requestId: string,
    by: string,
    answer: unknown,
    roles?: ReadonlyArray<string>
  ) => Effect.Effect<void, AnswerRejected>
  /**
   * Withdraws an open request. False when it is not open. A reserved call takes it from people who have a vote; `roles` as for
   * `answer`.
   */
  readonly cancel: (requestId: string, by: string, roles?: ReadonlyArray<string>) => Effect.Effect<boolean, VoteRefused>
  /** The open requests, oldest first. */
  readonly open: Effect.Effect<ReadonlyArray<InteractionRequest>>
}

/**
 * The broker of an agent, for programs that attach interactors to it.
 *
 * @since 0.1.0
 * @category services
 */
export class InteractionBroker extends Context.Tag("assent/broker/InteractionBroker")<InteractionBroker, Service>() {}

/**
 * Ends the turn of the root. An agent that has ended is let go by it: a broker outlives it for a while.
 *
 * @internal
 */
export interface Halting {
  halt(detail: string): Effect.Effect<void>
}

/**
 * Options of a broker: where it publishes, what it masks and where it records. Only the bus is required.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The bus that receives the events of settled requests. */
  readonly bus: EventBus.Service
  /** The root session the broker belongs to. */
  readonly origin?: Origin.Origin | undefined
  /** If no interactor is attached: fail at once, or wait until one attaches. Default: `fail`. */
  readonly whenNobody?: "fail" | "wait" | undefined
  readonly redactor?: Redaction.Redactor | undefined
  /** Records settled interactions, except approvals, which the gate records. Default: no record. */
  readonly audit?: AuditTrail.Service | undefined
  /** Stores requests, so that another process can resume them. Default: requests are not stored. */
  readonly journal?: InteractionJournal | undefined
  /** Default: none. */
  readonly spans?: Spans.Service | undefined
  /** @internal What is behind the `halt` in its interactors' options. */
  readonly halting?: Halting | undefined
}

/**
 * Makes a broker. Closing the scope cancels open requests, waiting requests and later ones.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.flatMap(Effect.scope, (scope) => {
    const broker = new Broker(options, scope)
    return Effect.as(
      Scope.addFinalizerExit(scope, () => broker.close),
      broker
    )
  })

/**
 * A broker whose owner ends it.
 *
 * @internal
 */
export interface Owned extends Service {
  /** Cancels what is open, what waits in line, and what comes later. */
  readonly close: Effect.Effect<void>
  /** Whether a question is open. */
  readonly isAsking: () => boolean
}

/**
 * A broker with its first interactors, which stay until it is closed. Close the scope before: the fibers that ask live in
 * it.
 *
 * @internal
 */
export const owned = (options: Options, scope: Scope.Scope, interactors: ReadonlyArray<Interactor.Service>): Owned => {
  const broker = new Broker(options, scope)
  broker.begin(interactors)
  return broker
}

/**
 * A broker as the program's interactor.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Omit<Options, "bus"> = {}
): Layer.Layer<InteractionBroker | Interactor.Interactor, never, EventBus.EventBus> =>
  Layer.scopedContext(
    Effect.map(
      Effect.flatMap(EventBus.EventBus, (bus) => make({ ...options, bus })),
      (broker) => Context.make(InteractionBroker, broker).pipe(Context.add(Interactor.Interactor, broker.interactor))
    )
  )

/** @internal Loads what counts votes, where a rule wants several people: later no call waits for that. */
export const load: Effect.Effect<unknown> = Effect.suspend(() => ballots())

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Answered = Interactor.Answered<Interaction.Interaction>

/** How a request ended. */
type End = Exit.Exit<Answered, InteractionError>

type Steps<A> = Effect.fn.Return<A, InteractionError>

/** An interactor that shows a request. */
interface Dialog {
  readonly attachment: Attachment
  /** What shows it: a fiber, or the function that withdraws a posted question. Nothing yet when it is about to be asked. */
  by: Fiber.RuntimeFiber<void> | Withdraw | undefined
}

type Withdraw = NonNullable<ReturnType<InteractorCall.Posting["post"]>>

/** An attached interactor. The same interactor may be attached twice. */
interface Attachment {
  readonly interactor: Interactor.Service
}

/** Loaded for the first call that several people have to agree on. */
const ballots = LazyModule.getter(() => import("./BallotBox.js"))

const none: ReadonlyMap<string, OpenRequest> = new Map()

const nobody: ReadonlyArray<Dialog> = []

const parked = "this process is ending. The question stays open; answer it after the session resumes"

class Broker implements Owned {
  readonly interactor: Interactor.Service = {
    id: "broker",
    relay: false,
    request: (request, options) => this.request(request, options)
  }
  /** The requests that are asked now, by id, oldest first. Made with the first: thousands of brokers may have none. */
  private asked: Map<string, OpenRequest> | undefined
  /** Who settled which request lately. */
  readonly settlements = new RecentSettlements()
  attached: ReadonlyArray<Attachment> = []
  /** Whether an interactor was ever attached. */
  hadSomebody = false
  private readonly slot = FairLock.make()
  private isClosed = false

  constructor(
    readonly options: Options,
    /** The scope of the fibers that ask. */
    readonly scope: Scope.Scope
  ) {}

  get requests(): ReadonlyMap<string, OpenRequest> {
    return this.asked ?? none
  }

  get redactor(): Redaction.Redactor {
    return this.options.redactor ?? Redaction.shapesOnly
  }

  // ---- asking ----

  private request<I extends Interaction.Interaction>(
    request: InteractionRequest<I>,
    options: Interactor.Options<I> | undefined
  ): Effect.Effect<Interactor.Answered<I>, InteractionError> {
    const { interaction } = request
    // The types allow no other kind. Code without types must not show a question that nobody can answer.
    if (!Interaction.isKind(interaction._tag)) return Effect.fail(Interactor.declined(this.interactor.id, request))
    return Effect.uninterruptibleMask((restore) => {
      // A request is settled with an answer of its own kind; the type of all requests cannot say so.
      const open = new OpenRequest(this, request, options as OpenRequest["options"])
      const ending = (steps: Steps<Answered>): Effect.Effect<Interactor.Answered<I>, InteractionError> =>
        Effect.matchCauseEffect(Effect.gen(() => steps) as Effect.Effect<Interactor.Answered<I>, InteractionError>, {
          onFailure: (cause) =>
            // A former process raised it, so its end is recorded. An answer that waits for it counts.
            isResumed(request) && !open.isRaised
              ? ending(this.raise(open, restore, cause))
              : this.finish(open, Effect.failCause(cause)),
          onSuccess: (answered) => this.finish(open, Effect.succeed(answered))
        })
      return ending(this.ask(open, restore))
    })
  }

  /** Asks in line with the others, unless an earlier answer has decided it by now. */
  private *ask(open: OpenRequest, restore: Restore): Steps<Answered> {
    const { options, request } = open
    const why = options?.withdrawn?.()
    if (why !== undefined) return yield* why
    if (Interaction.takesPromptSlot(request.interaction._tag)) {
      if (!this.slot.tryEnter()) yield* this.slot.lineUp(restore)
      open.holdsSlot = true
      const known = options?.recheck === undefined ? Option.none() : yield* restore(options.recheck)
      if (Option.isSome(known)) return InteractorCall.told({ answer: known.value, by: "policy", how: "recheck" })
    }
    const { spans = Spans.off } = this.options
    if (Spans.areOff(spans)) return yield* this.raise(open, restore)
    const raised = Effect.gen(() => this.raise(open, restore))
    return yield* spans.within(() => InteractionEvent.spanOf(request, spans), raised)
  }

  /** Asks until somebody settles it. Only the wait for that is interruptible. `over`: why it is over before it is asked. */
  private *raise(open: OpenRequest, restore: Restore, over?: Cause.Cause<InteractionError>): Steps<Answered> {
    open.isRaised = true
    const { request } = open
    const { interaction, requestId } = request
    const loaded = Ballot.isReserved(interaction) ? yield* ballots() : undefined
    if (this.isClosed) return yield* new InteractionCancelled({ requestId })
    if (loaded !== undefined && Ballot.isReserved(interaction)) open.openBallot(loaded, interaction)
    this.asked ??= new Map()
    this.asked.set(requestId, open)
    const before = this.options.journal === undefined ? undefined : yield* open.record(this.options.journal)
    open.publish(InteractionEvent.requested(request, this.redactor))
    if (before !== undefined) open.endAsBefore(before)
    open.ballot?.count()
    if (over !== undefined) open.withdraw(Exit.failCause(over))
    yield* open.show()
    if (open.end === undefined) {
      const awaited = yield* Effect.exit(restore(open.await))
      if (Exit.isFailure(awaited) && Cause.isInterrupted(awaited.cause)) open.withdraw(awaited)
    }
    this.forget(open)
    const end = yield* open.recordEnd()
    open.publish(InteractionEvent.settled(request, end, this.redactor))
    open.options?.settled?.(end)
    return yield* end
  }

  /** Closes the dialogs of a request that has ended or crashed, and lets the next one have the slot. */
  private finish<A, E>(open: OpenRequest, end: Effect.Effect<A, E>): Effect.Effect<A, E> {
    this.forget(open)
    open.dismiss()
    if (open.holdsSlot) this.slot.leave()
    return end
  }

  forget(open: OpenRequest): void {
    const { requestId } = open.request
    if (this.asked?.get(requestId) === open) this.asked.delete(requestId)
  }

  publishLate(clock: Clock.Clock, requestId: string, by: string): void {
    const winner = this.winnerOf(requestId)
    if (winner === undefined) return
    const { bus, origin = Origin.outside } = this.options
    EventPublisher.publish(bus, clock, origin, { _tag: "LateAnswer", requestId, by, winner })
  }

  // ---- attachments ----

  /** Attaches the first interactors, before anything is asked. */
  begin(interactors: ReadonlyArray<Interactor.Service>): void {
    this.attached = interactors.map((interactor) => ({ interactor }))
    this.hadSomebody = interactors.length > 0
  }

  attach(interactor: Interactor.Service): Effect.Effect<void, never, Scope.Scope> {
    const attachment: Attachment = { interactor }
    const attached = Effect.acquireRelease(
      Effect.sync(() => {
        this.attached = [...this.attached, attachment]
        this.hadSomebody = true
      }),
      () => Effect.uninterruptible(this.detach(attachment))
    )
    return Effect.uninterruptible(
      Effect.zipRight(
        attached,
        Effect.suspend(() =>
          Effect.forEach([...this.requests.values()], (open) => open.showTo(attachment), { discard: true })
        )
      )
    )
  }

  private detach(attachment: Attachment): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      this.attached = this.attached.filter((other) => other !== attachment)
      yield* Fiber.interruptAll([...this.requests.values()].flatMap((open) => open.detach(attachment)))
      for (const open of this.requests.values()) open.endIfNobodyIsLeft()
    })
  }

  // ---- answers from outside ----

  answer(
    requestId: string,
    by: string,
    input: unknown,
    roles?: ReadonlyArray<string>
  ): Effect.Effect<void, AnswerRejected> {
    return Effect.suspend((): Effect.Effect<void, AnswerRejected> => {
      const open = this.requests.get(requestId)
      if (open === undefined || open.end !== undefined) return this.reject(requestId, by)
      if (this.isParked) return new VoteRefused({ requestId, by, reason: parked, unwritten: true })
      const { interaction } = open.request
      const decoded = Interaction.decodeAnswer(interaction, input)
      if (Either.isLeft(decoded)) {
        return new MalformedAnswer({ requestId, kind: interaction._tag, reason: decoded.left })
      }
      const answered: Answered = { answer: decoded.right, by, how: "answered", ...(roles && { roles }) }
      if (open.ballot !== undefined) return Effect.asVoid(open.ballot.file(asVote(answered)))
      open.settle(Exit.succeed(answered), by)
      return Effect.void
    })
  }

  /** What is open stays open for another process. */
  private get isParked(): boolean {
    return this.options.journal?.isParked() === true
  }

  /** Here, or in a former process. */
  private winnerOf(requestId: string): string | undefined {
    return this.settlements.settledBy(requestId) ?? this.options.journal?.settledBy(requestId)
  }

  private reject(requestId: string, by: string): Effect.Effect<never, AnswerRejected> {
    const winner = this.winnerOf(requestId)
    if (winner === undefined) return new UnknownRequest({ requestId })
    return Effect.clockWith((clock) => {
      this.publishLate(clock, requestId, by)
      return new InteractionAlreadyAnswered({ requestId: requestId as RequestId, by: winner })
    })
  }

  /** Nobody without a vote withdraws a reserved question. */
  cancel(requestId: string, by: string, roles?: ReadonlyArray<string>): Effect.Effect<boolean, VoteRefused> {
    return Effect.suspend(() => {
      const open = this.requests.get(requestId)
      if (open === undefined || open.end !== undefined) return Effect.succeed(false)
      if (this.isParked) return new VoteRefused({ requestId, by, reason: parked, unwritten: true })
      const { interaction } = open.request
      const reason = Ballot.isReserved(interaction) ? Tally.refusal(interaction.needs, { by, roles }) : undefined
      if (reason !== undefined) return new VoteRefused({ requestId, by, reason })
      const cancelled = new InteractionCancelled({ requestId: open.request.requestId, by })
      return Effect.succeed(open.settle(Exit.fail(cancelled), by))
    })
  }

  // ---- state ----

  get open(): Effect.Effect<ReadonlyArray<InteractionRequest>> {
    return Effect.sync(() =>
      Array.from(this.requests.values()).flatMap(({ end, request }) => (end === undefined ? [request] : []))
    )
  }

  isAsking(): boolean {
    return this.requests.size > 0
  }

  get close(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.isClosed = true
      for (const open of this.requests.values()) {
        const { requestId } = open.request
        open.settle(Exit.fail(new InteractionCancelled({ requestId })), "the end of the broker")
      }
    })
  }
}

/**
 * A request that the broker asks: its dialogs, its votes, its end, and what the journal and the audit have of it.
 *
 * ```
 *  raised in the journal ─► shown to each interactor ─┬─ answered ─────────────► settled by the first
 *                                                     ├─ withdrawn by somebody ─► settled
 *                                                     └─ failed, detached ──────► leaves; settled when nobody is left
 * ```
 *
 * All writes happen in synchronous steps. The first `settle` fixes the end.
 */
class OpenRequest {
  /** How it ended; nothing while it is open. */
  end: End | undefined
  /** Files answers that are votes. Only reserved calls have one. */
  ballot: BallotBox.BallotBox | undefined
  /** The asker's clock. */
  private readonly clock = clockOf(Fiber.getCurrentFiber())
  /** It has the prompt slot. */
  holdsSlot = false
  isRaised = false
  /** Resumes the asker, who waits for the end. */
  private resume: ((end: End) => void) | undefined
  /** Who shows it. An interactor is counted in before it is asked: it may leave at once. */
  private dialogs: ReadonlyArray<Dialog> = nobody
  /** The journal has the request, and the attached interactors were asked. */
  private isShown = false
  /** A channel that closed had it, and it stays open for another process. */
  private isParted = false
  /** The last failure of an interactor that left; a timeout takes precedence. */
  private lastError: InteractionError | undefined

  constructor(
    private readonly broker: Broker,
    readonly request: InteractionRequest,
    readonly options: Interactor.Options<Interaction.Interaction> | undefined
  ) {}

  /** Waits for the end. Nobody but the asker does: a `Deferred` would take 0.7 KB more in each agent that waits. */
  get await(): Effect.Effect<Answered, InteractionError> {
    return Effect.async((resume) => {
      if (this.end === undefined) this.resume = resume
      else resume(this.end)
    })
  }

  publish(body: AgentEvent.Body): void {
    InteractionEvent.publish(this.broker.options.bus, this.clock, this.request, body)
  }

  // ---- the end ----

  /** Ends it. False when it had ended before. */
  settle(end: End, by: string): boolean {
    if (this.end !== undefined) return false
    const { interaction, requestId } = this.request
    this.broker.settlements.add(requestId, by)
    // An approval for one call is never reported as more.
    const isOnce = interaction._tag === "Approve" && interaction.onceOnly === true
    this.end = Exit.map(end, (answered) => InteractorCall.told(isOnce ? onceOnly(answered) : answered))
    this.resume?.(this.end)
    return true
  }

  /** The journal has its end already. Votes count anew, because the rules may have changed. */
  endAsBefore(end: End): void {
    if (this.ballot !== undefined && Exit.isSuccess(end)) this.ballot.count(end.value.at)
    else this.settle(end, Exit.isSuccess(end) ? end.value.by : "the journal")
  }

  /** The asker was interrupted while it waited. */
  withdraw(interrupted: End): void {
    const why = this.options?.withdrawn?.()
    this.settle(why === undefined ? interrupted : Exit.fail(why), "the asker")
  }

  /** Closes the dialogs without waiting: an interactor that is slow to close its dialog must not hold up the answer. */
  dismiss(): void {
    const { dialogs } = this
    this.dialogs = nobody
    for (const { by } of dialogs) if (by !== undefined) dismiss(by, this.ended)
  }

  // ---- journal and audit ----

  /** Makes the request durable. Yields its end if nobody is to be asked: it has one already, or cannot be recorded. */
  record(journal: InteractionJournal): Effect.Effect<End | undefined> {
    const before = endOf(this.request, journal.kept(this.request.requestId))
    if (before !== undefined) return Effect.succeed(before)
    return Effect.match(journal.raised(this.request), {
      onFailure: (reason) => Exit.fail(this.unavailable("journal", reason)),
      onSuccess: () => undefined
    })
  }

  /** Records the end, and yields the end that counts: an answer that could not be recorded does not. */
  *recordEnd(): Effect.fn.Return<End> {
    const { audit, journal, origin } = this.broker.options
    const { request } = this
    const uncounted = (end: End, by: string, reason: string): End =>
      Exit.isFailure(end) ? end : Exit.fail(this.unavailable(by, reason))
    let isLeftOpen = false
    let end: End = this.end ?? Exit.interrupt(FiberId.none)
    const rootSessionId = origin?.rootSessionId ?? request.sessionId
    const now = this.clock.unsafeCurrentTimeMillis()
    const entryOf = (end: End) =>
      Option.getOrUndefined(InteractionAudit.settled(request, end, { rootSessionId, now, isLeftOpen }))
    if (journal !== undefined) {
      const settled = Effect.suspend(() =>
        journal.isParked() ? Effect.fail(parked) : journal.settled(request, end, audit && entryOf(end))
      )
      const kept = yield* Effect.either(settled)
      // The next process goes on with an open question of a process that is ending.
      isLeftOpen = Either.isLeft(kept) && journal.isParked()
      if (isLeftOpen) end = Exit.fail(new InteractionCancelled({ requestId: request.requestId }))
      else if (Either.isLeft(kept) && Exit.isSuccess(end)) {
        end = uncounted(end, "journal", kept.left)
        yield* Effect.ignore(settled)
      }
    }
    // A store that keeps the audit has it with the entry.
    if (audit === undefined || audit.note) return end
    const entry = entryOf(end)
    if (entry === undefined) return end
    const written = yield* Effect.either(audit.record(entry))
    return Either.isLeft(written) ? uncounted(end, "audit", written.left.message) : end
  }

  /** Records a vote. The audit is first: a vote that is in the journal is not given again. */
  private recordVote(vote: Ballot.Cast): Effect.Effect<void, string> {
    const { audit, journal, origin } = this.broker.options
    const { request } = this
    return Effect.gen(this, function* () {
      const now = this.clock.unsafeCurrentTimeMillis()
      const entry = audit && InteractionAudit.voted(request, vote, origin?.rootSessionId, now)
      // A store that keeps the audit has it with the entry.
      if (entry && !audit.note && journal?.isParked() !== true)
        yield* Effect.mapError(audit.record(entry), ({ message }) => message)
      if (journal !== undefined) yield* journal.voted(request, vote, entry)
    })
  }

  // ---- votes ----

  openBallot(
    { BallotBox, settledWith }: typeof import("./BallotBox.js"),
    reserved: Interaction.Approve & Ballot.Reserved
  ): void {
    const { journal } = this.broker.options
    const { requestId } = this.request
    const { redactor, settlements } = this.broker
    this.ballot = new BallotBox(
      {
        keep: (_, vote) => this.recordVote(vote),
        tell: (voted, missing) =>
          this.publish({
            _tag: "InteractionVoted",
            requestId,
            kind: reserved._tag,
            ...voted,
            ...(missing === undefined ? {} : { missing: redactor.text(missing) })
          }),
        settledBy: () => (this.end === undefined ? undefined : (settlements.settledBy(requestId) ?? "somebody")),
        settle: (answered) => void this.settle(settledWith(answered), answered.by)
      },
      this.request,
      reserved
    )
    // Votes on an approval, as the type of all votes cannot say.
    const given = (this.options?.votes ?? []) as ReadonlyArray<Ballot.Cast>
    this.ballot.restore([...given, ...(journal?.votes(requestId, reserved.needs.digest) ?? [])])
  }

  // ---- dialogs ----

  /** Asks all attached interactors. All are counted in before the first is asked: one may leave at once. */
  *show(): Effect.fn.Return<void> {
    this.isShown = true
    this.dialogs = this.broker.attached.map((attachment) => ({ attachment, by: undefined }))
    for (const dialog of this.dialogs) {
      const asking = this.ask(dialog)
      if (asking !== undefined) this.showBy(dialog, yield* asking)
    }
    this.endIfNobodyIsLeft()
  }

  /** Asks an interactor that was attached while the request was open. */
  showTo(attachment: Attachment): Effect.Effect<void> {
    return Effect.suspend(() => {
      // The asker itself shows a request to all who are attached, once the request is durable.
      const isMissing = this.isShown && !this.isAsking(attachment) && this.broker.attached.includes(attachment)
      if (!isMissing) return Effect.void
      const dialog: Dialog = { attachment, by: undefined }
      this.dialogs = [...this.dialogs, dialog]
      const asking = this.ask(dialog)
      return asking === undefined ? Effect.void : Effect.map(asking, (fiber) => this.showBy(dialog, fiber))
    })
  }

  /** Counts an interactor out. Yields the fiber in which it shows the request: the caller ends that. */
  detach(attachment: Attachment): ReadonlyArray<Fiber.RuntimeFiber<void>> {
    if (this.isKept) this.isParted = true
    const fibers: Array<Fiber.RuntimeFiber<void>> = []
    for (const dialog of this.dialogs) {
      if (dialog.attachment !== attachment || dialog.by === undefined) continue
      if (typeof dialog.by === "function") dialog.by()
      else fibers.push(dialog.by)
    }
    this.countOut(attachment)
    return fibers
  }

  private isAsking(attachment: Attachment): boolean {
    return this.dialogs.some((dialog) => dialog.attachment === attachment)
  }

  private countOut(attachment: Attachment): void {
    this.dialogs = this.dialogs.filter((dialog) => dialog.attachment !== attachment)
  }

  /** Asks one interactor. Yields nothing if it has no part in this request, or has it without a fiber. */
  private ask(dialog: Dialog): Effect.Effect<Fiber.RuntimeFiber<void>> | undefined {
    const { attachment } = dialog
    // Between any two steps the interactor may have been detached, or the request may have ended.
    if (this.end !== undefined || !this.dialogs.includes(dialog)) return undefined
    const { ballot } = this
    const { id, principal, roles } = attachment.interactor
    const refusal = principal === undefined ? undefined : ballot?.refuses(principal, roles)
    if (refusal !== undefined) {
      if (refusal === "voted") this.leave(attachment)
      else this.fail(attachment, this.unavailable(id, refusal))
      return undefined
    }
    const posted = this.post(attachment)
    if (posted !== undefined) {
      this.showBy(dialog, posted)
      return undefined
    }
    const asking: Effect.Effect<Answered | Interactor.Filed, InteractionError> =
      ballot === undefined ? this.answerOf(attachment) : this.voteOf(attachment, ballot)
    const run = Effect.map(Effect.exit(asking), (exit) => this.onEnd(attachment, exit))
    // It ends with the request, the attachment or the broker.
    return Effect.forkIn(Effect.interruptible(run), this.broker.scope)
  }

  /** The interactor may have been detached, or the request may have ended, before `by` was known. */
  private showBy(dialog: Dialog, by: Fiber.RuntimeFiber<void> | Withdraw): void {
    if (this.dialogs.includes(dialog)) dialog.by = by
    else dismiss(by, this.ended)
  }

  /** Asks one interactor without a fiber, if it can be: see `InteractorCall.posting`. */
  private post(attachment: Attachment): Withdraw | undefined {
    const { ballot, options, request } = this
    const { interactor } = attachment
    // A request for the prompt slot was rechecked when it got the slot.
    const isRechecked = options?.recheck === undefined || Interaction.takesPromptSlot(request.interaction._tag)
    const posting = isRechecked ? postingOf(interactor) : undefined
    if (posting === undefined) return undefined
    const settle = (end: End) =>
      this.onEnd(
        attachment,
        Exit.flatMap(end, (answered) => this.check(interactor, answered))
      )
    return ballot === undefined
      ? posting.post(request, settle)
      : posting.post(ballot.shown, settle, votingOf(ballot, interactor))
  }

  private answerOf({ interactor }: Attachment): Effect.Effect<Answered, InteractionError> {
    const { request } = this
    const { interaction } = request
    // An interactor is foreign code: it may throw before it returns an effect.
    const asking = Effect.flatMap(
      Effect.suspend(() => InteractorCall.ask(interactor, request, { ...this.options, ...this.own })),
      (answered) => this.check(interactor, answered)
    )
    if (interaction._tag !== "Clarify" && interaction._tag !== "Elicit") return asking
    return Effect.provideService(asking, FormProgress, (progress) =>
      Effect.sync(() => this.publish(InteractionEvent.progressed(request, progress, this.broker.redactor)))
    )
  }

  /** Several people may vote through one interactor. Its own answer is its last vote. */
  private voteOf(
    { interactor }: Attachment,
    ballot: BallotBox.BallotBox
  ): Effect.Effect<Interactor.Filed, InteractionError> {
    const { id } = interactor
    const vote = votingOf(ballot, interactor)
    const options = { ...this.options, ...this.own, votes: ballot.cast, vote }
    return Effect.flatMap(
      Effect.suspend(() => interactor.request(ballot.shown, options)),
      (reply) =>
        Effect.catchAll(vote(reply), (rejected): Effect.Effect<Interactor.Filed, InteractionError> => {
          if (rejected._tag !== "InteractionAlreadyAnswered") return this.unavailable(id, rejected.message)
          this.publishLate(id)
          return Effect.succeed("settled")
        })
    )
  }

  /** An answer that does not fit its question counts as a failure, and so does one in the place of a vote. */
  private check({ id }: Interactor.Service, answered: Answered): End {
    const { ballot, request } = this
    const problem =
      ballot === undefined
        ? Interaction.misfit(request.interaction, answered.answer)
        : (ballot.objection(asVote(answered))?.message ?? "its answer was not filed as a vote")
    return problem === undefined ? Exit.succeed(answered) : Exit.fail(this.unavailable(id, problem))
  }

  /** What each interactor gets beside the options of the asker. */
  private get own(): Pick<Interactor.Options<Interaction.Interaction>, "halt" | "ended"> {
    const { halting } = this.broker.options
    return { halt: halting && ((detail) => halting.halt(detail)), ended: () => this.ended }
  }

  private get ended(): Interactor.Ended | undefined {
    if (this.end === undefined) return undefined
    const { broker, clock } = this
    const { requestId } = this.request
    const { by, status } = InteractionEvent.endOf(this.end)
    return { status, by, late: (late) => broker.publishLate(clock, requestId, late) }
  }

  /** A dialog that was dismissed never gets here: an interruption here is the interactor's own. */
  private onEnd(attachment: Attachment, exit: Exit.Exit<Answered | Interactor.Filed, InteractionError>): void {
    const { id, principal, roles } = attachment.interactor
    if (Exit.isSuccess(exit)) {
      const { value } = exit
      if (value === "open") this.leave(attachment)
      else if (value !== "settled" && !this.settle(Exit.succeed(value), value.by)) this.publishLate(id)
      return
    }
    if (this.end !== undefined) return
    const reason = Cause.isInterruptedOnly(exit.cause) ? "it was interrupted" : "it crashed"
    const error = Option.getOrElse(Cause.failureOption(exit.cause), () => this.unavailable(id, reason))
    if (error._tag !== "InteractionCancelled" || error.by === undefined) return this.fail(attachment, error)
    // A person who withdraws the question ends it for all, unless they have no vote.
    const isOwn = principal !== undefined && Principal.isSame(error.by, principal)
    const refusal = this.ballot?.refuses(error.by, isOwn ? roles : undefined)
    if (refusal === undefined || refusal === "voted") this.settle(Exit.fail(error), error.by)
    else this.fail(attachment, this.unavailable(id, refusal))
  }

  private fail(attachment: Attachment, error: InteractionError): void {
    // A channel that closes takes no kept question with it: the process may be ending.
    if (error._tag === "InteractionCancelled" && this.isKept) this.isParted = true
    else if (this.lastError?._tag !== "InteractionTimedOut") this.lastError = error
    const { requestId } = this.request
    const reason = this.broker.redactor.text(error.message)
    this.publish({ _tag: "InteractorFailed", requestId, interactor: attachment.interactor.id, reason })
    this.leave(attachment)
  }

  private leave(attachment: Attachment): void {
    this.countOut(attachment)
    this.endIfNobodyIsLeft()
  }

  endIfNobodyIsLeft(): void {
    if (!this.isShown || this.dialogs.length > 0) return
    const { attached, hadSomebody, options } = this.broker
    const { ballot, lastError } = this
    const isParted = this.isParted || (this.isKept && hadSomebody && attached.length === 0)
    if (lastError === undefined && (options.whenNobody === "wait" || isParted)) return
    const error = ballot !== undefined && hadSomebody ? ballot.missing(lastError) : (lastError ?? this.nobody)
    this.settle(Exit.fail(error), "nobody")
  }

  /** "Nobody was ever attached" and "all have left" are different errors. */
  private get nobody(): InteractionError {
    return this.broker.hadSomebody
      ? this.unavailable("broker", "everybody who could have answered has gone")
      : new NoInteractor({ requestId: this.request.requestId })
  }

  /** Whether another process can go on with it. */
  private get isKept(): boolean {
    return this.broker.options.journal !== undefined
  }

  private publishLate(by: string): void {
    this.broker.publishLate(this.clock, this.request.requestId, by)
  }

  private unavailable(by: string, reason: string): InteractorUnavailable {
    return new InteractorUnavailable({ requestId: this.request.requestId, by, reason })
  }
}

const clockOf = (fiber: Option.Option<Fiber.RuntimeFiber<unknown, unknown>>): Clock.Clock =>
  Context.get(Option.getOrThrow(fiber).currentDefaultServices, Clock.Clock)

/** Closes a dialog without waiting. A fiber that has ended need not be woken for that. */
const dismiss = (by: Fiber.RuntimeFiber<void> | Withdraw, ended: Interactor.Ended | undefined): void => {
  if (typeof by === "function") by(ended)
  else if (by.unsafePoll() === null) by.unsafeInterruptAsFork(FiberId.none)
}

/** An interactor is foreign code: if it throws here, it is asked in a fiber, which sees it crash. */
const postingOf = (interactor: Interactor.Service): InteractorCall.Posting | undefined => {
  try {
    return InteractorCall.posting.of(interactor.request)
  } catch {
    return undefined
  }
}

/** Only an approval is reserved, and its answers are those of an approval; the type of all answers cannot say so. */
const asVote = (answered: Answered) => answered as Interactor.Answered<Interaction.Approve>

/** Files the answers that an interactor gets as votes. */
const votingOf =
  (ballot: BallotBox.BallotBox, { id }: Interactor.Service) =>
  (reply: Interactor.Reply<Interaction.Interaction>): Effect.Effect<Interactor.Filed, AnswerRejected> =>
    ballot.file(asVote(InteractorCall.answered(id, reply)))

/** The answer is one to an approval; the type of all answers cannot say so. */
const onceOnly = (answered: Answered): Answered => ({
  ...answered,
  answer: PermissionOption.once(answered.answer as Interaction.ApproveAnswer)
})

/** How the request ended while no process ran. An end that does not fit belongs to another question. */
const endOf = ({ interaction, requestId }: InteractionRequest, kept: Kept | undefined): End | undefined => {
  if (kept === undefined) return undefined
  const { answer, at, by, how = "answered" } = kept
  if (answer === undefined) return Exit.fail(new InteractionCancelled({ requestId, at, by }))
  const decoded = Interaction.decodeAnswer(interaction, answer)
  return Either.isLeft(decoded) ? undefined : Exit.succeed(InteractorCall.told({ answer: decoded.right, at, by, how }))
}
