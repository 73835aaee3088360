/**
 * Checks the ledger's limits before a model call. At a limit a person is asked for more; without a yes the turn ends. It ends
 * unasked when the ledger is halted.
 *
 * ```
 *  below the limit ──────────────────────────────► the call begins
 *  reached ──► ask (one question a limit) ──yes──► limit raised, look again
 *                        └─no, nobody, too late──► refused until a person speaks to the root session again
 * ```
 *
 * Sessions of one tree share the ledger and its questions: a session at a limit with an open question waits for that
 * answer, and after a no the next session does not ask again.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import { globalValue } from "effect/GlobalValue"
import * as Option from "effect/Option"
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as LazyModule from "../core/LazyModule.js"
import type { CorrelationId } from "../core/Id.js"
import type { Origin } from "../core/Origin.js"
import type * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import type { Message } from "../inbox/Message.js"
import * as Interactor from "../interaction/Interactor.js"
import type * as TokenLedger from "../model/TokenLedger.js"

/** The calling session and the ledger of its tree; its bus learns what no limit holds. */
export interface Payer {
  readonly origin: Origin
  readonly ledger: TokenLedger.Service | undefined
  readonly bus?: EventBus.Service
  readonly clock?: Clock.Clock
  readonly state?: { readonly correlationId: CorrelationId | undefined }
}

/** Whether a limit is reached, so that {@link refusal} must be run. It costs almost nothing. */
export const isReached = ({ ledger, origin }: Payer): boolean =>
  ledger !== undefined && (ledger.halted ?? ledger.exceeded(origin.sessionId)) !== undefined

/**
 * The reason why the session must not call its model: a sentence for people and for a parent's model; undefined when it
 * may. A person is asked only when a limit is reached.
 */
export const refusal = (session: Payer): Effect.Effect<string | undefined, never, Interactor.Interactor> =>
  Effect.suspend(() => (isReached(session) ? Effect.flatMap(words, (words) => refused(session, words)) : none))

/** Records the usage of one call, and says once of a model that no limit of money holds. */
export const spend = (
  { bus, clock, ledger, origin, state }: Payer,
  entry: Pick<TokenLedger.Entry, "model" | "usage" | "kind">
): void => {
  if (ledger === undefined) return
  ledger.record({ sessionId: origin.sessionId, agent: origin.agent, ...entry })
  const { model, usage } = entry
  // A model of this process costs nothing.
  const isUsed = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0) > 0
  if (!isUsed || usage.cost !== undefined || bus === undefined || clock === undefined || !ledger.isUnlimited(model))
    return
  const { unlimited } = deskOf(ledger)
  if (unlimited.has(model)) return
  unlimited.add(model)
  EventPublisher.publish(
    bus,
    clock,
    origin,
    { _tag: "AgentError", message: unlimitedText(model) },
    state?.correlationId
  )
}

/** What is said of a model without a price, where money is limited. */
export const unlimitedText = (model: string): string =>
  `The limit of money does not count ${model}, because its price is unknown. Set its price in the price table, or limit its tokens.`

/** Clears earlier refusals when a person speaks to the root session: they may decide differently now. */
export const begin = ({ ledger, origin }: Payer, input: ReadonlyArray<Message>): void => {
  if (ledger === undefined || origin.depth > 0 || !input.some(({ source }) => source === "user")) return
  ledger.beginRun()
  desks.get(ledger)?.refused.clear()
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none = Effect.succeed(undefined)

type Words = Effect.Effect.Success<typeof words>

const refused = (session: Payer, words: Words): Effect.Effect<string | undefined, never, Interactor.Interactor> =>
  Effect.suspend(() => {
    const { ledger, origin } = session
    if (ledger?.halted !== undefined) return Effect.succeed(ledger.halted)
    const exceeded = ledger?.exceeded(origin.sessionId)
    if (ledger === undefined || exceeded === undefined) return none
    const desk = deskOf(ledger)
    const key = keyOf(exceeded)
    const reason = desk.refused.get(key)
    if (reason !== undefined) return Effect.succeed(words.refusal(exceeded, ledger, reason))
    const open = desk.open.get(key)
    return Effect.flatMap(open === undefined ? ask(ledger, desk, exceeded, words) : Deferred.await(open), () =>
      refused(session, words)
    )
  })

interface Desk {
  /**
   * Open questions. The asking fiber makes and completes the deferred, also when it is interrupted; other fibers wait
   * for it.
   */
  readonly open: Map<string, Deferred.Deferred<void>>
  /** Reasons of refusals. */
  readonly refused: Map<string, string>
  /** Models without a price, as far as that was said. */
  readonly unlimited: Set<string>
}

/** One desk for each ledger, and so for each tree; it is collected with the ledger. */
const desks: WeakMap<TokenLedger.Service, Desk> = globalValue("assent/turn/TokenBudget", () => new WeakMap())

const deskOf = (ledger: TokenLedger.Service): Desk => {
  const known = desks.get(ledger)
  if (known !== undefined) return known
  const desk: Desk = { open: new Map(), refused: new Map(), unlimited: new Set() }
  desks.set(ledger, desk)
  return desk
}

const keyOf = ({ limit, sessionId }: TokenLedger.Exceeded): string =>
  limit === "session" ? `session ${sessionId}` : limit

const ask = (
  ledger: TokenLedger.Service,
  desk: Desk,
  exceeded: TokenLedger.Exceeded,
  words: Words
): Effect.Effect<void, never, Interactor.Interactor> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const key = keyOf(exceeded)
      const answered: Deferred.Deferred<void> = Deferred.unsafeMake(FiberId.none)
      desk.open.set(key, answered)
      return Effect.flatMap(Effect.exit(restore(Interactor.ask(words.question(exceeded, ledger)))), (exit) => {
        desk.open.delete(key)
        const end = outcomeOf(exit)
        if (end === "raise") ledger.raise(exceeded, exceeded.step)
        else if (end !== "leave") desk.refused.set(key, end.refused)
        // After the outcome is stored: the waiters check again at once.
        Deferred.unsafeDone(answered, Effect.void)
        return Exit.isFailure(exit) && end === "leave" ? Effect.failCause(Cause.stripFailures(exit.cause)) : Effect.void
      })
    })
  )

/** `leave`: the asking session was interrupted, so the next one asks. */
const outcomeOf = <E extends { readonly message: string }>(
  exit: Exit.Exit<boolean, E>
): "raise" | "leave" | { readonly refused: string } => {
  if (Exit.isSuccess(exit)) return exit.value ? "raise" : { refused: "nobody allowed more tokens" }
  const failure = Cause.failureOption(exit.cause)
  if (Option.isNone(failure)) return Cause.isInterrupted(exit.cause) ? "leave" : { refused: "asking for more failed" }
  return { refused: `nobody allowed more tokens: ${failure.value.message}` }
}

/** Loaded when a limit is reached: most agents have none. */
const words = LazyModule.make(() => import("./BudgetWords.js"))
