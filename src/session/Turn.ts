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
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { IdGenerator } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type { ModelError } from "../model/Model.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type { Message } from "../inbox/Message.js"
import type { Interactor } from "../interaction/Interactor.js"
import type { ToolResult } from "../tool/ToolCall.js"
import * as Generation from "./Generation.js"
import * as History from "./History.js"
import { emit, tell, type SessionContext } from "./SessionContext.js"
import * as ToolExecutor from "./ToolExecutor.js"

/** How a turn ended: a value, never an exception. */
export type TurnEnd = Data.TaggedEnum<{
  /** The model had nothing more to do; `text` is its last answer. */
  readonly Completed: { readonly text: string; readonly steps: number }
  readonly Cancelled: { readonly reason: CancelReason; readonly steps: number }
  /** The limit of model calls was reached; `text` is what there is so far. */
  readonly TurnLimit: { readonly text: string; readonly steps: number }
  /** Nobody was there to answer a question. */
  readonly Halted: { readonly detail: string; readonly steps: number }
  /** The model or the loop failed; the session stays usable. */
  readonly Failed: { readonly error: string; readonly steps: number }
}>
export const { Completed, Cancelled, TurnLimit, Halted, Failed, $is: is, $match: match } = Data.taggedEnum<TurnEnd>()

/** What a turn and whoever stops it tell each other. */
export interface StopSignal {
  /** Set before the turn's fiber is interrupted. */
  reason: { readonly cancel: CancelReason } | { readonly halt: string } | undefined
  /** Set by the turn when it ends; the exit of an interrupted fiber could not carry it. */
  end: TurnEnd | undefined
}

/**
 * Runs one turn on these messages, which the history holds already. Never fails; being interrupted is an end like others.
 * Run it uninterruptibly, so that it can say how it ended also then.
 */
export const run = (
  session: SessionContext,
  input: ReadonlyArray<Message>,
  stop: StopSignal
): Effect.Effect<void, never, Interactor> =>
  Effect.flatMap(IdGenerator, (ids) => {
    const turn = new Turn(session, () => ids.unsafeNext("call"))
    return Effect.map(Effect.exit(Effect.interruptible(turn.run(input))), (exit) => {
      stop.end = Exit.isSuccess(exit) ? exit.value : failureOf(session, exit.cause, stop, turn.steps)
    })
  })

/** How the turn ended, once its fiber has. */
export const endOf = (stop: StopSignal): TurnEnd => stop.end ?? stopped(stop, 0)

export const endReason = (end: TurnEnd): AgentEvent.EndReason =>
  (
    ({
      Completed: "completed",
      Cancelled: "cancelled",
      TurnLimit: "turn_limit",
      Halted: "halted",
      Failed: "failed"
    }) as const
  )[end._tag]

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
    private readonly newCallId: () => string
  ) {}

  run(input: ReadonlyArray<Message>): Effect.Effect<TurnEnd, never, Interactor> {
    const { history, inbox, limits } = this.session
    return Effect.gen(this, function* () {
      let fresh = input
      for (;;) {
        if (inbox.hasSteering()) {
          const steering = inbox.takeSteering()
          history.appendInput(steering)
          fresh = [...fresh, ...steering]
        }
        if (this.steps >= limits.maxSteps) return TurnLimit({ text: this.lastText(), steps: this.steps })
        this.steps++
        for (const message of fresh) {
          if (message.interjection !== undefined) {
            emit(this.session, { _tag: "InterjectionAcknowledged", messageId: message.id, step: this.steps })
          }
        }
        fresh = []
        const exit = yield* this.generate()
        if (Exit.isFailure(exit)) return this.failed(exit.cause)
        const { content, calls } = exit.value
        if (calls.length > 0) {
          const stop = yield* this.useTools(content, calls)
          if (stop !== undefined) return stop
        } else {
          history.appendAssistant(content, { partial: exit.value.finishReason === interrupted })
          if (exit.value.finishReason !== interrupted && !inbox.hasSteering()) {
            return Completed({ text: this.lastText(), steps: this.steps })
          }
        }
      }
    })
  }

  /** One model call. Interrupting its fiber alone yields what had arrived; interrupting the turn discards it. */
  private generate(): Effect.Effect<Exit.Exit<Generation.Generated, ModelError>> {
    const { session } = this
    const step = this.steps
    const model = session.model().id
    const generation = Generation.make(session, step, this.newCallId)
    const ended = (generated: Generation.Generated, wasInterrupted: boolean) =>
      tell(session, {
        _tag: "ModelCallEnded",
        model,
        step,
        finishReason: generated.finishReason,
        usage: generated.usage,
        ...(wasInterrupted ? { interrupted: true } : {})
      })
    return Effect.flatMap(Effect.fork(generation.run), (fiber) => {
      session.state.generation = fiber
      return Fiber.await(fiber).pipe(
        Effect.onInterrupt(() => Effect.zipRight(Fiber.interrupt(fiber), ended(generation.partial(), true))),
        Effect.ensuring(
          Effect.sync(() => {
            session.state.generation = undefined
          })
        ),
        Effect.flatMap((exit): Effect.Effect<Exit.Exit<Generation.Generated, ModelError>> => {
          if (Exit.isSuccess(exit)) return Effect.as(ended(exit.value, false), exit)
          const partial = generation.partial()
          if (!Cause.isInterruptedOnly(exit.cause)) return Effect.as(ended(partial, false), exit)
          return Effect.as(ended(partial, true), Exit.succeed(partial))
        })
      )
    })
  }

  /** Runs a batch; the calls and their results enter the history together, also when the turn is cancelled meanwhile. */
  private useTools(
    content: Generation.Generated["content"],
    calls: Generation.Generated["calls"]
  ): Effect.Effect<TurnEnd | undefined, never, Interactor> {
    const { history } = this.session
    const batch = ToolExecutor.make(this.session, calls)
    let results: ReadonlyArray<ToolResult> = []
    const record = Effect.sync(() => {
      results = batch.results()
      history.appendAssistant(content)
      history.appendResults(results)
    })
    return Effect.map(Effect.ensuring(batch.run, record), () => this.afterResults(results))
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
    return History.textOf(this.session.history.messages.findLast((message) => message.role === "assistant"))
  }
}

const interrupted = "interrupted"
