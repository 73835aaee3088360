/**
 * One model call: streams parts, tells them as events, and collects them.
 *
 * A transient failure is tried again after a delay that doubles, or as long as the provider said. Interrupting the
 * generation keeps the text that had arrived.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Channel from "effect/Channel"
import type * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Breath from "../core/Breath.js"
import { canonicalJson } from "../core/Digest.js"
import * as ForeignJson from "../core/ForeignJson.js"
import type { ToolCallId } from "../core/Id.js"
import type * as Redaction from "../core/Redaction.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import * as Model from "../model/Model.js"
import type { ToolCall } from "../tool/ToolCall.js"
import * as PromptMessage from "./PromptMessage.js"
import { emit, setStatus, type SessionContext } from "./SessionContext.js"
import * as TokenBudget from "./TokenBudget.js"

/** What a model call yielded, complete or not. */
export interface Generated {
  readonly content: ReadonlyArray<Prompt.AssistantMessagePart>
  /** In proposal order. Arguments as the model wrote them. */
  readonly calls: ReadonlyArray<ToolCall>
  readonly finishReason: string
  readonly usage: AgentEvent.Usage
  /** A sentence for people where the answer is less than what was sent, or was cut off at its limit. */
  readonly remark: string | undefined
}

/** A model call: one attempt after the other until one succeeds. */
export class Generation {
  private collector: Collector

  constructor(
    private readonly session: SessionContext,
    private readonly model: Model.Service,
    private readonly newCallId: () => string
  ) {
    this.collector = new Collector(session, model.id, newCallId)
  }

  get run(): Effect.Effect<Generated, Model.ModelError> {
    return this.attempt(1)
  }

  /** The text so far, and nothing else: unfinished calls and reasoning leave no trace. Closes the open block. */
  partial(finishReason: "interrupted" | "error"): Generated {
    return this.collector.partial(finishReason)
  }

  private attempt(number: number): Effect.Effect<Generated, Model.ModelError> {
    return Effect.catchAll(
      Effect.suspend(() => this.generated(number)),
      (error) => this.again(error, number)
    )
  }

  private generated(number: number): Effect.Effect<Generated, Model.ModelError> {
    const { model, newCallId, session } = this
    if (number > 1) this.collector = new Collector(session, model.id, newCallId)
    const { collector } = this
    setStatus(session, "thinking")
    const { agent, sessionId } = session.origin
    const { prompt } = session.history
    const { tools } = session.tools
    const whole = model.answer?.(prompt, tools, { agent, sessionId })
    const taken =
      whole === undefined
        ? drain(model.stream(prompt, tools, { agent, sessionId }), (parts) => collector.take(parts))
        : Effect.flatMap(whole, (parts) => collector.take(parts))
    return Effect.flatMap(taken, () => collector.finish())
  }

