/**
 * The answer of a provider while it arrives: what its events say goes in, in whatever format, and parts come out.
 *
 * Providers add things and leave things out. What is missing is filled in: ids, ends of blocks, the announcement of a call.
 * What nobody here understands is counted, and told with the end of the answer, so that no answer is silently less than
 * what was sent. Nothing is made up: a call has the name and the arguments that came.
 */
import type * as Response from "@effect/ai/Response"
import * as Tool from "@effect/ai/Tool"
import * as Either from "effect/Either"
import * as ForeignJson from "../core/ForeignJson.js"
import type { ModelError } from "./ModelError.js"
import * as ModelPort from "./ModelPort.js"
import * as ProviderError from "./ProviderError.js"

/** One call as far as it has arrived. */
export interface Call {
  /** The server's, unless it gave none or gave it twice. */
  readonly id: string
  /** As the server gave it. */
  readonly given: string | undefined
  name: string
  /** The arguments as they are written so far. */
  text: string
  metadata: Metadata | undefined
  ended: boolean
}

/** Of a part: what its provider wants to see again, under the provider's name. */
export type Metadata = Response.ProviderMetadata

export type Usage = typeof Response.Usage.Encoded

export type Block = "text" | "reasoning"

/** Tokens of which nothing was said. */
export const unknownUsage: Usage = { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }

/** Tokens as far as a provider told them. */
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

/** How many calls one answer may have; a server that goes on and on is stopped there. */
export const maxCalls = 4096

/** One reply has one writer, its reader of events, and one reader, its stream. */
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
  private failure: ModelError | undefined

  /** `nextId` names calls that the server gave no id of their own. */
  constructor(
    readonly source: ProviderError.Source,
    private readonly nextId: () => string
  ) {}

  /** What has come since the last time. */
  taken(): ReadonlyArray<ModelPort.Part> {
    const { parts } = this
    if (parts.length > 0) this.parts = []
    return parts
  }

  get isFinished(): boolean {
    return this.finished
  }

  /** An answer that cannot go on. */
  get broken(): ModelError | undefined {
    return this.failure
  }

  fail(error: ModelError): void {
    this.failure ??= error
  }

  /** Another event has come, whatever it is. */
  event(): void {
    this.events++
  }

  /** Once an answer; whatever is known of it by then. */
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

  /** Begins a block of its own, also when nothing is said in it. */
  begins(type: Block, metadata?: Metadata): void {
    this.close()
    this.openBlock(type, metadata)
  }

  /** What is to be kept with the open block; without one it is lost. */
  keep(type: Block, metadata: Metadata): void {
    if (this.block?.type === type) this.parts.push({ type: `${type}-delta`, id: this.block.id, delta: "", metadata })
  }

  close(metadata?: Metadata): void {
    if (this.block === undefined) return
    this.parts.push({ type: `${this.block.type}-end`, id: this.block.id, ...given(metadata) })
    this.block = undefined
  }

  /** Another call; its name may come later, as an empty one. */
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

  /** The whole arguments, from a server that says them once more at the end, or only there. */
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

  /** A call that the provider has made and answered itself. */
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

  /** Something that is not understood here. */
  leaveOut(kind: unknown): void {
    this.leftOutCount++
    const name = nameOf(kind)
    if (this.leftOut.size < maxNamed || this.leftOut.has(name))
      this.leftOut.set(name, (this.leftOut.get(name) ?? 0) + 1)
  }

  /** The model had finished, for that reason. */
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
      // A call that the limit cut off before its arguments is no call without arguments.
      this.hand(call, reason === "length" && call.text.trim() === "" ? call.text : paramsOf(call.text))
    }
    this.finished = true
    const remark = this.remark()
    const told = remark === undefined ? metadata : { ...metadata, ...ModelPort.remarked(remark) }
    this.parts.push({ type: "finish", reason: this.reasonOf(reason), usage, ...given(told) })
  }

  /** The stream has ended, and nothing said that the model had finished. */
  cutOff(): void {
    if (this.finished) return
    const { events, leftOutCount, source } = this
    const remark = this.remark()
    const told = remark === undefined ? "" : `; ${lowered(remark)}`
    this.fail(
      events === 0
        ? ProviderError.network(source, "the answer was empty")
        : leftOutCount < events
          ? ProviderError.network(source, `${ProviderError.incomplete}${told}`)
          : ProviderError.badOutput(source, `none of it is understood${told}`)
    )
  }

  /** A sentence about what was not understood; nothing when everything was. */
  remark(): string | undefined {
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
    // Servers that call tools and say that they have stopped, or say something new, want the results all the same.
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

const given = (metadata: Metadata | undefined): { readonly metadata?: Metadata } =>
  metadata === undefined ? {} : { metadata }

const nameOf = (kind: unknown): string => {
  const name = typeof kind === "string" ? kind.replace(/[^\w.:/ -]+/g, "").trim() : ""
  return name === "" ? "one without a type" : name.slice(0, 60)
}

const lowered = (sentence: string): string => sentence.charAt(0).toLowerCase() + sentence.slice(1)

/**
 * The arguments of a call as text; some servers send the object itself. One that is too deep for whatever comes after is
 * not taken: a sentence instead of it is no arguments, so that the model can correct the call.
 */
export const written = (value: unknown): string => {
  if (typeof value === "string") return value
  if (value == null) return ""
  const refusal = ForeignJson.refusal(value)
  return refusal === undefined ? JSON.stringify(value) : `(left out: what was given here ${refusal.message})`
}

/** What was written: an object where it is one, else the text itself, for the turn to answer. */
export const paramsOf = (text: string): unknown => {
  if (text.trim() === "") return {}
  // Not even parsed where it is too deep for whatever comes after.
  if (ForeignJson.textRefusal(text) !== undefined) return text
  return Either.getOrElse(
    Either.try((): unknown => Tool.unsafeSecureJsonParse(text)),
    () => text
  )
}
