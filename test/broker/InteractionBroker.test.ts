import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import type { RequestId, SessionId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as EventBus from "../../src/event/EventBus.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as InteractionBroker from "../../src/broker/InteractionBroker.js"
import {
  InteractionAlreadyAnswered,
  InteractionCancelled,
  InteractionTimedOut,
  InteractorUnavailable,
  MalformedAnswer,
  NoInteractor,
  UnknownRequest
} from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Recorder from "../kit/Recorder.js"

const { samples } = InteractionSample
const confirm = samples.Confirm.interaction
const approve = samples.Approve.interaction

const setup = (options: Omit<InteractionBroker.Options, "bus"> = {}) =>
  Effect.gen(function* () {
    const recorder = yield* Recorder.make()
    const broker = yield* InteractionBroker.make({ ...options, bus: recorder.bus })
    return { ...recorder, broker }
  })

/** Attaches one scripted person for each of the options. */
const people = <const All extends ReadonlyArray<TestInteractor.Options>>(
  broker: InteractionBroker.Service,
  ...all: All
) =>
  Effect.forEach(all, (options) =>
    Effect.tap(TestInteractor.make(options), (person) => broker.attach(person.interactor))
  ) as Effect.Effect<{ readonly [K in keyof All]: TestInteractor.Service }, never, Scope.Scope>

const ask = <I extends Interaction.Interaction>(
  broker: InteractionBroker.Service,
  request: InteractionRequest<I>,
  options?: Interactor.Options<I>
) => Effect.fork(Effect.exit(broker.interactor.request(request, options)))

const answered = (by: string, answer: unknown) =>
  Exit.succeed({ answer, by, how: "answered" } as Interactor.Answered<never>) as Exit.Exit<never>

const ids = (requests: ReadonlyArray<InteractionRequest>) => requests.map((request) => request.requestId)

/** Nothing is open, and no fiber that the broker started runs any more. */
const assertQuiet = (broker: InteractionBroker.Service, ...persons: ReadonlyArray<TestInteractor.Service>) =>
  Effect.gen(function* () {
    yield* Recorder.settle
    assert.deepStrictEqual(yield* broker.open, [])
    for (const person of persons) assert.deepStrictEqual(yield* person.open, [])
  })

describe("the first answer wins", () => {
  it.scoped("asks everybody at once, takes the first answer and closes the dialogs of the others", () =>
    Effect.gen(function* () {
      const { broker, events } = yield* setup()
      const [fast, slow, mute] = yield* people(
        broker,
        { id: "fast", script: [TestInteractor.delay("1 second", "y")] },
        { id: "slow", script: [TestInteractor.delay("2 seconds", "n")] },
        { id: "mute" }
      )
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      for (const person of [fast, slow, mute]) assert.deepStrictEqual(yield* person.shown, [request])
      assert.deepStrictEqual(yield* broker.open, [request])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(asking), answered("fast", true))
      yield* assertQuiet(broker, fast, slow, mute)
      assert.deepStrictEqual(yield* fast.dismissed, [])
      assert.deepStrictEqual(yield* slow.dismissed, [request.requestId])
      assert.deepStrictEqual(yield* mute.dismissed, [request.requestId])
      const common = { sessionId: request.sessionId, agent: request.agentPath, requestId: request.requestId }
      assert.deepStrictEqual(events, [
        { _tag: "InteractionRequested", at: 0, ...common, kind: "Confirm", summary: "Deploy?" },
        {
          _tag: "InteractionAnswered",
          at: 1000,
          ...common,
          kind: "Confirm",
          status: "answered",
          value: true,
          by: "fast",
          how: "answered"
        }
      ] as ReadonlyArray<unknown> as ReadonlyArray<AgentEvent>)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(events.length, 2, "the slow one's answer never came")
    })
  )

  it.scoped("settles, then tells, then dismisses, then returns", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const { bus } = yield* Recorder.make((event) => order.push(event._tag))
      const broker = yield* InteractionBroker.make({ bus })
      yield* broker.attach({
        id: "loser",
        relay: false,
        request: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => order.push("dismissed")))
      })
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* Effect.fork(
        Effect.tap(broker.interactor.request(request), () => Effect.sync(() => order.push("returned")))
      )
      yield* Recorder.settle
      yield* broker.answer(request.requestId, "ui", true)
      assert.deepStrictEqual(yield* broker.open, [], "it is settled before anybody hears of it")
      order.push("settled")
      yield* Fiber.join(asking)
      yield* Recorder.settle
      assert.deepStrictEqual(order.slice(0, 3), ["InteractionRequested", "settled", "InteractionAnswered"])
      assert.sameMembers(order.slice(3), ["dismissed", "returned"])
    })
  )

  it.scoped("asks all interactors with the asker's origin, whichever fiber they run in", () =>
    Effect.gen(function* () {
      const { broker, events } = yield* setup()
      const [person] = yield* people(broker, { script: ["y"] })
      const origin: Origin.Origin = {
        sessionId: "ses_7" as SessionId,
        rootSessionId: "ses_1" as SessionId,
        agent: "main/reviewer",
        depth: 1,
        parentSessionId: "ses_1" as SessionId,
        subagentId: "sub_1"
      }
      yield* Interactor.ask(confirm).pipe(Interactor.withInteractor(broker.interactor), Origin.withOrigin(origin))
      const [request] = yield* person.shown
      assert.strictEqual(request?.agentPath, "main/reviewer")
      assert.strictEqual(request?.subagentId, "sub_1")
      assert.deepStrictEqual(
        events.map(({ agent, sessionId }) => ({ agent, sessionId })),
        [0, 1].map(() => ({ agent: "main/reviewer", sessionId: "ses_7" as SessionId }))
      )
    })
  )

  it.scoped.each(InteractionSample.kinds)("takes an answer to %s", (kind) =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      const sample = samples[kind]
      const [person] = yield* people(broker, { script: [TestInteractor.answer(sample.answer)] })
      const request = yield* InteractionSample.request(sample.interaction)
      const exit = yield* Effect.flatMap(ask(broker, request), Fiber.join)
      assert.deepStrictEqual(exit, answered("person", sample.answer))
      assert.deepStrictEqual(about(request.requestId), ["InteractionRequested", "InteractionAnswered"])
      yield* assertQuiet(broker, person)
    })
  )

  it.scoped("leaves a request that a loser answers late as it was", () =>
    Effect.gen(function* () {
      const { broker, about, events } = yield* setup()
      // Both answer in the same instant; the second finds the request settled.
      yield* people(
        broker,
        { id: "one", script: ["n"] },
        { id: "two", script: ["y"] },
        {
          id: "stubborn",
          script: [TestInteractor.contradict("y")]
        }
      )
      const request = yield* InteractionSample.request(approve)
      const exit = yield* Effect.flatMap(ask(broker, request), Fiber.join)
      assert.deepStrictEqual(exit, answered("one", { decision: "deny", scope: "once" }))
      yield* assertQuiet(broker)
      assert.deepStrictEqual(
        about(request.requestId).filter((tag) => Recorder.settling.has(tag)),
        ["InteractionAnswered"]
      )
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "LateAnswer" ? [[event.by, event.winner]] : [])),
        [["two", "one"]]
      )
    })
  )

  it.scoped("is an interactor that can be attached to another broker", () =>
    Effect.gen(function* () {
      const inner = yield* setup()
      const outer = yield* setup()
      yield* people(inner.broker, { id: "deep", script: ["y"] })
      yield* outer.broker.attach(inner.broker.interactor)
      const request = yield* InteractionSample.request(confirm)
      const exit = yield* Effect.flatMap(ask(outer.broker, request), Fiber.join)
      assert.deepStrictEqual(exit, answered("deep", true))
      for (const { about } of [inner, outer]) {
        assert.deepStrictEqual(about(request.requestId), ["InteractionRequested", "InteractionAnswered"])
      }
    })
  )
})

