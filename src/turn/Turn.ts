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
 * The loop is one generator, `steps`; decisions and records are synchronous methods below it. It runs in a `TurnFiber`:
 * an interjection interrupts the generation, and the turn continues with the partial answer. Cancelling stops the turn
 * with everything that it started; every proposed call still gets its result.
 *
 * A turn that waits for a person holds this one generator and nothing nested: a generator for each step would cost 0.4 µs a
 * step and 0.65 KB for every waiting agent. The model call has one of its own, which is gone by then.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as EventLoop from "../internal/EventLoop.js"
import * as Region from "../core/Region.js"
import * as Defect from "../core/Defect.js"
import * as Spans from "../core/Spans.js"
import type { CancelReason } from "../core/Interruption.js"
import { BadOutput, type ModelError, type Service as Model } from "../model/Model.js"
import * as TokenUsage from "../model/TokenUsage.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type { Message } from "../inbox/Message.js"
import * as Compaction from "./Compaction.js"
import type { Generated } from "./ReplyCollector.js"
import { Generation } from "./Generation.js"
import * as History from "../conversation/History.js"
import * as PromptMessage from "../conversation/PromptMessage.js"
import { TurnFiber, type Fork, type Steps, type Work } from "./TurnFiber.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import { emit, setStatus, type TurnContext } from "./TurnContext.js"
import * as SessionSpan from "./SessionSpan.js"
import * as TokenBudget from "./TokenBudget.js"
import type { TypedOutput } from "./TypedOutput.js"
import * as ToolBatch from "./ToolBatch.js"
import * as RefusedFiles from "./RefusedFiles.js"
import { RepetitionLimit } from "./RepetitionLimit.js"
import { Cancelled, Completed, Failed, Halted, TurnLimit, type TurnEnd } from "../event/TurnEnd.js"

export * from "../event/TurnEnd.js"

/** Why a turn is stopped before it ends. */
export type StopReason = { readonly cancel: CancelReason } | { readonly halt: string }

/** Shared between a turn and its cancellers. */
export interface StopSignal {
  /** Set before the turn is stopped. */
  reason: StopReason | undefined
  /**
   * Set by the turn when it decides to end: from then on it reads no more messages. The exit of an interrupted fiber
   * could not carry it.
   */
  end: TurnEnd | undefined
}

/** The signal of a turn that was not stopped. */
export const fresh = (): StopSignal => ({ reason: undefined, end: undefined })

export interface Options {
  readonly session: TurnContext
  readonly stop: StopSignal
  /** Ids for calls to which the model gave none. */
  readonly newCallId: () => string
  /** Present for a turn that another process began. */
  readonly begun: Begun | undefined
  /** Yields something when a typed result is wanted. */
  readonly output: () => TypedOutput | undefined
}

/** A turn that another process began. */
export interface Begun {
  /** Step of its last model call. */
  readonly step: number
  /** Calls whose results are still missing. */
  readonly batch: SessionSnapshot.Batch | undefined
  /** Called before the next model call: all work of the other process is resumed. */
  readonly caughtUp: () => void
}

/** How the turn ended, once it is over. */
export const endOf = (stop: StopSignal): TurnEnd => stop.end ?? stopped(stop, 0)

export class Turn {
  private readonly fiber: TurnFiber
  /** Number of model calls. */
  private count: number
  private recoveries = 0
  /** The model has answered nothing, and was asked again. */
  private wasEmpty = false
  /** What the last model call took of the context window. */
  private context: AgentEvent.ContextUse | undefined
  /** Why the model was asked again without these files. */
  private refused: { readonly cause: Cause.Cause<ModelError>; readonly files: Files } | undefined
  private readonly repetition: RepetitionLimit
  crash: Cause.Cause<never> | undefined
  /** Interrupts the model's answer. */
  private readonly cut = () => this.fiber.interruptSection()

  constructor(private readonly options: Options) {
    const { begun, session } = options
    this.count = begun?.step ?? 0
    this.repetition = new RepetitionLimit(session.limits.identicalErrors)
    this.fiber = new TurnFiber({ gracePeriod: session.limits.stopWithin, failed: (cause) => this.failByCause(cause) })
  }

