/**
 * The interactor that fans out to all attached interactors. The first answer wins.
 *
 * ```
 *  request ─► prompt slot ─► recheck ─► InteractionRequested ─┬─► interactor 1 (asked in a fiber of its own)
 *  (kinds that grant authority wait here, one at a time)      ├─► interactor 2 (posted to, where it takes that)
 *                                                             └─► answer(id) from outside
 *  first to settle ─► settling event ─► the others are interrupted and close their dialogs ─► return
 * ```
 *
 * An interactor that fails, times out or closes leaves the race; when all have left, the request ends. Only a request
 * that is being shown here holds the slot.
 *
 * Each step passes on the next one as a function (continuation passing), for the reason that `PermissionGate` gives:
 * thousands of requests may wait at once, and each keeps one frame. Every step that can fail goes through
 * `OpenRequest.step` or `OpenRequest.after`, which release the prompt slot.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as LateModule from "../core/LateModule.js"
import type { RequestId } from "../core/Id.js"
import type { Restore } from "../core/Interruption.js"
import * as Origin from "../core/Origin.js"
import * as Redaction from "../core/Redaction.js"
import * as Spans from "../core/Spans.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import * as Participants from "./Participants.js"
import * as FairLock from "../internal/FairLock.js"
import { isImmediate } from "../internal/Immediate.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Interaction from "../interaction/Interaction.js"
import {
  InteractionAlreadyAnswered,
  InteractionCancelled,
  MalformedAnswer,
  UnknownRequest,
  VoteRefused,
  type AnswerRejected,
  type InteractionError
} from "../interaction/InteractionError.js"
import * as InteractionEvent from "../interaction/InteractionEvent.js"
import type { InteractionJournal } from "./InteractionJournal.js"
import * as RequestDurability from "./RequestDurability.js"
import type * as BallotBox from "./BallotBox.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Asking from "../interaction/Asking.js"
import * as Interactor from "../interaction/Interactor.js"
import * as Recheck from "../interaction/Recheck.js"
import { RecentSettlements } from "../interaction/PendingRequests.js"
import { OpenRequest } from "./OpenRequest.js"
import * as PermissionOption from "../interaction/PermissionOption.js"

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
  /** Withdraws an open request. False when it is not open. */
  readonly cancel: (requestId: string, by: string) => Effect.Effect<boolean>
  /** What is being asked right now, oldest first. */
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
 * What a broker publishes, masks and records; only the bus is required.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Where the settling events go. */
  readonly bus: EventBus.Service
  /** The root session the broker belongs to. */
  readonly origin?: Origin.Origin | undefined
  /** With nobody attached: fail at once, or wait for the next one to attach. Default: `fail`. */
  readonly whenNobody?: "fail" | "wait" | undefined
  readonly redactor?: Redaction.Redactor | undefined
  /** Where settled interactions are recorded; approvals are not, because the gate records them. Default: nowhere. */
  readonly audit?: AuditTrail.Service | undefined
  /** Where requests are kept, so that another process can go on with them. Default: nowhere. */
  readonly journal?: InteractionJournal | undefined
  /** Default: none. */
  readonly spans?: Spans.Service | undefined
  /** @internal What is behind the `halt` in its interactors' options. */
  readonly halting?: Participants.Halting | undefined
}

/**
 * Makes a broker. Closing the scope cancels what is open, what waits in line, and what comes later.
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

type AnyAnswered = Interactor.Answered<Interaction.Interaction>

/** Loaded for the first call that several people have to agree on. */
const ballots = LateModule.getter(() => import("./BallotBox.js"))

const none: ReadonlyMap<string, OpenRequest> = new Map()
/** Reduces an answer to what could be decided: an approval for one call is never reported as more. */
const decided = (
  { interaction }: InteractionRequest,
  exit: Exit.Exit<AnyAnswered, InteractionError>
): Exit.Exit<AnyAnswered, InteractionError> =>
  interaction._tag === "Approve" && interaction.onceOnly === true
    ? Exit.map(exit, (answered) => ({
        ...answered,
        // The answer is one to an approval; the type of all answers cannot say so.
        answer: PermissionOption.once(answered.answer as Interaction.ApproveAnswer)
      }))
    : exit

const parked = "this process is ending. The question stays open; answer it when the session goes on"

type Ending = Effect.Effect<AnyAnswered, InteractionError>