describe("interactors that cannot", () => {
  it.scoped("lets one that fails, one that crashes, one that throws and one that talks nonsense leave the race", () =>
    Effect.gen(function* () {
      const { broker, events } = yield* setup()
      yield* broker.attach({
        id: "throws",
        relay: false,
        request: () => {
          throw new Error("not even an effect")
        }
      })
      yield* people(
        broker,
        { id: "fails", script: [TestInteractor.fail("no paper")] },
        { id: "crashes", script: [TestInteractor.crash] },
        { id: "talks", script: [TestInteractor.nonsense("yes, by all means")] },
        { id: "answers", script: [TestInteractor.delay("1 second", "n")] }
      )
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      assert.deepStrictEqual(yield* broker.open, [request], "it is still open for those who can")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(asking), answered("answers", { decision: "deny", scope: "once" }))
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "InteractorFailed" ? [[event.interactor, event.reason]] : [])),
        [
          ["throws", "throws could not answer: it crashed"],
          ["fails", "fails could not answer: no paper"],
          ["crashes", "crashes could not answer: it crashed"],
          ["talks", "talks could not answer: that is not an answer to Approve"]
        ]
      )
    })
  )

  const nonsense: ReadonlyArray<readonly [string, Interaction.Interaction, unknown]> = [
    ["a word", approve, "y"],
    ["nothing", approve, undefined],
    ["an allowance without a scope", approve, { decision: "allow" }],
    ["an allowance for ever", approve, { decision: "allow", scope: "always" }],
    ["edits of what cannot be edited", approve, { decision: "edit", editedArguments: { cwd: "/" } }],
    ["an approval of a grant in capitals", samples.grantStageTool.interaction, { outcome: "APPROVE" }],
    ["true for an envelope", samples.approveSubagentEnvelope.interaction, true],
    ["an index out of range", samples.Select.interaction, 3],
    ["a truthy number", confirm, 1],
    ["a choice that is none", samples.Clarify.interaction, { "1": { selected: 9, text: "oracle" } }],
    ["a password in clear", samples["Auth.Password"].interaction, "hunter2"]
  ]
  it.scoped.each(nonsense)("never takes %s for an answer", ([, interaction, value]) =>
    Effect.gen(function* () {
      const { broker, about, events } = yield* setup()
      yield* people(broker, { script: [TestInteractor.nonsense(value)] })
      const request = yield* InteractionSample.request(interaction)
      const exit = yield* Effect.flatMap(ask(broker, request), Fiber.join)
      const failure = yield* Effect.flip(exit)
      assert.strictEqual(failure._tag, "InteractorUnavailable")
      assert.notInclude(JSON.stringify(events), "hunter2")
      assert.deepStrictEqual(about(request.requestId), [
        "InteractionRequested",
        "InteractorFailed",
        "InteractionUnavailable"
      ])
    })
  )

  it.scoped("survives one that hands back nothing at all", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup()
      yield* broker.attach({
        id: "void",
        relay: false,
        request: () => Effect.succeed(undefined as never)
      })
      const request = yield* InteractionSample.request(approve)
      const failure = yield* Effect.flip(broker.interactor.request(request))
      assert.deepStrictEqual(
        failure,
        new InteractorUnavailable({ requestId: request.requestId, by: "void", reason: "it crashed" })
      )
    })
  )

  it.scoped("does not wait for one that has interrupted itself", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup()
      yield* broker.attach({ id: "gone", relay: false, request: () => Effect.interrupt })
      const request = yield* InteractionSample.request(approve)
      const failure = yield* Effect.flip(broker.interactor.request(request))
      assert.deepStrictEqual(
        failure,
        new InteractorUnavailable({ requestId: request.requestId, by: "gone", reason: "it was interrupted" })
      )
    })
  )

  it.scoped("never waits for one that hangs and cannot be interrupted", () =>
    Effect.gen(function* () {
      const release = yield* Deferred.make<void>()
      // Outside of the scope of the test, which otherwise would have to wait for it.
      const scope = yield* Scope.make()
      const { broker } = yield* Scope.extend(setup(), scope)
      yield* Scope.extend(
        broker.attach({
          id: "stuck",
          relay: false,
          request: () => Effect.uninterruptible(Effect.zipRight(Deferred.await(release), Effect.never))
        }),
        scope
      )
      yield* people(broker, { id: "person", script: ["y", "n"] })
      for (const answer of [true, false]) {
        const request = yield* InteractionSample.request(confirm)
        const exit = yield* Effect.flatMap(ask(broker, request), Fiber.join)
        assert.deepStrictEqual(exit, answered("person", answer))
        assert.deepStrictEqual(yield* broker.open, [])
      }
    })
  )

  it.scoped("ends as timed out when all are gone and one had timed out, whoever left last", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      yield* people(
        broker,
        { id: "sleeper", timeouts: { permission: "30 seconds" } },
        { id: "failing", script: [TestInteractor.delay("1 minute", TestInteractor.fail("gone"))] }
      )
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* broker.open, [request], "the other one is still there")
      yield* TestClock.adjust("30 seconds")
      const failure = yield* Effect.flatMap(Fiber.join(asking), Effect.flip)
      assert.deepStrictEqual(
        failure,
        new InteractionTimedOut({ requestId: request.requestId, by: "sleeper", after: 30_000 })
      )
      assert.deepStrictEqual(about(request.requestId), [
        "InteractionRequested",
        "InteractorFailed",
        "InteractorFailed",
        "InteractionTimedOut"
      ])
    })
  )

  it.scoped("ends as unavailable when all are gone and none had timed out", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      const [one, two] = yield* people(broker, { id: "one", script: [TestInteractor.fail("no paper")] }, { id: "two" })
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      yield* two.disconnect
      const failure = yield* Effect.flatMap(Fiber.join(asking), Effect.flip)
      assert.deepStrictEqual(
        failure,
        new InteractorUnavailable({ requestId: request.requestId, by: "two", reason: "it was disconnected" })
      )
      assert.deepStrictEqual(about(request.requestId).slice(-1), ["InteractionUnavailable"])
      yield* assertQuiet(broker, one, two)
    })
  )

  it.scoped("leaves the request to the others when a channel closes under it", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      const scope = yield* Scope.make()
      const channel = yield* Scope.extend(QueueChannel.make(), scope)
      yield* broker.attach(channel.interactor)
      const [person] = yield* people(broker, {})
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      yield* Scope.close(scope, Exit.void)
      yield* Recorder.settle
      assert.deepStrictEqual(ids(yield* person.open), [request.requestId])
      yield* broker.answer(request.requestId, "ui", true)
      assert.deepStrictEqual(yield* Fiber.join(asking), answered("ui", true))
      assert.deepStrictEqual(about(request.requestId), [
        "InteractionRequested",
        "InteractorFailed",
        "InteractionAnswered"
      ])
    })
  )

  it.scoped("ends for everybody when one person withdraws the question", () =>
    Effect.gen(function* () {
      const { broker, about, events } = yield* setup()
      const [, other] = yield* people(broker, { id: "one", script: [TestInteractor.cancel] }, { id: "two" })
      const request = yield* InteractionSample.request(confirm)
      const failure = yield* Effect.flatMap(Effect.flatMap(ask(broker, request), Fiber.join), Effect.flip)
      assert.deepStrictEqual(failure, new InteractionCancelled({ requestId: request.requestId, by: "one" }))
      assert.deepStrictEqual(about(request.requestId), ["InteractionRequested", "InteractionCancelled"])
      assert.propertyVal(events.at(-1), "by", "one")
      yield* assertQuiet(broker, other)
      assert.deepStrictEqual(yield* other.dismissed, [request.requestId])
    })
  )
})