  private again(error: Model.ModelError, number: number): Effect.Effect<Generated, Model.ModelError> {
    const { collector, model, session } = this
    const { limits } = session
    collector.closeBlock()
    if (!Model.isTransient(error) || number >= limits.modelAttempts) return Effect.fail(error)
    return Effect.flatMap(Random.nextRange(0.5, 1), (jitter) => {
      const asked = error._tag === "Network" ? undefined : error.retryAfter
      const doubled = Duration.toMillis(limits.retryDelay) * 2 ** (number - 1) * jitter
      const delay = Math.round(Math.min(asked ?? doubled, Duration.toMillis(limits.maxRetryDelay)))
      const reason = session.redactor.text(error.message)
      emit(session, { _tag: "ModelRetried", model: model.id, attempt: number + 1, reason, delay })
      TokenBudget.spend(session, { model: model.id, usage: {}, kind: "retry" })
      return Effect.zipRight(Effect.sleep(delay), this.attempt(number + 1))
    })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * `Stream.runForEachChunk` for a tenth of its price. What the stream holds is let go of: by the channel that follows it,
 * which begins once its finalizers have run, or by closing the scope when the stream is left early. Closing it in any case
 * would cost more than all the rest.
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

type Block = "text" | "thinking"

/** How many parts of an answer are taken in one go. */
const mostAtOnce = 256

class Collector {
  private readonly content: Array<Prompt.AssistantMessagePart> = []
  private readonly calls: Array<ToolCall> = []
  private text = ""
  private shown: Redaction.Flow | undefined
  private readonly shownArguments = new Map<string, Redaction.Flow>()
  private options: Prompt.ProviderOptions = {}
  private block: Block | undefined
  private size = 0
  private finishReason: string | undefined
  private usage: AgentEvent.Usage = {}
  private remark: string | undefined
  private room = true

  constructor(
    private readonly session: SessionContext,
    private readonly model: string,
    private readonly newCallId: () => string
  ) {}

  take(parts: Iterable<Model.Part>): Effect.Effect<void, Model.ModelError> {
    return this.takeRest(parts[Symbol.iterator]())
  }

  private takeRest(parts: Iterator<Model.Part>): Effect.Effect<void, Model.ModelError> {
    let next = parts.next()
    for (let count = 1; next.done !== true; next = parts.next(), count++) {
      const failure = this.takePart(next.value)
      if (failure !== undefined) return Effect.fail(failure)
      // A model may say very much at once.
      if (count % mostAtOnce === 0) return Effect.flatMap(this.pause(), () => this.takeRest(parts))
    }
    return this.pause()
  }

  /** Waits for whoever has to keep up with what was said. */
  private pause(): Effect.Effect<void> {
    const { session } = this
    const breath = session.isBreathless() ? Breath.give : Effect.void
    if (this.room) return breath
    this.room = true
    return Effect.zipRight(breath, session.bus.awaitRoom)
  }

  finish(): Effect.Effect<Generated, Model.ModelError> {
    this.closeBlock()
    const { model } = this
    if (this.finishReason === undefined) {
      return Effect.fail(new Model.Network({ model, message: "The model's answer was cut off." }))
    }
    if (this.finishReason === "content-filter") {
      return Effect.fail(new Model.Refused({ model, message: "The provider's content filter stopped the answer." }))
    }
    if (this.finishReason === "error") {
      return Effect.fail(new Model.BadOutput({ model, message: "The provider ended the answer with an error." }))
    }
    const { finishReason, remark, usage } = this
    // Copied, because an array that grew holds room for more than most answers have, and these may be held for long.
    return Effect.succeed({ content: [...this.content], calls: [...this.calls], finishReason, usage, remark })
  }

  partial(finishReason: "interrupted" | "error"): Generated {
    this.closeBlock()
    const content = this.content.filter((part) => part.type === "text")
    return { content, calls: [], finishReason, usage: this.usage, remark: undefined }
  }

  /** Ends the open block of text or thinking and keeps what it said. */
  closeBlock(): void {
    if (this.block === undefined) return
    const { block, text, options } = this
    this.tellDelta(block, this.shown?.end() ?? "")
    this.tell({ _tag: "BlockEnded", block })
    if (text !== "" || Object.keys(options).length > 0) {
      this.content.push(block === "text" ? PromptMessage.text(text, options) : PromptMessage.reasoning(text, options))
    }
    this.block = undefined
    this.text = ""
    this.options = {}
  }

  private takePart(part: Model.Part): Model.ModelError | undefined {
    switch (part.type) {
      case "text-start":
        return this.openBlock("text", part.metadata)
      case "text-delta":
        return this.delta("text", part.delta, part.metadata)
      case "reasoning-start":
        return this.openBlock("thinking", part.metadata)
      case "reasoning-delta":
        return this.delta("thinking", part.delta, part.metadata)
      case "text-end":
      case "reasoning-end":
        this.keep(part.metadata)
        this.closeBlock()
        return undefined
      case "tool-params-delta":
        this.tellArguments(part.id, this.argumentsOf(part.id).push(part.delta))
        return this.grow(part.delta.length)
      case "tool-params-end":
        return this.endArguments(part.id)
      case "tool-call": {
        this.closeBlock()
        this.endArguments(part.id)
        const providerExecuted = part.providerExecuted ?? false
        // Some servers leave ids out or repeat them, also those of earlier steps; a result must name exactly one call.
        const taken = part.id === "" || this.isTaken(part.id)
        const id = (taken && !providerExecuted ? this.newCallId() : part.id) as ToolCallId
        const { metadata, name } = part
        const params = bounded(part.params)
        this.content.push(PromptMessage.toolCall({ id, name, params, providerExecuted }, metadata))
        if (!providerExecuted) this.calls.push({ id, name, params })
        return undefined
      }
      case "tool-result":
        // A result the provider made itself travels with the assistant's message.
        this.content.push(
          PromptMessage.toolResult({ ...part, result: bounded(part.result), providerExecuted: true }, part.metadata)
        )
        return undefined
      case "finish": {
        this.finishReason = part.reason
        const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = part.usage
        this.usage = { inputTokens, outputTokens, cachedInputTokens, reasoningTokens }
        if (part.metadata !== undefined || part.reason === "length") this.remark = this.remarkOf(part)
        return undefined
      }
      case "error":
        return new Model.BadOutput({
          model: this.model,
          message: this.session.redactor.text(`The provider reported: ${reported(part.error)}`).slice(0, 500)
        })
      default:
        return undefined
    }
  }

  private remarkOf({ metadata, reason }: Extract<Model.Part, { readonly type: "finish" }>): string | undefined {
    const leftOut = Model.remarkOf(metadata)
    const said = [...(reason === "length" ? [cutAtLimit] : []), ...(leftOut === undefined ? [] : [`${leftOut}.`])]
    return said.length === 0 ? undefined : this.session.redactor.text(said.join(" "))
  }

  private openBlock(block: Block, metadata: Prompt.ProviderOptions | undefined): undefined {
    if (this.block !== undefined) this.closeBlock()
    this.block = block
    this.shown = this.session.redactor.flow()
    this.keep(metadata)
    setStatus(this.session, "streaming")
    this.tell({ _tag: "BlockStarted", block })
  }

  private delta(
    block: Block,
    text: string,
    metadata: Prompt.ProviderOptions | undefined
  ): Model.ModelError | undefined {
    if (this.block !== block) this.openBlock(block, undefined)
    this.text += text
    if (metadata !== undefined) this.keep(metadata)
    this.tellDelta(block, this.shown?.push(text) ?? "")
    return this.grow(text.length)
  }

  private isTaken(id: string): boolean {
    return this.calls.some((call) => call.id === id) || this.session.history.hasCall(id)
  }

  private argumentsOf(id: string): Redaction.Flow {
    const known = this.shownArguments.get(id)
    if (known !== undefined) return known
    const flow = this.session.redactor.flow()
    this.shownArguments.set(id, flow)
    return flow
  }

  private endArguments(id: string): undefined {
    const flow = this.shownArguments.get(id)
    if (flow === undefined) return
    this.shownArguments.delete(id)
    this.tellArguments(id, flow.end())
  }

  private tellArguments(id: string, text: string): void {
    if (text !== "") this.tell({ _tag: "ToolArgumentsDelta", toolCallId: id as ToolCallId, text })
  }

  private tellDelta(block: Block, text: string): void {
    if (text !== "") this.tell({ _tag: block === "text" ? "TextDelta" : "ThinkingDelta", text })
  }

  private grow(length: number): Model.ModelError | undefined {
    this.size += length
    if (this.size <= this.session.limits.maxGeneration) return undefined
    return new Model.BadOutput({
      model: this.model,
      message: `The model's answer was longer than ${this.session.limits.maxGeneration} characters and was stopped.`
    })
  }

  private keep(metadata: Prompt.ProviderOptions | undefined): void {
    if (metadata !== undefined) this.options = { ...this.options, ...metadata }
  }

  private tell(body: AgentEvent.Body): void {
    if (!emit(this.session, body)) this.room = false
  }
}

const cutAtLimit = "The model's answer was cut off at the limit of its length."

/**
 * What a model gave, or a sentence instead of it where everything after this would be lost in it: a text is no arguments, so
 * that the call gets an error which the model can correct.
 */
const bounded = (given: unknown): unknown => {
  const refusal = ForeignJson.refusal(given)
  return refusal === undefined ? given : `(left out: what was given here ${refusal.message})`
}

const reported = (error: unknown): string => {
  if (error instanceof Error) return error.message
  return typeof error === "string" ? error : canonicalJson(error)
}
