/**
 * From taking input to a `TurnEnd`: steps of one generation and the tool batch it asked for.
 *
 * ```
 *  steering ─► generate ─┬─ calls ─► tool batch ─► results ─┐
 *     ▲                  ├─ interjected: partial text kept ─┤
 *     └──────────────────┴──────────────────────────────────┘
 *                        └─ no calls, nothing to steer ─► end
 * ```
 *
 * The generation runs in a fiber of its own, so that an interjection can stop it alone. Cancelling interrupts the turn's
 * fiber, and with it everything the turn started; what was proposed still gets its results.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import { IdGenerator } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import { BadOutput, type ModelError } from "../model/Model.js"
import type { Message } from "../inbox/Message.js"
import type { Interactor } from "../interaction/Interactor.js"
import type { ToolResult } from "../tool/ToolCall.js"
import * as Compaction from "./Compaction.js"
import * as Generation from "./Generation.js"
import * as History from "./History.js"
import type * as Restored from "./Restored.js"
import { emit, setStatus, type SessionContext } from "./SessionContext.js"
import type { SessionJournal } from "./SessionJournal.js"
import * as SessionSpan from "./SessionSpan.js"
import * as TokenBudget from "./TokenBudget.js"
import * as ToolExecutor from "./ToolExecutor.js"
import { Cancelled, Completed, Failed, Halted, TurnLimit, type TurnEnd } from "./TurnEnd.js"

export * from "./TurnEnd.js"

/** What a turn and whoever stops it tell each other. */
export interface StopSignal {
  /** Set before the turn's fiber is interrupted. */
  reason: { readonly cancel: CancelReason } | { readonly halt: string } | undefined
  /**
   * Set by the turn in the moment in which it decides to end: from then on it reads no more messages. The exit of an
   * interrupted fiber could not carry it.
   */
  end: TurnEnd | undefined
}

/** Of a turn that nobody has stopped. */
export const fresh = (): StopSignal => ({ reason: undefined, end: undefined })

/**
 * Runs one turn on these messages, which the history holds already. Never fails; being interrupted is an end like others.
 * Run it uninterruptibly, so that it can say how it ended also then.
 */
export const run = (
  session: SessionContext,
  input: ReadonlyArray<Message>,
  stop: StopSignal,
  begun?: Begun
): Effect.Effect<void, never, Interactor> =>
  Effect.flatMap(IdGenerator, (ids) => {
    const turn = new Turn(session, stop, () => ids.unsafeNext("call"), begun)
    // Who publishes waits for room where it can be interrupted, so that a turn can be cancelled though nobody reads.
    const body = Effect.zipRight(session.bus.awaitRoom, turn.run(input))
    return Effect.map(Effect.exit(Effect.interruptible(body)), (exit) => {
      if (Exit.isFailure(exit)) stop.end ??= failureOf(session, exit.cause, stop, turn.steps)
    })
  })

/** A turn that another process began. */
export interface Begun {
  /** Of its last model call. */
  readonly step: number
  /** Calls whose results are still missing. */
  readonly batch: Restored.Batch | undefined
  /** Called before the next model call: from here on nothing was done before. */
  readonly caughtUp: () => void
}

/** How the turn ended, once its fiber has. */
export const endOf = (stop: StopSignal): TurnEnd => stop.end ?? stopped(stop, 0)

/**
 * `Fiber.await` for a fiber that whoever gives up waiting interrupts: what observes it need not be taken away again, which
 * is most of what awaiting costs.
 */