describe("nobody there", () => {
  it.scoped("fails at once, and says so in an event", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      const request = yield* InteractionSample.request(approve)
      const failure = yield* Effect.flip(broker.interactor.request(request))
      assert.deepStrictEqual(failure, new NoInteractor({ requestId: request.requestId }))
      assert.deepStrictEqual(about(request.requestId), ["InteractionRequested", "InteractionUnavailable"])
      assert.deepStrictEqual(yield* broker.open, [])
    })
  )

  it.scoped("waits for the next one to attach, where it is told to", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup({ whenNobody: "wait" })
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(yield* broker.open, [request])
      yield* people(broker, { script: ["n"] })
      assert.deepStrictEqual(yield* Fiber.join(asking), answered("person", { decision: "deny", scope: "once" }))
      assert.deepStrictEqual(about(request.requestId), ["InteractionRequested", "InteractionAnswered"])
    })
  )

  it.scoped("shows a late joiner what is open, oldest first, and nothing that is over", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup()
      yield* people(broker, { id: "mute", dialogs: "unbounded" })
      const first = yield* InteractionSample.request(confirm)
      const over = yield* InteractionSample.request(confirm)
      const second = yield* InteractionSample.request(samples.Ask.interaction)
      const asking = [yield* ask(broker, first)]
      yield* Recorder.settle
      const settled = yield* ask(broker, over)
      yield* Recorder.settle
      asking.push((yield* ask(broker, second)) as never)
      yield* Recorder.settle
      yield* broker.answer(over.requestId, "ui", true)
      yield* Fiber.join(settled)
      const [late] = yield* people(broker, { id: "late", dialogs: "unbounded", script: ["y", "Ada"] })
      assert.deepStrictEqual(yield* Fiber.join(asking[0]!), answered("late", true))
      assert.deepStrictEqual(yield* Fiber.join(asking[1]!), answered("late", "Ada"))
      assert.deepStrictEqual(ids(yield* late.shown), [first.requestId, second.requestId])
    })
  )

  it.scoped("closes the dialogs of one who detaches and leaves the request to the others", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      const scope = yield* Scope.make()
      const [leaver] = yield* Scope.extend(people(broker, { id: "leaver" }), scope)
      const [stayer] = yield* people(broker, { id: "stayer", script: [TestInteractor.delay("1 second", "y")] })
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* leaver.open, [])
      assert.deepStrictEqual(yield* leaver.dismissed, [request.requestId])
      assert.deepStrictEqual(ids(yield* stayer.open), [request.requestId])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(asking), answered("stayer", true))
      assert.deepStrictEqual(about(request.requestId), ["InteractionRequested", "InteractionAnswered"])
      const next = yield* InteractionSample.request(confirm)
      const again = yield* ask(broker, next)
      yield* Recorder.settle
      assert.strictEqual((yield* leaver.shown).length, 1, "who has left is not asked any more")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(again)), "the other one's script is at its end")
    })
  )

  it.scoped("asks nobody who detaches while the request is being raised", () =>
    Effect.gen(function* () {
      // The asker yields every few operations, so that the other one can leave between almost any two of them.
      for (let operations = 20; operations < 40; operations++) {
        for (let steps = 0; steps < 12; steps++) {
          const { broker } = yield* setup()
          const scope = yield* Scope.make()
          const [leaver] = yield* Scope.extend(people(broker, {}), scope)
          const request = yield* InteractionSample.request(confirm)
          const asking = yield* Effect.fork(
            Effect.withMaxOpsBeforeYield(Effect.exit(broker.interactor.request(request)), operations)
          )
          yield* Effect.repeatN(Effect.yieldNow(), steps)
          yield* Scope.close(scope, Exit.void)
          yield* Recorder.settle
          assert.deepStrictEqual(yield* leaver.open, [])
          const end = yield* Fiber.join(asking)
          assert.deepStrictEqual(end, Exit.fail(gone(request.requestId)))
        }
      }
    })
  )

  it.scoped("leaves no dialog open when a request ends while somebody attaches", () =>
    Effect.gen(function* () {
      for (let operations = 20; operations < 40; operations++) {
        for (let steps = 0; steps < 12; steps++) {
          const { broker } = yield* setup({ whenNobody: "wait" })
          const person = yield* TestInteractor.make()
          const request = yield* InteractionSample.request(confirm)
          const asking = yield* ask(broker, request)
          yield* Recorder.settle
          yield* Effect.fork(Effect.withMaxOpsBeforeYield(broker.attach(person.interactor), operations))
          yield* Effect.repeatN(Effect.yieldNow(), steps)
          yield* broker.answer(request.requestId, "ui", true)
          assert.deepStrictEqual(yield* Fiber.join(asking), answered("ui", true))
          yield* assertQuiet(broker, person)
        }
      }
    })
  )

  it.scoped("ends what is open when the last one detaches, unless it shall wait", () =>
    Effect.gen(function* () {
      for (const whenNobody of ["fail", "wait"] as const) {
        const { broker } = yield* setup({ whenNobody })
        const scope = yield* Scope.make()
        yield* Scope.extend(people(broker, { id: "leaver" }), scope)
        const request = yield* InteractionSample.request(confirm)
        const asking = yield* ask(broker, request)
        yield* Recorder.settle
        yield* Scope.close(scope, Exit.void)
        yield* Recorder.settle
        assert.strictEqual((yield* Fiber.poll(asking))._tag, whenNobody === "fail" ? "Some" : "None")
        if (whenNobody === "wait") yield* people(broker, { script: ["y"] })
        const exit = yield* Fiber.join(asking)
        assert.deepStrictEqual(
          exit,
          whenNobody === "wait" ? answered("person", true) : Exit.fail(gone(request.requestId))
        )
      }
    })
  )

  it.scoped("shows nobody a kind that there is not, and says so", () =>
    Effect.gen(function* () {
      const { broker, events } = yield* setup()
      const [person] = yield* people(broker, {})
      for (const tag of ["Frobnicate", "approve", "__proto__", "toString", ""]) {
        // Whoever has no types can ask anything.
        const request = yield* InteractionSample.request({ _tag: tag, prompt: "?" } as never)
        const failed = yield* Effect.flip(broker.interactor.request(request))
        assert(failed._tag === "InteractorUnavailable")
        assert.include(failed.message, "There is no interaction kind")
      }
      assert.deepStrictEqual(yield* person.open, [])
      assert.deepStrictEqual(events, [])
    })
  )
})

