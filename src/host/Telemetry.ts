/**
 * Traces to a collector over OTLP: what `Spans` tells, in OpenTelemetry's own protocol.
 *
 * Only our own spans are sent: no spans of libraries, no logs and no metrics. Exporting runs in the background and
 * never fails the work. A collector that does not respond delays the end by two seconds at most, and is then not tried
 * for a minute. The package `@effect/opentelemetry` is loaded on demand.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type * as Redaction from "../core/Redaction.js"
import * as Spans from "../core/Spans.js"
import * as WebAddress from "../core/WebAddress.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * The collector.
 */
export interface Settings {
  /** The full URL for traces: `http://localhost:4318/v1/traces`. */
  readonly url: string
  /** Default: `protobuf`, which every collector takes. */
  readonly protocol?: "protobuf" | "json" | undefined
  /** Sent with every request; for a collector's key. */
  readonly headers?: { readonly [name: string]: Redacted.Redacted } | undefined
  /** Default: `assent`. */
  readonly serviceName?: string | undefined
  /** Resource attributes of the program: version, host, environment. */
  readonly attributes?: { readonly [name: string]: string } | undefined
  /** Also sends message contents, masked. Default: false, only their length. */
  readonly content?: boolean | undefined
}

/**
 * Settings with a redactor.
 */
export interface Options extends Settings {
  /** Masks contents; required when `content` is true. */
  readonly redactor?: Redaction.Redactor | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Traces were requested and cannot be sent; the message says what to install, set or unset.
 */
export class TelemetryUnavailable extends Schema.TaggedError<TelemetryUnavailable>("assent/host/TelemetryUnavailable")(
  "TelemetryUnavailable",
  { message: Schema.String }
) {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Exports spans to a collector until the scope closes, which sends the rest.
 */
export const make = (
  options: Options
): Effect.Effect<Spans.Service, TelemetryUnavailable, HttpClient.HttpClient | Scope.Scope> =>
  Effect.gen(function* () {
    yield* acceptable("The collector's address", options.url)
    const [OtlpTracer, OtlpSerialization] = yield* load
    const client = yield* HttpClient.HttpClient
    const scope = yield* bounded
    const serialization = options.protocol === "json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf
    const headers = Object.entries(options.headers ?? {}).map(([name, value]) => [name, Redacted.value(value)] as const)
    const tracer = yield* OtlpTracer.make({
      url: options.url,
      headers,
      resource: { serviceName: options.serviceName ?? "assent", attributes: { ...options.attributes } },
      shutdownTimeout: patience
    }).pipe(
      Effect.provide(serialization),
      // Without this the exporter would read variables itself, and not as the specification requires.
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map())),
      Effect.provideService(HttpClient.HttpClient, impatient(client)),
      Scope.extend(scope)
    )
    return Spans.make({ tracer, content: options.content === true ? options.redactor : undefined })
  })

/**
 * Settings from OpenTelemetry's variables: none unless an endpoint is set and nothing turns it off.
 *
 * | variable | meaning |
 * |---|---|
 * | `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT` | where to; to the second, `/v1/traces` is added |
 * | `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`, `OTEL_EXPORTER_OTLP_PROTOCOL` | `http/protobuf` or `http/json` |
 * | `OTEL_EXPORTER_OTLP_TRACES_HEADERS`, `OTEL_EXPORTER_OTLP_HEADERS` | `name=value,…`, values percent-encoded |
 * | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | who we are |
 * | `OTEL_SDK_DISABLED`, `OTEL_TRACES_EXPORTER=none` | send nothing |
 * | `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` | `true` sends what was said |
 */
