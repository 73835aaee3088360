/**
 * The parent's end of the bridge: it brings every question of a child to an answer, whatever the parent is doing.
 *
 * ```
 *  requests ─────── r7 ──► one fiber ─┬─ the strategy knows ────────────────────────────┬─► the child, who waits for it
 *                                     └─ forward: the parent's own interactor is asked ─┘
 *                ── withdrawn r7 ──► the fiber is interrupted, and with it the dialog
 * ```
 *
 * It lives in the parent's session, not in its turn, so a parent that is blocked in a delegation still mediates. It has
 * no queue and no prompt slot: questions wait for each other only where people answer them.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as DetachedFiber from "../internal/DetachedFiber.js"
import type * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import type * as EventBus from "../event/EventBus.js"
import type { Entry, ChildRequest, ChildRequestQueue, Settlement, Withdrawal } from "../inbox/ChildRequestQueue.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Interaction from "../interaction/Interaction.js"
import * as InteractionAudit from "../broker/InteractionAudit.js"
import { InteractorUnavailable, type InteractionError } from "../interaction/InteractionError.js"
import * as InteractionEvent from "../interaction/InteractionEvent.js"
import { isResumed, type InteractionRequest } from "../interaction/InteractionRequest.js"
import * as InteractorCall from "../interaction/InteractorCall.js"
import * as Interactor from "../interaction/Interactor.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * Answers a child's question in the parent's place. With none the question goes to the parent's interactor. A failure,
 * and an answer that does not fit, count as none.
 *
 * A slow strategy may run the recheck: if a rule has decided meanwhile, nobody needs to be asked.
 *
 * @since 0.1.0
 * @category models
 */
export interface Strategy {
  (request: InteractionRequest, decided: Effect.Effect<boolean>): Effect.Effect<Option.Option<unknown>>
  /** How its answers are recorded. Default: `answered`. */
  readonly how?: Interactor.How
}

/** @internal */
export interface Options {
  readonly requests: ChildRequestQueue
  /** The parent's own interactor. */
  readonly interactor: Interactor.Service
  /** Default: {@link forward}. */
  readonly strategy?: Strategy | undefined
  /** The parent: named as the decider when its strategy answers. */
  readonly origin: Origin.Origin
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  readonly audit?: AuditTrail.Service | undefined
  /**
   * In whose world it decides. Default: that of the running fiber, which may be a call that is over when it decides.
   *
   * @internal
   */
  readonly place?: DetachedFiber.Place | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// strategies
// -----------------------------------------------------------------------------------------------------------------

/**
 * Asks the parent's own interactor: the person, or the parent's parent.
 *
 * @since 0.1.0
 * @category constructors
 */
export const forward: Strategy = () => Effect.succeedNone

/**
 * Lets a policy of the program answer; with none the question is forwarded.
 *
 * @since 0.1.0
 * @category constructors
 */
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
    return Effect.uninterruptible(
      Effect.flatMap(DetachedFiber.here, (here) => {
        const { place = here } = options
        const mediator = new Mediator(options, place)
        const fiber = DetachedFiber.unsafeFork(place, Effect.interruptible(mediator.run))
        return Scope.addFinalizer(
          scope,
          Effect.suspend(() => Effect.zipRight(Fiber.interrupt(fiber), mediator.end))
        )
      })
    )
  })

/**
 * Like {@link start}, in this scope on the first run; later runs do nothing.
 *
 * @internal
 */
