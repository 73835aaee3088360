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
 * It works in `TurnFiber`: an interjection cuts out the generation, and the turn goes on with what had arrived. Cancelling stops
 * the legs, and with them everything the turn started; what was proposed still gets its results.
 *
 * Every step returns the next one as its last effect, so that a turn of any length holds no more than a short one.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as EventLoop from "../internal/EventLoop.js"
import * as Defect from "../core/Defect.js"
import type { CancelReason, Restore } from "../core/Interruption.js"
import { BadOutput, type ModelError } from "../model/Model.js"
import type { Message } from "../inbox/Message.js"
import type { ToolCall } from "../tool/ToolCall.js"
import * as Compaction from "./Compaction.js"
import type { Generated } from "./ReplyCollector.js"
import { Generation } from "./Generation.js"
import * as History from "../conversation/History.js"
import { TurnFiber, type Options as LegsOptions, type Work } from "./TurnFiber.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import { emit, setStatus, type TurnContext } from "./TurnContext.js"
import * as SessionSpan from "./SessionSpan.js"
import * as TokenBudget from "./TokenBudget.js"
import * as ToolBatch from "./ToolBatch.js"
import { RepetitionLimit } from "./RepetitionLimit.js"
import { Cancelled, Completed, Failed, Halted, TurnLimit, type TurnEnd } from "../event/TurnEnd.js"

export * from "../event/TurnEnd.js"

/** What a turn and whoever stops it tell each other. */
export interface StopSignal {
  /** Set before the turn is stopped. */
  reason: { readonly cancel: CancelReason } | { readonly halt: string } | undefined
  /**
   * Set by the turn in the moment in which it decides to end: from then on it reads no more messages. The exit of an
   * interrupted fiber could not carry it.
   */
  end: TurnEnd | undefined
}

/** Of a turn that nobody has stopped. */
export const fresh = (): StopSignal => ({ reason: undefined, end: undefined })

export interface Options extends Pick<LegsOptions, "fork"> {
  readonly session: TurnContext
  readonly stop: StopSignal
  /** For calls that the model gave no id of their own. */
  readonly newCallId: () => string
  /** Present for one that another process began. */
  readonly begun: Begun | undefined
}

/** A turn that another process began. */
export interface Begun {
  /** Of its last model call. */
  readonly step: number
  /** Calls whose results are still missing. */
  readonly batch: SessionSnapshot.Batch | undefined
  /** Called before the next model call: from here on nothing was done before. */
  readonly caughtUp: () => void
}

/** How the turn ended, once it is over. */
export const endOf = (stop: StopSignal): TurnEnd => stop.end ?? stopped(stop, 0)

export class Turn {
  private readonly legs: TurnFiber
  private steps: number
  private recoveries = 0
  private readonly repetition: RepetitionLimit
  crash: Cause.Cause<never> | undefined

  constructor(private readonly options: Options) {
    const { begun, fork, session } = options
    this.steps = begun?.step ?? 0
    this.repetition = new RepetitionLimit(session.limits.identicalErrors)
    this.legs = new TurnFiber({ fork, patience: session.limits.stopWithin, failed: (cause) => this.failed(cause) })
  }

  /**
   * Runs it to its end, which the stop signal then holds. What begins it is in the history already. Never fails; interrupted
   * where it waits, the turn is stopped first.
   */
  run(input: ReadonlyArray<Message>, restore: Restore): Work {
    const { begun, session } = this.options
    const first = Effect.suspend(() => {
      this.isToSee(input)
      return begun === undefined ? this.step() : this.goOn(begun)
    })
    // Who publishes waits for room where it can be interrupted, so that a turn can be cancelled though nobody reads.
    return this.legs.run(Effect.zipRight(Effect.interruptible(session.bus.awaitRoom), first), restore)
  }

  get logged(): Effect.Effect<void> {
    const { agent, sessionId } = this.options.session.origin
    const { redactor } = this.options.session
    return Defect.log("The agent", this.crash ?? Cause.empty, redactor, { session: sessionId, agent })
  }

  /** Ends it as the stop signal says, as soon as it lets itself be ended. */
  stop(): void {
    this.legs.stop()
  }

