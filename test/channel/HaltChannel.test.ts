import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Asking from "../../src/interaction/Asking.js"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import { interactorSuite } from "../suite/interactorSuite.js"

const others = InteractionSample.kinds.filter((kind) => kind !== "grantStageTool")

interactorSuite("HaltChannel", {
  claims: ["grantStageTool"],
  special: others,
  automatic: true,
  make: Effect.map(HaltChannel.make, ({ interactor }) => ({ interactor }))
})

interactorSuite("HaltChannel.yolo", {
  claims: InteractionSample.kinds.filter((kind) => !kind.startsWith("Auth.")),
  special: ["Auth.DeviceCode", "Auth.Password"],
  automatic: true,
  make: Effect.succeed({ interactor: HaltChannel.yolo })
})

describe("HaltChannel", () => {
  it.effect.each([...others])(
    "halts at %s, says what was asked and how to get it answered, and never answers",
    (kind) =>
      Effect.gen(function* () {
        const { halted, interactor } = yield* HaltChannel.make
        const request = yield* InteractionSample.request(InteractionSample.samples[kind].interaction)
        const asking = yield* Effect.fork(interactor.request(request))
        const record = yield* Deferred.await(halted)
        assert.strictEqual(record._tag, "InteractionRequired")
        assert.strictEqual(record.kind, kind)
        assert.strictEqual(record.requestId, request.requestId)
        assert.strictEqual(record.correlationId, request.correlationId)
        assert.include(record.hint, "--channel console")
        assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
        yield* Fiber.interrupt(asking)
      })
  )

  it.effect("keeps the first request that halted it, and lets later ones wait", () =>
    Effect.gen(function* () {
      const { halted, interactor } = yield* HaltChannel.HaltChannel
      const first = yield* InteractionSample.request(InteractionSample.samples.Approve.interaction)
      const second = yield* InteractionSample.request(InteractionSample.samples.Ask.interaction)
      const asking = yield* Effect.fork(interactor.request(first))
      yield* Deferred.await(halted)
      const waiting = yield* Effect.fork(interactor.request(second))
      yield* Effect.repeatN(Effect.yieldNow(), 10)
      assert.strictEqual((yield* Deferred.await(halted)).requestId, first.requestId)
      assert.isTrue(Option.isNone(yield* Fiber.poll(waiting)))
      yield* Fiber.interruptAll([asking, waiting])
    }).pipe(Effect.provide(HaltChannel.layer))
  )

  it.effect("denies a stage another tool at once, even while something else is waiting", () =>
    Effect.gen(function* () {
      const { halted, interactor } = yield* HaltChannel.make
      const waiting = yield* Effect.fork(
        interactor.request(yield* InteractionSample.request(InteractionSample.samples.Ask.interaction))
      )
      yield* Deferred.await(halted)
      const denied = yield* Asking.ask(
        interactor,
        yield* InteractionSample.request(InteractionSample.samples.grantStageTool.interaction)
      )
      assert.strictEqual(denied.answer.outcome, "deny")
      assert.strictEqual(denied.how, "auto")
      yield* Fiber.interrupt(waiting)
    })
  )
})

describe("HaltChannel.yolo", () => {
  it.effect("allows, confirms, takes the first choice and writes nothing", () =>
    Effect.gen(function* () {
      const { Approve, Ask, Clarify, Confirm, Select, approveSubagentEnvelope, grantStageTool } =
        InteractionSample.samples
      assert.deepStrictEqual(yield* Interactor.request(Approve.interaction), {
        answer: { decision: "allow", scope: "once" },
        by: "yolo",
        how: "yolo"
      })
      assert.strictEqual(yield* Interactor.ask(Confirm.interaction), true)
      assert.strictEqual((yield* Interactor.ask(grantStageTool.interaction)).outcome, "approve")
      assert.strictEqual((yield* Interactor.ask(approveSubagentEnvelope.interaction)).outcome, "approve")
      assert.strictEqual(yield* Interactor.ask(Select.interaction), 0)
      assert.strictEqual(yield* Interactor.ask(Ask.interaction), "")
      assert.deepStrictEqual(yield* Interactor.ask(Clarify.interaction), {
        "1": { selected: 2, text: "sqlite" },
        "2": { value: "" }
      })
    }).pipe(Effect.provide(HaltChannel.layerYolo))
  )

  it.effect("cancels signing in, so that it fails loudly", () =>
    Effect.gen(function* () {
      for (const kind of ["Auth.DeviceCode", "Auth.Password"] as const) {
        const request = yield* InteractionSample.request(InteractionSample.samples[kind].interaction)
        const failed = yield* Effect.flip(HaltChannel.yolo.request(request))
        assert.strictEqual(failed._tag, "InteractionCancelled")
      }
    })
  )
})