  /**
   * Runs the turn to its end, which the stop signal then holds, and then `ended`: see {@link TurnFiber.run}. The input is
   * already in the history. It never fails.
   */
  run(input: ReadonlyArray<Message>, ended: () => Work, fork: Fork): Work {
    return this.fiber.run(this.steps(input), ended, fork)
  }

  private *steps(input: ReadonlyArray<Message>): Steps {
    const { begun, session } = this.options
    const { compaction, inbox, journal } = session
    // Waiting for room on the bus is interruptible, so that a turn can be cancelled when nobody reads.
    yield* Effect.interruptible(Region.once(session.bus.awaitRoom))
    this.markUnseen(input)
    let batch = begun && this.resumeBatch(begun)
    if (begun !== undefined && batch === undefined && this.wasAnswered()) return this.end(this.completed())
    for (;;) {
      if (batch === undefined) {
        // A synchronous model with synchronous tools must not block the event loop.
        if (session.shouldYield()) yield* EventLoop.yieldToEventLoop
        if (this.fiber.isStopped) return this.end(this.stopped())
        // Before the steering is read: messages that this turn cannot answer begin the next one.
        if (this.count >= session.limits.maxSteps) {
          const end = TurnLimit({ text: this.lastText(), steps: this.count })
          yield* this.compactBeforeEnd(end)
          return this.end(end)
        }
        if (TokenBudget.isReached(session)) {
          const refusal = yield* Effect.interruptible(TokenBudget.refusal(session))
          if (refusal !== undefined) return this.end(Failed({ error: refusal, steps: this.count }))
        }
        yield* this.awaitServers()
        if (this.fiber.isStopped) return this.end(this.stopped())
        this.readSteering()
        const tooMuch = compaction.due("beforeSend")
        if (tooMuch !== undefined) {
          yield* Effect.interruptible(compaction.run(tooMuch, () => this.readSteering()))
          this.readSteering()
        }

        const reply = yield* this.reply()
        if (reply === undefined) return this.end(this.stopped())
        if (Exit.isFailure(reply)) {
          // A history that the model refuses as too long is shortened, a few times.
          const shorter = this.isToBeShortened(reply.cause)
            ? yield* Effect.interruptible(compaction.recover(++this.recoveries, () => this.readSteering()))
            : false
          if (shorter || this.isForFiles(reply.cause)) continue
          yield* this.failByModel(this.refused?.cause ?? reply.cause)
          return
        }
        if (this.refused !== undefined) this.leaveOut(this.refused.files, reply.value)
        this.recoveries = 0
        compaction.reported(this.context?.tokens ?? 0)
        if (reply.value.calls.length === 0) {
          const end = this.endByAnswer(reply.value)
          if (end === undefined) continue
          yield* this.compactBeforeEnd(end)
          if (end._tag === "Completed" && inbox.hasSteering()) continue
          return this.end(end)
        }
        batch = this.proposeBatch(reply.value)
      }

      // The calls and their results enter the history together, also when the turn is stopped meanwhile.
      const tools = batch
      yield* this.awaitServers()
      let ran: Exit.Exit<void> = Exit.void
      let state: ToolBatch.State = "on"
      while (state === "on") {
        ran = yield* this.fiber.section(tools.work(), () => tools.abandon(), tools.hasBegun)
        state = tools.stateAfter(ran)
      }
      if (state === "broken") {
        yield* tools.stop()
        this.settle(tools)
        yield* tools.cleanUp()
        return yield* Exit.asVoid(ran)
      }
      yield* tools.cleanUp()
      const repeated = this.settle(tools)
      batch = undefined
      if (this.fiber.isStopped) continue
      // The turn ends when the journal cannot be written: the next step must not run on an unrecorded one.
      const flushed = journal === undefined ? undefined : yield* Effect.either(journal.flush)
      if (flushed?._tag === "Left") return this.end(Failed({ error: flushed.left, steps: this.count }))
      if (repeated !== undefined) return this.end(repeated)
    }
  }

  /** A model call has the tools of servers that start in time, and a call finds a server that has just come back. */
  private *awaitServers(): Steps {
    const arrival = this.options.session.tools.arrival?.()
    if (arrival !== undefined) yield* Effect.interruptible(arrival)
  }

