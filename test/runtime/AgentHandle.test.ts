/** An agent as one executor drives it, and how it is stopped: one call, one agent, all of it, in time. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Policy from "../../src/permission/Policy.js"
import * as AgentHandle from "../../src/runtime/AgentHandle.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Family from "../kit/Family.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"

const work = (name: string, id?: string) => ({ name: "work", params: { name }, ...(id === undefined ? {} : { id }) })

const handle = (options: Kit.Options & { readonly handle?: AgentHandle.Options }) =>
  Effect.gen(function* () {
    const runtime = yield* Kit.runtimeOf(options)
    const person = yield* TestInteractor.make({})
    return yield* AgentHandle.start({ ...options.agent, ...options.handle }).pipe(
      Effect.provideService(AgentRuntime.AgentRuntime, runtime),
      Effect.provideService(Interactor.Interactor, person.interactor)
    )
  })

/** All events, as somebody reads them who is never in the way. */
const readAll = (events: AgentHandle.AgentHandle["events"]) =>
  Effect.fork(Effect.repeat(events.takeAll, { while: Option.isSome }))

describe("a handle", () => {
  it.scoped("takes words from its queue at once, whatever the agent does", () =>
    Effect.gen(function* () {
      const { agent, done, events, input, shutdown } = yield* handle({
        model: Kit.replies({ tools: [work("slow")] }, { text: "one" }, { text: "later" }).model,
        worker: () => Effect.never,
        handle: { input: 2 }
      })
      yield* readAll(events)
      yield* Queue.offer(input, AgentHandle.Send({ text: "begin" }))
      yield* settle
      for (let number = 1; number <= 5; number++) {
        yield* Queue.offer(input, AgentHandle.Send({ text: `and ${number}` }))
        yield* settle
      }
      yield* Queue.offer(input, AgentHandle.Enqueue({ text: "then" }))
      yield* settle
      assert.isAtMost(yield* Queue.size(input), 0)
      const [node] = yield* agent.agents
      assert.deepStrictEqual(
        node?.session.inbox.peek().map(({ text }) => text),
        ["and 1", "and 2", "and 3", "and 4", "and 5", "then"]
      )
      yield* shutdown
      assert.strictEqual(Option.getOrUndefined(yield* done)?._tag, "Cancelled")
      assert.isTrue(yield* Queue.isShutdown(input), "nothing more is taken")
    })
  )

  it.scoped("makes the agent wait for a slow executor, never the executor for the agent", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies(
        ...Array.from({ length: 20 }, () => ({ text: "a word", tools: [work("x")] })),
        { text: "done" }
      )
      const { events, input, interrupt, shutdown } = yield* handle({ model })
      yield* Queue.offer(input, AgentHandle.Send({ text: "begin" }))
      yield* settle
      yield* settle
      const before = heard.length
      assert.isBelow(before, 5, "it waits for the reader")
      yield* Queue.offer(input, AgentHandle.Send({ text: "hello?" }))
      yield* settle
      assert.isAtMost(yield* Queue.size(input), 0)
      // Past the queue, though nobody has read anything.
      assert.strictEqual(Option.getOrUndefined(yield* interrupt())?._tag, "Cancelled")
      yield* readAll(events)
      yield* shutdown
    })
  )

  it.scoped("tells what it could not hand on, and goes on", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "hi" }] })
      const { input } = yield* AgentHandle.drive(kit.agent)
      yield* Queue.offer(input, AgentHandle.Send({ text: "hm", target: "nobody" }))
      yield* Queue.offer(input, AgentHandle.Send({ text: "hello" }))
      yield* settle
      yield* kit.agent.awaitIdle
      assert.deepStrictEqual(
        (yield* kit.of("AgentError")).map(({ message }) => message),
        ['There is no agent "nobody". There are: main.']
      )
      assert.strictEqual((yield* kit.of("TurnEnded")).length, 1)
    })
  )

  it.scoped("is given out once", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [] })
      yield* AgentHandle.drive(kit.agent)
      const error = yield* Effect.flip(AgentHandle.drive(kit.agent))
      assert.strictEqual(error._tag, "AgentAlreadyDriven")
      assert.match(error.message, /Agent main already has an executor/)
    })
  )
})

