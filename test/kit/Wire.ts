/** The wire formats of four providers, as their servers write them: the same reply in each. */
import * as ModelServer from "./ModelServer.js"

export interface Call {
  readonly id: string
  readonly name: string
  /** As the model wrote it; for Google it has to be JSON. */
  readonly args: string
}

export interface Reply {
  readonly thinking?: string
  readonly text?: ReadonlyArray<string>
  readonly calls?: ReadonlyArray<Call>
  readonly usage?: { readonly input: number; readonly output: number; readonly cached: number }
}

export interface Wire {
  /** As in `provider/model`. */
  readonly provider: "anthropic" | "openai" | "google" | "openai-compatible"
  readonly model: string
  readonly path: string
  readonly keyHeader: string
  readonly keyPrefix: string
  /** Where the base URL of the registry ends. */
  readonly basePath: string
  readonly events: (reply: Reply) => ReadonlyArray<string>
  /** The body of an error response. */
  readonly error: (message: string, type: string) => unknown
  readonly tooLong: { readonly status: number; readonly body: unknown }
}

const usageOf = (reply: Reply) => reply.usage ?? { input: 10, output: 5, cached: 0 }

// -----------------------------------------------------------------------------------------------------------------

const anthropicEvents = (reply: Reply): ReadonlyArray<string> => {
  const events: Array<any> = []
  let index = 0
  const usage = usageOf(reply)
  events.push({
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-test",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: usage.input,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: usage.cached,
        output_tokens: 1,
        // A field newer than the client.
        inference_geo: { region: "elsewhere" }
      }
    }
  })
  events.push({ type: "ping" }, { type: "something_new", with: { a: "field" } })
  const block = (content_block: unknown, deltas: ReadonlyArray<unknown>) => {
    events.push({ type: "content_block_start", index, content_block })
    for (const delta of deltas) events.push({ type: "content_block_delta", index, delta })
    events.push({ type: "content_block_stop", index })
    index++
  }
  if (reply.thinking !== undefined) {
    block({ type: "thinking", thinking: "", signature: "" }, [
      { type: "thinking_delta", thinking: reply.thinking },
      { type: "signature_delta", signature: "c2lnbmF0dXJl" }
    ])
  }
  if (reply.text !== undefined) {
    block(
      { type: "text", text: "" },
      reply.text.map((text) => ({ type: "text_delta", text }))
    )
  }
  for (const call of reply.calls ?? []) {
    const half = Math.ceil(call.args.length / 2)
    block({ type: "tool_use", id: call.id, name: call.name, input: {} }, [
      { type: "input_json_delta", partial_json: "" },
      { type: "input_json_delta", partial_json: call.args.slice(0, half) },
      { type: "input_json_delta", partial_json: call.args.slice(half) }
    ])
  }
  events.push({
    type: "message_delta",
    delta: { stop_reason: reply.calls === undefined ? "end_turn" : "tool_use", stop_sequence: null },
    usage: { output_tokens: usage.output }
  })
  events.push({ type: "message_stop" })
  return ModelServer.sse(events, (event) => event.type)
}

export const anthropic: Wire = {
  provider: "anthropic",
  model: "claude-test",
  path: "/v1/messages",
  keyHeader: "x-api-key",
  keyPrefix: "",
  basePath: "",
  events: anthropicEvents,
  error: (message, type) => ({ type: "error", error: { type, message }, request_id: "req_1" }),
  tooLong: {
    status: 400,
    body: {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 208310 tokens > 200000 maximum" }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------

export const openaiResponse = (reply: Reply, extra: object = {}) => {
  const usage = usageOf(reply)
  return {
    id: "resp_1",
    object: "response",
    created_at: 1_700_000_000,
    status: "completed",
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: "gpt-test",
    output: [],
    parallel_tool_calls: true,
    // Values newer than the client.
    reasoning: { effort: "enormous", summary: null },
    prompt_cache_retention: "a_year",
    temperature: 1,
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    metadata: {},
    usage: {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: usage.cached },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: usage.input + usage.output
    },
    ...extra
  }
}

const openaiEvents = (reply: Reply): ReadonlyArray<string> => {
  const events: Array<any> = []
  let sequence_number = 0
  let output_index = 0
  const push = (event: object) => events.push({ ...event, sequence_number: sequence_number++ })
  push({ type: "response.created", response: openaiResponse(reply, { status: "in_progress", usage: null }) })
  push({ type: "response.in_progress", response: openaiResponse(reply, { status: "in_progress", usage: null }) })
  events.push({ type: "keepalive" })
  if (reply.thinking !== undefined) {
    const item = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "ZW5j" }
    push({ type: "response.output_item.added", output_index, item })
    push({
      type: "response.reasoning_summary_part.added",
      item_id: "rs_1",
      output_index,
      summary_index: 0,
      part: { type: "summary_text", text: "" }
    })
    push({
      type: "response.reasoning_summary_text.delta",
      item_id: "rs_1",
      output_index,
      summary_index: 0,
      delta: reply.thinking
    })
    push({
      type: "response.output_item.done",
      output_index,
      item: { ...item, summary: [{ type: "summary_text", text: reply.thinking }] }
    })
    output_index++
  }
  if (reply.text !== undefined) {
    const item = { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] }
    push({ type: "response.output_item.added", output_index, item })
    const at = { item_id: "msg_1", output_index, content_index: 0 }
    for (const delta of reply.text) push({ type: "response.output_text.delta", ...at, delta, logprobs: [] })
    push({
      type: "response.output_item.done",
      output_index,
      item: {
        ...item,
        status: "completed",
        content: [{ type: "output_text", text: reply.text.join(""), annotations: [], logprobs: [] }]
      }
    })
    output_index++
  }
  for (const call of reply.calls ?? []) {
    const item = { type: "function_call", id: `fc_${call.id}`, call_id: call.id, name: call.name, arguments: "" }
    push({ type: "response.output_item.added", output_index, item: { ...item, status: "in_progress" } })
    const half = Math.ceil(call.args.length / 2)
    for (const delta of [call.args.slice(0, half), call.args.slice(half)]) {
      push({ type: "response.function_call_arguments.delta", item_id: item.id, output_index, delta })
    }
    push({
      type: "response.output_item.done",
      output_index,
      item: { ...item, arguments: call.args, status: "completed" }
    })
    output_index++
  }
  push({ type: "response.completed", response: openaiResponse(reply) })
  return ModelServer.sse(events, (event) => event.type)
}