  /**
   * One model call. Interrupted by an interjection it yields the partial answer; undefined when the turn was stopped. A
   * generator of its own, so that a turn that waits for its tools does not hold what the call was made of.
   */
  private *reply(): Steps<Exit.Exit<Generated, ModelError> | undefined> {
    const { session } = this.options
    const generation = this.generation()
    const { model } = generation
    const span = Spans.areOff(session.spans) ? undefined : new SessionSpan.ModelSpan(session, model, this.count)
    const attempt = (run: typeof generation.run) =>
      this.fiber.section(span === undefined ? run : span.around(run), () => generation.left())
    let reply = yield* attempt(generation.run)
    while (this.isToBeRetried(generation, reply)) reply = yield* attempt(generation.retry)
    if (span !== undefined) yield* span.end(reply)
    session.state.cut = undefined
    if (this.fiber.isStopped) {
      this.reportCall(model, generation.partial(interrupted))
      return undefined
    }
    const kept = this.keepPartial(generation, reply)
    const isRoom = this.reportCall(model, Exit.isSuccess(kept) ? kept.value : generation.partial("error"))
    if (!isRoom) yield* Effect.interruptible(session.bus.awaitRoom)
    return kept
  }

  get logged(): Effect.Effect<void> {
    const { agent, sessionId } = this.options.session.origin
    const { redactor } = this.options.session
    return Defect.log("The agent", this.crash ?? Cause.empty, redactor, { session: sessionId, agent })
  }

  /** Stops the turn for the reason in the stop signal, as soon as it is interruptible. */
  stop(): void {
    this.fiber.stop()
  }

  /** The unfinished calls of the process that began the turn; undefined when the model is next. */
  private resumeBatch({ batch }: Begun): ToolBatch.ToolBatch | undefined {
    const { history, state } = this.options.session
    if (batch !== undefined) {
      const calls = batch.calls.map(({ call }) => call)
      const { content } = batch
      return this.batchOf({ calls, content }, new Map(batch.calls.map((past) => [past.call.id, past])))
    }
    const unread = history.messages.slice(history.messages.findLastIndex(({ role }) => role === "assistant") + 1)
    for (const message of unread) {
      const { isInterjection, messageId } = History.metadata(message)
      if (isInterjection === true && messageId !== undefined) state.unseen.push(messageId)
    }
    return undefined
  }

  /** Whether the first process had the turn's answer, and no message came since. */
  private wasAnswered(): boolean {
    const { history, inbox } = this.options.session
    const last = history.messages.at(-1)
    return last?.role === "assistant" && History.metadata(last).partial !== true && !inbox.hasSteering()
  }

  /** Moves all new steering messages into the history, and what goes along. */
  private readSteering(): void {
    const { history, inbox, journal, state } = this.options.session
    if (!inbox.hasForStep()) return
    const steering = inbox.takeSteering()
    history.appendInput(steering)
    if (state.correlationId !== undefined) journal?.taken(steering, state.correlationId, this.count + 1)
    this.markUnseen(steering)
  }

  private markUnseen(messages: ReadonlyArray<Message>): void {
    const { unseen } = this.options.session.state
    for (const { id, interjection } of messages) if (interjection !== undefined) unseen.push(id)
  }

  private generation(): Generation {
    const { begun, newCallId, output, session } = this.options
    const { state } = session
    begun?.caughtUp()
    this.count++
    for (const messageId of state.unseen)
      emit(session, { _tag: "InterjectionAcknowledged", messageId, step: this.count })
    state.unseen.length = 0
    const { model } = state
    setStatus(session, "thinking")
    emit(session, { _tag: "ModelCallStarted", model: model.id, step: this.count })
    state.cut = this.cut
    return new Generation(session, model, newCallId, this.fiber, output(), this.refused?.files)
  }

  /** Whether the model was silent for too long, and neither a stop nor an interjection is pending. */
  private isToBeRetried(generation: Generation, reply: Exit.Exit<Generated, ModelError>): boolean {
    return !this.fiber.isStopped && !this.options.session.inbox.hasSteering() && generation.isToBeRetried(reply)
  }

