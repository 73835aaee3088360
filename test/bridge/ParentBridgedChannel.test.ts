import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as Mediator from "../../src/bridge/Mediator.js"
import * as ParentBridgedChannel from "../../src/bridge/ParentBridgedChannel.js"
import * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import type { ChildRequest } from "../../src/inbox/ChildRequestQueue.js"
import * as Inbox from "../../src/inbox/Inbox.js"
import * as InteractionBroker from "../../src/broker/InteractionBroker.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Recorder from "../kit/Recorder.js"

/** A person behind a broker, a parent that mediates, and a child's bridge. */
const family = (
  options: {
    readonly person?: TestInteractor.Options | "nobody"
    readonly timeouts?: Interactor.Timeouts
  } = {}
) =>
  Effect.gen(function* () {
    const { about, bus, events } = yield* Recorder.make()
    const broker = yield* InteractionBroker.make({ bus })
    const person = yield* TestInteractor.make(options.person === "nobody" ? {} : options.person)
    if (options.person !== "nobody") yield* broker.attach(person.interactor)
    const parent = yield* Inbox.make()
    const raised: Array<ChildRequest> = []
    const port: Inbox.ChildPort = {
      ask: (request) => {
        raised.push(request)
        parent.childPort.ask(request)
      },
      withdraw: (requestId, why) => parent.childPort.withdraw(requestId, why)
    }
    yield* Mediator.start({
      requests: parent.requests,
      interactor: broker.interactor,
      origin: Origin.outside,
      bus,
      redactor: Redaction.shapesOnly
    })
    const bridge = ParentBridgedChannel.make({
      parent: "main",
      port,
      ...(options.timeouts === undefined ? {} : { timeouts: options.timeouts })
    })
    /** The questions that the child waits for. */
    const waiting = () => raised.filter(({ isOpen }) => isOpen)
    return { about, broker, bridge, bus, events, parent, person, waiting }
  })

