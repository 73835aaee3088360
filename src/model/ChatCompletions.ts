/**
 * A model behind any server that speaks the `/chat/completions` protocol: Ollama, llama.cpp, vLLM, OpenRouter.
 *
 * The API key is in the `Authorization` header of the request and nowhere else.
 */
import type * as Prompt from "@effect/ai/Prompt"
import type * as Tool from "@effect/ai/Tool"
import * as Sse from "@effect/experimental/Sse"
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { identity } from "effect/Function"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Id from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import * as ChatMessage from "./ChatMessage.js"
import * as ChatReply from "./ChatReply.js"
import type * as Model from "./Model.js"
import * as ProviderError from "./ProviderError.js"

export interface Options {
  /** `provider/model`, for people, events and the ledger. */
  readonly id: string
  /** The model as the server calls it. */
  readonly model: string
  /** Up to and without `/chat/completions`, such as `http://localhost:11434/v1`. */
  readonly baseUrl: string
  /** Absent: no `Authorization` header is sent. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly contextWindow?: number | undefined
  /** What to do when the key is refused, such as `Check OPENROUTER_API_KEY.` */
  readonly credentials?: string | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** A model that asks the server through the client of the context. Nothing is sent before the first generation. */
export const make = (options: Options): Effect.Effect<Model.Service, never, HttpClient.HttpClient> =>
  Effect.map(HttpClient.HttpClient, (http) => {
    // No spans and no trace headers: a vendor has no business with either, and a span would record the headers.
    const client = http.pipe(
      HttpClient.withTracerPropagation(false),
      HttpClient.withTracerDisabledWhen(() => true)
    )
    const source: ProviderError.Source = {
      model: options.id,
      redactor: Redaction.make([
        ...(options.apiKey === undefined ? [] : [options.apiKey]),
        ...Object.entries(options.headers ?? {}).flatMap(([name, value]) =>
          /auth|key|token/i.test(name) ? [value] : []
        )
      ]),
      credentials: options.credentials
    }
    return {
      id: options.id,
      contextWindow: options.contextWindow,
      stream: (prompt, tools) =>
        Stream.unwrapScoped(
          Effect.gen(function* () {
            const ids = yield* Id.IdGenerator
            const body = yield* requestBody(options, source, prompt, tools)
            const response = yield* Effect.mapError(client.execute(request(options, body)), (error) =>
              ProviderError.fromHttpClientError(source, error)
            )
            if (response.status >= 200 && response.status < 300) {
              const reply = ChatReply.make(source, () => ids.unsafeNext("call"))
              return Stream.takeUntil(parts(source, response, reply), (part) => part.type === "finish")
            }
            // A body that cannot be read says nothing; the status still does.
            const text = yield* Effect.orElseSucceed(response.text, () => undefined)
            const { headers, status } = response
            return yield* Effect.fail(ProviderError.fromResponse(source, { status, headers, body: text }))
          })
        )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const request = (options: Options, body: HttpBody.HttpBody): HttpClientRequest.HttpClientRequest =>
  HttpClientRequest.post(`${options.baseUrl.replace(/\/+$/, "")}/chat/completions`).pipe(
    HttpClientRequest.setHeaders(options.headers ?? {}),
    HttpClientRequest.accept("text/event-stream"),
    options.apiKey === undefined ? identity : HttpClientRequest.bearerToken(options.apiKey),
    HttpClientRequest.setBody(body)
  )

const requestBody = (
  options: Options,
  source: ProviderError.Source,
  prompt: Prompt.Prompt,
  tools: ReadonlyArray<Tool.Any>
): Effect.Effect<HttpBody.HttpBody, Model.ModelError> =>
  Effect.gen(function* () {
    const messages = yield* Effect.flatten(
      Effect.try({ try: () => ChatMessage.fromPrompt(prompt), catch: () => notJson })
    )
    const functions = yield* Either.all(tools.map(ChatMessage.fromTool))
    return yield* Effect.mapError(
      HttpBody.json({
        model: options.model,
        messages,
        ...(functions.length === 0 ? {} : { tools: functions }),
        stream: true,
        stream_options: { include_usage: true }
      }),
      () => notJson
    )
  }).pipe(Effect.mapError((detail) => ProviderError.refused(source, detail)))

const notJson = "the conversation cannot be written as JSON"

const parts = (
  source: ProviderError.Source,
  response: HttpClientResponse.HttpClientResponse,
  reply: ChatReply.ChatReply
): Stream.Stream<Model.Part, Model.ModelError> =>
  Stream.concat(
    Stream.flatMap(reads(source, response), (events) => {
      const taken: Array<Model.Part> = []
      for (const data of events) {
        const result = reply.take(data)
        // What came before a failure in the same read is still passed on.
        if (Either.isLeft(result)) return Stream.concat(Stream.fromIterable(taken), Stream.fail(result.left))
        taken.push(...result.right)
      }
      return Stream.fromIterable(taken)
    }),
    Stream.suspend(() => Either.match(reply.end(), { onLeft: Stream.fail, onRight: Stream.fromIterable }))
  )

/** The data of the response's events, as many at a time as one read of the connection brought. */
const reads = (
  source: ProviderError.Source,
  response: HttpClientResponse.HttpClientResponse
): Stream.Stream<ReadonlyArray<string>, Model.ModelError> => {
  const failed = (error: HttpClientError.ResponseError) => ProviderError.fromHttpClientError(source, error)
  const contentType = response.headers["content-type"] ?? ""
  if (contentType.includes("text/html")) {
    return Stream.fail(ProviderError.badOutput(source, "it is a web page; is the base URL right?"))
  }
  if (contentType.includes("application/json")) {
    return Stream.fromEffect(Effect.mapBoth(response.text, { onFailure: failed, onSuccess: (text) => [text] }))
  }
  let events: Array<string> = []
  const parser = Sse.makeParser((event) => {
    if (event._tag === "Event") events.push(event.data)
  })
  const take = (text: string): Effect.Effect<ReadonlyArray<string>, Model.ModelError> =>
    Effect.suspend(() => {
      if (parser.feed(text) !== undefined) return Effect.fail(ProviderError.badOutput(source, "an event is too large"))
      const taken = events
      events = []
      return Effect.succeed(taken)
    })
  return response.stream.pipe(
    Stream.mapError(failed),
    Stream.decodeText(),
    // Some servers leave out the empty line after the last event.
    Stream.concat(Stream.succeed("\n\n")),
    Stream.mapEffect(take)
  )
}