  /** Does what the process that began the turn had left undone. */
  private goOn({ batch }: Begun): Work {
    const { history, inbox, state } = this.options.session
    if (batch !== undefined) {
      const calls = batch.calls.map(({ call }) => call)
      return this.useTools(batch.content, calls, new Map(batch.calls.map((past) => [past.call.id, past])))
    }
    const last = history.messages.at(-1)
    const unread = history.messages.slice(history.messages.findLastIndex(({ role }) => role === "assistant") + 1)
    for (const message of unread) {
      const { isInterjection, messageId } = History.metadata(message)
      if (isInterjection === true && messageId !== undefined) state.unseen.push(messageId)
    }
    const isAnswered = last?.role === "assistant" && History.metadata(last).partial !== true && !inbox.hasSteering()
    return isAnswered ? this.end(Completed({ text: this.lastText(), steps: this.steps })) : this.step()
  }

  /** The next step. A model and tools that answer at once must not keep the event loop from everybody else. */
  private step(): Work {
    return this.options.session.isBreathless() ? Effect.flatMap(EventLoop.give, () => this.nextStep()) : this.nextStep()
  }

  /** Looks whether there is to be another model call. */
  private nextStep(): Work {
    const { session, stop } = this.options
    if (this.legs.isStopped) return this.end(stopped(stop, this.steps))
    // Before the steering is read: what this turn cannot answer any more begins the next one.
    if (this.steps >= session.limits.maxSteps) {
      const end = TurnLimit({ text: this.lastText(), steps: this.steps })
      return Effect.flatMap(this.tidy(end), () => this.end(end))
    }
    if (!TokenBudget.isReached(session)) return this.prompt()
    return Effect.flatMap(Effect.interruptible(TokenBudget.refusal(session)), (refusal) =>
      refusal === undefined ? this.prompt() : this.end(Failed({ error: refusal, steps: this.steps }))
    )
  }

  /** Makes ready what the model is asked. */
  private prompt(): Work {
    const { compaction } = this.options.session
    this.readSteering()
    const reason = compaction.due("beforeSend")
    if (reason === undefined) return this.generate()
    return Effect.flatMap(Effect.interruptible(compaction.run(reason, () => this.readSteering())), () => {
      this.readSteering()
      return this.generate()
    })
  }

  /** Everything that came since the last look enters the history. */
  private readSteering(): void {
    const { history, inbox, journal, state } = this.options.session
    if (!inbox.hasSteering()) return
    const steering = inbox.takeSteering()
    history.appendInput(steering)
    if (state.correlationId !== undefined) journal?.taken(steering, state.correlationId, this.steps + 1)
    this.isToSee(steering)
  }

  private isToSee(messages: ReadonlyArray<Message>): void {
    const { unseen } = this.options.session.state
    for (const { id, interjection } of messages) if (interjection !== undefined) unseen.push(id)
  }

  /** One model call. Cut out by an interjection it yields what had arrived; stopping the turn discards that. */
  private generate(): Work {
    const { begun, newCallId, session } = this.options
    const { state } = session
    begun?.caughtUp()
    this.steps++
    for (const messageId of state.unseen)
      emit(session, { _tag: "InterjectionAcknowledged", messageId, step: this.steps })
    state.unseen.length = 0
    const model = session.model()
    const generation = new Generation(session, model, newCallId, this.legs)
    setStatus(session, "thinking")
    emit(session, { _tag: "ModelCallStarted", model: model.id, step: this.steps })
    state.cut = () => this.legs.interruptSection()
    return this.listen(generation, model.id, SessionSpan.modelCall(session, model, this.steps, generation.run))
  }

  private listen(generation: Generation, model: string, run: Effect.Effect<Generated, ModelError>): Work {
    const left = () => generation.left()
    return this.legs.section(run, (exit) => this.generated(generation, model, exit), left)
  }

  private generated(generation: Generation, model: string, exit: Exit.Exit<Generated, ModelError>): Work {
    const { session, stop } = this.options
    if (!this.legs.isStopped && !session.inbox.hasSteering() && generation.isToBeRetried(exit))
      return this.listen(generation, model, generation.retry)
    session.state.cut = undefined
    if (this.legs.isStopped) {
      this.called(model, generation.partial(interrupted))
      return this.end(stopped(stop, this.steps))
    }
    const kept = this.kept(generation, model, exit)
    const room = this.called(model, Exit.isSuccess(kept) ? kept.value : generation.partial("error"))
    return room
      ? this.answered(kept)
      : Effect.flatMap(Effect.interruptible(session.bus.awaitRoom), () => this.answered(kept))
  }

