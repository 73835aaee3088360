/**
 * Reads the reply of a `/chat/completions` server: chunks in, parts out.
 *
 * Servers differ in what they leave out. A call may come in pieces or whole, without an id, without an index, or all
 * with the same index; arguments may be empty or no JSON; usage comes in a chunk of its own, or not at all.
 */
import type * as Response from "@effect/ai/Response"
import * as Tool from "@effect/ai/Tool"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as ForeignJson from "../core/ForeignJson.js"
import type * as Model from "./Model.js"
import * as ProviderError from "./ProviderError.js"

/** The state of one reply. Not to be shared: it has one reader and one writer, the stream of the reply. */
export interface ChatReply {
  /** Takes the data of one event. After a left nothing more is to be read. */
  readonly take: (data: string) => Either.Either<ReadonlyArray<Model.Part>, Model.ModelError>
  /** The last parts, ending with `finish`; a left when the reply was cut off. */
  readonly end: () => Either.Either<ReadonlyArray<Model.Part>, Model.ModelError>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** `nextId` names calls that the server gave no id of their own. */
export const make = (source: ProviderError.Source, nextId: () => string): ChatReply => {
  let began = false
  let blocks = 0
  let block: { readonly type: "text" | "reasoning"; readonly id: string } | undefined
  let reason: string | undefined
  let usage: Usage | undefined
  let ended: ReadonlyArray<Model.Part> | undefined
  const calls: Array<Call> = []

  const close = (parts: Array<Model.Part>) => {
    if (block !== undefined) parts.push({ type: `${block.type}-end`, id: block.id })
    block = undefined
  }

  const say = (parts: Array<Model.Part>, type: "text" | "reasoning", delta: string) => {
    if (delta === "") return
    if (block?.type !== type) {
      close(parts)
      block = { type, id: String(blocks++) }
      parts.push({ type: `${type}-start`, id: block.id })
    }
    parts.push({ type: `${type}-delta`, id: block.id, delta })
  }

  const callOf = (piece: CallPiece): Call => {
    const named = piece.function?.name ?? ""
    const same =
      piece.index != null
        ? calls.findLast((call) => call.index === piece.index)
        : piece.id
          ? calls.findLast((call) => call.given === piece.id)
          : named === ""
            ? calls.at(-1)
            : undefined
    // A second id under the same index is a second call: some servers number all calls 0.
    if (same !== undefined && !(piece.id && same.given && piece.id !== same.given)) return same
    const taken = calls.some((call) => call.id === piece.id)
    const call: Call = {
      id: piece.id && !taken ? piece.id : nextId(),
      given: piece.id ?? undefined,
      index: piece.index ?? undefined,
      name: "",
      text: ""
    }
    calls.push(call)
    return call
  }

  const takeCall = (parts: Array<Model.Part>, piece: CallPiece) => {
    const call = callOf(piece)
    const name = piece.function?.name
    if (call.name === "" && name) {
      close(parts)
      call.name = name
      parts.push({ type: "tool-params-start", id: call.id, name })
      if (call.text !== "") parts.push({ type: "tool-params-delta", id: call.id, delta: call.text })
    }
    const given = piece.function?.arguments
    const delta = typeof given === "string" ? given : given == null ? "" : JSON.stringify(given)
    if (delta === "") return
    call.text += delta
    if (call.name !== "") parts.push({ type: "tool-params-delta", id: call.id, delta })
  }

  const takeChunk = (chunk: Chunk): ReadonlyArray<Model.Part> => {
    const parts: Array<Model.Part> = []
    if (!began) {
      began = true
      parts.push({
        type: "response-metadata",
        ...(chunk.id ? { id: chunk.id } : {}),
        ...(chunk.model ? { modelId: chunk.model } : {})
      })
    }
    if (chunk.usage != null) usage = chunk.usage
    const choice = chunk.choices?.find((choice) => (choice.index ?? 0) === 0)
    // A server that does not stream sends a whole message where others send what is new.
    const delta = choice?.delta ?? choice?.message
    if (delta != null) {
      say(parts, "reasoning", delta.reasoning_content ?? delta.reasoning ?? "")
      say(parts, "text", textOf(delta.content))
      say(parts, "text", delta.refusal ?? "")
      for (const piece of delta.tool_calls ?? []) takeCall(parts, piece)
    }
    if (choice?.finish_reason) reason = choice.finish_reason
    return parts
  }

  const finish = (): Either.Either<ReadonlyArray<Model.Part>, Model.ModelError> => {
    if (reason === "error") return Either.left(ProviderError.badOutput(source, "the model stopped because of an error"))
    if (calls.some((call) => call.name === "")) {
      return Either.left(ProviderError.badOutput(source, "it calls a tool without naming it"))
    }
    const parts: Array<Model.Part> = []
    close(parts)
    for (const call of calls) {
      parts.push({ type: "tool-params-end", id: call.id })
      parts.push({ type: "tool-call", id: call.id, name: call.name, params: paramsOf(call.text) })
    }
    parts.push({ type: "finish", reason: reasonOf(reason, calls.length > 0), usage: usageOf(usage) })
    ended = parts
    return Either.right(parts)
  }

  return {
    take: (data) => {
      if (ended !== undefined || data.trim() === "") return Either.right([])
      if (data.trim() === "[DONE]") {
        return began ? finish() : Either.left(ProviderError.badOutput(source, "it is empty"))
      }
      const json = parseJson(data)
      if (Either.isLeft(json)) return Either.left(ProviderError.badOutput(source, "a part of it is not JSON"))
      if (Predicate.isRecord(json.right) && json.right.error != null) {
        return Either.left(ProviderError.fromReported(source, json.right))
      }
      return Either.mapBoth(decodeChunk(json.right), {
        onLeft: () => ProviderError.badOutput(source, "a part of it is not what this protocol says"),
        onRight: takeChunk
      })
    },
    end: () =>
      ended !== undefined
        ? Either.right([])
        : reason === undefined
          ? Either.left(ProviderError.cutOff(source))
          : finish()
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Call {
  readonly id: string
  /** The id as the server gave it. */
  readonly given: string | undefined
  readonly index: number | undefined
  name: string
  text: string
}

const nullish = <A, I>(schema: Schema.Schema<A, I>) => Schema.optional(Schema.NullOr(schema))

const CallPiece = Schema.Struct({
  index: nullish(Schema.Number),
  id: nullish(Schema.String),
  function: nullish(Schema.Struct({ name: nullish(Schema.String), arguments: Schema.optional(Schema.Unknown) }))
})
type CallPiece = typeof CallPiece.Type

const Delta = Schema.Struct({
  content: Schema.optional(Schema.Unknown),
  reasoning_content: nullish(Schema.String),
  reasoning: nullish(Schema.String),
  refusal: nullish(Schema.String),
  tool_calls: nullish(Schema.Array(CallPiece))
})

const Usage = Schema.Struct({
  prompt_tokens: nullish(Schema.Number),
  completion_tokens: nullish(Schema.Number),
  total_tokens: nullish(Schema.Number),
  prompt_tokens_details: nullish(Schema.Struct({ cached_tokens: nullish(Schema.Number) })),
  completion_tokens_details: nullish(Schema.Struct({ reasoning_tokens: nullish(Schema.Number) })),
  prompt_cache_hit_tokens: nullish(Schema.Number)
})
type Usage = typeof Usage.Type

const Chunk = Schema.Struct({
  id: nullish(Schema.String),
  model: nullish(Schema.String),
  choices: nullish(
    Schema.Array(
      Schema.Struct({
        index: nullish(Schema.Number),
        delta: nullish(Delta),
        message: nullish(Delta),
        finish_reason: nullish(Schema.String)
      })
    )
  ),
  usage: nullish(Usage)
})
type Chunk = typeof Chunk.Type

const decodeChunk = Schema.decodeUnknownEither(Chunk)

const parseJson = (text: string): Either.Either<unknown, unknown> =>
  ForeignJson.textRefusal(text) === undefined ? Either.try(() => Tool.unsafeSecureJsonParse(text)) : Either.left(text)

const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
      ? content.map((part) => (Predicate.isRecord(part) && typeof part.text === "string" ? part.text : "")).join("")
      : ""

/** What was written: an object where it is one, else the text itself, for the turn to answer. */
const paramsOf = (text: string): unknown => (text.trim() === "" ? {} : Either.getOrElse(parseJson(text), () => text))

const reasons: Readonly<Record<string, Response.FinishReason>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-calls",
  function_call: "tool-calls",
  content_filter: "content-filter"
}

const reasonOf = (reason: string | undefined, called: boolean): Response.FinishReason => {
  const known = reason === undefined ? "unknown" : (reasons[reason] ?? "other")
  return called && known !== "length" && known !== "content-filter" ? "tool-calls" : known
}

const usageOf = (usage: Usage | undefined): typeof Response.Usage.Encoded => {
  const input = usage?.prompt_tokens ?? undefined
  const output = usage?.completion_tokens ?? undefined
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? usage?.prompt_cache_hit_tokens
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens:
      usage?.total_tokens ?? (input === undefined && output === undefined ? undefined : (input ?? 0) + (output ?? 0)),
    ...(reasoning == null ? {} : { reasoningTokens: reasoning }),
    ...(cached == null ? {} : { cachedInputTokens: cached })
  }
}
