/** A run belongs to its caller: its turn, its end, and what becomes of both when the caller or the agent goes away. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as History from "../../src/conversation/History.js"
import { StoreUnwritable } from "../../src/journal/StoreError.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import type { TurnEnd } from "../../src/turn/Turn.js"
import * as Family from "../kit/Family.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"

const said = (end: TurnEnd): string => (end._tag === "Completed" ? end.text : JSON.stringify(end))
const shutDown: TurnEnd = { _tag: "Cancelled", reason: "shutdown", steps: 0 }

/** A tool call that ends when the test says so. */
const holding = (answers: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const begun = yield* Deferred.make<void>()
    const go = yield* Deferred.make<void>()
    const ends = { interrupted: 0 }
    const kit = yield* Kit.start({
      model: [{ tools: [{ name: "work", params: { name: "a" } }] }, ...answers.map((text) => ({ text }))],
      worker: (name) =>
        Effect.zipRight(Deferred.succeed(begun, undefined), Effect.as(Deferred.await(go), name)).pipe(
          Effect.onInterrupt(() => Effect.sync(() => ends.interrupted++))
        )
    })
    const first = yield* Effect.fork(kit.agent.run("first"))
    yield* Deferred.await(begun)
    return { ...kit, first, ends, go: Deferred.succeed(go, undefined) }
  })