  /** An interjection is filed before it cuts; without one, the call was interrupted from inside. */
  private kept(
    generation: Generation,
    model: string,
    exit: Exit.Exit<Generated, ModelError>
  ): Exit.Exit<Generated, ModelError> {
    if (Exit.isSuccess(exit) || !Cause.isInterruptedOnly(exit.cause)) return exit
    if (this.options.session.inbox.hasSteering()) return Exit.succeed(generation.partial(interrupted))
    return Exit.fail(new BadOutput({ model, message: "The model call was broken off." }))
  }

  /** Tells how a model call ended. False: the bus is full. */
  private called(model: string, { finishReason, remark, usage }: Generated): boolean {
    const { session } = this.options
    const { steps: step } = this
    TokenBudget.spend(session, { model, usage, kind: "call" })
    const { correlationId } = session.state
    const told = () => ({ model, step, finishReason, usage, ...(remark && { remark }) })
    if (correlationId !== undefined) session.journal?.used({ correlationId, ...told() })
    if (finishReason === interrupted) return emit(session, { _tag: "ModelCallEnded", ...told(), interrupted: true })
    return remark === undefined
      ? emit(session, { _tag: "ModelCallEnded", model, step, finishReason, usage })
      : emit(session, { _tag: "ModelCallEnded", ...told() })
  }

  private answered(exit: Exit.Exit<Generated, ModelError>): Work {
    const { compaction, history, inbox, journal } = this.options.session
    if (Exit.isFailure(exit)) return this.unanswered(exit.cause)
    this.recoveries = 0
    const { content, calls, finishReason, remark, usage } = exit.value
    compaction.reported(usage)
    if (calls.length > 0) return this.useTools(content, calls)
    history.appendAssistant(content, { partial: finishReason === interrupted })
    journal?.answered(content, finishReason === interrupted)
    // A provider that pauses wants to be called again.
    if (inbox.hasSteering() || finishReason === "pause") return this.step()
    if (content.length === 0) {
      const why = remark === undefined ? "" : ` ${remark}`
      return this.end(Failed({ error: `The model's answer was empty.${why} Ask again.`, steps: this.steps }))
    }
    const end = Completed({ text: this.lastText(), steps: this.steps })
    return Effect.flatMap(this.tidy(end), () => (inbox.hasSteering() ? this.step() : this.end(end)))
  }

  /** What the model does not take because it is too long is made shorter, a few times. */
  private unanswered(cause: Cause.Cause<ModelError>): Work {
    const { compaction } = this.options.session
    const isTooLong = Option.exists(Cause.failureOption(cause), ({ _tag }) => _tag === "ContextTooLong")
    if (!isTooLong || this.recoveries >= Compaction.maxRecoveries) return this.modelFailed(cause)
    const recovery = compaction.recover(++this.recoveries, () => this.readSteering())
    return Effect.flatMap(Effect.interruptible(recovery), (shorter) =>
      shorter ? this.step() : this.modelFailed(cause)
    )
  }

  /** Runs a batch; the calls and their results enter the history together, also when the turn is stopped meanwhile. */
  private useTools(
    content: Generated["content"],
    calls: Generated["calls"],
    before?: ReadonlyMap<string, SessionSnapshot.CallSnapshot>
  ): Work {
    const { session } = this.options
    const { journal, state } = session
    const { correlationId } = state
    const batch = new ToolBatch.ToolBatch(session, calls, before, this.legs)
    if (before === undefined && correlationId !== undefined) {
      journal?.proposed(correlationId, this.steps, content, calls)
    }
    batch.propose()
    const { only } = batch
    return only === undefined ? this.useMany(content, batch) : this.useOne(content, batch, only)
  }

  private useOne(content: Generated["content"], batch: ToolBatch.ToolBatch, only: ToolCall): Work {
    const done = () => this.used(content, batch)
    const tidied = () => Effect.flatMap(batch.after.done(), done)
    const prepared = (exit: Exit.Exit<ToolBatch.Prepared>): Work => {
      if (Exit.isSuccess(exit)) return exit.value === undefined ? tidied() : batch.runOnly(only, exit.value, done)
      if (!Cause.isInterrupted(exit.cause)) batch.crashed(0, only, exit.cause)
      else if (!batch.wasCut() || this.legs.isStopped) return this.broken(content, batch, exit.cause)
      return tidied()
    }
    return this.legs.section(batch.prepareOnly(only), prepared, () => batch.leave())
  }

