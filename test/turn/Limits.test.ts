import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentHandle from "../../src/runtime/AgentHandle.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Limits from "../../src/turn/Limits.js"
import * as Kit from "../kit/session.js"

const problemsOf = (given: unknown) =>
  Either.match(Effect.runSync(Effect.either(Limits.checked(given as Partial<Limits.Limits>))), {
    onLeft: ({ problems }) => problems,
    onRight: () => []
  })

const counts = [
  "maxSteps",
  "parallelTools",
  "callsPerStep",
  "identicalErrors",
  "inputFiles",
  "inputFileBytes",
  "inputTotalBytes",
  "maxGeneration",
  "maxResult",
  "modelAttempts"
]
const times = ["modelSilence", "retryDelay", "maxRetryDelay", "retryWithin", "stopWithin"]

describe("limits", () => {
  it("are all known here", () => {
    assert.deepStrictEqual([...counts, "outputRetries", ...times].sort(), Object.keys(Limits.defaults).sort())
    assert.deepStrictEqual(problemsOf(Limits.defaults), [])
  })

  for (const name of counts) {
    it(`${name} is a whole number from 1 up`, () => {
      for (const good of [1, 8, Infinity, undefined]) assert.deepStrictEqual(problemsOf({ [name]: good }), [])
      for (const bad of [0, -1, 1.5, NaN, -Infinity, "8", null, {}, [1], true, 8n]) {
        assert.strictEqual(problemsOf({ [name]: bad }).length, 1, String(bad))
      }
    })
  }

  it("outputRetries is a whole number from 0 up", () => {
    for (const good of [0, 1, Infinity]) assert.deepStrictEqual(problemsOf({ outputRetries: good }), [])
    for (const bad of [-1, 0.5, NaN, "0"]) {
      assert.deepStrictEqual(problemsOf({ outputRetries: bad }).length, 1, String(bad))
    }
  })

  for (const name of times) {
    it(`${name} is a time from zero up`, () => {
      for (const good of [0, 5, "5 seconds", Infinity, 7n, [1, 0]])
        assert.deepStrictEqual(problemsOf({ [name]: good }), [])
      for (const bad of [-1, NaN, "soon", "-5 seconds", null, {}, -7n, true]) {
        assert.strictEqual(problemsOf({ [name]: bad }).length, 1, String(bad))
      }
    })
  }

  it("tell all that is wrong at once", () => {
    const error = Effect.runSync(Effect.flip(Limits.checked({ parallelTools: 0, maxSteps: NaN, step: 1 } as never)))
    assert.strictEqual(
      error.message,
      "The limits cannot be used: parallelTools must be a whole number from 1 up, not 0; maxSteps must be a whole number " +
        "from 1 up, not NaN; there is no limit step."
    )
  })

  it("that are undefined have their defaults", () => {
    const given = { maxSteps: undefined, parallelTools: 2 } as unknown as Partial<Limits.Limits>
    assert.deepStrictEqual(Effect.runSync(Limits.checked(given)), { parallelTools: 2 })
  })

  it("of any kind are refused or work", () =>
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...counts, ...times), fc.anything()), (given) => {
        problemsOf(given)
      })
    ))

  const nonsense = { parallelTools: 0 }
  it.scoped("that make no sense are refused by an agent, a handle and a runtime, before anything is told", () =>
    Effect.gen(function* () {
      const runtime = yield* Kit.runtimeOf({ model: [] })
      const provided = Effect.provideService(AgentRuntime.AgentRuntime, runtime)
      const agent = yield* Effect.flip(provided(Agent.startWith([], { limits: nonsense })))
      assert.strictEqual(agent._tag, "LimitsInvalid")
      const { person } = yield* Kit.start({ model: [] })
      const asked = yield* Effect.flip(
        provided(AgentHandle.start({ limits: nonsense })).pipe(Interactor.withInteractor(person.interactor))
      )
      assert.strictEqual(asked._tag, "LimitsInvalid")
      const made = yield* Effect.flip(Kit.runtimeOf({ model: [], runtime: { limits: nonsense } }))
      assert.strictEqual(made._tag, "LimitsInvalid")
    })
  )
})
