import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as Interaction from "../../src/interaction/Interaction.js"
import { InteractionCancelled, InteractorUnavailable } from "../../src/interaction/InteractionError.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Recorder from "../kit/Recorder.js"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import { interactorSuite } from "../suite/interactorSuite.js"

const { samples } = InteractionSample
const confirm = samples.Confirm.interaction
const approve = samples.Approve.interaction

const ask = (person: TestInteractor.Service, interaction: Interaction.Interaction = confirm) =>
  Effect.flatMap(InteractionSample.request(interaction), (request) =>
    Effect.map(Effect.exit(InteractorCall.ask(person.interactor, request)), (exit) => ({ request, exit }))
  )

describe("a scripted person", () => {
  it.effect("answers request after request as the script says, and is shown them in that order", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({
        id: "ada",
        script: ["y", TestInteractor.answer({ decision: "allow", scope: "turn" }), "c: not on a Friday"]
      })
      const asked = [yield* ask(person), yield* ask(person, approve), yield* ask(person, approve)]
      assert.deepStrictEqual(
        asked.map(({ exit }) => exit),
        [
          Exit.succeed({ answer: true, by: "ada", how: "answered" }),
          Exit.succeed({ answer: { decision: "allow", scope: "turn" }, by: "ada", how: "answered" }),
          Exit.succeed({
            answer: { decision: "deny", scope: "once", comment: "not on a Friday" },
            by: "ada",
            how: "answered"
          })
        ] as never
      )
      assert.deepStrictEqual(
        yield* person.shown,
        asked.map(({ request }) => request)
      )
      assert.deepStrictEqual(yield* person.open, [])
      assert.deepStrictEqual(yield* person.dismissed, [])
    })
  )

  it.effect("may decide by what it is asked", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({
        script: ({ interaction }, index) => (interaction._tag === "Confirm" ? "n" : `answer ${index}`)
      })
      const first = yield* ask(person, samples.Ask.interaction)
      const second = yield* ask(person)
      assert.deepStrictEqual(
        [first, second].map(({ exit }) => Exit.isSuccess(exit) && exit.value.answer),
        ["answer 0", false]
      )
    })
  )

  it.effect("takes its time by the clock of the test", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: [TestInteractor.delay("1 hour", "y")] })
      const asking = yield* Effect.fork(ask(person))
      const request = yield* person.next
      assert.deepStrictEqual(yield* person.open, [request])
      yield* TestClock.adjust("59 minutes")
      assert.strictEqual((yield* Fiber.poll(asking))._tag, "None")
      yield* TestClock.adjust("1 minute")
      assert.isTrue(Exit.isSuccess((yield* Fiber.join(asking)).exit))
    })
  )

  it.effect("waits for a test that decides later", () =>
    Effect.gen(function* () {
      const decision = yield* Deferred.make<TestInteractor.Step>()
      const person = yield* TestInteractor.make({ script: [TestInteractor.wait(Deferred.await(decision))] })
      const asking = yield* Effect.fork(ask(person))
      yield* person.next
      yield* Deferred.succeed(decision, "n")
      const { exit } = yield* Fiber.join(asking)
      assert.isTrue(Exit.isSuccess(exit) && exit.value.answer === false)
    })
  )

  const failing: ReadonlyArray<readonly [string, TestInteractor.Step, string]> = [
    ["fails", TestInteractor.fail("no paper"), "no paper"],
    ["types what is no answer", "perhaps", "the script types a line that is not an answer: Please type yes or no."],
    [
      "gives an answer of another kind",
      TestInteractor.answer({ outcome: "approve" }),
      "the script's answer does not fit: that is not an answer to Confirm"
    ]
  ]
  it.effect.each(failing)("%s, and is unavailable for a reason that can be read", ([, step, reason]) =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: [step] })
      const { exit, request } = yield* ask(person)
      assert.deepStrictEqual(
        exit,
        Exit.fail(new InteractorUnavailable({ requestId: request.requestId, by: "person", reason }))
      )
    })
  )

  it.effect("says so when its script is at an end", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: ["y"] })
      yield* ask(person)
      const { exit } = yield* ask(person, approve)
      const failure = yield* Effect.flip(exit)
      assert.include(failure.message, "the script has 1 steps and ends before this Approve")
    })
  )

  it.effect("withdraws by a reaction or by a word", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: [TestInteractor.cancel, "cancel"] })
      for (let round = 0; round < 2; round++) {
        const { exit, request } = yield* ask(person)
        assert.deepStrictEqual(
          exit,
          Exit.fail(new InteractionCancelled({ requestId: request.requestId, by: "person" }))
        )
      }
      assert.deepStrictEqual(yield* person.dismissed, [])
    })
  )

  it.effect("crashes, and hands back nonsense as it is", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: [TestInteractor.crash, TestInteractor.nonsense({ no: 1 })] })
      const crashed = yield* ask(person)
      assert.isTrue(Exit.isFailure(crashed.exit) && Cause.isDie(crashed.exit.cause))
      const { exit } = yield* ask(person)
      assert.deepStrictEqual(Exit.isSuccess(exit) && exit.value.answer, { no: 1 } as never)
      assert.deepStrictEqual(yield* person.open, [])
    })
  )

  it.effect("tells which dialogs were closed on it, and which stayed open", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({
        dialogs: "unbounded",
        script: [TestInteractor.silent, TestInteractor.contradict("y"), TestInteractor.silent]
      })
      const fibers = []
      const requests = []
      for (let round = 0; round < 3; round++) {
        fibers.push(yield* Effect.fork(ask(person)))
        requests.push(yield* person.next)
      }
      yield* Fiber.interrupt(fibers[0]!)
      yield* Fiber.interrupt(fibers[1]!)
      assert.deepStrictEqual(yield* person.dismissed, [requests[0]!.requestId, requests[1]!.requestId])
      assert.deepStrictEqual(yield* person.open, [requests[2]!])
    })
  )

  it.effect("gives its answer all the same when it contradicts", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: [TestInteractor.contradict("y")] })
      const seen = yield* Deferred.make<unknown>()
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* Effect.fork(
        Effect.uninterruptibleMask((restore) =>
          Effect.flatMap(Effect.exit(restore(person.interactor.request(request))), (exit) =>
            Deferred.succeed(seen, exit)
          )
        )
      )
      yield* person.next
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(yield* person.dismissed, [request.requestId])
      assert.deepStrictEqual(yield* person.open, [])
      yield* Deferred.await(seen)
    })
  )

  it.effect("is gone for good when it is disconnected", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({
        script: () => TestInteractor.delay("1 second", "y"),
        dialogs: "unbounded"
      })
      const open = [yield* Effect.fork(ask(person)), yield* Effect.fork(ask(person))]
      yield* person.next
      yield* person.next
      yield* person.disconnect
      yield* person.disconnect
      const ends = [yield* Fiber.join(open[0]!), yield* Fiber.join(open[1]!), yield* ask(person)]
      for (const { exit, request } of ends) {
        assert.deepStrictEqual(
          exit,
          Exit.fail(
            new InteractorUnavailable({ requestId: request.requestId, by: "person", reason: "it was disconnected" })
          )
        )
      }
      assert.strictEqual((yield* person.shown).length, 2, "what came later was not shown")
      assert.deepStrictEqual(yield* person.open, [])
    })
  )

  it.effect("is the interactor of a program as a layer", () =>
    Effect.gen(function* () {
      assert.isTrue(yield* Interactor.ask(confirm))
      assert.strictEqual((yield* (yield* TestInteractor.TestInteractor).shown).length, 1)
    }).pipe(Effect.provide(TestInteractor.layer({ script: ["y"] })))
  )
})