describe("shutting down", () => {
  it.scoped("ends though nobody reads, twice as well as once", () =>
    Effect.gen(function* () {
      const { done, events, input, shutdown } = yield* handle({
        model: [{ text: "a", tools: [work("x")] }, { text: "b" }]
      })
      yield* Queue.offer(input, AgentHandle.Send({ text: "begin" }))
      yield* settle
      yield* Effect.all([shutdown, shutdown], { concurrency: "unbounded" })
      yield* shutdown
      assert.strictEqual(Option.getOrUndefined(yield* done)?._tag, "Cancelled")
      const all = Option.getOrElse(yield* events.takeAll, () => [])
      assert.strictEqual(all.at(-1)?._tag, "AgentCompleted", "what was not read is still there")
      assert.deepStrictEqual(yield* events.takeAll, Option.none())
    })
  )

  it.scoped("leaves a tool behind that does not stop, and names the call", () =>
    Effect.gen(function* () {
      const stuck = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: [{ tools: [work("x", "call_stuck"), work("y", "call_fine")] }],
        worker: (name) => (name === "x" ? Effect.uninterruptible(Deferred.await(stuck)) : Effect.never)
      })
      yield* kit.agent.send("go")
      yield* settle
      const stopping = yield* Effect.fork(kit.agent.shutdown)
      yield* TestClock.adjust("4 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.poll(stopping)))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(stopping)
      assert.strictEqual(Option.getOrUndefined(yield* kit.agent.done)?._tag, "Cancelled")
      const errors = (yield* kit.of("AgentError")).map(({ message }) => message)
      assert.strictEqual(errors.length, 1)
      assert.match(errors[0] ?? "", /^work \(call_stuck\) did not stop within 5s/)
      assert.deepStrictEqual(
        (yield* kit.of("ToolCallEnded")).map(({ outcome, toolCallId }) => [toolCallId, outcome]),
        [
          ["call_fine", "interrupted"],
          ["call_stuck", "interrupted"]
        ]
      )
      // What it does from now on is nobody's.
      yield* Deferred.succeed(stuck, undefined)
      yield* settle
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("leaves a model behind that does not stop, after its own deadline", () =>
    Effect.gen(function* () {
      const stuck = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: {
          id: "test/stuck",
          stream: () => Stream.drain(Stream.fromEffect(Effect.uninterruptible(Deferred.await(stuck))))
        },
        agent: { shutdownWithin: "3 seconds" }
      })
      yield* kit.agent.send("go")
      yield* settle
      const stopping = yield* Effect.fork(kit.agent.shutdown)
      yield* TestClock.adjust("3 seconds")
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(
        (yield* kit.of("AgentError")).map(({ message }) => message),
        [
          "Agent main did not stop within 3s and was left behind. A model or an interactor does not let itself be interrupted."
        ]
      )
      assert.strictEqual(Option.getOrUndefined(yield* kit.agent.done)?._tag, "Cancelled")
      yield* Deferred.succeed(stuck, undefined)
    })
  )
})

describe("ending an agent whose interactor does not let go", () => {
  const stuckIn = (ending: (kit: Kit.Started) => Effect.Effect<void>) =>
    Effect.gen(function* () {
      const stuck = yield* Deferred.make<void>()
      const scope = yield* Scope.make()
      const kit = yield* Scope.extend(
        Kit.start({
          model: [{ tools: [work("x", "call_x")] }],
          runtime: { policy: Policy.make({ defaultPolicy: "ask" }) },
          agent: { shutdownWithin: "3 seconds" },
          interactors: [
            {
              id: "stuck",
              relay: false,
              request: () => Effect.uninterruptible(Effect.zipRight(Deferred.await(stuck), Effect.never))
            }
          ]
        }),
        scope
      )
      yield* kit.agent.send("go")
      yield* settle
      const ended = yield* Effect.fork(Effect.zipRight(ending(kit), Scope.close(scope, Exit.void)))
      yield* settle
      yield* TestClock.adjust("3 seconds")
      yield* settle
      assert.isTrue(Option.isSome(yield* Fiber.poll(ended)))
      assert.strictEqual(Option.getOrUndefined(yield* kit.agent.done)?._tag, "Cancelled")
      yield* Deferred.succeed(stuck, undefined)
    })
  it.scoped("is bounded by its own deadline", () => stuckIn(({ agent }) => agent.shutdown))
  it.scoped("is bounded by its own deadline, by its scope too", () => stuckIn(() => Effect.void))
})

