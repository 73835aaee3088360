import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import type { TurnEnd } from "../../src/turn/Turn.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Kit from "../kit/session.js"
import { settle } from "../kit/Recorder.js"

const work = (name: string) => ({ name: "work", params: { name } })
const ask = PermissionFile.policy({})

/** A worker whose calls end when the test says so. */
const gated = Effect.map(Deferred.make<string>(), (gate) => ({
  worker: () => Deferred.await(gate),
  open: (result: string) => Deferred.succeed(gate, result)
}))

describe("an interjection", () => {
  it.scoped("during a generation stops it, keeps what was said, and the same turn goes on", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { heard, model } = Kit.replies(
        Kit.halting(
          [{ type: "reasoning-delta", id: "0", delta: "hm" }, Kit.text("The first"), Kit.call("work", { name: "a" })],
          begun
        ),
        { text: "All right." }
      )
      const kit = yield* Kit.start({ model })
      const running = yield* Effect.fork(kit.agent.run("count"))
      yield* Deferred.await(begun)
      const message = yield* kit.agent.send("stop")
      assert.deepStrictEqual(yield* Fiber.join(running), { _tag: "Completed", text: "All right.", steps: 2 } as TurnEnd)
      const history = ["user: count", "assistant: The first …", "user: stop"]
      assert.deepStrictEqual(Kit.outline(heard[1]?.messages ?? []), history)
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), [...history, "assistant: All right."])
      assert.strictEqual((yield* kit.of("TurnStarted")).length, 1)
      assert.deepStrictEqual(
        (yield* kit.of("UserInterjected")).map(({ message, messageId, parentId, targetAgent }) => ({
          message,
          messageId,
          parentId,
          targetAgent
        })),
        [{ message: "stop", messageId: message.id, parentId: "root", targetAgent: "main" }]
      )
      assert.deepStrictEqual(
        (yield* kit.of("InterjectionAcknowledged")).map(({ messageId, step }) => ({ messageId, step })),
        [{ messageId: message.id, step: 2 }]
      )
      assert.deepStrictEqual(
        (yield* kit.of("ModelCallEnded")).map(({ finishReason, interrupted }) => [finishReason, interrupted]),
        [
          ["interrupted", true],
          ["stop", undefined]
        ] as never
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("before the first word leaves no partial answer", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const kit = yield* Kit.start({ model: Kit.replies(Kit.halting([], begun), { text: "yes" }).model })
      const running = yield* Effect.fork(kit.agent.run("one"))
      yield* Deferred.await(begun)
      yield* kit.agent.send("two")
      yield* Fiber.join(running)
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), ["user: one", "user: two", "assistant: yes"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("during tools waits for the batch: tools and dialogs go on, and several are read in order", () =>
    Effect.gen(function* () {
      const { open, worker } = yield* gated
      const answer = yield* Deferred.make<TestInteractor.Step>()
      const { heard, model } = Kit.replies({ tools: [work("a"), work("b")] }, { text: "done" })
      const kit = yield* Kit.start({
        model,
        worker,
        runtime: { policy: ask },
        person: ["y", TestInteractor.wait(Deferred.await(answer))]
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* kit.person.next
      yield* kit.person.next
      const first = yield* kit.agent.send("first")
      const second = yield* kit.agent.send("second")
      yield* settle
      assert.strictEqual(heard.length, 1)
      assert.strictEqual((yield* kit.person.open).length, 1, "the dialog stays open")
      yield* open("worked")
      yield* settle
      assert.strictEqual(heard.length, 1)
      yield* Deferred.succeed(answer, "n")
      yield* Fiber.join(running)
      assert.deepStrictEqual(Kit.outline(heard[1]?.messages ?? []), [
        "user: go",
        'assistant: work({"name":"a"}) | work({"name":"b"})',
        "tool: worked | ✗ Permission denied: person said no",
        "user: first",
        "user: second"
      ])
      assert.deepStrictEqual(
        (yield* kit.of("InterjectionAcknowledged")).map(({ messageId, step }) => [messageId, step]),
        [
          [first.id, 2],
          [second.id, 2]
        ]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("when the last word was said already goes on with the same turn", () =>
    Effect.gen(function* () {
      // The owner does not read, so the turn waits with the end of its last model call in line.
      const { heard, model } = Kit.replies({ text: "bye", thinking: "hm" }, { text: "still here" })
      const kit = yield* Kit.start({ model, agent: { events: { capacity: 8, whenFull: "wait" } } })
      const running = yield* Effect.fork(kit.agent.run("one"))
      yield* settle
      assert.strictEqual(heard.length, 1)
      yield* kit.agent.send("two")
      const reader = yield* Effect.fork(Effect.repeat(kit.agent.events.takeAll, { while: Option.isSome }))
      const end = yield* Fiber.join(running)
      yield* kit.agent.shutdown
      yield* Fiber.join(reader)
      assert.deepStrictEqual(end, { _tag: "Completed", text: "still here", steps: 2 } as TurnEnd)
      assert.strictEqual((yield* kit.of("TurnStarted")).length, 1)
      assert.strictEqual((yield* kit.of("InterjectionAcknowledged"))[0]?.step, 2)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("that comes while a model call is tried again ends the waiting", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ error: "rate_limit" }, { text: "hello" }] })
      const running = yield* Effect.fork(kit.agent.run("one"))
      assert.strictEqual((yield* kit.of("ModelRetried")).length, 1)
      yield* kit.agent.send("two")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), ["user: one", "user: two", "assistant: hello"])
    })
  )

  it.scoped("is answered in a turn of its own when the limit leaves no step for it", () =>
    Effect.gen(function* () {
      const { open, worker } = yield* gated
      const kit = yield* Kit.start({
        model: Kit.replies({ tools: [work("a")] }, { text: "heard you" }).model,
        worker,
        agent: { limits: { maxSteps: 1 } }
      })
      yield* kit.agent.send("go")
      yield* settle
      yield* kit.agent.send("and this")
      yield* open("worked")
      const end = yield* kit.agent.awaitIdle
      assert.deepStrictEqual(end, Option.some({ _tag: "Completed", text: "heard you", steps: 1 } as TurnEnd))
      assert.deepStrictEqual(
        (yield* kit.of("TurnEnded")).map(({ reason }) => reason),
        ["turn_limit", "completed"]
      )
      assert.strictEqual((yield* kit.of("InterjectionAcknowledged")).length, 1)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("limits", () => {
  it.scoped("a turn takes so many steps, and the next turn works", () =>
    Effect.gen(function* () {
      const { model } = Kit.replies(
        { text: "one", tools: [work("a")] },
        { text: "two", tools: [work("b")] },
        { text: "three" }
      )
      const kit = yield* Kit.start({ model, agent: { limits: { maxSteps: 2 } } })
      assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "TurnLimit", text: "two", steps: 2 } as TurnEnd)
      assert.strictEqual((yield* kit.of("TurnEnded"))[0]?.detail, "the limit of 2 model calls was reached")
      assert.strictEqual((yield* kit.agent.run("go on"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("the text of a turn is its own, not that of an earlier one", () =>
    Effect.gen(function* () {
      const { model } = Kit.replies({ text: "the first answer" }, { tools: [work("a")] })
      const kit = yield* Kit.start({ model, agent: { limits: { maxSteps: 1 } } })
      yield* kit.agent.run("one")
      assert.deepStrictEqual(yield* kit.agent.run("two"), { _tag: "TurnLimit", text: "", steps: 1 } as TurnEnd)
    })
  )

  const same = { tools: [{ name: "typed", params: { why: "late" } }] }
  it.scoped("the same error five times in a row ends the turn", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies(same, same, same, same, same, { text: "never said" })
      const kit = yield* Kit.start({ model })
      const error = 'The same call of typed failed 5 times in a row: {"code":7,"why":"late"}'
      assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "Failed", error, steps: 5 } as TurnEnd)
      assert.strictEqual(heard.length, 5)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("but a turn that is stopped during the last of these calls ends as stopped", () =>
    Effect.gen(function* () {
      const [begun, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let times = 0
      // It cannot be interrupted, and its error is known when the turn has been stopped.
      const worker: Kit.Worker = () =>
        Effect.suspend(() =>
          ++times === 1
            ? Effect.die(new Error("once"))
            : Effect.uninterruptible(
                Deferred.succeed(begun, undefined).pipe(
                  Effect.zipRight(Deferred.await(gate)),
                  Effect.zipRight(Effect.die(new Error("twice")))
                )
              )
        )
      const again = { tools: [work("a")] }
      const kit = yield* Kit.start({
        model: [again, again, { text: "never said" }],
        worker,
        agent: { limits: { identicalErrors: 2 } }
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* Deferred.await(begun)
      const cancelling = yield* Effect.fork(kit.agent.cancel("timeout"))
      yield* settle
      yield* Deferred.succeed(gate, undefined)
      const end = { _tag: "Cancelled", reason: "timeout", steps: 2 } as TurnEnd
      assert.deepStrictEqual(yield* Fiber.join(cancelling), Option.some(end))
      assert.deepStrictEqual(yield* Fiber.join(running), end)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("also within one batch, and with another number from the limits", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: [...same.tools, ...same.tools] }, { text: "never said" }],
        agent: { limits: { identicalErrors: 2 } }
      })
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Failed")
      assert.strictEqual(kit.results().length, 2)
      assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed", "the next turn counts anew")
    })
  )

  it.scoped("the same call with five different errors ends it too, and five calls with the same error do not", () =>
    Effect.gen(function* () {
      let times = 0
      const worker: Kit.Worker = () => Effect.die(new Error(`number ${++times}`))
      const again = Array.from({ length: 5 }, () => ({ tools: [work("a")] }))
      const failed = yield* Kit.start({ model: [...again, { text: "never said" }], worker })
      assert.strictEqual((yield* failed.agent.run("go"))._tag, "Failed")
      const others = ["a", "b", "c", "d", "e", "f"].map((name) => ({ tools: [work(name)] }))
      const other = yield* Kit.start({ model: [...others, { text: "done" }], worker })
      assert.strictEqual((yield* other.agent.run("go"))._tag, "Completed")
    })
  )

  it.scoped("what a person denies is no error: many commands may be denied, the same one five times", () =>
    Effect.gen(function* () {
      const names = ["a", "b", "c", "d", "e", "f", "g"]
      const denied = { runtime: { policy: ask }, person: () => "n" } as const
      const many = yield* Kit.start({ model: [...names.map((name) => ({ tools: [work(name)] })), {}], ...denied })
      assert.strictEqual((yield* many.agent.run("go"))._tag, "Completed", "with nothing left to say")
      assert.strictEqual((yield* many.of("ToolCallEnded")).length, names.length)

      const steps = names.map((name) => ({ tools: [work("same"), work(name)] }))
      const one = yield* Kit.start({ model: [...steps, { text: "never said" }], ...denied })
      const detail = "The same call of work was denied 5 times."
      assert.deepStrictEqual(yield* one.agent.run("go"), { _tag: "Denied", detail, steps: 5 } as TurnEnd)
      assert.deepInclude((yield* one.of("TurnEnded"))[0], { reason: "denied", detail })
      assert.deepStrictEqual(yield* one.wrong, [])
      assert.strictEqual((yield* one.agent.run("and now"))._tag, "Completed")
    })
  )

  it.scoped("other errors, and successes between, start the count again", () =>
    Effect.gen(function* () {
      const other = { tools: [{ name: "typed", params: { why: "early" } }] }
      const good = { tools: [work("a")] }
      const { model } = Kit.replies(same, same, other, same, same, good, same, same, { text: "done" })
      const kit = yield* Kit.start({ model, agent: { limits: { identicalErrors: 3 } } })
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
    })
  )
})

describe("cancelling", () => {
  it.scoped("a generation discards what was said", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const reply = Kit.halting([Kit.text("The first")], begun).pipe(
        Stream.ensuring(Deferred.succeed(closed, undefined))
      )
      const kit = yield* Kit.start({ model: Kit.replies(reply, { text: "again" }).model })
      const running = yield* Effect.fork(kit.agent.run("count"))
      yield* Deferred.await(begun)
      const end = yield* kit.agent.cancel("timeout")
      assert.deepStrictEqual(end, Option.some({ _tag: "Cancelled", reason: "timeout", steps: 1 } as TurnEnd))
      assert.isTrue(yield* Deferred.isDone(closed), "the connection is closed")
      assert.deepStrictEqual(yield* Fiber.join(running), Option.getOrThrow(end))
      assert.strictEqual((yield* kit.of("TurnEnded"))[0]?.detail, "timeout")
      assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed")
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), [
        "user: count",
        "user: again",
        "assistant: again"
      ])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("tools and dialogs gives every call a result, and closes what was open", () =>
    Effect.gen(function* () {
      const running: Array<string> = []
      const worker: Kit.Worker = (name) =>
        name === "quick"
          ? Effect.succeed("quick")
          : Effect.acquireUseRelease(
              Effect.sync(() => running.push(name)),
              () => Effect.never,
              () => Effect.sync(() => running.splice(running.indexOf(name), 1))
            )
      const kit = yield* Kit.start({
        model: [{ text: "Let me.", tools: ["quick", "hangs", "asked", "waits"].map(work) }, { text: "again" }],
        worker,
        runtime: { policy: ask },
        person: ["y", "y", TestInteractor.silent]
      })
      yield* kit.agent.send("go")
      yield* settle
      assert.deepStrictEqual(running, ["hangs"])
      assert.strictEqual((yield* kit.person.open).length, 1)
      yield* kit.agent.cancel()
      assert.deepStrictEqual(running, [])
      assert.deepStrictEqual(yield* kit.person.open, [])
      const cancelled = "The call was cancelled."
      const begun = "The call was cancelled while it ran. Whether it took effect is not known."
      assert.deepStrictEqual(kit.results(), ["quick", begun, cancelled, cancelled])
      assert.deepStrictEqual(
        (yield* kit.of("PermissionResolved")).map(({ granted, method }) => [granted, method]),
        [
          [true, "user_approved"],
          [true, "user_approved"],
          [false, "cancelled"]
        ] as never
      )
      assert.strictEqual((yield* kit.of("InteractionCancelled")).length, 1)
      assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("waits for what a tool has to clean up", () =>
    Effect.gen(function* () {
      const cleaning = yield* Deferred.make<void>()
      const clean = yield* Deferred.make<void>()
      const worker: Kit.Worker = () =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.zipRight(Deferred.succeed(cleaning, undefined), Deferred.await(clean))
        )
      const kit = yield* Kit.start({ model: [{ tools: [work("a"), work("b")] }], worker })
      yield* kit.agent.send("go")
      yield* settle
      const cancelling = yield* Effect.fork(kit.agent.cancel())
      yield* Deferred.await(cleaning)
      yield* settle
      assert.isTrue(Option.isNone(yield* Fiber.poll(cancelling)))
      yield* Deferred.succeed(clean, undefined)
      assert.strictEqual(Option.getOrThrow(yield* Fiber.join(cancelling))._tag, "Cancelled")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("by a tool of the turn ends the turn with the tool", () =>
    Effect.gen(function* () {
      const self = yield* Deferred.make<Kit.Started>()
      const kit = yield* Kit.start({
        model: [{ tools: [work("a")] }, { text: "again" }],
        worker: () => Effect.flatMap(Deferred.await(self), ({ agent }) => agent.cancel())
      })
      yield* Deferred.succeed(self, kit)
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Cancelled")
      assert.deepStrictEqual(kit.results(), [
        "The call was cancelled while it ran. Whether it took effect is not known."
      ])
      assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("keeps an interjection that the turn did not come to read: it begins the next", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies({ tools: [work("a")] }, { text: "heard you" })
      const kit = yield* Kit.start({ model, worker: () => Effect.never })
      yield* kit.agent.send("go")
      yield* settle
      yield* kit.agent.send("and this")
      yield* kit.agent.cancel()
      assert.strictEqual(Option.getOrThrow(yield* kit.agent.awaitIdle)._tag, "Completed")
      assert.strictEqual(heard[1]?.messages.at(-1)?.role, "user")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("halting", () => {
  it.scoped("ends the turn as halted, with what was asked", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ tools: [work("a")] }, { text: "go on" }], runtime: { policy: ask } })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* kit.person.next
      yield* kit.agent.halt("nobody is there")
      assert.deepStrictEqual(yield* Fiber.join(running), {
        _tag: "Halted",
        detail: "nobody is there",
        steps: 1
      } as TurnEnd)
      const [ended] = yield* kit.of("TurnEnded")
      assert.deepStrictEqual([ended?.reason, ended?.detail], ["halted", "nobody is there"])
      assert.strictEqual((yield* kit.agent.run("go on"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("what a model call took of the context window", () => {
  it.scoped("is told with its end, with the window where it is known", () =>
    Effect.gen(function* () {
      const { model } = Kit.replies(
        { text: "one", usage: { input: 300, output: 5 } },
        { text: "two" },
        { text: "three", usage: { input: 320, output: 5 } }
      )
      const kit = yield* Kit.start({ model: { ...model, contextWindow: 1_000 } })
      yield* kit.agent.run("a")
      yield* kit.agent.run("b")
      yield* kit.agent.setModel({ ...model, id: "anthropic/replies" })
      yield* kit.agent.run("c")
      assert.deepStrictEqual(
        (yield* kit.of("ModelCallEnded")).map(({ context }) => context),
        [{ tokens: 300, window: 1_000 }, undefined, { tokens: 320 }]
      )
    })
  )
})