describe("the loser of a race", () => {
  const race = (end: (broker: InteractionBroker.Service, requestId: string) => Effect.Effect<unknown, unknown>) =>
    Effect.gen(function* () {
      const { broker, events } = yield* setup()
      // One that is posted to, and one that is asked in a fiber of its own.
      const posted = yield* QueueChannel.make({ id: "posted" })
      const asked = yield* QueueChannel.make({ id: "asked" })
      yield* broker.attach(posted.interactor)
      yield* broker.attach({ ...asked.interactor, request: asked.interactor.request })
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* Effect.fork(Effect.exit(broker.interactor.request(request)))
      yield* Recorder.settle
      yield* posted.take
      yield* asked.take
      yield* end(broker, request.requestId)
      yield* Fiber.join(asking)
      yield* Recorder.settle
      return { asked, events, posted, requestId: request.requestId }
    })

  it.scoped("learns that it was answered, and by whom; a late answer names the winner and is told", () =>
    Effect.gen(function* () {
      const { asked, events, posted, requestId } = yield* race((broker, id) => broker.answer(id, "ada", true))
      for (const channel of [posted, asked]) {
        assert.deepStrictEqual(yield* channel.take, QueueChannel.Closed({ requestId, status: "answered", by: "ada" }))
        const late = yield* Effect.flip(channel.answer(requestId, false, "bob"))
        assert(late._tag === "InteractionAlreadyAnswered")
        assert.strictEqual(late.by, "ada")
      }
      const told = events.filter(({ _tag }) => _tag === "LateAnswer")
      assert.deepStrictEqual(
        told.map((event) => event._tag === "LateAnswer" && [event.requestId, event.by, event.winner]),
        [
          [requestId, "bob", "ada"],
          [requestId, "bob", "ada"]
        ]
      )
    })
  )

  it.scoped("learns that it was withdrawn, and by whom", () =>
    Effect.gen(function* () {
      const { asked, posted, requestId } = yield* race((broker, id) => broker.cancel(id, "ada"))
      for (const channel of [posted, asked]) {
        assert.deepStrictEqual(yield* channel.take, QueueChannel.Closed({ requestId, status: "cancelled", by: "ada" }))
      }
    })
  )
})

/** What a question comes to that everybody has left. */
const gone = (requestId: RequestId) =>
  new InteractorUnavailable({ requestId, by: "broker", reason: "everybody who could have answered has gone" })

