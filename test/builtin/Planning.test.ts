/** The list that a model keeps: what is refused, who sees it, and what it outlives. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Planning from "../../src/builtin/Planning.js"
import * as CompactionConfig from "../../src/conversation/CompactionConfig.js"
import * as History from "../../src/conversation/History.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as Replay from "../../src/journal/Replay.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import type * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestAgent from "../../src/testing/TestAgent.js"

type Item = Planning.Todo

const item = (content: string, status: Item["status"] = "pending"): Item => ({ content, status })

const writes = (...items: ReadonlyArray<unknown>): ScriptedModel.Step => ({
  tools: [{ name: "todo_write", params: { items } }]
})

const runtime = (script: ReadonlyArray<ScriptedModel.Step>, options: object = {}) =>
  TestAgent.layer({ toolkit: Planning.toolkit, script, person: () => "n", ...options }).pipe(
    Layer.provide(Planning.layer)
  )

const store = Effect.map(SessionStore.makeMemory, (open) => open({ pid: 1, host: "here", isAlive: () => true }))

const told = (events: ReadonlyArray<AgentEvent>) =>
  events.flatMap((event) => (event._tag === "TodosChanged" ? [event.items] : []))

const results = (agent: Agent.Agent) =>
  agent.history.messages.flatMap((message) =>
    message.role === "tool" ? message.content.map(({ result }) => String(result)) : []
  )

describe("todo_write", () => {
  it.scoped("asks nobody, tells the whole list, and keeps it for each agent", () =>
    Effect.gen(function* () {
      const { agent, events, person } = yield* TestAgent.start()
      assert.deepStrictEqual(yield* agent.todos(), [])
      yield* agent.run("go")
      assert.deepStrictEqual(yield* person.shown, [])
      const list = [item("look", "completed"), item("do", "in_progress"), item("check", "in_progress")]
      assert.deepStrictEqual(told(yield* events), [[item("look", "in_progress")], list])
      assert.deepStrictEqual(yield* agent.todos(), list)
      assert.deepStrictEqual(yield* agent.todos("main"), list)
      assert.strictEqual((yield* Effect.flip(agent.todos("nobody")))._tag, "AgentUnknown")
      assert.deepStrictEqual(results(agent), [
        "1 on the list: 0 done, 1 in progress.",
        "3 on the list: 1 done, 2 in progress."
      ])
    }).pipe(
      Effect.provide(
        runtime([
          writes(item(" look ", "in_progress")),
          writes(item("look", "completed"), item("do", "in_progress"), item("check", "in_progress")),
          { text: "done" }
        ])
      )
    )
  )

  const refused: ReadonlyArray<readonly [what: string, items: ReadonlyArray<unknown>, said: string]> = [
    [
      "too many entries",
      Array.from({ length: 51 }, (_, i) => item(`${i}`)),
      "The list has 51 entries; the limit is 50."
    ],
    ["a long entry", [item("a"), item("b".repeat(501))], "Entry 2 has 501 characters; the limit is 500."],
    ["an entry without words", [item(" \n")], "Entry 1 says nothing."],
    ["a status of another kind", [{ content: "a", status: "done" }], "Invalid arguments for todo_write"],
    ["no list", [3], "Invalid arguments for todo_write: items.0: Expected an object, actual 3"]
  ]
  for (const [what, items, said] of refused) {
    it.scoped(`refuses ${what} in words, and keeps the list of before`, () =>
      Effect.gen(function* () {
        const { agent, events } = yield* TestAgent.start()
        yield* agent.run("go")
        assert.include(results(agent)[1], said)
        assert.deepStrictEqual(yield* agent.todos(), [item("first")])
        assert.lengthOf(told(yield* events), 1)
      }).pipe(Effect.provide(runtime([writes(item("first")), writes(...items), { text: "done" }])))
    )
  }

  it.scoped("masks secrets", () =>
    Effect.gen(function* () {
      const { agent, events } = yield* TestAgent.start()
      yield* agent.run("go")
      assert.notInclude(JSON.stringify([yield* agent.todos(), told(yield* events)]), "hunter2")
    }).pipe(
      Effect.provide(
        runtime([writes(item("log in with hunter2-hunter2")), { text: "done" }], {
          secrets: [Redacted.make("hunter2-hunter2")]
        })
      )
    )
  )
})

describe("the list of a kept session", () => {
  const steps = [writes(item("one")), { text: "1" }, writes(item("two", "completed")), { text: "2" }, { text: "3" }]

  it.scoped("is there when it is resumed, in its replay, and in forks as it was at that time", () =>
    Effect.gen(function* () {
      const kept = yield* store
      const id = yield* Effect.scoped(
        Effect.gen(function* () {
          const { agent } = yield* TestAgent.start({ persistence: yield* Persistence.begin(kept) })
          yield* agent.run("first")
          yield* agent.run("second")
          return agent.id
        })
      )
      const replayed = Replay.events((yield* kept.load(id)).entries)
      assert.deepStrictEqual(told(replayed), [[item("one")], [item("two", "completed")]])
      const fork = yield* TestAgent.start({ persistence: yield* Persistence.fork(kept, id, { at: 1 }) })
      assert.deepStrictEqual(yield* fork.agent.todos(), [item("one")])
      const before = yield* TestAgent.start({ persistence: yield* Persistence.fork(kept, id, { at: 0 }) })
      assert.deepStrictEqual(yield* before.agent.todos(), [])
      const { agent, events } = yield* TestAgent.start({ persistence: yield* Persistence.resume(kept, id) })
      assert.deepStrictEqual(yield* agent.todos(), [item("two", "completed")])
      agent.history.clear()
      assert.deepStrictEqual(yield* agent.todos(), [])
      // Told again for whoever shows it, before it was cleared.
      assert.deepStrictEqual(told(yield* events), [[item("two", "completed")], []])
    }).pipe(Effect.provide(runtime(steps)))
  )

  it.scoped("is in a fork of an agent in memory as it was at that time", () =>
    Effect.gen(function* () {
      const { agent } = yield* TestAgent.start()
      yield* agent.run("first")
      yield* agent.run("second")
      const todosAt = (at: number | undefined) =>
        Effect.gen(function* () {
          const { agent: other } = yield* TestAgent.start({ persistence: yield* Persistence.forkAgent(agent, { at }) })
          return yield* other.todos()
        })
      assert.deepStrictEqual(yield* todosAt(1), [item("one")])
      assert.deepStrictEqual(yield* todosAt(undefined), [item("two", "completed")])
    }).pipe(Effect.provide(runtime(steps)))
  )

  it.scoped("is known to the model when the turns that wrote it are gone, once, also in another process", () =>
    Effect.gen(function* () {
      const kept = yield* store
      const reminders = (agent: Agent.Agent) =>
        agent.history.messages.map(History.textOf).filter((text) => text.includes("list of what is to be done"))
      const id = yield* Effect.scoped(
        Effect.gen(function* () {
          const { agent } = yield* TestAgent.start({ persistence: yield* Persistence.begin(kept) })
          yield* agent.run("first")
          yield* agent.run("second")
          yield* agent.run("third")
          assert.isAbove((yield* agent.compact).removed, 0)
          assert.deepStrictEqual(
            reminders(agent).map((text) => text.split("\n").slice(1)),
            [["[x] two"]]
          )
          yield* agent.run("fourth")
          yield* agent.compact
          assert.lengthOf(reminders(agent), 1)
          return agent.id
        })
      )
      const { agent } = yield* TestAgent.start({ persistence: yield* Persistence.resume(kept, id) })
      assert.lengthOf(reminders(agent), 1)
      assert.deepStrictEqual(yield* agent.todos(), [item("two", "completed")])
    }).pipe(
      Effect.provide(
        runtime([...steps, { text: "4" }], {
          compaction: { ...CompactionConfig.defaults, type: "truncate", preserveRecentTurns: 1 }
        })
      )
    )
  )
})
