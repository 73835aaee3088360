/** A run with an id: once, whoever says it again, in this process or in the next. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"

const working: ReadonlyArray<Kit.Step> = [{ tools: [{ name: "work", params: { name: "a" } }] }, { text: "one" }]
const slowly = (done: Array<string>) => (name: string) => Effect.as(Effect.sleep("1 second"), (done.push(name), name))

/** Waits for what is loaded late, in real time. */
const loaded = Effect.promise(() => import("../../src/runtime/RepeatedRun.js"))

describe("a run with an id", () => {
  for (const isKept of [false, true])
    it.scoped(`is run once ${isKept ? "in a store" : "in memory"}: the same words wait for its end, or get it`, () =>
      Effect.gen(function* () {
        yield* loaded
        const done: Array<string> = []
        const store = (yield* SessionStore.makeMemory)({ pid: 1, host: "here", isAlive: () => true })
        const kit = yield* Kit.start({
          model: [...working, { text: "two" }],
          worker: slowly(done),
          agent: isKept ? { persistence: yield* Persistence.begin(store) } : {}
        })
        const run = (words: string, id: string) => kit.agent.run(words, { id })
        const first = yield* Effect.fork(run("go", "a"))
        const second = yield* Effect.fork(run("go", "a"))
        yield* settle
        // One of them leaves, and the run goes on.
        const third = yield* Effect.fork(run("go", "a"))
        yield* settle
        yield* Fiber.interrupt(third)
        yield* TestClock.adjust("1 second")
        const ends = [yield* first, yield* second, yield* run("go", "a")]
        assert.deepStrictEqual(
          ends,
          ends.map(() => ({ _tag: "Completed", text: "one", steps: 2 }) as const)
        )
        const differs = yield* Effect.flip(run("go away", "a"))
        assert.strictEqual(differs._tag, "MessageDiffers")
        assert.include(differs.message, "another id")
        const sent = yield* Effect.flip(kit.agent.send("go", { id: "a" }))
        assert.strictEqual(sent._tag, "MessageAlreadyTaken")
        const other = yield* run("go", "b")
        assert(other._tag === "Completed" && other.text === "two")
        yield* kit.agent.send("words", { id: "c" })
        assert.strictEqual((yield* Effect.flip(run("words", "c")))._tag, "MessageAlreadyTaken")
        assert.deepStrictEqual(done, ["a"])
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )

  it.scoped("that its only caller withdrew in memory was not run, and is run when it is said again", () =>
    Effect.gen(function* () {
      yield* loaded
      const kit = yield* Kit.start({ model: [...working, { text: "two" }], worker: slowly([]) })
      yield* Effect.fork(kit.agent.run("first"))
      const waiting = yield* Effect.fork(kit.agent.run("go", { id: "a" }))
      yield* settle
      yield* Fiber.interrupt(waiting)
      const again = yield* Effect.fork(kit.agent.run("go", { id: "a" }))
      yield* settle
      yield* TestClock.adjust("1 second")
      const end = yield* again
      assert(end._tag === "Completed" && end.text === "two")
    })
  )

  for (const when of ["before it begins", "while a tool asks", "after its end", "queued by another"] as const)
    it.scoped(`is the same run in the process after a kill ${when}`, () =>
      Effect.gen(function* () {
        yield* loaded
        const done: Array<string> = []
        const Answer = Schema.Struct({ sum: Schema.Number })
        const open = yield* SessionStore.makeMemory
        const store = (pid: number) => open({ pid, host: "here", isAlive: () => false })
        const model: ReadonlyArray<Kit.Step> = [
          { tools: [{ name: "work", params: { name: "a" } }] },
          { text: '{"sum":3}' },
          { text: '{"sum":3}' }
        ]
        const scope = yield* Scope.make()
        const start = (persistence: Persistence.Persistence, isHeld: boolean) =>
          Kit.start({
            model,
            worker: (name) => Effect.sync(() => (done.push(name), name)),
            person: () => (isHeld && when === "while a tool asks" ? { react: () => Effect.never } : "y"),
            runtime: { policy: Policy.make({}) },
            agent: { persistence }
          })
        const options = { id: "a", output: Answer }
        const persistence = yield* Scope.extend(Persistence.begin(store(1)), scope)
        const kit = yield* Scope.extend(start(persistence, true), scope)
        if (when === "queued by another") yield* kit.agent.enqueue("go", { id: "a" })
        else yield* Effect.fork(kit.agent.run("go", options))
        if (when !== "before it begins") yield* settle
        else yield* Effect.retry(store(1).load(persistence.rootSessionId), { schedule: Schedule.forever })
        yield* persistence.journal.freeze
        const next = yield* start(yield* Persistence.resume(store(2), persistence.rootSessionId), false)
        const end = yield* next.agent.run("go", options)
        assert.strictEqual(end._tag, "Completed", JSON.stringify(end))
        assert(end._tag === "Completed")
        assert.deepStrictEqual(end.value, { sum: 3 })
        assert.deepStrictEqual(yield* next.agent.run("go", options), end)
        assert.strictEqual((yield* Effect.flip(next.agent.run("other", options)))._tag, "MessageDiffers")
        assert.deepStrictEqual(done, ["a"])
        const entries = (yield* store(3).load(persistence.rootSessionId)).entries
        assert.lengthOf(
          entries.filter(({ entry }) => entry._tag === "MessageReceived" && entry.message.text === "go"),
          1
        )
        yield* Scope.close(scope, Exit.void)
      })
    )
})
