import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/TestClock"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Metrics from "../../src/runtime/Metrics.js"
import * as Kit from "../kit/session.js"

const canary = "the canary sings"

// The metrics are those of the process: every test looks at the difference.

const usage = { input: 10, output: 3 }
const script = [
  { tools: [{ name: "work", params: { name: canary } }], usage },
  { text: canary, usage }
]

const on = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.provide(self, Metrics.layer)

describe("metrics", () => {
  it.scoped("count turns, model calls, tokens and tool calls by outcome", () =>
    Effect.gen(function* () {
      const kit = yield* on(Kit.start({ model: script }))
      const { id } = yield* kit.agent.model
      const model = "gen_ai.request.model"
      const chat = <A, B, C>(metric: Metric.Metric<A, B, C>) =>
        Metric.tagged(Metric.tagged(metric, "gen_ai.operation.name", "chat"), model, id)
      const work = Metric.tagged(Metrics.toolCalls, "gen_ai.tool.name", "work")
      const read = Effect.all({
        turns: Metric.value(Metric.tagged(Metrics.turns, "end", "completed")),
        calls: Metric.value(Metric.tagged(Metric.tagged(Metrics.modelCalls, model, id), "outcome", "ended")),
        durations: Metric.value(chat(Metrics.modelCallDuration)),
        input: Metric.value(Metric.tagged(chat(Metrics.tokens), "gen_ai.token.type", "input")),
        output: Metric.value(Metric.tagged(chat(Metrics.tokens), "gen_ai.token.type", "output")),
        tools: Metric.value(Metric.tagged(work, "outcome", "succeeded"))
      })
      const before = yield* read
      yield* kit.agent.run(canary)
      const after = yield* read
      assert.deepStrictEqual(
        {
          turns: after.turns.count - before.turns.count,
          calls: after.calls.count - before.calls.count,
          durations: after.durations.count - before.durations.count,
          input: after.input.sum - before.input.sum,
          output: after.output.sum - before.output.sum,
          tools: after.tools.count - before.tools.count
        },
        { turns: 1, calls: 2, durations: 2, input: 20, output: 6, tools: 1 }
      )
      assert.notInclude(JSON.stringify(yield* Metric.snapshot), canary)
    })
  )

  it.scoped("tell how many questions are open, and how long they were", () =>
    Effect.gen(function* () {
      const open = Effect.map(Metric.value(Metrics.openQuestions), ({ count }) => count)
      const time = Metric.value(
        Metric.tagged(Metric.tagged(Metrics.timeToAnswer, "kind", "Approve"), "outcome", "answered")
      )
      const [openBefore, timeBefore] = [yield* open, yield* time]
      const kit = yield* on(Kit.start({ model: script, runtime: { policy: PermissionFile.defaults } }))
      const running = yield* Effect.fork(kit.agent.run("go"))
      const { requestId } = yield* kit.person.next
      assert.strictEqual((yield* open) - openBefore, 1)
      yield* TestClock.adjust("7 seconds")
      yield* kit.agent.broker.answer(requestId, "test", { decision: "allow", scope: "once" })
      yield* Fiber.join(running)
      assert.strictEqual(yield* open, openBefore)
      const timeAfter = yield* time
      assert.deepStrictEqual([timeAfter.count - timeBefore.count, timeAfter.sum - timeBefore.sum], [1, 7])
    })
  )

  it.scoped("count no question as open once its agent is gone", () =>
    Effect.gen(function* () {
      const open = Effect.map(Metric.value(Metrics.openQuestions), ({ count }) => count)
      const before = yield* open
      const asked = Effect.gen(function* () {
        const kit = yield* on(Kit.start({ model: script, runtime: { policy: PermissionFile.defaults } }))
        yield* Effect.fork(kit.agent.run("go"))
        yield* kit.person.next
        assert.strictEqual((yield* open) - before, 1)
      })
      yield* Effect.scoped(asked)
      assert.strictEqual(yield* open, before)
    })
  )

  it.scoped("are not taken by default, nor where they are turned off around the start", () =>
    Effect.gen(function* () {
      const turns = Metric.tagged(Metrics.turns, "end", "completed")
      const count = Effect.map(Metric.value(turns), ({ count }) => count)
      const before = yield* count
      const plain = yield* Kit.start({ model: script })
      yield* plain.agent.run("go")
      const off = yield* on(Effect.provide(Kit.start({ model: script }), Metrics.layerOff))
      yield* off.agent.run("go")
      assert.strictEqual(yield* count, before)
    })
  )
})