/** Only an approval is reserved, and its answers are those of an approval; the type of all answers cannot say so. */
const asVote = (answered: AnyAnswered) => answered as Interactor.Answered<Interaction.Approve>

/**
 * From the first step on only waiting is interruptible. Many requests may wait for long, so the stack of a waiting
 * request holds only what goes on with its answer: every step that can fail cleans up after itself.
 */
class BrokerInteractor implements Interactor.Service, Asking.Masked {
  readonly id = "broker"
  readonly relay = false
  readonly request: Interactor.Service["request"]

  constructor(private readonly broker: Broker) {
    this.request = Asking.masked.bind<Interactor.Service["request"]>(
      (request, options) => Effect.uninterruptibleMask((restore) => this.requestMasked(request, options, restore)),
      this
    )
  }

  requestMasked<I extends Interaction.Interaction>(
    request: InteractionRequest<I>,
    options: Interactor.Options<I> | undefined,
    restore: Restore
  ): Effect.Effect<Interactor.Answered<I>, InteractionError> {
    return Effect.withFiberRuntime((fiber) => {
      // A request is settled with an answer of its own kind; the type of all entries cannot say so.
      const raised = new OpenRequest(this.broker, request, options as OpenRequest["options"], fiber, restore)
      return this.broker.ask(raised) as Effect.Effect<Interactor.Answered<I>, InteractionError>
    })
  }
}

class Broker implements Owned, Participants.Host {
  readonly interactor: Interactor.Service = new BrokerInteractor(this)
  /** Created with the first question: thousands of brokers may have none. */
  private questions: Map<string, OpenRequest> | undefined
  private readonly winners = new RecentSettlements()
  private readonly attachments: Participants.Participants
  private readonly slot = FairLock.make()
  private closed = false

  constructor(
    readonly options: Options,
    scope: Scope.Scope
  ) {
    this.attachments = new Participants.Participants(this, scope)
  }

  get raised(): ReadonlyMap<string, OpenRequest> {
    return this.questions ?? none
  }

  get redactor(): Redaction.Redactor {
    return this.options.redactor ?? Redaction.shapesOnly
  }

  begin(interactors: ReadonlyArray<Interactor.Service>): void {
    this.attachments.begin(interactors)
  }

  isAsking(): boolean {
    return this.raised.size > 0
  }

  attach(interactor: Interactor.Service): Effect.Effect<void, never, Scope.Scope> {
    return this.attachments.attach(interactor)
  }

  answer(
    requestId: string,
    by: string,
    input: unknown,
    roles?: ReadonlyArray<string>
  ): Effect.Effect<void, AnswerRejected> {
    return Effect.suspend(() => {
      const raised = this.openOf(requestId)
      if (raised === undefined) return this.reject(requestId, by)
      if (this.options.journal?.isParked() === true) return new VoteRefused({ requestId, by, reason: parked })
      const { interaction } = raised.request
      const decoded = Interaction.decodeAnswer(interaction, input)
      if (Either.isLeft(decoded)) {
        return new MalformedAnswer({ requestId, kind: interaction._tag, reason: decoded.left })
      }
      const answered: AnyAnswered = { answer: decoded.right, by, how: "answered", ...(roles && { roles }) }
      if (raised.ballot !== undefined) return Effect.asVoid(raised.ballot.file(asVote(answered)))
      this.settle(raised, Exit.succeed(answered), by)
      return Effect.void
    })
  }

  cancel(requestId: string, by: string): Effect.Effect<boolean> {
    return Effect.sync(() => {
      const raised = this.openOf(requestId)
      if (raised === undefined) return false
      return this.settle(raised, Exit.fail(new InteractionCancelled({ requestId: raised.request.requestId, by })), by)
    })
  }

  get open(): Effect.Effect<ReadonlyArray<InteractionRequest>> {
    return Effect.sync(() =>
      Array.from(this.raised.values()).flatMap(({ request, settled }) => (settled === undefined ? [request] : []))
    )
  }