describe("the prompt slot", () => {
  /** Approvals one after the other; the order in which their askers arrived is the order of the list. */
  const askInOrder = (
    broker: InteractionBroker.Service,
    count: number,
    options: (index: number) => Interactor.Options<Interaction.Approve> = () => ({})
  ) =>
    Effect.forEach(Array.from({ length: count }), (_, index) =>
      Effect.gen(function* () {
        const request = yield* InteractionSample.request(approve)
        const fiber = yield* ask(broker, request, options(index))
        yield* Recorder.settle
        return { request, fiber }
      })
    )

  it.scoped("shows one at a time, in order of arrival, while questions pass by", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      const [person] = yield* people(broker, { dialogs: "unbounded" })
      const waiting = yield* askInOrder(broker, 4)
      const question = yield* InteractionSample.request(confirm)
      const passing = yield* ask(broker, question)
      yield* Recorder.settle
      assert.deepStrictEqual(ids(yield* person.open), [waiting[0]!.request.requestId, question.requestId])
      yield* broker.answer(question.requestId, "ui", true)
      yield* Fiber.join(passing)
      for (const { fiber, request } of waiting) {
        yield* Recorder.settle
        assert.deepStrictEqual(ids(yield* broker.open), [request.requestId])
        assert.deepStrictEqual(about(request.requestId), ["InteractionRequested"])
        yield* broker.answer(request.requestId, "ui", samples.Approve.encoded)
        yield* Fiber.join(fiber)
      }
      assert.deepStrictEqual(ids(yield* person.shown), [
        waiting[0]!.request.requestId,
        question.requestId,
        ...ids(waiting.slice(1).map(({ request }) => request))
      ])
    })
  )

  it.scoped("lets no newcomer slip in before those who wait", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup()
      const [person] = yield* people(broker, { dialogs: "unbounded" })
      const held = yield* InteractionSample.request(approve)
      const newcomer = yield* InteractionSample.request(approve)
      // The holder asks again in the very step in which it gets its answer.
      const asking = yield* Effect.fork(
        Effect.zipRight(broker.interactor.request(held), Effect.exit(broker.interactor.request(newcomer)))
      )
      yield* Recorder.settle
      const [second, third] = yield* askInOrder(broker, 2)
      yield* broker.answer(held.requestId, "ui", samples.Approve.encoded)
      yield* Recorder.settle
      assert.deepStrictEqual(ids(yield* broker.open), [second!.request.requestId])
      yield* broker.answer(second!.request.requestId, "ui", samples.Approve.encoded)
      yield* Recorder.settle
      yield* broker.answer(third!.request.requestId, "ui", samples.Approve.encoded)
      yield* Recorder.settle
      yield* broker.answer(newcomer.requestId, "ui", samples.Approve.encoded)
      yield* Fiber.join(asking)
      assert.deepStrictEqual(ids(yield* person.shown), ids([held, second!.request, third!.request, newcomer]))
    })
  )

  it.scoped("looks again at the head of the line, and shows nothing that is decided by then", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      const [person] = yield* people(broker, { script: [TestInteractor.delay("1 second", "a")] })
      let remembered: Interaction.ApproveAnswer | undefined
      const looks = new Set<number>()
      const waiting = yield* askInOrder(broker, 3, (index) => ({
        recheck: Effect.sync(() => {
          looks.add(index)
          return Option.fromNullable(remembered)
        })
      }))
      assert.deepStrictEqual([...looks], [0], "only the head of the line is looked at")
      remembered = { decision: "allow", scope: "session" }
      yield* TestClock.adjust("1 second")
      const [first, ...others] = waiting
      assert.deepStrictEqual(
        yield* Fiber.join(first!.fiber),
        answered("person", { decision: "allow", scope: "session" })
      )
      for (const { fiber, request } of others) {
        assert.deepStrictEqual(
          yield* Fiber.join(fiber),
          Exit.succeed({ answer: { decision: "allow", scope: "session" }, by: "policy", how: "recheck" } as const)
        )
        assert.deepStrictEqual(about(request.requestId), [])
      }
      assert.deepStrictEqual([...looks], [0, 1, 2])
      assert.deepStrictEqual(ids(yield* person.shown), [first!.request.requestId])
    })
  )

  it.scoped(
    "passes over one that is interrupted in line, and is passed on by one that is interrupted at its head",
    () =>
      Effect.gen(function* () {
        const { broker, about } = yield* setup()
        const [person] = yield* people(broker, {})
        const [first, second, third] = yield* askInOrder(broker, 3)
        yield* Fiber.interrupt(second!.fiber)
        assert.deepStrictEqual(about(second!.request.requestId), [], "it was never raised")
        yield* Fiber.interrupt(first!.fiber)
        yield* Recorder.settle
        assert.deepStrictEqual(ids(yield* broker.open), [third!.request.requestId])
        yield* broker.answer(third!.request.requestId, "ui", samples.Approve.encoded)
        assert.isTrue(Exit.isSuccess(yield* Fiber.join(third!.fiber)))
        assert.deepStrictEqual(ids(yield* person.shown), ids([first!.request, third!.request]))
      })
  )

  it.scoped("is free again after every way in which a request can end", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup()
      yield* people(broker, {
        script: [
          "n",
          TestInteractor.fail("no"),
          TestInteractor.crash,
          TestInteractor.cancel,
          TestInteractor.silent,
          "y"
        ],
        timeouts: { permission: "1 second" }
      })
      const ends: Array<string> = []
      for (let round = 0; round < 6; round++) {
        const request = yield* InteractionSample.request(approve)
        const asking = yield* ask(broker, request)
        yield* Recorder.settle
        yield* TestClock.adjust("1 second")
        const exit = yield* Effect.either(yield* Fiber.join(asking))
        ends.push(exit._tag === "Right" ? exit.right.answer.decision : exit.left._tag)
      }
      assert.deepStrictEqual(ends, [
        "deny",
        "InteractorUnavailable",
        "InteractorUnavailable",
        "InteractionCancelled",
        "InteractionTimedOut",
        "allow"
      ])
    })
  )
})

describe("the asker goes away", () => {
  it.scoped("withdraws the question everywhere, with exactly one event", () =>
    Effect.gen(function* () {
      const { broker, about, events } = yield* setup()
      const persons = yield* people(broker, { id: "one" }, { id: "two" })
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      yield* Fiber.interrupt(asking)
      yield* assertQuiet(broker, ...persons)
      for (const person of persons) assert.deepStrictEqual(yield* person.dismissed, [request.requestId])
      assert.deepStrictEqual(about(request.requestId), ["InteractionRequested", "InteractionCancelled"])
      assert.notProperty(events.at(-1), "by")
      const late = yield* Effect.flip(broker.answer(request.requestId, "ui", samples.Approve.encoded))
      assert.strictEqual(late._tag, "InteractionAlreadyAnswered")
    })
  )

  it.scoped("ends once when it is interrupted in the step in which it is answered", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      const [person] = yield* people(broker, {})
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      yield* Effect.zipRight(
        broker.answer(request.requestId, "ui", samples.Approve.encoded),
        Fiber.interruptFork(asking)
      )
      yield* Fiber.await(asking)
      yield* assertQuiet(broker, person)
      assert.strictEqual(about(request.requestId).filter((tag) => Recorder.settling.has(tag)).length, 1)
    })
  )
})

