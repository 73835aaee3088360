import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Supervisor from "effect/Supervisor"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import type * as EventBus from "../../src/event/EventBus.js"
import { Confirm } from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import type { AgentUnknown } from "../../src/session/Interjection.js"
import type { TurnEnd } from "../../src/turn/Turn.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import { allowAll, runtime } from "../kit/agents.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"
import * as Shuffled from "../kit/Shuffled.js"

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

const work = (name: string) => ({ name: "work", params: { name } })

describe("shutting down", () => {
  it("takes no time, also when nothing of it has begun, whatever runs first", () =>
    fc.assert(
      fc.asyncProperty(fc.integer(), fc.boolean(), async (seed, spoken) => {
        const program = Effect.scoped(
          Effect.gen(function* () {
            const agent = yield* Agent.start()
            if (spoken) yield* agent.send("go")
            yield* agent.shutdown
            const end = Option.getOrUndefined(yield* agent.done)
            assert.include(spoken ? ["Cancelled", "Completed"] : [undefined], end?._tag)
          })
        ).pipe(Effect.provide(runtime(oneAdd, { policy: allowAll })), Effect.provide(QueueChannel.layer()))
        await Effect.runPromise(Effect.withScheduler(program, new Shuffled.Shuffled(Shuffled.random(seed))))
      }),
      { numRuns: 150, timeout: 30_000, endOnFailure: true }
    ))

  it.scoped("cancels the running turn, ends the streams, and says how the last turn ended", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ tools: [work("a")] }], worker: () => Effect.never })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* kit.agent.shutdown
      const end = { _tag: "Cancelled", reason: "shutdown", steps: 1 } as const
      assert.deepStrictEqual(yield* Fiber.join(running), end)
      assert.deepStrictEqual(yield* kit.agent.done, Option.some(end))
      yield* Fiber.join(kit.reader)
      const events = yield* kit.events
      assert.deepStrictEqual(
        events.slice(-3).map((event) => event._tag),
        ["TurnEnded", "AgentStatusChanged", "AgentCompleted"]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("waits for nothing when nothing runs", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "hi" }] })
      yield* kit.agent.run("go")
      Effect.runSync(kit.agent.shutdown)
      assert.deepStrictEqual(
        Option.map(yield* kit.agent.done, (end) => end._tag),
        Option.some("Completed")
      )
      yield* Fiber.join(kit.reader)
      assert.strictEqual((yield* kit.of("AgentCompleted")).length, 1)
    })
  )

  it.scoped("ends a question that the program itself asks", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make()
      const kit = yield* Kit.start({ model: [], interactors: [channel.interactor] })
      const asked = yield* Effect.fork(
        Effect.flip(
          Effect.provideService(
            Interactor.ask(new Confirm({ prompt: "Go on?", default: false })),
            Interactor.Interactor,
            kit.agent.broker.interactor
          )
        )
      )
      yield* opened(channel)
      yield* kit.agent.shutdown
      assert.include(["InteractionCancelled", "InteractorUnavailable"], (yield* Fiber.join(asked))._tag)
    })
  )

  it.scoped("again, and by several at once, is the same end", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "hi" }] })
      yield* kit.agent.run("go")
      const shutdowns = Array.from({ length: 5 }, () => kit.agent.shutdown)
      yield* Effect.all(shutdowns, { concurrency: "unbounded" })
      yield* kit.agent.shutdown
      assert.strictEqual((yield* kit.of("AgentCompleted")).length, 1)
      assert.deepStrictEqual(
        Option.map(yield* kit.agent.done, (end) => end._tag),
        Option.some("Completed")
      )
    })
  )

  it.scoped("while it is being done waits for the one that does it", () =>
    Effect.gen(function* () {
      const clean = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: [{ tools: [work("a")] }],
        worker: () => Effect.onInterrupt(Effect.never, () => Deferred.await(clean))
      })
      yield* kit.agent.send("go")
      yield* settle
      const first = yield* Effect.fork(kit.agent.shutdown)
      yield* settle
      const second = yield* Effect.fork(kit.agent.shutdown)
      yield* settle
      assert.isTrue(Option.isNone(yield* Fiber.poll(second)))
      yield* Deferred.succeed(clean, undefined)
      yield* Fiber.join(first)
      yield* Fiber.join(second)
    })
  )

  it.scoped("takes nothing more", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "hi" }] })
      yield* kit.agent.shutdown
      const tries: ReadonlyArray<Effect.Effect<unknown, Agent.NotTaken | AgentUnknown>> = [
        kit.agent.send("a"),
        kit.agent.enqueue("b"),
        kit.agent.run("c"),
        kit.agent.turn("d")
      ]
      for (const late of tries) {
        const error = yield* Effect.flip(late)
        assert.strictEqual(error._tag, "AgentStopped")
        assert.strictEqual(error.message, "Agent main was shut down; start another one.")
      }
      assert.deepStrictEqual(yield* kit.agent.cancel(), Option.none())
      assert.deepStrictEqual(yield* kit.agent.done, Option.none())
      assert.deepStrictEqual(kit.agent.history.messages, [])
    })
  )

  it.scoped("ends a run whose turn had not begun, and everybody who waits", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: Kit.replies({ text: "hi" }, { tools: [work("a")] }).model,
        worker: () => Effect.never
      })
      assert.strictEqual((yield* kit.agent.run("one"))._tag, "Completed")
      yield* kit.agent.send("two")
      yield* settle
      yield* kit.agent.enqueue("three")
      const waiting = yield* Effect.fork(kit.agent.awaitIdle)
      yield* settle
      yield* kit.agent.shutdown
      assert.deepStrictEqual(
        Option.map(yield* Fiber.join(waiting), (end) => end._tag),
        Option.some("Cancelled"),
        "not the end of an earlier turn"
      )
      assert.strictEqual((yield* kit.of("TurnStarted")).length, 2)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("works though nobody reads the events", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ text: "hi", tools: [work("a")] }],
        agent: { events: { capacity: 1, whenFull: "wait" } }
      })
      yield* kit.agent.send("go")
      yield* settle
      yield* kit.agent.shutdown
      const held = Option.getOrElse(yield* kit.agent.events.takeAll, () => [])
      assert.strictEqual(held.at(-1)?._tag, "AgentCompleted", "what stood in line is handed over")
      assert.deepStrictEqual(yield* kit.agent.events.takeAll, Option.none())
    })
  )

  it.effect("comes with the scope, and leaves no fiber", () =>
    Effect.gen(function* () {
      const supervisor = yield* Supervisor.track
      const left = { tools: 0, dialogs: 0 }
      const person = yield* TestInteractor.make()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const kit = yield* Kit.start({
            model: [{ tools: ["a", "b", "c"].map(work) }],
            worker: () =>
              Effect.acquireUseRelease(
                Effect.sync(() => left.tools++),
                () => Effect.never,
                () => Effect.sync(() => left.tools--)
              ),
            interactors: [person.interactor],
            runtime: { policy: PermissionFile.policy({ whitelist: { patterns: ["work(name=a)", "work(name=b)"] } }) }
          })
          yield* kit.agent.send("go")
          yield* person.next
          yield* settle
          assert.strictEqual(left.tools, 2)
        })
      ).pipe(Effect.supervised(supervisor))
      assert.strictEqual(left.tools, 0)
      assert.deepStrictEqual(yield* person.open, [])
      // The scope's own end is not a fiber of anybody's; give those that were told to end their turn.
      yield* settle
      assert.deepStrictEqual(
        (yield* supervisor.value).map((fiber) => fiber.id().id),
        []
      )
    })
  )
})

