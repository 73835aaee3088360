/** A note that the program leaves for the model: read with the next words, and kept until then. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as History from "../../src/conversation/History.js"
import * as SessionFork from "../../src/journal/SessionFork.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import type * as Agent from "../../src/runtime/Agent.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestAgent from "../../src/testing/TestAgent.js"

const runtime = TestAgent.layer({
  toolkit: Toolkit.empty,
  script: ["one", "two", "three", "four"].map((text) => ({ text }))
})

const tools = Toolkit.make(Tool.make("work", { success: Schema.String }))

const store = Effect.map(SessionStore.makeMemory, (open) => open({ pid: 1, host: "here", isAlive: () => true }))

const said = (agent: Agent.Agent) => agent.history.messages.flatMap((message) => History.textOf(message) || [])

describe("a note", () => {
  it.scoped("wakes nobody, and is read once, before the words that begin the next turn", () =>
    Effect.gen(function* () {
      const { agent } = yield* TestAgent.start()
      yield* agent.run("first")
      yield* agent.leaveNote("the files are back")
      yield* agent.awaitIdle
      assert.isTrue(yield* agent.isIdle)
      assert.deepStrictEqual(said(agent), ["first", "one"])
      yield* agent.run("second")
      yield* agent.send("third")
      yield* agent.awaitIdle
      assert.deepStrictEqual(said(agent), ["first", "one", "the files are back", "second", "two", "third", "three"])
    }).pipe(Effect.provide(runtime))
  )

  it.scoped("is kept with the session: whoever resumes it begins no turn, and the model is told then", () =>
    Effect.gen(function* () {
      const kept = yield* store
      const id = yield* Effect.scoped(
        Effect.gen(function* () {
          const { agent } = yield* TestAgent.start({ persistence: yield* Persistence.begin(kept) })
          yield* agent.run("first")
          yield* agent.leaveNote("the files are back")
          return agent.id
        })
      )
      const { agent } = yield* TestAgent.start({ persistence: yield* Persistence.resume(kept, id) })
      yield* agent.awaitIdle
      assert.deepStrictEqual(said(agent), ["first", "one"])
      yield* agent.run("second")
      assert.deepStrictEqual(said(agent).slice(2), ["the files are back", "second", "two"])
      const loaded = yield* kept.load(id)
      const state = SessionSnapshot.get(SessionSnapshot.fold(loaded.entries), id)
      assert.deepStrictEqual(
        state?.history,
        agent.history.messages.filter(({ role }) => role !== "system")
      )
      assert.deepStrictEqual(state?.waiting, [])
      assert.deepStrictEqual(
        SessionFork.turns(loaded).map(({ words }) => words),
        ["first", "second"]
      )
      const [listed] = yield* kept.list
      assert.deepInclude(listed, { turns: 2, title: "first" })
    }).pipe(Effect.provide(runtime))
  )

  it.scoped("outlasts going back, whether it was read by then or not: what was said is taken back, files are not", () =>
    Effect.gen(function* () {
      const kept = yield* store
      const { agent } = yield* TestAgent.start({ persistence: yield* Persistence.begin(kept) })
      yield* agent.run("first")
      yield* agent.leaveNote("read before")
      yield* agent.run("second")
      yield* agent.leaveNote("read after")
      yield* agent.run("third")
      yield* agent.leaveNote("not read")
      const fork = (at: number) =>
        Effect.gen(function* () {
          const { rootSessionId } = yield* SessionFork.fork(kept, agent.id, { at })
          const persistence = yield* Persistence.resume(kept, rootSessionId)
          const forked = yield* TestAgent.start({ persistence })
          yield* forked.agent.awaitIdle
          const before = said(forked.agent)
          yield* forked.agent.run("again")
          return [before, said(forked.agent).slice(before.length, -1)]
        }).pipe(Effect.scoped)
      assert.deepStrictEqual(yield* fork(2), [
        ["first", "one", "read before", "second", "two"],
        ["read after", "not read", "again"]
      ])
      assert.deepStrictEqual(yield* fork(0), [[], ["read before", "read after", "not read", "again"]])
    }).pipe(Effect.provide(runtime))
  )

  it.scoped("that comes while a turn works is read with its next step, and asks for none", () =>
    Effect.gen(function* () {
      const kept = yield* store
      const session: { agent?: Agent.Agent } = {}
      const note = Effect.suspend(() => session.agent?.leaveNote("the server has ended") ?? Effect.void)
      const working = TestAgent.layer({
        toolkit: tools,
        policy: PermissionFile.policy({ defaultPolicy: "allow" }),
        script: [{ tools: [{ name: "work" }] }, { text: "one" }, { text: "two" }]
      }).pipe(Layer.provide(tools.toLayer({ work: () => Effect.as(note, "worked") })))
      yield* Effect.gen(function* () {
        const { agent } = yield* TestAgent.start({ persistence: yield* Persistence.begin(kept) })
        session.agent = agent
        yield* agent.run("first")
        assert.deepStrictEqual(said(agent), ["first", "the server has ended", "one"])
        yield* agent.run("second")
        assert.deepStrictEqual(said(agent).slice(3), ["second", "two"])
        const loaded = yield* kept.load(agent.id)
        const state = SessionSnapshot.get(SessionSnapshot.fold(loaded.entries), agent.id)
        assert.deepStrictEqual(
          state?.history,
          agent.history.messages.filter(({ role }) => role !== "system")
        )
        assert.deepStrictEqual(
          SessionFork.turns(loaded).map(({ words }) => words),
          ["first", "second"]
        )
      }).pipe(Effect.provide(working))
    })
  )
})
