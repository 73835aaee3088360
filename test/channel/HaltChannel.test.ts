import { assert, describe, it } from "@effect/vitest"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Delegate from "../../src/builtin/Delegate.js"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import type { TurnEnd } from "../../src/event/TurnEnd.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as SubagentProfile from "../../src/subagent/SubagentProfile.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
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
        assert.match(record.hint, /Attach a channel/)
        assert.notMatch(record.hint, /--|assent /)
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
      const denied = yield* InteractorCall.ask(
        interactor,
        yield* InteractionSample.request(InteractionSample.samples.grantStageTool.interaction)
      )
      assert.strictEqual(denied.answer.outcome, "deny")
      assert.strictEqual(denied.how, "auto")
      yield* Fiber.interrupt(waiting)
    })
  )
})

const toolkit = Toolkit.make(
  Tool.make("pay", { success: Schema.String }),
  Tool.make("slow", { success: Schema.String })
)

const halting = (work: Effect.Effect<string>) => {
  const family = Toolkit.merge(toolkit, Delegate.toolkit)
  const runtime = TestAgent.layerRuntime({
    toolkit: family,
    policy: Policy.make({ whitelist: { tools: ["slow", "delegate"] } }),
    subagents: { profiles: [SubagentProfile.make({ name: "payer", description: "Pays", plugins: ["pay"] })] },
    script: {
      agents: {
        main: [{ tools: [{ name: "slow" }, { name: "pay" }] }, { text: "Paid." }],
        chief: [{ tools: [{ name: "delegate", params: { profile: "payer", task: "Pay." } }] }, { text: "Paid." }],
        payer: [{ tools: [{ name: "pay" }] }, { text: "Paid." }]
      }
    }
  })
  const handlers = toolkit.toLayer({ pay: () => Effect.die("nobody allowed it"), slow: () => work })
  return Layer.merge(Layer.provide(runtime, [handlers, Delegate.layer]), HaltChannel.layer)
}

const isHaltedAtApproval = (end: TurnEnd) => {
  assert(end._tag === "Halted", JSON.stringify(end))
  assert.match(end.detail, /^Approve needs an answer\. No person can approve pay\./)
}

describe("an agent with a HaltChannel", () => {
  it.scoped("ends its turn as halted by itself, once the tools that run have ended, and stays usable", () =>
    Effect.gen(function* () {
      const done = yield* Deferred.make<string>()
      yield* Effect.gen(function* () {
        const agent = yield* Agent.start()
        const running = yield* Effect.fork(agent.run("Pay."))
        const { halted } = yield* HaltChannel.HaltChannel
        yield* Deferred.await(halted)
        yield* Effect.repeatN(Effect.yieldNow(), 10)
        assert.isTrue(Option.isNone(yield* Fiber.poll(running)))
        yield* Deferred.succeed(done, "It took long.")
        isHaltedAtApproval(yield* Fiber.join(running))
        assert.include(JSON.stringify(agent.history.messages), "It took long.")
        assert.strictEqual((yield* agent.run("And now?"))._tag, "Completed")
      }).pipe(Effect.provide(halting(Deferred.await(done))))
    })
  )

  it.scoped("halts also beside others that share the channel, for a subagent's question, and with a typed result", () =>
    Effect.gen(function* () {
      const agents = yield* Effect.forEach(["main", "chief", "main"], (name) => Agent.start({ name }))
      const ends = yield* Effect.forEach(agents, (agent) => agent.run("Pay.", { output: Schema.Int }), {
        concurrency: "unbounded"
      })
      for (const end of ends) isHaltedAtApproval(end)
      assert.lengthOf(ends, 3)
    }).pipe(Effect.provide(halting(Effect.succeed("done"))))
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