describe("agents of one runtime", () => {
  it.scoped("share neither approvals nor suspensions nor histories", () =>
    Effect.gen(function* () {
      const runtime = yield* Kit.runtimeOf({
        model: [{ tools: [work("a")] }, { text: "done" }],
        runtime: { policy: PermissionFile.policy({}) }
      })
      const startWith = (script: TestInteractor.Script) =>
        Effect.gen(function* () {
          const person = yield* TestInteractor.make({ script })
          const agent = yield* Agent.startWith([person.interactor])
          return { agent, person }
        }).pipe(Effect.provideService(AgentRuntime.AgentRuntime, runtime))
      const trusting = yield* startWith(["all"])
      const careful = yield* startWith(["n"])
      const asked = yield* startWith(["always"])
      yield* trusting.agent.run("go")
      yield* asked.agent.run("go")
      yield* careful.agent.run("go")
      assert.deepStrictEqual(Kit.resultsOf(trusting.agent.history.messages), ["a"])
      assert.deepStrictEqual(Kit.resultsOf(careful.agent.history.messages), ["Permission denied: person said no"])
      assert.strictEqual((yield* careful.person.shown).length, 1)
      assert.notStrictEqual(trusting.agent.id, careful.agent.id)
      yield* trusting.agent.shutdown
      assert.strictEqual((yield* careful.agent.run("still there?"))._tag, "Completed")
    })
  )
})

