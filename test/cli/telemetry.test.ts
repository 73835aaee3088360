import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Collector from "../kit/Collector.js"
import * as Program from "../kit/Program.js"

const canary = "canary-in-the-coal-mine"
const key = "collector-key-0123456789"

// One after the other: a call in this process would keep a collector here from answering within the two seconds that it has.
describe("traces of the command line", () => {
  it.scopedLive("go to the collector that the environment names, whole, when the program ends", () =>
    Effect.gen(function* () {
      const collector = yield* Collector.make()
      const at = yield* Program.place
      yield* at.write("workspace/notes.txt", `remember ${canary}\n`)
      const model = yield* at.script(
        { text: canary, tools: [{ name: "read_file", params: { path: "notes.txt" } }] },
        { text: `Done with ${canary}.` }
      )
      const result = yield* at.call(["run", "--model", model, `look for ${canary}`], {
        env: {
          OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
          OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
          OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${key}`,
          OTEL_SERVICE_NAME: "lab"
        }
      })
      assert.deepStrictEqual(result, { code: 0, stdout: `Done with ${canary}.\n`, stderr: "" })
      yield* Program.until(() => collector.outline().length >= 5, "all spans are in the collector")
      assert.sameMembers(
        [...collector.outline()],
        ["turn > model_call", "turn > permission", "turn > tool", "turn > model_call", "turn"]
      )
      assert.strictEqual(collector.resource()["service.name"], "lab")
      assert.match(String(collector.resource()["service.version"]), /^\d+\.\d+\.\d+/)
      for (const { body, headers, path } of collector.posts()) {
        assert.strictEqual(path, "/v1/traces")
        assert.strictEqual(headers["authorization"], `Bearer ${key}`)
        assert.notInclude(body, "canary")
        assert.notInclude(body, key)
      }
    })
  )

  it.scopedLive("are sent when a signal ends the program too", () =>
    Effect.gen(function* () {
      const collector = yield* Collector.make()
      const at = yield* Program.place
      const model = yield* at.script({
        tools: [{ name: "run_command", params: { command: "touch begun && sleep 300" } }]
      })
      const program = yield* at.start(["run", "--yolo", "--model", model, "wait"], {
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }
      })
      yield* program.endInput
      yield* at.appears("workspace/begun")
      yield* program.signal("SIGTERM")
      assert.strictEqual((yield* program.exit).code, 130)
      // The program waits for two seconds at most, and a busy collector may take longer.
      const turns = () => collector.spans().filter(({ name }) => name === "assent.turn")
      yield* Program.until(() => turns().length > 0, "the turn is in the collector")
      assert.strictEqual(turns()[0]?.attributes["assent.turn.end"], "cancelled")
      assert.include(collector.outline(), "turn > tool")
    })
  )

  it.scopedLive("change nothing when nobody listens, but for two seconds at most", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.scoped(Collector.make())
      const silent = yield* Collector.make(Effect.never)
      const at = yield* Program.place
      const model = yield* at.script({ text: "Done." })
      const plain = yield* Effect.timed(at.call(["run", "--model", model, "x"]))
      for (const { url } of [gone, silent]) {
        const [took, result] = yield* Effect.timed(
          at.call(["run", "--model", model, "x"], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: url } })
        )
        assert.deepStrictEqual(result, { code: 0, stdout: "Done.\n", stderr: "" })
        assert.isBelow(Duration.toMillis(took) - Duration.toMillis(plain[0]), 9_000)
      }
    })
  )

  it.scopedLive("keep the collector's key from the commands that an agent runs, and from what is shown", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/leaked.txt", `it is ${key}\n`)
      const model = yield* at.script(
        { tools: [{ name: "run_command", params: { command: "env | grep -c OTLP_HEADERS; cat leaked.txt" } }] },
        { expect: { contains: "0\nit is [REDACTED]" }, text: "Done." }
      )
      const result = yield* at.call(["run", "--yolo", "--model", model, "x"], {
        env: {
          OTEL_SDK_DISABLED: "false",
          OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
          OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${key}`
        }
      })
      assert.deepStrictEqual([result.code, result.stdout], [0, "Done.\n"])
      assert.notInclude(result.stderr, key)
    })
  )

  it.scopedLive("that cannot be sent as they are asked for are an error that says how to do without", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }
      const result = yield* at.call(["run", "--model", yield* at.script({ text: "Done." }), "x"], { env })
      assert.strictEqual(result.code, 2)
      assert.match(result.stderr, /^assent: OTEL_EXPORTER_OTLP_PROTOCOL must be .*OTEL_SDK_DISABLED=true\.\n$/)
      const off = yield* at.call(["run", "--model", yield* at.script({ text: "Done." }), "x"], {
        env: { ...env, OTEL_SDK_DISABLED: "true" }
      })
      assert.deepStrictEqual(off, { code: 0, stdout: "Done.\n", stderr: "" })
    })
  )
})
