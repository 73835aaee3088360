/**
 * Reads the reply of a `/responses` server.
 *
 * The server sends most content three times: in deltas, at the end of an item, and in the whole response at the end.
 * The first one is emitted, and from later ones only what is new. So it does not matter which of them a server omits,
 * or whether it numbers its events.
 */
import type * as Response from "@effect/ai/Response"
import type * as Tool from "@effect/ai/Tool"
import * as Answer from "./Answer.js"
import type * as Connection from "./Connection.js"
import * as ForeignField from "./ForeignField.js"
import * as OfferedTool from "./OfferedTool.js"
import * as ProviderError from "./ProviderError.js"

export const make = (answer: Answer.Answer, tools: ReadonlyArray<Tool.Any>): Connection.Reader => {
  const items: Array<Item> = []
  let ended = false

  /** The item of an event: by its id, else by its index, else the last. */
  const itemOf = (event: Fields): Item | undefined => {
    const id = ForeignField.name(event.item_id)
    const index = ForeignField.number(event.output_index)
    const named = id === undefined ? undefined : items.findLast((item) => item.id === id)
    if (named !== undefined) return named
    const placed = index === undefined ? undefined : items.findLast((item) => item.index === index)
    // Some servers give an item another id in each of its events.
    return placed ?? (id === undefined && index === undefined ? items.at(-1) : undefined)
  }

  /** The item, made at its first event. */
  const known = (fields: Fields, index: number | undefined, isLast = false): Item => {
    const id = ForeignField.name(fields.id)
    const callId = ForeignField.name(fields.call_id)
    const alike = items.filter((item) => item.type === fields.type)
    // Some servers give an item another id in each of its events; the id of a call is always the same.
    const same =
      (id === undefined ? undefined : alike.find((item) => item.id === id)) ??
      (callId === undefined ? undefined : alike.find((item) => item.callId === callId)) ??
      (index === undefined
        ? undefined
        : alike.find((item) => item.index === index && (callId === undefined || item.callId === undefined)))
    const found = same ?? (isLast && id === undefined && index === undefined ? alike.at(-1) : undefined)
    if (found !== undefined) return found
    const item: Item = {
      type: ForeignField.text(fields.type) ?? "",
      id,
      callId,
      index,
      said: "",
      done: false,
      call: undefined
    }
    items.push(item)
    return item
  }

  const metadataOf = ({ id }: Item): Answer.Metadata | undefined =>
    id === undefined ? undefined : { openai: { itemId: id } }

  const say = (item: Item, block: Answer.Block, text: string) => {
    if (text === "") return
    if (item.said === "") answer.begins(block, metadataOf(item))
    item.said += text
    answer.say(block, text)
  }

  /** Emits the part of the whole text that was not emitted yet. */
  const sayWhole = (item: Item, block: Answer.Block, text: string) => {
    if (text.startsWith(item.said)) say(item, block, text.slice(item.said.length))
  }

  const callOf = (item: Item, fields: Fields): Answer.Call => {
    const named = ForeignField.name(fields.name) ?? ""
    const name = OfferedTool.registered(tools, named) ?? named
    item.call ??= answer.call(item.callId ?? item.id, name, metadataOf(item))
    answer.name(item.call, name)
    return item.call
  }

  const added = (fields: Fields, index: number | undefined) => {
    const item = known(fields, index)
    if (item.done) {
      // A second item of the same id cannot be distinguished from a repeated one.
      if (index !== undefined && item.index !== undefined && index !== item.index) answer.leaveOut("an id used before")
      return
    }
    if (fields.type === "function_call") answer.argue(callOf(item, fields), ForeignField.text(fields.arguments) ?? "")
  }

  const done = (fields: Fields, index: number | undefined, isLast = false) => {
    const item = known(fields, index, isLast)
    if (item.done) return
    item.done = true
    switch (fields.type) {
      case "message": {
        for (const part of ForeignField.records(fields.content)) {
          const isText = part.type === "output_text" || part.type === "text" || part.type === "refusal"
          if (!isText) answer.leaveOut(part.type)
          if (part.type === "refusal") answer.refuse(ForeignField.text(part.refusal) ?? "")
        }
        sayWhole(item, "text", textsOf(fields.content))
        return answer.close()
      }
      case "reasoning": {
        sayWhole(item, "reasoning", textsOf(fields.summary) || textsOf(fields.content))
        // An empty reasoning item is kept too: the server wants it back.
        if (item.said === "" && item.id !== undefined) answer.begins("reasoning", metadataOf(item))
        const encryptedContent = ForeignField.name(fields.encrypted_content)
        return answer.close(
          encryptedContent === undefined ? undefined : { openai: { itemId: item.id, encryptedContent } }
        )
      }
      case "function_call": {
        const call = callOf(item, fields)
        const whole = ForeignField.text(fields.arguments)
        if (whole !== undefined && whole !== "") answer.argueWhole(call, whole)
        // A call that was cut off stays open until the reason is known.
        if (fields.status !== "incomplete") answer.end(call)
        return
      }
      default:
        return executed(item, fields)
    }
  }

  /** A call that the provider ran itself; emitted as a call when its tool is registered here. */
  const executed = (item: Item, fields: Fields) => {
    const kind = ForeignField.name(fields.type)
    const name = kind === undefined ? undefined : toolOf(tools, kind.replace(/_call$/, ""))
    if (name === undefined) return answer.leaveOut(kind)
    const { id: _, type: __, status, ...rest } = fields
    const id = answer.executed({ id: item.id, name, params: rest })
    answer.result({ id, name, result: { status, ...rest }, isFailure: status === "failed" })
  }

  const finish = (response: Fields, status: unknown) => {
    if (ended) return
    ended = true
    answer.begin(response.id, response.model)
    ForeignField.records(response.output).forEach((item, index) => done(item, index))
    answer.finish(reasonOf(response, status), usageOf(ForeignField.record(response.usage) ?? {}))
  }

  const whole = (response: Fields, status: unknown) => {
    if (status === "failed" || status === "cancelled") {
      const error = ForeignField.record(response.error)
      return answer.fail(
        error === undefined
          ? ProviderError.badOutput(answer.source, `the response ${String(status)}`)
          : ProviderError.fromReported(answer.source, error)
      )
    }
    return finish(response, status)
  }

  const delta = (event: Fields, block: Answer.Block) => {
    const text = ForeignField.text(event.delta) ?? ""
    const type = block === "text" ? "message" : "reasoning"
    const item = itemOf(event)
    // Text of an item whose start was lost.
    say(
      item?.type === type ? item : known({ type, id: event.item_id }, ForeignField.number(event.output_index), true),
      block,
      text
    )
  }

  const takeArguments = (event: Fields, use: (call: Answer.Call) => void) => {
    const item = itemOf(event)
    const index = ForeignField.number(event.output_index)
    // A call whose start was lost: its name may still come.
    const called = item?.type === "function_call" ? item : known({ type: "function_call", id: event.item_id }, index)
    if (!called.done) use(callOf(called, {}))
  }

  return {
    take: (event) => {
      const type = ForeignField.text(event.type) ?? ""
      const index = ForeignField.number(event.output_index)
      switch (type) {
        case "response.created":
        case "response.in_progress":
        case "response.queued": {
          const response = ForeignField.record(event.response) ?? {}
          return answer.begin(response.id, response.model)
        }
        case "response.output_item.added":
          return added(ForeignField.record(event.item) ?? {}, index)
        case "response.output_item.done":
          return done(ForeignField.record(event.item) ?? {}, index, true)
        case "response.refusal.delta":
          answer.refuse(ForeignField.text(event.delta) ?? "")
          return delta(event, "text")
        case "response.output_text.delta":
          return delta(event, "text")
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta":
        case "response.reasoning.delta":
          return delta(event, "reasoning")
        case "response.reasoning_summary_part.added":
          // Paragraphs of one summary.
          return (ForeignField.number(event.summary_index) ?? 0) > 0
            ? delta({ ...event, delta: "\n\n" }, "reasoning")
            : undefined
        case "response.function_call_arguments.delta":
          return takeArguments(event, (call) => answer.argue(call, ForeignField.text(event.delta) ?? ""))
        case "response.function_call_arguments.done":
          return takeArguments(event, (call) =>
            answer.argueWhole(call, ForeignField.name(event.arguments) ?? call.text)
          )
        case "response.completed":
        case "response.done":
        case "response.incomplete":
        case "response.failed":
        case "response.cancelled": {
          const response = ForeignField.record(event.response) ?? {}
          const said = type.slice("response.".length)
          return whole(response, said === "completed" || said === "done" ? (response.status ?? "completed") : said)
        }
        case "error":
          return answer.fail(ProviderError.fromReported(answer.source, ForeignField.record(event.error) ?? event))
        default:
          if (event.object === "response") return whole(event, event.status)
          if (event.error != null) return answer.fail(ProviderError.fromReported(answer.source, event))
          // Progress events: the item's end has all their content.
          return /^(keepalive|ping)$|^response\.(.*\.(done|added)|\w+_call\.\w+|\w+_call_\w+\.\w+|mcp_list_tools\.\w+)$/.test(
            type
          )
            ? undefined
            : answer.leaveOut(event.type)
      }
    },
    // The end mark of another format, from gateways: the answer is complete when its items are.
    end: (marked) => {
      if (marked && items.length > 0) finish({}, undefined)
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Fields = Readonly<Record<string, unknown>>

/** One item of the response's output so far. */
interface Item {
  readonly type: string
  readonly id: string | undefined
  readonly callId: string | undefined
  readonly index: number | undefined
  said: string
  done: boolean
  call: Answer.Call | undefined
}

/** All texts of a list of parts. Summaries of reasoning are paragraphs. */
const textsOf = (parts: unknown): string =>
  ForeignField.records(parts)
    .map((part) => ForeignField.text(part.text) ?? ForeignField.text(part.refusal) ?? "")
    .join(ForeignField.records(parts).some(({ type }) => type === "summary_text") ? "\n\n" : "")

const toolOf = (tools: ReadonlyArray<Tool.Any>, kind: string): string | undefined =>
  OfferedTool.registered(tools, kind) ?? OfferedTool.registered(tools, `${kind}_preview`)

const reasonOf = (response: Fields, status: unknown): Response.FinishReason => {
  if (status === undefined) return "unknown"
  if (status === "completed") return "stop"
  if (status !== "incomplete") return "other"
  // An incomplete answer without a reason was usually cut off by the limit.
  const why = ForeignField.name(ForeignField.record(response.incomplete_details)?.reason) ?? "max_output_tokens"
  return why === "max_output_tokens" ? "length" : why === "content_filter" ? "content-filter" : "other"
}

const usageOf = (usage: Fields): Answer.Usage =>
  Answer.usage({
    input: ForeignField.number(usage.input_tokens),
    output: ForeignField.number(usage.output_tokens),
    total: ForeignField.number(usage.total_tokens),
    reasoning: ForeignField.number(ForeignField.record(usage.output_tokens_details)?.reasoning_tokens),
    cached: ForeignField.number(ForeignField.record(usage.input_tokens_details)?.cached_tokens)
  })
