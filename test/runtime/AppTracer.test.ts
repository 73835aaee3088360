/** What a program's own tracer sees of its agents, without being told to. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Spans from "../../src/core/Spans.js"
import * as Kit from "../kit/session.js"
import * as Traces from "../kit/Traces.js"

const canary = "the canary sings"
const options = {
  model: [{ tools: [{ name: "work", params: { name: canary } }] }, { text: canary }],
  worker: (name: string) => Effect.withSpan(Effect.succeed(name), "of-the-handler")
}
const work = [
  "invoke_agent main > chat scripted",
  "invoke_agent main > permission",
  "invoke_agent main > execute_tool work > of-the-handler",
  "invoke_agent main > execute_tool work",
  "invoke_agent main > chat scripted",
  "invoke_agent main"
]

describe("the tracer of a program", () => {
  it.scoped.each(["around the start", "around the run"] as const)("gets spans by the field's names, set %s", (where) =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const traced = <A, E, R>(self: Effect.Effect<A, E, R>, here: typeof where) =>
        where === here ? Effect.withTracer(self, traces.tracer) : self
      const kit = yield* traced(Kit.start(options), "around the start")
      const { id: modelId } = yield* kit.agent.model
      yield* traced(kit.agent.run(canary), "around the run")
      assert.deepStrictEqual(
        traces.outline(),
        work.map((path) => path.replaceAll("chat scripted", `chat ${modelId}`))
      )
      assert.strictEqual(traces.open(), 0)
      assert.notInclude(traces.text(), canary)
      const [chat] = traces.ended()
      assert.deepInclude(chat?.attributes, {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": modelId,
        "gen_ai.agent.name": "main"
      })
    })
  )

  it.scoped("gets them under the span of the caller, run by run", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const model = [{ text: "a" }, { text: "b" }]
      yield* Effect.gen(function* () {
        const kit = yield* Kit.start({ model })
        yield* Effect.withSpan(kit.agent.run("go"), "first request")
        yield* Effect.withSpan(kit.agent.run("go"), "second request")
      }).pipe(Effect.provide(Layer.setTracer(traces.tracer)))
      assert.deepStrictEqual(
        traces.outline().filter((path) => path.endsWith("invoke_agent main")),
        ["first request > invoke_agent main", "second request > invoke_agent main"]
      )
    })
  )

  it.scoped("gets none when they are turned off, and Effect's own gets none at all", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const kit = yield* Effect.provideService(Kit.start(options), Spans.Spans, Spans.off)
      yield* Effect.withTracer(kit.agent.run("go"), traces.tracer)
      assert.deepStrictEqual(traces.outline(), ["of-the-handler"])
      const effect = Effect.void
      assert.strictEqual(
        new Spans.Following().within(() => assert.fail("nobody looks"), effect),
        effect
      )
    })
  )
})
