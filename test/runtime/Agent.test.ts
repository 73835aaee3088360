import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import type * as EventBus from "../../src/event/EventBus.js"
import * as Agent from "../../src/runtime/Agent.js"
import { allowAll, runtime } from "../kit/agents.js"

const oneAdd = { agents: { main: [{ tools: [{ name: "add", params: { a: 1, b: 2 } }] }, { text: "three" }] } } as const

const drain = (events: EventBus.Subscription) =>
  Effect.map(events.takeAll, (batch) => Option.getOrElse(batch, (): ReadonlyArray<AgentEvent> => []))

const opened = (channel: QueueChannel.Service) => Effect.repeat(channel.take, { until: QueueChannel.is("Opened") })

describe("Agent", () => {
  it.scoped("runs a turn: model, tool, model, answer", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.start()
      const events = yield* agent.subscribe()
      const end = yield* agent.run("what is 1 + 2?")
      assert.deepStrictEqual(end, { _tag: "Completed", text: "three", steps: 2 } as never)
      const tags = (yield* drain(events)).map((event) => event._tag)
      assert.deepStrictEqual(tags, [
        "TurnStarted",
        "AgentStatusChanged",
        "ModelCallStarted",
        "ModelCallEnded",
        "AgentStatusChanged",
        "ToolCallProposed",
        "PermissionResolved",
        "ToolCallStarted",
        "ToolCallEnded",
        "AgentStatusChanged",
        "ModelCallStarted",
        "AgentStatusChanged",
        "BlockStarted",
        "TextDelta",
        "BlockEnded",
        "ModelCallEnded",
        "TurnEnded",
        "AgentStatusChanged"
      ])
      assert.deepStrictEqual(
        agent.history.messages.map((message) => message.role),
        ["user", "assistant", "tool", "assistant"]
      )
    }).pipe(Effect.provide(runtime(oneAdd, { policy: allowAll })), Effect.provide(QueueChannel.layer()))
  )

  it.scoped("asks before it acts, and runs what was allowed", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.QueueChannel
      const agent = yield* Agent.start()
      const running = yield* Effect.fork(agent.run("add"))
      const dialog = yield* opened(channel)
      assert(dialog._tag === "Opened" && dialog.request.interaction._tag === "Approve")
      assert.strictEqual(dialog.request.interaction.tool, "add")
      yield* channel.answerText(dialog.request.requestId, "y")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
    }).pipe(Effect.provide(runtime(oneAdd)), Effect.provide(QueueChannel.layer()))
  )

  it.scoped("tells the model that the person said no, and why", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.QueueChannel
      const agent = yield* Agent.start()
      const running = yield* Effect.fork(agent.run("add"))
      const dialog = yield* opened(channel)
      assert(dialog._tag === "Opened")
      yield* channel.answerText(dialog.request.requestId, "c: use the other one")
      yield* Fiber.join(running)
      assert.deepStrictEqual(agent.history.messages[2]?.content, [
        {
          "~effect/ai/Prompt/Part": "~effect/ai/Prompt/Part",
          type: "tool-result",
          id: (agent.history.messages[1]?.content[0] as { readonly id: string } | undefined)?.id,
          name: "add",
          isFailure: true,
          providerExecuted: false,
          result: "Tool not executed. User comment: use the other one",
          options: {}
        }
      ] as never)
    }).pipe(Effect.provide(runtime(oneAdd)), Effect.provide(QueueChannel.layer()))
  )

  it.scoped("cancels a running tool and stays usable, with every call answered", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const script = {
        agents: {
          main: [
            {
              tools: [
                { name: "hang", params: {} },
                { name: "hang", params: {} }
              ]
            },
            { text: "again" }
          ]
        }
      }
      yield* Effect.gen(function* () {
        const agent = yield* Agent.start()
        const running = yield* Effect.fork(agent.run("hang"))
        yield* Deferred.await(started)
        const cancelled = yield* agent.cancel()
        assert.deepStrictEqual(cancelled, Option.some({ _tag: "Cancelled", reason: "user", steps: 1 } as never))
        yield* Deferred.await(ended)
        assert.strictEqual((yield* Fiber.join(running))._tag, "Cancelled")
        const results = agent.history.messages.at(-1)
        assert.strictEqual(results?.role, "tool")
        assert.strictEqual(results?.content.length, 2)
        const end = yield* agent.run("go on")
        assert.strictEqual(end._tag, "Completed")
      }).pipe(
        Effect.provide(
          runtime(script, {
            policy: allowAll,
            onHang: Effect.asVoid(Deferred.succeed(started, undefined)),
            onHangEnd: Effect.asVoid(Deferred.succeed(ended, undefined))
          })
        ),
        Effect.provide(QueueChannel.layer())
      )
    })
  )
})