describe("answers from outside", () => {
  it.scoped("turns away what is no answer and keeps the request open", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      const [person] = yield* people(broker, {})
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      const malformed: ReadonlyArray<unknown> = [
        "y",
        null,
        {},
        { decision: "allow" },
        { decision: "allow", scope: "once", extra: 1 },
        { decision: "edit", editedArguments: { cwd: "/" } },
        { decision: "allow", scope: "ONCE" },
        "x".repeat(1_000_000)
      ]
      for (const input of malformed) {
        const rejection = yield* Effect.flip(broker.answer(request.requestId, "ui", input))
        assert.instanceOf(rejection, MalformedAnswer)
        assert.include(rejection.message, request.requestId)
      }
      assert.deepStrictEqual(ids(yield* person.open), [request.requestId])
      assert.deepStrictEqual(about(request.requestId), ["InteractionRequested"])
      yield* broker.answer(request.requestId, "ui", { decision: "allow", scope: "once" })
      assert.deepStrictEqual(yield* Fiber.join(asking), answered("ui", { decision: "allow", scope: "once" }))
    })
  )

  it.scoped("does not know a request that was never raised", () =>
    Effect.gen(function* () {
      const { broker, events } = yield* setup()
      const rejection = yield* Effect.flip(broker.answer("req_none", "ui", true))
      assert.deepStrictEqual(rejection, new UnknownRequest({ requestId: "req_none" }))
      assert.strictEqual(yield* broker.cancel("req_none", "ui"), false)
      assert.deepStrictEqual(events, [])
    })
  )

  it.scoped("tells who comes late who was first, and everybody that somebody came late", () =>
    Effect.gen(function* () {
      const origin: Origin.Origin = {
        sessionId: "ses_1" as SessionId,
        rootSessionId: "ses_1" as SessionId,
        agent: "main",
        depth: 0
      }
      const { broker, events } = yield* setup({ origin })
      yield* people(broker, { id: "console", script: ["n"] })
      const request = yield* InteractionSample.request(approve)
      yield* Effect.flatMap(ask(broker, request), Fiber.join)
      const rejection = yield* Effect.flip(broker.answer(request.requestId, "ui", { decision: "allow", scope: "all" }))
      assert.deepStrictEqual(rejection, new InteractionAlreadyAnswered({ requestId: request.requestId, by: "console" }))
      assert.deepStrictEqual(events.at(-1), {
        _tag: "LateAnswer",
        at: 0,
        sessionId: "ses_1" as SessionId,
        agent: "main",
        requestId: request.requestId,
        by: "ui",
        winner: "console"
      })
      assert.strictEqual(yield* broker.cancel(request.requestId, "ui"), false)
    })
  )

  it.scoped("withdraws for everybody", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      const [person] = yield* people(broker, {})
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      assert.strictEqual(yield* broker.cancel(request.requestId, "ui"), true)
      const failure = yield* Effect.flatMap(Fiber.join(asking), Effect.flip)
      assert.deepStrictEqual(failure, new InteractionCancelled({ requestId: request.requestId, by: "ui" }))
      assert.deepStrictEqual(about(request.requestId), ["InteractionRequested", "InteractionCancelled"])
      yield* assertQuiet(broker, person)
    })
  )
})

describe("what was decided", () => {
  it.scoped.each([
    { onceOnly: true, told: "once" as const },
    { onceOnly: undefined, told: "all" as const }
  ])("is told as it counts: everything, where once only is $onceOnly, is $told", ({ onceOnly, told }) =>
    Effect.gen(function* () {
      const { broker, events } = yield* setup()
      yield* people(broker, { script: [TestInteractor.answer({ decision: "allow", scope: "all" })] })
      const { interaction } = samples.Approve
      const request = yield* InteractionSample.request(Interaction.approve({ ...interaction, onceOnly }))
      const exit = yield* Effect.flatMap(ask(broker, request), Fiber.join)
      const answer = Exit.isSuccess(exit) ? exit.value.answer : undefined
      const [value] = events.flatMap((event) => (event._tag === "InteractionAnswered" ? [event.value] : []))
      assert.deepStrictEqual([answer, value], [answer, answer])
      assert.strictEqual(answer?.decision === "allow" && answer.scope, told)
    })
  )
})

describe("secrets", () => {
  it.scoped.each(["Auth.Password", "Auth.DeviceCode"] as const)(
    "tells that %s was answered, but not with what",
    (kind) =>
      Effect.gen(function* () {
        const { broker, events } = yield* setup()
        yield* people(broker, { script: [TestInteractor.answer(samples[kind].answer)] })
        const request = yield* InteractionSample.request(samples[kind].interaction)
        yield* Effect.flatMap(ask(broker, request), Fiber.join)
        const last = events.at(-1)
        assert.strictEqual(last?._tag, "InteractionAnswered")
        assert.notProperty(last, "value")
        assert.notInclude(JSON.stringify(events), InteractionSample.password)
        assert.notInclude(JSON.stringify(events), "WDJB")
      })
  )

  it.scoped("masks declared secrets in what is asked, in what is answered and in why somebody failed", () =>
    Effect.gen(function* () {
      const canary = "canary-in-a-coal-mine"
      const { broker, events } = yield* setup({ redactor: Redaction.make([Redacted.make(canary)]) })
      yield* people(
        broker,
        { id: "one", script: [TestInteractor.fail(`cannot say ${canary}`), TestInteractor.fail(`nor ${canary}`)] },
        {
          id: "two",
          script: [TestInteractor.delay("1 second", `it is ${canary}`), TestInteractor.fail(`nor I ${canary}`)]
        }
      )
      for (const prompt of [`is it ${canary}?`, `really ${canary}?`]) {
        const request = yield* InteractionSample.request(new Interaction.Ask({ prompt }))
        const asking = yield* ask(broker, request)
        yield* Recorder.settle
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(asking)
      }
      const told = events.map((event) => event._tag)
      assert.includeMembers(told, ["InteractionAnswered", "InteractorFailed", "InteractionUnavailable"])
      assert.notInclude(JSON.stringify(events), canary)
      const [value] = events.flatMap((event) => (event._tag === "InteractionAnswered" ? [event.value] : []))
      assert.strictEqual(value, `it is ${Redaction.mask}`)
    })
  )
})

