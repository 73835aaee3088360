/**
 * The parent's end of the bridge: has every question of a child answered, whatever the parent is doing.
 *
 * ```
 *  requests lane ── r7 ──► one fiber ─┬─ the strategy knows ────────────────────────────┬─► reply port of the child
 *                                     └─ forward: the parent's own interactor is asked ─┘
 *                ── withdrawn r7 ──► the fiber is interrupted, and with it the dialog
 * ```
 *
 * It lives in the parent's session, not in its turn, so a parent that is blocked in a delegation still mediates. It holds
 * no line and no slot: questions wait for each other only where people answer them.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as DetachedFiber from "../internal/DetachedFiber.js"
import type * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import * as AgentEvent from "../event/AgentEvent.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import type * as EventBus from "../event/EventBus.js"
import type { Settlement } from "../inbox/PendingReplies.js"
import type { Entry, ChildRequest, ChildRequestQueue } from "../inbox/ChildRequestQueue.js"
import * as Interaction from "../interaction/Interaction.js"
import * as InteractionAudit from "../broker/InteractionAudit.js"
import { InteractorUnavailable, type InteractionError } from "../interaction/InteractionError.js"
import * as InteractionEvent from "../interaction/InteractionEvent.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * Answers a child's question in the parent's place, or leaves it to the parent's interactor by knowing nothing. Whatever
 * goes wrong in it, and an answer that does not fit, is the same as knowing nothing.
 *
 * One that takes its time may look again whether a rule has decided meanwhile: then nobody has to.
 */
export interface Strategy {
  (request: InteractionRequest, decided: Effect.Effect<boolean>): Effect.Effect<Option.Option<unknown>>
  /** How its answers come about. Default: `answered`. */
  readonly how?: Interactor.How
}

