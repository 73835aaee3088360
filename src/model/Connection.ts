/**
 * A model behind a streaming HTTP server: one request, and its events until the answer is complete.
 *
 * It holds what all formats share, so that all fail alike: redirects are not followed, a web page has its own error, a
 * server that does not stream works too, and the key is in the request's headers and nowhere else.
 */
import type * as Tool from "@effect/ai/Tool"
import * as Sse from "@effect/experimental/Sse"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Channel from "effect/Channel"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Id from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import * as WebAddress from "../core/WebAddress.js"
import { Answer } from "./Answer.js"
import type * as Model from "./Model.js"
import * as ProviderError from "./ProviderError.js"
import * as SentJson from "./SentJson.js"

/**
 * Which server and model, with which key. `contextWindow` and `maxOutputTokens` are in tokens.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** `provider/model`, for people, events and the ledger. */
  readonly id: string
  /** The server's name of the model. */
  readonly model: string
  /** The URL before the part of the path that names an operation, such as `http://localhost:11434/v1`. */
  readonly baseUrl: string
  /** Absent: no header with a key is sent. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly contextWindow?: number | undefined
  /** Media types of the files that the model takes, where it takes others than its format carries. */
  readonly inputs?: ReadonlyArray<string> | undefined
  /** The most tokens of one reply; a request may set fewer. Default: the server's. */
  readonly maxOutputTokens?: number | undefined
  /** How much the model thinks where a request does not say. Default: the server's. */
  readonly thinking?: Model.Thinking | undefined
  /** What to do when the key is refused, such as `Check OPENROUTER_API_KEY.` */
  readonly credentials?: string | undefined
  /** Masks what a server echoes: declare every key to it. Default: masks the key and the headers of this connection. */
  readonly redactor?: Redaction.Redactor | undefined
}

/** The HTTP request of a generation. */
export interface Request {
  /** Appended to the base URL; may have a query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body: object
}

/** Reads the events of one reply into its {@link Answer}. */
export interface Reader {
  /** Takes the content of one event. It never throws. */
  readonly take: (event: Readonly<Record<string, unknown>>) => void
  /** The stream ended, or an end mark came. */
  readonly end: (marked: boolean) => void
}

/** A wire format. */
export interface Protocol {
  /**
   * A left is a sentence that names what the format cannot carry. May throw when the prompt cannot be written as JSON.
   */
  readonly request: (request: Model.Request) => Either.Either<Request, string>
  readonly keyHeader: (key: string) => readonly [name: string, value: string]
  readonly outputSchemas?: Model.Service["outputSchemas"]
  /** What the format carries. */
  readonly inputs: ReadonlyArray<string>
  readonly read: (answer: Answer, tools: ReadonlyArray<Tool.Any>) => Reader
}

/** The usual header: a bearer token. */
export const bearer: Protocol["keyHeader"] = (key) => ["authorization", `Bearer ${key}`]

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** A model that asks the server through the client of the context. Nothing is sent before the first generation. */
export const make = (
  options: Options,
  protocol: Protocol
): Effect.Effect<Model.Service, WebAddress.WebAddressRefused, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const base = yield* WebAddress.parse(options.baseUrl)
    const client = untraced(yield* HttpClient.HttpClient)
    const source: ProviderError.Source = {
      model: options.id,
      redactor: options.redactor ?? redactorOf(options),
      credentials: options.credentials
    }
    return {
      id: options.id,
      contextWindow: options.contextWindow,
      inputs: options.inputs ?? protocol.inputs,
      outputSchemas: protocol.outputSchemas,
      stream: (request) =>
        Stream.unwrapScoped(
          Effect.gen(function* () {
            const ids = yield* Id.IdGenerator
            const sent = yield* requestOf(options, protocol, base, source, request)
            const response = yield* Effect.mapError(unredirected(client.execute(sent)), (error) =>
              ProviderError.fromHttpClientError(source, error)
            )
            if (response.status >= 200 && response.status < 300) {
              const answer = new Answer(source, () => ids.unsafeNext("call"))
              return parts(response, answer, protocol.read(answer, request.tools))
            }
            // The body of a redirect is not needed, and without a readable body the status still tells the error.
            const { headers, status } = response
            const redirects = status === 0 || (status >= 300 && status < 400)
            const body = redirects ? undefined : yield* Effect.orElseSucceed(response.text, () => undefined)
            return yield* Effect.fail(ProviderError.fromResponse(source, { status, headers, body }))
          })
        )
    }
  })

