/** Where the command line's traces go: nowhere, unless OpenTelemetry's variables name a collector. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as Redaction from "../core/Redaction.js"
import * as Spans from "../core/Spans.js"
import * as ConfigurationInvalid from "./local/ConfigurationInvalid.js"
import * as Version from "./Version.js"
import * as HttpProxy from "./HttpProxy.js"

/**
 * Reads the variables and starts the exporter. Closing the scope sends what is left, for two seconds at most. The
 * values of the collector's headers are redacted in all output, and no command of an agent inherits them.
 */
export const open = (
  redactor: Redaction.Redactor,
  proxy: HttpProxy.HttpProxy
): Effect.Effect<Spans.Service, ConfigurationInvalid.ConfigurationInvalid, Scope.Scope> =>
  Effect.gen(function* () {
    const found = (yield* isWanted) ? yield* read : Option.none()
    if (Option.isNone(found)) return Spans.off
    const { settings, telemetry } = found.value
    for (const header of Object.values(settings.headers ?? {})) {
      redactor.declare(header)
      // In `Bearer KEY` the key alone is secret too.
      for (const word of Redacted.value(header).split(/\s+/).slice(1)) redactor.declare(word)
    }
    const attributes = { "service.version": Version.version, ...settings.attributes }
    return yield* Effect.provide(telemetry.make({ ...settings, attributes, redactor }), HttpProxy.client(proxy))
  }).pipe(Effect.catchTag("TelemetryUnavailable", ({ message }) => ConfigurationInvalid.make(message)))

/** The variables that may hold keys of a collector. */
export const secretNames = ["", "TRACES_"].flatMap((signal) =>
  ["HEADERS", "ENDPOINT"].map((name) => `OTEL_EXPORTER_OTLP_${signal}${name}`)
)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Without an endpoint not even the module is loaded: the start must not wait for it. */
const isWanted = Effect.map(
  Effect.all(
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"].map((name) =>
      Effect.option(Config.nonEmptyString(name))
    )
  ),
  (endpoints) => endpoints.some(Option.isSome)
)

const read = Effect.gen(function* () {
  const telemetry = yield* Effect.promise(() => import("./Telemetry.js"))
  return Option.map(yield* telemetry.settings, (settings) => ({ settings, telemetry }))
})
