/** What a program's own tracer sees of its agents, without being told to. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Tracer from "effect/Tracer"
import * as Spans from "../../src/core/Spans.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"
import * as Traces from "../kit/Traces.js"

const canary = "the canary sings"
const options = {
  model: [{ tools: [{ name: "work", params: { name: canary } }] }, { text: canary }],
  worker: (name: string) => Effect.withSpan(Effect.succeed(name), "of-the-handler")
}
const work = (name: string) => ({ name: "work", params: { name } })
const spans = [
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
        spans.map((path) => path.replaceAll("chat scripted", `chat ${modelId}`))
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

  it.scoped("gets each of many calls, and what its model does, in its place", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const { model } = Kit.replies(
        Stream.unwrap(Effect.withSpan(Effect.succeed(Kit.parts({ tools: [work("a"), work("b")] })), "of-the-model")),
        { text: "done" }
      )
      const kit = yield* Kit.start({
        model,
        worker: (name) => Effect.withSpan(Effect.zipRight(Effect.yieldNow(), Effect.succeed(name)), name)
      })
      yield* Effect.withTracer(kit.agent.run("go"), traces.tracer)
      assert.sameMembers(
        [...traces.outline()],
        [
          "invoke_agent main > chat test/replies > of-the-model",
          "invoke_agent main > chat test/replies",
          "invoke_agent main > permission",
          "invoke_agent main > permission",
          "invoke_agent main > execute_tool work > a",
          "invoke_agent main > execute_tool work",
          "invoke_agent main > execute_tool work > b",
          "invoke_agent main > execute_tool work",
          "invoke_agent main > chat test/replies",
          "invoke_agent main"
        ]
      )
      assert.strictEqual(traces.open(), 0)
    })
  )

  it.scoped("sees a turn go on in one span when an interjection cuts its answer", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const begun = yield* Deferred.make<void>()
      const { model } = Kit.replies(Kit.halting([Kit.text("hm")], begun), { tools: [work("a")] }, { text: "done" })
      const kit = yield* Kit.start({ model, worker: (name) => Effect.withSpan(Effect.succeed(name), name) })
      const running = yield* Effect.fork(Effect.withTracer(kit.agent.run("go"), traces.tracer))
      yield* Deferred.await(begun)
      yield* kit.agent.send("no, this")
      yield* Fiber.join(running)
      assert.deepStrictEqual(traces.outline(), [
        "invoke_agent main > chat test/replies",
        "invoke_agent main > chat test/replies",
        "invoke_agent main > permission",
        "invoke_agent main > execute_tool work > a",
        "invoke_agent main > execute_tool work",
        "invoke_agent main > chat test/replies",
        "invoke_agent main"
      ])
      assert.strictEqual(traces.open(), 0)
    })
  )

  it.scoped("sees the end of a tool and of a model that do not stop", () =>
    Effect.gen(function* () {
      for (const tools of [[work("x")], [work("x"), work("y")], []]) {
        const traces = Traces.make()
        const stuck = yield* Deferred.make<void>()
        const never = Stream.drain(Stream.fromEffect(Effect.uninterruptible(Deferred.await(stuck))))
        const { model } = Kit.replies(tools.length === 0 ? never : { tools })
        const kit = yield* Kit.start({ model, worker: () => Effect.uninterruptible(Deferred.await(stuck)) })
        const running = yield* Effect.fork(Effect.withTracer(kit.agent.run("go"), traces.tracer))
        yield* settle
        const stopping = yield* Effect.fork(kit.agent.cancel("user"))
        yield* TestClock.adjust("10 seconds")
        yield* Fiber.join(stopping)
        assert.strictEqual((yield* Fiber.join(running))._tag, "Cancelled")
        assert.strictEqual(traces.open(), 0, `${tools.length} calls`)
        yield* Deferred.succeed(stuck, undefined)
        yield* settle
        assert.deepStrictEqual(
          traces
            .ended()
            .map(({ name }) => name)
            .filter((name) => name.startsWith("execute_tool")),
          tools.map(() => "execute_tool work")
        )
      }
    })
  )

  it.scoped.each(["span", "attribute", "end"] as const)("that throws keeps nobody waiting: %s", (where) =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const fails = () => {
        throw new Error("the tracer is broken")
      }
      const tracer = Tracer.make({
        ...traces.tracer,
        span: (...args) => (where === "span" ? fails() : Object.assign(traces.tracer.span(...args), { [where]: fails }))
      })
      const kit = yield* Kit.start(options)
      const ended = yield* Effect.exit(Effect.withTracer(kit.agent.run("go"), tracer))
      assert.isTrue(Exit.isSuccess(ended), String(ended))
      yield* kit.agent.awaitIdle
    })
  )

  it.scoped("gets none where the program has turned tracing off", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const kit = yield* Kit.start(options)
      const run = Effect.withTracerEnabled(kit.agent.run("go"), false)
      yield* Effect.withTracer(run, traces.tracer)
      assert.deepStrictEqual(traces.outline(), [])
      yield* Effect.withTracer(Effect.annotateSpans(kit.agent.run("go"), "tenant", "t1"), traces.tracer)
      assert.deepStrictEqual(new Set(traces.ended().map(({ attributes }) => attributes["tenant"])), new Set(["t1"]))
      yield* TestClock.adjust("1 second")
      const untimed = Traces.make()
      yield* Effect.withTracer(Effect.withTracerTiming(kit.agent.run("go"), false), untimed.tracer)
      assert.deepStrictEqual(new Set(untimed.ended().flatMap(({ millis }) => millis)), new Set([0]))
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
