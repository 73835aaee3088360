/**
 * One model call: it streams parts, publishes them as events, and collects them.
 *
 * A transient failure is retried after a delay that doubles, or that the provider named. Interrupting the generation
 * keeps the text that had arrived.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import type * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as AttachedFile from "../conversation/AttachedFile.js"
import { isImmediate } from "../internal/Immediate.js"
import * as Model from "../model/Model.js"
import * as WholeAnswer from "../model/WholeAnswer.js"
import type { TurnFiber } from "./TurnFiber.js"
import * as SilenceWatch from "./SilenceWatch.js"
import { ReplyCollector, type Generated } from "./ReplyCollector.js"
import { emit, setStatus, type TurnContext } from "./TurnContext.js"
import * as TokenBudget from "./TokenBudget.js"
import type { Asked, TypedOutput } from "./TypedOutput.js"

/** A model call: one attempt after the other until one succeeds. */
export class Generation implements SilenceWatch.Callbacks {
  private collector: ReplyCollector
  private number = 1
  private silence: SilenceWatch.SilenceWatch | undefined
  private wentSilent = false
  /** How a typed result is asked for. */
  private readonly asked: Asked | undefined

  constructor(
    private readonly session: TurnContext,
    readonly model: Model.Service,
    private readonly newCallId: () => string,
    private readonly turnFiber: Pick<TurnFiber, "interruptSection" | "abandon">,
    output: TypedOutput | undefined,
    /** Files that the model is not given. */
    private readonly withheld: ReadonlySet<Prompt.FilePart> | undefined
  ) {
    this.asked = output?.asked(model, session.tools.tools)
    this.collector = this.newCollector()
  }

  get run(): Effect.Effect<Generated, Model.ModelError> {
    return this.attempt(1)
  }