/** @internal */
export interface Options {
  readonly lane: ChildRequestQueue
  /** Whom the parent itself asks. */
  readonly interactor: Interactor.Service
  /** Default: {@link forward}. */
  readonly strategy?: Strategy | undefined
  /** The parent: named as the one who decided when its strategy did. */
  readonly origin: Origin.Origin
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  readonly audit?: AuditTrail.Service | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// strategies
// -----------------------------------------------------------------------------------------------------------------

/** Asks the parent's own interactor: the person, or the parent's parent. */
export const forward: Strategy = () => Effect.succeedNone

/** Lets a policy of the program's own answer what it knows. */
export const decide = (
  policy: (request: InteractionRequest) => Option.Option<unknown> | Effect.Effect<Option.Option<unknown>>
): Strategy => {
  return (request) =>
    Effect.suspend(() => {
      const known = policy(request)
      return Option.isOption(known) ? Effect.succeed(known) : known
    })
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Mediates until the scope closes.
 *
 * @internal
 */
export const start = (options: Options): Effect.Effect<void, never, Scope.Scope> =>
  Effect.flatMap(Effect.scope, (scope) => {
    const mediator = new Mediator(options)
    return Effect.uninterruptible(
      Effect.flatMap(DetachedFiber.fork(Effect.interruptible(mediator.run)), (fiber) =>
        Scope.addFinalizer(
          scope,
          Effect.suspend(() => Effect.zipRight(Fiber.interrupt(fiber), mediator.end))
        )
      )
    )
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A question in the mediator's hands. */
interface Held {
  readonly raised: ChildRequest
  fiber: Fiber.RuntimeFiber<void> | undefined
  /** Set when the child does not wait any more. */
  why: InteractionError | undefined
}

type Answered = Interactor.Answered<Interaction.Interaction>

class Mediator {
  private readonly held = new Map<string, Held>()

  constructor(private readonly options: Options) {}

  get run(): Effect.Effect<never> {
    const taken = (entries: ReadonlyArray<Entry>) =>
      Effect.forEach(
        entries,
        (entry) => (entry._tag === "Ask" ? this.take(entry.raised) : this.drop(entry.requestId, entry.why)),
        { discard: true }
      )
    // What is forked where nothing is interruptible is not either, but where it says so.
    return Effect.forever(Effect.flatMap(this.options.lane.take, (entries) => Effect.uninterruptible(taken(entries))))
  }

  /** Ends what is left. */
  get end(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Fiber.interruptAll([...this.held.values()].flatMap(({ fiber }) => (fiber === undefined ? [] : [fiber])))
    )
  }

  private take(raised: ChildRequest): Effect.Effect<void> {
    const held: Held = { raised, fiber: undefined, why: undefined }
    this.held.set(raised.request.requestId, held)
    const mediate = Effect.matchCause(Effect.interruptible(this.ask(held)), {
      onFailure: (cause) => this.settle(held, Exit.failCause(cause)),
      onSuccess: (answered) => this.settle(held, Exit.succeed(answered))
    })
    return Effect.map(Effect.forkDaemon(mediate), (fiber) => {
      held.fiber = fiber
    })
  }

  private settle({ raised, why }: Held, exit: Exit.Exit<Answered, InteractionError>): void {
    const { reply, request } = raised
    this.held.delete(request.requestId)
    // Whoever withdrew it has settled it already.
    if (why === undefined) reply.settle(request.requestId, settlement(exit, request, this.by), this.by)
  }

  private drop(requestId: string, why: InteractionError): Effect.Effect<void> {
    const held = this.held.get(requestId)
    if (held === undefined) return Effect.void
    held.why = why
    return held.fiber === undefined ? Effect.void : Fiber.interruptAsFork(held.fiber, FiberId.none)
  }

  private ask(held: Held): Effect.Effect<Answered, InteractionError> {
    const { recheck, request } = held.raised
    const options: Interactor.Options<Interaction.Interaction> = { recheck, withdrawn: () => held.why }
    const forwarded = Effect.suspend(() => this.options.interactor.request(request, options))
    const { strategy } = this.options
    if (strategy === undefined || strategy === forward) return forwarded
    return Interactor.rechecked(
      options,
      Effect.flatMap(this.decided(strategy, held), (known) =>
        Option.isSome(known) ? Effect.succeed(known.value) : forwarded
      )
    )
  }

  /** What the strategy says, told and written down as the decision it is. */
  private decided(strategy: Strategy, { raised }: Held): Effect.Effect<Option.Option<Answered>> {
    const { recheck = Effect.succeedNone, request } = raised
    // Also a strategy that interrupts itself knows nothing; whoever is interrupted from outside does not get further.
    const asking = Effect.catchAllCause(
      Effect.suspend(() => strategy(request, Effect.map(recheck, Option.isSome))),
      () => Effect.succeedNone
    )
    return Effect.flatMap(asking, (known) => {
      if (Option.isNone(known) || Interaction.misfit(request.interaction, known.value) !== undefined) {
        return Effect.succeedNone
      }
      // `misfit` has just seen that it is an answer to this interaction.
      const answered = { answer: known.value, by: this.by, how: strategy.how ?? "answered" } as Answered
      return Effect.uninterruptible(
        Effect.map(this.record(request, answered), (written) => (written ? Option.some(answered) : Option.none()))
      )
    })
  }

  /** One pair of events for a question that nobody else was asked; false when the decision could not be written down. */
  private record(request: InteractionRequest, answered: Answered): Effect.Effect<boolean> {
    const { audit, bus, origin, redactor } = this.options
    return Effect.flatMap(Clock.currentTimeMillis, (at) => {
      const exit = Exit.succeed(answered)
      const tell = Effect.sync(() => {
        const { agentPath: agent, correlationId, sessionId } = request
        const stamp = { at, sessionId, agent, ...(correlationId === "none" ? {} : { correlationId }) }
        bus.unsafePublish(AgentEvent.make(stamp, InteractionEvent.requested(request, redactor)))
        bus.unsafePublish(AgentEvent.make(stamp, InteractionEvent.settled(request, exit, redactor)))
        return true
      })
      const entry = InteractionAudit.settled(request, exit, { rootSessionId: origin.rootSessionId, answeredAt: at })
      if (audit === undefined || Option.isNone(entry)) return tell
      return Effect.matchEffect(audit.record(entry.value), {
        onFailure: () => Effect.succeed(false),
        onSuccess: () => tell
      })
    })
  }

  private get by(): string {
    return this.options.origin.agent
  }
}

const settlement = (
  exit: Exit.Exit<Answered, InteractionError>,
  request: InteractionRequest,
  by: string
): Settlement => {
  if (Exit.isSuccess(exit) || Option.isSome(Cause.failureOption(exit.cause))) return exit
  const reason = Cause.isInterrupted(exit.cause) ? "it was shut down" : "it crashed"
  return Exit.fail(new InteractorUnavailable({ requestId: request.requestId, by, reason }))
}