  /** An interjection is filed before it interrupts; without one, the call was interrupted from inside. */
  private keepPartial(
    generation: Generation,
    exit: Exit.Exit<Generated, ModelError>
  ): Exit.Exit<Generated, ModelError> {
    if (Exit.isSuccess(exit) || !Cause.isInterruptedOnly(exit.cause)) return exit
    if (this.options.session.inbox.hasSteering()) return Exit.succeed(generation.partial(interrupted))
    return Exit.fail(new BadOutput({ model: generation.model.id, message: "The model call was broken off." }))
  }

  /** Publishes the end of a model call. False: the bus is full. */
  private reportCall({ contextWindow, id: model }: Model, { finishReason, remark, usage }: Generated): boolean {
    const { session } = this.options
    const { count: step } = this
    TokenBudget.spend(session, { model, usage, kind: "call" })
    const { correlationId } = session.state
    const context = TokenUsage.contextOf(model, usage, contextWindow)
    this.context = context
    const told = () => ({ model, step, finishReason, usage, ...(remark && { remark }) })
    const window = contextWindow === undefined ? {} : { window: contextWindow }
    if (correlationId !== undefined) session.journal?.used({ correlationId, ...told(), ...window })
    if (finishReason !== interrupted && remark === undefined)
      return context === undefined
        ? emit(session, { _tag: "ModelCallEnded", model, step, finishReason, usage })
        : emit(session, { _tag: "ModelCallEnded", model, step, finishReason, usage, context })
    const stopped = finishReason === interrupted ? { interrupted: true } : {}
    return emit(session, { _tag: "ModelCallEnded", ...told(), ...(context && { context }), ...stopped })
  }

  /** The model called nothing. Yields how the turn ends, unless the model is to be asked again. */
  private endByAnswer({ content, finishReason, remark, result }: Generated): TurnEnd | undefined {
    const { session } = this.options
    const output = this.options.output()
    const { history, inbox, journal } = session
    const isWorkDone = History.endsInResults(history)
    history.appendAssistant(content, { partial: finishReason === interrupted })
    journal?.answered(content, finishReason === interrupted)
    // A provider that pauses expects another call.
    if (inbox.hasSteering() || finishReason === "pause") return undefined
    if (output !== undefined) return this.typed(output, session.redactor.text(result ?? PromptMessage.textIn(content)))
    if (content.some(hasWords)) return this.completed()
    if (remark === undefined) {
      // The work was the answer, and nothing is left to say.
      if (isWorkDone) return Completed({ text: "", steps: this.count })
      if (content.length === 0 && !this.wasEmpty && this.count < session.limits.maxSteps) {
        this.wasEmpty = true
        return undefined
      }
    }
    const why = remark === undefined ? "" : ` ${remark}`
    const what =
      content.length === 0 ? "The model's answer was empty." : "The model's answer holds thoughts and no words."
    return Failed({ error: `${what}${why} Ask again.`, steps: this.count })
  }

  /** Takes the answer as the typed result. A model that answered something else is told so, a few times. */
  private typed(output: TypedOutput, text: string): TurnEnd | undefined {
    const { inbox, limits } = this.options.session
    const invalid = output.read(text)
    if (invalid === undefined) return Completed({ text, steps: this.count })
    if (output.failures > limits.outputRetries) return Failed({ error: invalid.message, steps: this.count })
    // Filed and read in one step: words that a stopped turn had not read would begin the next one.
    inbox.file({ text: `${invalid.message} Give the result again, complete.`, source: "system" }, "steer")
    this.readSteering()
    return undefined
  }

  private isToBeShortened(cause: Cause.Cause<ModelError>): boolean {
    const isTooLong = Option.exists(Cause.failureOption(cause), ({ _tag }) => _tag === "ContextTooLong")
    return isTooLong && this.recoveries < Compaction.maxRecoveries
  }

  /** Whether files in the history may be why it failed. Then the model is asked again without them, once. */
  private isForFiles(cause: Cause.Cause<ModelError>): boolean {
    const { session } = this.options
    const failure = Option.getOrUndefined(Cause.failureOption(cause))
    if (this.refused !== undefined || failure === undefined || !session.history.hasFiles()) return false
    const files = RefusedFiles.suspected(session, failure)
    if (files.size > 0) this.refused = { cause, files }
    return files.size > 0
  }

