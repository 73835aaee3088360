/**
 * The clients of vendors that have an Effect package of their own.
 *
 * Each package is loaded when it is first used. What a client gets wrong about its vendor's protocol is put right here,
 * on the client, so that the adapter above treats all language models alike.
 */
import type * as LanguageModel from "@effect/ai/LanguageModel"
import * as Headers from "@effect/platform/Headers"
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

export interface Options {
  readonly apiKey: Redacted.Redacted
  /** Default: the vendor's. */
  readonly baseUrl?: string | undefined
  /** The most tokens one reply may have, where the vendor wants to be told. */
  readonly maxOutputTokens?: number | undefined
}

/** One client of one vendor; makes a language model of any of its models. */
export type Provider = (model: string) => Effect.Effect<LanguageModel.Service>

/** The vendor's package is not there, or does not load. */
export class PackageMissing extends Schema.TaggedError<PackageMissing>("assent/model/PackageMissing")(
  "PackageMissing",
  { packageName: Schema.String, message: Schema.String }
) {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const anthropic = (options: Options): Effect.Effect<Provider, PackageMissing, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const [AnthropicClient, AnthropicLanguageModel] = yield* load("@effect/ai-anthropic", () =>
      Promise.all([
        import("@effect/ai-anthropic/AnthropicClient"),
        import("@effect/ai-anthropic/AnthropicLanguageModel")
      ])
    )
    const apiUrl = withoutSuffix(options.baseUrl, "/v1")
    const original = yield* unobserved(AnthropicClient.make({ apiKey: options.apiKey, apiUrl }))
    const Event = Schema.Union(AnthropicEvent, AnthropicClient.MessageStreamEvent, UnreadEvent)
    const client: typeof original = {
      ...original,
      createMessageStream: ({ params, payload }) => {
        const request = HttpClientRequest.post("/v1/messages", {
          headers: Headers.fromInput({ "anthropic-beta": params?.["anthropic-beta"] ?? undefined }),
          body: HttpBody.unsafeJson({ ...payload, stream: true })
        })
        const events = Stream.takeUntil(
          original.streamRequest(request, Event),
          (event) => event.type === "message_stop"
        )
        // What is left out of our events is never read by the language model, which its own types cannot say.
        return Stream.filter(events, (event) => !("unread" in event)) as ReturnType<typeof original.createMessageStream>
      }
    }
    return (model) =>
      AnthropicLanguageModel.make({
        model,
        config: { max_tokens: options.maxOutputTokens ?? anthropicOutput(model) }
      }).pipe(Effect.provideService(AnthropicClient.AnthropicClient, client))
  })

export const openai = (options: Options): Effect.Effect<Provider, PackageMissing, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const [OpenAiClient, OpenAiLanguageModel] = yield* load("@effect/ai-openai", () =>
      Promise.all([import("@effect/ai-openai/OpenAiClient"), import("@effect/ai-openai/OpenAiLanguageModel")])
    )
    const apiUrl = withoutSuffix(options.baseUrl, "")
    const original = yield* unobserved(OpenAiClient.make({ apiKey: options.apiKey, apiUrl }))
    const Event = Schema.Union(OpenAiEvent, OpenAiClient.ResponseStreamEvent)
    const client: typeof original = {
      ...original,
      createResponseStream: (payload) => {
        const request = HttpClientRequest.post("/responses", {
          body: HttpBody.unsafeJson({ ...payload, stream: true })
        })
        const events = original.streamRequest(request, Event).pipe(
          // The language model reads a failed response as one that stopped; as an error event it stays an error.
          Stream.map((event) =>
            event.type === "response.failed" ? { type: "error" as const, ...event.response.error } : event
          ),
          Stream.takeUntil((event) => event.type === "response.completed" || event.type === "response.incomplete")
        )
        // What is left out of our events is never read by the language model, which its own types cannot say.
        return events as ReturnType<typeof original.createResponseStream>
      }
    }
    return (model) =>
      OpenAiLanguageModel.make({
        model,
        config: {
          // Strict schemas must list every property as required; those of a team's tools need not.
          strict: false,
          ...(options.maxOutputTokens === undefined ? {} : { max_output_tokens: options.maxOutputTokens })
        }
      }).pipe(Effect.provideService(OpenAiClient.OpenAiClient, client))
  })

