import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Model from "../../src/model/Model.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as WholeAnswer from "../../src/model/WholeAnswer.js"
import * as Kit from "../kit/session.js"
import { wrapped } from "../kit/Wrapping.js"

const request: Model.Request = { prompt: Prompt.empty, tools: [], agent: "main", sessionId: "ses_1" }
const said = (text: string): ReadonlyArray<Model.Part> => [Kit.text(text), Kit.finish()]

const textOf = (kit: Kit.Started) => Kit.outline(kit.agent.history.messages).at(-1)

describe("a model made of its answers", () => {
  it.effect("streams what it answers, as often as it is asked", () =>
    Effect.gen(function* () {
      let asked = 0
      const about: Required<Omit<Model.Service, "stream">> = {
        id: "own/whole",
        contextWindow: 7,
        inputs: ["image/png"],
        outputSchemas: "always"
      }
      const model = Model.fromAnswer({
        ...about,
        // Not an array: anything that can be gone through.
        answer: ({ agent }) => Effect.sync(() => new Set(said(`${agent} ${++asked}`)))
      })
      assert.deepInclude(model, about)
      const stream = model.stream(request)
      assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(stream)), said("main 1"))
      assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(stream)), said("main 2"))
    })
  )

  it.effect("fails and crashes as its answers do", () =>
    Effect.gen(function* () {
      const refused = new Model.Refused({ model: "own/whole", message: "no" })
      const failing = Model.fromAnswer({ id: "own/whole", answer: () => Effect.fail(refused) })
      assert.strictEqual(yield* Effect.flip(Stream.runDrain(failing.stream(request))), refused)
      const crashing = Model.fromAnswer({
        id: "own/whole",
        answer: () => {
          throw new Error("out of order")
        }
      })
      const exit = yield* Effect.exit(Stream.runDrain(crashing.stream(request)))
      assert.include(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", "out of order")
    })
  )

  it.scoped("is asked for its whole answer by a turn, which gets what the stream would say", () =>
    Effect.gen(function* () {
      let asked: Model.Request | undefined
      const model = Model.fromAnswer({
        id: "own/whole",
        answer: (request) => {
          asked = request
          return Effect.succeed(said("whole"))
        }
      })
      const kit = yield* Kit.start({ model })
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      assert.strictEqual(textOf(kit), "assistant: whole")
      assert.strictEqual(asked?.agent, "main")
      assert.strictEqual(asked?.sessionId, (yield* kit.events)[0]?.sessionId)
      assert.isAbove(asked?.tools.length ?? 0, 0)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("that fails for a while is asked again", () =>
    Effect.gen(function* () {
      let asked = 0
      const model = Model.fromAnswer({
        id: "own/whole",
        answer: () =>
          ++asked === 1
            ? Effect.fail(new Model.Network({ model: "own/whole", message: "gone" }))
            : Effect.succeed(said("back"))
      })
      const kit = yield* Kit.start({ model })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* running)._tag, "Completed")
      assert.deepStrictEqual([asked, textOf(kit)], [2, "assistant: back"])
    })
  )
})

describe("a model that is wrapped", () => {
  const models: ReadonlyArray<readonly [string, () => Model.Service]> = [
    ["answers", () => Model.fromAnswer({ id: "own/whole", answer: () => Effect.succeed(said("past the wrapper")) })],
    ["a script", () => ScriptedModel.make({ agents: { main: [{ text: "past the wrapper" }] } })]
  ]
  for (const [name, make] of models) {
    const ways = wrapped(make(), "stream", () => Stream.fromIterable(said("by the wrapper")))
    assert.isAtLeast(ways.length, 5)
    for (const [way, model] of ways) {
      it.scoped(`of ${name}, by ${way}, is asked through the wrapper`, () =>
        Effect.gen(function* () {
          assert.isUndefined(WholeAnswer.of(model.stream))
          const kit = yield* Kit.start({ model })
          assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
          assert.strictEqual(textOf(kit), "assistant: by the wrapper")
        })
      )
    }

    it(`of ${name}, by a copy that asks as before, answers as before`, () => {
      const model = make()
      assert.isDefined(WholeAnswer.of(model.stream))
      assert.isDefined(WholeAnswer.of({ ...model, id: "other/name" }.stream))
    })
  }
})
