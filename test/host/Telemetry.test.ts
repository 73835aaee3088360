import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Spans from "../../src/core/Spans.js"
import * as Telemetry from "../../src/host/Telemetry.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Collector from "../kit/Collector.js"
import * as Kit from "../kit/session.js"

const canary = "canary-in-the-coal-mine"
const ask = PermissionFile.policy({})
const work = (name: string) => ({ name: "work", params: { name } })

/** What has to be said without being told: arguments, results, answers, and the words themselves. */
const talkative: ReadonlyArray<Kit.Step> = [
  { text: `I think ${canary}.`, tools: [work(canary)], usage: { input: 11, output: 5 } },
  { text: `It was ${canary}.`, usage: { input: 20, output: 7 } }
]

const started = (spans: Spans.Service) =>
  Kit.start({ model: talkative, person: ["y"], runtime: { policy: ask, spans } })

describe("Telemetry", () => {
  /** An agent's one turn, with its spans sent where these settings say, to its very end. */
  const exported = (settings: Telemetry.Settings) =>
    Effect.scoped(
      Effect.gen(function* () {
        const spans = yield* Telemetry.make(settings)
        const kit = yield* started(spans)
        yield* kit.agent.run(`do ${canary}`)
      })
    ).pipe(Effect.provide(FetchHttpClient.layer))

  it.scopedLive("sends what is left when its scope closes, nested, and without a word of what was said", () =>
    Effect.gen(function* () {
      const collector = yield* Collector.make()
      yield* exported({
        url: `${collector.url}/v1/traces`,
        protocol: "json",
        headers: { authorization: Redacted.make("Bearer collector-key") },
        serviceName: "lab",
        attributes: { "deployment.environment": "test" }
      })
      assert.sameMembers(
        [...collector.outline()],
        [
          "turn > model_call",
          "turn > permission > interaction",
          "turn > permission",
          "turn > tool",
          "turn > model_call",
          "turn"
        ]
      )
      const traceIds = new Set(collector.spans().map(({ traceId }) => traceId))
      assert.strictEqual(traceIds.size, 1)
      assert.match([...traceIds].join(), /^[0-9a-f]{32}$/)
      assert.deepStrictEqual(collector.resource(), { "service.name": "lab", "deployment.environment": "test" })
      const [post] = collector.posts()
      assert.strictEqual(post?.path, "/v1/traces")
      assert.strictEqual(post?.headers["authorization"], "Bearer collector-key")
      for (const { body } of collector.posts()) {
        assert.notInclude(body, "canary")
        assert.notInclude(body, "collector-key")
      }
    })
  )

  it.scopedLive("goes nowhere that a collector sends it, with its key", () =>
    Effect.gen(function* () {
      const elsewhere = yield* Collector.make()
      const asked: Array<string> = []
      const redirecting = createServer((request, response) => {
        asked.push(String(request.headers.authorization))
        response.writeHead(302, { location: `${elsewhere.url}/v1/traces` }).end()
      })
      yield* Effect.acquireRelease(
        Effect.async<void>((resume) => void redirecting.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => (redirecting.closeAllConnections(), redirecting.close()))
      )
      const { port } = redirecting.address() as AddressInfo
      const headers = { authorization: Redacted.make(canary) }
      yield* exported({ url: `http://127.0.0.1:${port}/v1/traces`, protocol: "json", headers })
      assert.include(asked, canary)
      assert.deepStrictEqual(elsewhere.posts(), [])
    })
  )

  it.scopedLive("speaks protobuf unless told otherwise", () =>
    Effect.gen(function* () {
      const collector = yield* Collector.make()
      yield* exported({ url: `${collector.url}/v1/traces` })
      const [post] = collector.posts()
      assert.strictEqual(post?.headers["content-type"], "application/x-protobuf")
      assert.include(post?.body, "assent.model_call")
      assert.include(post?.body, "service.name")
      assert.notInclude(post?.body, "canary")
    })
  )

  it.scopedLive("provides a runtime with its spans as a layer", () =>
    Effect.gen(function* () {
      const collector = yield* Collector.make()
      const spans = Telemetry.make({ url: `${collector.url}/v1/traces`, protocol: "json" })
      const layer = Layer.scoped(Spans.Spans, spans)
      const program = Effect.scoped(
        Effect.gen(function* () {
          const kit = yield* Kit.start({ model: [{ text: "Done." }] })
          yield* kit.agent.run("go")
        })
      )
      yield* Effect.provide(program, Layer.provide(layer, FetchHttpClient.layer))
      assert.sameMembers([...collector.outline()], ["turn > model_call", "turn"])
      assert.deepStrictEqual(collector.resource(), { "service.name": "assent" })
    })
  )

  it.scopedLive(
    "is held up for two seconds at most by a collector that is not there, answers nothing or only errors",
    () =>
      Effect.gen(function* () {
        const gone = yield* Effect.scoped(Collector.make())
        const silent = yield* Collector.make(Effect.never)
        const broken = yield* Collector.make(Effect.succeed(503))
        const took = yield* Effect.forEach(
          [gone, silent, broken],
          ({ url }) => Effect.timed(exported({ url: `${url}/v1/traces` })),
          { concurrency: "unbounded" }
        )
        for (const [duration] of took) assert.isBelow(Duration.toMillis(duration), 9_000)
        assert.isAtLeast(broken.posts().length, 1)
      })
  )

  it.scopedLive("goes on sending nothing once its scope has closed, and fails nobody", () =>
    Effect.gen(function* () {
      const collector = yield* Collector.make()
      const scope = yield* Scope.make()
      const spans = yield* Telemetry.make({ url: `${collector.url}/v1/traces`, protocol: "json" }).pipe(
        Scope.extend(scope),
        Effect.provide(FetchHttpClient.layer)
      )
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* spans.within(() => ({ name: "assent.turn", attributes: {} }), Effect.succeed(1)), 1)
      assert.deepStrictEqual(collector.posts(), [])
    })
  )
})

