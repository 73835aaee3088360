import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import type { Interaction } from "../../src/interaction/Interaction.js"
import * as InteractionBroker from "../../src/broker/InteractionBroker.js"
import {
  InteractionCancelled,
  InteractionTimedOut,
  InteractorUnavailable
} from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import type * as Interactor from "../../src/interaction/Interactor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Recorder from "../kit/Recorder.js"

const approve = InteractionSample.samples.Approve.interaction
const yes = { decision: "allow", scope: "once" } as const

const setup = (options: QueueChannel.Options = {}) =>
  Effect.gen(function* () {
    const recorder = yield* Recorder.make()
    const broker = yield* InteractionBroker.make({ bus: recorder.bus })
    const open = (id: string, own: QueueChannel.Options = {}) =>
      QueueChannel.make({ id, dialogs: "unbounded", timeouts: {}, ...options, ...own })
    return { ...recorder, broker, open }
  })

const ask = (
  broker: InteractionBroker.Service,
  request: InteractionRequest<Interaction>,
  options?: Interactor.Options<Interaction>
) => Effect.fork(Effect.exit(broker.interactor.request(request, options)))

const tags = (events: ReadonlyArray<{ readonly _tag: string }>) => events.map(({ _tag }) => _tag)

describe("a question that is posted", () => {
  it.scoped("stays with the others when one of them throws", () =>
    Effect.gen(function* () {
      const { broker, events, open } = yield* setup()
      const broken: Interactor.Service = {
        id: "broken",
        relay: false,
        request: () => {
          throw new Error("out of order")
        }
      }
      yield* broker.attach(broken)
      const sound = yield* open("sound")
      yield* broker.attach(sound.interactor)
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      assert.deepStrictEqual(yield* sound.take, QueueChannel.Opened({ request }))
      yield* sound.answer(request.requestId, yes)
      assert.deepStrictEqual(
        yield* Fiber.join(asking),
        Exit.succeed({ answer: yes, by: "sound", how: "answered" as const })
      )
      yield* Recorder.settle
      assert.deepStrictEqual(tags(events), ["InteractionRequested", "InteractorFailed", "InteractionAnswered"])
    })
  )

  it.scoped("is answered in the step in which the channel is, and closed for the others", () =>
    Effect.gen(function* () {
      const { broker, events, open } = yield* setup()
      const [first, second] = [yield* open("first"), yield* open("second")]
      yield* broker.attach(first.interactor)
      yield* broker.attach(second.interactor)
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      assert.deepStrictEqual(yield* first.take, QueueChannel.Opened({ request }))
      assert.deepStrictEqual(yield* second.take, QueueChannel.Opened({ request }))
      yield* first.answer(request.requestId, yes)
      assert.deepStrictEqual(yield* broker.open, [], "nothing has to run for the answer to count")
      // In the same moment, before the other dialog is closed.
      yield* second.answer(request.requestId, yes)
      assert.deepStrictEqual(
        yield* Fiber.join(asking),
        Exit.succeed({ answer: yes, by: "first", how: "answered" as const })
      )
      yield* Recorder.settle
      assert.deepStrictEqual(tags(events), ["InteractionRequested", "LateAnswer", "InteractionAnswered"])
      assert.deepStrictEqual([yield* first.open, yield* second.open], [[], []])
    })
  )

  it.scoped("is closed in every channel when whoever asked goes away", () =>
    Effect.gen(function* () {
      const { broker, open } = yield* setup()
      const channel = yield* open("queue")
      yield* broker.attach(channel.interactor)
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* channel.take
      yield* Fiber.interrupt(asking)
      const { requestId } = request
      assert.deepStrictEqual(yield* channel.take, QueueChannel.Closed({ requestId, status: "cancelled" }))
      assert.deepStrictEqual([yield* channel.open, yield* broker.open], [[], []])
    })
  )

  it.scoped("is left to the others when a channel is detached, and ends with the last one", () =>
    Effect.gen(function* () {
      const { broker, open } = yield* setup()
      const [scope, channel, other] = [yield* Scope.make(), yield* open("gone"), yield* open("other")]
      yield* Scope.extend(broker.attach(channel.interactor), scope)
      yield* broker.attach(other.interactor)
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* other.take
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* channel.open, [])
      assert.deepStrictEqual(yield* broker.open, [request])
      yield* other.cancel(request.requestId)
      const cancelled = new InteractionCancelled({ requestId: request.requestId, by: "other" })
      assert.deepStrictEqual(yield* Fiber.join(asking), Exit.fail(cancelled))
    })
  )

  it.scoped("fails when its time is up, and tells who let it", () =>
    Effect.gen(function* () {
      const { broker, events, open } = yield* setup({ timeouts: { permission: "30 seconds" } })
      const channel = yield* open("queue")
      yield* broker.attach(channel.interactor)
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      yield* TestClock.adjust("1 hour")
      yield* channel.take
      yield* TestClock.adjust("30 seconds")
      const late = new InteractionTimedOut({ requestId: request.requestId, by: "queue", after: 30_000 })
      assert.deepStrictEqual(yield* Fiber.join(asking), Exit.fail(late))
      assert.include(tags(events), "InteractorFailed")
    })
  )

  it.scoped("fails when the only channel is closed before it, or crashes", () =>
    Effect.gen(function* () {
      const { broker, open } = yield* setup()
      const scope = yield* Scope.make()
      const closed = yield* Scope.extend(open("closed"), scope)
      yield* Scope.close(scope, Exit.void)
      const broken: Interactor.Service = {
        ...closed.interactor,
        id: "broken",
        request: () => Effect.dieMessage("broken")
      }
      const request = yield* InteractionSample.request(approve)
      const { requestId } = request
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* broker.attach(closed.interactor)
          const failure = new InteractorUnavailable({ requestId, by: "closed", reason: "it was closed" })
          assert.deepStrictEqual(yield* Effect.exit(broker.interactor.request(request)), Exit.fail(failure))
        })
      )
      yield* broker.attach(broken)
      const crashed = new InteractorUnavailable({ requestId, by: "broken", reason: "it crashed" })
      assert.deepStrictEqual(yield* Effect.exit(broker.interactor.request(request)), Exit.fail(crashed))
    })
  )

  it.scoped("is put to a copy of the channel that asks in its own way, never past it", () =>
    Effect.gen(function* () {
      const { broker, open } = yield* setup()
      const channel = yield* open("queue")
      const refuses: Interactor.Service["request"] = ({ requestId }) =>
        new InteractorUnavailable({ requestId, by: "queue", reason: "it refuses" })
      yield* broker.attach({ ...channel.interactor, request: refuses })
      const request = yield* InteractionSample.request(approve)
      const exit = yield* Effect.exit(broker.interactor.request(request))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(yield* channel.open, [])
    })
  )

  it.scoped("is not shown when the answer is known by the time it has the slot", () =>
    Effect.gen(function* () {
      const { broker, open } = yield* setup()
      const channel = yield* open("queue")
      yield* broker.attach(channel.interactor)
      const request = yield* InteractionSample.request(approve)
      const recheck = Effect.succeed(Option.some(yes))
      const exit = yield* Effect.exit(broker.interactor.request(request, { recheck }))
      assert.deepStrictEqual(exit, Exit.succeed({ answer: yes, by: "policy", how: "recheck" }))
      assert.deepStrictEqual(yield* channel.open, [])
    })
  )

  it.scoped("waits for its turn in a channel of one dialog, and is not shown when it is known by then", () =>
    Effect.gen(function* () {
      const { broker, bus, open } = yield* setup()
      const other = yield* InteractionBroker.make({ bus })
      const channel = yield* open("queue", { dialogs: "one" })
      yield* broker.attach(channel.interactor)
      yield* other.attach(channel.interactor)
      const requests = yield* Effect.replicateEffect(InteractionSample.request(approve), 3)
      const [first, second, third] = [requests[0], requests[1], requests[2]]
      assert(first !== undefined && second !== undefined && third !== undefined)
      let isKnown = false
      const recheck = Effect.sync(() => (isKnown ? Option.some(yes) : Option.none()))
      yield* ask(broker, first)
      yield* Recorder.settle
      const known = yield* ask(other, second, { recheck })
      yield* Recorder.settle
      const last = yield* ask(broker, third)
      yield* Recorder.settle
      assert.deepStrictEqual(yield* channel.open, [first], "one dialog at a time, whoever asks")
      isKnown = true
      yield* channel.answer(first.requestId, yes)
      assert.deepStrictEqual(
        yield* Fiber.join(known),
        Exit.succeed({ answer: yes, by: "policy", how: "recheck" as const })
      )
      yield* Recorder.settle
      assert.deepStrictEqual(yield* channel.open, [third])
      yield* channel.answer(third.requestId, yes)
      assert.isTrue(Exit.isSuccess(yield* Fiber.join(last)))
    })
  )

  for (const [how, end] of [
    ["withdrawn", (asking: Fiber.RuntimeFiber<unknown, unknown>) => Fiber.interrupt(asking)],
    ["left to nobody", (_: unknown, attached: Scope.CloseableScope) => Scope.close(attached, Exit.void)]
  ] as const) {
    it.scoped(`gives its turn in a channel of one dialog on when it is ${how}`, () =>
      Effect.gen(function* () {
        const { broker, bus, open } = yield* setup()
        const [other, attached] = [yield* InteractionBroker.make({ bus }), yield* Scope.make()]
        const channel = yield* open("queue", { dialogs: "one" })
        yield* Scope.extend(broker.attach(channel.interactor), attached)
        yield* other.attach(channel.interactor)
        const [first, second] = [yield* InteractionSample.request(approve), yield* InteractionSample.request(approve)]
        const asking = yield* ask(broker, first)
        yield* Recorder.settle
        const waiting = yield* ask(other, second)
        yield* Recorder.settle
        yield* end(asking, attached)
        yield* Recorder.settle
        assert.deepStrictEqual(yield* channel.open, [second])
        yield* channel.answer(second.requestId, yes)
        assert.isTrue(Exit.isSuccess(yield* Fiber.join(waiting)))
      })
    )
  }

  it.scoped("leaves the slot to the next one when a step of it crashes, before or after it was shown", () =>
    Effect.gen(function* () {
      const { broker, open } = yield* setup()
      const channel = yield* open("queue")
      yield* broker.attach(channel.interactor)
      const crash = (): never => {
        throw new Error("broken")
      }
      const broken: ReadonlyArray<Interactor.Options<Interaction>> = [
        { recheck: Effect.dieMessage("broken") },
        { recheck: Effect.sync(crash) },
        { withdrawn: crash }
      ]
      for (const options of broken) {
        const asking = yield* ask(broker, yield* InteractionSample.request(approve), options)
        yield* Recorder.settle
        yield* Fiber.interrupt(asking)
      }
      assert.deepStrictEqual([yield* channel.open, yield* broker.open], [[], []])
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* Recorder.settle
      yield* channel.answer(request.requestId, yes)
      assert.isTrue(Exit.isSuccess(yield* Fiber.join(asking)))
    })
  )

  it.scoped("that grants nothing takes no slot, and leaves none", () =>
    Effect.gen(function* () {
      const { broker, open } = yield* setup()
      const channel = yield* open("queue")
      yield* broker.attach(channel.interactor)
      const [first, second] = [yield* InteractionSample.request(approve), yield* InteractionSample.request(approve)]
      const confirm = yield* InteractionSample.request(InteractionSample.samples.Confirm.interaction)
      yield* ask(broker, first)
      yield* Recorder.settle
      yield* ask(broker, second)
      const confirming = yield* ask(broker, confirm)
      yield* Recorder.settle
      assert.deepStrictEqual(yield* channel.open, [first, confirm])
      yield* channel.answer(confirm.requestId, true)
      yield* Fiber.join(confirming)
      yield* Effect.zipRight(ask(broker, yield* InteractionSample.request(approve)), Recorder.settle)
      assert.deepStrictEqual(yield* channel.open, [first])
      yield* channel.answer(first.requestId, yes)
      yield* Recorder.settle
      assert.deepStrictEqual(yield* channel.open, [second])
    })
  )

  it.scoped("can be interrupted while it waits, and only there, by whoever masks the rest", () =>
    Effect.gen(function* () {
      const { broker, open } = yield* setup()
      const channel = yield* open("queue")
      yield* broker.attach(channel.interactor)
      const request = yield* InteractionSample.request(approve)
      let saw: Exit.Exit<unknown, unknown> | undefined
      const asking = yield* Effect.fork(
        Effect.uninterruptibleMask((restore) => {
          const asked = restore(InteractorCall.ask(broker.interactor, request, {}))
          return Effect.map(Effect.exit(asked), (exit) => {
            saw = exit
          })
        })
      )
      yield* channel.take
      yield* Fiber.interrupt(asking)
      assert.isTrue(saw !== undefined && Exit.isInterrupted(saw))
      assert.deepStrictEqual([yield* channel.open, yield* broker.open], [[], []])
    })
  )

  it.scoped("is told its end by the first of those who end it", () =>
    Effect.gen(function* () {
      const { broker, events, open } = yield* setup()
      const channel = yield* open("queue")
      yield* broker.attach(channel.interactor)
      const request = yield* InteractionSample.request(approve)
      const asking = yield* ask(broker, request)
      yield* channel.take
      yield* broker.answer(request.requestId, "rest", yes)
      assert.isFalse(yield* broker.cancel(request.requestId, "rest"))
      yield* Effect.ignore(channel.cancel(request.requestId))
      assert.deepStrictEqual(
        yield* Fiber.join(asking),
        Exit.succeed({ answer: yes, by: "rest", how: "answered" as const })
      )
      assert.deepStrictEqual(
        tags(events).filter((tag) => tag !== "LateAnswer"),
        ["InteractionRequested", "InteractionAnswered"]
      )
    })
  )
})