  private leaveOut(files: Files, { content, finishReason }: Generated): void {
    // Words that cut it off at once say nothing of the files.
    if (finishReason === interrupted && content.length === 0) return
    this.refused = undefined
    RefusedFiles.leaveOut(this.options.session, files)
  }

  private proposeBatch({ calls, content, finishReason, usage }: Generated): ToolBatch.ToolBatch {
    const { journal, state } = this.options.session
    if (state.correlationId !== undefined) journal?.proposed(state.correlationId, this.count, content, calls)
    return this.batchOf({ calls, content }, undefined, finishReason === "length" ? cutAt(usage) : undefined)
  }

  private batchOf(
    { calls, content }: Pick<Generated, "calls" | "content">,
    before: ReadonlyMap<string, SessionSnapshot.CallSnapshot> | undefined,
    cut?: string
  ): ToolBatch.ToolBatch {
    const batch = new ToolBatch.ToolBatch(this.options.session, calls, content, before, this.fiber, cut)
    batch.propose()
    return batch
  }

  /** Yields the turn's end when the model repeats a fruitless call. */
  private settle(batch: ToolBatch.ToolBatch): TurnEnd | undefined {
    const { history, journal, state } = this.options.session
    const results = batch.results()
    history.appendAssistant(batch.content)
    history.appendResults(results)
    if (state.correlationId !== undefined) journal?.completed(state.correlationId)
    return this.repetition.endAfter(
      { calls: batch.calls, results, isRefused: batch.isRefused, cut: batch.cutOff },
      this.count
    )
  }

  /**
   * Compacts before the end, if that is due. A stop during it does not change the turn's end, as the turn is complete.
   */
  private compactBeforeEnd(end: TurnEnd): Effect.Effect<void> {
    if (end._tag === "Failed") return Effect.void
    const { compaction } = this.options.session
    const reason = compaction.due("afterTurn")
    if (reason === undefined) return Effect.void
    return Effect.onInterrupt(Effect.interruptible(compaction.run(reason)), () =>
      Effect.sync(() => {
        this.options.stop.end = end
      })
    )
  }

  private end(end: TurnEnd): void {
    this.options.stop.end = end
  }

  private completed(): TurnEnd {
    return Completed({ text: this.lastText(), steps: this.count })
  }

  private stopped(): TurnEnd {
    return stopped(this.options.stop, this.count)
  }

  /** The turn did not end by itself. */
  private failByCause(cause: Cause.Cause<never>): void {
    const { stop } = this.options
    if (Cause.isInterrupted(cause)) {
      stop.end ??= this.stopped()
      return
    }
    this.crash = cause
    stop.end ??= Failed({ error: Defect.sentence("The agent"), steps: this.count })
  }

  private failByModel(cause: Cause.Cause<ModelError>): Effect.Effect<void> {
    const { origin, redactor } = this.options.session
    const failure = Option.getOrUndefined(Cause.failureOption(cause))
    const error = failure === undefined ? Defect.sentence("The model") : redactor.text(failure.message)
    const end = () => this.end(Failed({ error, steps: this.count }))
    const place = { session: origin.sessionId, agent: origin.agent, model: this.options.session.state.model.id }
    const told = failure === undefined ? Defect.log("The model", cause, redactor, place) : Effect.void
    return Effect.map(told, end)
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

type Files = ReadonlySet<Prompt.FilePart>

/** Words, or a file, or what the provider did itself. */
const hasWords = (part: Prompt.AssistantMessagePart): boolean =>
  part.type === "text" ? part.text.trim() !== "" : part.type !== "reasoning"

/** The result of a call that the end of the output cut off. The model has used up all tokens that it may write. */
const cutAt = ({ outputTokens }: AgentEvent.Usage): string => {
  const limit = outputTokens === undefined ? "" : ` of ${outputTokens} tokens`
  return `The output limit${limit} cut this call off, so it did not run. Write less in one call: make several smaller calls.`
}

const stopped = ({ reason }: StopSignal, steps: number): TurnEnd =>
  reason !== undefined && "halt" in reason
    ? Halted({ detail: reason.halt, steps })
    : Cancelled({ reason: reason?.cancel ?? "shutdown", steps })