  private useMany(content: Generated["content"], batch: ToolBatch.ToolBatch): Work {
    const ran = (exit: Exit.Exit<void>): Work => {
      if (Exit.isSuccess(exit)) return this.used(content, batch)
      const goesOn = Cause.isInterrupted(exit.cause) && batch.wasCut() && !this.legs.isStopped
      if (goesOn) return Effect.flatMap(batch.after.done(), () => this.useMany(content, batch))
      return Effect.flatMap(batch.stop(), () => this.broken(content, batch, exit.cause))
    }
    return this.legs.section(batch.runAll(), ran, () => batch.leave())
  }

  private used(content: Generated["content"], batch: ToolBatch.ToolBatch): Work {
    const { journal } = this.options.session
    const broken = this.settle(content, batch)
    const next = (end: TurnEnd | undefined) => (end === undefined ? this.step() : this.end(end))
    if (this.legs.isStopped || journal === undefined) return next(this.legs.isStopped ? undefined : broken)
    // Who cannot write down what was done does not go on.
    return Effect.flatMap(Effect.either(journal.flush), (flushed) =>
      next(flushed._tag === "Left" ? Failed({ error: flushed.left, steps: this.steps }) : broken)
    )
  }

  private broken(
    content: Generated["content"],
    batch: ToolBatch.ToolBatch,
    cause: Cause.Cause<never>
  ): Effect.Effect<never> {
    this.settle(content, batch)
    return Effect.zipRight(batch.after.done(), Effect.failCause(cause))
  }

  /** Yields how the turn ends when the same comes again and again. */
  private settle(content: Generated["content"], batch: ToolBatch.ToolBatch): TurnEnd | undefined {
    const { history, journal, state } = this.options.session
    const results = batch.results()
    history.appendAssistant(content)
    history.appendResults(results)
    if (state.correlationId !== undefined) journal?.completed(state.correlationId)
    return this.repetition.endAfter({ calls: batch.calls, results, isRefused: batch.isRefused }, this.steps)
  }

  /** Before this end: compacts if that is due. Who stops it then does not undo the turn, which has all it wanted. */
  private tidy(end: TurnEnd): Effect.Effect<void> {
    const { compaction } = this.options.session
    const reason = compaction.due("afterTurn")
    if (reason === undefined) return Effect.void
    return Effect.onInterrupt(Effect.interruptible(compaction.run(reason)), () =>
      Effect.sync(() => {
        this.options.stop.end = end
      })
    )
  }

  private end(end: TurnEnd): Effect.Effect<void> {
    this.options.stop.end = end
    return Effect.void
  }

  /** A leg did not end by itself. */
  private failed(cause: Cause.Cause<never>): void {
    const { stop } = this.options
    if (Cause.isInterrupted(cause)) {
      stop.end ??= stopped(stop, this.steps)
      return
    }
    this.crash = cause
    stop.end ??= Failed({ error: Defect.sentence("The agent"), steps: this.steps })
  }

  private modelFailed(cause: Cause.Cause<ModelError>): Work {
    const { origin, redactor } = this.options.session
    const { steps } = this
    const failure = Cause.failureOption(cause)
    if (Option.isSome(failure)) return this.end(Failed({ error: redactor.text(failure.value.message), steps }))
    const model = this.options.session.model().id
    const place = { session: origin.sessionId, agent: origin.agent, model }
    return Effect.flatMap(Defect.log("The model", cause, redactor, place), () =>
      this.end(Failed({ error: Defect.sentence("The model"), steps }))
    )
  }

  private lastText(): string {
    const { messages } = this.options.session.history
    const last = messages.findLast((message) => message.role === "assistant" || History.beginsTurn(message))
    return last?.role === "assistant" ? History.textOf(last) : ""
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const interrupted = "interrupted"

const stopped = ({ reason }: StopSignal, steps: number): TurnEnd =>
  reason !== undefined && "halt" in reason
    ? Halted({ detail: reason.halt, steps })
    : Cancelled({ reason: reason?.cancel ?? "shutdown", steps })
