/**
 * Reads the reply of a `/chat/completions` server.
 *
 * Servers differ in what they omit. A call may come in pieces or whole, without an id, without an index, or all with
 * the same index; arguments may be empty or invalid JSON; usage comes in a chunk of its own, or not at all.
 */
import type * as Response from "@effect/ai/Response"
import * as Answer from "./Answer.js"
import type * as Connection from "./Connection.js"
import * as ForeignField from "./ForeignField.js"
import * as ProviderError from "./ProviderError.js"

export const make = (answer: Answer.Answer): Connection.Reader => {
  let began = false
  let reason: string | undefined
  let usage = Answer.unknownUsage
  const calls: Array<Numbered> = []

  const callOf = (piece: Fields, named: string): Answer.Call => {
    const index = ForeignField.number(piece.index)
    const id = ForeignField.name(piece.id)
    const same =
      index !== undefined
        ? calls.findLast((one) => one.index === index)
        : id !== undefined
          ? calls.findLast(({ call }) => call.given === id)
          : named === ""
            ? calls.at(-1)
            : undefined
    // A second id under the same index is a second call: some servers number all calls 0.
    if (same !== undefined && !(id !== undefined && same.call.given !== undefined && id !== same.call.given)) {
      return same.call
    }
    const call = answer.call(id, "")
    calls.push({ call, index })
    return call
  }

  const takeCall = (piece: Fields) => {
    const made = ForeignField.record(piece.function)
    if (made === undefined && piece.type !== undefined && piece.type !== "function") {
      return answer.leaveOut(`a tool call of the type ${String(piece.type)}`)
    }
    const named = ForeignField.name(made?.name) ?? ""
    const call = callOf(piece, named)
    answer.name(call, named)
    answer.argue(call, Answer.written(made?.arguments))
  }

  const takeContent = (content: unknown) => {
    if (typeof content === "string") return answer.say("text", content)
    for (const part of ForeignField.records(content)) {
      const text = ForeignField.text(part.text)
      if (text === undefined) answer.leaveOut(part.type)
      else answer.say("text", text)
    }
  }

  const takeDelta = (delta: Fields) => {
    answer.say("reasoning", ForeignField.text(delta.reasoning_content) || (ForeignField.text(delta.reasoning) ?? ""))
    takeContent(delta.content)
    const refusal = ForeignField.text(delta.refusal) ?? ""
    answer.refuse(refusal)
    answer.say("text", refusal)
    for (const kind of ["audio", "images"]) if (isFilled(delta[kind])) answer.leaveOut(kind)
    const calls = ForeignField.records(delta.tool_calls)
    // The old field for a single tool call.
    const old = ForeignField.record(delta.function_call)
    for (const piece of old === undefined || calls.length > 0 ? calls : [{ index: 0, function: old }]) takeCall(piece)
  }

  const finish = () => answer.finish(reasons.get(reason ?? "") ?? (reason === undefined ? "unknown" : "other"), usage)

  return {
    take: (chunk) => {
      if (chunk.error != null) return answer.fail(ProviderError.fromReported(answer.source, chunk))
      if (chunk.choices != null && !Array.isArray(chunk.choices)) {
        return answer.fail(ProviderError.badOutput(answer.source, "a part of it is not what this protocol says"))
      }
      const counted = ForeignField.record(chunk.usage)
      if (counted === undefined && chunk.choices === undefined) return answer.leaveOut(chunk.object ?? chunk.type)
      began = true
      answer.begin(chunk.id, chunk.model)
      if (counted !== undefined) usage = usageOf(counted)
      const choice = ForeignField.records(chunk.choices).find(({ index }) => (ForeignField.number(index) ?? 0) === 0)
      if (choice === undefined) return
      // A server that does not stream sends a whole message in place of a delta.
      const delta = ForeignField.record(choice.delta) ?? ForeignField.record(choice.message)
      if (delta !== undefined) takeDelta(delta)
      reason = ForeignField.name(choice.finish_reason) ?? reason
    },
    end: (marked) => {
      if (reason !== undefined || (marked && began)) finish()
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Fields = Readonly<Record<string, unknown>>

interface Numbered {
  readonly call: Answer.Call
  readonly index: number | undefined
}

const isFilled = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : value != null)

const reasons: ReadonlyMap<string, Response.FinishReason> = new Map([
  ["stop", "stop"],
  ["length", "length"],
  ["tool_calls", "tool-calls"],
  ["function_call", "tool-calls"],
  ["content_filter", "content-filter"],
  ["error", "error"]
])

const usageOf = (usage: Fields): Answer.Usage => {
  const input = ForeignField.number(usage.prompt_tokens)
  const output = ForeignField.number(usage.completion_tokens)
  const reasoning = ForeignField.number(ForeignField.record(usage.completion_tokens_details)?.reasoning_tokens)
  const cached =
    ForeignField.number(ForeignField.record(usage.prompt_tokens_details)?.cached_tokens) ??
    ForeignField.number(usage.prompt_cache_hit_tokens)
  return Answer.usage({ input, output, total: ForeignField.number(usage.total_tokens), reasoning, cached })
}
