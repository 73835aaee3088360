import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Model from "../../src/model/Model.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as TypedOutput from "../../src/turn/TypedOutput.js"
import { noFiles } from "../kit/agents.js"
import { settle } from "../kit/Recorder.js"
import * as Runs from "../kit/Runs.js"
import * as Kit from "../kit/session.js"

const Verdict = Schema.Struct({ approved: Schema.Boolean, score: Schema.Int, on: Schema.Date })
const verdict = { approved: true, score: 7, on: "2026-01-02T00:00:00.000Z" }
const decoded = { approved: true, score: 7, on: new Date("2026-01-02T00:00:00.000Z") }

class Person extends Schema.Class<Person>("Person")({ name: Schema.String, born: Schema.Date }) {}

interface Tree {
  readonly label: string
  readonly under: ReadonlyArray<Tree>
}
const Tree: Schema.Schema<Tree> = Schema.Struct({
  label: Schema.String,
  under: Schema.Array(Schema.suspend(() => Tree))
}).annotations({ identifier: "Tree" })

const result = (params: unknown, name = "final_result"): Kit.Step => ({ tools: [{ name, params }] })
const work = (name: string) => ({ name: "work", params: { name } })

/** A model that plays these steps, and the requests it was given. */
const recorded = (steps: ReadonlyArray<Kit.Step>, outputSchemas?: Model.Service["outputSchemas"]) => {
  const requests: Array<Model.Request> = []
  const last: Array<string> = []
  const model: Model.Service = {
    id: "test/recorded",
    outputSchemas,
    stream: (request) =>
      Stream.suspend(() => {
        requests.push({ ...request, tools: [...request.tools] })
        last.push(JSON.stringify(request.prompt.content.at(-1)))
        return Kit.parts(steps[requests.length - 1] ?? { text: "no more replies" })
      })
  }
  return { model, requests, last }
}