describe("Telemetry.settings", () => {
  const read = (variables: Readonly<Record<string, string>>) =>
    Effect.withConfigProvider(Telemetry.settings, ConfigProvider.fromMap(new Map(Object.entries(variables))))
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4318/" }

  it.effect("asks for nothing without an endpoint, and when it is turned off", () =>
    Effect.gen(function* () {
      for (const variables of [
        {},
        { OTEL_SERVICE_NAME: "lab" },
        { OTEL_EXPORTER_OTLP_ENDPOINT: " " },
        { ...endpoint, OTEL_SDK_DISABLED: "TRUE" },
        { ...endpoint, OTEL_TRACES_EXPORTER: "none" },
        { OTEL_SDK_DISABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: "nonsense", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }
      ]) {
        assert.isUndefined(Option.getOrUndefined(yield* read(variables)))
      }
    })
  )

  it.effect("adds the path to the common endpoint, and takes that for traces as it is", () =>
    Effect.gen(function* () {
      const common = Option.getOrThrow(yield* read({ ...endpoint, OTEL_SDK_DISABLED: "false" }))
      assert.deepStrictEqual(common, {
        url: "http://localhost:4318/v1/traces",
        protocol: "protobuf",
        headers: {},
        serviceName: undefined,
        attributes: {},
        content: false
      })
      const own = { ...endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://traces.example/in" }
      assert.strictEqual(Option.getOrThrow(yield* read(own)).url, "https://traces.example/in")
    })
  )

  it.effect("reads headers, names and attributes, decoded, those for traces before the common ones", () =>
    Effect.gen(function* () {
      const found = Option.getOrThrow(
        yield* read({
          ...endpoint,
          OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Basic%20abc==,x-team=a",
          OTEL_EXPORTER_OTLP_TRACES_HEADERS: " x-team = b ",
          OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
          OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json",
          OTEL_RESOURCE_ATTRIBUTES: "service.name=from-attributes,team=a%2Cb",
          OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true"
        })
      )
      const headers = Object.entries(found.headers ?? {}).map(([name, value]) => [name, Redacted.value(value)])
      assert.deepStrictEqual(headers, [
        ["authorization", "Basic abc=="],
        ["x-team", "b"]
      ])
      assert.strictEqual(found.protocol, "json")
      assert.strictEqual(found.serviceName, "from-attributes")
      assert.deepStrictEqual(found.attributes, { team: "a,b" })
      assert.isTrue(found.content)
      const named = yield* read({ ...endpoint, OTEL_SERVICE_NAME: "lab", OTEL_RESOURCE_ATTRIBUTES: "service.name=x" })
      assert.strictEqual(Option.getOrThrow(named).serviceName, "lab")
    })
  )

  it.effect("says what is wrong with a variable, never what a header holds", () =>
    Effect.gen(function* () {
      const messages = yield* Effect.forEach(
        [
          { OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318" },
          { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "ftp://x" },
          { ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
          { ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: canary },
          { ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: `${canary}=%E0%A4%A` },
          { OTEL_EXPORTER_OTLP_ENDPOINT: `https://me:${canary}@collector.example` },
          { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://${canary}@localhost:4318/v1/traces` },
          { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://:${canary}@localhost/` }
        ],
        (variables) => Effect.map(Effect.flip(read(variables)), ({ message }) => message)
      )
      assert.match(messages[0] ?? "", /^OTEL_EXPORTER_OTLP_ENDPOINT is not an /)
      assert.match(messages[1] ?? "", /^OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not/)
      assert.match(messages[2] ?? "", /must be http\/protobuf or http\/json, not "grpc"\..*OTEL_SDK_DISABLED=true/)
      assert.match(messages[3] ?? "", /^OTEL_EXPORTER_OTLP_HEADERS must be name=value pairs/)
      for (const message of messages.slice(5)) assert.include(message, "holds a user name or a password")
      assert.notInclude(messages.join(), "canary")
      const made = yield* Effect.scoped(Telemetry.make({ url: `http://${canary}@localhost:4318/v1/traces` })).pipe(
        Effect.provide(FetchHttpClient.layer),
        Effect.flip
      )
      assert.match(made.message, /^The collector's address holds a user name or a password/)
      assert.notInclude(made.message, canary)
    })
  )
})
