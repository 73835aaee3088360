import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { vi } from "vitest"
import * as Telemetry from "../../src/host/Telemetry.js"

vi.mock("@effect/opentelemetry/OtlpTracer", () => {
  throw Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" })
})

it.scoped("a package for traces that is not installed is named, and how to do without", () =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(Telemetry.make({ url: "http://127.0.0.1:9/v1/traces" }))
    assert.strictEqual(error._tag, "TelemetryUnavailable")
    assert.include(error.message, "npm install @effect/opentelemetry")
    assert.include(error.message, "OTEL_SDK_DISABLED=true")
  }).pipe(Effect.provide(FetchHttpClient.layer))
)