  /** Whether the attempt was interrupted because the model was silent for too long. */
  isToBeRetried(exit: Exit.Exit<unknown, unknown>): boolean {
    return this.wentSilent && Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)
  }

  /** Retries after a silent attempt, as after every transient failure. */
  get retry(): Effect.Effect<Generated, Model.ModelError> {
    return Effect.suspend(() => {
      this.wentSilent = false
      const { limits } = this.session
      const message = `The model said nothing for ${Duration.format(limits.modelSilence)}.`
      return this.again(new Model.Network({ model: this.model.id, message }), this.number)
    })
  }

  breakOff(): void {
    this.wentSilent = true
    this.turnFiber.interruptSection()
  }

  leave(): void {
    this.turnFiber.abandon()
  }

  /** It does not stop: its further output is ignored. */
  left(): void {
    const { model, session } = this
    this.silence?.stop()
    this.collector.mute()
    const message = `The model ${model.id} did not stop and was left behind. Make it interruptible.`
    emit(session, { _tag: "AgentError", message })
  }

  /** The text so far, and nothing else: unfinished calls and reasoning leave no trace. Closes the open block. */
  partial(finishReason: "interrupted" | "error"): Generated {
    this.silence?.stop()
    return this.collector.partial(finishReason)
  }

  private newCollector(): ReplyCollector {
    return new ReplyCollector(this.session, this.model.id, this.newCallId, this.asked?.tool)
  }

  private attempt(number: number): Effect.Effect<Generated, Model.ModelError> {
    return Effect.withFiberRuntime((fiber) => this.generated(number, fiber))
  }

  private generated(
    number: number,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ): Effect.Effect<Generated, Model.ModelError> {
    const { asked, model, session } = this
    if (number > 1) this.collector = this.newCollector()
    this.number = number
    const { collector } = this
    setStatus(session, "thinking")
    const { agent, sessionId } = session.origin
    const { history } = session
    const prompt = history.hasFiles() ? AttachedFile.readable(history.prompt, model, this.withheld) : history.prompt
    const { tools } = session.tools
    const request: Model.Request =
      asked === undefined
        ? { prompt, tools, agent, sessionId, session }
        : { prompt, tools: asked.tools, agent, sessionId, session, outputSchema: asked.outputSchema }
    const whole = WholeAnswer.of(model.stream)?.(request)
    const { modelSilence, stopWithin } = session.limits
    const clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
    this.silence =
      whole !== undefined && isImmediate(whole) ? undefined : SilenceWatch.make(this, modelSilence, stopWithin, clock)
    collector.silence = this.silence
    // What follows the answer is in the same step, also the retry: a step each was a tenth of a turn's steps.
    const onFailure = (error: Model.ModelError) => this.again(error, number)
    const onSuccess = () => this.finished(number)
    if (whole === undefined) {
      const taken = drain(model.stream(request), (parts) => collector.take(parts))
      return Effect.matchEffect(this.watched(taken), { onFailure, onSuccess })
    }
    return Effect.matchEffect(this.watched(whole), {
      onFailure,
      onSuccess: (parts) => {
        const taken = collector.take(parts)
        return taken === Effect.void ? onSuccess() : Effect.matchEffect(taken, { onFailure, onSuccess })
      }
    })
  }

  private watched<A, E>(call: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return this.silence === undefined ? call : this.silence.watch(call)
  }

  private finished(number: number): Effect.Effect<Generated, Model.ModelError> {
    this.silence?.stop()
    const generated = this.collector.finish()
    return isImmediate(generated) ? generated : Effect.catchAll(generated, (error) => this.again(error, number))
  }

  private again(error: Model.ModelError, number: number): Effect.Effect<Generated, Model.ModelError> {
    const { collector, model, session } = this
    const { limits } = session
    this.silence?.stop()
    collector.closeBlock()
    if (!Model.isTransient(error)) return Effect.fail(error)
    const asked = error._tag === "Network" ? undefined : error.retryAfter
    if (asked !== undefined && asked > Duration.toMillis(limits.retryWithin)) return tooLate(error, asked)
    if (number >= limits.modelAttempts) return Effect.fail(error)
    return Effect.flatMap(Random.nextRange(0.5, 1), (jitter) => {
      const doubled = Duration.toMillis(limits.retryDelay) * 2 ** (number - 1) * jitter
      const delay = Math.round(asked ?? Math.min(doubled, Duration.toMillis(limits.maxRetryDelay)))
      const reason = session.redactor.text(error.message)
      const { modelAttempts: attempts } = limits
      emit(session, { _tag: "ModelRetried", model: model.id, attempt: number + 1, attempts, reason, delay })
      TokenBudget.spend(session, { model: model.id, usage: {}, kind: "retry" })
      return Effect.zipRight(Effect.sleep(delay), this.attempt(number + 1))
    })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A wait that is too long for a turn: the failure says when it is over. */
const tooLate = (error: Model.ModelError, wait: number): Effect.Effect<never, Model.ModelError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const { message, model } = error
    const over = new Date(now + wait)
      .toISOString()
      .replace(/:\d\d\.\d+Z$/, " UTC")
      .replace("T", " ")
    const seconds = Duration.seconds(Math.ceil(wait / 1_000))
    const said = `${message} The provider asks for a pause of ${Duration.format(seconds)}. Come back at ${over}.`
    return Effect.fail(
      new (error._tag === "RateLimited" ? Model.RateLimited : Model.Overloaded)({
        model,
        message: said,
        retryAfter: wait
      })
    )
  })

/**
 * `Stream.runForEachChunk` at a tenth of its cost. The stream's resources are released by the channel that follows it,
 * which begins after its finalizers, or by closing the scope when the stream ends early. Always closing it would cost
 * more than all the rest.
 */
const drain = <A, E>(
  stream: Stream.Stream<A, E>,
  take: (chunk: Chunk.Chunk<A>) => Effect.Effect<void, E>
): Effect.Effect<void, E> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Scope.make(), (scope) =>
      Effect.flatMap(
        Channel.toPullIn(
          Channel.flatMap(Stream.toChannel(stream), () => Channel.void),
          scope
        ),
        (pull) => {
          const next: Effect.Effect<void, E> = Effect.flatMap(pull, (pulled) => {
            if (Either.isLeft(pulled)) return Effect.void
            const taken = take(pulled.right)
            return taken === Effect.void ? next : Effect.flatMap(taken, () => next)
          })
          return Effect.catchAllCause(restore(next), (cause) =>
            Effect.zipRight(Scope.close(scope, Exit.failCause(cause)), Effect.failCause(cause))
          )
        }
      )
    )
  )