describe("the end", () => {
  it.scoped("cancels what is open and what waits in line, and closes every dialog", () =>
    Effect.gen(function* () {
      for (const whenNobody of ["fail", "wait"] as const) {
        const scope = yield* Scope.make()
        const { broker, about } = yield* Scope.extend(setup({ whenNobody }), scope)
        // Attached for longer than the broker lives.
        const [person] = yield* people(broker, {})
        const shown = yield* InteractionSample.request(approve)
        const inLine = yield* InteractionSample.request(approve)
        const question = yield* InteractionSample.request(confirm)
        const asking = []
        const requests: ReadonlyArray<InteractionRequest> = [shown, inLine, question]
        for (const request of requests) {
          asking.push(yield* Effect.fork(Effect.exit(broker.interactor.request(request))))
          yield* Recorder.settle
        }
        yield* Scope.close(scope, Exit.void)
        for (const fiber of asking) {
          const failure = yield* Effect.flatMap(Fiber.join(fiber), Effect.flip)
          assert.strictEqual(failure._tag, "InteractionCancelled")
        }
        yield* assertQuiet(broker, person)
        for (const request of [shown, question]) {
          assert.deepStrictEqual(about(request.requestId), ["InteractionRequested", "InteractionCancelled"])
        }
        const late = yield* InteractionSample.request(confirm)
        const failure = yield* Effect.flip(broker.interactor.request(late))
        assert.strictEqual(failure._tag, "InteractionCancelled")
        assert.notInclude(ids(yield* person.shown), late.requestId)
      }
    })
  )

  it.scoped("leaves no fiber behind", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { broker } = yield* Scope.extend(setup(), scope)
      let running = 0
      const counting: Interactor.Service = {
        id: "counting",
        relay: false,
        request: () =>
          Effect.acquireUseRelease(
            Effect.sync(() => running++),
            () => Effect.never,
            () => Effect.sync(() => running--)
          )
      }
      yield* broker.attach(counting)
      yield* broker.attach({ ...counting, id: "again" })
      for (let round = 0; round < 10; round++) {
        const request = yield* InteractionSample.request(confirm)
        const asking = yield* ask(broker, request)
        yield* Recorder.settle
        assert.strictEqual(running, 2)
        if (round % 2 === 0) yield* broker.answer(request.requestId, "ui", true)
        yield* Fiber.interrupt(asking)
        yield* Recorder.settle
        assert.strictEqual(running, 0)
      }
      yield* ask(broker, yield* InteractionSample.request(confirm))
      yield* Recorder.settle
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(running, 0)
    })
  )

  it.scoped("is the program's interactor as a layer", () =>
    Effect.gen(function* () {
      const broker = yield* InteractionBroker.InteractionBroker
      yield* people(broker, { script: ["y"] })
      assert.strictEqual(yield* Interactor.ask(confirm), true)
    }).pipe(Effect.provide(InteractionBroker.layer().pipe(Layer.provide(EventBus.layer))))
  )

  it.effect("ends with its layer", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(
        InteractionBroker.layer({ whenNobody: "wait" }).pipe(Layer.provide(EventBus.layer)),
        scope
      )
      const { interactor } = Context.get(context, InteractionBroker.InteractionBroker)
      const asking = yield* Effect.fork(Effect.exit(interactor.request(yield* InteractionSample.request(confirm))))
      yield* Recorder.settle
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Exit.isFailure(yield* Fiber.join(asking)))
    })
  )
})

describe("a reserved call", () => {
  const reserved = (quorum: number, members: ReadonlyArray<string>) =>
    Effect.zipRight(
      InteractionBroker.load,
      InteractionSample.request(
        Interaction.approve({
          ...approve,
          onceOnly: true,
          needs: { digest: "d", all: [{ quorum, roles: ["ops"], members, deny: "one", rule: "deploy" }], votes: [] }
        })
      )
    )
  /** Several people answer through it, so it tells only with the answer who gave it. */
  const withdrawing = (by: string | undefined): Interactor.Service => ({
    id: "shared",
    relay: false,
    request: ({ requestId }) => new InteractionCancelled({ requestId, by })
  })

  it.scoped("is not withdrawn by somebody who has no vote, and stays with those who have one", () =>
    Effect.gen(function* () {
      const { broker, about, events } = yield* setup()
      yield* broker.attach(withdrawing("mallory"))
      const [ada] = yield* people(broker, { id: "ada" })
      const request = yield* reserved(1, ["ada"])
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      assert.deepStrictEqual(yield* broker.open, [request])
      assert.deepStrictEqual(ids(yield* ada.open), [request.requestId])
      const [left] = events.flatMap((event) => (event._tag === "InteractorFailed" ? [event] : []))
      assert.deepInclude(left, { interactor: "shared" })
      yield* broker.answer(request.requestId, "ada", samples.Approve.encoded)
      assert.isTrue(Exit.isSuccess(yield* Fiber.join(asking)))
      assert.deepStrictEqual(about(request.requestId), [
        "InteractionRequested",
        "InteractorFailed",
        "InteractionVoted",
        "InteractionAnswered"
      ])
    })
  )

  it.scoped.each([
    { what: "has a vote", before: [] },
    { what: "has voted already", before: ["ada"] }
  ])("is withdrawn for all by somebody who $what", ({ before }) =>
    Effect.gen(function* () {
      const { broker } = yield* setup()
      yield* people(broker, { id: "grace" })
      const request = yield* reserved(2, ["ada", "grace"])
      const votes = before.map((by) => ({ by, answer: { decision: "allow", scope: "once" } as const }))
      yield* broker.attach(withdrawing("ada"))
      const failure = yield* Effect.flatMap(Effect.flatMap(ask(broker, request, { votes }), Fiber.join), Effect.flip)
      assert.deepStrictEqual(failure, new InteractionCancelled({ requestId: request.requestId, by: "ada" }))
    })
  )

  it.scoped("is withdrawn from outside by somebody who has a vote, and by nobody else", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup()
      yield* people(broker, { id: "ada" })
      const request = yield* reserved(1, ["ada"])
      const { requestId } = request
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      for (const by of ["mallory", "nobody", ""]) {
        const refused = yield* Effect.flip(broker.cancel(requestId, by))
        assert.deepInclude(refused, { _tag: "VoteRefused", requestId, by })
      }
      assert.deepStrictEqual(yield* broker.open, [request])
      assert.isTrue(yield* broker.cancel(requestId, "ada"))
      assert.isFalse(yield* broker.cancel(requestId, "mallory"), "it is not open any more")
      const failure = yield* Effect.flip(yield* Fiber.join(asking))
      assert.deepStrictEqual(failure, new InteractionCancelled({ requestId, by: "ada" }))
    })
  )

  it.scoped("is withdrawn by somebody whom only their role gives a vote", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup()
      const outside = yield* reserved(1, ["ada"])
      yield* people(broker, { id: "ada" })
      const asking = yield* ask(broker, outside)
      yield* Recorder.settle
      const refused = yield* Effect.flip(broker.cancel(outside.requestId, "grace", ["dev"]))
      assert.strictEqual(refused._tag, "VoteRefused")
      assert.isTrue(yield* broker.cancel(outside.requestId, "grace", ["ops"]))
      assert.deepStrictEqual(
        yield* Effect.flip(yield* Fiber.join(asking)),
        new InteractionCancelled({ requestId: outside.requestId, by: "grace" })
      )
      yield* broker.attach({ ...withdrawing("grace"), principal: "grace", roles: ["ops"] })
      const inside = yield* reserved(1, ["ada"])
      assert.deepStrictEqual(
        yield* Effect.flip(broker.interactor.request(inside)),
        new InteractionCancelled({ requestId: inside.requestId, by: "grace" })
      )
    })
  )

  it.scoped("is decided by the last vote that it needs, which is no late answer", () =>
    Effect.gen(function* () {
      const { broker, about } = yield* setup()
      yield* people(broker, { id: "ada", script: ["y"] }, { id: "grace", script: ["y"] })
      const request = yield* reserved(2, ["ada", "grace"])
      yield* broker.interactor.request(request)
      yield* Recorder.settle
      assert.deepStrictEqual(about(request.requestId), [
        "InteractionRequested",
        "InteractionVoted",
        "InteractionVoted",
        "InteractionAnswered"
      ])
    })
  )

  it.scoped("tells that a vote came late when others had decided in the same moment", () =>
    Effect.gen(function* () {
      const { broker, events } = yield* setup()
      yield* people(
        broker,
        { id: "ada", script: ["y"] },
        { id: "grace", script: ["y"] },
        { id: "linus", script: ["n"] }
      )
      const answered = yield* broker.interactor.request(yield* reserved(2, ["ada", "grace", "linus"]))
      assert.strictEqual(answered.by, "ada, grace")
      yield* Recorder.settle
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "LateAnswer" ? [[event.by, event.winner]] : [])),
        [["linus", "ada, grace"]]
      )
    })
  )

  it.scoped("stays with the others when a channel closes, which nobody has decided", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup()
      yield* broker.attach(withdrawing(undefined))
      yield* people(broker, { id: "ada", script: ["y"] })
      const answered = yield* broker.interactor.request(yield* reserved(1, ["ada"]))
      assert.strictEqual(answered.by, "ada")
    })
  )

  it.scoped("shows nothing to somebody who has no vote, and takes none from them", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup()
      const [mallory, ada] = yield* people(broker, { id: "mallory", script: ["y"] }, { id: "ada" })
      const request = yield* reserved(1, ["ada"])
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      assert.deepStrictEqual(yield* mallory.shown, [])
      const refused = yield* Effect.flip(broker.answer(request.requestId, "mallory", samples.Approve.encoded))
      assert.strictEqual(refused._tag, "VoteRefused")
      assert.deepStrictEqual(ids(yield* ada.open), [request.requestId])
      yield* Fiber.interrupt(asking)
    })
  )
})

