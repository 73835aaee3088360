/**
 * Collects the output of one attempt of a model call: publishes it as events while it arrives, and keeps it as the
 * content of an answer.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as EventLoop from "../internal/EventLoop.js"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type { ToolCallId } from "../core/Id.js"
import type * as Redaction from "../core/Redaction.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import * as Model from "../model/Model.js"
import type { ToolCall } from "../tool/ToolCall.js"
import * as PromptMessage from "../conversation/PromptMessage.js"
import { emit, setStatus, type TurnContext } from "./TurnContext.js"
import type { SilenceWatch } from "./SilenceWatch.js"

/** The result of a model call, complete or partial. */
export interface Generated {
  readonly content: ReadonlyArray<Prompt.AssistantMessagePart>
  /** In proposal order. Arguments as the model wrote them. */
  readonly calls: ReadonlyArray<ToolCall>
  /** The typed result as the model wrote it, JSON, when it gave it through our tool. */
  readonly result: string | undefined
  readonly finishReason: string
  readonly usage: AgentEvent.Usage
  /** A sentence for people when parts of the answer were left out, or it was cut off at its limit. */
  readonly remark: string | undefined
}

type Block = "text" | "thinking"

/** Parts that are taken before the fiber yields. */
const mostAtOnce = 256

export class ReplyCollector {
  private readonly content: Array<Prompt.AssistantMessagePart> = []
  private readonly calls: Array<ToolCall> = []
  private ids: Set<string> | undefined
  private text = ""
  private shown: Redaction.Flow | undefined
  /** The calls that the model is writing, by the ids that it gave them. */
  private written: Map<string, { readonly id: ToolCallId; readonly arguments: Redaction.Flow }> | undefined
  private options: Prompt.ProviderOptions = {}
  private block: Block | undefined
  private size = 0
  private finishReason: string | undefined
  private usage: AgentEvent.Usage = {}
  private remark: string | undefined
  private room = true
  private muted = false
  private result: string | undefined
  /** The call of our own tool, whose arguments are not shown. */
  private resultCall: string | undefined
  /** Notified of every sign of life. */
  silence: SilenceWatch | undefined

  constructor(
    private readonly session: TurnContext,
    private readonly model: string,
    private readonly newCallId: () => string,
    /** The name of our tool for a typed result, when it is offered. */
    private readonly resultTool: string | undefined
  ) {}

  /** Ignores all further parts. */
  mute(): void {
    this.muted = true
  }

  take(parts: Iterable<Model.Part>): Effect.Effect<void, Model.ModelError> {
    this.silence?.heard()
    if (this.muted) return Effect.void
    return this.takeRest(parts[Symbol.iterator]())
  }

  private takeRest(parts: Iterator<Model.Part>): Effect.Effect<void, Model.ModelError> {
    let next = parts.next()
    for (let count = 1; next.done !== true; next = parts.next(), count++) {
      const failure = this.takePart(next.value)
      if (failure !== undefined) return Effect.fail(failure)
      // A model may deliver very many parts at once.
      if (count % mostAtOnce === 0) return Effect.flatMap(this.pause(), () => this.takeRest(parts))
    }
    return this.pause()
  }

  /** Waits for room on the event bus (back-pressure), and lets other fibers run. */
  private pause(): Effect.Effect<void> {
    const { session } = this
    const breath = session.shouldYield() ? EventLoop.yieldToEventLoop : Effect.void
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
    const { finishReason, remark, result, usage } = this
    // Copied, because a grown array reserves room for more than most answers need, and these may be kept for long.
    return Effect.succeed({ content: [...this.content], calls: [...this.calls], result, finishReason, usage, remark })
  }

  partial(finishReason: "interrupted" | "error"): Generated {
    this.closeBlock()
    const content = this.content.filter((part) => part.type === "text")
    return { content, calls: [], result: undefined, finishReason, usage: this.usage, remark: undefined }
  }

  /** Ends the open block of text or thinking and keeps its content. */
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
      case "tool-params-start":
        if (part.name === this.resultTool) this.resultCall = part.id
        // Some servers repeat ids.
        else {
          if (part.id === this.resultCall) this.resultCall = undefined
          if (part.providerExecuted !== true) this.beginCall(part.id, part.name)
        }
        return undefined
      case "tool-params-delta": {
        const call = part.id === this.resultCall ? undefined : this.written?.get(part.id)
        if (call !== undefined) this.tellArguments(call.id, call.arguments.push(part.delta))
        return this.grow(part.delta.length)
      }
      case "tool-params-end":
        return this.endArguments(part.id)
      case "tool-call": {
        if (part.name === this.resultTool) return this.takeResult(part.params)
        this.closeBlock()
        this.endArguments(part.id)
        const providerExecuted = part.providerExecuted ?? false
        const id = providerExecuted ? (part.id as ToolCallId) : (this.written?.get(part.id)?.id ?? this.idOf(part.id))
        this.written?.delete(part.id)
        const { metadata } = part
        // A name that a model made up goes into journals as its other words do.
        const name = this.session.redactor.text(part.name)
        const params = bounded(part.params)
        this.content.push(PromptMessage.toolCall({ id, name, params, providerExecuted }, metadata))
        if (!providerExecuted) this.calls.push({ id, name, params })
        return undefined
      }
      case "tool-result":
        // A result of the provider itself is part of the assistant's message.
        this.content.push(
          PromptMessage.toolResult({ ...part, result: bounded(part.result), providerExecuted: true }, part.metadata)
        )
        return undefined
      case "finish": {
        this.finishReason = part.reason
        this.usage = Model.usageIn(part)
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

  /** The result becomes a text of the answer, as if the model had written it. */
  private takeResult(params: unknown): undefined {
    this.closeBlock()
    this.resultCall = undefined
    this.result = typeof params === "string" ? params : canonicalJson(bounded(params))
    this.content.push(PromptMessage.text(this.result))
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

  private beginCall(given: string, name: string): void {
    this.closeBlock()
    const { redactor } = this.session
    const id = this.idOf(given)
    ;(this.written ??= new Map()).set(given, { id, arguments: redactor.flow() })
    this.tell({ _tag: "ToolArgumentsStarted", toolCallId: id, tool: redactor.text(name) })
  }

  /** Some servers omit ids or repeat them, also those of earlier steps; a result must name exactly one call. */
  private idOf(given: string): ToolCallId {
    const id = given === "" || this.isTaken(given) ? this.newCallId() : given
    this.ids = (this.ids ?? new Set()).add(id)
    return id as ToolCallId
  }

  private isTaken(id: string): boolean {
    return this.ids?.has(id) === true || this.session.history.hasCall(id)
  }

  private endArguments(given: string): undefined {
    const call = this.written?.get(given)
    if (call !== undefined) this.tellArguments(call.id, call.arguments.end())
  }

  private tellArguments(toolCallId: ToolCallId, text: string): void {
    if (text !== "") this.tell({ _tag: "ToolArgumentsDelta", toolCallId, text })
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
 * The model's arguments, or a sentence when they are too deep or too large for later code. A text is no valid
 * arguments, so the call gets an error that the model can correct.
 */
const bounded = (given: unknown): unknown => {
  const refusal = UntrustedJson.refusal(given)
  return refusal === undefined ? given : `(left out: what was given here ${refusal.message})`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const reported = (error: unknown): string => {
  if (error instanceof Error) return error.message
  return typeof error === "string" ? error : canonicalJson(error)
}
