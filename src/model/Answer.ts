/**
 * The answer of a provider while it arrives: readers of all formats put in what its events say, and parts come out.
 *
 * Providers add things and leave things out. Missing ids, ends of blocks and starts of calls are filled in. Unknown
 * parts are counted and reported with the end of the answer, so that no answer is silently incomplete. Nothing is
 * invented: a call has the name and the arguments that came.
 */
import type * as Response from "@effect/ai/Response"
import * as Tool from "@effect/ai/Tool"
import * as Either from "effect/Either"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type { ModelError } from "./ModelError.js"
import * as ModelPort from "./ModelPort.js"
import * as ProviderError from "./ProviderError.js"

/** A call, as far as it has arrived. */
export interface Call {
  /** The server's, unless it gave none or gave it twice. */
  readonly id: string
  /** The server's own id. */
  readonly given: string | undefined
  name: string
  /** The text of the arguments so far. */
  text: string
  metadata: Metadata | undefined
  ended: boolean
}

/** Metadata that a part's provider wants back, under the provider's name. */
export type Metadata = Response.ProviderMetadata

export type Usage = typeof Response.Usage.Encoded

export type Block = "text" | "reasoning"

/** Usage that no provider reported. */
export const unknownUsage: Usage = { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }

/** Usage as far as a provider reported it. */
export const usage = (counted: {
  readonly input: number | undefined
  readonly output: number | undefined
  readonly total?: number | undefined
  readonly reasoning?: number | undefined
  readonly cached?: number | undefined
}): Usage => {
  const { cached, input, output, reasoning } = counted
  const sum = input === undefined && output === undefined ? undefined : (input ?? 0) + (output ?? 0)
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: counted.total ?? sum,
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
    ...(cached === undefined ? {} : { cachedInputTokens: cached })
  }
}

/** The most calls of one answer: an endless answer is stopped there. */
const maxCalls = 4096

/** It is written by the format's event reader and read by the stream, one of each. */
export class Answer {
  private parts: Array<ModelPort.Part> = []
  private block: { readonly type: Block; readonly id: string } | undefined
  private blocks = 0
  private began = false
  private finished = false
  private events = 0
  private readonly open: Array<Call> = []
  private readonly ids = new Set<string>()
  private readonly leftOut = new Map<string, number>()
  private leftOutCount = 0
  private isRefused = false
  private failure: ModelError | undefined

  /** `nextId` makes ids for calls without one. */
  constructor(
    readonly source: ProviderError.Source,
    private readonly nextId: () => string
  ) {}

  /** Takes the parts since the last call. */
  taken(): ReadonlyArray<ModelPort.Part> {
    const { parts } = this
    if (parts.length > 0) this.parts = []
    return parts
  }

  get isFinished(): boolean {
    return this.finished
  }

  /** The error of an answer that cannot continue. */
  get broken(): ModelError | undefined {
    return this.failure
  }

  fail(error: ModelError): void {
    this.failure ??= error
  }

  /** Counts an event of any kind. */
  event(): void {
    this.events++
  }

  /** Begins the answer, once, with what is known by then. */
  begin(id: unknown, model: unknown): void {
    if (this.began) return
    this.began = true
    this.parts.push({
      type: "response-metadata",
      ...(typeof id === "string" && id !== "" ? { id } : {}),
      ...(typeof model === "string" && model !== "" ? { modelId: model } : {})
    })
  }

  /** Adds to the open block of that type, or opens one. */
  say(type: Block, delta: string, metadata?: Metadata): void {
    if (delta === "") return
    this.openBlock(type)
    this.parts.push({ type: `${type}-delta`, id: this.blockId, delta, ...given(metadata) })
  }

  /** Begins a new block, also an empty one. */
  begins(type: Block, metadata?: Metadata): void {
    this.close()
    this.openBlock(type, metadata)
  }