export const openai: Wire = {
  provider: "openai",
  model: "gpt-test",
  path: "/v1/responses",
  keyHeader: "authorization",
  keyPrefix: "Bearer ",
  basePath: "/v1",
  events: openaiEvents,
  error: (message, type) => ({ error: { message, type, param: null, code: null } }),
  tooLong: {
    status: 400,
    body: {
      error: {
        message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
        type: "invalid_request_error",
        param: "input",
        code: "context_length_exceeded"
      }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------

const googleEvents = (reply: Reply): ReadonlyArray<string> => {
  const parts: Array<object> = []
  if (reply.thinking !== undefined) parts.push({ text: reply.thinking, thought: true })
  for (const text of reply.text ?? []) parts.push({ text })
  for (const call of reply.calls ?? []) {
    const args = call.args === "" ? {} : { args: JSON.parse(call.args) }
    parts.push({ functionCall: { name: call.name, ...args }, thoughtSignature: "c2ln" })
  }
  const usage = usageOf(reply)
  const end = {
    candidates: [{ content: { role: "model", parts: [{ text: "" }] }, finishReason: "STOP", index: 0 }],
    usageMetadata: {
      promptTokenCount: usage.input,
      candidatesTokenCount: usage.output,
      totalTokenCount: usage.input + usage.output,
      cachedContentTokenCount: usage.cached
    },
    modelVersion: "gemini-test"
  }
  const chunks = parts.map((part) => ({
    candidates: [{ content: { role: "model", parts: [part] }, index: 0 }],
    modelVersion: "gemini-test",
    responseId: "r1"
  }))
  return ModelServer.sse([...chunks, end])
}

export const google: Wire = {
  provider: "google",
  model: "gemini-test",
  path: "/v1beta/models/gemini-test:streamGenerateContent?alt=sse",
  keyHeader: "x-goog-api-key",
  keyPrefix: "",
  basePath: "",
  events: googleEvents,
  error: (message, type) => ({ error: { code: 400, message, status: type } }),
  tooLong: {
    status: 400,
    body: {
      error: {
        code: 400,
        message: "The input token count (1052000) exceeds the maximum number of tokens allowed (1048576).",
        status: "INVALID_ARGUMENT"
      }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------

export const chatChunk = (delta: object | undefined, extra: object = {}, finish_reason: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_700_000_000,
  model: "local-test",
  choices: delta === undefined ? [] : [{ index: 0, delta, finish_reason }],
  ...extra
})

const chatEvents = (reply: Reply): ReadonlyArray<string> => {
  const chunks: Array<unknown> = [chatChunk({ role: "assistant", content: "" })]
  if (reply.thinking !== undefined) chunks.push(chatChunk({ reasoning_content: reply.thinking }))
  for (const content of reply.text ?? []) chunks.push(chatChunk({ content }))
  for (const [index, call] of (reply.calls ?? []).entries()) {
    const half = Math.ceil(call.args.length / 2)
    const named = { index, id: call.id, type: "function", function: { name: call.name, arguments: "" } }
    chunks.push(chatChunk({ tool_calls: [named] }))
    for (const piece of [call.args.slice(0, half), call.args.slice(half)]) {
      chunks.push(chatChunk({ tool_calls: [{ index, function: { arguments: piece } }] }))
    }
  }
  chunks.push(chatChunk({}, {}, reply.calls === undefined ? "stop" : "tool_calls"))
  const usage = usageOf(reply)
  chunks.push(
    chatChunk(undefined, {
      usage: {
        prompt_tokens: usage.input,
        completion_tokens: usage.output,
        total_tokens: usage.input + usage.output,
        prompt_tokens_details: { cached_tokens: usage.cached }
      }
    })
  )
  return ModelServer.sse([...chunks, "[DONE]"])
}

export const chat: Wire = {
  provider: "openai-compatible",
  model: "local-test",
  path: "/v1/chat/completions",
  keyHeader: "authorization",
  keyPrefix: "Bearer ",
  basePath: "/v1",
  events: chatEvents,
  error: (message, type) => ({ error: { message, type, code: null } }),
  tooLong: {
    status: 400,
    body: {
      error: {
        code: 400,
        message: "the request exceeds the available context size, try increasing it",
        type: "exceed_context_size_error",
        n_prompt_tokens: 9000,
        n_ctx: 4096
      }
    }
  }
}

export const wires: ReadonlyArray<Wire> = [anthropic, openai, google, chat]