  get close(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.closed = true
      for (const raised of [...this.raised.values()]) {
        const { requestId } = raised.request
        this.settle(raised, Exit.fail(new InteractionCancelled({ requestId })), "the end of the broker")
      }
    })
  }

  settle(raised: OpenRequest, exit: Exit.Exit<AnyAnswered, InteractionError>, by: string): boolean {
    if (raised.settled !== undefined) return false
    this.winners.add(raised.request.requestId, by)
    raised.settle(decided(raised.request, exit))
    return true
  }

  /** Removes a request: closes its dialogs and releases the prompt slot. */
  drop(raised: OpenRequest): void {
    this.forget(raised)
    if (raised.hasShowing()) raised.dismissAll(() => this.endOf(raised))
    this.release(raised)
  }

  endOf(raised: OpenRequest): Interactor.Ended | undefined {
    const { clock, request, settled } = raised
    if (settled === undefined) return undefined
    const { requestId } = request
    const { by, status } = InteractionEvent.endOf(settled)
    return { status, by, late: (late) => this.tellLate(clock, requestId, late) }
  }

  tellLate(clock: Clock.Clock, requestId: string, by: string): void {
    const winner = this.winnerOf(requestId)
    if (winner === undefined) return
    const { bus, origin = Origin.outside } = this.options
    EventPublisher.publish(bus, clock, origin, { _tag: "LateAnswer", requestId, by, winner })
  }

  tell({ clock, request }: OpenRequest, body: AgentEvent.Body): void {
    InteractionEvent.publish(this.options.bus, clock, request, body)
  }

  private openOf(requestId: string): OpenRequest | undefined {
    const raised = this.raised.get(requestId)
    return raised?.settled === undefined ? raised : undefined
  }

  /** Here, or in a former process. */
  private winnerOf(requestId: string): string | undefined {
    return this.winners.settledBy(requestId) ?? this.options.journal?.settledBy(requestId)
  }

  private reject(requestId: string, by: string): Effect.Effect<never, AnswerRejected> {
    const winner = this.winnerOf(requestId)
    return winner === undefined
      ? new UnknownRequest({ requestId })
      : Effect.clockWith((clock) => {
          this.tellLate(clock, requestId, by)
          return new InteractionAlreadyAnswered({ requestId: requestId as RequestId, by: winner })
        })
  }

  ask(raised: OpenRequest): Ending {
    const { interaction } = raised.request
    // The types allow no other kind. Code without types is told so before a question is shown that nobody can answer.
    if (!Interaction.isKind(interaction._tag)) {
      return Effect.fail(Interactor.declined(this.interactor.id, raised.request))
    }
    if (!Interaction.takesPromptSlot(interaction._tag)) return raised.step(() => this.raise(raised))
    const atHead = () => {
      raised.holdsSlot = true
      return raised.step(() => this.recheck(raised))
    }
    return this.slot.tryEnter() ? atHead() : Effect.flatMap(this.slot.lineUp(raised.restore), atHead)
  }

  private recheck(raised: OpenRequest): Ending {
    const { options, restore } = raised
    if (options?.recheck === undefined) return this.raise(raised)
    const rechecked = (known: Option.Option<AnyAnswered["answer"]>): Ending => {
      if (Option.isNone(known)) return this.raise(raised)
      this.release(raised)
      return Effect.succeed(Asking.told({ answer: known.value, by: "policy", how: "recheck" }))
    }
    const look = Recheck.lookOf(options.recheck)
    return look === undefined ? raised.after(restore(options.recheck), rechecked) : rechecked(look())
  }

  private raise(raised: OpenRequest): Ending {
    const { spans = Spans.off } = this.options
    if (Spans.areOff(spans)) return this.put(raised)
    const opening = () => InteractionEvent.spanOf(raised.request, spans)
    const put = Effect.suspend(() => this.put(raised))
    return raised.after(spans.within(opening, put), Effect.succeed)
  }

  private put(raised: OpenRequest): Ending {
    const { interaction } = raised.request
    if (!Ballot.isReserved(interaction)) return this.enter(raised, () => undefined)
    const enter = (loaded: typeof import("./BallotBox.js")) =>
      this.enter(raised, () => this.ballotOf(loaded, raised, interaction))
    const loaded = ballots()
    return isImmediate(loaded) ? enter(loaded.value) : raised.after(loaded, enter)
  }

  private enter(raised: OpenRequest, ballot: () => BallotBox.BallotBox | undefined): Ending {
    const { request } = raised
    if (this.closed) {
      this.release(raised)
      return new InteractionCancelled({ requestId: request.requestId })
    }
    const everybody = this.attachments.join(raised)
    this.questions ??= new Map()
    this.questions.set(request.requestId, raised)
    raised.ballot = ballot()
    if (this.options.journal !== undefined) {
      return raised.after(RequestDurability.raised(this.options, request), (end) => {
        this.tell(raised, InteractionEvent.requested(request, this.redactor))
        // The request had ended before, or has ended by now: nobody is asked.
        if (end !== undefined) return this.endedBefore(raised, end, everybody)
        return this.showAll(raised, everybody)
      })
    }
    this.tell(raised, InteractionEvent.requested(request, this.redactor))
    return this.showAll(raised, everybody)
  }

  private showAll(
    raised: OpenRequest,
    everybody: Parameters<Participants.Participants["showAll"]>[1],
    answeredAt?: number
  ): Ending {
    // The votes that it has may suffice.
    if (raised.ballot?.count(answeredAt) === "settled") return this.wait(raised)
    return this.attachments.showAll(raised, everybody, () => this.wait(raised))
  }

  private endedBefore(
    raised: OpenRequest,
    end: Exit.Exit<AnyAnswered, InteractionError>,
    everybody: Parameters<Participants.Participants["showAll"]>[1]
  ): Ending {
    // What an answer to a reserved call came to is counted anew, from the votes that were kept: the rules may be others now.
    if (raised.ballot !== undefined && Exit.isSuccess(end)) return this.showAll(raised, everybody, end.value.at)
    this.settle(raised, end, Exit.isSuccess(end) ? end.value.by : "the journal")
    return this.wait(raised)
  }

  private ballotOf(
    { BallotBox, settledWith }: typeof import("./BallotBox.js"),
    raised: OpenRequest,
    reserved: Interaction.Approve & Ballot.Reserved
  ): BallotBox.BallotBox {
    const { journal } = this.options
    const { requestId } = raised.request
    const box = new BallotBox(
      {
        keep: (request, vote) => RequestDurability.voted(this.options, request, vote),
        tell: (voted, missing) =>
          this.tell(raised, {
            _tag: "InteractionVoted",
            requestId,
            kind: reserved._tag,
            ...voted,
            ...(missing === undefined ? {} : { missing: this.redactor.text(missing) })
          }),
        settledBy: () => (raised.settled === undefined ? undefined : (this.winners.settledBy(requestId) ?? "somebody")),
        settle: (answered) => void this.settle(raised, settledWith(answered), answered.by)
      },
      raised.request,
      reserved
    )
    // Votes on an approval, as the type of all votes cannot say.
    const given = (raised.options?.votes ?? []) as ReadonlyArray<Ballot.Cast>
    box.restore([...given, ...(journal?.votes(requestId, reserved.needs.digest) ?? [])])
    return box
  }

  private wait(raised: OpenRequest): Ending {
    const { restore, settled } = raised
    if (settled !== undefined) return this.ended(raised, settled)
    return Effect.matchCauseEffect(restore(raised.await), {
      onFailure: (cause) => raised.step(() => this.ended(raised, Exit.failCause(cause))),
      onSuccess: (answered) => raised.step(() => this.ended(raised, Exit.succeed(answered)))
    })
  }

  /** The request is settled, or the asker is gone: records and publishes the end, and closes the open dialogs. */
  private ended(raised: OpenRequest, awaited: Exit.Exit<AnyAnswered, InteractionError>): Ending {
    const { options, request } = raised
    let exit = awaited
    // Interrupted while waiting: the asker does not want the answer any more.
    if (Exit.isFailure(awaited) && Cause.isInterrupted(awaited.cause)) {
      const why = options?.withdrawn?.()
      if (why !== undefined) exit = Exit.fail(why)
      this.settle(raised, exit, "the asker")
    }
    const over = (exit: Exit.Exit<AnyAnswered, InteractionError>) => {
      this.tell(raised, InteractionEvent.settled(request, exit, this.redactor))
      this.drop(raised)
      return exit
    }
    const { audit, journal } = this.options
    if (audit === undefined && journal === undefined) return over(exit)
    this.forget(raised)
    return raised.after(RequestDurability.settled(this.options, request, exit), over)
  }

  private forget(raised: OpenRequest): void {
    const { requestId } = raised.request
    if (this.questions?.get(requestId) === raised) this.questions.delete(requestId)
  }

  private release(raised: OpenRequest): void {
    if (raised.holdsSlot) this.slot.leave()
    raised.holdsSlot = false
  }
}