/** No spans and no trace headers: vendors must not get them, and a span would record the headers. */
export const untraced = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  client.pipe(
    HttpClient.withTracerPropagation(false),
    HttpClient.withTracerDisabledWhen(() => true)
  )

/**
 * A redirect would carry the key to another server. Among the platform's clients only the one over `fetch` follows
 * redirects.
 */
export const unredirected = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.mapInputContext(effect, (context: Context.Context<R>) => {
    const init = Option.getOrUndefined(Context.getOption(context, FetchHttpClient.RequestInit))
    return Context.add(context, FetchHttpClient.RequestInit, { ...init, redirect: "manual" })
  })

/** The most tokens of the reply to this request, if there is a limit. */
export const outputLimit = (options: Options, { maxOutputTokens: wanted }: Model.Request): number | undefined => {
  const { maxOutputTokens: own } = options
  return own === undefined || wanted === undefined ? (wanted ?? own) : Math.min(own, wanted)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const redactorOf = ({ apiKey, headers = {} }: Options): Redaction.Redactor =>
  Redaction.make([
    ...(apiKey === undefined ? [] : [apiKey]),
    ...Object.entries(headers).flatMap(([name, value]) => (/auth|key|token/i.test(name) ? [value] : []))
  ])

const requestOf = (
  options: Options,
  protocol: Protocol,
  base: URL,
  source: ProviderError.Source,
  request: Model.Request
): Effect.Effect<HttpClientRequest.HttpClientRequest, Model.ModelError> =>
  Effect.gen(function* () {
    const thinking = request.thinking ?? options.thinking
    const asked = yield* Effect.flatten(
      Effect.try({
        try: () => protocol.request(thinking === undefined ? request : { ...request, thinking }),
        catch: () => notJson
      })
    )
    const body = yield* Effect.try({ try: () => SentJson.stringify(asked.body), catch: () => notJson })
    return HttpClientRequest.post(addressOf(base, asked.path)).pipe(
      HttpClientRequest.setHeaders(asked.headers ?? {}),
      HttpClientRequest.setHeaders(options.headers ?? {}),
      HttpClientRequest.accept("text/event-stream"),
      (request) =>
        options.apiKey === undefined
          ? request
          : HttpClientRequest.setHeader(request, ...protocol.keyHeader(Redacted.value(options.apiKey))),
      HttpClientRequest.setBody(HttpBody.text(body, "application/json"))
    )
  }).pipe(Effect.mapError((detail) => ProviderError.refused(source, detail)))

const notJson = "the conversation cannot be written as JSON"

/** The query of a base URL is added to every request. */
const addressOf = (base: URL, path: string): string => {
  const [pathname = "", query] = path.split("?")
  const url = new URL(base)
  url.pathname = url.pathname.replace(/\/+$/, "") + pathname
  if (query !== undefined) url.search = url.search === "" ? query : `${url.search}&${query}`
  url.hash = ""
  return url.href
}

const parts = (
  response: HttpClientResponse.HttpClientResponse,
  answer: Answer,
  reader: Reader
): Stream.Stream<Model.Part, Model.ModelError> => {
  // Parts that came before a failure in the same read are still emitted.
  const passed = (): Stream.Stream<Model.Part, Model.ModelError> => {
    const came = answer.taken()
    const taken = came.length === 0 ? alive : Stream.fromIterable(came)
    return answer.broken === undefined ? taken : Stream.concat(taken, Stream.fail(answer.broken))
  }
  const read = Stream.flatMap(events(response, answer.source), (batch) => {
    for (const event of batch) if (!answer.isFinished && answer.broken === undefined) take(answer, reader, event)
    return passed()
  })
  const ended = Stream.suspend(() => {
    if (answer.broken === undefined) reader.end(false)
    if (answer.broken === undefined) answer.cutOff()
    return passed()
  })
  // After the finish reason the answer is complete; a broken connection is no error then.
  const complete = Stream.catchAll(Stream.concat(read, ended), (error) => {
    if (answer.broken === undefined) reader.end(false)
    return answer.isFinished ? Stream.fromIterable(answer.taken()) : Stream.fail(error)
  })
  return Stream.takeUntil(complete, (part) => part.type === "finish")
}

/** An empty chunk for an event without parts, such as a ping: it is still a sign of life. */
const alive: Stream.Stream<never> = Stream.fromChannel(Channel.write(Chunk.empty()))

interface Event {
  readonly name: string | undefined
  readonly data: string
}

const take = (answer: Answer, reader: Reader, { data, name }: Event): void => {
  const text = data.trim()
  if (text === "") return
  if (text === "[DONE]") {
    reader.end(true)
    if (!answer.isFinished && answer.broken === undefined)
      answer.fail(ProviderError.badOutput(answer.source, "it is empty"))
    return
  }
  answer.event()
  // The depth of the event is not checked: stored parts are checked later, and one call that is too deep must not fail
  // the whole answer.
  const json = Either.try((): unknown => JSON.parse(text))
  if (Either.isLeft(json)) {
    return answer.fail(
      name === "error"
        ? ProviderError.fromReported(answer.source, text)
        : ProviderError.badOutput(answer.source, "a part of it is not JSON")
    )
  }
  // A server that does not stream may send all its events as one list.
  for (const event of Array.isArray(json.right) ? json.right : [json.right]) {
    if (typeof event !== "object" || event === null || Array.isArray(event))
      answer.leaveOut("an event that is not an object")
    else if (answer.broken === undefined) reader.take(event)
  }
}

/** The events of the response, in chunks of one read of the connection. */
const events = (
  response: HttpClientResponse.HttpClientResponse,
  source: ProviderError.Source
): Stream.Stream<ReadonlyArray<Event>, Model.ModelError> => {
  const failed = (error: HttpClientError.ResponseError) => ProviderError.fromHttpClientError(source, error)
  if ((response.headers["content-type"] ?? "").includes("text/html")) {
    return Stream.fail(ProviderError.badOutput(source, aWebPage))
  }
  const body = new Body((response.headers["content-type"] ?? "").includes("event-stream"))
  const read = (taken: Either.Either<ReadonlyArray<Event>, string>) =>
    Either.mapLeft(taken, (detail) => ProviderError.badOutput(source, detail))
  return response.stream.pipe(
    Stream.mapError(failed),
    Stream.decodeText(),
    Stream.mapEffect((text) => read(body.take(text))),
    Stream.concat(Stream.suspend(() => Stream.fromEffect(read(body.end()))))
  )
}

const aWebPage = "it is a web page; is the base URL right?"

/**
 * Parses a body by its first characters, because the content type of servers without streaming, or behind a proxy, can
 * be anything.
 */
class Body {
  /** `declared`: the content type says event stream, so a body without events was cut off. */
  constructor(private readonly declared: boolean) {}

  private kind: "events" | "json" | undefined
  private text = ""
  private taken: Array<Event> = []
  private any = false
  private line = 0
  private readonly parser = Sse.makeParser((event) => {
    if (event._tag === "Event") this.taken.push({ name: event.event, data: event.data })
  })

  take(text: string): Either.Either<ReadonlyArray<Event>, string> {
    if (this.kind === "events") return this.feed(text)
    this.text += text
    if (this.kind === undefined) {
      const first = this.text.trimStart().charAt(0)
      if (first === "") return Either.right([])
      if (first === "<") return Either.left(aWebPage)
      this.kind = first === "{" || first === "[" ? "json" : "events"
      if (this.kind === "events") return this.feed(this.text)
    }
    return this.text.length > UntrustedJson.maxSize ? Either.left("it is too large") : Either.right([])
  }

  end(): Either.Either<ReadonlyArray<Event>, string> {
    if (this.kind === undefined) return Either.right([])
    if (this.kind === "json") return Either.right([{ name: undefined, data: this.text }])
    // Some servers omit the empty line after the last event.
    const last = this.feed("\n\n")
    return Either.isRight(last) && !this.any && !this.declared
      ? Either.left("it is not a stream of events; is the base URL right?")
      : last
  }

  private feed(text: string): Either.Either<ReadonlyArray<Event>, string> {
    this.text = ""
    // It is fed line by line: the parser scans its input from the start for every line, so a whole read of 64 kB would
    // block the event loop for a second.
    for (let from = 0, to = 0; from < text.length; from = to) {
      to = text.indexOf("\n", from) + 1 || text.length
      const line = text.slice(from, to)
      this.line = line.endsWith("\n") ? 0 : this.line + line.length
      // The parser bounds the size of an event, but not of a comment or an unknown line.
      if (this.line > UntrustedJson.maxSize || this.parser.feed(line) !== undefined) {
        return Either.left("an event is too large")
      }
    }
    const { taken } = this
    this.any ||= taken.length > 0
    this.taken = []
    return Either.right(taken)
  }
}