export const settings: Effect.Effect<Option.Option<Settings>, TelemetryUnavailable> = Effect.gen(function* () {
  const endpoint = yield* endpointOf
  if (endpoint === undefined || (yield* isTrue("OTEL_SDK_DISABLED"))) return Option.none()
  if ((yield* variable("OTEL_TRACES_EXPORTER"))?.toLowerCase() === "none") return Option.none()
  yield* acceptable(endpoint.name, endpoint.url)
  const attributes = yield* pairs("OTEL_RESOURCE_ATTRIBUTES")
  const headers = yield* pairs("OTEL_EXPORTER_OTLP_HEADERS")
  const ownHeaders = yield* pairs("OTEL_EXPORTER_OTLP_TRACES_HEADERS")
  const { "service.name": named, ...others } = attributes
  return Option.some({
    url: endpoint.url,
    protocol: yield* protocol,
    headers: Object.fromEntries(
      Object.entries({ ...headers, ...ownHeaders }).map(([name, value]) => [name.toLowerCase(), Redacted.make(value)])
    ),
    serviceName: (yield* variable("OTEL_SERVICE_NAME")) ?? named,
    attributes: others,
    content: yield* isTrue("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
  })
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** How long the end may wait for the last export. */
const patience = "1500 millis"

/**
 * The scope of the exporter. The exporter's timeout covers one request; this one covers the whole closing. A longer
 * closing continues in the background.
 */
const bounded: Effect.Effect<Scope.Scope, never, Scope.Scope> = Effect.acquireRelease(Scope.make(), (scope) =>
  Effect.asVoid(
    Effect.timeoutOption(Effect.disconnect(Effect.interruptible(Scope.close(scope, Exit.void))), "2 seconds")
  )
)

/**
 * Requests have a timeout, so that a silent collector does not block the exporter for good. Redirects are not followed:
 * the key in the headers would be sent there.
 */
const impatient = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.transform(client, (response, request) =>
    Effect.timeoutFail(Effect.provideService(response, FetchHttpClient.RequestInit, { redirect: "manual" }), {
      duration: "10 seconds",
      onTimeout: () =>
        new HttpClientError.RequestError({ request, reason: "Transport", description: "The collector did not answer." })
    })
  )

const load = Effect.tryPromise({
  try: () =>
    Promise.all([import("@effect/opentelemetry/OtlpTracer"), import("@effect/opentelemetry/OtlpSerialization")]),
  catch: () =>
    new TelemetryUnavailable({
      message:
        "Traces need a package that is not installed: npm install @effect/opentelemetry. To send none, unset " +
        "OTEL_EXPORTER_OTLP_ENDPOINT or set OTEL_SDK_DISABLED=true."
    })
})

/** Messages about an address do not quote it: it may hold a key. */
const acceptable = (name: string, url: string): Either.Either<URL, TelemetryUnavailable> =>
  Either.mapLeft(WebAddress.parse(url), ({ message }) => unavailable(`${name} ${message}`))

const unavailable = (problem: string): TelemetryUnavailable =>
  new TelemetryUnavailable({ message: `${problem} To send no traces, set OTEL_SDK_DISABLED=true.` })

/** A variable that is set and not blank. */
const variable = (name: string): Effect.Effect<string | undefined> =>
  Effect.map(Effect.option(Config.string(name)), (text) => Option.getOrUndefined(text)?.trim() || undefined)

const isTrue = (name: string): Effect.Effect<boolean> =>
  Effect.map(variable(name), (text) => text?.toLowerCase() === "true")

const endpointOf = Effect.gen(function* () {
  const own = yield* variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
  if (own !== undefined) return { name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url: own }
  const base = yield* variable("OTEL_EXPORTER_OTLP_ENDPOINT")
  return base === undefined
    ? undefined
    : { name: "OTEL_EXPORTER_OTLP_ENDPOINT", url: `${base.replace(/\/+$/, "")}/v1/traces` }
})

const protocol = Effect.gen(function* () {
  for (const name of ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]) {
    const text = yield* variable(name)
    if (text === undefined) continue
    if (text === "http/protobuf") return "protobuf" as const
    if (text === "http/json") return "json" as const
    return yield* unavailable(`${name} must be http/protobuf or http/json, not ${JSON.stringify(text)}.`)
  }
  return "protobuf" as const
})

/** `name=value` pairs. A malformed pair is a problem; its text is not shown, as it may be a key. */
const pairs = (name: string): Effect.Effect<{ readonly [key: string]: string }, TelemetryUnavailable> =>
  Effect.gen(function* () {
    const found: { [key: string]: string } = {}
    for (const pair of ((yield* variable(name)) ?? "").split(",")) {
      if (pair.trim() === "") continue
      const [, key, value] = /^\s*([^=\s]+)\s*=(.*)$/s.exec(pair) ?? []
      const decoded = Either.try(() => decodeURIComponent((value ?? "").trim()))
      if (key === undefined || Either.isLeft(decoded)) {
        return yield* unavailable(`${name} must be name=value pairs with commas between them.`)
      }
      found[key] = decoded.right
    }
    return found
  })