describe("a bridge", () => {
  it.scoped("carries every kind up and its answer back, secrets as what they are", () =>
    Effect.gen(function* () {
      for (const kind of InteractionSample.kinds) {
        const { answer, interaction } = InteractionSample.samples[kind]
        const { about, bridge, events, waiting } = yield* family({
          person: { script: [TestInteractor.answer(answer)] }
        })
        const request = yield* InteractionSample.request(interaction)
        const answered = yield* bridge.request(request)
        assert.strictEqual(answered.by, "person")
        if (Redacted.isRedacted(answer)) {
          assert.strictEqual(answered.answer, answer, "the very same, never a text")
          assert.notInclude(JSON.stringify(events), InteractionSample.password)
        } else assert.deepStrictEqual(answered.answer, answer, kind)
        assert.deepStrictEqual(
          about(request.requestId).filter((tag) => tag !== "QuestionAnswered" && tag !== "QuestionDisplayed"),
          ["InteractionRequested", "InteractionAnswered"],
          "the bridge tells nothing itself"
        )
        assert.deepStrictEqual(waiting(), [])
      }
    })
  )

  it.scoped("shows nothing and is no message: the parent's inbox stays empty", () =>
    Effect.gen(function* () {
      const { bridge, parent, person } = yield* family()
      const asking = yield* Effect.fork(
        bridge.request(yield* InteractionSample.request(InteractionSample.samples.Approve.interaction))
      )
      yield* person.next
      assert.isTrue(bridge.relay)
      assert.isTrue(parent.isEmpty())
      yield* Fiber.interrupt(asking)
    })
  )

  it.scoped("says so when nobody is there who could answer", () =>
    Effect.gen(function* () {
      const { bridge } = yield* family({ person: "nobody" })
      const request = yield* InteractionSample.request(InteractionSample.samples.Approve.interaction)
      const exit = yield* Effect.exit(bridge.request(request))
      const failure = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.failureOption(exit.cause)) : undefined
      assert.strictEqual(failure?._tag, "NoInteractor")
      assert.include(failure?.message, "No attached channel")
    })
  )

  const limits: ReadonlyArray<
    readonly [what: string, timeouts: Interactor.Timeouts | undefined, millis: number | undefined]
  > = [
    ["five minutes when nothing is said", undefined, 300_000],
    ["as long as it is told", { permission: "3 seconds" }, 3_000],
    ["for ever with zero", { permission: 0 }, undefined],
    ["for ever with less than zero", { permission: -1 }, undefined],
    ["for ever without end", { permission: Duration.infinity }, undefined],
    ["five minutes with nothing set", {}, 300_000],
    ["five minutes where only something else is set", { clarification: 0, onTimeout: "deny" }, 300_000]
  ]
  for (const [what, timeouts, millis] of limits) {
    it.scoped(`waits ${what}`, () =>
      Effect.gen(function* () {
        const { about, bridge, person, waiting } = yield* family(timeouts === undefined ? {} : { timeouts })
        const request = yield* InteractionSample.request(InteractionSample.samples.Approve.interaction)
        const asking = yield* Effect.fork(bridge.request(request))
        yield* person.next
        yield* TestClock.adjust(Duration.millis((millis ?? 1e12) - 1))
        assert.strictEqual((yield* person.open).length, 1)
        yield* TestClock.adjust("1 millis")
        yield* Recorder.settle
        const exit = Option.getOrUndefined(yield* Fiber.poll(asking))
        if (millis === undefined) {
          assert.isUndefined(exit)
          yield* Fiber.interrupt(asking)
          return
        }
        const failure =
          exit !== undefined && Exit.isFailure(exit)
            ? Option.getOrUndefined(Cause.failureOption(exit.cause))
            : undefined
        assert.deepInclude(failure, { _tag: "InteractionTimedOut", by: "main", after: millis })
        assert.deepStrictEqual(yield* person.open, [], "the person's dialog has closed")
        assert.deepStrictEqual(about(request.requestId), ["InteractionRequested", "InteractionTimedOut"])
        assert.deepStrictEqual(waiting(), [])
      })
    )
  }

  it.scoped("gives a form its time for each of its questions", () =>
    Effect.gen(function* () {
      const { bridge, person } = yield* family({ timeouts: { clarification: "10 seconds" } })
      const asking = yield* Effect.fork(
        bridge.request(yield* InteractionSample.request(InteractionSample.samples.Clarify.interaction))
      )
      yield* person.next
      yield* TestClock.adjust("19 seconds")
      assert.strictEqual((yield* person.open).length, 1)
      yield* TestClock.adjust("1 second")
      const exit = yield* Fiber.await(asking)
      assert.isTrue(Exit.isFailure(exit))
    })
  )

  it.scoped("takes back what its asker does not want any more, also what nobody was shown yet", () =>
    Effect.gen(function* () {
      const { about, bridge, broker, person, waiting } = yield* family()
      const requests = yield* Effect.forEach(["Approve", "Approve", "Ask"] as const, (kind) =>
        InteractionSample.request(InteractionSample.samples[kind].interaction)
      )
      const asking = yield* Effect.forEach(requests, (request) => Effect.fork(bridge.request(request)))
      yield* Recorder.settle
      yield* Fiber.interruptAll(asking)
      yield* Recorder.settle
      assert.deepStrictEqual(yield* person.open, [])
      assert.deepStrictEqual(yield* broker.open, [])
      assert.deepStrictEqual(waiting(), [])
      const told = requests.map(({ requestId }) => about(requestId))
      for (const tags of told) {
        assert.include(
          [JSON.stringify([]), JSON.stringify(["InteractionRequested", "InteractionCancelled"])],
          JSON.stringify(tags)
        )
      }
      assert.strictEqual((yield* person.shown).length >= 1, true)
    })
  )

  it.scoped("lets its asker go on once the question is withdrawn everywhere, however deep it came from", () =>
    Effect.gen(function* () {
      const { about, bridge, bus, person } = yield* family()
      const asked = yield* InteractionSample.request(InteractionSample.samples.Approve.interaction)
      let above: Interactor.Service = bridge
      for (let depth = 0; depth < 5; depth++) {
        const { requests, childPort: port } = yield* Inbox.make()
        yield* Mediator.start({
          requests,
          interactor: above,
          origin: Origin.outside,
          bus,
          redactor: Redaction.shapesOnly
        })
        above = ParentBridgedChannel.make({ parent: `depth ${depth}`, port })
      }
      const asking = yield* Effect.fork(above.request(asked))
      yield* person.next
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(about(asked.requestId), ["InteractionRequested", "InteractionCancelled"])
    })
  )

  it.scoped("lets its asker go on where nobody mediates any more", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { bridge } = yield* Scope.extend(family(), scope)
      yield* Scope.close(scope, Exit.void)
      const asked = yield* InteractionSample.request(InteractionSample.samples.Approve.interaction)
      const asking = yield* Effect.fork(bridge.request(asked))
      yield* Recorder.settle
      assert.isTrue(Exit.isInterrupted(yield* Fiber.interrupt(asking)))
    })
  )

  it.scoped("tells its asker when the parent's mediator ends under it", () =>
    Effect.gen(function* () {
      const asking = yield* Effect.scoped(
        Effect.gen(function* () {
          const { bridge, person } = yield* family()
          const request = yield* InteractionSample.request(InteractionSample.samples.Approve.interaction)
          const asking = yield* Effect.forkDaemon(bridge.request(request))
          yield* person.next
          return asking
        })
      )
      const exit = yield* Fiber.await(asking)
      const failure = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.failureOption(exit.cause)) : undefined
      assert.include(["InteractorUnavailable", "InteractionCancelled"], failure?._tag)
    })
  )
})