export const google = (options: Options): Effect.Effect<Provider, PackageMissing, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const [GoogleClient, GoogleLanguageModel, AiError] = yield* load("@effect/ai-google", () =>
      Promise.all([
        import("@effect/ai-google/GoogleClient"),
        import("@effect/ai-google/GoogleLanguageModel"),
        import("@effect/ai/AiError")
      ])
    )
    const apiUrl = withoutSuffix(options.baseUrl, "/v1beta")
    const original = yield* unobserved(GoogleClient.make({ apiKey: options.apiKey, apiUrl }))
    type Request = Parameters<typeof original.generateContentStream>[0]
    type Event = Stream.Stream.Success<ReturnType<typeof original.generateContentStream>>

    // The API takes only objects as results, and no object type that has no properties.
    const requestOf = (request: Request): Request => ({
      ...request,
      contents: request.contents.map((content) => ({
        ...content,
        parts: (content.parts ?? []).map((part) => {
          const given = part.functionResponse
          if (given == null || Predicate.isRecord(given.response)) return part
          return { ...part, functionResponse: { ...given, response: { result: given.response } } }
        })
      })),
      // The language model passes its one tool where the API documents a list.
      ...(request.tools == null ? {} : { tools: [request.tools].flat().map(withoutEmptyTypes) })
    })
    // A finished candidate without content, and a call without arguments, would be lost or break the reply further up.
    const eventOf = (event: Event): Event => {
      const candidate = event.candidates?.[0]
      if (candidate === undefined) return event
      const parts = (candidate.content?.parts ?? []).map((part) =>
        part.functionCall === undefined || part.functionCall.args !== undefined
          ? part
          : { ...part, functionCall: { ...part.functionCall, args: {} } }
      )
      return { ...event, candidates: [{ ...candidate, content: { ...candidate.content, parts } }] }
    }
    const client: typeof original = {
      ...original,
      generateContentStream: (request) =>
        Stream.mapEffect(original.generateContentStream(requestOf(request)), (event) => {
          const blocked = event.candidates === undefined ? event.promptFeedback?.blockReason : undefined
          return blocked === undefined
            ? Effect.succeed(eventOf(event))
            : Effect.fail(
                new AiError.MalformedInput({
                  module: "GoogleClient",
                  method: "generateContentStream",
                  description: `the prompt was blocked: ${blocked}`
                })
              )
        })
    }
    return (model) =>
      GoogleLanguageModel.make({
        model,
        config: {
          toolConfig: {},
          ...(options.maxOutputTokens === undefined
            ? {}
            : { generationConfig: { maxOutputTokens: options.maxOutputTokens } })
        }
      }).pipe(Effect.provideService(GoogleClient.GoogleClient, client))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

function optional<A, I>(schema: Schema.Schema<A, I>) {
  return Schema.optionalWith(schema, { nullable: true })
}

const withoutEmptyTypes = <
  D extends { readonly parameters?: { readonly properties?: unknown } | null | undefined }
>(tool: {
  readonly functionDeclarations?: ReadonlyArray<D> | null | undefined
}) => {
  if (tool.functionDeclarations == null) return tool
  const functionDeclarations = tool.functionDeclarations.map((declaration) => {
    const { parameters, ...rest } = declaration
    return Object.keys(parameters?.properties ?? {}).length === 0 ? rest : declaration
  })
  return { ...tool, functionDeclarations }
}

// Vendors add events and fields, and the schemas of their clients fail a whole reply over a field that nobody reads. So
// the events that hold most fields are decoded only as far as they are read.

const AnthropicEvent = Schema.Union(
  Schema.Struct({
    type: Schema.Literal("message_start"),
    message: Schema.Struct({
      id: Schema.String,
      model: Schema.String,
      usage: Schema.Struct({
        input_tokens: Schema.Number,
        cache_creation_input_tokens: optional(Schema.Number),
        cache_read_input_tokens: optional(Schema.Number)
      })
    })
  }),
  Schema.Struct({
    type: Schema.Literal("message_delta"),
    delta: Schema.Struct({ stop_reason: optional(Schema.String), stop_sequence: optional(Schema.String) }),
    usage: Schema.Struct({ output_tokens: optional(Schema.Number) })
  }),
  Schema.Struct({
    type: Schema.Literal("error"),
    error: Schema.Struct({ type: Schema.String, message: Schema.String })
  })
)

/** Anything newer than this file: it is left out. */
const UnreadEvent = Schema.Struct({
  type: Schema.String,
  unread: Schema.optionalWith(Schema.Boolean, { default: () => true })
})

const OpenAiEvent = Schema.Struct({
  type: Schema.Literal("response.created", "response.completed", "response.incomplete", "response.failed"),
  response: Schema.Struct({
    id: Schema.String,
    model: Schema.String,
    created_at: Schema.Number,
    service_tier: optional(Schema.String),
    error: optional(Schema.Struct({ code: optional(Schema.String), message: Schema.String })),
    incomplete_details: optional(Schema.Struct({ reason: optional(Schema.String) })),
    usage: optional(
      Schema.Struct({
        input_tokens: Schema.Number,
        output_tokens: Schema.Number,
        input_tokens_details: optional(Schema.Struct({ cached_tokens: optional(Schema.Number) })),
        output_tokens_details: optional(Schema.Struct({ reasoning_tokens: optional(Schema.Number) }))
      })
    )
  })
})

const load = <A>(packageName: string, modules: () => Promise<A>): Effect.Effect<A, PackageMissing> =>
  Effect.tryPromise({
    try: modules,
    catch: (error) =>
      new PackageMissing({
        packageName,
        message: `The package ${packageName} could not be loaded (${codeOf(error)}). Install it: npm install ${packageName}`
      })
  })

const codeOf = (error: unknown): string =>
  Predicate.isRecord(error) && typeof error.code === "string" ? error.code : "it may not be installed"

// No spans and no trace headers: a vendor has no business with either, and a span would record the key's header. The
// scope of a client holds only which header names its own layer's spans leave out, so it can be closed at once.
const unobserved = <A, E, R>(make: Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.updateService(make, HttpClient.HttpClient, (client) =>
      client.pipe(
        HttpClient.withTracerPropagation(false),
        HttpClient.withTracerDisabledWhen(() => true)
      )
    )
  )

const withoutSuffix = (url: string | undefined, suffix: string): string | undefined => {
  const trimmed = url?.replace(/\/+$/, "")
  return trimmed?.endsWith(suffix) ? trimmed.slice(0, trimmed.length - suffix.length) : trimmed
}

// The first generation of Claude 3 refuses more than 4096; all later models take at least this.
const anthropicOutput = (model: string): number => (/^claude-3-(haiku|sonnet|opus)/.test(model) ? 4096 : 8192)
