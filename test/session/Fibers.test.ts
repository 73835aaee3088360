/**
 * How many fibers an agent has: what waits for nothing has none, for thousands of agents may be idle or blocked. In real
 * time: a test clock has fibers of its own, which warn that nobody adjusts it.
 */
import { assert, describe, it } from "@effect/vitest"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Option from "effect/Option"
import * as Supervisor from "effect/Supervisor"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Agents from "../kit/agents.js"

type AnyFiber = Fiber.RuntimeFiber<unknown, unknown>

/** The living fibers, each with the code that began it. */
class Births extends Supervisor.AbstractSupervisor<ReadonlyArray<string>> {
  private readonly living = new Map<AnyFiber, string>()

  override value = Effect.sync(() => [...this.living.values()])

  override onStart<A, E, R>(
    _: Context.Context<R>,
    _effect: Effect.Effect<A, E, R>,
    _parent: Option.Option<Fiber.RuntimeFiber<unknown, unknown>>,
    fiber: Fiber.RuntimeFiber<A, E>
  ): void {
    this.living.set(fiber as AnyFiber, new Error(`fiber ${fiber.id().id}`).stack ?? "")
  }

  override onEnd<A, E>(_: Exit.Exit<A, E>, fiber: Fiber.RuntimeFiber<A, E>): void {
    this.living.delete(fiber as AnyFiber)
  }
}

/** An agent, and how many fibers live that it began. */
const start = Effect.gen(function* () {
  // Without a time limit, for which a channel has a fiber of its own, started by whoever comes first.
  const channel = yield* QueueChannel.make({ timeouts: { permission: Duration.infinity } })
  const births = new Births()
  const agent = yield* Agent.startWith([channel.interactor]).pipe(
    Effect.provide(
      Agents.runtime({ agents: { main: [{ tools: [{ name: "add", params: { a: 1, b: 2 } }] }, { text: "3" }] } })
    ),
    Effect.provide(Supervisor.addSupervisor(births))
  )
  /** There are so many, at the latest after a thousand rounds of the event loop. */
  const living = (expected: number, when: string) => {
    const round = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
    const settled = Effect.repeat(Effect.zipRight(round, births.value), {
      until: ({ length }) => length === expected,
      times: 1_000
    })
    return Effect.map(settled, (all) => assert.lengthOf(all, expected, `${when}:\n${all.join("\n")}`))
  }
  return { agent, channel, living }
})

describe("an agent", () => {
  it.scopedLive("has no fiber before its first turn, one while its question is open, and none after its turn", () =>
    Effect.gen(function* () {
      const { agent, channel, living } = yield* start
      yield* living(0, "before the turn")
      yield* agent.send("add")
      const dialog = yield* channel.take
      yield* living(1, "while it asks")
      assert.strictEqual(dialog._tag, "Opened")
      if (dialog._tag !== "Opened") return
      yield* channel.answer(dialog.request.requestId, { decision: "allow", scope: "once" })
      yield* agent.awaitIdle
      yield* living(0, "after the turn")
    })
  )

  it.scopedLive("has none after it was cancelled, or shut down, while its question was open", () =>
    Effect.gen(function* () {
      for (const stop of ["cancel", "shutdown"] as const) {
        const { agent, channel, living } = yield* start
        yield* agent.send("add")
        yield* channel.take
        yield* stop === "cancel" ? agent.cancel() : agent.shutdown
        yield* living(0, stop)
      }
    })
  )
})
