import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Mediator from "../../src/bridge/Mediator.js"
import * as ParentBridgedChannel from "../../src/bridge/ParentBridgedChannel.js"
import * as InteractionBroker from "../../src/broker/InteractionBroker.js"
import * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as ChildRequestQueue from "../../src/inbox/ChildRequestQueue.js"
import * as Inbox from "../../src/inbox/Inbox.js"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import { InteractionCancelled } from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Recorder from "../kit/Recorder.js"

const { samples } = InteractionSample
const allow = { decision: "allow", scope: "once" } as const

/** A child below a parent that answers by a strategy, and a person behind the parent. */
const family = (strategy: Mediator.Strategy, script: TestInteractor.Options["script"] = []) =>
  Effect.gen(function* () {
    const { bus, events } = yield* Recorder.make()
    const broker = yield* InteractionBroker.make({ bus })
    const person = yield* TestInteractor.make({ script })
    yield* broker.attach(person.interactor)
    const parent = yield* Inbox.make()
    yield* Mediator.start({
      requests: parent.requests,
      interactor: broker.interactor,
      strategy,
      origin: Origin.outside,
      bus,
      redactor: Redaction.shapesOnly
    })
    const bridge = ParentBridgedChannel.make({ parent: "main", port: parent.childPort })
    return { bridge, events, person, port: parent.childPort }
  })

const reserved = (deny: "one" | "quorum" = "one") =>
  InteractionSample.request(
    Interaction.approve({
      ...samples.Approve.interaction,
      onceOnly: true,
      needs: { digest: "d", all: [{ quorum: 1, roles: ["ops"], members: ["person"], deny, rule: "deploy" }], votes: [] }
    })
  )

describe("a parent that decides for its children", () => {
  for (const { answer, what } of [
    { what: "allows everything", answer: allow },
    { what: "denies everything", answer: { decision: "deny", scope: "once" } as const }
  ]) {
    it.scoped(`and ${what} decides no call that a rule reserves for people`, () =>
      Effect.gen(function* () {
        const asked: Array<InteractionRequest> = []
        const { bridge, events, person } = yield* family(
          (request) => {
            asked.push(request)
            return Effect.succeedSome(answer)
          },
          [TestInteractor.answer(allow)]
        )
        const request = yield* reserved()
        const answered = yield* InteractorCall.ask(bridge, request)
        assert.deepInclude(answered, { answer: allow, by: "person", how: "answered" })
        assert.deepStrictEqual(asked, [], "the strategy is not asked")
        assert.lengthOf(yield* person.shown, 1)
        assert.deepStrictEqual(
          events.map(({ _tag }) => _tag),
          ["InteractionRequested", "InteractionVoted", "InteractionAnswered"]
        )
      })
    )
  }

  it.scoped("decides what no rule reserves, and nobody else is asked", () =>
    Effect.gen(function* () {
      const { bridge, events, person } = yield* family(() => Effect.succeedSome(allow))
      const answered = yield* InteractorCall.ask(bridge, yield* InteractionSample.request(samples.Approve.interaction))
      assert.deepStrictEqual(answered, { answer: allow, by: Origin.outside.agent, how: "answered" })
      assert.deepStrictEqual(yield* person.shown, [])
      assert.deepStrictEqual(
        events.map(({ _tag }) => _tag),
        ["InteractionRequested", "InteractionAnswered"]
      )
    })
  )

  it.scoped("passes on what it does not know, what does not fit and what crashes", () =>
    Effect.gen(function* () {
      const strategies: ReadonlyArray<Mediator.Strategy> = [
        Mediator.forward,
        Mediator.decide(() => Option.none()),
        () => Effect.succeedSome({ decision: "perhaps" }),
        () => Effect.dieMessage("broken"),
        () => Effect.interrupt,
        () => {
          throw new Error("broken")
        }
      ]
      for (const strategy of strategies) {
        const { bridge } = yield* family(strategy, [TestInteractor.answer(allow)])
        const asking = yield* Effect.fork(
          InteractorCall.ask(bridge, yield* InteractionSample.request(samples.Approve.interaction))
        )
        assert.deepStrictEqual(yield* Fiber.join(asking), { answer: allow, by: "person", how: "answered" })
      }
    })
  )

  it.scoped("takes back what it has answered, and what it never saw, at once", () =>
    Effect.gen(function* () {
      const { port } = yield* family(() => Effect.succeedSome(allow))
      const request = yield* InteractionSample.request(samples.Approve.interaction)
      const raised = new ChildRequestQueue.ChildRequest(request, {}, () => {})
      port.ask(raised)
      assert.deepStrictEqual((yield* raised.await).answer, allow)
      const why = new InteractionCancelled({ requestId: request.requestId })
      const withdrawn: Array<string> = []
      for (const id of [request.requestId, "req_unknown"]) port.withdraw(id, why).observe(() => withdrawn.push(id))
      yield* Recorder.settle
      assert.deepStrictEqual(withdrawn, [request.requestId, "req_unknown"])
    })
  )
})
