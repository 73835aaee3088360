import type * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Todo from "../../src/core/Todo.js"
import * as Model from "../../src/model/Model.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as CompactionConfig from "../../src/conversation/CompactionConfig.js"
import * as History from "../../src/conversation/History.js"
import * as TokenEstimate from "../../src/conversation/TokenEstimate.js"
import { Agenda } from "../../src/tool/Agenda.js"
import type { TurnEnd } from "../../src/turn/Turn.js"
import * as Kit from "../kit/session.js"
import { brief, compactions, config, conversing, isSummary, long, says, start, turns } from "../kit/SmallWindow.js"
import { settle } from "../kit/Recorder.js"

describe("compaction is due", () => {
  it.scoped("before a model call, from the threshold on, and goes down to the target", () =>
    Effect.gen(function* () {
      // 5 + 300 tokens a turn: the third begins at 615, the fourth at 920.
      const { heard, model } = conversing([says(300, "a"), says(300, "b"), says(300, "c"), says(10, "d")])
      const kit = yield* start(model, config({ autoTrigger: false }))
      yield* turns(kit, "1", "2", "3")
      assert.deepStrictEqual(yield* compactions(kit), [])
      yield* turns(kit, "4")
      assert.deepStrictEqual(yield* compactions(kit), ["pre_message…", "pre_message -4"])
      assert.deepStrictEqual(brief(heard[3]?.messages ?? []), ["user 3", "assistant ccccc", "user 4"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("after a turn, while the next one has not begun; the event is of the turn that ended", () =>
    Effect.gen(function* () {
      const { model } = conversing([says(300, "a"), says(300, "b"), says(300, "c")])
      const kit = yield* start(model, config({ checkBeforeSend: false }))
      yield* turns(kit, "1", "2", "3")
      assert.deepStrictEqual(yield* compactions(kit), ["threshold…", "threshold -4"])
      assert.deepStrictEqual(brief(kit.agent.history.messages), ["user 3", "assistant ccccc"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("by what the provider counted, when it did, rather than by length", () =>
    Effect.gen(function* () {
      const usage = (input: number) => ({ usage: { input, output: 1 } })
      const { model } = conversing([
        { text: "a", ...usage(100) },
        { text: "b", ...usage(795) },
        { text: "c", ...usage(100) }
      ])
      const kit = yield* start(model, config())
      yield* turns(kit, "1", "2")
      assert.deepStrictEqual(yield* compactions(kit), ["threshold…", "threshold -2"], "795 and the last answer")
      yield* turns(kit, "3")
      assert.strictEqual((yield* compactions(kit)).length, 2)
      assert.deepStrictEqual(brief(kit.agent.history.messages), ["user 2", "assistant b", "user 3", "assistant c"])
    })
  )

  it.scoped("with too many turns, so that it is not due again after each", () =>
    Effect.gen(function* () {
      const { model } = conversing(Array.from({ length: 8 }, (_, at) => ({ text: `answer ${at}` })))
      const kit = yield* start(model, config({ maxTurns: 5 }))
      yield* turns(kit, "0", "1", "2", "3")
      assert.deepStrictEqual(yield* compactions(kit), [])
      yield* turns(kit, "4", "5")
      assert.deepStrictEqual(yield* compactions(kit), ["turn_limit…", "turn_limit -4"])
      yield* turns(kit, "6")
      assert.strictEqual((yield* compactions(kit)).length, 4)
      assert.deepStrictEqual(
        brief(kit.agent.history.messages).filter((line) => line.startsWith("user")),
        ["user 4", "user 5", "user 6"]
      )
    })
  )

  it.scoped("continuously above the target, not at it, and whatever the threshold", () =>
    Effect.gen(function* () {
      const { model } = conversing([says(295, "a"), says(295, "b"), says(5, "c")])
      const kit = yield* start(model, config({ pressurePercent: 0, thresholdPercent: 10 }))
      yield* turns(kit, "1", "2")
      assert.deepStrictEqual(yield* compactions(kit), [], "600 of 600 tokens")
      yield* turns(kit, "3")
      assert.deepStrictEqual(yield* compactions(kit), ["threshold…", "threshold -2"])
    })
  )

  it.scoped("not without a configuration", () =>
    Effect.gen(function* () {
      const { model } = conversing([says(800), says(800), says(800)])
      const kit = yield* start(model)
      yield* turns(kit, "1", "2", "3")
      assert.deepStrictEqual(yield* compactions(kit), [])
    })
  )

  it.scoped("not again and again where nothing may go", () =>
    Effect.gen(function* () {
      const { model } = conversing([says(900), says(900), says(10)])
      const kit = yield* start(model, config({ preserveRecentTurns: 5 }))
      yield* turns(kit, "1", "2")
      assert.deepStrictEqual(yield* compactions(kit), [])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("quietly where people are not to be told", () =>
    Effect.gen(function* () {
      const kit = yield* start(conversing([says(900)]).model, config({ notifyOnGc: false, preserveRecentTurns: 0 }))
      yield* turns(kit, "1")
      assert.deepStrictEqual(
        (yield* kit.of("CompactionEnded")).map(({ quiet }) => quiet),
        [true]
      )
    })
  )
})

describe("a turn that does more than the window holds", () => {
  const working = (count: number): ReadonlyArray<Kit.Reply> =>
    Array.from({ length: count }, (_, at) => ({ tools: [{ name: "work", params: { name: `${at}` } }] }))
  /** The last letters of all results. */
  const results = (messages: ReadonlyArray<Prompt.Message>) =>
    Kit.outline(messages).flatMap((line) =>
      !line.startsWith("tool") ? [] : line.startsWith("tool: [This result of") ? "noted" : (line.at(-1) ?? "")
    )
  const worked: Kit.Worker = (name) => Effect.succeed(`${long(120)}${name}`)

  it.scoped("goes on with a summary of its first steps; what was said stays", () =>
    Effect.gen(function* () {
      const { asked, heard, model } = conversing([...working(7), { text: "done" }], {
        summaries: [{ text: "three steps hunter2-hunter2" }]
      })
      const kit = yield* start(model, config({ type: "hybrid", preserveRecentTurns: 3 }), worked)
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      assert.deepStrictEqual(yield* compactions(kit), ["pre_message…", "pre_message -10"])
      assert.strictEqual(asked.length, 1)
      const last = heard.at(-1)?.messages ?? []
      assert.deepStrictEqual(Kit.outline(last).slice(0, 2), [
        "user: go",
        "user: [Summary of what was done before this, written by the model]\nthree steps [REDACTED]"
      ])
      assert.deepStrictEqual(results(last), ["5", "6"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("notes results first, then the calls, where no model is asked", () =>
    Effect.gen(function* () {
      const { heard, model } = conversing([...working(30), { text: "done" }])
      const kit = yield* start(model, config({ preserveRecentTurns: 3 }), worked)
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      const sizes = heard.map(({ messages }) => TokenEstimate.estimate(messages))
      assert.isBelow(Math.max(...sizes), 1_000, "never longer than the window")
      assert.deepStrictEqual(results(heard[6]?.messages ?? []), ["noted", "noted", "noted", "3", "4", "5"])
      const last = Kit.outline(heard.at(-1)?.messages ?? [])
      assert.strictEqual(last[0], "user: go")
      assert.match(
        last.join("\n"),
        /^user: \[Removed to make room: .*the calls of work \(\d+ times\) and their results/m
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("is made shorter for a provider that refuses it, also without a configuration", () =>
    Effect.gen(function* () {
      const tooLong = Stream.fail(new Model.ContextTooLong({ model: "m", message: "It is too long." }))
      const { heard, model } = conversing([...working(12), tooLong, { text: "done" }])
      const kit = yield* start(model, undefined, (name) => Effect.succeed(`${long(60)}${name}`))
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      const [before, after] = heard.slice(-2).map(({ messages }) => TokenEstimate.estimate(messages))
      assert.isBelow(after ?? 0, (before ?? 0) * 0.8)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("that was the last one leaves room for the next one", () =>
    Effect.gen(function* () {
      const { heard, model } = conversing([...working(2), { text: "first" }, { text: "second" }])
      const kit = yield* start(model, config({ preserveRecentTurns: 3, autoTrigger: false }), () =>
        Effect.succeed(long(500))
      )
      yield* turns(kit, "1", "2")
      assert.deepStrictEqual(yield* compactions(kit), ["pre_message…", "pre_message -1"])
      assert.deepStrictEqual(results(heard.at(-1)?.messages ?? []), ["noted", "x"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  for (const type of CompactionConfig.strategies)
    it.scoped(`is played from a script to its end, with ${type}`, () =>
      Effect.gen(function* () {
        const steps = Array.from({ length: 20 }, (_, at) => ({
          text: `step ${at}`,
          tools: [{ name: "work", params: { name: `${at}` } }]
        }))
        const scripted = ScriptedModel.make({ agents: { main: [...steps, { text: "done" }] } })
        const done: Array<string> = []
        const kit = yield* start({ ...scripted, contextWindow: 1_000 }, config({ type }), (name) =>
          Effect.zipRight(
            Effect.sync(() => done.push(name)),
            worked(name)
          )
        )
        assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "Completed", text: "done", steps: 21 } as TurnEnd)
        assert.deepStrictEqual(
          done,
          steps.map((_, at) => `${at}`)
        )
        assert.isAbove((yield* compactions(kit)).length, 2)
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )

  it.scoped("is made shorter when somebody asks, although no turn may go", () =>
    Effect.gen(function* () {
      const { model } = conversing([...working(4), { text: "done" }], { summaries: [{ text: "four steps" }] })
      const kit = yield* start(model, config({ type: "summarize", preserveRecentTurns: 3 }), worked)
      yield* turns(kit, "go")
      assert.strictEqual((yield* kit.agent.compact).removed, 6)
      assert.include(brief(kit.agent.history.messages), "summary four steps")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("whatever crashes while a history is made shorter", () => {
  const crashes: Readonly<Record<string, () => Stream.Stream<Model.Part, Model.ModelError>>> = {
    "a model that throws": () => {
      throw new Error("broken hunter2-hunter2")
    },
    "a model that dies": () => Stream.die(new Error("broken hunter2-hunter2")),
    "a model that throws as it answers": () =>
      Stream.map(Stream.make(Kit.text("half")), () => {
        throw new Error("broken hunter2-hunter2")
      })
  }
  for (const [what, crash] of Object.entries(crashes)) {
    for (const moment of ["before a model call", "after a turn", "because a provider refused it"] as const) {
      it.scoped(`${what}, ${moment}: the compaction fails, and the turn goes on`, () =>
        Effect.gen(function* () {
          const { model } = conversing([says(500), says(500), says(10), says(10)])
          let refused = moment !== "because a provider refused it"
          const broken: Model.Service = {
            ...model,
            stream: (request) => {
              if (isSummary(request.prompt)) return crash()
              if (!refused && request.prompt.content.length > 4) {
                refused = true
                return Stream.fail(new Model.ContextTooLong({ model: model.id, message: "too long" }))
              }
              return model.stream(request)
            }
          }
          const changes = { autoTrigger: moment === "after a turn", checkBeforeSend: moment === "before a model call" }
          const kit = yield* start(broken, config({ type: "summarize", ...changes }))
          for (const text of ["1", "2", "3"]) assert.strictEqual((yield* kit.agent.run(text))._tag, "Completed", text)
          assert.include((yield* compactions(kit)).join(), "…")
          const errors = (yield* kit.events).flatMap((event) => (event._tag === "AgentError" ? [event.message] : []))
          assert.match(errors[0] ?? "", /crashed.*: broken \[REDACTED\]/)
          assert.deepStrictEqual(yield* kit.wrong, [])
        })
      )
    }
  }

  it.scoped("is told to who asked for it", () =>
    Effect.gen(function* () {
      const { model } = conversing([says(100), says(100)])
      const broken: Model.Service = {
        ...model,
        stream: (request) => {
          if (isSummary(request.prompt)) throw new Error("broken")
          return model.stream(request)
        }
      }
      const kit = yield* start(broken, config({ type: "summarize", autoTrigger: false, checkBeforeSend: false }))
      yield* turns(kit, "1", "2")
      assert.match((yield* Effect.flip(kit.agent.compact)).message, /crashed.*broken/)
    })
  )
})

describe("a summary", () => {
  it.scoped("takes the place of old turns; earlier summaries stay, in order, and pinned turns too", () =>
    Effect.gen(function* () {
      const answers = ["a", "b", "c", "d", "e"].map((letter) => says(300, letter))
      const { asked, model } = conversing(answers, {
        summaries: [{ text: "first hunter2-hunter2", usage: { input: 7, output: 2 } }, { text: "second" }]
      })
      const kit = yield* start(model, config({ type: "summarize", pinnedTurnIndices: [1] }))
      yield* turns(kit, "1", "2", "3")
      assert.deepStrictEqual(brief(kit.agent.history.messages), [
        "summary first [REDACTED]",
        "user 2",
        "assistant bbbbb",
        "user 3",
        "assistant ccccc"
      ])
      yield* turns(kit, "4")
      assert.deepStrictEqual(brief(kit.agent.history.messages), [
        "summary first [REDACTED]",
        "user 2",
        "assistant bbbbb",
        "summary second",
        "user 4",
        "assistant ddddd"
      ])
      const [first, second] = asked
      assert.include(History.textOf(first?.messages[1]), "User: 1\n\nAssistant: aaaa")
      assert.notInclude(History.textOf(second?.messages[1]), "first", "a summary is not summarised again")
      assert.deepStrictEqual(
        (yield* kit.of("CompactionEnded")).map(({ usage }) => [usage?.inputTokens, usage?.outputTokens]),
        [
          [7, 2],
          [undefined, undefined]
        ]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("that fails leaves the history alone and is told, once, and the turn is what it was", () =>
    Effect.gen(function* () {
      const broken: ReadonlyArray<readonly [Kit.Reply, string]> = [
        [Stream.fail(new Model.Refused({ model: "m", message: "No hunter2-hunter2." })), "No [REDACTED]."],
        [Stream.die(new Error("boom")), "The model crashed: boom"],
        [{ text: "  " }, "The model's summary was empty."],
        [Stream.make(Kit.text("half")), "The model's summary was cut off."],
        [Stream.make(Kit.text("no"), Kit.finish("content-filter")), "The provider stopped the summary."]
      ]
      for (const type of ["summarize", "hybrid"] as const) {
        for (const [reply, why] of broken) {
          const { model } = conversing([says(500), says(500)], { summaries: [reply] })
          const kit = yield* start(model, config({ type }))
          yield* turns(kit, "1")
          assert.deepStrictEqual((yield* kit.agent.run("2"))._tag, "Completed")
          assert.deepStrictEqual(yield* compactions(kit), ["threshold…", "threshold -0"])
          assert.deepStrictEqual(
            (yield* kit.of("AgentError")).map(({ message }) => message),
            [`The conversation was not summarised and is unchanged. ${why}`]
          )
          assert.strictEqual(kit.agent.history.messages.length, 4)
        }
      }
    })
  )

  for (const [what, silent] of [
    ["says nothing", Stream.never],
    ["begins and says no more", Stream.concat(Stream.make(Kit.text("half")), Stream.never)],
    ["does not let itself be interrupted", Stream.fromEffect(Effect.uninterruptible(Effect.never))]
  ] as const) {
    it.scoped(`of a model that ${what} is given up, and the turn goes on`, () =>
      Effect.gen(function* () {
        const { model } = conversing([says(500), says(500)], { summaries: [silent, silent, silent] })
        const kit = yield* start(model, config({ type: "summarize" }))
        yield* turns(kit, "1")
        const running = yield* Effect.fork(kit.agent.run("2"))
        yield* TestClock.adjust("20 minutes")
        assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
        assert.deepStrictEqual(
          (yield* kit.of("AgentError")).map(({ message }) => message),
          ["The conversation was not summarised and is unchanged. The model said nothing for 5m."]
        )
      })
    )
  }

  it.scoped("that fails is not tried again in the same turn, until the history has grown", () =>
    Effect.gen(function* () {
      const work = (name: string) => ({ tools: [{ name: "work", params: { name } }] })
      const { asked, model } = conversing([says(500), says(400), work("a"), work("grow"), { text: "done" }], {
        summaries: [{ text: "" }, { text: "" }]
      })
      const kit = yield* start(model, config({ type: "summarize", autoTrigger: false }), (name) =>
        Effect.succeed(name === "grow" ? long(100) : name)
      )
      yield* turns(kit, "1", "2", "3")
      assert.strictEqual(asked.length, 2, "before the first and the third of three model calls")
      assert.strictEqual((yield* kit.of("AgentError")).length, 2)
    })
  )

  it.scoped("that fails is tried again in the next turn, however little that adds", () =>
    Effect.gen(function* () {
      const { asked, model } = conversing([says(300, "a"), says(300, "b"), says(300, "c"), says(10, "d")], {
        window: 10_000,
        summaries: [{ text: "" }, { text: "the first turns" }]
      })
      const kit = yield* start(model, config({ type: "summarize", maxTurns: 3, autoTrigger: false }))
      yield* turns(kit, "1", "2", "3")
      assert.deepStrictEqual(yield* compactions(kit), ["turn_limit…", "turn_limit -0"])
      yield* turns(kit, "4")
      assert.strictEqual(asked.length, 2)
      assert.deepStrictEqual((yield* compactions(kit)).slice(2), ["turn_limit…", "turn_limit -6"])
    })
  )

  it.scoped("is stopped by an interjection, which is read, and made again of what there is then", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { asked, heard, model } = conversing([says(500, "a"), says(290, "b"), { text: "yes" }], {
        summaries: [Kit.halting([Kit.text("ne")], begun), { text: "made again" }]
      })
      const kit = yield* start(model, config({ type: "summarize", autoTrigger: false }))
      yield* turns(kit, "1", "2")
      const running = yield* Effect.fork(kit.agent.run("3"))
      yield* Deferred.await(begun)
      const { id } = yield* kit.agent.send("and 4")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      assert.strictEqual(asked.length, 2)
      assert.deepStrictEqual(brief(heard[2]?.messages ?? []), ["summary made again", "user 3", "user and 4"])
      assert.deepStrictEqual(yield* compactions(kit), ["pre_message…", "pre_message -4"])
      assert.deepStrictEqual(
        (yield* kit.of("InterjectionAcknowledged")).map(({ messageId }) => messageId),
        [id]
      )
      assert.strictEqual((yield* kit.of("TurnStarted")).length, 3, "the same turn")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("gives way to truncating for somebody who keeps talking", () =>
    Effect.gen(function* () {
      const begun = yield* Effect.forEach([1, 2, 3], () => Deferred.make<void>())
      const { asked, heard, model } = conversing([says(500, "a"), says(290, "b"), { text: "yes" }], {
        summaries: begun.map((latch) => Kit.halting([], latch))
      })
      const kit = yield* start(model, config({ type: "summarize", autoTrigger: false }))
      yield* turns(kit, "1", "2")
      const running = yield* Effect.fork(kit.agent.run("3"))
      for (const latch of begun) {
        yield* Deferred.await(latch)
        yield* kit.agent.send("more")
      }
      yield* Fiber.join(running)
      assert.strictEqual(asked.length, 3)
      assert.deepStrictEqual(brief(heard[2]?.messages ?? []).slice(-4), [
        "user 3",
        "user more",
        "user more",
        "user more"
      ])
      assert.deepStrictEqual(yield* compactions(kit), ["pre_message…", "pre_message -2"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("that is cancelled leaves the history alone", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { model } = conversing([says(500), says(290)], { summaries: [Kit.halting([Kit.text("ne")], begun)] })
      const kit = yield* start(model, config({ type: "summarize", autoTrigger: false }))
      yield* turns(kit, "1", "2")
      const running = yield* Effect.fork(kit.agent.run("3"))
      yield* Deferred.await(begun)
      yield* kit.agent.cancel()
      assert.deepStrictEqual(yield* Fiber.join(running), { _tag: "Cancelled", reason: "user", steps: 0 } as TurnEnd)
      assert.deepStrictEqual(yield* compactions(kit), ["pre_message…", "pre_message -0"])
      assert.strictEqual(kit.agent.history.messages.length, 5)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("after a turn: cancelling keeps the turn's end, words that come go on with the turn", () =>
    Effect.gen(function* () {
      const begun = yield* Effect.forEach([1, 2], () => Deferred.make<void>())
      const { model } = conversing([says(500, "a"), says(400, "b"), { text: "more" }], {
        summaries: begun.map((latch) => Kit.halting([], latch))
      })
      const kit = yield* start(model, config({ type: "summarize", checkBeforeSend: false }))
      yield* turns(kit, "1")
      const running = yield* Effect.fork(kit.agent.run("2"))
      yield* Deferred.await(begun[0] ?? assert.fail())
      yield* kit.agent.send("and")
      yield* Deferred.await(begun[1] ?? assert.fail())
      yield* kit.agent.cancel()
      assert.deepStrictEqual(yield* Fiber.join(running), { _tag: "Completed", text: "more", steps: 2 } as TurnEnd)
      assert.strictEqual((yield* kit.of("TurnStarted")).length, 2)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("compacting because somebody asks", () => {
  it.scoped("waits for the next model call of a running turn", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<string>()
      const work = { tools: [{ name: "work", params: { name: "a" } }] }
      const { heard, model } = conversing([says(20), work, { text: "done" }])
      const kit = yield* start(model, config(), () => Deferred.await(gate))
      yield* turns(kit, "1")
      const running = yield* Effect.fork(kit.agent.run("2"))
      yield* settle
      const compacting = yield* Effect.fork(kit.agent.compact)
      yield* settle
      assert.strictEqual(kit.agent.history.messages.length, 3, "nothing goes while tools run")
      yield* Deferred.succeed(gate, "worked")
      assert.strictEqual((yield* Fiber.join(compacting)).removed, 2)
      yield* Fiber.join(running)
      assert.deepStrictEqual(Kit.outline(heard[2]?.messages ?? []), [
        "user: 2",
        'assistant: work({"name":"a"})',
        "tool: worked"
      ])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("a todo list", () => {
  const work = { tools: [{ name: "work", params: { name: "a" } }] }
  const writing = (todos: ReadonlyArray<Todo.Todo>) => () =>
    Effect.flatMap(Agenda, (agenda) => Effect.as(agenda.writeTodos(todos), "written")) as Effect.Effect<string>
  const list: ReadonlyArray<Todo.Todo> = [
    { content: "paint", status: "in_progress" },
    { content: "dry", status: "pending" }
  ]
  const reminders = (messages: ReadonlyArray<Prompt.Message>) =>
    messages.flatMap((message, at) =>
      History.metadata(message).reminder === true ? [[at, History.textOf(message)]] : []
    )

  it.scoped("stands behind the summary of what it was written in, once, as it is by then", () =>
    Effect.gen(function* () {
      const { model } = conversing([work, says(200, "a"), says(200, "b"), says(20, "c"), says(20, "d")], {
        summaries: [{ text: "first" }, { text: "second" }]
      })
      const kit = yield* start(model, config({ type: "summarize" }), writing(list))
      yield* turns(kit, "1", "2", "3")
      yield* kit.agent.compact
      assert.deepStrictEqual(reminders(kit.agent.history.messages), [[1, Todo.reminder(list)]])
      assert.deepStrictEqual(brief(kit.agent.history.messages), [
        "summary first",
        "summary [>] paint",
        "user 3",
        "assistant ccccc"
      ])
      yield* turns(kit, "4")
      yield* kit.agent.compact
      assert.deepStrictEqual(
        reminders(kit.agent.history.messages).map(([, text]) => text),
        [Todo.reminder(list)]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("stands first where turns were left out, and nowhere when there is none any more", () =>
    Effect.gen(function* () {
      let todos = list
      const { model } = conversing([work, says(20, "a"), says(20, "b"), work, says(20, "c"), says(20, "d")])
      const kit = yield* start(model, config(), () => writing(todos)())
      yield* turns(kit, "1", "2")
      yield* kit.agent.compact
      assert.deepStrictEqual(reminders(kit.agent.history.messages), [[0, Todo.reminder(list)]])
      todos = []
      yield* turns(kit, "3", "4")
      yield* kit.agent.compact
      assert.deepStrictEqual(reminders(kit.agent.history.messages), [])
      assert.deepStrictEqual(
        (yield* kit.of("TodosChanged")).map(({ items }) => items.length),
        [2, 0]
      )
    })
  )

  it.scoped("is forgotten with the conversation", () =>
    Effect.gen(function* () {
      const { model } = conversing([work, says(20, "a")])
      const kit = yield* start(model, config(), writing(list))
      yield* turns(kit, "1")
      kit.agent.history.clear()
      kit.agent.history.clear()
      assert.deepStrictEqual(
        (yield* kit.of("TodosChanged")).map(({ items }) => items.length),
        [2, 0]
      )
    })
  )
})

describe("a provider that finds the history too long", () => {
  const tooLong = Stream.fail(new Model.ContextTooLong({ model: "m", message: "It is too long." }))

  it.scoped("gets a shorter one, also without a configuration", () =>
    Effect.gen(function* () {
      const { heard, model } = conversing([says(50, "a"), says(50, "b"), tooLong, { text: "thanks" }])
      const kit = yield* start(model)
      yield* turns(kit, "1", "2")
      // Five turns would stay otherwise.
      assert.deepStrictEqual(yield* kit.agent.run("3"), { _tag: "Completed", text: "thanks", steps: 2 } as TurnEnd)
      assert.deepStrictEqual(yield* compactions(kit), ["context_limit…", "context_limit -2"])
      assert.deepStrictEqual(brief(heard[3]?.messages ?? []), ["user 2", "assistant bbbbb", "user 3"])
    })
  )

  it.scoped("is asked again at most twice, the second time with the running turn alone", () =>
    Effect.gen(function* () {
      const answers = Array.from({ length: 7 }, () => says(50))
      const { heard, model } = conversing([...answers, tooLong, tooLong, { text: "at last" }])
      const kit = yield* start(model, undefined)
      yield* turns(kit, "0", "1", "2", "3", "4", "5", "6")
      assert.deepStrictEqual(yield* kit.agent.run("7"), { _tag: "Completed", text: "at last", steps: 3 } as TurnEnd)
      assert.deepStrictEqual(yield* compactions(kit), [
        "context_limit…",
        "context_limit -6",
        "context_limit…",
        "context_limit -4"
      ])
      assert.deepStrictEqual(brief(heard[9]?.messages ?? []), [
        "user 5",
        "assistant xxxxx",
        "user 6",
        "assistant xxxxx",
        "user 7"
      ])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("ends the turn when it never is content, with what it said; the next turn works", () =>
    Effect.gen(function* () {
      const { model } = conversing([says(50), says(50), tooLong, tooLong, tooLong, { text: "fine" }])
      const kit = yield* start(model, config())
      yield* turns(kit, "1", "2")
      assert.deepStrictEqual(yield* kit.agent.run("3"), {
        _tag: "Failed",
        error: "It is too long.",
        steps: 3
      } as TurnEnd)
      assert.strictEqual((yield* kit.agent.run("4"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("is asked no fourth time, and nothing is cut for it", () =>
    Effect.gen(function* () {
      const work = { tools: [{ name: "work", params: { name: "a" } }] }
      const { heard, model } = conversing([work, tooLong, tooLong, tooLong, { text: "never said" }], {
        window: 100_000
      })
      const kit = yield* start(model, undefined, () => Effect.succeed("x".repeat(150_000)))
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Failed")
      const sizes = heard.slice(1).map(({ messages }) => String(Kit.resultsOf(messages)[0]).length)
      assert.strictEqual(sizes.length, 3)
      const cut = ["context_limit…", "context_limit -1"]
      assert.deepStrictEqual(yield* compactions(kit), [...cut, ...cut])
      assert.deepStrictEqual(
        sizes.map((size, at) => size < (sizes[at - 1] ?? Infinity)),
        [true, true, true]
      )
    })
  )

  it.scoped("gets tool results cut, the longest first, those of the running turn too", () =>
    Effect.gen(function* () {
      const work = (name: string) => ({ name: "work", params: { name } })
      const { heard, model } = conversing([{ tools: [work("long"), work("short")] }, tooLong, { text: "thanks" }], {
        window: 100_000
      })
      const kit = yield* start(model, undefined, (name) =>
        Effect.succeed(name === "long" ? `A${"😀".repeat(20_000)}Z` : "b")
      )
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      const [cut, kept] = Kit.resultsOf(heard[2]?.messages ?? [])
      assert.strictEqual(kept, "b")
      assert.match(String(cut), /^A(😀)+\n\[… 36002 characters were removed to make room …\]\n(😀)+Z$/u)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("loses turns where they could not be summarised", () =>
    Effect.gen(function* () {
      const { model } = conversing([says(200), says(200), tooLong, { text: "thanks" }], { summaries: [tooLong] })
      const kit = yield* start(model, config({ type: "summarize", autoTrigger: false }))
      yield* turns(kit, "1", "2")
      assert.strictEqual((yield* kit.agent.run("3"))._tag, "Completed")
      assert.deepStrictEqual(yield* compactions(kit), ["context_limit…", "context_limit -2"])
      assert.strictEqual((yield* kit.of("AgentError")).length, 1)
      assert.deepStrictEqual(brief(kit.agent.history.messages).slice(-3), [
        "assistant xxxxx",
        "user 3",
        "assistant thank"
      ])
    })
  )

  it.scoped("is heard during the summary it made necessary", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { heard, model } = conversing([says(200), says(200), tooLong, { text: "thanks" }], {
        summaries: [Kit.halting([], begun), { text: "short" }]
      })
      const kit = yield* start(model, config({ type: "summarize", autoTrigger: false }))
      yield* turns(kit, "1", "2")
      const running = yield* Effect.fork(kit.agent.run("3"))
      yield* Deferred.await(begun)
      yield* kit.agent.send("4")
      yield* Fiber.join(running)
      assert.deepStrictEqual(brief(heard[3]?.messages ?? []), ["summary short", "user 3", "user 4"])
      assert.strictEqual(Option.getOrUndefined(yield* kit.agent.awaitIdle)?._tag, "Completed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})