describe("interrupting", () => {
  it.scoped("one call leaves the others and the turn alone", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: [work("x", "call_x"), work("y", "call_y")] }, { text: "done" }],
        worker: (name) => (name === "x" ? Effect.never : Effect.as(Effect.sleep("1 minute"), name))
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      assert.deepStrictEqual(yield* kit.agent.interrupt({ toolCallId: "call_x" }), Option.none())
      assert.deepStrictEqual(
        (yield* kit.of("ToolCallEnded")).map(({ outcome, toolCallId }) => [toolCallId, outcome]),
        [["call_x", "interrupted"]]
      )
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      assert.deepStrictEqual(kit.results(), [
        "The user cancelled this call while it ran. Whether it took effect is not known.",
        "y"
      ])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("the only call of a step, of a child too, goes on with the turn", () =>
    Effect.gen(function* () {
      const { agent, events } = yield* Family.start({
        script: {
          main: [Family.calls({ ...Family.delegate("helper"), id: "call_delegate" }), { text: "done" }],
          helper: [
            { tools: [work("h", "call_h")] },
            { expect: { contains: "The user cancelled this call while it ran." }, text: "I see" }
          ]
        },
        worker: () => Effect.never,
        runtime: { policy: Kit.allowAll }
      })
      const running = yield* Effect.fork(agent.run("go"))
      yield* settle
      yield* agent.interrupt({ toolCallId: "call_h" })
      assert.strictEqual(Family.textOf(yield* Fiber.join(running)), "done")
      assert.deepStrictEqual(
        Family.ofTag(yield* events, "TurnEnded").map(({ agent, reason }) => [agent, reason]),
        [
          ["main/helper", "completed"],
          ["main", "completed"]
        ]
      )
    })
  )

  it.scoped("a call that does not stop lets the turn go on without it", () =>
    Effect.gen(function* () {
      const stuck = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: [{ tools: [work("x", "call_x")] }, { text: "done" }],
        worker: () => Effect.uninterruptible(Deferred.await(stuck)),
        agent: { limits: { stopWithin: "2 seconds" } }
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      const stopping = yield* Effect.fork(kit.agent.interrupt({ toolCallId: "call_x" }))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(stopping)
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      assert.strictEqual((yield* kit.of("AgentError")).length, 1)
      yield* Deferred.succeed(stuck, undefined)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("a call that does not run is refused, with those that do", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ tools: [work("x", "call_x")] }], worker: () => Effect.never })
      const none = yield* Effect.flip(kit.agent.interrupt({ toolCallId: "call_1" }))
      assert.strictEqual(none.message, 'There is no running tool call "call_1". No call runs.')
      yield* kit.agent.send("go")
      yield* settle
      const other = yield* Effect.flip(kit.agent.interrupt({ toolCallId: "call_1", target: "main" }))
      assert.strictEqual(other.message, 'There is no running tool call "call_1". Running: call_x.')
    })
  )

  it.scoped("the root cancels what works under its calls, for the reason parent", () =>
    Effect.gen(function* () {
      const { agent, events } = yield* Family.start({
        script: {
          main: [Family.calls(Family.delegate("helper")), { text: "done" }],
          helper: [Family.calls(Family.delegate("nested")), { text: "ok" }],
          nested: [Family.work("n")]
        },
        worker: () => Effect.never,
        runtime: { policy: Kit.allowAll }
      })
      yield* agent.send("go")
      yield* settle
      yield* agent.interrupt()
      assert.deepStrictEqual(
        Family.ofTag(yield* events, "TurnEnded").map(({ agent, detail, reason }) => [agent, reason, detail]),
        [
          ["main/helper/nested", "cancelled", "parent"],
          ["main/helper", "cancelled", "parent"],
          ["main", "cancelled", "user"]
        ]
      )
      assert.deepStrictEqual(Family.ofTag(yield* events, "AgentError"), [])
    })
  )
})

describe("what a cancelled turn has not read", () => {
  it.scoped("begins the next one", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: Kit.replies({ tools: [work("x")] }, { text: "heard" }).model,
        worker: () => Effect.never
      })
      yield* kit.agent.send("go")
      yield* settle
      yield* kit.agent.send("and this")
      yield* kit.agent.interrupt()
      assert.strictEqual(Option.getOrUndefined(yield* kit.agent.awaitIdle)?._tag, "Completed")
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages).slice(-2), ["user: and this", "assistant: heard"])
      assert.strictEqual((yield* kit.of("InterjectionAcknowledged")).length, 1)
    })
  )

  it.scoped("is handed back when somebody takes it back first, and then no turn reads it", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ tools: [work("x")] }], worker: () => Effect.never })
      yield* kit.agent.send("go")
      yield* settle
      yield* kit.agent.send("one")
      yield* kit.agent.send("two")
      const unread = yield* kit.agent.takeBack()
      yield* kit.agent.interrupt()
      assert.deepStrictEqual(
        unread.map(({ text }) => text),
        ["one", "two"]
      )
      assert.isTrue(yield* kit.agent.isIdle)
      assert.deepStrictEqual(yield* kit.agent.takeBack(), [])
      assert.strictEqual((yield* kit.of("TurnStarted")).length, 1)
      assert.notInclude(Kit.outline(kit.agent.history.messages).join(), "one")
    })
  )

  it.scoped("is not swallowed by a turn that was cancelled before it began", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: Kit.replies({ text: "heard" }).model })
      yield* settle
      // Runs as soon as this fiber waits: after the cancellation, and before the session's own fiber.
      yield* Effect.fork(kit.agent.send("two"))
      yield* kit.agent.send("one")
      yield* kit.agent.interrupt()
      yield* kit.agent.awaitIdle
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages).slice(-2), ["user: two", "assistant: heard"])
      assert.deepStrictEqual(
        (yield* kit.of("TurnEnded")).map(({ reason }) => reason),
        ["cancelled", "completed"]
      )
    })
  )
})