/** The suite decides step by step: each dialog waits for what its own deferred is completed with. */
const underTest = (dialogs: "one" | "unbounded") =>
  Effect.gen(function* () {
    const decisions = new Map<string, Deferred.Deferred<TestInteractor.Step>>()
    const person = yield* Effect.acquireRelease(
      TestInteractor.make({
        dialogs,
        script: ({ requestId }) => TestInteractor.wait(Effect.suspend(() => Deferred.await(decisionOf(requestId))))
      }),
      (person) => Effect.zipRight(person.disconnect, Recorder.settle)
    )
    const pool = yield* Effect.forEach(Array.from({ length: 20 }), () => Deferred.make<TestInteractor.Step>())
    const decisionOf = (requestId: string) => {
      const known = decisions.get(requestId) ?? pool.pop()
      assert(known !== undefined)
      decisions.set(requestId, known)
      return known
    }
    const decide = (requestId: string, step: TestInteractor.Step) =>
      Effect.zipRight(Deferred.succeed(decisionOf(requestId), step), Recorder.settle)
    return {
      interactor: person.interactor,
      outside: {
        shown: Effect.map(person.next, (request) => request.requestId),
        answer: ({ requestId }: { readonly requestId: string }, sample: InteractionSample.Sample) =>
          decide(requestId, TestInteractor.answer(sample.answer)),
        nonsense: ({ requestId }: { readonly requestId: string }) =>
          decide(requestId, TestInteractor.answer("none of it" as never)),
        cancel: ({ requestId }: { readonly requestId: string }) => decide(requestId, TestInteractor.cancel),
        visible: Effect.map(person.open, (open) => open.map(({ requestId }) => requestId))
      }
    }
  })

for (const dialogs of ["one", "unbounded"] as const) {
  interactorSuite(`TestInteractor (${dialogs})`, {
    claims: InteractionSample.kinds,
    dialogs,
    afterNonsense: "fails",
    make: underTest(dialogs)
  })
}
