/** The spans of a session: its turns, model calls and tools, as a trace shows them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Redaction from "../../src/core/Redaction.js"
import * as Spans from "../../src/core/Spans.js"
import type * as Model from "../../src/model/Model.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Family from "../kit/Family.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"
import * as Traces from "../kit/Traces.js"

const canary = "canary-in-the-coal-mine"
const ask = PermissionFile.policy({})
const work = (name: string) => ({ name: "work", params: { name } })

/** What has to be said without being told: arguments, results, answers, and the words themselves. */
const talkative: ReadonlyArray<Kit.Step> = [
  { text: `I think ${canary}.`, tools: [work(canary)], usage: { input: 11, output: 5 } },
  { text: `It was ${canary}.`, usage: { input: 20, output: 7 } }
]

const started = (spans: Spans.Service, options: Partial<Kit.Options> = {}) =>
  Kit.start({ model: talkative, person: ["y"], ...options, runtime: { policy: ask, spans, ...options.runtime } })

describe("the spans of an agent", () => {
  const traced = (options: Partial<Kit.Options> = {}) =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const kit = yield* started(Spans.make({ tracer: traces.tracer }), options)
      return { traces, kit, find: (name: string) => traces.ended().filter((span) => span.name === `assent.${name}`) }
    })

  it.scoped("show a turn with its model calls, permissions, questions and tools", () =>
    Effect.gen(function* () {
      const { find, kit, traces } = yield* traced()
      yield* kit.agent.run(`do ${canary}`)
      assert.deepStrictEqual(traces.outline(), [
        "turn > model_call",
        "turn > permission > interaction",
        "turn > permission",
        "turn > tool",
        "turn > model_call",
        "turn"
      ])
      const who = { "gen_ai.agent.name": "main", "gen_ai.conversation.id": kit.agent.id }
      for (const { attributes } of traces.ended()) {
        assert.deepInclude(attributes, { ...who, "assent.turn.id": find("turn")[0]?.attributes["assent.turn.id"] })
      }
      assert.deepInclude(find("turn")[0]?.attributes, {
        "gen_ai.operation.name": "invoke_agent",
        "assent.turn.end": "completed",
        "assent.turn.steps": 2,
        "assent.turn.input": "[REDACTED: 26 chars]"
      })
      const [model] = find("model_call")
      assert.deepInclude(model?.attributes, {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": kit.runtime.model.id,
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 5,
        "assent.step": 1,
        "assent.model_call.tools": 1
      })
      assert.deepStrictEqual(model?.attributes["gen_ai.response.finish_reasons"], ["tool-calls"])
      const [request] = yield* kit.of("InteractionRequested")
      assert.deepInclude(find("interaction")[0]?.attributes, {
        "assent.request.id": request?.requestId,
        "assent.interaction.kind": "Approve",
        "assent.interaction.by": "person",
        "assent.interaction.how": "answered"
      })
      assert.deepInclude(find("permission")[0]?.attributes, {
        "gen_ai.tool.name": "work",
        "assent.permission.granted": true,
        "assent.permission.method": "user_approved",
        "assent.request.id": request?.requestId
      })
      assert.deepInclude(find("tool")[0]?.attributes, {
        "gen_ai.tool.name": "work",
        "gen_ai.tool.call.arguments": "[REDACTED: 34 chars]",
        "gen_ai.tool.call.result": "[REDACTED: 23 chars]",
        "assent.tool.outcome": "succeeded"
      })
      assert.notInclude(traces.text(), "canary")
      assert.strictEqual(traces.open(), 0)
    })
  )

  it.scoped("tell failures and cancellations without their words, and end with the turn", () =>
    Effect.gen(function* () {
      const { find, kit, traces } = yield* traced({
        model: [
          { tools: [work("fails"), work("crashes"), { name: "typed", params: { why: canary } }] },
          { error: "bad_output" },
          { tools: [work("hangs")] }
        ],
        worker: (name) =>
          name === "hangs"
            ? Effect.never
            : name === "fails"
              ? Effect.dieMessage(canary)
              : Effect.die(new Error(canary)),
        person: ["y", "y", "y", "y"]
      })
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Failed")
      const outcomes = find("tool").map(({ attributes, status }) => [attributes["assent.tool.outcome"], status])
      assert.deepStrictEqual(outcomes, [
        ["failed", "error"],
        ["failed", "error"],
        ["failed", "error"]
      ])
      assert.deepStrictEqual(
        find("model_call").map(({ attributes }) => attributes["error.type"]),
        [undefined, "BadOutput"]
      )
      assert.deepStrictEqual(
        find("turn").map(({ attributes, status }) => [attributes["assent.turn.end"], status]),
        [["failed", "error"]]
      )
      const running = yield* Effect.fork(kit.agent.run("again"))
      yield* Effect.iterate(undefined, {
        while: () => kit.agent.history.messages.length > 0 && traces.open() < 2,
        body: () => Effect.yieldNow()
      })
      yield* kit.agent.cancel("user")
      yield* Fiber.join(running)
      assert.strictEqual(traces.open(), 0)
      assert.strictEqual(find("turn")[1]?.attributes["assent.turn.end"], "cancelled")
      assert.notInclude(traces.text(), "canary")
    })
  )

  it.scoped("put the turn of another session under the tool call that ordered it", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const spans = Spans.make({ tracer: traces.tracer })
      const child = yield* started(spans, { model: [{ text: "done" }], agent: { name: "main/child" } })
      const parent = yield* started(spans, {
        worker: (task) => Effect.withSpan(Effect.orDie(child.agent.turn(task)), "of-the-tool-itself"),
        runtime: { policy: Kit.allowAll }
      })
      yield* parent.agent.run("go")
      assert.deepStrictEqual(traces.outline(), [
        "turn > model_call",
        "turn > permission",
        "turn > tool > turn > model_call",
        "turn > tool > turn",
        "turn > tool",
        "turn > model_call",
        "turn"
      ])
    })
  )

  it.scoped("put a subagent's work under the tool call that made it, and count it in the same ledger", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const usage = { input: 10, output: 1 }
      const { agent } = yield* Family.start({
        script: {
          main: [
            { tools: [{ name: "delegate", params: { task: canary, profile: "helper" } }], usage },
            { text: "Done." }
          ],
          helper: [
            { tools: [work(canary)], usage },
            { text: canary, usage }
          ]
        },
        person: ["y"],
        runtime: { spans: Spans.make({ tracer: traces.tracer }) }
      })
      yield* agent.run("go")
      const below = "turn > tool > turn"
      assert.deepStrictEqual(
        traces.outline().filter((path) => path.startsWith(below)),
        [`${below} > model_call`, `${below} > permission`, `${below} > tool`, `${below} > model_call`, below]
      )
      assert.notInclude(traces.text(), "canary")
      assert.strictEqual(traces.open(), 0)
      const { calls, inputTokens, unknownCalls } = agent.ledger.totals()
      assert.deepStrictEqual([calls, inputTokens, unknownCalls], [4, 30, 1])
      assert.strictEqual([...agent.ledger.byAgent().values()].length, 2)
    })
  )

  it.scoped("show what was said when they are told to, with secrets masked", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const content = Redaction.make([canary])
      const kit = yield* started(Spans.make({ tracer: traces.tracer, content }))
      yield* kit.agent.run(`do ${canary} now`)
      assert.notInclude(traces.text(), "canary")
      const [turn] = traces.ended().filter(({ name }) => name === "assent.turn")
      assert.strictEqual(turn?.attributes["assent.turn.input"], "do [REDACTED] now")
      const [tool] = traces.ended().filter(({ name }) => name === "assent.tool")
      assert.strictEqual(tool?.attributes["gen_ai.tool.call.arguments"], '{"name":"[REDACTED]"}')
    })
  )

  it.scoped("say what a call was asked and used, and which tool a person stopped", () =>
    Effect.gen(function* () {
      const { find, kit, traces } = yield* traced({
        model: Kit.replies(
          Stream.make<Array<Model.Part>>(
            Kit.text("Two "),
            Kit.call("work", { name: "hangs" }, "c1"),
            Kit.call("work", { name: "works" }, "c2"),
            {
              type: "finish",
              reason: "tool-calls",
              usage: { inputTokens: 30, outputTokens: 2, totalTokens: 32, cachedInputTokens: 20 }
            }
          ),
          { text: "Done." }
        ).model,
        worker: (name) => (name === "hangs" ? Effect.never : Effect.succeed(name)),
        runtime: { policy: Kit.allowAll }
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* kit.agent.interrupt({ toolCallId: "c1" })
      yield* Fiber.join(running)
      assert.deepInclude(find("model_call")[0]?.attributes, {
        "gen_ai.provider.name": "test",
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "assent.model_call.tools": 2,
        "assent.model_call.text": "[REDACTED: 4 chars]"
      })
      assert.deepStrictEqual(
        find("tool").map(({ attributes, status }) => [
          attributes["gen_ai.tool.call.id"],
          attributes["assent.tool.outcome"],
          attributes["gen_ai.tool.call.result"],
          status
        ]),
        [
          ["c2", "succeeded", "[REDACTED: 5 chars]", "ok"],
          ["c1", "interrupted", "[REDACTED: 79 chars]", "interrupted"]
        ]
      )
      assert.deepStrictEqual(find("turn")[0]?.status, "ok")
      assert.strictEqual(traces.open(), 0)
    })
  )

  it.scoped("keep no turn from its end when the tracer breaks there", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const breaking: typeof traces.tracer = {
        ...traces.tracer,
        span: (...args) => {
          const span = traces.tracer.span(...args)
          return span.name !== "assent.turn" && !span.name.startsWith("invoke_agent")
            ? span
            : Object.assign(span, {
                end: () => {
                  throw new Error("full")
                }
              })
        }
      }
      const kit = yield* started(Spans.make({ tracer: breaking }), { model: [{ text: "one" }, { text: "two" }] })
      for (const _ of [1, 2]) assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      assert.strictEqual(traces.open(), 2)
    })
  )
})
