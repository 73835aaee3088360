import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as HashSet from "effect/HashSet"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as TestAgent from "../../src/testing/TestAgent.js"
import { allowAll } from "../kit/agents.js"

class Directory extends Context.Tag("Directory")<
  Directory,
  {
    readonly idOf: (name: string) => Effect.Effect<number, string>
    readonly nameOf: (id: number) => Effect.Effect<string>
  }
>() {}

/** A name outside, and the number of whoever has it inside. */
const Person = Schema.transformOrFail(Schema.String, Schema.Number, {
  strict: true,
  decode: (name, _, ast) =>
    Effect.gen(function* () {
      const directory = yield* Directory
      return yield* directory.idOf(name)
    }).pipe(Effect.mapError((why) => new ParseResult.Type(ast, name, why))),
  encode: (id) => Effect.flatMap(Directory, (directory) => directory.nameOf(id))
})

const Pay = Tool.make("pay", { parameters: { to: Person }, success: Person, failure: Schema.Struct({ by: Person }) })
const toolkit = Toolkit.make(Pay)

/** What the model and the log are told of calls with these names. */
const told = (directory: Directory["Type"], ...names: ReadonlyArray<string>) => {
  const logged: Array<string> = []
  const logger = Logger.make(({ cause }) => logged.push(String(cause)))
  return Effect.gen(function* () {
    const { agent, events } = yield* TestAgent.start()
    const end = yield* agent.run("go")
    assert.strictEqual(end._tag, "Completed")
    const outcomes = (yield* events).flatMap((event) => (event._tag === "ToolCallEnded" ? event.outcome : []))
    const results = agent.history.messages.flatMap((message) =>
      message.role === "tool" ? message.content.map(({ result }) => result) : []
    )
    return { logged, outcomes, results }
  }).pipe(
    Effect.scoped,
    Effect.provide(
      TestAgent.layer({
        toolkit,
        policy: allowAll,
        script: [{ tools: names.map((to) => ({ name: "pay", params: { to } })) }, { text: "done" }]
      })
    ),
    Effect.provide(
      toolkit
        .toLayer({ pay: ({ to }) => (to === 2 ? Effect.fail({ by: to }) : Effect.succeed(to)) })
        .pipe(Layer.provideMerge(Layer.succeed(Directory, directory)))
    ),
    Effect.locally(FiberRef.currentLoggers, HashSet.make(logger))
  )
}

const ids = new Map([
  ["ada", 1],
  ["bob", 2]
])
const idOf = (name: string) => {
  const id = ids.get(name)
  return id === undefined ? Effect.fail(`nobody is called ${name}`) : Effect.succeed(id)
}
const nameOf = (id: number) => Effect.succeed(id === 1 ? "ada" : "bob")

describe("schemas of a tool", () => {
  it.effect("use the services that the tool requires, also by an effect of several steps", () =>
    Effect.gen(function* () {
      const { outcomes, results } = yield* told({ idOf, nameOf }, "ada", "bob", "eve")
      assert.deepStrictEqual([...outcomes].sort(), ["failed", "invalid", "succeeded"])
      assert.deepStrictEqual(results.slice(0, 2), ["ada", { by: "bob" }])
      assert.match(String(results[2]), /^Invalid arguments for pay: [^]*nobody is called eve$/)
    })
  )

  it.effect("that wait while they decode make the call fail, and the log says what to do", () =>
    Effect.gen(function* () {
      const { logged, outcomes, results } = yield* told({ idOf: () => Effect.never, nameOf }, "ada")
      assert.deepStrictEqual(outcomes, ["failed"])
      assert.deepStrictEqual(results, ["pay crashed. The log has the reason."])
      assert.match(logged.join("\n"), /it waits: what waits belongs into the handler/)
    })
  )

  it.effect("that wait while they encode say so in the log", () =>
    Effect.gen(function* () {
      const { logged, outcomes, results } = yield* told({ idOf, nameOf: () => Effect.never }, "ada")
      assert.deepStrictEqual(outcomes, ["failed"])
      assert.match(String(results[0]), /^pay ran, and its result does not fit its schema/)
      assert.match(logged.join("\n"), /it waits: what waits belongs into the handler/)
    })
  )

  it.effect("that crash make the call fail, with the crash in the log", () =>
    Effect.gen(function* () {
      const { logged, outcomes, results } = yield* told(
        { idOf: () => Effect.dieMessage("no directory"), nameOf },
        "ada"
      )
      assert.deepStrictEqual(outcomes, ["failed"])
      assert.deepStrictEqual(results, ["pay crashed. The log has the reason."])
      assert.match(logged.join("\n"), /no directory/)
    })
  )
})