  /** Adds metadata to the open block; without an open block it is lost. */
  keep(type: Block, metadata: Metadata): void {
    if (this.block?.type === type) this.parts.push({ type: `${type}-delta`, id: this.block.id, delta: "", metadata })
  }

  close(metadata?: Metadata): void {
    if (this.block === undefined) return
    this.parts.push({ type: `${this.block.type}-end`, id: this.block.id, ...given(metadata) })
    this.block = undefined
  }

  /** Begins a call. Its name may be empty and come later. */
  call(id: string | undefined, name: string, metadata?: Metadata): Call {
    const own = id !== undefined && id !== "" && !this.ids.has(id) ? id : this.nextId()
    this.ids.add(own)
    if (this.ids.size > maxCalls) this.fail(ProviderError.badOutput(this.source, `it has more than ${maxCalls} calls`))
    const call: Call = { id: own, given: id, name: "", text: "", metadata, ended: false }
    this.open.push(call)
    this.name(call, name)
    return call
  }

  /** The first name counts. */
  name(call: Call, name: string): void {
    if (call.name !== "" || name === "") return
    this.close()
    call.name = name
    this.parts.push({ type: "tool-params-start", id: call.id, name })
    if (call.text !== "") this.parts.push({ type: "tool-params-delta", id: call.id, delta: call.text })
  }

  argue(call: Call, delta: string): void {
    if (delta === "" || call.ended) return
    call.text += delta
    if (call.name !== "") this.parts.push({ type: "tool-params-delta", id: call.id, delta })
  }

  /** Sets the whole arguments, for a server that sends them again, or only, at the end. */
  argueWhole(call: Call, text: string): void {
    if (call.text === text) return
    if (text.startsWith(call.text)) this.argue(call, text.slice(call.text.length))
    else call.text = text
  }

  /** Its arguments are complete. */
  end(call: Call): void {
    if (call.ended || call.name === "") return
    this.hand(call, paramsOf(call.text))
  }

  /** A call that the provider itself ran. */
  executed(
    call: { readonly id: string | undefined; readonly name: string; readonly params: unknown },
    metadata?: Metadata
  ): string {
    this.close()
    const { id = this.nextId(), name, params } = call
    this.parts.push({ type: "tool-call", id, name, params, providerExecuted: true, ...given(metadata) })
    return id
  }

  /** The result of such a call. */
  result(
    of: { readonly id: string; readonly name: string; readonly result: unknown; readonly isFailure: boolean },
    metadata?: Metadata
  ): void {
    this.close()
    this.parts.push({ type: "tool-result", ...of, providerExecuted: true, ...given(metadata) })
  }

  /** Counts an unknown part. */
  leaveOut(kind: unknown): void {
    this.leftOutCount++
    const name = nameOf(kind)
    if (this.leftOut.size < maxNamed || this.leftOut.has(name))
      this.leftOut.set(name, (this.leftOut.get(name) ?? 0) + 1)
  }

  /** The model finished for this reason. */
  finish(reason: Response.FinishReason, usage: Usage, metadata?: Metadata): void {
    if (this.finished || this.failure !== undefined) return
    if (reason === "error") {
      return this.fail(ProviderError.badOutput(this.source, "the model stopped because of an error"))
    }
    if (this.open.some((call) => call.name === "")) {
      return this.fail(ProviderError.badOutput(this.source, "it calls a tool without naming it"))
    }
    this.begin(undefined, undefined)
    this.close()
    for (const call of this.open) {
      if (call.ended) continue
      // A call that the limit cut off before its arguments is not a call with empty arguments.
      this.hand(call, reason === "length" && call.text.trim() === "" ? call.text : paramsOf(call.text))
    }
    this.finished = true
    const remark = this.remark()
    const remarked = remark === undefined ? metadata : merged(metadata, ModelPort.remarked(remark))
    this.parts.push({ type: "finish", reason: this.reasonOf(reason), usage, ...given(remarked) })
  }

