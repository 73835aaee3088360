/**
 * Reads the reply of a `/v1/messages` server.
 *
 * Blocks come one after the other, each with a start, deltas and an end. A missing start, index or end is inferred from
 * the other events.
 */
import type * as Response from "@effect/ai/Response"
import type * as Tool from "@effect/ai/Tool"
import * as Answer from "./Answer.js"
import type * as Connection from "./Connection.js"
import * as ForeignField from "./ForeignField.js"
import * as ModelPort from "./ModelPort.js"
import * as OfferedTool from "./OfferedTool.js"
import * as ProviderError from "./ProviderError.js"

export const make = (answer: Answer.Answer, tools: ReadonlyArray<Tool.Any>): Connection.Reader => {
  const blocks = new Map<number, Block>()
  const stopped = new Set<Block>()
  // Calls that the provider runs itself, by the id that results refer to.
  const serverCalls = new Map<string, string>()
  let last: Block | undefined
  let reason: string | undefined
  let counted: Fields = {}

  const blockAt = (index: number | undefined): Block | undefined => (index === undefined ? last : blocks.get(index))

  const startCall = (block: Fields): Block => {
    const named = ForeignField.name(block.name) ?? ""
    const call = answer.call(ForeignField.name(block.id), OfferedTool.registered(tools, named) ?? named)
    const whole = ForeignField.record(block.input)
    const isWhole = whole !== undefined && Object.keys(whole).length > 0
    return { kind: "call", call, whole: isWhole ? Answer.written(whole) : undefined }
  }

  const startOther = (block: Fields): Block => {
    const { type } = block
    if (type === "server_tool_use") {
      const called = ForeignField.name(block.name) ?? ""
      const name = OfferedTool.registered(tools, called)
      if (name !== undefined)
        return { kind: "server", name, id: ForeignField.name(block.id), text: "", input: block.input }
    }
    const of = ForeignField.name(block.tool_use_id)
    const server = of === undefined ? undefined : serverCalls.get(of)
    if (typeof type === "string" && of !== undefined && server !== undefined) {
      const isFailure = String(ForeignField.record(block.content)?.type).endsWith("_error")
      answer.result({ id: of, name: server, result: block.content, isFailure }, { anthropic: { type } })
      return { kind: "known" }
    }
    answer.leaveOut(type)
    return { kind: "unknown" }
  }

  const start = (block: Fields): Block => {
    switch (block.type) {
      case "text":
        answer.begins("text")
        answer.say("text", ForeignField.text(block.text) ?? "")
        return { kind: "text" }
      case "thinking":
        answer.begins("reasoning")
        answer.say("reasoning", ForeignField.text(block.thinking) ?? "")
        return { kind: "reasoning", signature: ForeignField.text(block.signature) ?? "" }
      case "redacted_thinking":
        answer.begins("reasoning", {
          anthropic: { type: "redacted_thinking", redactedData: ForeignField.text(block.data) }
        })
        return { kind: "known" }
      case "tool_use":
        return startCall(block)
      default:
        return startOther(block)
    }
  }

  const stop = (block: Block) => {
    switch (block.kind) {
      case "call":
        if (block.whole !== undefined && block.call.text === "") answer.argueWhole(block.call, block.whole)
        return answer.end(block.call)
      case "server": {
        const params = block.text === "" ? block.input : Answer.paramsOf(block.text)
        const id = answer.executed(
          { id: block.id, name: block.name, params },
          { anthropic: { type: "server_tool_use" } }
        )
        serverCalls.set(id, block.name)
        return
      }
      case "reasoning":
        // Without a signature the server would not take it back.
        return answer.close(
          block.signature === "" ? undefined : { anthropic: { type: "thinking", signature: block.signature } }
        )
      default:
        return answer.close()
    }
  }

  const stopOnce = (block: Block) => {
    if (stopped.has(block)) return
    stopped.add(block)
    stop(block)
  }

  const opened = (index: number | undefined, content: unknown) => {
    const block = ForeignField.record(content)
    const at = index ?? blocks.size
    const known = blocks.get(at)
    // The same start again.
    if (known?.kind === "call" && known.call.given !== undefined && known.call.given === block?.id) return
    // Calls may be interleaved; other blocks come one after the other.
    if (last !== undefined && last.kind !== "call" && last.kind !== "server") stopOnce(last)
    const begun = start(block ?? {})
    blocks.set(at, begun)
    last = begun
  }

  const changed = (block: Block | undefined, content: unknown) => {
    const delta = ForeignField.record(content) ?? {}
    // All deltas of an unknown block are left out; it is reported once.
    if (block?.kind === "unknown") return
    switch (delta.type) {
      case "text_delta":
        return answer.say("text", ForeignField.text(delta.text) ?? "")
      case "thinking_delta":
        return answer.say("reasoning", ForeignField.text(delta.thinking) ?? "")
      case "signature_delta":
        if (block?.kind === "reasoning") block.signature += ForeignField.text(delta.signature) ?? ""
        return
      case "input_json_delta": {
        const text = ForeignField.text(delta.partial_json) ?? ""
        if (block?.kind === "call") return answer.argue(block.call, text)
        if (block?.kind === "server") block.text += text
        else if (text !== "") answer.leaveOut("arguments of no call")
        return
      }
      case "citations_delta":
        return
      default:
        return answer.leaveOut(delta.type)
    }
  }

  const count = (usage: unknown) => {
    const reported = Object.entries(ForeignField.record(usage) ?? {}).filter(([, value]) => value != null)
    counted = { ...counted, ...Object.fromEntries(reported) }
  }

  const finish = () => {
    const known = reason === undefined ? "unknown" : (reasons.get(reason) ?? "unknown")
    for (const block of blocks.values()) if (block.kind !== "call" || known !== "length") stopOnce(block)
    const written = ForeignField.number(counted.cache_creation_input_tokens) ?? 0
    answer.finish(known, usageOf(counted), written > 0 ? ModelPort.cacheWrites(written) : undefined)
  }

  const whole = (message: Fields) => {
    answer.begin(message.id, message.model)
    count(message.usage)
    reason = ForeignField.name(message.stop_reason) ?? reason
    for (const block of ForeignField.records(message.content)) opened(undefined, block)
    finish()
  }

  return {
    take: (event) => {
      switch (event.type) {
        case "message_start": {
          const message = ForeignField.record(event.message) ?? {}
          answer.begin(message.id, message.model)
          return count(message.usage)
        }
        case "content_block_start":
          return opened(ForeignField.number(event.index), event.content_block)
        case "content_block_delta":
          return changed(blockAt(ForeignField.number(event.index)), event.delta)
        case "content_block_stop": {
          const block = blockAt(ForeignField.number(event.index))
          if (block !== undefined) stopOnce(block)
          return
        }
        case "message_delta":
          reason = ForeignField.name(ForeignField.record(event.delta)?.stop_reason) ?? reason
          return count(event.usage)
        case "message_stop":
          return finish()
        case "message":
          return whole(event)
        case "ping":
          return
        default:
          return event.error != null
            ? answer.fail(ProviderError.fromReported(answer.source, event))
            : answer.leaveOut(event.type)
      }
    },
    end: () => {
      if (reason !== undefined) finish()
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Fields = Readonly<Record<string, unknown>>

/** One block so far. `known`: complete; `unknown`: left out. */
type Block =
  | { readonly kind: "text" | "known" | "unknown" }
  | { readonly kind: "reasoning"; signature: string }
  | { readonly kind: "call"; readonly call: Answer.Call; readonly whole: string | undefined }
  | {
      readonly kind: "server"
      readonly name: string
      readonly id: string | undefined
      text: string
      readonly input: unknown
    }

const reasons: ReadonlyMap<string, Response.FinishReason> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool-calls"],
  ["pause_turn", "pause"],
  ["refusal", "content-filter"]
])

const usageOf = (usage: Fields): Answer.Usage =>
  Answer.usage({
    input: ForeignField.number(usage.input_tokens),
    output: ForeignField.number(usage.output_tokens),
    cached: ForeignField.number(usage.cache_read_input_tokens)
  })