describe("a run", () => {
  it.scoped("has a turn and an end of its own, beside another", () =>
    Effect.gen(function* () {
      const kit = yield* holding(["for the first", "for the second", "for the third"])
      const second = yield* Effect.fork(kit.agent.run("second"))
      const third = yield* Effect.fork(kit.agent.turn("third"))
      yield* settle
      assert.strictEqual((yield* kit.of("TurnStarted")).length, 1)
      yield* kit.go
      const ends = yield* Effect.forEach([kit.first, second, third], Fiber.join)
      assert.deepStrictEqual(ends.map(said), ["for the first", "for the second", "for the third"])
      assert.deepStrictEqual(
        (yield* kit.of("TurnStarted")).map(({ input }) => input),
        ["first", "second", "third"]
      )
      assert.deepStrictEqual(yield* kit.of("UserInterjected"), [])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("hears what is sent while it works, and another run does not", () =>
    Effect.gen(function* () {
      const kit = yield* holding(["first, with a word", "second"])
      const second = yield* Effect.fork(kit.agent.run("second"))
      yield* settle
      yield* kit.agent.send("a word")
      yield* kit.go
      assert.strictEqual(said(yield* Fiber.join(kit.first)), "first, with a word")
      assert.strictEqual(said(yield* Fiber.join(second)), "second")
      const users = kit.agent.history.messages.filter(({ role }) => role === "user").map(History.textOf)
      assert.deepStrictEqual(users, ["first", "a word", "second"])
    })
  )

  it.scoped("is withdrawn with its caller while it waits, and those beside it go on", () =>
    Effect.gen(function* () {
      const kit = yield* holding(["for the first", "for the third"])
      const second = yield* Effect.fork(kit.agent.run("second"))
      const third = yield* Effect.fork(kit.agent.run("third"))
      yield* settle
      yield* Fiber.interrupt(second)
      assert.strictEqual(kit.ends.interrupted, 0)
      yield* kit.go
      assert.strictEqual(said(yield* Fiber.join(kit.first)), "for the first")
      assert.strictEqual(said(yield* Fiber.join(third)), "for the third")
      assert.notInclude(kit.agent.history.messages.map(History.textOf), "second")
    })
  )

  it.scoped("is cancelled with its caller while it works, and the next one works", () =>
    Effect.gen(function* () {
      const kit = yield* holding(["for the second"])
      const second = yield* Effect.fork(kit.agent.run("second"))
      yield* settle
      yield* Fiber.interrupt(kit.first)
      assert.strictEqual(kit.ends.interrupted, 1, "its tool has ended by then")
      assert.strictEqual(said(yield* Fiber.join(second)), "for the second")
      assert.deepStrictEqual(
        (yield* kit.of("TurnEnded")).map(({ reason }) => reason),
        ["cancelled", "completed"]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("can be given a time, as any effect", () =>
    Effect.gen(function* () {
      const kit = yield* holding(["late"])
      const second = yield* Effect.fork(Effect.timeoutOption(kit.agent.run("second"), "1 minute"))
      yield* settle
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* Fiber.join(second), Option.none())
      yield* kit.go
      yield* kit.agent.awaitIdle
      assert.strictEqual((yield* kit.of("TurnStarted")).length, 1)
    })
  )

  it.scoped("is not cancelled by a cancel of the one before it", () =>
    Effect.gen(function* () {
      const kit = yield* holding(["for the second"])
      const second = yield* Effect.fork(kit.agent.run("second"))
      yield* settle
      yield* kit.agent.cancel()
      assert.strictEqual((yield* Fiber.join(kit.first))._tag, "Cancelled")
      assert.strictEqual(said(yield* Fiber.join(second)), "for the second")
    })
  )

  it.scoped("is not cancelled by a cancel of words that were taken back before it was asked for", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: [{ tools: [{ name: "work", params: { name: "a" } }] }, { text: "done" }],
        worker: (name) => Effect.zipRight(Deferred.succeed(begun, undefined), Effect.as(Deferred.await(go), name))
      })
      // Each runs up to where it waits, before the agent's own fiber does.
      const now = Runtime.runFork(yield* Effect.runtime())
      now(kit.agent.send("never mind"))
      const idle = now(kit.agent.awaitIdle)
      const cancel = now(kit.agent.cancel())
      now(kit.agent.takeBack())
      const run = now(kit.agent.run("work"))
      const later = now(kit.agent.enqueue("later"))
      assert.deepStrictEqual(yield* Fiber.join(cancel), Option.none(), "there is no turn to be cancelled")
      yield* Deferred.await(begun)
      assert.isNull(idle.unsafePoll(), "somebody still works")
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual(said(yield* Fiber.join(run)), "done")
      yield* Fiber.join(later)
      yield* Fiber.join(idle)
      assert.deepStrictEqual(
        (yield* kit.of("TurnEnded")).map(({ reason }) => reason),
        ["completed", "completed"]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("ends with the agent, working or not", () =>
    Effect.gen(function* () {
      const kit = yield* holding([])
      const others = yield* Effect.forEach(["second", "third"], (text) => Effect.fork(kit.agent.run(text)))
      yield* settle
      yield* kit.agent.shutdown
      assert.deepStrictEqual(yield* Fiber.join(kit.first), { ...shutDown, steps: 1 })
      assert.deepStrictEqual(yield* Effect.forEach(others, Fiber.join), [shutDown, shutDown])
      assert.strictEqual((yield* Effect.flip(kit.agent.run("late")))._tag, "AgentStopped")
    })
  )

  it.scoped("ends with the agent, also when something in it does not stop", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: [{ tools: [{ name: "work", params: { name: "a" } }] }],
        worker: () => Effect.uninterruptible(Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never)),
        agent: { shutdownWithin: "1 second", limits: { stopWithin: "1 hour" } }
      })
      const first = yield* Effect.fork(kit.agent.run("first"))
      yield* Deferred.await(begun)
      const second = yield* Effect.fork(kit.agent.run("second"))
      const cancel = yield* Effect.fork(kit.agent.cancel())
      const idle = yield* Effect.fork(kit.agent.awaitIdle)
      yield* settle
      const stopping = yield* Effect.fork(kit.agent.shutdown)
      yield* settle
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(yield* Effect.forEach([first, second], Fiber.join), [shutDown, shutDown])
      assert.deepStrictEqual(yield* Fiber.join(cancel), Option.some(shutDown))
      assert.deepStrictEqual(yield* Fiber.join(idle), Option.some(shutDown))
      assert.deepStrictEqual(yield* kit.agent.cancel(), Option.none())
    })
  )
})

/** A store, and what was said to an agent that goes on with a session of it. */
const kept = Effect.gen(function* () {
  const open = yield* SessionStore.makeMemory
  const store = (pid: number) => open({ pid, host: "here", isAlive: () => false })
  const script = { main: [Family.work("a"), { text: "one" }, { text: "two" }, { text: "three" }] }
  /** Begins a run that asks, and two that wait behind it. */
  const begin = Effect.gen(function* () {
    const persistence = yield* Persistence.begin(store(1))
    const { agent, person } = yield* Family.start({ script, agent: { persistence } })
    const first = yield* Effect.forkDaemon(agent.run("first"))
    yield* person.next
    const others = yield* Effect.forEach(["second", "third"], (text) => Effect.forkDaemon(agent.run(text)))
    yield* settle
    return { agent, persistence, runs: [first, ...others] }
  })
  const goOn = (persistence: Persistence.Persistence) =>
    Effect.gen(function* () {
      const again = yield* Persistence.resume(store(2), persistence.rootSessionId)
      const after = yield* Family.start({ script, person: () => "y", agent: { persistence: again } })
      yield* after.agent.awaitIdle
      return after.agent.history.messages.filter(({ role }) => role === "user").map(History.textOf)
    })
  return { begin, goOn, store, script }
})

describe("runs of an agent that is kept", () => {
  it.scoped("are there after a crash, each with a turn of its own", () =>
    Effect.gen(function* () {
      const { begin, goOn } = yield* kept
      // A dead process closes nothing.
      const { persistence, runs } = yield* Scope.extend(begin, yield* Scope.make())
      yield* persistence.journal.freeze
      assert.deepStrictEqual(yield* goOn(persistence), ["first", "second", "third"])
      yield* Fiber.interruptAll(runs)
    })
  )

  it.scoped("are gone on with after their scope was closed, and end as interrupted for their callers", () =>
    Effect.gen(function* () {
      const { begin, goOn } = yield* kept
      const scope = yield* Scope.make()
      const { persistence, runs } = yield* Scope.extend(begin, scope)
      yield* Scope.close(scope, Exit.void)
      const exits = yield* Effect.forEach(runs, Fiber.await)
      assert.deepStrictEqual(exits.map(Exit.isInterrupted), [true, true, true])
      assert.deepStrictEqual(yield* goOn(persistence), ["first", "second", "third"])
    })
  )

  it.scoped("do not begin any more when the agent was shut down: their callers were told so", () =>
    Effect.gen(function* () {
      const { begin, goOn } = yield* kept
      const scope = yield* Scope.make()
      const { agent, persistence, runs } = yield* Scope.extend(begin, scope)
      yield* agent.shutdown
      assert.deepStrictEqual(yield* Effect.forEach(runs, Fiber.join), [{ ...shutDown, steps: 1 }, shutDown, shutDown])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* goOn(persistence), ["first"])
    })
  )

  it.scoped("whose callers went away are gone on with: an interrupt may be the end of the process", () =>
    Effect.gen(function* () {
      const { begin, goOn } = yield* kept
      const scope = yield* Scope.make()
      const { persistence, runs } = yield* Scope.extend(begin, scope)
      yield* Effect.forEach(runs.slice(0, 2), Fiber.interrupt)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* goOn(persistence), ["first", "second", "third"])
    })
  )

  it.scoped("are refused when they cannot be written down, and do not begin later", () =>
    Effect.gen(function* () {
      const { script, store } = yield* kept
      let full = false
      const inner = store(1)
      const failing: SessionStore.Service = {
        ...inner,
        lock: (id) =>
          Effect.map(inner.lock(id), (lease) => ({
            ...lease,
            append: (drafts) =>
              full ? Effect.fail(new StoreUnwritable({ store: "here", reason: "it is full" })) : lease.append(drafts)
          }))
      }
      const persistence = yield* Persistence.begin(failing)
      const answer = yield* Deferred.make<string>()
      const answers = [TestInteractor.wait(Deferred.await(answer))]
      const { agent, person } = yield* Family.start({ script, person: answers, agent: { persistence } })
      const first = yield* Effect.fork(agent.run("first"))
      yield* person.next
      full = true
      assert.strictEqual((yield* Effect.flip(agent.run("second")))._tag, "StoreUnwritable")
      full = false
      yield* Deferred.succeed(answer, "y")
      assert.strictEqual(Family.textOf(yield* Fiber.join(first)), "one")
      yield* agent.awaitIdle
      const users = agent.history.messages.filter(({ role }) => role === "user").map(History.textOf)
      assert.deepStrictEqual(users, ["first"])
    })
  )
})