export const exitOf = <A, E>(fiber: Fiber.RuntimeFiber<A, E>): Effect.Effect<Exit.Exit<A, E>> =>
  Effect.async((resume) => {
    fiber.addObserver((exit) => resume(Effect.succeed(exit)))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const stopped = ({ reason }: StopSignal, steps: number): TurnEnd =>
  reason !== undefined && "halt" in reason
    ? Halted({ detail: reason.halt, steps })
    : Cancelled({ reason: reason?.cancel ?? "shutdown", steps })

const failureOf = (session: SessionContext, cause: Cause.Cause<never>, stop: StopSignal, steps: number): TurnEnd => {
  if (Cause.isInterrupted(cause)) return stopped(stop, steps)
  const defect = Cause.squash(cause)
  const error = defect instanceof Error ? defect.message : String(defect)
  return Failed({ error: session.redactor.text(`The agent crashed: ${error}`), steps })
}

class Turn {
  steps = 0
  private lastError: string | undefined
  private identicalErrors = 0

  constructor(
    private readonly session: SessionContext,
    private readonly stop: StopSignal,
    private readonly newCallId: () => string,
    private readonly begun: Begun | undefined
  ) {
    this.steps = begun?.step ?? 0
  }

  run(input: ReadonlyArray<Message>): Effect.Effect<void, never, Interactor> {
    const { compaction, history, inbox, limits } = this.session
    return Effect.gen(this, function* () {
      this.isToSee(input)
      let recoveries = 0
      const over = yield* this.goOn()
      if (over !== undefined) return this.end(over)
      for (;;) {
        // Before the steering is read: what this turn cannot answer any more begins the next one.
        if (this.steps >= limits.maxSteps) {
          const end = TurnLimit({ text: this.lastText(), steps: this.steps })
          yield* this.tidy(end)
          return this.end(end)
        }
        if (TokenBudget.isReached(this.session)) {
          const refusal = yield* TokenBudget.refusal(this.session)
          if (refusal !== undefined) return this.end(Failed({ error: refusal, steps: this.steps }))
        }
        this.readSteering()
        const reason = compaction.due("beforeSend")
        if (reason !== undefined) {
          yield* compaction.run(reason, () => this.readSteering())
          this.readSteering()
        }
        this.begun?.caughtUp()
        this.steps++
        this.acknowledge()
        const exit = yield* this.generate()
        if (Exit.isFailure(exit)) {
          const isTooLong = Option.exists(Cause.failureOption(exit.cause), ({ _tag }) => _tag === "ContextTooLong")
          if (!isTooLong || recoveries >= Compaction.maxRecoveries) return this.end(this.failed(exit.cause))
          if (yield* compaction.recover(++recoveries, () => this.readSteering())) continue
          return this.end(this.failed(exit.cause))
        }
        recoveries = 0
        const { content, calls, finishReason, usage } = exit.value
        compaction.reported(usage)
        if (calls.length > 0) {
          const broken = yield* this.useTools(content, calls)
          if (broken !== undefined) return this.end(broken)
          continue
        }
        history.appendAssistant(content, { partial: finishReason === interrupted })
        this.session.journal?.answered(content, finishReason === interrupted)
        // A provider that pauses wants to be called again.
        if (inbox.hasSteering() || finishReason === "pause") continue
        if (content.length === 0) {
          return this.end(Failed({ error: "The model's answer was empty. Ask again.", steps: this.steps }))
        }
        const end = Completed({ text: this.lastText(), steps: this.steps })
        yield* this.tidy(end)
        if (!inbox.hasSteering()) return this.end(end)
      }
    })
  }

  /** Does what the process that began the turn had left undone; the end, where nothing is left to do. */
  private goOn(): Effect.Effect<TurnEnd | undefined, never, Interactor> {
    if (this.begun === undefined) return Effect.succeed(undefined)
    const { history, inbox } = this.session
    const { batch } = this.begun
    if (batch !== undefined) {
      const calls = batch.calls.map(({ call }) => call)
      return this.useTools(batch.content, calls, new Map(batch.calls.map((past) => [past.call.id, past])))
    }
    const last = history.messages.at(-1)
    const unread = history.messages.slice(history.messages.findLastIndex(({ role }) => role === "assistant") + 1)
    for (const message of unread) {
      const { isInterjection, messageId } = History.metadata(message)
      if (isInterjection === true && messageId !== undefined) this.session.state.unseen.push(messageId)
    }
    const isAnswered = last?.role === "assistant" && History.metadata(last).partial !== true && !inbox.hasSteering()
    return Effect.succeed(isAnswered ? Completed({ text: this.lastText(), steps: this.steps }) : undefined)
  }

  /** Everything that came since the last look enters the history. */
  private readSteering(): void {
    const { history, inbox } = this.session
    if (!inbox.hasSteering()) return
    const steering = inbox.takeSteering()
    history.appendInput(steering)
    const { correlationId } = this.session.state
    if (correlationId !== undefined) this.session.journal?.taken(steering, correlationId, this.steps + 1)
    this.isToSee(steering)
  }

  private acknowledge(): void {
    const { unseen } = this.session.state
    for (const messageId of unseen)
      emit(this.session, { _tag: "InterjectionAcknowledged", messageId, step: this.steps })
    unseen.length = 0
  }

  private isToSee(messages: ReadonlyArray<Message>): void {
    for (const { id, interjection } of messages) if (interjection !== undefined) this.session.state.unseen.push(id)
  }

  /** Before this end: compacts if that is due. Who cancels then does not undo the turn, which has all it wanted. */
  private tidy(end: TurnEnd): Effect.Effect<void> {
    const { compaction } = this.session
    const reason = compaction.due("afterTurn")
    if (reason === undefined) return Effect.void
    return Effect.onInterrupt(compaction.run(reason), () => Effect.sync(() => this.end(end)))
  }

  private end(end: TurnEnd): void {
    this.stop.end = end
  }

  /** One model call. Interrupting its fiber alone yields what had arrived; interrupting the turn discards it. */
  private generate(): Effect.Effect<Exit.Exit<Generation.Generated, ModelError>> {
    const { session, steps: step } = this
    return Effect.uninterruptibleMask((restore) => {
      const model = session.model()
      const generation = Generation.make(session, model, this.newCallId)
      const ended = ({ finishReason, usage }: Generation.Generated) => {
        session.state.generation = undefined
        TokenBudget.spend(session, { model: model.id, usage, kind: "call" })
        const { correlationId } = session.state
        if (correlationId !== undefined) session.journal?.used(correlationId, step, model.id, finishReason, usage)
        const stopped = finishReason === interrupted ? { interrupted: true } : {}
        return emit(session, { _tag: "ModelCallEnded", model: model.id, step, finishReason, usage, ...stopped })
      }
      setStatus(session, "thinking")
      emit(session, { _tag: "ModelCallStarted", model: model.id, step })
      const run = SessionSpan.modelCall(session, model, step, generation.run)
      return Effect.flatMap(Effect.fork(Effect.interruptible(run)), (fiber) => {
        session.state.generation = fiber
        // Words that came after the last look and before there was a fiber to stop.
        if (session.inbox.hasSteering()) fiber.unsafeInterruptAsFork(FiberId.none)
        return Effect.matchCauseEffect(restore(exitOf(fiber)), {
          onFailure: (cause) => {
            const discard = Effect.sync(() => ended(generation.partial(interrupted)))
            return Effect.zipRight(Effect.zipRight(Fiber.interrupt(fiber), discard), Effect.failCause(cause))
          },
          onSuccess: (exited) => {
            const exit = this.generated(generation, exited)
            const room = ended(Exit.isSuccess(exit) ? exit.value : generation.partial("error"))
            return room ? Effect.succeed(exit) : Effect.as(restore(session.bus.awaitRoom), exit)
          }
        })
      })
    })
  }

  /** An interjection is filed before it interrupts; without one, the call was interrupted from inside. */
  private generated(
    generation: Generation.Generation,
    exit: Exit.Exit<Generation.Generated, ModelError>
  ): Exit.Exit<Generation.Generated, ModelError> {
    if (Exit.isSuccess(exit) || !Cause.isInterruptedOnly(exit.cause)) return exit
    if (this.session.inbox.hasSteering()) return Exit.succeed(generation.partial(interrupted))
    return Exit.fail(new BadOutput({ model: this.session.model().id, message: "The model call was broken off." }))
  }

  /** Runs a batch; the calls and their results enter the history together, also when the turn is cancelled meanwhile. */
  private useTools(
    content: Generation.Generated["content"],
    calls: Generation.Generated["calls"],
    before?: ReadonlyMap<string, Restored.RestoredCall>
  ): Effect.Effect<TurnEnd | undefined, never, Interactor> {
    const { history, journal, state } = this.session
    const { correlationId } = state
    const batch = ToolExecutor.make(this.session, calls, before)
    const settle = (): ReadonlyArray<ToolResult> => {
      const results = batch.results()
      history.appendAssistant(content)
      history.appendResults(results)
      if (correlationId !== undefined) journal?.completed(correlationId)
      return results
    }
    return Effect.uninterruptibleMask((restore) => {
      if (before === undefined && correlationId !== undefined) {
        journal?.proposed(correlationId, this.steps, content, calls)
      }
      batch.propose()
      return Effect.matchCauseEffect(batch.run(restore), {
        onFailure: (cause) => {
          settle()
          return Effect.failCause(cause)
        },
        onSuccess: () => {
          const broken = this.afterResults(settle())
          return journal === undefined ? Effect.succeed(broken) : this.kept(journal, broken)
        }
      })
    })
  }

  /** Who cannot write down what was done does not go on. */
  private kept(journal: SessionJournal, broken: TurnEnd | undefined): Effect.Effect<TurnEnd | undefined> {
    return Effect.match(journal.flush, {
      onFailure: (error): TurnEnd => Failed({ error, steps: this.steps }),
      onSuccess: () => broken
    })
  }

  /** The same error again and again means that the model cannot get further. */
  private afterResults(results: ReadonlyArray<ToolResult>): TurnEnd | undefined {
    for (const { name, outcome, result } of results) {
      const error =
        outcome === "succeeded" || outcome === "cancelled" ? undefined : `${name}: ${JSON.stringify(result)}`
      this.identicalErrors = error !== undefined && error === this.lastError ? this.identicalErrors + 1 : 1
      this.lastError = error
      if (error !== undefined && this.identicalErrors >= this.session.limits.identicalErrors) {
        return Failed({
          error: this.session.redactor.text(
            `The same tool error came ${this.identicalErrors} times in a row: ${error}`
          ),
          steps: this.steps
        })
      }
    }
    return undefined
  }

  private failed(cause: Cause.Cause<ModelError>): TurnEnd {
    const error = Option.match(Cause.failureOption(cause), {
      onSome: (failure) => failure.message,
      onNone: () => {
        const defect = Cause.squash(cause)
        return `The model crashed: ${defect instanceof Error ? defect.message : String(defect)}`
      }
    })
    return Failed({ error: this.session.redactor.text(error), steps: this.steps })
  }

  private lastText(): string {
    const { messages } = this.session.history
    const last = messages.findLast((message) => message.role === "assistant" || History.beginsTurn(message))
    return last?.role === "assistant" ? History.textOf(last) : ""
  }
}

const interrupted = "interrupted"
