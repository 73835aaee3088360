/** A session goes another way: forks of kept and of living agents, and what they may do. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import * as History from "../../src/conversation/History.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import { violations } from "../kit/historyRules.js"

const Work = Tool.make("work", { parameters: { name: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Work)
const work = { tools: [{ name: "work", params: { name: "x" } }], usage: { input: 10, output: 5 } }
const script = [work, { text: "one" }, work, { text: "two" }, work, { text: "three" }, work, { text: "four" }]

const runtime = (handler: Effect.Effect<string> = Effect.succeed("worked")) =>
  TestAgent.layer({ toolkit, script, person: () => "a" }).pipe(Layer.provide(toolkit.toLayer({ work: () => handler })))

const store = Effect.map(SessionStore.makeMemory, (open) => open({ pid: 1, host: "here", isAlive: () => true }))

const textOf = (from: SessionStore.Service, id: Agent.Agent["id"]) =>
  Effect.map(from.load(id), (loaded) => JSON.stringify(Either.getOrThrow(SessionStore.toJson(loaded))))

const said = (agent: Agent.Agent) =>
  agent.history.messages.flatMap((message) => History.textOf(message) || (message.role === "tool" ? "…" : []))

describe("a fork of a kept session", () => {
  it.scoped("goes another way, is asked anew, knows no words of before, and leaves its parent byte for byte", () =>
    Effect.gen(function* () {
      const kept = yield* store
      const { agent, person } = yield* TestAgent.start({ persistence: yield* Persistence.begin(kept) })
      yield* agent.run("first")
      yield* agent.send("second", { id: "mine" })
      yield* agent.awaitIdle
      yield* agent.run("third")
      assert.lengthOf(yield* person.shown, 1)
      const before = yield* textOf(kept, agent.id)

      const forked = yield* TestAgent.start({ persistence: yield* Persistence.fork(kept, agent.id, { at: 1 }) })
      assert.deepStrictEqual(said(forked.agent), ["first", "…", "one"])
      yield* forked.agent.send("otherwise", { id: "mine" })
      yield* forked.agent.awaitIdle
      assert.lengthOf(yield* forked.person.shown, 2)
      assert.deepStrictEqual(said(forked.agent), ["first", "…", "one", "otherwise", "…", "two"])
      assert.deepStrictEqual(violations(forked.agent.history.messages), [])
      assert.strictEqual(forked.agent.ledger.totals().inputTokens, 20)
      assert.strictEqual(yield* textOf(kept, agent.id), before)
      assert.strictEqual((yield* agent.run("fourth"))._tag, "Completed")
    }).pipe(Effect.provide(runtime()))
  )

  it.scoped("is held by whoever made it, and resumed by another later", () =>
    Effect.gen(function* () {
      const kept = yield* store
      const id = yield* Effect.scoped(
        Effect.gen(function* () {
          const { agent } = yield* TestAgent.start({ persistence: yield* Persistence.begin(kept) })
          yield* agent.run("first")
          return agent.id
        })
      )
      const fork = yield* Effect.scoped(
        Effect.gen(function* () {
          const { rootSessionId } = yield* Persistence.fork(kept, id)
          assert.strictEqual((yield* Effect.flip(Persistence.resume(kept, rootSessionId)))._tag, "SessionLocked")
          return rootSessionId
        })
      )
      const { agent } = yield* TestAgent.start({ persistence: yield* Persistence.resume(kept, fork) })
      yield* agent.run("second")
      assert.deepStrictEqual(said(agent), ["first", "…", "one", "second", "…", "two"])
    }).pipe(Effect.provide(runtime()))
  )

  it.scoped("is made nowhere but in the workspace of its parent", () =>
    Effect.gen(function* () {
      const kept = yield* store
      const { agent } = yield* TestAgent.start({
        persistence: yield* Persistence.begin(kept, { workspace: "/home/ada/shop" })
      })
      yield* agent.run("first")
      const elsewhere = yield* Effect.flip(Persistence.fork(kept, agent.id, { workspace: "/home/ada/other" }))
      assert.strictEqual(elsewhere._tag, "SessionElsewhere")
      assert.lengthOf(yield* kept.list, 1)
    }).pipe(Effect.provide(runtime()))
  )
})

describe("a fork, kept or in memory", () => {
  for (const where of ["kept", "in memory"]) {
    it.scoped(`has what was denied and nothing that was allowed: ${where}`, () =>
      Effect.gen(function* () {
        const kept = yield* store
        const persistence = where === "kept" ? yield* Persistence.begin(kept) : undefined
        const { agent } = yield* TestAgent.start({ ...(persistence && { persistence }) })
        yield* agent.run("first")
        const { permissions } = agent
        yield* permissions.allow("touch *")
        yield* permissions.deny("rm *")
        yield* permissions.setMode("deny")
        yield* permissions.setMode("plan")
        yield* permissions.suspend("all")
        const forked = yield* TestAgent.start({
          persistence: yield* persistence === undefined
            ? Persistence.forkAgent(agent, { at: 0 })
            : Persistence.fork(kept, agent.id, { at: 0 })
        })
        const own = forked.agent.permissions
        assert.deepStrictEqual(yield* own.status, { mode: "plan", suspension: undefined, allow: [], deny: ["rm *"] })
        // What it was before plan mode is not lost either.
        const again = yield* TestAgent.start({ persistence: yield* Persistence.forkAgent(forked.agent) })
        assert.deepInclude(yield* again.agent.permissions.snapshot, { default: "deny", plan: true, deny: ["rm *"] })
      }).pipe(Effect.provide(runtime()))
    )
  }
})

describe("a fork of an agent in memory", () => {
  it.scoped("begins at the end of a turn, and both go on", () =>
    Effect.gen(function* () {
      const { memory, trail } = yield* AuditTrail.makeMemory()
      const { agent } = yield* TestAgent.start({})
      yield* agent.run("first")
      yield* agent.run("second")
      const persistence = yield* Effect.provideService(
        Persistence.forkAgent(agent, { at: 1, by: "ada" }),
        AuditTrail.AuditTrail,
        trail
      )
      const fork = yield* TestAgent.start({ persistence })
      assert.notStrictEqual(fork.agent.id, agent.id)
      assert.deepStrictEqual(said(fork.agent), ["first", "…", "one"])
      assert.deepInclude((yield* memory.decisions)[0], {
        kind: "fork",
        sessionId: fork.agent.id,
        by: "ada",
        reason: `from ${agent.id}, at the end of turn 1`
      })
      yield* fork.agent.run("otherwise")
      // What was allowed in the one is asked again in the other.
      assert.lengthOf(yield* fork.person.shown, 2)
      assert.deepStrictEqual(said(fork.agent), ["first", "…", "one", "otherwise", "…", "two"])
      assert.deepStrictEqual(said(agent), ["first", "…", "one", "second", "…", "two"])
      const again = yield* TestAgent.start({ persistence: yield* Persistence.forkAgent(fork.agent, { at: 2 }) })
      assert.deepStrictEqual(said(again.agent), said(fork.agent))
      assert.deepStrictEqual(
        said((yield* TestAgent.start({ persistence: yield* Persistence.forkAgent(agent, { at: 0 }) })).agent),
        []
      )
    }).pipe(Effect.provide(runtime()))
  )

  it.scoped("leaves a turn out that has not ended", () =>
    Effect.gen(function* () {
      const atWork = yield* Deferred.make<void>()
      const calls = { count: 0 }
      const handler = Effect.suspend(() =>
        ++calls.count === 1
          ? Effect.succeed("worked")
          : Effect.zipRight(Deferred.succeed(atWork, undefined), Effect.never)
      )
      yield* Effect.gen(function* () {
        const { agent } = yield* TestAgent.start({})
        yield* agent.run("first")
        yield* agent.send("second")
        yield* Deferred.await(atWork)
        for (const at of [undefined, 1, 2]) {
          const fork = yield* TestAgent.start({ persistence: yield* Persistence.forkAgent(agent, { at }) })
          assert.deepStrictEqual(said(fork.agent), ["first", "…", "one"])
        }
      }).pipe(Effect.provide(runtime(handler)))
    })
  )

  it.scoped("refuses in words a turn that there is not, and one that the history lost", () =>
    Effect.gen(function* () {
      const { agent } = yield* TestAgent.start({})
      yield* agent.run("first")
      yield* agent.run("second")
      const late = yield* Effect.flip(Persistence.forkAgent(agent, { at: 3 }))
      assert.strictEqual(
        late.message,
        `Session ${agent.id} has no turn 3: 2 turns of it have ended; 0 is its beginning.`
      )
      agent.history.clear()
      yield* agent.run("third")
      const lost = yield* Effect.flip(Persistence.forkAgent(agent, { at: 1 }))
      assert.match(lost.message, /has no turn 1: .* begins at the end of turn 2; 3 turns of it have ended/)
      const fork = yield* TestAgent.start({ persistence: yield* Persistence.forkAgent(agent, { at: 2 }) })
      assert.deepStrictEqual(said(fork.agent), [])
    }).pipe(Effect.provide(runtime()))
  )
})