  /** The stream ended without the model's finish. */
  cutOff(): void {
    if (this.finished) return
    const { events, leftOutCount, source } = this
    const remark = this.remark()
    const remarked = remark === undefined ? "" : `; ${lowered(remark)}`
    this.fail(
      events === 0
        ? ProviderError.network(source, "the answer was empty")
        : leftOutCount < events
          ? ProviderError.network(source, `${ProviderError.incomplete}${remarked}`)
          : ProviderError.badOutput(source, `none of it is understood${remarked}`)
    )
  }

  /** What is said now refuses to answer. */
  refuse(text: string): void {
    if (text !== "") this.isRefused = true
  }

  /** Sentences about a refusal and about unknown parts; undefined when there were none. */
  remark(): string | undefined {
    const leftOut = this.leftOutRemark()
    if (!this.isRefused) return leftOut
    return leftOut === undefined ? refusedToAnswer : `${refusedToAnswer}. ${leftOut}`
  }

  private leftOutRemark(): string | undefined {
    if (this.leftOutCount === 0) return undefined
    const names = Array.from(this.leftOut, ([name, count]) => (count === 1 ? name : `${name} (${count} times)`))
    const parts = this.leftOutCount === 1 ? "1 part" : `${this.leftOutCount} parts`
    const text = `The provider sent ${parts} that Assent does not understand: ${names.join(", ")}`
    return this.source.redactor === undefined ? text : this.source.redactor.text(text)
  }

  private hand(call: Call, params: unknown): void {
    this.close()
    call.ended = true
    const { id, metadata, name } = call
    this.parts.push({ type: "tool-params-end", id }, { type: "tool-call", id, name, params, ...given(metadata) })
  }

  private reasonOf(reason: Response.FinishReason): Response.FinishReason {
    // Some servers report `stop` or an unknown reason after tool calls; they expect the results too.
    const called = this.open.length > 0 && (reason === "stop" || reason === "other" || reason === "unknown")
    return called ? "tool-calls" : reason
  }

  private get blockId(): string {
    return this.block?.id ?? ""
  }

  private openBlock(type: Block, metadata?: Metadata): void {
    if (this.block?.type === type) return
    this.close()
    this.block = { type, id: String(this.blocks++) }
    this.parts.push({ type: `${type}-start`, id: this.block.id, ...given(metadata) })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxNamed = 5

const refusedToAnswer = "The model refused to answer"

/** Of one provider both parts are kept. */
const merged = (one: Metadata | undefined, other: Metadata): Metadata => {
  const parts = Object.entries(other).map(([name, part]) => [name, { ...one?.[name], ...part }])
  return { ...one, ...Object.fromEntries(parts) }
}

const given = (metadata: Metadata | undefined): { readonly metadata?: Metadata } =>
  metadata === undefined ? {} : { metadata }

const nameOf = (kind: unknown): string => {
  const name = typeof kind === "string" ? kind.replace(/[^\w.:/ -]+/g, "").trim() : ""
  return name === "" ? "one without a type" : name.slice(0, 60)
}

const lowered = (sentence: string): string => sentence.charAt(0).toLowerCase() + sentence.slice(1)

/**
 * The arguments of a call as text; some servers send the object itself. An object too deep for later code is replaced
 * with a sentence: that is no valid arguments, so the model can correct the call.
 */
export const written = (value: unknown): string => {
  if (typeof value === "string") return value
  if (value == null) return ""
  const refusal = UntrustedJson.refusal(value)
  return refusal === undefined ? JSON.stringify(value) : `(left out: what was given here ${refusal.message})`
}

/** The parsed arguments: an object, else the text itself, which the turn answers with an error. */
export const paramsOf = (text: string): unknown => {
  if (text.trim() === "") return {}
  // Text too deep for later code is not even parsed.
  if (UntrustedJson.textRefusal(text) !== undefined) return text
  return Either.getOrElse(
    Either.try((): unknown => Tool.unsafeSecureJsonParse(text)),
    () => text
  )
}