describe("a typed result", () => {
  // First here: what is loaded late is loaded by the first one that a process asks for.
  it.scoped("is worked on in the order in which runs were asked for, also the first of a process", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: JSON.stringify(verdict) }, { text: "plain" }] })
      const [first, second] = yield* Effect.all(
        [kit.agent.run("first", { output: Verdict }), kit.agent.run("second")],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(first._tag === "Completed" ? first.value : first, decoded)
      assert.strictEqual(second._tag === "Completed" ? second.text : second._tag, "plain")
    })
  )

  it.scoped.each([
    ["through its tool", result(verdict)],
    ["as a text of JSON", { text: JSON.stringify(verdict) }],
    [
      "in a block between words",
      { text: `Here it is:\n\`\`\`json\n${JSON.stringify(verdict, null, 2)}\n\`\`\`\nDone.` }
    ],
    ["through its tool, streamed, after words", { ...result(verdict), text: "Let me see.", chunks: 5 }]
  ] as const)("is decoded when it comes %s", ([, step]) =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [step] })
      const end = yield* kit.agent.run("go", { output: Verdict })
      assert.strictEqual(end._tag, "Completed")
      assert.deepStrictEqual(end._tag === "Completed" ? end.value : end, decoded)
      assert.strictEqual(end.steps, 1)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("comes after other work, and its tool is never shown, asked about or counted", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: [work("a")] }, { ...result(verdict), chunks: 3 }],
        runtime: { policy: PermissionFile.defaults },
        person: ["y"]
      })
      const end = yield* kit.agent.run("go", { output: Verdict })
      assert.deepStrictEqual(end._tag === "Completed" ? end.value : end, decoded)
      const told = JSON.stringify(yield* kit.events)
      assert.notInclude(told, "final_result")
      assert.lengthOf(yield* kit.of("ToolArgumentsDelta"), 0)
      assert.strictEqual((yield* kit.of("ToolCallProposed")).length, 1)
      assert.isUndefined(kit.agent.tools.get("final_result"))
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("that comes beside other calls counts when the model gives it again, having seen what they did", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: [work("a"), ...(result({ ...verdict, score: 1 }).tools ?? [])] }, result(verdict)]
      })
      const end = yield* kit.agent.run("go", { output: Verdict })
      assert.deepStrictEqual(end._tag === "Completed" ? end.value : end, decoded)
      assert.deepStrictEqual(kit.results(), ["a"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("that does not fit is told to the model, which gives another", () =>
    Effect.gen(function* () {
      const { last, model } = recorded([result({ approved: "yes" }), { text: "It is fine." }, result(verdict)])
      const kit = yield* Kit.start({ model })
      const end = yield* kit.agent.run("go", { output: Verdict })
      assert.deepStrictEqual(end._tag === "Completed" ? end.value : end, decoded)
      assert.include(last[1], "approved")
      assert.include(last[1], "score")
      assert.include(last[2], "not JSON")
    })
  )

  it.scoped("that never fits fails the turn after the retries, with the issues and the text", () =>
    Effect.gen(function* () {
      const { model, requests } = recorded(Array.from({ length: 9 }, () => ({ text: '{"approved": 3}' })))
      const kit = yield* Kit.start({ model, agent: { limits: { outputRetries: 4 } } })
      const end = yield* kit.agent.run("go", { output: Verdict })
      assert.strictEqual(requests.length, 5)
      assert.strictEqual(end._tag, "Failed")
      if (end._tag !== "Failed") return
      assert.strictEqual(end.invalid?._tag, "OutputInvalid")
      assert.strictEqual(end.invalid?.text, '{"approved": 3}')
      assert.deepStrictEqual(end.invalid?.issues.map((issue) => issue.split(":")[0]).sort(), [
        "approved",
        "on",
        "score"
      ])
      assert.strictEqual(end.error, end.invalid?.message)
      // The agent is as usable as before.
      assert.strictEqual((yield* kit.agent.run("and now?"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("is not asked for again with no retries, also of a model that says nothing", () =>
    Effect.gen(function* () {
      const { model, requests } = recorded([{ text: "" }])
      const kit = yield* Kit.start({ model, agent: { limits: { outputRetries: 0 } } })
      const end = yield* kit.agent.run("go", { output: Verdict })
      assert.strictEqual(end._tag === "Failed" ? end.invalid?.issues[0] : end._tag, "it is empty")
      assert.strictEqual(requests.length, 1)
    })
  )

  it.scoped("is asked for as the model takes it", () =>
    Effect.gen(function* () {
      const ask = (outputSchemas: Model.Service["outputSchemas"], tools?: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const { model, requests } = recorded([{ text: JSON.stringify(verdict) }], outputSchemas)
          const kit = yield* Kit.start({ model, agent: { tools } })
          assert.strictEqual((yield* kit.agent.run("go", { output: Verdict }))._tag, "Completed")
          const [request] = requests
          return [request?.outputSchema !== undefined, request?.tools.some(({ name }) => name === "final_result")]
        })
      assert.deepStrictEqual(yield* ask(undefined), [false, true])
      assert.deepStrictEqual(yield* ask("always"), [true, false])
      assert.deepStrictEqual(yield* ask("withoutTools"), [false, true])
      assert.deepStrictEqual(yield* ask("withoutTools", []), [true, false])
    })
  )

  it.scoped("has a tool of its own name, whose schema is the result's", () =>
    Effect.gen(function* () {
      const { model, requests } = recorded([result(verdict)])
      const kit = yield* Kit.start({ model })
      yield* kit.agent.run("go", { output: Verdict })
      const tool = requests[0]?.tools.at(-1)
      assert.deepStrictEqual(
        tool === undefined ? [] : Object.keys((Tool.getJsonSchema(tool as never) as { properties: object }).properties),
        ["approved", "score", "on"]
      )
      // Without a typed result there is none.
      yield* kit.agent.run("go on")
      assert.deepStrictEqual(
        requests[1]?.tools.map(({ name }) => name),
        ["work", "slow", "typed"]
      )
    })
  )

  it.scoped.each([
    ["a class", Person, { name: "Ada", born: "1815-12-10T00:00:00.000Z" }],
    ["a named struct that holds itself", Tree, { label: "a", under: [{ label: "b", under: [] }] }],
    ["a reference to one", Schema.suspend(() => Tree), { value: { label: "a", under: [] } }],
    ["a struct without fields", Schema.Struct({}), { value: {} }],
    ["a record", Schema.Record({ key: Schema.String, value: Schema.Int }), { value: 1 }],
    ["a struct with a rule over its fields", Verdict.pipe(Schema.filter(({ score }) => score > 0)), verdict],
    ["what is made of a struct", Schema.pluck(Schema.Struct({ value: Schema.Int }), "value"), { value: 3 }],
    ["a union", Schema.Union(Tree, Schema.Null), { value: null }],
    ["a branded text", Schema.String.pipe(Schema.brand("Code")), { value: "a" }]
  ] as const)("is asked for with an object at the root, as providers want it: %s", ([, schema, answer]) =>
    Effect.gen(function* () {
      const roots: Array<unknown> = []
      for (const [outputSchemas, step] of [
        ["always", { text: JSON.stringify(answer) }],
        [undefined, result(answer)]
      ] as const) {
        const { model, requests } = recorded([step], outputSchemas)
        const kit = yield* Kit.start({ model })
        const end = yield* kit.agent.run("go", { output: schema as Schema.Schema<unknown, unknown> })
        assert.strictEqual(end._tag, "Completed", JSON.stringify(end))
        const [request] = requests
        const root = request?.outputSchema?.schema ?? Tool.getJsonSchema(request?.tools.at(-1) as never)
        roots.push({ type: "type" in root && root.type, reference: "$ref" in root })
      }
      const object = { type: "object", reference: false }
      assert.deepStrictEqual(roots, [object, object])
    })
  )

  it.scoped("has a tool of another name where the program has one of this name", () =>
    Effect.gen(function* () {
      const Final = Tool.make("final_result", { success: Schema.String })
      const own = Toolkit.make(Final)
      const { model, requests } = recorded([{ tools: [{ name: "final_result" }] }, result(verdict, "final_result_2")])
      const runtime = yield* AgentRuntime.make({ toolkit: own, policy: Kit.allowAll }).pipe(
        Effect.provide(
          Layer.mergeAll(own.toLayer({ final_result: () => Effect.succeed("ran") }), noFiles, Model.layer(model))
        )
      )
      const agent = yield* Agent.startWith([]).pipe(Effect.provideService(AgentRuntime.AgentRuntime, runtime))
      const end = yield* agent.run("go", { output: Verdict })
      assert.deepStrictEqual(end._tag === "Completed" ? end.value : end, decoded)
      assert.deepStrictEqual(
        requests[0]?.tools.map(({ name }) => name),
        ["final_result", "final_result_2"]
      )
      assert.deepStrictEqual(Kit.resultsOf(agent.history.messages), ["ran"])
    })
  )

  it.scoped("is asked for again only in its own turn", () =>
    Effect.gen(function* () {
      const { model, requests } = recorded([{ text: "no" }, { text: "no" }])
      const kit = yield* Kit.start({ model, agent: { limits: { maxSteps: 1 } } })
      assert.strictEqual((yield* kit.agent.run("go", { output: Verdict }))._tag, "TurnLimit")
      yield* kit.agent.awaitIdle
      yield* settle
      assert.strictEqual(requests.length, 1)
      assert.strictEqual((yield* kit.of("TurnStarted")).length, 1)
    })
  )

  it.scoped("comes behind words that the model did not end", () =>
    Effect.gen(function* () {
      const { model } = Kit.replies(
        Stream.fromIterable([Kit.text("So: "), Kit.call("final_result", verdict, "1"), Kit.finish("tool-calls")])
      )
      const kit = yield* Kit.start({ model })
      const end = yield* kit.agent.run("go", { output: Verdict })
      assert.deepStrictEqual(end._tag === "Completed" ? end.value : end, decoded)
      const said = kit.agent.history.messages.at(-1)
      assert.match(JSON.stringify(said?.content), /So: .*approved/)
    })
  )

  it.scoped("may be no object", () =>
    Effect.gen(function* () {
      const Lines = Schema.Array(Schema.NumberFromString)
      for (const step of [result({ value: ["1", "2"] }), { text: '["1", "2"]' }, { text: '{"value": ["1", "2"]}' }]) {
        const kit = yield* Kit.start({ model: [step] })
        const end = yield* kit.agent.run("go", { output: Lines })
        assert.deepStrictEqual(end._tag === "Completed" ? end.value : end, [1, 2])
      }
      // Models also leave out the field that holds a union, whose members may have one of its name.
      const Found = Schema.Union(Schema.Struct({ value: Schema.Int }), Schema.Struct({ missing: Schema.String }))
      for (const params of [{ value: { value: 1 } }, { value: 1 }]) {
        const kit = yield* Kit.start({ model: [result(params)] })
        const end = yield* kit.agent.run("go", { output: Found })
        assert.deepStrictEqual(end._tag === "Completed" ? end.value : end, { value: 1 })
      }
    })
  )

  it.scoped("leaves other ends as they are", () =>
    Effect.gen(function* () {
      const limited = yield* Kit.start({
        model: Array.from({ length: 4 }, () => ({ tools: [work("a")] })),
        agent: { limits: { maxSteps: 2 } }
      })
      assert.strictEqual((yield* limited.agent.run("go", { output: Verdict }))._tag, "TurnLimit")

      const waiting = yield* Kit.start({ model: [{ tools: [work("a")] }], worker: () => Effect.never })
      const running = yield* Effect.fork(waiting.agent.run("go", { output: Verdict }))
      yield* settle
      yield* waiting.agent.cancel()
      assert.strictEqual((yield* Fiber.join(running))._tag, "Cancelled")

      const failing = yield* Kit.start({ model: [{ error: "bad_output" }] })
      const end = yield* failing.agent.run("go", { output: Verdict })
      assert.strictEqual(end._tag, "Failed")
      assert.isFalse("invalid" in end)
    })
  )

  it.scoped("belongs to its run alone, whatever is said beside it", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { heard, model } = Kit.replies(
        Kit.halting([Kit.text("{")], begun),
        { text: JSON.stringify(verdict) },
        { text: "hello" }
      )
      const kit = yield* Kit.start({ model })
      const typed = yield* Effect.fork(kit.agent.run("judge", { output: Verdict }))
      yield* Deferred.await(begun)
      const plain = yield* Effect.fork(kit.agent.run("greet"))
      yield* kit.agent.send("be quick")
      assert.deepStrictEqual((yield* Fiber.join(typed)) as object, {
        _tag: "Completed",
        text: JSON.stringify(verdict),
        steps: 2,
        value: decoded
      })
      assert.deepStrictEqual(yield* Fiber.join(plain), { _tag: "Completed", text: "hello", steps: 1 })
      assert.strictEqual(heard.length, 3)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("of a schema that waits while it decodes fails at once, and says what to do instead", () =>
    Effect.gen(function* () {
      const Later = Schema.transformOrFail(Schema.String, Schema.String, {
        strict: true,
        decode: (text) => Effect.as(Effect.sleep("1 second"), text),
        encode: (text) => Effect.succeed(text)
      })
      const Waiting = Schema.Union(Later, Schema.Array(Later), Schema.Struct({ at: Later }))
      for (const answer of [{ value: "x" }, { value: ["x"] }, { value: { at: "x" } }, { at: "x" }]) {
        const { heard, model } = Kit.replies({ text: JSON.stringify(answer) })
        const kit = yield* Kit.start({ model })
        const end = yield* kit.agent.run("go", { output: Waiting })
        assert(end._tag === "Failed")
        assert.match(end.error, /its schema waits for something while it decodes.* give a schema that does not wait/)
        assert.strictEqual(end.invalid?.issues.length, 1)
        assert.strictEqual(heard.length, 1)
      }
    })
  )

  it("has ten issues at most, and says how many there are more", () => {
    const Wide = Schema.Struct(
      Object.fromEntries(Array.from({ length: 14 }, (_, at) => [`f${at}`, Schema.Int])) as Record<
        string,
        typeof Schema.Int
      >
    )
    for (const [count, said] of [
      [10, 10],
      [11, 11],
      [14, 11]
    ] as const) {
      const given = Object.fromEntries(Array.from({ length: 14 }, (_, at) => [`f${at}`, at < count ? "x" : 1]))
      const issues = TypedOutput.make(Wide).read(JSON.stringify(given))?.issues ?? []
      assert.lengthOf(issues, said)
      assert.strictEqual(issues[10], count === 10 ? undefined : `and ${count - 10} more`)
    }
  })

  it("is read from the text of a turn that somebody else waited for", () => {
    const completed = (text: string) => ({ _tag: "Completed", text, steps: 3 }) as const
    const read = TypedOutput.make(Verdict)
    assert.deepStrictEqual(read.endOf(completed(JSON.stringify(verdict))), {
      ...completed(JSON.stringify(verdict)),
      value: decoded
    })
    const unread = TypedOutput.make(Verdict).endOf(completed("I am done."))
    assert(unread._tag === "Failed")
    assert.deepStrictEqual([unread.steps, unread.error], [3, unread.invalid?.message])
    assert.strictEqual(unread.invalid?.text, "I am done.")
  })

  it("is the one block of a text, and none of several", () => {
    const block = `\`\`\`json\n${JSON.stringify(verdict)}\n\`\`\``
    const read = (text: string) => TypedOutput.make(Verdict).read(text)
    assert.isUndefined(read(`Here:\n${block}\nDone.`))
    assert.match(read(`${block}\n${block}`)?.issues[0] ?? "", /not JSON/)
    assert.match(read("```")?.issues[0] ?? "", /not JSON/)
  })

  it.scoped("of a schema without a JSON form is a defect, and nothing is sent", () =>
    Effect.gen(function* () {
      const { model, requests } = recorded([])
      const kit = yield* Kit.start({ model })
      const exit = yield* Effect.exit(kit.agent.run("go", { output: Schema.DateFromSelf }))
      assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
      assert.strictEqual(requests.length, 0)
      assert.isTrue(yield* kit.agent.isIdle)
    })
  )

  it("takes whatever value the schema has, by either way", () => {
    const Anything = Schema.Union(
      Schema.Struct({ kind: Schema.Literal("list"), items: Schema.Array(Schema.NullOr(Schema.String)) }),
      Schema.Struct({
        kind: Schema.Literal("amount"),
        of: Schema.NumberFromString,
        note: Schema.optional(Schema.String)
      }),
      Schema.NonEmptyString,
      Schema.Record({ key: Schema.String, value: Schema.JsonNumber })
    )
    return fc.assert(
      fc.asyncProperty(Arbitrary.make(Anything), fc.boolean(), async (value, asText) => {
        const encoded: unknown = JSON.parse(JSON.stringify(Schema.encodeSync(Anything)(value)))
        const step = asText ? { text: JSON.stringify(encoded) } : result({ value: encoded })
        const program = Effect.scoped(
          Effect.gen(function* () {
            const kit = yield* Kit.start({ model: [step] })
            return yield* kit.agent.run("go", { output: Anything })
          })
        )
        const end = await Effect.runPromise(program)
        assert.strictEqual(end._tag, "Completed")
        if (end._tag === "Completed")
          assert.deepStrictEqual(JSON.parse(JSON.stringify(Schema.encodeSync(Anything)(end.value))), encoded)
      }),
      { numRuns: Runs.of(120) }
    )
  })

  it("ends bounded and typed, whatever the model writes", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.json(), fc.string(), fc.constant("```json\n{\n```")), { maxLength: 4 }),
        async (texts) => {
          const { model, requests } = recorded(texts.map((text) => ({ text })))
          const program = Effect.scoped(
            Effect.gen(function* () {
              const kit = yield* Kit.start({ model })
              const end = yield* kit.agent.run("go", { output: Verdict })
              assert.deepStrictEqual(yield* kit.wrong, [])
              return end
            })
          )
          const end = await Effect.runPromise(program)
          assert.isTrue(end._tag === "Failed" && end.invalid !== undefined)
          assert.isAtMost(requests.length, 3)
        }
      ),
      { numRuns: Runs.of(200) }
    ))

  it("has the type of its schema", () => {
    const typed = (agent: Agent.Agent) => agent.run("go", { output: Verdict })
    type End = Effect.Effect.Success<ReturnType<typeof typed>>
    type Value = Extract<End, { readonly _tag: "Completed" }>["value"]
    expectTypeOf<Value>().toEqualTypeOf<typeof Verdict.Type>()
    const needy = Schema.String as unknown as Schema.Schema<string, string, "needs">
    // @ts-expect-error a schema that needs services cannot be decoded here
    const services = (agent: Agent.Agent) => agent.run("go", { output: needy })
    assert.isFunction(services)
  })
})
