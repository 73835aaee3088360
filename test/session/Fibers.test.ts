/**
 * How many fibers an agent has: what waits for nothing has none, for thousands of agents may be idle or blocked. In real
 * time: a test clock has fibers of its own, which warn that nobody adjusts it.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Supervisor from "effect/Supervisor"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Agents from "../kit/agents.js"

/** An agent, and how many fibers live that it began. */
const start = Effect.gen(function* () {
  // Without a time limit, for which a channel has a fiber of its own, started by whoever comes first.
  const channel = yield* QueueChannel.make({ timeouts: { permission: Duration.infinity } })
  const fibers = yield* Supervisor.track
  const agent = yield* Agent.startWith([channel.interactor]).pipe(
    Effect.provide(
      Agents.runtime({ agents: { main: [{ tools: [{ name: "add", params: { a: 1, b: 2 } }] }, { text: "3" }] } })
    ),
    Effect.provide(Supervisor.addSupervisor(fibers))
  )
  /** How many there are once it is so many, or after a thousand rounds of the event loop. */
  const living = (expected: number) => {
    const round = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
    const count = Effect.map(fibers.value, (living) => living.length)
    return Effect.repeat(Effect.zipRight(round, count), { until: (count) => count === expected, times: 1_000 })
  }
  return { agent, channel, living }
})

describe("an agent", () => {
  it.scopedLive(
    "has no fiber before its first turn, one or two while its question is open, and none after its turn",
    () =>
      Effect.gen(function* () {
        const { agent, channel, living } = yield* start
        assert.strictEqual(yield* living(0), 0)
        yield* agent.send("add")
        const dialog = yield* channel.take
        // One of the turn. Among many other tests there is sometimes one more.
        assert.include([1, 2], yield* living(1))
        assert.strictEqual(dialog._tag, "Opened")
        if (dialog._tag !== "Opened") return
        yield* channel.answer(dialog.request.requestId, { decision: "allow", scope: "once" })
        yield* agent.awaitIdle
        assert.strictEqual(yield* living(0), 0)
      })
  )

  it.scopedLive("has none after it was cancelled, or shut down, while its question was open", () =>
    Effect.gen(function* () {
      for (const stop of ["cancel", "shutdown"] as const) {
        const { agent, channel, living } = yield* start
        yield* agent.send("add")
        yield* channel.take
        yield* stop === "cancel" ? agent.cancel() : agent.shutdown
        assert.strictEqual(yield* living(0), 0, stop)
      }
    })
  )
})