describe("an agent's options and handles", () => {
  it.scoped("another model answers from the next model call on", () =>
    Effect.gen(function* () {
      const next = Kit.replies({ text: "from the other" })
      const switched = yield* Deferred.make<void>()
      const kit = yield* Kit.start({ model: [{ tools: [work("a")] }], worker: () => Deferred.await(switched) })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* kit.agent.setModel(next.model)
      assert.strictEqual((yield* kit.agent.model).id, "test/replies")
      yield* Deferred.succeed(switched, undefined)
      assert.deepStrictEqual(yield* Fiber.join(running), {
        _tag: "Completed",
        text: "from the other",
        steps: 2
      } as TurnEnd)
      assert.strictEqual(next.heard[0]?.messages.at(-1)?.role, "tool", "in the same conversation")
      assert.deepStrictEqual(
        (yield* kit.of("ModelCallStarted")).map(({ model }) => model),
        ["script/script", "test/replies"]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("has the tools that it was given, by name or group, and no others", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: [work("a"), { name: "slow" }] }, { text: "done" }],
        agent: { tools: ["labour"] }
      })
      yield* kit.agent.run("go")
      assert.deepStrictEqual(kit.results(), ["a", 'There is no tool "slow". Available: work.'])
      const none = yield* Kit.start({ model: [{ tools: [work("a")] }, { text: "done" }], agent: { tools: [] } })
      yield* none.agent.run("go")
      assert.deepStrictEqual(none.results(), ['There is no tool "work". No tools are available.'])
    })
  )

  it.scoped("instructions and name are its own, or the runtime's", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies({ text: "1" }, { text: "2" })
      const runtime = { instructions: "Be kind." }
      const first = yield* Kit.start({ model, runtime })
      yield* first.agent.run("go")
      const second = yield* Kit.start({ model, runtime, agent: { instructions: "Be brief.", name: "helper" } })
      yield* second.agent.run("go")
      assert.deepStrictEqual(
        heard.map(({ agent, messages }) => [agent, messages[0]?.content]),
        [
          ["main", "Be kind."],
          ["helper", "Be brief."]
        ]
      )
      assert.isTrue((yield* second.events).every(({ agent }) => agent === "helper"))
    })
  )

  it.scoped("tells of a command that changed permissions, and only of such", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "hi" }] })
      yield* kit.agent.permissions("show")
      yield* kit.agent.permissions("nonsense")
      yield* kit.agent.permissions("suspend all")
      yield* kit.agent.permissions("resume")
      assert.deepStrictEqual(
        (yield* kit.of("PermissionStatusChanged")).map(({ mode, suspension }) => [mode, suspension]),
        [
          ["allow", "all"],
          ["allow", undefined]
        ]
      )
    })
  )

  it.scoped("a permissions command shows no secret that a person allowed", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ text: "hi" }],
        runtime: { secrets: [Redacted.make("hunter2-hunter2")] }
      })
      const allowed = yield* kit.agent.permissions("allow curl -H hunter2-hunter2 x")
      const shown = yield* kit.agent.permissions("show")
      const refused = yield* kit.agent.permissions("frob hunter2-hunter2")
      assert.notInclude(JSON.stringify([allowed, shown, refused]), "hunter2")
      assert.include(JSON.stringify(shown), "curl -H [REDACTED] x")
    })
  )

  it.scoped("with nobody to ask a question fails at once, or waits for somebody", () =>
    Effect.gen(function* () {
      const ask = PermissionFile.policy({})
      const model = [{ tools: [work("a")] }, { text: "done" }]
      const failing = yield* Kit.start({ model, interactors: [], runtime: { policy: ask } })
      yield* failing.agent.run("go")
      assert.match(String(failing.results()[0]), /^Permission denied: No attached channel can answer\./)
      const waiting = yield* Kit.start({
        model,
        interactors: [],
        runtime: { policy: ask },
        agent: { whenNobody: "wait" }
      })
      const running = yield* Effect.fork(waiting.agent.run("go"))
      yield* settle
      const person = yield* TestInteractor.make({ script: ["y"] })
      yield* waiting.agent.broker.attach(person.interactor)
      yield* Fiber.join(running)
      assert.deepStrictEqual(waiting.results(), ["a"])
    })
  )
})