describe("votes that were kept", () => {
  const allow = { decision: "allow", scope: "once" } as const
  const request = (quorum: number, members: ReadonlyArray<string>) =>
    InteractionSample.request(
      Interaction.approve({
        ...approve,
        onceOnly: true,
        needs: { digest: "d", all: [{ quorum, roles: ["ops"], members, deny: "one", rule: "deploy" }], votes: [] }
      })
    )
  /** A decision was written, and the process died before it counted. */
  const journal: InteractionBroker.InteractionJournal = {
    raised: () => Effect.void,
    settled: () => Effect.void,
    isParked: () => false,
    settledBy: () => undefined,
    kept: () => ({ answer: allow, at: 0, by: "ada, grace" }),
    voted: () => Effect.void,
    votes: () => [
      { answer: allow, by: "ada" },
      { answer: allow, by: "grace" }
    ]
  }

  it.scoped.each([
    { what: "as it was", quorum: 2, members: ["ada", "grace", "linus"], by: "ada, grace", asked: 0 },
    { what: "more are needed", quorum: 3, members: ["ada", "grace", "linus"], by: "ada, grace, linus", asked: 1 },
    { what: "one lost the role", quorum: 2, members: ["grace", "linus"], by: "grace, linus", asked: 1 },
    { what: "fewer are needed", quorum: 1, members: ["ada", "grace", "linus"], by: "ada, grace", asked: 0 }
  ])("decide by the rules of today, whatever they came to before: $what", ({ asked, by, members, quorum }) =>
    Effect.gen(function* () {
      const { broker } = yield* setup({ journal })
      const [linus, ada] = yield* people(broker, { id: "linus", script: ["y"] }, { id: "ada", script: ["y"] })
      const answered = yield* broker.interactor.request(yield* request(quorum, members))
      assert.deepInclude(answered, { answer: allow, by })
      assert.strictEqual((yield* linus.shown).length, asked)
      assert.deepStrictEqual(yield* ada.shown, [])
    })
  )

  it.scoped("are followed by no other vote while the request is written down again", () =>
    Effect.gen(function* () {
      const [begun, written] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const votes: Array<string> = []
      const deny = { decision: "deny", scope: "once" } as const
      const slow: InteractionBroker.InteractionJournal = {
        ...journal,
        kept: () => undefined,
        raised: () => Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(written)),
        voted: (_, { by }) => Effect.sync(() => void votes.push(by)),
        votes: () => [{ answer: deny, by: "ada" }]
      }
      const { broker } = yield* setup({ journal: slow })
      yield* people(broker, { id: "linus", script: ["y"] })
      const asked = yield* request(2, ["ada", "linus"])
      const asking = yield* Effect.fork(broker.interactor.request(asked))
      yield* Deferred.await(begun)
      const late = yield* Effect.flip(broker.answer(asked.requestId, "ada", allow))
      assert.deepInclude(late, { _tag: "InteractionAlreadyAnswered", by: "ada" })
      yield* Deferred.succeed(written, undefined)
      assert.deepInclude(yield* Fiber.join(asking), { answer: deny, by: "ada" })
      assert.deepStrictEqual(votes, [])
    })
  )

  it.scoped("end in words when those who are left cannot be enough", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup({ journal })
      yield* people(broker, { id: "ada", script: ["y"] }, { id: "linus", script: ["y"] })
      const members = ["ada", "grace", "linus", "mary"]
      const error = yield* Effect.flip(broker.interactor.request(yield* request(4, members)))
      assert.strictEqual(
        error.message,
        'broker could not answer: ada allowed it, grace allowed it, linus allowed it; nobody else who could decide it is there; to wait for further people, start the agent with whenNobody: "wait"'
      )
    })
  )
})
