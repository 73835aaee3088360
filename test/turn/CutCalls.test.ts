/** Calls that are cancelled while their tools run, and what is said of their effect. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as History from "../../src/conversation/History.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Kit from "../kit/session.js"
import { settle } from "../kit/Recorder.js"

const work = (name: string) => ({ name: "work", params: { name }, id: `call_${name}` })
const unknown = "Whether it took effect is not known."
const late = "About the call call_a of work: The user cancelled this call while it ran. It had its end all the same."

/** A transaction that is written when the test says so. */
const transaction = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  let receipts = 0
  return {
    worker: () =>
      Effect.uninterruptible(
        Effect.zipRight(
          Deferred.await(gate),
          Effect.sync(() => `receipt ${++receipts}`)
        )
      ),
    write: Deferred.succeed(gate, undefined),
    count: () => receipts
  }
})

const outcomes = (kit: Kit.Started) => Effect.map(kit.of("ToolCallEnded"), (all) => all.map(({ outcome }) => outcome))

/** What the model reads beside the results. */
const notes = ({ agent }: Kit.Started) =>
  agent.history.messages.flatMap((message) =>
    History.metadata(message).source === "system" ? [History.textOf(message)] : []
  )

/** Interrupts a call, and lets the transaction end after that. */
const cancelledLate = (names: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const tx = yield* transaction
    const kit = yield* Kit.start({ model: [{ tools: names.map(work) }, { text: "done" }], worker: tx.worker })
    const running = yield* Effect.fork(kit.agent.run("go"))
    yield* settle
    const cancelling = yield* Effect.fork(kit.agent.interrupt({ toolCallId: "call_a" }))
    yield* settle
    yield* tx.write
    yield* Fiber.join(cancelling)
    assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
    assert.strictEqual(tx.count(), names.length)
    assert.deepStrictEqual(yield* kit.wrong, [])
    return kit
  })

describe("a call that has its end although it was cancelled", () => {
  it.scoped("alone in its step is reported with its result", () =>
    Effect.gen(function* () {
      const kit = yield* cancelledLate(["a"])
      assert.deepStrictEqual(kit.results(), ["receipt 1"])
      assert.deepStrictEqual(notes(kit), [late])
      assert.deepStrictEqual(yield* outcomes(kit), ["succeeded"])
    })
  )

  it.scoped("among others is reported with its result", () =>
    Effect.gen(function* () {
      const kit = yield* cancelledLate(["a", "b"])
      assert.deepStrictEqual(kit.results(), ["receipt 1", "receipt 2"])
      assert.deepStrictEqual(notes(kit), [late])
      assert.deepStrictEqual(yield* outcomes(kit), ["succeeded", "succeeded"])
    })
  )

  for (const names of [["a"], ["a", "b"]]) {
    it.scoped(`is written down as it was when the whole turn was cancelled, of ${names.length}`, () =>
      Effect.gen(function* () {
        const tx = yield* transaction
        const store = (yield* SessionStore.makeMemory)({ pid: 1, host: "here", isAlive: () => false })
        const persistence = yield* Persistence.begin(store)
        const model = [{ tools: names.map(work) }, { text: "and now" }]
        const kit = yield* Kit.start({ model, worker: tx.worker, agent: { persistence } })
        yield* kit.agent.send("go")
        yield* settle
        const cancelling = yield* Effect.fork(kit.agent.cancel())
        yield* settle
        yield* tx.write
        yield* Fiber.join(cancelling)
        const said = names.map((_, i) => `receipt ${i + 1}`)
        assert.deepStrictEqual(kit.results(), said)
        assert.deepStrictEqual(yield* outcomes(kit), names.map(() => "succeeded") as never)
        const { entries } = yield* store.load(kit.agent.id)
        assert.deepStrictEqual(
          entries.flatMap(({ entry }) => (entry._tag === "ToolEnded" ? [[entry.outcome, entry.result]] : [])),
          said.map((result) => ["succeeded", result])
        )
        assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed")
        const end = "The call was cancelled while it ran. It had its end all the same."
        assert.deepStrictEqual(
          notes(kit),
          names.map((name) => `About the call call_${name} of work: ${end}`)
        )
      })
    )
  }

  it.scoped("within a timeout is reported with its result", () =>
    Effect.gen(function* () {
      const tx = yield* transaction
      const kit = yield* Kit.start({
        model: [{ tools: [work("a")] }, { text: "done" }],
        worker: () => Effect.orDie(Effect.timeout(tx.worker(), "1 hour"))
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      const cancelling = yield* Effect.fork(kit.agent.interrupt({ toolCallId: "call_a" }))
      yield* settle
      yield* tx.write
      yield* Effect.all([Fiber.join(cancelling), Fiber.join(running)])
      assert.deepStrictEqual(kit.results(), ["receipt 1"])
      assert.deepStrictEqual(notes(kit), [late])
    })
  )

  it.scoped("with a failure of its own is reported as failed", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: [{ tools: [work("a")] }, { text: "done" }],
        worker: () => Effect.uninterruptible(Effect.zipRight(Deferred.await(gate), Effect.fail("no room" as never)))
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      const cancelling = yield* Effect.fork(kit.agent.interrupt({ toolCallId: "call_a" }))
      yield* settle
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.all([Fiber.join(cancelling), Fiber.join(running)])
      assert.deepStrictEqual(kit.results(), ["work failed: no room"])
      assert.deepStrictEqual(notes(kit), [late])
      assert.deepStrictEqual(yield* outcomes(kit), ["failed"])
    })
  )
})

