/** The kit for models: ours pass it, and a broken one is told what is wrong. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import * as Model from "../../src/model/Model.js"
import * as OfflineModel from "../../src/model/OfflineModel.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as ModelSuite from "../../src/testing/ModelSuite.js"
import * as ModelSample from "../kit/ModelSample.js"

const scripted = (step: ScriptedModel.Step) => Effect.sync(() => ScriptedModel.make({ agents: { main: [step] } }))

const models: { readonly [name: string]: ModelSuite.Options } = {
  OfflineModel: {
    fresh: Effect.sync(() => OfflineModel.make()),
    calling: { question: "read README.md and read package.json", tools: ModelSample.tools }
  },
  "ScriptedModel, streaming": {
    fresh: scripted({ text: "Hello, Ada.", thinking: "Who is it?", chunks: 3 }),
    failing: { fresh: scripted({ error: "overloaded" }) }
  },
  "ScriptedModel, calling": {
    fresh: scripted({ text: "Let me.", tools: [{ name: "now" }, { name: "now" }] }),
    calling: { question: "What time is it?", tools: ModelSample.tools }
  }
}

for (const [name, options] of Object.entries(models)) {
  describe(name, () => {
    for (const { check, name } of ModelSuite.make(options)) it(name, () => Effect.runPromise(check))
  })
}

const finish: Model.Part = {
  type: "finish",
  reason: "stop",
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
}
const words: ReadonlyArray<Model.Part> = [
  { type: "text-start", id: "1" },
  { type: "text-delta", id: "1", delta: "Hello." },
  { type: "text-end", id: "1" }
]
const call = (id: string, name = "now"): Model.Part => ({ type: "tool-call", id, name, params: {} })

const saying = (...parts: ReadonlyArray<Model.Part>): Model.Service => ({
  id: "own/model",
  stream: () => Stream.fromIterable(parts)
})

describe("a broken model", () => {
  const calling = { question: "What time is it?", tools: ModelSample.tools }
  const broken: {
    readonly [says: string]: Omit<ModelSuite.Options, "fresh"> & { readonly make: () => Model.Service }
  } = {
    "Its id is provider/model": { make: () => ({ ...saying(...words, finish), id: "mine" }) },
    "An answer ends with its only finish part; here it is: text-start, text-delta, text-end.": {
      make: () => saying(...words)
    },
    'The parts are out of order: text-delta came for "2", which was not started': {
      make: () => saying({ type: "text-delta", id: "2", delta: "!" }, ...words, finish)
    },
    "The parts are out of order: text-start 1 has no end": { make: () => saying(...words.slice(0, 2), finish) },
    "An answer has words or calls": { make: () => saying(finish) },
    'Each call has an id of its own; here they are: "a", "a"': {
      make: () => saying(call("a"), call("a"), finish),
      calling
    },
    "It called rm, and was offered": { make: () => saying(call("a", "rm"), finish), calling },
    "A stream is a description that can be run again; the second run gave: nothing": {
      make: () => {
        const parts = [...words, finish][Symbol.iterator]()
        return { id: "own/model", stream: () => Stream.fromIterable({ [Symbol.iterator]: () => parts }) }
      }
    },
    "Answers that were given at once are mixed up": {
      make: () => {
        let running = 0
        const part = () => (++running > 1 ? saying(finish) : saying(...words)).stream
        return { id: "own/model", stream: (request) => Stream.suspend(() => part()(request)) }
      }
    },
    "It changed the prompt": {
      make: () => ({
        id: "own/model",
        stream: ({ prompt }) =>
          Stream.suspend(() => {
            ;(prompt.content as Array<unknown>).push("hi")
            return Stream.fromIterable([...words, finish])
          })
      })
    },
    "A provider that fails is a ModelError; here it crashed": {
      make: () => saying(...words, finish),
      failing: { fresh: Effect.succeed({ id: "own/model", stream: () => Stream.die(new Error("503")) }) }
    },
    "Its error shows a secret": {
      make: () => saying(...words, finish),
      failing: {
        fresh: Effect.succeed({
          id: "own/model",
          stream: () => Stream.fail(new Model.Unauthorized({ model: "own/model", message: `no to ${ModelSample.key}` }))
        }),
        secrets: [ModelSample.key]
      }
    },
    "It hangs": { make: () => ({ id: "own/model", stream: () => Stream.never }) }
  }
  for (const [says, { make, ...options }] of Object.entries(broken)) {
    it.live(`is told: ${says}`, () =>
      Effect.gen(function* () {
        const within = says === "It hangs" ? "1 second" : "20 seconds"
        const kit = ModelSuite.make({ fresh: Effect.sync(make), within, ...options })
        const outcomes = yield* Effect.forEach(kit, ({ check }) => Effect.either(check), { concurrency: "unbounded" })
        const told = outcomes.flatMap((outcome) => (Either.isLeft(outcome) ? [outcome.left.message] : []))
        assert.isTrue(
          told.some((sentence) => sentence.startsWith(says)),
          told.join("\n")
        )
      })
    )
  }
})