export const once = (
  options: Omit<Options, "strategy">,
  strategy: Effect.Effect<Strategy>,
  scope: Scope.Scope
): Effect.Effect<void> => {
  let started = false
  return Effect.suspend(() => {
    if (started) return Effect.void
    started = true
    // A strategy may have to be loaded. An interruption meanwhile would leave a session whose children nobody answers.
    return Effect.uninterruptible(
      Effect.flatMap(strategy, (strategy) => Scope.extend(start({ ...options, strategy }), scope))
    )
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A question that the mediator works on. */
interface Held {
  readonly raised: ChildRequest
  fiber: Fiber.RuntimeFiber<void> | undefined
  /** Set when the child stopped waiting. */
  withdrawn: Withdrawal | undefined
  /** What the interactor made of it. */
  end: Exit.Exit<Answered, InteractionError> | undefined
  isAskedAgain: boolean
}

type Answered = Interactor.Answered<Interaction.Interaction>

/** How the interactor hears that it is withdrawn, and says what came of it. */
const ends = (held: Held): Pick<Interactor.Options<Interaction.Interaction>, "settled" | "withdrawn"> => ({
  withdrawn: () => held.withdrawn?.why,
  settled: (end) => (held.end = end)
})

class Mediator {
  private readonly held = new Map<string, Held>()

  constructor(
    private readonly options: Options,
    /** Where its fibers are started. */
    private readonly place: DetachedFiber.Place
  ) {}

  get run(): Effect.Effect<never> {
    const taken = (entries: ReadonlyArray<Entry>) => {
      for (const entry of entries) {
        if (entry._tag === "Ask") this.take(entry.raised)
        else this.drop(entry)
      }
    }
    return Effect.forever(Effect.flatMap(this.options.requests.take, (entries) => Effect.sync(() => taken(entries))))
  }

  /** Interrupts the open questions. */
  get end(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.options.requests.close()
      return Fiber.interruptAll([...this.held.values()].flatMap(({ fiber }) => (fiber === undefined ? [] : [fiber])))
    })
  }

  private take(raised: ChildRequest): void {
    const held: Held = { raised, fiber: undefined, withdrawn: undefined, end: undefined, isAskedAgain: false }
    this.start(held, this.ask(held))
  }

  private start(held: Held, asking: Effect.Effect<Answered, InteractionError>): void {
    this.held.set(held.raised.request.requestId, held)
    const mediate = Effect.matchCause(asking, {
      onFailure: (cause) => this.settle(held, Exit.failCause(cause)),
      onSuccess: (answered) => this.settle(held, Exit.succeed(answered))
    })
    held.fiber = DetachedFiber.unsafeFork(this.place, mediate)
  }

  private settle(held: Held, exit: Exit.Exit<Answered, InteractionError>): void {
    const { raised, withdrawn } = held
    const { request } = raised
    this.held.delete(request.requestId)
    if (withdrawn === undefined) return void raised.reply(settlement(exit, request, this.by), this.by)
    // The journal has a resumed question as open. Its end is recorded, also if it was withdrawn before it was asked.
    if (isResumed(request)) {
      const end = held.end ?? exit
      if (held.end === undefined && !held.isAskedAgain) {
        held.isAskedAgain = true
        return this.start(held, this.forward(held))
      }
      if (Exit.isSuccess(end) && raised.isOpen) raised.reply(settlement(end, request, this.by), this.by)
    }
    // Else it was settled by the child's end.
    withdrawn.taken.complete()
  }

  private drop(withdrawn: Withdrawal): void {
    const held = this.held.get(withdrawn.requestId)
    if (held === undefined) return withdrawn.taken.complete()
    held.withdrawn = withdrawn
    held.fiber?.unsafeInterruptAsFork(FiberId.none)
  }

  /** Only what takes time is interruptible. */
  private ask(held: Held): Effect.Effect<Answered, InteractionError> {
    const { asked, request } = held.raised
    const { interactor, strategy } = this.options
    // What a rule reserves for people, no parent decides.
    if (strategy === undefined || strategy === forward || Ballot.isReserved(request.interaction))
      return this.forward(held, asked)
    const { recheck, votes } = asked
    const options = { recheck, votes, ...ends(held) }
    const decided = Effect.flatMap(this.decided(strategy, held), (known) =>
      Option.isSome(known) ? Effect.succeed(known.value) : InteractorCall.ask(interactor, request, options)
    )
    return Effect.interruptible(Interactor.rechecked(options, decided))
  }

  private forward(held: Held, asked: Interactor.Options<Interaction.Interaction> = {}) {
    const options = { ...asked, ...ends(held) }
    return Effect.interruptible(
      Effect.suspend(() => InteractorCall.ask(this.options.interactor, held.raised.request, options))
    )
  }

  /** The strategy's answer, published and audited as a decision. */
  private decided(strategy: Strategy, { raised }: Held): Effect.Effect<Option.Option<Answered>> {
    const { asked, request } = raised
    const { recheck = Effect.succeedNone } = asked
    // A strategy that interrupts itself counts as none too. After an interrupt from outside this handler's result is
    // not used.
    const asking = Effect.catchAllCause(
      Effect.suspend(() => strategy(request, Effect.map(recheck, Option.isSome))),
      () => Effect.succeedNone
    )
    return Effect.flatMap(asking, (known) => {
      if (Option.isNone(known) || Interaction.misfit(request.interaction, known.value) !== undefined) {
        return Effect.succeedNone
      }
      // `misfit` has checked that it answers this interaction.
      const answered = InteractorCall.told({
        answer: known.value,
        by: this.by,
        how: strategy.how ?? "answered"
      } as Answered)
      return Effect.uninterruptible(
        Effect.map(this.record(request, answered), (written) => (written ? Option.some(answered) : Option.none()))
      )
    })
  }

  /**
   * Publishes the pair of events for a question that only the strategy saw. False when the decision could not be
   * audited.
   */
  private record(request: InteractionRequest, answered: Answered): Effect.Effect<boolean> {
    const { audit, bus, origin, redactor } = this.options
    return Effect.flatMap(Effect.clock, (clock) => {
      const exit = Exit.succeed(answered)
      const tell = Effect.sync(() => {
        InteractionEvent.publish(bus, clock, request, InteractionEvent.requested(request, redactor))
        InteractionEvent.publish(bus, clock, request, InteractionEvent.settled(request, exit, redactor))
        return true
      })
      const now = clock.unsafeCurrentTimeMillis()
      const entry = InteractionAudit.settled(request, exit, { rootSessionId: origin.rootSessionId, now })
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