describe("a call whose end is not known", () => {
  const cases: ReadonlyArray<readonly [string, Kit.Worker, string]> = [
    ["that acted before it was interrupted", () => Effect.never, "The user cancelled this call while it ran."],
    [
      "of a promise without a signal",
      () => Effect.promise(() => new Promise(() => {})),
      "The user cancelled this call while it ran."
    ],
    [
      "that waits for others without being interruptible",
      () => Effect.orDie(Effect.timeout(Effect.never, "1 hour")),
      "The user cancelled this call while it ran."
    ],
    [
      "that goes on after a region that cannot be interrupted",
      () => Effect.zipRight(Effect.uninterruptible(Effect.yieldNow()), Effect.never),
      "The user cancelled this call while it ran."
    ],
    ["that does not stop", () => Effect.uninterruptible(Effect.never), "The user cancelled this call while it ran."]
  ]
  for (const [name, worker, what] of cases) {
    for (const names of [["a"], ["a", "b"]]) {
      it.scoped(`${name}, one of ${names.length}, says so`, () =>
        Effect.gen(function* () {
          const kit = yield* Kit.start({
            model: [{ tools: names.map(work) }, { text: "done" }],
            worker: (name) => (name === "a" ? worker(name) : Effect.succeed(name))
          })
          const running = yield* Effect.fork(kit.agent.run("go"))
          yield* settle
          const cancelling = yield* Effect.fork(kit.agent.interrupt({ toolCallId: "call_a" }))
          yield* settle
          yield* TestClock.adjust("5 seconds")
          yield* Effect.all([Fiber.join(cancelling), Fiber.join(running)])
          assert.deepStrictEqual(kit.results(), [`${what} ${unknown}`, ...names.slice(1)])
          assert.include(yield* outcomes(kit), "interrupted")
          const [summary] = (yield* kit.of("ToolCallEnded")).flatMap(({ outcome, summary }) =>
            outcome === "interrupted" ? [summary] : []
          )
          assert.include(summary, unknown)
        })
      )
    }
  }
})

