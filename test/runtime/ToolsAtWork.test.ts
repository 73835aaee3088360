/** Who is about to halt waits for what works, and for nothing that waits itself. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { Confirm } from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"

const work = (name: string) => ({ name: "work", id: `call_${name}`, params: { name } })

/** A tool that asks without saying so in its type; the session's interactor is there all the same. */
const asking = Effect.gen(function* () {
  const interactor = yield* Interactor.current as Effect.Effect<Interactor.Service>
  const request = Interactor.ask(new Confirm({ prompt: "Sure?", default: false }))
  return yield* Interactor.withInteractor(interactor)(request)
}).pipe(Effect.orDie)

describe("Agent.awaitTools", () => {
  it.scoped("waits for a tool that was allowed while its neighbour is asked about", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: [{ tools: [work("a"), work("b")] }, { text: "done" }],
        runtime: { policy: PermissionFile.policy({}) },
        person: ["y", TestInteractor.silent],
        worker: (name) => Effect.as(Deferred.await(gate), name)
      })
      yield* kit.agent.send("go")
      yield* kit.person.next
      yield* kit.person.next
      const halting = yield* Effect.fork(Effect.zipRight(kit.agent.awaitTools, kit.agent.halt("nobody is there")))
      yield* settle
      assert.isTrue(Option.isNone(yield* Fiber.poll(halting)), "the tool runs")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(halting)
      assert.strictEqual(kit.results()[0], "a")
      assert.deepStrictEqual(
        (yield* kit.of("ToolCallEnded")).map(({ outcome }) => outcome),
        ["succeeded", "cancelled"]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("does not wait for a tool that asks, also when it begins to ask later", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: [{ tools: [work("a")] }, { text: "done" }],
        person: () => TestInteractor.silent,
        worker: (name) => Effect.zipRight(Deferred.await(gate), Effect.as(asking, name))
      })
      yield* kit.agent.send("go")
      yield* settle
      const waiting = yield* Effect.fork(kit.agent.awaitTools)
      yield* settle
      assert.isTrue(Option.isNone(yield* Fiber.poll(waiting)), "it does not ask yet")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(waiting)
      yield* kit.agent.awaitTools
      yield* kit.agent.cancel()
    })
  )

  it.scoped("has nothing to wait for where nothing runs", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "done" }] })
      yield* kit.agent.awaitTools
      yield* kit.agent.run("go")
      yield* kit.agent.awaitTools
    })
  )
})