describe("a call that had not begun", () => {
  it.scoped("while it waits for its approval or for room, was cancelled", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: ["a", "b", "c"].map(work) }, { text: "done" }],
        runtime: { policy: Policy.make({}) },
        worker: () => Effect.never,
        person: ["y", "y", TestInteractor.silent],
        agent: { limits: { parallelTools: 1 } }
      })
      yield* kit.agent.send("go")
      yield* settle
      yield* kit.agent.cancel()
      const was = "The call was cancelled."
      assert.deepStrictEqual(kit.results(), [`The call was cancelled while it ran. ${unknown}`, was, was])
      assert.deepStrictEqual([...(yield* outcomes(kit))].sort(), ["cancelled", "cancelled", "interrupted"])
    })
  )

  const skipped = "The user cancelled this call."

  for (const [names, asked, results] of [
    [["a"], 1, [skipped]],
    [["a", "b"], 2, [skipped, "b"]],
    [["a", "b", "c"], 3, [skipped, "b", "c"]]
  ] as const) {
    it.scoped(
      `alone while a person is asked about it was cancelled, and the next is asked about, of ${names.length}`,
      () =>
        Effect.gen(function* () {
          const kit = yield* Kit.start({
            model: [{ tools: names.map(work) }, { text: "done" }],
            runtime: { policy: Policy.make({}) },
            person: ({ interaction }) => (JSON.stringify(interaction).includes("call_a") ? TestInteractor.silent : "y")
          })
          const running = yield* Effect.fork(kit.agent.run("go"))
          yield* kit.person.next
          yield* kit.agent.interrupt({ toolCallId: "call_a" })
          assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
          assert.deepStrictEqual(kit.results(), [...results])
          assert.lengthOf(yield* kit.person.shown, asked)
          assert.deepStrictEqual(
            (yield* kit.of("ToolCallStarted")).map(({ toolCallId }) => String(toolCallId)),
            names.slice(1).map((name) => `call_${name}`)
          )
          assert.deepStrictEqual(yield* kit.wrong, [])
        })
    )
  }

  it.scoped("and is still to be decided was cancelled, and nobody is asked about it", () =>
    Effect.gen(function* () {
      const answer = yield* Deferred.make<TestInteractor.Step>()
      const kit = yield* Kit.start({
        model: [{ tools: ["a", "b", "c"].map(work) }, { text: "done" }],
        runtime: { policy: Policy.make({}) },
        person: [TestInteractor.wait(Deferred.await(answer)), "y"]
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* kit.person.next
      yield* kit.agent.interrupt({ toolCallId: "call_b" })
      const again = yield* Effect.flip(kit.agent.interrupt({ toolCallId: "call_b" }))
      assert.strictEqual(again._tag, "ToolCallNotRunning")
      yield* Deferred.succeed(answer, "y")
      yield* Fiber.join(running)
      assert.deepStrictEqual(kit.results(), ["a", skipped, "c"])
      assert.lengthOf(yield* kit.person.shown, 2)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  for (const names of [["a"], ["a", "b"]]) {
    it.scoped(
      `while its check does not stop is left behind, of ${names.length}, by its own cancel and the turn's`,
      () =>
        Effect.gen(function* () {
          for (const alone of [true, false]) {
            const kit = yield* Kit.start({
              model: [{ tools: names.map(work) }, { text: "done" }],
              runtime: {
                guards: [
                  ({ params }) =>
                    JSON.stringify(params).includes('"a"') ? Effect.uninterruptible(Effect.never) : Effect.void
                ]
              }
            })
            const running = yield* Effect.fork(kit.agent.run("go"))
            yield* settle
            const cancel = alone ? kit.agent.interrupt({ toolCallId: "call_a" }) : kit.agent.cancel()
            const cancelling = yield* Effect.fork(cancel)
            yield* settle
            yield* TestClock.adjust("5 seconds")
            yield* Fiber.join(cancelling)
            assert.strictEqual((yield* Fiber.join(running))._tag, alone ? "Completed" : "Cancelled")
            const was = "The call was cancelled."
            assert.deepStrictEqual(kit.results(), alone ? [skipped, ...names.slice(1)] : names.map(() => was))
            assert.deepStrictEqual(
              (yield* kit.of("AgentError")).map(({ message }) =>
                message.startsWith("work (call_a) did not stop within 5s")
              ),
              [true]
            )
            assert.deepStrictEqual(yield* kit.wrong, [])
          }
        })
    )
  }
})
